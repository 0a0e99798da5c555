"""MATLAB files of version 5 to 7, read without trust in what they claim.

A damaged file can crash the reader of SciPy, which does not compare the sizes that a file claims
with those that it has. This one checks each of them, and reads what data consist of: numbers,
logical values, text and structs. The format is in The MathWorks, "MAT-File Format" (2024).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

#: Types of elements that hold numbers.
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",
    17: "u2",
    18: "u4",
}
MATRIX, COMPRESSED = 14, 15
ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
#: Classes of arrays.
CELL, STRUCT, CHAR = 1, 2, 4
CLASSES = {
    6: "f8",
    7: "f4",
    8: "i1",
    9: "u1",
    10: "i2",
    11: "u2",
    12: "i4",
    13: "u4",
    14: "i8",
    15: "u8",
}
REFUSED = {
    3: "an object",
    5: "a sparse matrix: write full(...)",
    16: "a function handle",
    17: "an object, such as a timeseries, a table or a string: write its numbers as plain arrays",
}
COMPLEX, LOGICAL = 0x08, 0x02
DEEPEST = 50


class MatError(ValueError):
    """A file that is no MATLAB file, or a damaged one."""


class Element(NamedTuple):
    """A piece of a file: its type, its content."""

    kind: int
    data: memoryview


def read_mat5(data: bytes) -> dict[str, Any]:
    """Return the variables: arrays, text as arrays of str, structs as dicts, cells as objects."""
    if data[:8] == b"\x89HDF\r\n\x1a\n" or data[124:126] in (b"\x00\x02", b"\x02\x00"):
        raise MatError("it is a MATLAB 7.3 file, which is HDF5: save it with -v7")
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None or len(data) < 128:
        raise MatError("it is not a MATLAB file of version 5 to 7")
    variables = {}
    for element in _elements(memoryview(data)[128:], order):
        if element.kind == COMPRESSED:
            element, *more = _elements(memoryview(_inflate(element.data)), order)
            if more:
                raise MatError("a compressed variable is more than one")
        if element.kind != MATRIX:
            raise MatError(f"an element of type {element.kind} where a variable should be")
        name, value = _read_matrix(element.data, order, "", 0)
        if name:  # MATLAB keeps data of objects in a variable without a name
            variables[name] = value
    return variables


def _inflate(data: memoryview) -> bytes:
    try:
        return zlib.decompress(data)
    except (zlib.error, MemoryError) as error:
        raise MatError(f"a compressed variable is damaged: {error}") from error


def _elements(data: memoryview, order: str) -> Iterator[Element]:
    """Yield the elements that lie one after another."""
    at = 0
    while at < len(data):
        if len(data) - at < 8:
            raise MatError("it ends within an element")
        kind, size = struct.unpack_from(f"{order}II", data, at)
        start = at + 8
        if kind >> 16:  # up to 4 bytes, beside a tag of 4
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            if size > 4:
                raise MatError("a small element of more than 4 bytes")
            at += 8
        else:
            at = start + size if kind == COMPRESSED else start + -(-size // 8) * 8
        if start + size > len(data):
            raise MatError(f"an element claims {size} bytes, {len(data) - start} are there")
        yield Element(kind, data[start : start + size])


def _read_matrix(data: memoryview, order: str, where: str, depth: int) -> tuple[str, Any]:
    """Return the name and the value of an array."""
    if depth > DEEPEST:
        raise MatError(f"{where[:60]}... is nested more than {DEEPEST} deep")
    if not len(data):
        return "", np.zeros((0, 0))
    parts = _elements(data, order)
    flags = _take(parts, order, "u4", where)
    dims = tuple(map(int, _take(parts, order, "i4", where)))
    name = bytes(_take(parts, order, "i1", where)).decode("latin-1")
    where = where or name
    if not len(flags) or len(dims) < 2 or min(dims) < 0:
        raise MatError(f"{where} has the size {dims}")
    kind, bits = int(flags[0]) & 0xFF, int(flags[0]) >> 8 & 0xFF
    if kind in REFUSED:
        raise MatError(f"{where} is {REFUSED[kind]}")
    if kind in (CELL, STRUCT):
        return name, _read_container(kind, parts, dims, order, where, depth)
    if kind == CHAR:
        element = next(parts, Element(2, memoryview(b"")))
        return name, _read_text(element, dims, order, where)
    if kind not in CLASSES:
        raise MatError(f"{where} has the unknown class {kind}")
    values = _read_numbers(parts, math.prod(dims), order, CLASSES[kind], where)
    if bits & COMPLEX:
        imaginary = _read_numbers(parts, math.prod(dims), order, CLASSES[kind], where)
        single = CLASSES[kind] == "f4"
        values = (values + 1j * imaginary).astype(np.complex64 if single else np.complex128)
    values = values.astype(bool) if bits & LOGICAL else values
    return name, values.reshape(dims, order="F")


def _take(parts: Iterator[Element], order: str, dtype: str, where: str) -> np.ndarray:
    """Return the numbers of the next element, which must be of a type."""
    element = next(parts, None)
    if element is None or NUMBERS.get(element.kind) != dtype:
        raise MatError(f"{where or 'a variable'} has no {dtype} where its description should be")
    return _as_numbers(element, order, where)


def _as_numbers(element: Element, order: str, where: str) -> np.ndarray:
    dtype = np.dtype(order + NUMBERS[element.kind])
    if len(element.data) % dtype.itemsize:
        raise MatError(f"{where} has {len(element.data)} bytes of {dtype}")
    return np.frombuffer(element.data, dtype)


def _read_numbers(
    parts: Iterator[Element], count: int, order: str, dtype: str, where: str
) -> np.ndarray:
    """Return numbers, which may be stored in fewer bytes than those of their class."""
    element = next(parts, None)
    if element is None and not count:
        return np.zeros(0, dtype)
    if element is None or element.kind not in NUMBERS:
        raise MatError(f"{where} has no numbers")
    values = _as_numbers(element, order, where)
    if len(values) != count:
        raise MatError(f"{where} has {len(values)} numbers and places for {count}")
    return values.astype(dtype)


def _read_text(element: Element, dims: tuple[int, ...], order: str, where: str) -> np.ndarray:
    """Return text as an array of one str for each row."""
    if element.kind not in ENCODINGS:
        raise MatError(f"{where} is text in an unknown form")
    encoding = ENCODINGS[element.kind]
    suffix = {"<": "-le", ">": "-be"}[order] if encoding in ("utf-16", "utf-32") else ""
    text = bytes(element.data).decode(encoding + suffix, "replace")
    rows = dims[0]
    if rows <= 1 or math.prod(dims) != len(text):
        return np.array([text])
    return np.array([text[k::rows] for k in range(rows)])


def _read_container(
    kind: int, parts: Iterator[Element], dims: tuple[int, ...], order: str, where: str, depth: int
) -> Any:
    """Return a cell array as an array of objects, a struct as a dict."""
    count = math.prod(dims)
    fields = [""]
    if kind == STRUCT:
        if count != 1:
            raise MatError(f"{where} is an array of {count} structs: write one struct")
        width = _take(parts, order, "i4", where)
        text = bytes(_take(parts, order, "i1", where))
        length = int(width[0]) if len(width) == 1 else 0
        if length < 1 or len(text) % length:
            raise MatError(f"{where} has damaged names of fields")
        pieces = [text[k : k + length] for k in range(0, len(text), length)]
        fields = [piece.split(b"\0")[0].decode("latin-1") for piece in pieces]
    values: list[Any] = []
    for element in parts:
        if element.kind != MATRIX:
            raise MatError(f"{where} has an element of type {element.kind}")
        inner = f"{where}.{fields[len(values)]}" if len(values) < len(fields) else where
        values.append(_read_matrix(element.data, order, inner, depth + 1)[1])
    wanted = len(fields) if kind == STRUCT else count
    if len(values) != wanted:
        raise MatError(f"{where} has {len(values)} parts and places for {wanted}")
    if kind == STRUCT:
        return dict(zip(fields, values, strict=True))
    cells = np.empty(count, dtype=object)
    for k, value in enumerate(values):
        cells[k] = value
    return cells.reshape(dims, order="F")
