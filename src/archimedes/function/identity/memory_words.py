"""Where CPython and NumPy keep what a function reads, so that native code can see a change.

A place is watched by *words*, 64 bits at an address that must not change, and by *blocks* of
memory that must equal a copy. A word that leads to others comes before them: while it is the
same, their addresses are valid. Offsets are those of 64-bit CPython 3.11 to 3.13; ``trusted``
tries them out before they are used.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterable
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

__all__ = ["Unseen", "Words", "trusted"]

_ALL = 2**64 - 1
_UNICODE, _SPLIT = 1, 2
#: Blocks of so many bytes are words: to compare them takes less than to call a function.
_FEW_BYTES = 48


class Unseen(Exception):
    """A place that words cannot watch, or that changed while they were written."""


def load(address: int) -> int:
    """Return the 64 bits at an address."""
    return ctypes.c_uint64.from_address(address).value


def _row(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address)) if count else []


class Words:
    """The words and blocks of some places."""

    def __init__(self) -> None:
        self.words: list[tuple[int, int, int]] = []
        self.blocks: list[tuple[int, int, int]] = []
        self.copies: list[Any] = []

    def word(self, address: int, value: int | None = None, mask: int = _ALL) -> int:
        """Watch the bits of ``mask`` at an address; ``value`` is what they are known to be."""
        now = load(address) & mask
        if value is not None and now != value & mask:
            raise Unseen
        self.words.append((address, mask, now))
        return now

    def block(self, address: int, size: int, copy: bytes | None = None) -> None:
        """Watch memory that equals ``copy`` now."""
        if not size:
            return
        now = ctypes.string_at(address, size)
        if copy is not None and now != copy:
            raise Unseen
        if size <= _FEW_BYTES and size % 8 == 0:
            for k in range(0, size, 8):
                self.word(address + k)
            return
        kept = np.frombuffer(now, np.uint8)
        self.copies.append(kept)
        self.blocks.append((address, kept.ctypes.data, size))

    def hold(self) -> bool:
        """Tell whether all is as it was."""
        return all(load(a) & m == v for a, m, v in self.words) and all(
            ctypes.string_at(a, n) == ctypes.string_at(b, n) for a, b, n in self.blocks
        )

    # ---- objects -----------------------------------------------------------------------

    def cls(self, value: Any) -> None:
        """Watch the class of an object."""
        self.word(id(value) + 8, id(type(value)))

    def order(self, value: type) -> None:
        """Watch the order in which a class and its bases are searched."""
        self.word(id(value) + _order_offset(), id(value.__mro__))

    def attribute_dict(self, value: Any, held: dict[str, Any]) -> None:
        """Watch which dict holds the attributes of an object (reading it has made it one)."""
        where = ctypes.pythonapi._PyObject_GetDictPtr
        where.restype, where.argtypes = ctypes.c_void_p, [ctypes.py_object]
        address = where(value)
        if not address:
            raise Unseen
        self.word(address, id(held))

    def slot(self, value: Any, member: MemberDescriptorType, found: int) -> None:
        """Watch a slot, which holds the object of this address (0: none)."""
        definition = load(id(member) + 40)
        self.word(id(value) + load(definition + 16), found)

    def function(self, value: FunctionType) -> None:
        """Watch the code and the defaults of a function."""
        for name, offset in _function_offsets().items():
            part = getattr(value, name)
            self.word(id(value) + offset, 0 if part is None else id(part))

    def cell(self, value: CellType, found: int) -> None:
        """Watch a variable of an enclosing function."""
        self.word(id(value) + 16, found)

    # ---- containers --------------------------------------------------------------------

    def items(self, value: list[Any]) -> None:
        """Watch which objects a list holds."""
        size = self.word(id(value) + 16, len(value))
        self.block(self.word(id(value) + 24), 8 * size)

    def version(self, value: dict[Any, Any]) -> None:
        """Watch a whole dict."""
        self.word(id(value) + 24)

    def members(self, value: set[Any]) -> None:
        """Watch the table of a set."""
        self.word(id(value) + 24, len(value))
        mask = self.word(id(value) + 32)
        self.block(self.word(id(value) + 40), 16 * (mask + 1))

    def names(self, held: dict[str, Any], values: dict[str, int], absent: Iterable[str]) -> None:
        """Watch what a dict holds under some names, and that it has none of the others."""
        keys = self.word(id(held) + 32)
        table = self.word(id(held) + 40)
        head = self.word(keys + 8, mask=0xFFFFFF)
        kind = head >> 16
        count = load(keys + 24)
        width = 16 if kind in (_UNICODE, _SPLIT) else 24
        start = keys + 32 + (1 << (head >> 8 & 0xFF)) + width - 16
        places = {row: k for k, row in enumerate(_row_of_keys(start, width, count))}
        own = {key: id(key) for key in held} if values else {}
        beside = table + (0 if not table else _values_offset())

        def at(k: int) -> int:
            return beside + 8 * k if table else start + width * k + 8

        for name, found in values.items():
            k = places.get(own.get(name, 0))
            if k is None:
                raise Unseen
            self.word(start + width * k, own[name])
            self.word(at(k), found)
        none = list(absent)
        if not none:
            return
        # No name was added: as many entries as before, and the same last one.
        self.word(keys + 24)
        if count:
            self.word(start + width * (count - 1))
        for name in none if table else ():
            k = places.get(id(sys.intern(name)))
            if k is not None:
                self.word(at(k), 0)

    def size(self, held: dict[str, Any]) -> None:
        """Watch how many entries a dict has."""
        self.word(id(held) + 16, len(held))

    def array(self, value: np.ndarray, content: bytes | None) -> None:
        """Watch an array: its form, and its numbers unless they can never be written."""
        at = id(value)
        self.word(at + 16, value.ctypes.data)
        self.word(at + 24, value.ndim, mask=0xFFFFFFFF)
        dimensions = self.word(at + 32)
        self.word(at + 40)
        self.word(at + 56, id(value.dtype))
        self.block(dimensions, 16 * value.ndim)
        owner: Any = value
        while isinstance(owner, np.ndarray):  # who may write to it
            self.word(id(owner) + 64, mask=0xFFFFFFFF)
            owner = owner.base
        if content is not None:
            low, high = np.lib.array_utils.byte_bounds(value)
            contiguous = value.flags.c_contiguous
            self.block(low, high - low, content if contiguous else None)


def _row_of_keys(start: int, width: int, count: int) -> list[int]:
    return _row(start, count * width // 8)[:: width // 8] if count else []


@functools.cache
def _function_offsets() -> dict[str, int]:
    def probe(a: Any = 1.5, *, b: Any = 2.5) -> None:
        pass

    names = ("__code__", "__defaults__", "__kwdefaults__")
    words = _row(id(probe), sys.getsizeof(probe) // 8 - 2)
    return {name: 8 * words.index(id(getattr(probe, name))) for name in names}


@functools.cache
def _order_offset() -> int:
    size: Any = type.__basicsize__
    return 8 * _row(id(_Holder), size // 8).index(id(_Holder.__mro__))


@functools.cache
def _values_offset() -> int:
    """Where values begin in the table beside a dict of attributes."""
    return 8 if sys.version_info >= (3, 13) else 0


# ---- trying it out ---------------------------------------------------------------------


@functools.cache
def trusted() -> bool:
    """Tell whether this interpreter keeps things where ``Words`` looks: every kind is tried."""
    from archimedes.backends.memory_guard import known_layout

    try:
        return known_layout() and all(_notices(*trial) for trial in _trials())
    except (Unseen, ValueError, AttributeError, IndexError):
        return False


def _notices(watch: Any, changes: list[Any]) -> bool:
    for change in changes:
        words = Words()
        watch(words)
        if not words.hold():
            return False
        change()
        if words.hold():
            return False
    return True


class _Holder:
    def __init__(self) -> None:
        self.a, self.b = 1.5, 2.5


class _Slotted:
    __slots__ = ("a",)
    a: float


def _trials() -> list[tuple[Any, list[Any]]]:
    held, slotted, empty = _Holder(), _Slotted(), _Items()
    slotted.a = 1.5
    globals_, data, items, members = {"a": 1.5, "c": 1}, {"a": 1.5}, [1.5, 2.5], {1.5}
    array = np.ones(3)
    variable = 1.5

    def function(a: Any = 1.5, *, b: Any = 2.5) -> Any:
        return variable

    def rebind() -> None:
        nonlocal variable
        variable = 2.5

    def store(times: int = 50) -> None:
        for _ in range(times):  # often enough for specialised instructions
            held.a = float(times)

    def names(w: Words) -> None:
        w.names(held.__dict__, {"a": id(held.__dict__["a"])}, ["z"])

    def nothing(w: Words) -> None:
        w.names(empty.__dict__, {}, ["z"])

    def plain(w: Words) -> None:
        w.names(globals_, {"a": id(globals_["a"])}, ["z"])

    member: Any = vars(_Slotted)["a"]
    assert function.__closure__ is not None
    cell = function.__closure__[0]
    return [
        (names, [store, lambda: setattr(held, "a", 7.5), lambda: setattr(held, "z", 1)]),
        (nothing, [lambda: setattr(empty, "z", 1)]),
        (plain, [lambda: globals_.update(a=2.5), lambda: globals_.update(z=1)]),
        (
            lambda w: w.slot(slotted, member, id(slotted.a)),
            [lambda: setattr(slotted, "a", 2.5)],
        ),
        (
            lambda w: w.function(function),
            [
                lambda: setattr(function, "__defaults__", (2.5,)),
                lambda: setattr(function, "__kwdefaults__", None),
            ],
        ),
        (lambda w: w.cell(cell, id(cell.cell_contents)), [rebind]),
        (lambda w: w.version(data), [lambda: data.update(a=2.5), lambda: data.update(b=1)]),
        (lambda w: w.items(items), [lambda: items.append(1), lambda: items.__setitem__(0, 9)]),
        (lambda w: w.members(members), [lambda: members.add(7)]),
        (
            lambda w: w.array(array, array.tobytes()),
            [lambda: array.__setitem__(1, 5.0), lambda: array.setflags(write=False)],
        ),
        (
            lambda w: w.order(_Child),
            [lambda: setattr(_Child, "__bases__", (_Slotless,))],
        ),
        (lambda w: w.cls(held), [lambda: setattr(held, "__class__", _Other)]),
        (lambda w: w.attribute_dict(held, vars(held)), [lambda: setattr(held, "__dict__", {})]),
    ]


class _Other(_Holder):
    pass


class _Items(list[float]):
    pass


class _Slotless:
    pass


class _Child(_Holder):
    pass
