"""Small graphs for the tests of this folder, and comparison bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.backends import interpreter
from archimedes.graph import B8, CODES, DTYPES, F32, F64, I64, Graph

from .spec import validate

SPECIAL_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -7.25, 1.5, 1e10),
    *(np.inf, -np.inf, np.nan),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308),
    *(1e-40, 3.4028234663852886e38, 1e-160, 2.0**-100, 2.0**100, 2.0**62),
)
SPECIAL_INTS = (0, 1, -1, 2, -2, 3, -7, 63, 64, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
SPECIALS: dict[int, tuple[Any, ...]] = {
    F64: SPECIAL_FLOATS,
    F32: SPECIAL_FLOATS,
    I64: SPECIAL_INTS,
    B8: (False, True),
}


def typed(value: Any, code: int) -> Any:
    """The value as a NumPy scalar of the dtype."""
    with np.errstate(all="ignore"):
        return DTYPES[code].type(value)


def same(a: Any, b: Any) -> bool:
    """Equal bits, but any nan equals any other (payloads are outside the contract)."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    both = np.isnan(a) & np.isnan(b)
    return bool(np.all(both | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def graph_of(
    dtypes: Sequence[int], build: Callable[..., int | Sequence[int]], *, check: bool = True
) -> Graph:
    """Graph with inputs of these dtypes; ``build(graph, *ids)`` returns its outputs."""
    g = Graph()
    outs = build(g, *(g.input(d) for d in dtypes))
    g.outputs = [outs] if isinstance(outs, int) else [int(i) for i in outs]
    if check:
        validate(g)
    return g


def op(g: Graph, name: str, *ids: int) -> int:
    return g.emit(CODES[name], *ids)


def run(g: Graph, *values: Any) -> list[Any]:
    """Interpret on values given as NumPy scalars or arrays of the inputs' dtypes."""
    return interpreter.run(g, list(values))
