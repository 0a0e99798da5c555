"""Which names a code object reads: globals, attributes, imported modules.

Names are told apart by the instructions that use them, so that a function with ``state.t`` in it
is not taken to read a global ``t``.
"""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["Names", "names_of", "variables_of"]

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
    """Names read or written: as globals, as attributes, as imported modules.

    Strings that could be names are among the attributes: ``getattr(x, "k")`` reads one. ``dotted``
    are the attributes with the global that each is read from, or an empty string.
    """

    globals: frozenset[str]
    attributes: frozenset[str]
    modules: frozenset[str]
    dotted: frozenset[tuple[str, str]]


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType, but: frozenset[CodeType] = frozenset()) -> Names:
    """Return the names in a code object and in the functions written in it, ``but`` some.

    >>> names_of((lambda x: scale * x.k).__code__)[:2]
    (frozenset({'scale'}), frozenset({'k'}))
    """
    found: tuple[set[Any], ...] = (set(), set(), set(), set())
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
            found[kind].add(name)
            if kind == 1:
                found[3].add((owner, name))
            owner = name if kind == 0 else ""
        else:
            owner = ""
        extended = 0
    for constant in code.co_consts:
        _add_constant(found, constant, but)
    return Names(*map(frozenset, found))


def _add_constant(found: tuple[set[Any], ...], constant: object, but: frozenset[CodeType]) -> None:
    if isinstance(constant, CodeType):
        if constant not in but:
            for mine, names in zip(found, names_of(constant, but)):
                mine.update(names)
    elif isinstance(constant, tuple):
        for part in constant:
            _add_constant(found, part, but)
    elif isinstance(constant, str) and constant.isidentifier():
        found[1].add(constant)


def variables_of(code: CodeType, but: frozenset[CodeType]) -> set[str]:
    """Return the variables of enclosing functions that code reads, ``but`` some functions in it.

    >>> def enclose(scale):
    ...     return lambda x: scale * x
    >>> variables_of(enclose(2.0).__code__, frozenset())
    {'scale'}
    """
    # By their names: dis.hasfree of Python 3.14 lacks LOAD_DEREF.
    steps = dis.get_instructions(code)
    found = {str(step.argval) for step in steps if step.opname.endswith("DEREF")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant not in but:
            found |= variables_of(constant, but)
    return found


_NAMED = frozenset(dis.hasname)
