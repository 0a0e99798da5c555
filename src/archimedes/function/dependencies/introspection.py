"""What Python's code and objects show of themselves: names in bytecode, attributes, slots, modules.

The standard library and installed packages are taken as fixed: their functions, classes and modules
are not looked into. Everything else is a user's code, also a package installed in place
(``pip install -e``).
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from types import CodeType, MemberDescriptorType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

# ---- modules -----------------------------------------------------------------------------------

#: Packages that read no attributes of a user's objects but those of their protocols.
_TRANSPARENT = {
    *("abc", "archimedes", "builtins", "cmath", "collections", "dataclasses", "enum"),
    *("functools", "itertools", "math", "numbers", "numpy", "operator", "types", "typing"),
    *("warnings", "__future__", "_operator", "_functools", "_collections"),
    *("contextlib", "logging", "os", "pathlib", "sys", "threading", "time"),
}


@functools.cache
def _python_folders() -> frozenset[str]:
    """Return the folders of Python's own modules, those written in C too.

    ``sysconfig`` knows them, but reads a file of its own; packages are found by ``sys.path``.
    """
    release = f"python{sys.version_info.major}.{sys.version_info.minor}"
    compiled = os.path.join(sys.base_exec_prefix, sys.platlibdir, release)
    return frozenset((os.path.dirname(os.path.abspath(os.__file__)), compiled))


def _installed_folders() -> tuple[str, ...]:
    folders = {*_python_folders(), os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))}
    folders |= {p for p in sys.path if p.endswith(("site-packages", "dist-packages"))}
    return tuple(os.path.abspath(p) + os.sep for p in folders if p)


def module_of(cls: type) -> str:
    """Return the name of the module of a class; some types written in C have none.

    >>> module_of(np.ndarray)
    'numpy'
    """
    name: object = cls.__module__
    return name if isinstance(name, str) else "builtins"


@functools.lru_cache(maxsize=4096)
def is_installed(module: str | None) -> bool:
    """Return whether a module, by its name, is part of Python or of an installed package.

    >>> is_installed("numpy.linalg"), is_installed("__main__")
    (True, False)
    """
    if not module or module == "__main__":
        return False
    top = module.split(".")[0]
    if top in ("archimedes", "numpy", "scipy") or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and os.path.abspath(file).startswith(_installed_folders())


def is_transparent(module: str | None) -> bool:
    """Return whether an installed module reads only what its arguments' protocols offer."""
    return not module or module.split(".")[0] in _TRANSPARENT


# ---- bytecode ----------------------------------------------------------------------------------

#: Instructions with a name. They tell a global from an attribute, so that a function with
#: ``state.t`` in it is not taken to read a global ``t``.
_NAMED = frozenset(dis.hasname)
_GLOBAL = {
    number
    for name, number in dis.opmap.items()
    if name.endswith(("_GLOBAL", "_NAME", "_FROM_DICT_OR_GLOBALS")) and number in dis.hasname
}
_IMPORT, _CACHE = dis.opmap["IMPORT_NAME"], dis.opmap["CACHE"]
#: Low bits of the argument that are not part of the index into the names.
_FLAGS = {dis.opmap["LOAD_GLOBAL"]: 1}
if sys.version_info >= (3, 12):
    _FLAGS |= {dis.opmap["LOAD_ATTR"]: 1, dis.opmap["LOAD_SUPER_ATTR"]: 2}


