"""How types, constants, operations and arrays are written in C.

Floating constants are the shortest decimal numbers that read back as the same bits (Python's and
NumPy's ``repr``): C99, C11 and every C++ take them, a reader can check them against the model,
and compilers that follow C99 annex F round them correctly. Subnormal ones are hexadecimal, where
a compiler may warn of the decimal form.

``SPELLINGS`` has the exact ops, by the names of ``graph/ops.py``: a row gives, by the dtype of the
last operand, an expression of the operands ``{0} {1} {2}``. Names that begin with ``arc_`` are
helpers (``helpers.py``). Operands are names, literals and elements of arrays, so that no row needs
parentheses around them. Each expression becomes a statement of its own: compilers that fuse a
multiplication and an addition of one expression find none to fuse.

A :class:`Frame` has the arrays of a function, :class:`Tables` the constant ones of a file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64

CTYPES = {F64: "double", F32: "float", I64: "int64_t", B8: "bool"}
BYTES = {F64: 8, F32: 4, I64: 8, B8: 1}
#: Short names of dtypes, in names of arrays.
LETTERS = {F64: "d", F32: "f", I64: "n", B8: "b"}

_SMALLEST = {F64: sys.float_info.min, F32: float(np.finfo(np.float32).tiny)}


def _number(value: float, dtype: int) -> str:
    suffix = "f" if dtype == F32 else ""
    if value != value:
        return f"ARC_NAN{suffix.upper()}"
    size = abs(value)
    if math.isinf(value):
        text = f"ARC_INF{suffix.upper()}"
    elif 0.0 < size < _SMALLEST[dtype]:
        text = float(size).hex() + suffix
    else:
        text = repr(size) if dtype == F64 else str(np.float32(size))
        text += suffix if "e" in text or "." in text else ".0" + suffix
    return f"-{text}" if math.copysign(1.0, value) < 0.0 else text


def table_item(value: Any, dtype: int) -> str:
    """Write a constant as an element of a table: no parentheses.

    >>> table_item(-0.1, F32), table_item(-(2**63), I64), table_item(True, B8)
    ('-0.1f', 'INT64_MIN', 'true')
    """
    if dtype == B8:
        return "true" if value else "false"
    if dtype == I64:
        if value == -(2**63):
            return "INT64_MIN"
        return f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"
    return _number(float(value), dtype)


def literal(value: Any, dtype: int) -> str:
    """Write a constant as an operand.

    >>> literal(0.1, F64), literal(-0.0, F64), literal(float("inf"), F32)
    ('0.1', '(-0.0)', 'ARC_INFF')
    """
    text = table_item(value, dtype)
    return f"({text})" if text.startswith("-") else text


def _floats(text: str) -> dict[int, str]:
    """Spell a row on both float types; ``@`` becomes the suffix of float's functions."""
    return {F64: text.replace("@", ""), F32: text.replace("@", "f")}


def _numbers(on_float: str, on_int: str) -> dict[int, str]:
    return {**_floats(on_float), I64: on_int}


def _compare(sign: str, on_bool: str) -> dict[int, str]:
    return {**_numbers(f"{{0}} {sign} {{1}}", f"{{0}} {sign} {{1}}"), B8: on_bool}


def _bits(sign: str, on_bool: str) -> dict[int, str]:
    return {I64: f"{{0}} {sign} {{1}}", B8: on_bool}


#: Expression of every exact op by name and dtype.
SPELLINGS: dict[str, dict[int, str]] = {
    "add": _numbers("{0} + {1}", "arc_add({0}, {1})"),
    "sub": _numbers("{0} - {1}", "arc_sub({0}, {1})"),
    "mul": _numbers("{0} * {1}", "arc_mul({0}, {1})"),
    "div": _floats("{0} / {1}"),
    "neg": _numbers("-{0}", "arc_neg({0})"),
    "abs": _numbers("arc_fabs@({0})", "arc_abs({0})"),
    "sqrt": _floats("arc_sqrt@({0})"),
    "floor": _floats("arc_floor@({0})"),
    "ceil": _floats("arc_ceil@({0})"),
    "trunc": _floats("arc_trunc@({0})"),
    "rint": _floats("arc_rint@({0})"),
    "copysign": _floats("arc_copysign@({0}, {1})"),
    "min": _numbers("arc_fmin@({0}, {1})", "{0} < {1} ? {0} : {1}"),
    "max": _numbers("arc_fmax@({0}, {1})", "{0} > {1} ? {0} : {1}"),
    "quotient": {I64: "arc_quotient({0}, {1})"},
    "modulo": {I64: "arc_modulo({0}, {1})"},
    "lt": _compare("<", "!{0} && {1}"),
    "le": _compare("<=", "!{0} || {1}"),
    "eq": _compare("==", "{0} == {1}"),
    "ne": _compare("!=", "{0} != {1}"),
    "and": _bits("&", "{0} && {1}"),
    "or": _bits("|", "{0} || {1}"),
    "xor": _bits("^", "{0} ? !{1} : {1}"),
    "not": {I64: "~{0}", B8: "!{0}"},
    "shl": {I64: "arc_shl({0}, {1})"},
    "shr": {I64: "arc_shr({0}, {1})"},
    "lshr": {I64: "arc_lshr({0}, {1})"},
    "select": dict.fromkeys((F64, F32, I64, B8), "{0} ? {1} : {2}"),
    "fma": _floats("arc_fma@({0}, {1}, {2})"),
    "f64": {**_numbers("(double){0}", "(double){0}"), B8: "{0} ? 1.0 : 0.0"},
    "f32": {
        F64: "arc_single({0})",
        F32: "{0}",
        I64: "arc_single_of_int({0})",
        B8: "{0} ? 1.0f : 0.0f",
    },
    "i64": {I64: "{0}", B8: "{0} ? INT64_C(1) : INT64_C(0)"},
    "truncate": _floats("arc_truncate@({0})"),
    "bits": {F64: "arc_bits({0})"},
    "from_bits": {I64: "arc_from_bits({0})"},
    "bits32": {F32: "arc_bitsf({0})"},
    "from_bits32": {I64: "arc_from_bitsf({0})"},
    "stop": dict.fromkeys((F64, F32, I64, B8), "{0}"),
}


