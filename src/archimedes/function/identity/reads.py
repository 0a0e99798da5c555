"""The walk over all that a function reads: the one rule of what a function is.

Starting from a function (and from static arguments) the walk follows what plain Python can
reach: code, defaults, variables of enclosing functions, globals, ``module.name``, attributes of
objects in ``__dict__`` and ``__slots__``, class attributes and methods along the inheritance,
properties, partials, containers and what they hold, arrays, other recorded functions. Of objects,
classes and modules it takes the names that the code mentions; all of them where code could read
others (``getattr``, ``vars``, dataclasses, code of installed packages).

It gives a ``key``, equal for functions that record the same, and the ``places`` it has read.
"""

from __future__ import annotations

import functools
import gc
import io
import operator
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.identity.code_names import names_of, variables_of
from archimedes.function.identity.data_places import (
    ArrayPlace,
    ContentPlace,
    DictPlace,
    GeneratorPlace,
    IteratorPlace,
    ListPlace,
    MovingPlace,
)
from archimedes.function.identity.installed import is_installed, is_transparent, module_of
from archimedes.function.identity.object_parts import (
    HEAP,
    attribute_dict,
    buffer_bytes,
    context_value,
    has_hidden_part,
    is_by_value,
    ordered_items,
    reads_all,
    referent,
    slots_of,
)
from archimedes.function.identity.places import (
    MISSING,
    BasesPlace,
    CellPlace,
    FunctionPlace,
    ObjectPlace,
    Place,
)
from archimedes.function.identity.spaces import NameSpace, SlotSpace, Space
from archimedes.symbolic import SymbolicArray
from archimedes.symbolic.recorded.list_arguments import Stand
from archimedes.symbolic.recorded.randomness import is_generator
from archimedes.symbolic.recorded.recorded_array import RecordedArray
from archimedes.symbolic.recorded.recorded_memory import root_of
from archimedes.tree.content import content_key

__all__ = ["PARTS", "Same", "Walk", "is_atom"]

#: Objects that are looked into before the walk gives up.
LIMIT = 50_000
#: Longest path in letters: what lies deep in a chain of objects is named by its two ends.
_LONGEST = 200
#: Names in code that read attributes by names unknown here.
_DYNAMIC = {
    *("getattr", "vars", "eval", "exec", "globals", "locals", "dir", "hasattr", "setattr"),
    *("__dict__", "__getattribute__", "attrgetter", "__slots__"),
}
#: Names in code that read globals by names unknown here.
_DYNAMIC_GLOBALS = {"globals", "eval", "exec", "modules"}
_ATOMS = {
    *(bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented), CodeType, range),
    *(float, complex, BuiltinFunctionType),
}
#: Members of classes that take no part in computing.
_ASIDE = {
    *("__doc__", "__module__", "__dict__", "__weakref__", "__annotations__", "__qualname__"),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__parameters__"),
    *("__orig_bases__", "__abstractmethods__", "__slots__", "__hash__", "__repr__", "__str__"),
    *("__firstlineno__", "__static_attributes__", "__reduce__", "__getstate__", "__setstate__"),
    *("__classcell__", "__subclasshook__", "__class_getitem__", "__replace__", "__del__"),
}
#: Names in modules that lead to how Python imports, and so to all that is loaded.
_IMPORTING = {"__builtins__", "__loader__", "__spec__"}
#: Packages whose objects are known by identity: what they do is no part of any number.
_APART = {"asyncio", "concurrent", "logging", "multiprocessing", "queue", "threading"}
#: What instances of a class of this package are made of, for classes that keep more than that.
PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {}


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


