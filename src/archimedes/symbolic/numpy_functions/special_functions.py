"""Special functions of traced arrays, and SciPy's ufuncs that stand for them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import scalar_ids
from archimedes.graph.ops import CODES
from archimedes.symbolic.core.dispatch import floats, wrap
from archimedes.symbolic.core.registry import ADOPTERS
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.ufunc_formulas import Loop
from archimedes.symbolic.core.ufuncs import UFUNCS
from archimedes.symbolic.core.wide import elementwise, in_loops

__all__ = ["record"]


def record(name: str, *operands: Any) -> Any:
    """Record an op of that name for each element; ints become float64, float32 alone stays."""
    arrays = floats(*operands)
    trace = current_trace()
    g, code, dtype = trace.graph, CODES[name], arrays[0].code
    ids = np.broadcast_arrays(*(trace.elements_of(x) for x in arrays))
    shape = ids[0].shape
    if in_loops(g, ids[0].size, *ids):
        dtypes = [dtype] * len(ids)
        (made,) = elementwise(g, ids, dtypes, shape, lambda body, *row: body.emit(code, *row))
        return wrap(made, dtype, trace)
    rows = zip(*(scalar_ids(g, x).ravel().tolist() for x in ids))
    flat = [g.emit(code, *row) for row in rows]
    return wrap(np.array(flat, dtype=np.int64).reshape(shape), dtype, trace)


def _beta_logarithm(e: Loop, a: int, b: int) -> int:
    logs = e("add", e("gammaln", a), e("gammaln", b))
    return e("sub", logs, e("gammaln", e("add", a, b)))


#: Names of ufuncs in scipy.special -> an op, or a formula in ops.
_SCIPY: dict[str, Any] = {
    **{name: CODES[name] for name in ("erf", "erfc", "gamma", "gammaln")},
    "psi": CODES["digamma"],
    "betaln": _beta_logarithm,
}


def _adopt(ufunc: np.ufunc) -> bool:
    """Give a ufunc of scipy.special its row in the table, if it is one that can be recorded."""
    scipy = sys.modules.get("scipy.special")  # imported, if the caller holds one of its ufuncs
    what = _SCIPY.get(ufunc.__name__)
    if scipy is None or what is None or getattr(scipy, ufunc.__name__, None) is not ufunc:
        return False
    UFUNCS[ufunc] = (what, what, None, None)
    return True


ADOPTERS.append(_adopt)
