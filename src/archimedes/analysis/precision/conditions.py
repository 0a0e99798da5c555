"""Condition numbers: by how much an operation multiplies the relative errors of its operands.

The condition number of y = f(x) is |x f'(x) / y| (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., section 1.6). The derivatives are those that derivatives of functions are made
of (``graph/derivatives/rules.py``).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from archimedes.backends import interpreter
from archimedes.graph.derivatives.rules import PARTIALS
from archimedes.graph.dtypes import F64
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import BY_NAME, CODES
from archimedes.graph.program import Graph

#: Ops that hand one of their operands on.
_PASSING = frozenset({"select", "min", "max", "copysign", "stop", "neg", "abs"})


@cache
def _partials(name: str) -> Graph:
    """Return the program of an op's derivatives by each of its operands."""
    g = Graph.with_inputs([F64] * BY_NAME[name].arity)
    a, b = (*g.inputs, -1)[:2]
    out = g.emit(CODES[name], *g.inputs)
    g.outputs = [partial(Emit(g, F64), out, a, b) for partial in PARTIALS[name]]
    return g


def slopes(name: str, *operands: Any) -> list[Any]:
    """Return the derivatives of an op by its operands, for float64 scalars or arrays.

    >>> slopes("mul", 2.0, 3.0)
    [np.float64(3.0), np.float64(2.0)]
    """
    return interpreter.run(_partials(name), [np.asarray(x, dtype=np.float64)[()] for x in operands])


def condition_numbers(name: str, result: Any, *operands: Any, least: Any = 0.0) -> list[Any]:
    """Return the condition number of an op by each operand, for float64 scalars or arrays.

    ``least``: the result counts as at least so large, for values that pass through zero.

    >>> condition_numbers("sub", 1e-6, 1.000001, 1.0)[1]
    np.float64(1000000.0)
    """
    if name in _PASSING:
        return [1.0] * len(operands)
    if name not in PARTIALS:
        return [0.0] * len(operands)
    if name in ("mul", "div") and not np.any(least):
        return [np.where(np.equal(result, 0.0), 0.0, 1.0)[()]] * 2
    operands = tuple(np.asarray(x, dtype=np.float64)[()] for x in operands)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(result), least)
        # Most operations are sums, whose derivatives are 1.
        rates = (1.0, 1.0) if name in ("add", "sub") else slopes(name, *operands)
        numbers = [np.abs(x * rate) / size for x, rate in zip(operands, rates)]
    # 0/0: an operand of zero has no relative error to multiply.
    return [np.where(np.isnan(k), 0.0, k)[()] for k in numbers]