def spell_elementary(name: str, dtype: int, operands: list[str]) -> str:
    """Call an elementary function; float's version is double's, rounded once.

    >>> spell_elementary("exp", F32, ["x"])
    'arc_single(arc_exp((double)x))'
    """
    if dtype == F64:
        return f"arc_{name}({', '.join(operands)})"
    if name in ("sin", "cos"):  # where doubles are slow, by integers
        return f"arc_{name}f({operands[0]})"
    return f"arc_single(arc_{name}({', '.join(f'(double){x}' for x in operands)}))"


def spell_pair(dtype: int, operand: str, cosine: str) -> str:
    """Call for sine and cosine at once: the expression is the sine.

    ``cosine`` is the name of a variable of that type.

    >>> spell_pair(F64, "x", "c")
    'arc_sincos(x, &c)'
    """
    return f"arc_sincos{'' if dtype == F64 else 'f'}({operand}, &{cosine})"


# ---- arrays: how their elements are written, and where they are declared ------------------------


#: The length at which the lines of a table are wrapped.
_LINE = 96


class Array(NamedTuple):
    """An array, or one seen from a step of a loop: element ``k`` is ``base[steps + k]``.

    ``steps`` is an expression of loop counters. ``narrow`` arrays are of int32_t, for values that
    are int64_t everywhere else.
    """

    base: str
    steps: str = ""
    narrow: bool = False


def _position(element: Location) -> str:
    """Write the index of an element."""
    steps, offset = element.array.steps, element.offset
    if not steps:
        return str(offset)
    if not offset:
        return str(steps)
    return f"{steps} {'+' if offset > 0 else '-'} {abs(offset)}"


def _element(element: Location) -> str:
    return f"{element.array.base}[{_position(element)}]"


def address(element: Location) -> str:
    """Write a pointer to an element."""
    return element.array.base if _position(element) == "0" else f"&{_element(element)}"


def read(element: Location) -> str:
    """Write an element as an operand."""
    return f"((int64_t){_element(element)})" if element.array.narrow else _element(element)


def assignment(element: Location, value: str) -> str:
    """Write an assignment to an element."""
    return f"{_element(element)} = {'(int32_t)' if element.array.narrow else ''}{value};"


def moving(element: Location, counter: str, stride: int) -> Location:
    """Return the location ``counter * stride`` elements further on.

    >>> read(moving(Location(Array("s1"), 3, 0), "i1", 2))
    's1[2 * i1 + 3]'
    """
    term, steps = counter if stride == 1 else f"{stride} * {counter}", element.array.steps
    return element._replace(
        array=element.array._replace(steps=f"{steps} + {term}" if steps else term)
    )


def are_neighbours(bindings: Sequence[Binding]) -> bool:
    """Return whether values lie one after the other in an array of their own type."""
    first = bindings[0].location
    if first is None or first.array.narrow:
        return False
    return all(b.location == first.at(k) for k, b in enumerate(bindings))


