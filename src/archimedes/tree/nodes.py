"""The registry of node types: how each is flattened and rebuilt; Python's own containers.

`FLATTENERS` maps a type to a function ``flatten(obj, append, stop) -> TreeDef`` that appends the
leaves of `obj`, or to None where objects of that type are leaves. A type not listed yet is looked
at once, by `resolve`, and then listed; that keeps the test for a leaf at one dict lookup.

The children of a dict are in the order of its sorted keys, so that the leaves of two dicts with the
same keys correspond however they were filled. The order in which a dict was filled belongs to its
structure all the same: a rebuilt dict is filled in that order, and a function that depends on it
(``list(d.values())``) is recorded once for each. The leaves of an OrderedDict are in its own order.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import CodeType, MemberDescriptorType
from typing import Any, NoReturn

from archimedes.errors import StructError
from archimedes.tree.content import content_key, snapshot
from archimedes.tree.treedef import LEAF, LEAF_KIND, LOCK, NodeKind, Take, TreeDef, intern

__all__ = ["register_node"]

Stop = Callable[[Any], bool]
Flattener = Callable[[Any, Callable[[Any], None], Stop | None], TreeDef]

FLATTENERS: dict[type, Flattener | None] = {}
KINDS: dict[type, NodeKind] = {LEAF_KIND.cls: LEAF_KIND}
RESOLVERS: list[Callable[[type], bool]] = []

# A structure with ever-changing static values must not grow a cache without bound.
CACHE_LIMIT = 512


def resolve(obj: object, append: Callable[[Any], None], stop: Stop | None) -> TreeDef:
    """Flatten an object of a type met for the first time, and list the type."""
    flattener = flattener_of(type(obj))
    if flattener is None:
        append(obj)
        return LEAF
    return flattener(obj, append, stop)


def flattener_of(cls: type) -> Flattener | None:
    """Return the flattener of `cls`, or None if its instances are leaves."""
    with LOCK:  # two kinds for one class would make equal structures differ
        if cls not in FLATTENERS and not any(register(cls) for register in RESOLVERS):
            FLATTENERS[cls] = None
        return FLATTENERS[cls]


def kind_of(cls: type) -> NodeKind:
    """Return the NodeKind of a node type."""
    if cls is not LEAF_KIND.cls and flattener_of(cls) is None:
        raise StructError(f"{cls.__qualname__} is not registered as a node of trees")
    return KINDS[cls]


def install(kind: NodeKind, flattener: Flattener) -> None:
    """List a node type; the flattener last, because other threads look there first."""
    KINDS[kind.cls] = kind
    FLATTENERS[kind.cls] = flattener


def make_lookup(kind: NodeKind) -> tuple[Callable, Callable]:
    """Return (find, make) of a bounded cache in front of the intern table.

    ``find(key)`` gives a TreeDef or None; ``make(key, children, aux)`` interns one.
    """
    cache: dict[Hashable, TreeDef] = {}

    def make(key: Hashable, children: tuple[TreeDef, ...], aux: object) -> TreeDef:
        if len(cache) >= CACHE_LIMIT:
            cache.clear()
        treedef = cache[key] = intern(kind, children, aux)
        return treedef

    return cache.get, make


def make_flattener(kind: NodeKind, take_apart: Callable[[Any], tuple[Iterable, Any]]) -> Flattener:
    """Return a flattener for a node type whose `take_apart` gives (children, aux)."""
    find, make = make_lookup(kind)
    get = FLATTENERS.get
    aux_key = kind.aux_key

    def flatten(obj: Any, append: Callable[[Any], None], stop: Stop | None) -> TreeDef:
        children, aux = take_apart(obj)
        defs = []
        for child in children:
            f = get(type(child), resolve) if stop is None or not stop(child) else None
            if f is None:
                append(child)
                defs.append(LEAF)
            else:
                defs.append(f(child, append, stop))
        key = (aux_key(aux), *defs)
        treedef = find(key)
        return treedef if treedef is not None else make(key, tuple(defs), aux)

    return flatten


def own_aux(treedef: TreeDef) -> Any:
    """Return the static data of a node in a form that the new object may keep."""
    return treedef.aux if treedef.shared else snapshot(treedef.aux)


def make_builder(put_together: Callable[[Any, list], Any]) -> Callable[[TreeDef, Take], Any]:
    """Return ``build(treedef, take)`` from ``put_together(aux, children)``."""

    def build(treedef: TreeDef, take: Take) -> Any:
        children = [take() if c is LEAF else c.build(c, take) for c in treedef.children]
        return put_together(own_aux(treedef), children)

    return build


def index_labels(aux: object, n: int) -> list[str]:
    return [f"[{i}]" for i in range(n)]


def format_fields(name: str, labels: Sequence[str], children: Sequence[str]) -> str:
    return f"{name}({', '.join(f'{a}={b}' for a, b in zip(labels, children))})"


def install_node(
    cls: type,
    take_apart: Callable[[Any], tuple[Iterable, Any]],
    put_together: Callable[[Any, list], Any],
    labels: Callable[[Any, int], Sequence[str]] = index_labels,
    show: Callable[[Any, Sequence[str]], str] | None = None,
    differ: Callable[[Any, Any], tuple[str, str]] | None = None,
    aux_key: Callable[[Any], Hashable] = content_key,
    free_key: Callable[[Any], Hashable] | None = None,
) -> None:
    """List a node type given by plain functions; see NodeKind for their meaning."""
    name = cls.__qualname__

    def show_call(aux: object, children: Sequence[str]) -> str:
        head = name if aux is None else f"{name}[{aux!r}]"
        return f"{head}({', '.join(children)})"

    def differ_aux(aux: object, other: object) -> tuple[str, str]:
        return (f"{name} with {aux!r}", f"{name} with {other!r}")

    kind = NodeKind(
        cls=cls,
        name=name,
        build=make_builder(put_together),
        labels=labels,
        show=show or show_call,
        differ=differ or differ_aux,
        aux_key=aux_key,
        free_key=free_key or aux_key,
    )
    install(kind, make_flattener(kind, take_apart))


def register_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable, Any]],
    unflatten_fn: Callable[[Any, list], Any],
    paths_fn: Callable[[Any], Sequence[str]] | None = None,
) -> type:
    """Make instances of a foreign class inner nodes of trees, and return the class.

    Parameters
    ----------
    cls : type
        The class.
    flatten_fn : callable
        ``flatten_fn(obj)`` returns ``(children, aux)``: the parts, and static data that belong to
        the structure and are compared by content.
    unflatten_fn : callable
        ``unflatten_fn(aux, children)`` rebuilds the object. It must accept any objects as children.
    paths_fn : callable, optional
        ``paths_fn(aux)`` returns a label for each child, such as ``".real"`` or ``"['mass']"``. By
        default ``[0]``, ``[1]``, ...

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from archimedes import tree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> _ = tree.register_node(Pair, lambda p: ((p.a, p.b), None), lambda aux, ab: Pair(*ab))
    >>> tree.leaves(Pair(1.0, [2.0, 3.0]))
    [1.0, 2.0, 3.0]
    """
    if not isinstance(cls, type):
        raise StructError(f"register_node: expected a class, got {cls!r}")
    if FLATTENERS.get(cls) is not None:
        raise StructError(f"register_node: {cls.__qualname__} is already registered")

    def take_apart(obj: Any) -> tuple[Iterable, Any]:
        result = flatten_fn(obj)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise StructError(
                f"the flatten function of {cls.__qualname__} must return (children, aux), "
                f"got {result!r}"
            )
        return result

    def labels(aux: object, n: int) -> Sequence[str]:
        names = index_labels(aux, n) if paths_fn is None else list(paths_fn(aux))
        if len(names) != n:
            raise StructError(
                f"the path function of {cls.__qualname__} gave {len(names)} labels for {n} children"
            )
        return names

    install_node(cls, take_apart, unflatten_fn, labels)
    return cls


def pickle_treedef(treedef: TreeDef) -> Any:
    return (restore_treedef, (treedef.kind.cls, treedef.children, treedef.aux))


def restore_treedef(cls: type, children: tuple[TreeDef, ...], aux: object) -> TreeDef:
    return LEAF if cls is LEAF_KIND.cls else intern(kind_of(cls), children, aux)


# TreeDef cannot look up node types itself: the registry is above it.
copyreg.pickle(TreeDef, pickle_treedef)


Keys = tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def sort_keys(keys: Keys) -> Keys:
    """Sort dict keys; keys of mixed or unordered types are sorted by type name and repr."""
    try:
        return tuple(sorted(keys))
    except TypeError:
        return tuple(sorted(keys, key=lambda k: (type(k).__qualname__, repr(k))))


def key_labels(keys: Keys, n: int) -> list[str]:
    return [f"[{key!r}]" for key in keys]


def sorted_labels(keys: Keys, n: int) -> list[str]:
    return key_labels(sort_keys(keys), n)


def refill(keys: Keys, children: Iterable) -> Iterable[tuple[Any, Any]]:
    """Return the items of a dict in its own order, of values in the order of its sorted keys."""
    order = sort_keys(keys)
    if order == keys:
        return zip(keys, children)
    values = dict(zip(order, children))
    return ((key, values[key]) for key in keys)


def show_sorted(keys: Keys, children: Sequence[str]) -> str:
    return f"{{{', '.join(f'{k!r}: {c}' for k, c in refill(keys, children))}}}"


def show_dict(keys: Keys, children: Sequence[str]) -> str:
    return f"{{{', '.join(f'{k!r}: {c}' for k, c in zip(keys, children))}}}"


def differ_keys(keys: Keys, other: Keys) -> tuple[str, str]:
    if keys != other and sort_keys(keys) == sort_keys(other):
        return (f"dict with keys {list(keys)}", f"the same keys in another order, {list(other)}")
    return (f"dict with keys {list(keys)}", f"dict with keys {list(other)}")


def take_dict(obj: dict) -> tuple[Iterable, Keys]:
    keys = tuple(obj)
    return [obj[k] for k in sort_keys(keys)], keys


def take_defaultdict(obj: defaultdict) -> tuple[Iterable, Any]:
    keys = tuple(obj)
    return [obj[k] for k in sort_keys(keys)], (obj.default_factory, keys)


def make_defaultdict(aux: Any, children: list) -> defaultdict:
    factory, keys = aux
    return defaultdict(factory, refill(keys, children))


install_node(
    type(None),
    take_apart=lambda obj: ((), None),
    put_together=lambda aux, children: None,
    show=lambda aux, children: "None",
)
install_node(
    list,
    take_apart=lambda obj: (obj, None),
    put_together=lambda aux, children: children,
    show=lambda aux, children: f"[{', '.join(children)}]",
)
install_node(
    tuple,
    take_apart=lambda obj: (obj, None),
    put_together=lambda aux, children: tuple(children),
    show=lambda aux, children: f"({', '.join(children)}{',' * (len(children) == 1)})",
)
install_node(
    dict,
    take_apart=take_dict,
    put_together=lambda keys, children: dict(refill(keys, children)),
    labels=sorted_labels,
    show=show_sorted,
    differ=differ_keys,
    aux_key=lambda keys: keys,
    free_key=sort_keys,
)
install_node(
    OrderedDict,
    take_apart=lambda obj: (obj.values(), tuple(obj)),
    put_together=lambda keys, children: OrderedDict(zip(keys, children)),
    labels=key_labels,
    show=lambda keys, children: f"OrderedDict({show_dict(keys, children)})",
    differ=differ_keys,
    aux_key=lambda keys: keys,
)
install_node(
    defaultdict,
    take_apart=take_defaultdict,
    put_together=make_defaultdict,
    labels=lambda aux, n: sorted_labels(aux[1], n),
    show=lambda aux, children: f"defaultdict({show_sorted(aux[1], children)})",
    free_key=lambda aux: (aux[0], sort_keys(aux[1])),
)


def register_namedtuple(cls: type) -> bool:
    """List `cls` if it is a namedtuple type: a subclass of tuple with ``_fields``."""
    names = getattr(cls, "_fields", None)
    if not (issubclass(cls, tuple) and isinstance(names, tuple)):
        return False
    install_node(
        cls,
        take_apart=lambda obj: (obj, None),
        # Not cls(*children): a user's __new__ may check its arguments, and leaves are any objects.
        put_together=lambda aux, children: tuple.__new__(cls, children),
        labels=lambda aux, n: [f".{name}" for name in names],
        show=lambda aux, children: format_fields(cls.__name__, names, children),
    )
    return True


RESOLVERS.append(register_namedtuple)


# ---- classes with named fields -----------------------------------------------------------------
# A recursive walk over `dataclasses.fields` costs several microseconds a call. So the source text
# of two functions is generated once per class, with each field access spelled out.


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


def define(source: str, name: str, names: dict[str, Any], title: str) -> Callable[..., Any]:
    """Return the function of this name that generated source defines in a namespace."""
    exec(_compile(source, f"<{title}>"), names)
    return names.pop(name)  # a function among its own globals would be a cycle


@functools.lru_cache(maxsize=256)
def _compile(source: str, title: str) -> CodeType:
    return compile(source, title, "exec")


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
        build=define(build_source(data, static, slots), "build", names, f"build of {short}"),
        labels=lambda aux, n: [f".{name}" for name in data],
        show=show,
        differ=differ,
        aux_key=aux_key,
    )
    find, make = make_lookup(kind)
    names = {"get": FLATTENERS.get, "resolve": resolve, "LEAF": LEAF, "content_key": content_key}
    names.update(find=find, make=make, blame=blame, StructError=StructError)
    source = flatten_source(data, static)
    install(kind, define(source, "flatten", names, f"flatten of {short}"))


def field_names(cls: type) -> tuple[list[str], list[str]]:
    """Return the names of the data fields and of the static fields of a dataclass."""
    fields = dataclasses.fields(cls)
    static = [f.name for f in fields if f.metadata.get("static", False)]
    return [f.name for f in fields if f.name not in static], static
