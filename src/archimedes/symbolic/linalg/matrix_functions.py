"""Functions of matrices, for plain and traced arrays alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.dtypes import I64
from archimedes.graph.formulas import Emit
from archimedes.graph.program import Graph
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.dispatch import floats, wrap
from archimedes.symbolic.core.trace import current_trace, is_tracing
from archimedes.symbolic.core.traced_content import known, traced_or_same
from archimedes.symbolic.linalg.checks import check_square, over_stack
from archimedes.symbolic.linalg.matrix_calls import repeat_while
from archimedes.symbolic.linalg.matrix_rules import emitting

__all__ = ["expm"]

# The [13/13] Pade approximant of exp is exact to double precision up to this 1-norm, with these
# coefficients of its numerator (Higham, SIAM J. Matrix Anal. Appl. 26(4), 2005, table 2.3, 10.23).
_THETA = 5.371920351148152
_B = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
#: Most squarings: norms up to 1e20, where every digit of a rotation is long lost.
_MAX_SQUARINGS = 64
_HALVES = 0.5 ** np.arange(_MAX_SQUARINGS + 1)


def expm(a: Any) -> Any:
    """Return the matrix exponential of a square matrix, or of each in a stack (..., n, n).

    Scaling and squaring with the Pade approximant of degree 13. Works on plain and traced arrays;
    when traced the number of squarings is decided as the program runs, in a loop. float32 stays
    float32, ints become float64. A matrix that is not finite, or whose 1-norm is beyond 1e20,
    gives nan.

    >>> expm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    a = traced_or_same(a)
    traced = isinstance(a, SymbolicArray) or (is_tracing() and not isinstance(a, np.ndarray))
    if traced:
        (a,) = floats(a)
    else:
        a = np.asarray(a)
        a = a.astype(np.result_type(a, np.float32 if a.dtype == np.float32 else np.float64))
    check_square(a)
    if a.shape[-1] == 0:
        return a.copy()
    if a.shape[-1] == 1:
        return np.exp(a)
    with np.errstate(invalid="ignore", over="ignore"):
        return over_stack(_traced_expm, (2,), a) if traced else _plain_expm(a)


def _scaling(a: Any) -> tuple[Any, Any]:
    """Return the number of squarings and the matrix scaled down for them."""
    norm = np.max(np.sum(np.abs(a), axis=-2), axis=-1)
    limit = _THETA * 2.0**_MAX_SQUARINGS
    usable = norm <= limit  # false for nan
    bounded = np.where(usable, np.maximum(norm, _THETA), _THETA)
    count = np.ceil(np.log2(bounded / _THETA)).astype(np.int64)
    # A plain array cannot be indexed by a traced one, a traced table can.
    table = floats(_HALVES)[0] if isinstance(a, SymbolicArray) else _HALVES
    factor = np.where(usable, table[count], np.nan).astype(a.dtype)
    return count, a * factor[..., None, None]


def _pade(a: Any) -> Any:
    """Return r_13(a) = (V - U)^-1 (V + U) (Higham, eq. 2.13 to 2.15)."""
    b = [float(x) for x in _B]
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
    u = a @ (odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
    v = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    return np.linalg.solve(v - u, v + u)


def _plain_expm(a: np.ndarray) -> np.ndarray:
    count, scaled = _scaling(a)
    x = _pade(scaled)
    for k in range(int(np.max(count, initial=0))):
        x = np.where((k < count)[..., None, None], x @ x, x)
    return x


def _traced_expm(a: Any) -> Any:
    count, scaled = _scaling(a)
    x = _pade(scaled)
    squarings = known(count)
    if not isinstance(squarings, SymbolicArray):
        for _ in range(int(squarings)):
            x = x @ x
        return x
    trace = current_trace()
    n = len(a)

    def unfinished(g: Graph, carry: list[int], shared: list[int]) -> int:
        return Emit(g, I64)("lt", carry[-1], shared[0])

    def square(g: Graph, carry: list[int], shared: list[int]) -> list[int]:
        with emitting(g) as body:
            matrix = wrap(np.array(carry[:-1]).reshape(n, n), a.code, body)
            squared = body.ids_of(matrix @ matrix).ravel().tolist()
        return [*squared, Emit(g, I64).add(carry[-1], g.const(1, I64))]

    start = [*trace.ids_of(x).ravel().tolist(), trace.graph.const(0, I64)]
    done = repeat_while(
        trace.graph, start, [int(trace.ids_of(count))], unfinished, square, _MAX_SQUARINGS
    )
    return wrap(np.array(done[:-1]).reshape(n, n), a.code, trace)
