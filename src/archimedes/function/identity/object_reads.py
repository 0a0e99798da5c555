"""What classes, modules and objects read: the names of theirs that code mentions, and content."""

from __future__ import annotations

import io
import weakref
from collections.abc import Hashable
from types import ModuleType
from typing import Any

from archimedes.backends.registry import backend_of
from archimedes.function.identity.data_places import ContentPlace, GeneratorPlace, IteratorPlace
from archimedes.function.identity.installed import is_installed, module_of
from archimedes.function.identity.object_parts import (
    HEAP,
    attribute_dict,
    buffer_bytes,
    context_value,
    has_hidden_part,
    is_by_value,
    reads_all,
    referent,
    slots_of,
)
from archimedes.function.identity.places import BasesPlace, ObjectPlace
from archimedes.function.identity.spaces import IMPORTING, NameSpace, SlotSpace
from archimedes.function.identity.traversal import Same, Traversal
from archimedes.symbolic.recorded.nondeterminism import is_generator
from archimedes.tree.content import declared_content

__all__ = ["open_class", "open_fixed", "open_instance", "open_module", "open_reference"]

#: Members of classes that take no part in computing.
_ASIDE = {
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
_APART = {"asyncio", "concurrent", "logging", "multiprocessing", "queue", "threading"}


def open_class(walk: Traversal, cls: type, path: str) -> None:
    """A class by identity, with those members that code mentions, and special methods."""
    if is_installed(module_of(cls)):
        walk.foreign(module_of(cls))
        walk.add(cls, Same(cls))
        return
    walk.found.append(BasesPlace(cls.__name__, cls))
    bases = [walk.token(base, base.__name__) for base in cls.__mro__[1:]]
    walk.add(cls, Same(cls), walk.token(type(cls), "metaclass"), *bases)
    label = f"the class attribute {cls.__name__}.{{}}"
    space = NameSpace(cls, cls.__name__, cls.__dict__, label=label)
    space.want(name for name in cls.__dict__ if str(name).startswith("__") and name not in _ASIDE)
    space.aside = _ASIDE
    walk.follow(space)


def open_module(walk: Traversal, value: ModuleType, path: str) -> None:
    """A module: the names of it that code mentions."""
    if is_installed(value.__name__):
        walk.foreign(value.__name__)
        walk.add(value, Same(value))
        return
    walk.add(value, Same(value))
    label = f"the module attribute {value.__name__}.{{}}"
    space = NameSpace(value, path, value.__dict__, label=label)
    space.aside = IMPORTING
    walk.follow(space)


def open_instance(walk: Traversal, value: Any, path: str) -> None:
    """An object of a class: what it contains if it is a container, and its attributes."""
    cls: Any = type(value)
    kinds = walk.token(cls, cls.__name__)
    if module_of(cls).split(".")[0] in _APART or backend_of(value) is not None:
        walk.add(value, Same(value))
        return
    declared = declared_content(value)
    if declared is not None:
        walk.add(value, "parts", kinds, *[walk.token(part, path) for part in declared])
        return
    held = attribute_dict(value)
    members = slots_of(cls)
    content = _content(walk, value, path, bare=held is None and not members)
    walk.add(value, "object", kinds, content)
    if cls.__flags__ & HEAP:
        walk.found.append(ObjectPlace(path, value, held))
    every = reads_all(cls)
    if held is not None:
        walk.follow(NameSpace(value, path, held, every=every))
    if members:
        walk.follow(SlotSpace(value, path, members, every))


def _content(walk: Traversal, value: Any, path: str, bare: bool) -> Hashable:
    """What an object holds besides attributes; ``bare``: it has none."""
    if is_generator(value):
        walk.positions.append(GeneratorPlace(path, value))
        return Same(value)
    for base, opener in walk.bases.items():
        if isinstance(value, base):
            opener(walk, value, path)
            return base
    cls: Any = type(value)
    if not bare and not has_hidden_part(cls):
        return None
    # A file is an iterator too, but its __reduce__ wraps it, which closes it in the end.
    if hasattr(cls, "__next__") and not issubclass(cls, io.IOBase):
        walk.positions.append(IteratorPlace(path, value))
        return Same(value)
    if bare and is_by_value(value):
        return (cls, value)
    for read in (buffer_bytes, walk.pickled):
        try:
            found = read(value)
        except Exception:  # whatever objects say that have no such thing
            continue
        walk.found.append(ContentPlace(path, value, read))
        return found
    return Same(value)


def open_reference(walk: Traversal, value: Any, path: str) -> None:
    """A weak reference or a context variable: what it leads to."""
    read = referent if isinstance(value, weakref.ref) else context_value
    walk.found.append(ContentPlace(path, value, read))
    walk.add(value, Same(type(value)), *[walk.token(v, path) for v in read(value)])


def open_fixed(walk: Traversal, value: Any, path: str) -> None:
    """What is known by identity."""
    walk.add(value, Same(value))
