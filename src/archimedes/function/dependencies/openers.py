"""How a walk looks into an object, by its kind.

Each opener adds what the object is to the walk's key, notes where that was read, and hands on the
objects inside (``walk.token``). ``OPENERS`` is the table by class; ``BASES`` lists classes whose
content counts besides the attributes of their subclasses.
"""

from __future__ import annotations

import functools
import io
import operator
import sys
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.registry import backend_of
from archimedes.function.dependencies import introspection, tracked_reads
from archimedes.function.dependencies.introspection import is_installed, module_of
from archimedes.function.dependencies.live_arrays import may_be_live
from archimedes.function.dependencies.tracked_reads import MISSING, ContentRead, DictNamespace
from archimedes.symbolic import RecordedArray, SymbolicArray
from archimedes.symbolic.recorded import nondeterminism
from archimedes.symbolic.recorded.recorded_array import root_of
from archimedes.tree.content import content_key, declared_content

if TYPE_CHECKING:
    from archimedes.function.dependencies.walk import Walk


class Same:
    """A key that is equal for the same object only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"Same({type(self.value).__name__})"


# ---- functions ---------------------------------------------------------------------------------

#: Names in code that read attributes by names unknown here.
_DYNAMIC = {
    *("getattr", "vars", "eval", "exec", "globals", "locals", "dir", "hasattr", "setattr"),
    *("__dict__", "__getattribute__", "attrgetter", "__slots__"),
}
#: Names in code that read globals by names unknown here.
_DYNAMIC_GLOBALS = {"globals", "eval", "exec", "modules"}


def open_function(walk: Walk, f: types.FunctionType, path: str) -> None:
    """Code, defaults and closure variables; of a user's function also globals."""
    module = f.__globals__.get("__name__")
    if f.__code__ in walk.callbacks:
        walk.add(f, Same(f))
        return
    installed = is_installed(module)
    # Methods that the module dataclasses has written stay as they are; their content counts.
    watched = not f.__code__.co_qualname.startswith("__create_fn__.<locals>")
    if watched and not installed:
        walk.found.append(tracked_reads.FunctionRead(path, f))
    cells = [_open_cell(walk, cell, name, watched) for cell, name in _closure(walk, f)]
    defaults = walk.token(f.__defaults__, f"the defaults of {path}")
    more = walk.token(f.__kwdefaults__, f"the defaults of {path}")
    walk.add(f, "function", f.__code__, defaults, more, *cells)
    if installed:
        walk.note_installed(module)
        return
    names = introspection.names_of(f.__code__, walk.callbacks)
    walk.mention(names.attributes)
    walk.reads_clock |= nondeterminism.names_clock(names.attributes, names.modules)
    walk.draws |= nondeterminism.names_random_source(names.dotted, names.modules, f.__globals__)
    if not _DYNAMIC.isdisjoint(names.globals) or not _DYNAMIC.isdisjoint(names.attributes):
        walk.mention_all()
    space = _global_namespace(walk, f.__globals__)
    space.request(names.globals)
    space.follows_all |= not _DYNAMIC_GLOBALS.isdisjoint(names.globals | names.attributes)
    walk.pending.append(space)
    if names.modules:
        inside = f.__globals__.get("__package__") or ""
        known = (*names.modules, *(f"{inside}.{name}" for name in names.modules))
        modules = _global_namespace(walk, sys.modules)
        modules.request(name for name in known if name in sys.modules)
        walk.pending.append(modules)
    if f.__dict__:
        walk.follow(DictNamespace(f, path, f.__dict__))


def _closure(walk: Walk, f: types.FunctionType) -> Iterable[tuple[types.CellType, str]]:
    """Return the closure variables that count, with their names."""
    named = zip(f.__closure__ or (), f.__code__.co_freevars)
    if not walk.callbacks:
        return named
    read = introspection.variables_of(f.__code__, walk.callbacks)
    return [(cell, name) for cell, name in named if name in read]


def _open_cell(walk: Walk, cell: types.CellType, name: str, watched: bool) -> Hashable:
    read = tracked_reads.ClosureRead(name, cell)
    if watched:
        walk.found.append(read)
    return None if read.value is MISSING else walk.token(read.value, name)