class Frame:
    """The arrays of a function, and those of the functions it calls.

    They are local variables, or members of a struct that ``pointer`` points to. The struct ends
    in a union of the callees' structs, of which one is in use at a time.
    """

    def __init__(self, name: str, in_struct: bool, pointer: str = "work", gap: str = "") -> None:
        self.type = f"{name}_work"
        self.in_struct = in_struct
        self.pointer = pointer
        self.calls: dict[str, Frame] = {}
        self._gap = gap
        self._members: list[tuple[int, str, int]] = []
        #: Arrays of blocks by name, and those that are not in use: numbers of members.
        self._blocks: dict[str, int] = {}
        self._free: list[int] = []
        self._buffers: dict[tuple[str, int], Location] = {}

    def array(self, dtype: int, count: int) -> Location:
        """Reserve an array and return its first element."""
        name = f"s{self._gap}{len(self._members) + 1}"
        self._members.append((dtype, name, count))
        return self._first(name, dtype)

    def _first(self, name: str, dtype: int) -> Location:
        """Return the first element of a member."""
        return Location(Array(f"{self.pointer}->{name}" if self.in_struct else name), 0, dtype)

    def block(self, dtype: int, count: int) -> Location:
        """Return an array for a block: one that was released, extended if need be, or a new one.

        Of the released ones it takes the shortest that is long enough, or else the longest.
        """
        lengths = {k: self._members[k][2] for k in self._free if self._members[k][0] == dtype}
        if not lengths:
            first = self.array(dtype, count)
            self._blocks[first.array.base] = len(self._members) - 1
            return first
        enough = [k for k in lengths if lengths[k] >= count]
        size = lengths.__getitem__
        chosen = min(enough, key=size) if enough else max(lengths, key=size)
        self._free.remove(chosen)
        name = self._members[chosen][1]
        self._members[chosen] = (dtype, name, max(lengths[chosen], count))
        return self._first(name, dtype)

    def release(self, element: Location) -> None:
        """Release the array of a block, so that another block can use it."""
        number = self._blocks.get(element.array.base)
        if number is not None and number not in self._free and not element.array.steps:
            self._free.append(number)

    def buffer(self, owner: str, dtype: int, count: int) -> Location:
        """Return an array for the arguments or results of a function, the same for all calls."""
        if (owner, dtype) not in self._buffers:
            self._buffers[owner, dtype] = self.array(dtype, count)
        return self._buffers[owner, dtype]

    @property
    def is_empty(self) -> bool:
        """Whether neither the function nor any callee has arrays."""
        return not self._members and not self.calls

    @property
    def size(self) -> tuple[int, int]:
        """Bytes and alignment of the struct, each type aligned to its size."""
        at, alignment = 0, 1
        parts = [(BYTES[d], BYTES[d] * count) for d, _, count in self._sort_members()]
        sizes = [frame.size for frame in self.calls.values()]
        if sizes:
            parts.append((max(a for _, a in sizes), max(n for n, _ in sizes)))
        for align, count in parts:
            at = -(-at // align) * align + count
            alignment = max(alignment, align)
        return -(-at // alignment) * alignment, alignment

    def _sort_members(self) -> list[tuple[int, str, int]]:
        """Return the members, largest type first, so that no padding is needed."""
        return sorted(self._members, key=lambda member: -BYTES[member[0]])

    def declarations(self) -> list[str]:
        """Declare the arrays."""
        return [f"{CTYPES[d]} {name}[{count}];" for d, name, count in self._sort_members()]

    def typedef(self) -> str:
        """Write the struct."""
        lines = self.declarations()
        if self.calls:
            inner = [f"    {frame.type} {name};" for name, frame in self.calls.items()]
            lines += ["union {", *inner, "} calls;"]
        return "\n".join(["typedef struct {", *(f"    {x}" for x in lines), f"}} {self.type};\n"])


class Tables:
    """The constant arrays of a file, one per content; ``pieces`` has their texts by name."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.pieces: dict[str, str] = {}
        self.bytes = 0
        self._names: dict[tuple[str, bytes], str] = {}

    def location(
        self, values: Sequence[Any] | np.ndarray, dtype: int, whole: bool = False
    ) -> Location:
        """Return the first element of the table with these values.

        ``whole``: in the type of the dtype, also where a narrower one would do.
        """
        array = np.asarray(values, dtype=DTYPES[dtype])
        if whole or dtype != I64 or not _fits_int32(array):
            name = self._name(CTYPES[dtype], array, lambda x: table_item(x, dtype))
            return Location(Array(name), 0, dtype)
        return Location(Array(self._name("int32_t", array, str, 4), narrow=True), 0, dtype)

    def bytes_of(self, values: Sequence[int]) -> str:
        """Return the name of a table of bytes."""
        return self._name("uint8_t", np.array(values, dtype=np.uint8), str)

    def _name(
        self, kind: str, array: np.ndarray, spell: Callable[[Any], str], size: int | None = None
    ) -> str:
        """Return the name of the table of this content; write the table if there is none yet.

        ``size`` are the bytes of an element in C, if not those of the array.
        """
        key = (kind, array.tobytes())
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"{self.prefix}_table{len(self.pieces) + 1}"
            head = f"static const {kind} {name}[{len(array)}] = {{"
            self.pieces[name] = "\n".join([head, *_wrap(list(map(spell, array.tolist()))), "};\n"])
            self.bytes += (size or array.itemsize) * len(array)
        return name


def _fits_int32(array: np.ndarray) -> bool:
    """Return whether integers can be stored as int32_t (its smallest value has no literal in C)."""
    return bool(array.size) and int(array.min()) > -(2**31) and int(array.max()) < 2**31


def _wrap(words: Sequence[str]) -> list[str]:
    """Return words as lines, with commas between them."""
    lines = ["   "]
    for k, word in enumerate(words):
        text = f" {word}," if k + 1 < len(words) else f" {word}"
        if len(lines[-1]) + len(text) > _LINE:
            lines.append("   ")
        lines[-1] += text
    return lines