def _shortened(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[: _LONGEST // 4]}...{path[-_LONGEST // 2 :]}"


def _is_bound(value: Any) -> bool:
    """Tell whether a value is a method, written in C, of an object: ``items.append``."""
    if type(value) is not BuiltinFunctionType:
        return False
    return not isinstance(value.__self__, (ModuleType, type, type(None)))


def is_atom(value: Any) -> bool:
    """Tell whether a value can never change: a number, a string, a builtin, a tuple of those."""
    cls = type(value)
    if cls is tuple or cls is frozenset:
        return all(map(is_atom, value))
    return (cls in _ATOMS and not _is_bound(value)) or isinstance(value, (np.generic, np.dtype))


class Walk:
    """What some objects read, without what functions of the code ``hosts`` read."""

    __slots__ = (
        *("_again", "_globals", "_known", "_places", "_queue", "_waiting", "every", "hosts"),
        *("names", "numbers", "objects", "positions", "spaces", "tokens", "traced"),
    )

    def __init__(
        self,
        roots: Iterable[Any],
        every: bool = False,
        hosts: frozenset[CodeType] = frozenset(),
        statics: Iterable[Any] = (),
    ) -> None:
        self.hosts = hosts
        self.numbers: dict[int, int] = {}
        self.objects: list[Any] = []
        self.tokens: list[Hashable] = []
        self._places: list[Place] = []
        #: Iterators: reading from one moves it, so that no recording may.
        self.positions: list[MovingPlace] = []
        self.traced: list[tuple[str, SymbolicArray]] = []
        #: Attribute names in the code met so far, and whether there may be others.
        self.names: list[str] = []
        self._known: set[str] = set()
        self.every = every
        self.spaces: list[Space] = []
        #: Spaces to look at next; or ``_again`` all of them, as names became known.
        self._waiting: list[Space] = []
        self._again = False
        self._globals: dict[int, NameSpace] = {}
        self._queue: deque[tuple[Any, str]] = deque()
        for root in roots:
            named = isinstance(root, (FunctionType, MethodType, type))
            self.tokens.append(self.token(root, root.__name__ if named else type(root).__name__))
        for value in statics:
            self.tokens.append(self.token(value, "that is a static argument"))
        self._run()

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What is equal for the same content."""
        return tuple(self.tokens)

    @property
    def places(self) -> list[Place]:
        """The places that were read."""
        return self._places + [place for space in self.spaces for place in space.places()]

    def _run(self) -> None:
        """Follow what is queued, then the names that became known, until nothing is new."""
        while self._queue or self._waiting or self._again:
            while self._queue:
                self._open(*self._queue.popleft())
            spaces = self.spaces if self._again else self._waiting
            self._waiting, self._again = [], False
            for space in spaces:
                space.expand(self)

    def follow(self, space: Space) -> None:
        """Take the names that count of an object with named parts."""
        self.spaces.append(space)
        self._waiting.append(space)

    def token(self, value: Any, path: str) -> Hashable:
        """Return what stands for a value in the key, and queue what has to be looked into."""
        cls = type(value)
        if cls in _ATOMS and not _is_bound(value):
            return (cls, value) if cls is not float and cls is not complex else content_key(value)
        if cls is tuple:
            return (tuple, *[self.token(v, f"{path}[{k}]") for k, v in enumerate(value)])
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
            self._queue.append((value, _shortened(path)))
            if number > LIMIT:
                raise TraceError(
                    f"{path}: the function reads more than {LIMIT} objects, too many to watch for "
                    "changes. Keep numbers in arrays, or write arc.compile(f, freeze=True) to "
                    "take what it reads as it is when it is recorded."
                )
        return ("#", number)

    def add(self, value: Any, *content: Hashable) -> None:
        """Add to the key what an object is."""
        self.tokens.append((self.numbers[id(value)], *content))

    def _open(self, value: Any, path: str) -> None:
        cls = type(value)
        opener = _OPENERS.get(cls)
        if opener is not None:
            opener(self, value, path)
        elif isinstance(value, SymbolicArray):
            self._traced_array(value, path)
        elif isinstance(value, type):
            self._class_(value, path)
        else:
            self._instance(value, path)

    def mention(self, names: Iterable[str]) -> None:
        """Take note of attribute names in code."""
        if not self.every:
            fresh = set(names) - self._known
            self._known |= fresh
            self.names.extend(fresh)
            self._again |= bool(fresh)

    def mention_all(self) -> None:
        """Take note of code that may read any attribute."""
        self._again |= not self.every
        self.every = True

    def foreign(self, module: str | None) -> None:
        """Take note of installed code that is used: it may read any attribute."""
        if not is_transparent(module):
            self.mention_all()

    # ---- functions ---------------------------------------------------------------------

    def _function(self, f: FunctionType, path: str) -> None:
        """Code, defaults, variables of enclosing functions; of a user's also globals."""
        module = f.__globals__.get("__name__")
        if f.__code__ in self.hosts:
            self.add(f, Same(f))
            return
        installed = is_installed(module)
        self._places.append(FunctionPlace(path, f))
        cells = [self.cell(cell, name) for cell, name in self.variables(f)]
        defaults = self.token(f.__defaults__, f"the defaults of {path}")
        more = self.token(f.__kwdefaults__, f"the defaults of {path}")
        self.add(f, "function", f.__code__, defaults, more, *cells)
        if installed:
            self.foreign(module)
            return
        names = names_of(f.__code__, self.hosts)
        self.mention(names.attributes)
        if not _DYNAMIC.isdisjoint(names.globals) or not _DYNAMIC.isdisjoint(names.attributes):
            self.mention_all()
        space = self.global_space(f.__globals__)
        space.want(names.globals)
        space.every |= not _DYNAMIC_GLOBALS.isdisjoint(names.globals | names.attributes)
        self._waiting.append(space)
        if names.modules:
            inside = f.__globals__.get("__package__") or ""
            known = (*names.modules, *(f"{inside}.{name}" for name in names.modules))
            modules = self.global_space(sys.modules)
            modules.want(name for name in known if name in sys.modules)
            self._waiting.append(modules)
        if f.__dict__:
            self.follow(NameSpace(f, path, f.__dict__))

    def variables(self, f: FunctionType) -> Iterable[tuple[CellType, str]]:
        """Return the variables of enclosing functions that count."""
        named = zip(f.__closure__ or (), f.__code__.co_freevars)
        if not self.hosts:
            return named
        read = variables_of(f.__code__, self.hosts)
        return [(cell, name) for cell, name in named if name in read]

    def global_space(self, held: dict[str, Any]) -> NameSpace:
        """Return the space of a module's globals."""
        space = self._globals.get(id(held))
        if space is None:
            name = "sys.modules" if held is sys.modules else held.get("__name__", "")
            space = NameSpace(Same(held), "", held, label=f"the global {{}} of {name}", own=True)
            space.aside = _IMPORTING
            self.numbers[id(space.owner)] = len(self.objects)
            self.objects.append(space.owner)
            self._globals[id(held)] = space
            self.spaces.append(space)
        return space

    def cell(self, cell: CellType, name: str) -> Hashable:
        """A variable of an enclosing function."""
        place = CellPlace(name, cell)
        self._places.append(place)
        return None if place.value is MISSING else self.token(place.value, name)

    def _method(self, value: MethodType, path: str) -> None:
        me = "self" if "." not in path else path.rsplit(".", 1)[0]
        me = path if is_generator(value.__self__) else me
        function = self.token(value.__func__, path)
        self.add(value, "method", function, self.token(value.__self__, me))

    def _builtin(self, value: Any, path: str) -> None:
        """A method, written in C, of an object."""
        self.add(value, "builtin", value.__name__, self.token(value.__self__, path))

    def _partial(self, value: Any, path: str) -> None:
        parts = (value.func, value.args, value.keywords)
        self.add(value, "partial", Same(type(value)), *[self.token(p, path) for p in parts])

    def _wrapper(self, value: Any, path: str) -> None:
        """``lru_cache``: what it computes, not what it has computed."""
        self.add(value, "cache", self.token(value.__wrapped__, path))

    def _descriptor(self, value: Any, path: str) -> None:
        names = ("fget", "fset", "fdel", "__func__")
        parts = [getattr(value, name, None) for name in names]
        self.add(value, Same(type(value)), *[self.token(p, path) for p in parts])

    # ---- classes, modules, objects -----------------------------------------------------

    def _class_(self, cls: type, path: str) -> None:
        """A class by identity, with those members that code mentions, and special methods."""
        if is_installed(module_of(cls)):
            self.foreign(module_of(cls))
            self.add(cls, Same(cls))
            return
        self._places.append(BasesPlace(cls.__name__, cls))
        bases = [self.token(base, base.__name__) for base in cls.__mro__[1:]]
        self.add(cls, Same(cls), self.token(type(cls), "metaclass"), *bases)
        held: Any = gc.get_referents(cls.__dict__)[0]
        space = NameSpace(cls, cls.__name__, held, label=f"the class attribute {cls.__name__}.{{}}")
        space.want(name for name in held if str(name).startswith("__") and name not in _ASIDE)
        space.aside = _ASIDE
        self.follow(space)

    def _module(self, value: ModuleType, path: str) -> None:
        if is_installed(value.__name__):
            self.foreign(value.__name__)
            self.add(value, Same(value))
            return
        self.add(value, Same(value))
        label = f"the module attribute {value.__name__}.{{}}"
        space = NameSpace(value, path, value.__dict__, label=label)
        space.aside = _IMPORTING
        self.follow(space)

    def _instance(self, value: Any, path: str) -> None:
        """An object of a class: what it contains if it is a container, and its attributes."""
        cls: Any = type(value)
        kinds = self.token(cls, cls.__name__)
        if module_of(cls).split(".")[0] in _APART:
            self.add(value, Same(value))
            return
        if cls in PARTS:
            parts = [self.token(part, path) for part in PARTS[cls](value)]
            self.add(value, "parts", kinds, *parts)
            return
        held = attribute_dict(value)
        members = slots_of(cls)
        content = self.content(value, path, bare=held is None and not members)
        self.add(value, "object", kinds, content)
        if cls.__flags__ & HEAP:
            self._places.append(ObjectPlace(path, value, held))
        every = reads_all(cls)
        if held is not None:
            self.follow(NameSpace(value, path, held, every=every))
        if members:
            self.follow(SlotSpace(value, path, members, every))

    def content(self, value: Any, path: str, bare: bool) -> Hashable:
        """What an object holds besides attributes; ``bare``: it has none."""
        if is_generator(value):
            self.positions.append(GeneratorPlace(path, value))
            return Same(value)
        for base, opener in _BASES.items():
            if isinstance(value, base):
                opener(self, value, path)
                return base
        cls: Any = type(value)
        if not bare and not has_hidden_part(cls):
            return None
        # A file is an iterator too, but its __reduce__ wraps it, which closes it in the end.
        if hasattr(cls, "__next__") and not issubclass(cls, io.IOBase):
            self.positions.append(IteratorPlace(path, value))
            return Same(value)
        if bare and is_by_value(value):
            return (cls, value)
        for read in (buffer_bytes, _pickled):
            try:
                found = read(value)
            except Exception:  # whatever objects say that have no such thing
                continue
            self._places.append(ContentPlace(path, value, read))
            return found
        return Same(value)

    # ---- containers --------------------------------------------------------------------

    def _list_(self, value: list[Any], path: str) -> None:
        self._places.append(ListPlace(path, value))
        items = [self.token(v, f"{path}[{k}]") for k, v in enumerate(list.__iter__(value))]
        self.add(value, "list", *items)

    def _dict_(self, value: dict[Any, Any], path: str) -> None:
        if isinstance(value, OrderedDict):  # its order is not that of its table
            self._places.append(ContentPlace(path, value, ordered_items))
            pairs: Any = OrderedDict.items(value)
        else:
            self._places.append(DictPlace(path, value))
            pairs = dict.items(value)
        for key, held in pairs:
            self.add(value, self.token(key, path), self.token(held, f"{path}[{key!r}]"))
        self.add(value, "dict", len(value))

    def _reference(self, value: Any, path: str) -> None:
        """A weak reference or a context variable: what it leads to."""
        read = referent if isinstance(value, weakref.ref) else context_value
        self._places.append(ContentPlace(path, value, read))
        self.add(value, Same(type(value)), *[self.token(v, path) for v in read(value)])

    def _proxy(self, value: Any, path: str) -> None:
        self.add(value, "proxy", self.token(gc.get_referents(value)[0], path))

    def _set_(self, value: Any, path: str) -> None:
        read: Any = frozenset if isinstance(value, (set, frozenset)) else bytes
        if isinstance(value, deque):
            read = tuple
            for k, item in enumerate(value):
                self.add(value, self.token(item, f"{path}[{k}]"))
        if not isinstance(value, frozenset):
            self._places.append(ContentPlace(path, value, read))
        if not isinstance(value, deque):
            self.add(value, content_key(read(value)))

    def _tuple_(self, value: Any, path: str) -> None:
        self.add(value, *[self.token(v, f"{path}[{k}]") for k, v in enumerate(value)])

    def _number(self, value: Any, path: str) -> None:
        self.add(value, content_key(value))

    def _array(self, value: np.ndarray, path: str) -> None:
        plain = value if type(value) is np.ndarray else np.ndarray.view(value, np.ndarray)
        if plain.dtype.hasobject:
            self.add(value, *[self.token(v, path) for v in plain.ravel().tolist()])
        content = plain.tobytes()
        self._places.append(ArrayPlace(path, plain, content))
        self.add(value, plain.dtype.str, plain.shape, plain.strides)
        if not plain.dtype.hasobject:
            self.add(value, content)

    def _recorded_array(self, value: RecordedArray, path: str) -> None:
        """An array made while recording: of numbers, or of traced values."""
        nodes = root_of(value)._nodes
        if nodes is None:
            self._array(value, path)
        else:
            self._traced_array(nodes.array, path)
            self.add(value, Same(value))

    def _traced_array(self, value: SymbolicArray, path: str) -> None:
        self.traced.append((path, value))
        self.token(value, path)
        self.add(value, Same(value))

    def _getter(self, value: Any, path: str) -> None:
        _, arguments = value.__reduce__()[:2]
        self.mention(a.split(".")[0] for a in arguments if isinstance(a, str))
        self.mention(b for a in arguments if isinstance(a, str) for b in a.split("."))
        self.add(value, Same(type(value)), self.token(arguments, path))

    def _fixed(self, value: Any, path: str) -> None:
        self.add(value, Same(value))


def _pickled(value: Any) -> Hashable:
    """Return what an object written in C would be pickled as."""
    made = value.__reduce_ex__(2)
    if isinstance(made, str) or not any(made[2:]):
        raise TypeError  # known by its name, or without content
    return Walk((made[1:],), every=True).key


_OPENERS: dict[type, Callable[[Walk, Any, str], None]] = {
    FunctionType: Walk._function,
    MethodType: Walk._method,
    BuiltinFunctionType: Walk._builtin,
    functools.partial: Walk._partial,
    type(functools.lru_cache(lambda: None)): Walk._wrapper,
    property: Walk._descriptor,
    staticmethod: Walk._descriptor,
    classmethod: Walk._descriptor,
    ModuleType: Walk._module,
    weakref.ref: Walk._reference,
    ContextVar: Walk._reference,
    list: Walk._list_,
    dict: Walk._dict_,
    MappingProxyType: Walk._proxy,
    set: Walk._set_,
    frozenset: Walk._set_,
    bytearray: Walk._set_,
    deque: Walk._set_,
    np.ndarray: Walk._array,
    SymbolicArray: Walk._traced_array,
    RecordedArray: Walk._recorded_array,
    slice: Walk._number,
    operator.attrgetter: Walk._getter,
    operator.methodcaller: Walk._getter,
    operator.itemgetter: Walk._getter,
    **dict.fromkeys(
        (
            *(np.ufunc, type(np.dot), Stand, MemberDescriptorType, GetSetDescriptorType),
            *(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType),
            *(MethodWrapperType, object),
        ),
        Walk._fixed,
    ),
}
#: Bases whose content counts besides the attributes of their subclasses.
_BASES: dict[type, Callable[[Walk, Any, str], None]] = {
    list: Walk._list_,
    dict: Walk._dict_,
    tuple: Walk._tuple_,
    set: Walk._set_,
    frozenset: Walk._set_,
    deque: Walk._set_,
    bytearray: Walk._set_,
    np.ndarray: Walk._array,
    weakref.ref: Walk._reference,
    np.generic: Walk._number,
    functools.partial: Walk._partial,
    float: Walk._number,
    int: Walk._number,
    str: Walk._number,
    ModuleType: Walk._module,
}