def _global_namespace(walk: Walk, mapping: dict[str, Any]) -> DictNamespace:
    """Return the namespace of a module's globals."""
    space = walk.globals.get(id(mapping))
    if space is None:
        name = "sys.modules" if mapping is sys.modules else mapping.get("__name__", "")
        text = f"the global {{}} of {name}"
        space = DictNamespace(
            Same(mapping),
            "",
            mapping,
            text=text,
            only_requested=True,
            ignored=tracked_reads.IMPORTING,
        )
        walk.numbers[id(space.owner)] = len(walk.objects)
        walk.objects.append(space.owner)
        walk.globals[id(mapping)] = space
        walk.namespaces.append(space)
    return space


def open_method(walk: Walk, value: types.MethodType, path: str) -> None:
    """A bound method: its function and its object."""
    owner = "self" if "." not in path else path.rsplit(".", 1)[0]
    owner = path if nondeterminism.is_generator(value.__self__) else owner
    function = walk.token(value.__func__, path)
    walk.add(value, "method", function, walk.token(value.__self__, owner))


def open_builtin(walk: Walk, value: Any, path: str) -> None:
    """A method, written in C, of an object."""
    walk.add(value, "builtin", value.__name__, walk.token(value.__self__, path))


def open_partial(walk: Walk, value: Any, path: str) -> None:
    """A partial: its function and arguments."""
    parts = (value.func, value.args, value.keywords)
    walk.add(value, "partial", Same(type(value)), *[walk.token(p, path) for p in parts])


def open_cache(walk: Walk, value: Any, path: str) -> None:
    """``lru_cache``: what it computes, not what it has computed; generators move, though."""
    generators = [walk.token(g, f"{path}()") for g in nondeterminism.generators_in_cache(value)]
    walk.add(value, "cache", walk.token(value.__wrapped__, path), *generators)


def open_descriptor(walk: Walk, value: Any, path: str) -> None:
    """Properties and the like: the functions behind them."""
    parts = [getattr(value, name, None) for name in ("fget", "fset", "fdel", "__func__")]
    walk.add(value, Same(type(value)), *[walk.token(p, path) for p in parts])


def open_getter(walk: Walk, value: Any, path: str) -> None:
    """``operator.attrgetter`` and its kin: the names they read."""
    _, arguments = value.__reduce__()[:2]
    walk.mention(name for a in arguments if isinstance(a, str) for name in a.split("."))
    walk.add(value, Same(type(value)), walk.token(arguments, path))


# ---- classes, modules, objects -----------------------------------------------------------------

#: Members of classes that take no part in computing.
_IGNORED_MEMBERS = {
    *("__doc__", "__module__", "__dict__", "__weakref__", "__annotations__", "__qualname__"),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__parameters__"),
    *("__orig_bases__", "__abstractmethods__", "__slots__", "__hash__", "__repr__", "__str__"),
    *("__firstlineno__", "__static_attributes__", "__reduce__", "__getstate__", "__setstate__"),
    "__slotnames__",  # which pickling a first object adds
    # Annotations, as Python 3.14 computes and keeps them.
    *("__annotate__", "__annotate_func__", "__annotations_cache__", "__classdictcell__"),
    *("__classcell__", "__subclasshook__", "__class_getitem__", "__replace__", "__del__"),
}
#: Packages whose objects are known by identity: what they do is no part of any number. (Arrays of
#: a device are too: no recording can read them, so that there is no need to fetch them.)
_BY_IDENTITY = {"asyncio", "concurrent", "logging", "multiprocessing", "queue", "threading"}


def open_class(walk: Walk, cls: type, path: str) -> None:
    """A class by identity, with those members that code mentions, and special methods."""
    if is_installed(module_of(cls)):
        walk.note_installed(module_of(cls))
        walk.add(cls, Same(cls))
        return
    walk.found.append(tracked_reads.BasesRead(cls.__name__, cls))
    bases = [walk.token(base, base.__name__) for base in cls.__mro__[1:]]
    walk.add(cls, Same(cls), walk.token(type(cls), "metaclass"), *bases)
    text = f"the class attribute {cls.__name__}.{{}}"
    ignored = _IGNORED_MEMBERS
    space = DictNamespace(cls, cls.__name__, cls.__dict__, text=text, ignored=ignored)
    space.request(n for n in cls.__dict__ if str(n).startswith("__") and n not in ignored)
    walk.follow(space)


def open_module(walk: Walk, value: types.ModuleType, path: str) -> None:
    """A module: the names of it that code mentions."""
    walk.add(value, Same(value))
    if is_installed(value.__name__):
        walk.note_installed(value.__name__)
        return
    text = f"the module attribute {value.__name__}.{{}}"
    walk.follow(
        DictNamespace(value, path, value.__dict__, text=text, ignored=tracked_reads.IMPORTING)
    )


