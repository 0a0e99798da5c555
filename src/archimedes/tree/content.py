"""Static values by content: a hashable key for each, and a copy that nobody else can change.

Static values decide which program is traced, so ``1``, ``1.0`` and ``True`` have different keys,
as have ``0.0`` and ``-0.0``; a nan equals itself. Arrays, lists and dicts, which Python cannot
hash, are compared by what they hold. An object of another type is its own key.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from archimedes.errors import StructError


class Rule(NamedTuple):
    """How values of one type are compared, copied, and searched for things that can change."""

    key: Callable[[Any], Hashable]
    copy: Callable[[Any], Any] = lambda value: value
    mutable: Callable[[Any], bool] = lambda value: False


def content_key(value: object) -> Hashable:
    """Return a hashable key that is equal for values of the same type and content.

    Raises StructError for a value that is neither hashable nor of a known container type.

    >>> content_key([1.0, 2.0]) == content_key([1.0, 2.0])
    True
    >>> content_key(1) == content_key(True)
    False
    """
    cls = type(value)
    rule = RULES.get(cls)
    if rule is None:
        rule = RULES[cls] = make_rule(cls)
    return rule.key(value)


def snapshot(value: Any) -> Any:
    """Return `value` in a form that later changes to the original cannot reach.

    Arrays become read-only copies; lists, dicts, sets and dataclasses are copied with what they
    hold; objects of other types are kept, because a copy of them would not be equal.
    """
    cls = type(value)
    return (RULES.get(cls) or make_rule(cls)).copy(value)


def is_mutable(value: object) -> bool:
    """Return whether `value` is or holds a list, dict, set or bytearray (arrays are read-only)."""
    cls = type(value)
    return (RULES.get(cls) or make_rule(cls)).mutable(value)


def declared_content(value: object) -> Iterable[Any] | None:
    """Return what an object declares itself to be made of, or None if its class declares nothing.

    A class that keeps caches beside its data, or whose instances never change, has a method
    ``__content__(self)`` that returns all that tells one instance from another. Where a compiled
    function reads such an object, these parts are watched instead of its attributes. The method is
    not inherited: a subclass may hold more.

    >>> class Rotor:
    ...     def __init__(self, blades):
    ...         self.blades, self.cache = blades, {}
    ...     def __content__(self):
    ...         return (self.blades,)
    >>> declared_content(Rotor(3)), declared_content(3)
    ((3,), None)
    """
    method = type(value).__dict__.get("__content__")
    return None if method is None else method(value)


def is_read_only(array: Any) -> bool:
    """Return whether nobody can write to an array: it is read-only, and so is all it views.

    >>> a = np.ones(2)
    >>> a.flags.writeable = False
    >>> is_read_only(a), is_read_only(np.ones(2))
    (True, False)
    """
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)


def typed_key(value: object) -> Hashable:
    """Return a key of a value and its type."""
    return (type(value), value)


def float_key(value: float) -> Hashable:
    """Return a key of a float."""
    # The hex form separates -0.0 from 0.0 and lets a nan equal itself.
    return (float, value) if value == value and value != 0.0 else (float, value.hex())


def scalar_key(value: np.generic) -> Hashable:
    """Return a key of a NumPy scalar."""
    return (type(value), value.dtype, value.tobytes())


def opaque_key(value: object) -> Hashable:
    """Return a key of an object that is compared by its own equality."""
    try:
        hash(value)
    except TypeError:
        raise StructError(
            f"a static value of type {type(value).__qualname__} cannot be compared by content: it "
            "is not hashable. Give the type __eq__ and __hash__, or let the field be an ordinary "
            "one (static=False)."
        ) from None
    return (type(value), value)


def array_key(value: np.ndarray) -> Hashable:
    """Return a key of the content of an array."""
    if value.dtype.hasobject:
        content: Hashable = tuple(map(content_key, value.ravel().tolist()))
    else:
        content = value.tobytes()
    return (type(value), value.dtype, value.shape, content)


def copy_array(value: np.ndarray) -> np.ndarray:
    """Return a read-only copy of an array."""
    frozen = value.copy()
    frozen.flags.writeable = False
    return frozen


def sequence_key(value: Iterable) -> Hashable:
    """Return a key of the items of a sequence, in order."""
    return (type(value), tuple(map(content_key, value)))


def set_key(value: Iterable) -> Hashable:
    """Return a key of the items of a set."""
    return (type(value), frozenset(map(content_key, value)))


def items_key(value: dict) -> Hashable:
    """Return a key of the items of a dict, in order."""
    # In order: a function may depend on it (list(d.values())).
    return (type(value), tuple((content_key(k), content_key(v)) for k, v in value.items()))


def copy_items(value: dict) -> dict:
    """Return a copy of a dict with snapshots of its values."""
    copied = copy.copy(value)
    copied.update((k, snapshot(v)) for k, v in value.items())
    return copied


def field_values(value: Any) -> dict[str, Any]:
    """Return the values of the fields of a dataclass by name."""
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}


def dataclass_key(value: Any) -> Hashable:
    """Return a key of the fields of a dataclass that are compared."""
    compared = [getattr(value, f.name) for f in dataclasses.fields(value) if f.compare]
    return (type(value), tuple(map(content_key, compared)))


def copy_dataclass(value: Any) -> Any:
    """Return a copy of a dataclass with snapshots of its fields."""
    copied = copy.copy(value)
    for name, part in field_values(value).items():
        object.__setattr__(copied, name, snapshot(part))
    return copied


def any_item(value: Iterable) -> bool:
    """Return whether an item can change."""
    return any(map(is_mutable, value))


ATOM = Rule(typed_key)
ARRAY = Rule(array_key, copy_array)
DATACLASS = Rule(dataclass_key, copy_dataclass, lambda v: any_item(field_values(v).values()))

RULES: dict[type, Rule] = {
    **dict.fromkeys((bool, int, str, bytes, type(None), type), ATOM),
    float: Rule(float_key),
    complex: Rule(lambda v: (complex, float_key(v.real), float_key(v.imag))),
    slice: Rule(lambda v: (slice, *map(content_key, (v.start, v.stop, v.step)))),
    np.ndarray: ARRAY,
    tuple: Rule(sequence_key, lambda v: tuple(map(snapshot, v)), any_item),
    frozenset: Rule(set_key),
    list: Rule(sequence_key, lambda v: list(map(snapshot, v)), lambda v: True),
    set: Rule(set_key, set, lambda v: True),
    bytearray: Rule(lambda v: (bytearray, bytes(v)), bytearray, lambda v: True),
    **dict.fromkeys((dict, defaultdict, OrderedDict), Rule(items_key, copy_items, lambda v: True)),
}


def make_rule(cls: type) -> Rule:
    """Choose the rule of a type met for the first time."""
    if issubclass(cls, np.ndarray):
        return ARRAY
    if issubclass(cls, np.generic):
        return Rule(scalar_key)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return Rule(sequence_key, lambda v: tuple.__new__(cls, map(snapshot, v)), any_item)
    if dataclasses.is_dataclass(cls) and cls.__eq__ is not object.__eq__:
        return DATACLASS
    return Rule(opaque_key)
