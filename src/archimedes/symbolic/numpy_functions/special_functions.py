"""Special functions of traced arrays, and SciPy's ufuncs that stand for them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from archimedes.graph.ops import CODES
from archimedes.symbolic.core.dispatch import floats, wrap
from archimedes.symbolic.core.registry import ADOPTERS
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.ufunc_formulas import Loop
from archimedes.symbolic.core.ufuncs import UFUNCS

__all__ = ["record"]


def record(name: str, *operands: Any) -> Any:
    """Record an op of that name for each element; ints become float64, float32 alone stays."""
    arrays = floats(*operands)
    trace = current_trace()
    ids = np.broadcast_arrays(*(trace.ids_of(x) for x in arrays))
    emit, code = trace.graph.emit, CODES[name]
    made = [emit(code, *row) for row in zip(*(x.ravel().tolist() for x in ids))]
    return wrap(np.array(made, dtype=np.int64).reshape(ids[0].shape), arrays[0].code, trace)


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
