"""The elementary and special functions by name, and their eager evaluation on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.graph.elementary import (
    exponential,
    hyperbolic,
    power,
    special_functions,
    trigonometric,
)
from archimedes.graph.elementary.primitives import NUMPY, Primitives, Value

__all__ = ["ELEMENTARY", "PROGRAMS", "SPECIAL", "Elementary", "evaluate", "in_float32"]

Program = Callable[..., Value]

BLOCK = 8192
"""Elements evaluated at a time, so that intermediate results stay in the cache."""


@dataclass(frozen=True)
class Elementary:
    """A row of the table.

    ``program(p, *operands)`` works on float64 values of any provider ``p``; ``ufunc`` is the NumPy
    function it stands for, where NumPy has one.

    Example: ``ELEMENTARY["sin"].ufunc is np.sin``.
    """

    name: str
    arity: int
    program: Program
    ufunc: np.ufunc | None
    doc: str


def _row(program: Program, ufunc: np.ufunc | None, arity: int = 1) -> Elementary:
    doc = (program.__doc__ or "").split("\n", 1)[0].rstrip(".:")
    return Elementary(program.__name__, arity, program, ufunc, doc)


ELEMENTARY: dict[str, Elementary] = {
    row.name: row
    for row in (
        _row(trigonometric.sin, np.sin),
        _row(trigonometric.cos, np.cos),
        _row(trigonometric.tan, np.tan),
        _row(trigonometric.arcsin, np.arcsin),
        _row(trigonometric.arccos, np.arccos),
        _row(trigonometric.arctan, np.arctan),
        _row(trigonometric.arctan2, np.arctan2, 2),
        _row(hyperbolic.sinh, np.sinh),
        _row(hyperbolic.cosh, np.cosh),
        _row(hyperbolic.tanh, np.tanh),
        _row(hyperbolic.arcsinh, np.arcsinh),
        _row(hyperbolic.arccosh, np.arccosh),
        _row(hyperbolic.arctanh, np.arctanh),
        _row(exponential.exp, np.exp),
        _row(exponential.exp2, np.exp2),
        _row(exponential.expm1, np.expm1),
        _row(exponential.log, np.log),
        _row(exponential.log2, np.log2),
        _row(exponential.log10, np.log10),
        _row(exponential.log1p, np.log1p),
        _row(power.pow, np.power, 2),
        _row(power.cbrt, np.cbrt),
        _row(power.hypot, np.hypot, 2),
        _row(power.fmod, np.fmod, 2),
    )
}
"""Every elementary function, in the order of the documentation."""

SPECIAL: dict[str, Elementary] = {
    row.name: row
    for row in (
        _row(exponential.exp10, None),
        _row(special_functions.erf, None),
        _row(special_functions.erfc, None),
        _row(special_functions.gamma, None),
        _row(special_functions.gammaln, None),
        _row(special_functions.digamma, None),
        _row(special_functions.polygamma, None, 2),
    )
}
"""Functions that NumPy has not; their names are SciPy's."""

PROGRAMS: dict[str, Elementary] = ELEMENTARY | SPECIAL
"""All of them."""


def in_float32(program: Program) -> Program:
    """Return the float32 version of a float64 program.

    It evaluates in float64 and rounds once, so its error is 0.5 ulp of float32 up to about 1e-8.

    Example: ``NUMPY.run(in_float32(ELEMENTARY["exp"].program), np.float32(1))``.
    """

    def single(p: Primitives, *operands: Value) -> Value:
        return p.f32(program(p, *(p.f64(x) for x in operands)))

    return single


_PROGRAMS: dict[tuple[str, np.dtype[Any]], Program] = {
    (name, np.dtype(dtype)): version(row.program)
    for name, row in PROGRAMS.items()
    for dtype, version in ((np.float64, lambda program: program), (np.float32, in_float32))
}


def evaluate(name: str, *operands: Any) -> Any:
    """Run the program of an elementary function on NumPy values.

    Operands are float64 or float32 arrays or scalars (Python numbers count as float64) of
    broadcastable shapes. The result has the broadcast shape and the common dtype; 0-d operands
    give a NumPy scalar.

    Example::

        evaluate("sin", np.array([0.0, 0.5]))   # array([0.        , 0.47942554])
        evaluate("arctan2", 1.0, 1.0)           # np.float64(0.7853981633974483)
    """
    row = PROGRAMS.get(name)
    if row is None:
        raise ValueError(f"no elementary function {name!r}; choose from {', '.join(PROGRAMS)}")
    if len(operands) != row.arity:
        raise TypeError(f"{name} takes {row.arity} operand(s), got {len(operands)}")
    arrays = [np.asarray(x) for x in operands]
    dtype = np.result_type(*arrays)
    program = _PROGRAMS.get((name, dtype))
    if program is None:
        raise TypeError(
            f"{name} works on float64 or float32, got {dtype}; convert with .astype(float)"
        )
    arrays = [np.asarray(x, dtype) for x in arrays]
    if all(x.ndim == 0 for x in arrays):
        return NUMPY.run(program, *(x[()] for x in arrays))
    if len(arrays) > 1:
        arrays = list(np.broadcast_arrays(*arrays))
    shape = arrays[0].shape
    flat = [x.reshape(-1) for x in arrays]
    result = np.empty(flat[0].shape, dtype)
    for start in range(0, result.size, BLOCK):
        block = slice(start, start + BLOCK)
        result[block] = NUMPY.run(program, *(x[block] for x in flat))
    return result.reshape(shape)