class Names(NamedTuple):
    """Names that code reads or writes: as globals, as attributes, as imported modules.

    Strings that could be names are among the attributes: ``getattr(x, "k")`` reads one. ``dotted``
    are the attributes with the global that each is read from, or an empty string.
    """

    globals: frozenset[str]
    attributes: frozenset[str]
    modules: frozenset[str]
    dotted: frozenset[tuple[str, str]]


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType, without: frozenset[CodeType] = frozenset()) -> Names:
    """Return the names in a code object and in the functions written in it, ``without`` some.

    >>> names_of((lambda x: scale * x.k).__code__)[:2]
    (frozenset({'scale'}), frozenset({'k'}))
    """
    names: tuple[set[Any], ...] = (set(), set(), set(), set())
    extended = 0
    owner = ""
    raw = code.co_code
    for op, arg in zip(raw[::2], raw[1::2]):
        if op == dis.EXTENDED_ARG:
            extended = (extended | arg) << 8
            continue
        if op == _CACHE:
            continue
        if op in _NAMED:
            name = code.co_names[(extended | arg) >> _FLAGS.get(op, 0)]
            kind = 2 if op == _IMPORT else 0 if op in _GLOBAL else 1
            names[kind].add(name)
            if kind == 1:
                names[3].add((owner, name))
            owner = name if kind == 0 else ""
        else:
            owner = ""
        extended = 0
    for constant in code.co_consts:
        _add_constant(names, constant, without)
    return Names(*map(frozenset, names))


def _add_constant(
    names: tuple[set[Any], ...], constant: object, without: frozenset[CodeType]
) -> None:
    if isinstance(constant, CodeType):
        if constant not in without:
            for mine, inner in zip(names, names_of(constant, without)):
                mine.update(inner)
    elif isinstance(constant, tuple):
        for part in constant:
            _add_constant(names, part, without)
    elif isinstance(constant, str) and constant.isidentifier():
        names[1].add(constant)


def variables_of(code: CodeType, without: frozenset[CodeType]) -> set[str]:
    """Return the closure variables that code reads, ``without`` some of the functions in it.

    >>> def enclose(scale):
    ...     return lambda x: scale * x
    >>> variables_of(enclose(2.0).__code__, frozenset())
    {'scale'}
    """
    # By their names: dis.hasfree of Python 3.14 lacks LOAD_DEREF.
    steps = dis.get_instructions(code)
    names = {str(step.argval) for step in steps if step.opname.endswith("DEREF")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant not in without:
            names |= variables_of(constant, without)
    return names


# ---- objects -----------------------------------------------------------------------------------

#: Py_TPFLAGS_HEAPTYPE: the class was made at run time, as those written in Python are.
HEAP = 1 << 9
_HARMLESS = {"Generic", "Protocol", "ABC", "object", "NamedTuple"}


@functools.lru_cache(maxsize=1024)
def reads_all(cls: Any) -> bool:
    """Return whether code that is not looked into reads attributes of a class's objects."""
    if hasattr(cls, "__dataclass_fields__"):
        return True
    bases = [c for c in cls.__mro__ if is_installed(module_of(c)) and c.__name__ not in _HARMLESS]
    return any(c.__flags__ & HEAP for c in bases)


@functools.lru_cache(maxsize=1024)
def has_hidden_part(cls: Any) -> bool:
    """Return whether objects of a class hold more than attributes: a base is written in C.

    >>> import array
    >>> has_hidden_part(type("A", (), {})), has_hidden_part(type("B", (array.array,), {}))
    (False, True)
    """
    return any(_adds_hidden_part(c) for c in cls.__mro__ if c not in (object, SimpleNamespace))


def _adds_hidden_part(cls: Any) -> bool:
    """Return whether objects have memory that no slot or dict of their class accounts for."""
    if not cls.__flags__ & HEAP:
        return True
    known = sum(
        isinstance(member, MemberDescriptorType) or name in ("__dict__", "__weakref__")
        for name, member in vars(cls).items()
    )
    return bool(cls.__basicsize__ > cls.__base__.__basicsize__ + 8 * known)


@functools.lru_cache(maxsize=1024)
def slots_of(cls: Any) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class written in Python."""
    return {
        name: member
        for base in reversed(cls.__mro__)
        if base.__flags__ & HEAP
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    }


def attribute_dict(value: object) -> dict[str, Any] | None:
    """Return the dict of an object's attributes, without asking its ``__getattr__``."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if isinstance(attributes, dict) else None


def is_by_value(value: object) -> bool:
    """Return whether an object is compared by value, and so cannot change."""
    if type(value).__hash__ in (None, object.__hash__):
        return False
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True
