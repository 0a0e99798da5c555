"""The elementary and special functions by name, and their eager evaluation on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from archimedes.graph.elementary import exponential, power, special_functions, trigonometric
from archimedes.graph.elementary.primitives import NUMPY, Primitives, Value
from archimedes.records import record

Program = Callable[..., Value]

BLOCK = 8192
"""Elements evaluated at a time, so that intermediate results stay in the cache."""


@record
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


def _rows(module: ModuleType, names: str) -> dict[str, Elementary]:
    """Return the programs of a module as a table by name."""
    table = {}
    for name in names.split():
        program = getattr(module, name)
        ufunc = getattr(np, "power" if name == "pow" else name, None)
        doc = program.__doc__.split("\n", 1)[0].rstrip(".:")
        table[name] = Elementary(name, program.__code__.co_argcount - 1, program, ufunc, doc)
    return table


ELEMENTARY = (
    _rows(trigonometric, "sin cos tan arcsin arccos arctan")
    | _rows(exponential, "sinh cosh tanh arcsinh arccosh arctanh")
    | _rows(exponential, "exp exp2 expm1 log log2 log10 log1p")
    | _rows(power, "cbrt")
    | _rows(trigonometric, "arctan2")
    | _rows(power, "pow hypot fmod")
)
"""Every elementary function; the order is that of the op codes."""

SPECIAL = _rows(special_functions, "erf erfc gamma gammaln digamma polygamma")
SPECIAL |= _rows(exponential, "exp10")
"""Functions that NumPy has not; their names are SciPy's."""

PROGRAMS = ELEMENTARY | SPECIAL
"""All of them."""


def in_float32(program: Program) -> Program:
    """Return the float32 version of a float64 program.

    It evaluates in float64 and rounds once, so its error is 0.5 ulp of float32 up to about 1e-8.

    Example: ``NUMPY.run(in_float32(ELEMENTARY["exp"].program), np.float32(1))``.
    """

    def single(p: Primitives, *operands: Value) -> Value:
        return p.f32(program(p, *(p.f64(x) for x in operands)))

    return single


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
    if dtype not in (np.float64, np.float32):
        raise TypeError(
            f"{name} works on float64 or float32, got {dtype}; convert with .astype(float)"
        )
    program = row.program if dtype == np.float64 else in_float32(row.program)
    arrays = [np.asarray(x, dtype) for x in arrays]
    if all(x.ndim == 0 for x in arrays):
        return NUMPY.run(program, *(x[()] for x in arrays))
    flat = [x.reshape(-1) for x in np.broadcast_arrays(*arrays)]
    result = np.empty(flat[0].shape, dtype)
    for start in range(0, result.size, BLOCK):
        block = slice(start, start + BLOCK)
        result[block] = NUMPY.run(program, *(x[block] for x in flat))
    return result.reshape(np.broadcast_shapes(*(x.shape for x in arrays)))