def open_instance(walk: Walk, value: Any, path: str) -> None:
    """An object of a class: what it contains if it is a container, and its attributes."""
    cls: Any = type(value)
    kind = walk.token(cls, cls.__name__)
    if module_of(cls).split(".")[0] in _BY_IDENTITY or backend_of(value) is not None:
        walk.add(value, Same(value))
        return
    declared = declared_content(value)
    if declared is not None:
        walk.add(value, "content", kind, *[walk.token(part, path) for part in declared])
        return
    attributes = introspection.attribute_dict(value)
    members = introspection.slots_of(cls)
    has_attributes = attributes is not None or bool(members)
    walk.add(value, "object", kind, _open_content(walk, value, path, has_attributes))
    if cls.__flags__ & introspection.HEAP:
        walk.found.append(tracked_reads.ObjectRead(path, value, attributes is not None))
    follows_all = introspection.reads_all(cls)
    if attributes is not None:
        walk.follow(DictNamespace(value, path, attributes, follows_all=follows_all))
    if members:
        walk.follow(tracked_reads.SlotNamespace(value, path, members, follows_all))


def _open_content(walk: Walk, value: Any, path: str, has_attributes: bool) -> Hashable:
    """Return what an object holds besides its attributes."""
    if nondeterminism.is_generator(value):
        walk.moving.append(tracked_reads.GeneratorRead(path, value))
        return Same(value)
    for base, opener in BASES.items():
        if isinstance(value, base):
            opener(walk, value, path)
            return base
    cls: Any = type(value)
    if has_attributes and not introspection.has_hidden_part(cls):
        return None
    # A file is an iterator too, but its __reduce__ wraps it, which closes it in the end.
    if hasattr(cls, "__next__") and not issubclass(cls, io.IOBase):
        walk.moving.append(tracked_reads.IteratorRead(path, value))
        return Same(value)
    if not has_attributes and introspection.is_by_value(value):
        return (cls, value)
    for read in (_buffer_bytes, walk.content_by_pickling):
        try:
            content = read(value)
        except Exception:  # whatever objects say that have no such thing
            continue
        walk.found.append(ContentRead(path, value, read))
        return content
    return Same(value)


def _buffer_bytes(value: Any) -> Hashable:
    """Return the memory of an object that shows it, such as an ``array.array``."""
    return bytes(memoryview(value))


def open_reference(walk: Walk, value: Any, path: str) -> None:
    """A weak reference or a context variable: what it leads to."""

    def read(value: Any) -> tuple[Any, ...]:
        return (value() if isinstance(value, weakref.ref) else value.get(None),)

    walk.found.append(ContentRead(path, value, read))
    walk.add(value, Same(type(value)), *[walk.token(v, path) for v in read(value)])


def open_by_identity(walk: Walk, value: Any, path: str) -> None:
    """What is known by identity."""
    walk.add(value, Same(value))


def open_same(walk: Walk, value: Same, path: str) -> None:
    """What is to be known by identity: the key itself."""
    walk.add(value, value)


# ---- containers, arrays, numbers ---------------------------------------------------------------


def open_list(walk: Walk, value: list[Any], path: str) -> None:
    """A list: its items."""
    walk.found.append(tracked_reads.ListRead(path, value))
    items = [walk.token(v, f"{path}[{k}]") for k, v in enumerate(list.__iter__(value))]
    walk.add(value, "list", *items)


def open_dict(walk: Walk, value: Any, path: str) -> None:
    """A dict, or a read-only view of a mapping: its items, in their order."""
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, OrderedDict):  # its order is not that of its table
        walk.found.append(ContentRead(path, value, _items_in_order))
        pairs = OrderedDict.items(value)
    else:
        walk.found.append(tracked_reads.DictRead(path, value))
        pairs = dict.items(value) if isinstance(value, dict) else value.items()
    for key, item in pairs:
        walk.add(value, walk.token(key, path), walk.token(item, f"{path}[{key!r}]"))
    walk.add(value, "dict" if isinstance(value, dict) else "proxy", len(value))


def _items_in_order(value: OrderedDict[Any, Any]) -> tuple[Any, ...]:
    return tuple(part for pair in OrderedDict.items(value) for part in pair)


