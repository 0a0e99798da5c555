"""What functions, methods and descriptors read."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from types import CellType, FunctionType, MethodType
from typing import Any

from archimedes.function.identity.code_names import names_of, variables_of
from archimedes.function.identity.installed import is_installed
from archimedes.function.identity.places import MISSING, CellPlace, FunctionPlace
from archimedes.function.identity.spaces import IMPORTING, NameSpace
from archimedes.function.identity.traversal import Same, Traversal
from archimedes.symbolic.recorded.nondeterminism import (
    cached_generators,
    is_generator,
    names_clock,
    names_random_source,
)

__all__ = [
    "open_builtin",
    "open_descriptor",
    "open_function",
    "open_getter",
    "open_method",
    "open_partial",
    "open_wrapper",
]

#: Names in code that read attributes by names unknown here.
_DYNAMIC = {
    *("getattr", "vars", "eval", "exec", "globals", "locals", "dir", "hasattr", "setattr"),
    *("__dict__", "__getattribute__", "attrgetter", "__slots__"),
}
#: Names in code that read globals by names unknown here.
_DYNAMIC_GLOBALS = {"globals", "eval", "exec", "modules"}


def open_function(walk: Traversal, f: FunctionType, path: str) -> None:
    """Code, defaults, variables of enclosing functions; of a user's also globals."""
    module = f.__globals__.get("__name__")
    if f.__code__ in walk.hosts:
        walk.add(f, Same(f))
        return
    installed = is_installed(module)
    # Methods that the module dataclasses has written stay as they are; their content counts.
    watched = not f.__code__.co_qualname.startswith("__create_fn__.<locals>")
    if watched and not installed:
        walk.found.append(FunctionPlace(path, f))
    cells = [_cell(walk, cell, name, watched) for cell, name in _variables(walk, f)]
    defaults = walk.token(f.__defaults__, f"the defaults of {path}")
    more = walk.token(f.__kwdefaults__, f"the defaults of {path}")
    walk.add(f, "function", f.__code__, defaults, more, *cells)
    if installed:
        walk.foreign(module)
        return
    names = names_of(f.__code__, walk.hosts)
    walk.mention(names.attributes)
    walk.clocks |= names_clock(names.attributes, names.modules)
    walk.draws |= names_random_source(names.dotted, names.modules, f.__globals__)
    if not _DYNAMIC.isdisjoint(names.globals) or not _DYNAMIC.isdisjoint(names.attributes):
        walk.mention_all()
    space = _global_space(walk, f.__globals__)
    space.want(names.globals)
    space.every |= not _DYNAMIC_GLOBALS.isdisjoint(names.globals | names.attributes)
    walk.waiting.append(space)
    if names.modules:
        inside = f.__globals__.get("__package__") or ""
        known = (*names.modules, *(f"{inside}.{name}" for name in names.modules))
        modules = _global_space(walk, sys.modules)
        modules.want(name for name in known if name in sys.modules)
        walk.waiting.append(modules)
    if f.__dict__:
        walk.follow(NameSpace(f, path, f.__dict__))


def _variables(walk: Traversal, f: FunctionType) -> Iterable[tuple[CellType, str]]:
    """Return the variables of enclosing functions that count."""
    named = zip(f.__closure__ or (), f.__code__.co_freevars)
    if not walk.hosts:
        return named
    read = variables_of(f.__code__, walk.hosts)
    return [(cell, name) for cell, name in named if name in read]


def _global_space(walk: Traversal, held: dict[str, Any]) -> NameSpace:
    """Return the space of a module's globals."""
    space = walk.globals.get(id(held))
    if space is None:
        name = "sys.modules" if held is sys.modules else held.get("__name__", "")
        space = NameSpace(Same(held), "", held, label=f"the global {{}} of {name}", own=True)
        space.aside = IMPORTING
        walk.numbers[id(space.owner)] = len(walk.objects)
        walk.objects.append(space.owner)
        walk.globals[id(held)] = space
        walk.spaces.append(space)
    return space


def _cell(walk: Traversal, cell: CellType, name: str, watched: bool) -> Hashable:
    """A variable of an enclosing function."""
    place = CellPlace(name, cell)
    if watched:
        walk.found.append(place)
    return None if place.value is MISSING else walk.token(place.value, name)


def open_method(walk: Traversal, value: MethodType, path: str) -> None:
    """A bound method: its function and its object."""
    me = "self" if "." not in path else path.rsplit(".", 1)[0]
    me = path if is_generator(value.__self__) else me
    function = walk.token(value.__func__, path)
    walk.add(value, "method", function, walk.token(value.__self__, me))


def open_builtin(walk: Traversal, value: Any, path: str) -> None:
    """A method, written in C, of an object."""
    walk.add(value, "builtin", value.__name__, walk.token(value.__self__, path))


def open_partial(walk: Traversal, value: Any, path: str) -> None:
    """A partial: its function and arguments."""
    parts = (value.func, value.args, value.keywords)
    walk.add(value, "partial", Same(type(value)), *[walk.token(p, path) for p in parts])


def open_wrapper(walk: Traversal, value: Any, path: str) -> None:
    """``lru_cache``: what it computes, not what it has computed; generators move, though."""
    generators = [walk.token(g, f"{path}()") for g in cached_generators(value)]
    walk.add(value, "cache", walk.token(value.__wrapped__, path), *generators)


def open_descriptor(walk: Traversal, value: Any, path: str) -> None:
    """Properties and the like: the functions behind them."""
    names = ("fget", "fset", "fdel", "__func__")
    parts = [getattr(value, name, None) for name in names]
    walk.add(value, Same(type(value)), *[walk.token(p, path) for p in parts])


def open_getter(walk: Traversal, value: Any, path: str) -> None:
    """``operator.attrgetter`` and its kin: the names they read."""
    _, arguments = value.__reduce__()[:2]
    walk.mention(a.split(".")[0] for a in arguments if isinstance(a, str))
    walk.mention(b for a in arguments if isinstance(a, str) for b in a.split("."))
    walk.add(value, Same(type(value)), walk.token(arguments, path))
