"""Flatten and build functions written for one class with named fields.

A recursive walk over `dataclasses.fields` costs several microseconds a call. Here the source text
of two functions is generated once per class, with each field access spelled out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from types import MemberDescriptorType
from typing import Any, NoReturn

from archimedes.errors import StructError
from archimedes.tree.content import content_key
from archimedes.tree.nodes import FLATTENERS, format_fields, install, make_lookup, own_aux, resolve
from archimedes.tree.treedef import LEAF, NodeKind

CHILD = """
    v = x.{name}
    f = get(type(v), resolve) if stop is None or not stop(v) else None
    if f is None:
        append(v)
        d{i} = LEAF
    else:
        d{i} = f(v, append, stop)"""

STATIC = """
    s{i} = x.{name}
    try:
        k{i} = content_key(s{i})
    except StructError as error:
        blame(error, {name!r})"""


def flatten_source(data: Sequence[str], static: Sequence[str]) -> str:
    """Return the source of ``flatten(x, append, stop)`` for the given field names."""
    children = "".join(CHILD.format(i=i, name=name) for i, name in enumerate(data))
    statics = "".join(STATIC.format(i=i, name=name) for i, name in enumerate(static))
    defs = "".join(f"d{i}, " for i in range(len(data)))
    keys = "".join(f"k{i}, " for i in range(len(static)))
    values = "".join(f"s{i}, " for i in range(len(static)))
    return f"""def flatten(x, append, stop):{children}{statics}
    key = ({defs}{keys})
    treedef = find(key)
    return treedef if treedef is not None else make(key, ({defs}), ({values}))
"""


def build_source(data: Sequence[str], static: Sequence[str], slots: bool) -> str:
    """Return the source of ``build(treedef, take)`` for the given field names.

    Fields go into the instance's dict where there is one: that passes by the frozen
    ``__setattr__`` at half the cost of ``object.__setattr__``, which slots still need.
    """
    values = [f"take() if d{i} is LEAF else d{i}.build(d{i}, take)" for i in range(len(data))]
    values += [f"aux[{i}]" for i in range(len(static))]
    put = "put(x, {!r}, {})" if slots else "fields[{!r}] = {}"
    lines = ["def build(treedef, take):", "x = new(cls)"]
    if not slots:
        lines.append("fields = x.__dict__")
    if data:
        lines.append("".join(f"d{i}, " for i in range(len(data))) + "= treedef.children")
    if static:
        lines.append("aux = treedef.aux if treedef.shared else own_aux(treedef)")
    lines += [put.format(name, value) for name, value in zip((*data, *static), values)]
    return "\n    ".join([*lines, "return x"]) + "\n"


def compile_function(name: str, source: str, cls: type, names: dict[str, Any]) -> Callable:
    """Return the function that generated source defines."""
    code = compile(source, f"<{name} of {cls.__qualname__}>", "exec")
    exec(code, names)
    return names[name]


def install_fields(cls: type, data: Sequence[str], static: Sequence[str]) -> None:
    """Make instances of `cls` nodes with children `data` and static values `static`.

    Instances are rebuilt with ``object.__new__``, not through ``__init__``: what was checked at
    construction is not checked again, and a leaf may be any object.
    """
    clash = [n for n in (*data, *static) if not n.isidentifier()]
    if clash:
        raise StructError(f"{cls.__qualname__}: {clash[0]!r} is not a possible field name")
    members = [getattr(cls, name, None) for name in (*data, *static)]
    slots = cls.__dictoffset__ == 0 or any(isinstance(m, MemberDescriptorType) for m in members)
    short = cls.__qualname__.rpartition("<locals>.")[2]
    names: dict[str, Any] = {"cls": cls, "new": object.__new__, "put": object.__setattr__}
    names.update(LEAF=LEAF, own_aux=own_aux)

    def show(aux: Sequence[Any], children: Sequence[str]) -> str:
        return format_fields(short, (*data, *static), (*children, *map(repr, aux)))

    def differ(aux: Sequence[Any], other: Sequence[Any]) -> tuple[str, str]:
        pairs = zip(static, aux, other)
        name, a, b = next(p for p in pairs if content_key(p[1]) != content_key(p[2]))
        return (f"{short} with static {name}={a!r}", f"{name}={b!r}")

    def aux_key(aux: Sequence[Any]) -> Hashable:
        return tuple(map(content_key, aux))

    def blame(error: StructError, name: str) -> NoReturn:
        raise StructError(f"static field {short}.{name}: {error}") from None

    kind = NodeKind(
        cls=cls,
        name=short,
        build=compile_function("build", build_source(data, static, slots), cls, names),
        labels=lambda aux, n: [f".{name}" for name in data],
        show=show,
        differ=differ,
        aux_key=aux_key,
    )
    find, make = make_lookup(kind)
    names = {"get": FLATTENERS.get, "resolve": resolve, "LEAF": LEAF, "content_key": content_key}
    names.update(find=find, make=make, blame=blame, StructError=StructError)
    install(kind, compile_function("flatten", flatten_source(data, static), cls, names))


def field_names(cls: type) -> tuple[list[str], list[str]]:
    """Return the names of the data fields and of the static fields of a dataclass."""
    fields = dataclasses.fields(cls)
    data = [f.name for f in fields if not f.metadata.get("static", False)]
    static = [f.name for f in fields if f.metadata.get("static", False)]
    return data, static