def open_set(walk: Walk, value: Any, path: str) -> None:
    """Sets, byte arrays and deques: what they hold."""
    read: Any = frozenset if isinstance(value, (set, frozenset)) else bytes
    if isinstance(value, deque):
        read = tuple
        for k, item in enumerate(value):
            walk.add(value, walk.token(item, f"{path}[{k}]"))
    else:
        walk.add(value, content_key(read(value)))
    if not isinstance(value, frozenset):
        walk.found.append(ContentRead(path, value, read))


def open_tuple(walk: Walk, value: Any, path: str) -> None:
    """A tuple of a class of its own: its items."""
    walk.add(value, *[walk.token(v, f"{path}[{k}]") for k, v in enumerate(value)])


def open_number(walk: Walk, value: Any, path: str) -> None:
    """A number: its value."""
    walk.add(value, content_key(value))


def open_array(walk: Walk, value: np.ndarray, path: str) -> None:
    """An array: its bytes and how they are laid out, or its objects; later, if it may be live."""
    if may_be_live(value):
        walk.has_large = True
        if walk.references is not None:
            walk.live.append((value, path))
            return
    open_array_content(walk, value, path)


def open_live_array(walk: Walk, value: np.ndarray, path: str) -> None:
    """An array whose numbers are read where they lie: which one it is."""
    walk.found.append(tracked_reads.ArrayRead(path, value, None))
    walk.add(value, "live", Same(value), value.dtype.str, value.shape)


def open_array_content(walk: Walk, value: np.ndarray, path: str) -> None:
    """Identify an array by its content: dtype, shape and bytes, or the objects that it holds."""
    plain = value if type(value) is np.ndarray else np.ndarray.view(value, np.ndarray)
    content = plain.tobytes()
    walk.found.append(tracked_reads.ArrayRead(path, plain, content))
    if plain.dtype.hasobject:
        walk.add(value, *[walk.token(v, path) for v in plain.ravel().tolist()])
    walk.add(value, plain.dtype.str, plain.shape, plain.strides)
    if not plain.dtype.hasobject:
        walk.add(value, content)


def open_recorded_array(walk: Walk, value: RecordedArray, path: str) -> None:
    """An array made while recording: of numbers, or of traced values."""
    nodes = root_of(value)._nodes
    if nodes is None:
        open_array(walk, value, path)
    else:
        open_traced_array(walk, nodes.array, path)
        walk.add(value, Same(value))


def open_traced_array(walk: Walk, value: SymbolicArray, path: str) -> None:
    """A value of a recording."""
    walk.traced.append((path, value))
    walk.token(value, path)
    walk.add(value, Same(value))


Opener = Callable[["Walk", Any, str], None]

#: How to look into objects of these very classes.
OPENERS: dict[type, Opener] = {
    Same: open_same,
    types.FunctionType: open_function,
    types.MethodType: open_method,
    types.BuiltinFunctionType: open_builtin,
    functools.partial: open_partial,
    type(functools.lru_cache(lambda: None)): open_cache,
    **dict.fromkeys((property, staticmethod, classmethod), open_descriptor),
    types.ModuleType: open_module,
    **dict.fromkeys((weakref.ref, ContextVar), open_reference),
    list: open_list,
    **dict.fromkeys((dict, types.MappingProxyType), open_dict),
    **dict.fromkeys((set, frozenset, bytearray, deque), open_set),
    np.ndarray: open_array,
    SymbolicArray: open_traced_array,
    RecordedArray: open_recorded_array,
    slice: open_number,
    **dict.fromkeys((operator.attrgetter, operator.methodcaller, operator.itemgetter), open_getter),
    **dict.fromkeys(
        (
            *(np.ufunc, type(np.dot), types.MemberDescriptorType, types.GetSetDescriptorType),
            *(types.MethodDescriptorType, types.ClassMethodDescriptorType, object),
            *(types.WrapperDescriptorType, types.MethodWrapperType),
        ),
        open_by_identity,
    ),
}
#: Bases whose content counts besides the attributes of their subclasses.
BASES: dict[type, Opener] = {
    list: open_list,
    dict: open_dict,
    tuple: open_tuple,
    **dict.fromkeys((set, frozenset, deque, bytearray), open_set),
    np.ndarray: open_array,
    weakref.ref: open_reference,
    np.generic: open_number,
    functools.partial: open_partial,
    **dict.fromkeys((float, int, str), open_number),
    types.ModuleType: open_module,
}


def opener_of(value: Any) -> Opener:
    """Return what looks into a value."""
    opener = OPENERS.get(type(value))
    if opener is not None:
        return opener
    if isinstance(value, SymbolicArray):
        return open_traced_array
    return open_class if isinstance(value, type) else open_instance
