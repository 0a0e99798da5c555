"""Runs a form eager and traced and says how the two compare."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from archimedes import TraceError
from archimedes import compile as arc_compile

from .forms import Form, Tolerance

__all__ = ["AGREE", "CRASHED", "TRACE_ERROR", "WRONG", "difference", "eager", "outcome"]

AGREE, TRACE_ERROR, WRONG, CRASHED = "agree", "TraceError", "wrong", "crashed"


def eager(form: Form) -> Any:
    """The form's result from NumPy alone; floating-point flags (1/0, inf - inf) are no news.

    Nor is what NumPy will drop one day (``np.fix`` and writing to ``shape`` since 2.5): as long as
    a form has a value, it is compared.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DeprecationWarning)
        return form.fn(*form.call_args())


def difference(want: Any, got: Any, tolerance: Tolerance) -> str | None:
    """``None`` where ``got`` agrees with ``want`` in tree, shape, dtype and value, else why not."""
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            return f"tree: {type(got).__name__} in place of {len(want)} items"
        pairs = (difference(a, b, tolerance) for a, b in zip(want, got))
        return next((why for why in pairs if why), None)
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape:
        return f"shape {got.shape} in place of {want.shape}"
    if want.dtype != got.dtype:
        return f"dtype {got.dtype} in place of {want.dtype}"
    return None if same_values(want, got, tolerance) else f"value {got!r} in place of {want!r}"


def same_values(want: np.ndarray, got: np.ndarray, tolerance: Tolerance) -> bool:
    if want.dtype.kind != "f":
        return bool(np.array_equal(want, got))
    finite = np.isfinite(want)
    if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(
        want[~finite], got[~finite], equal_nan=True
    ):
        return False
    want, got = want[finite], got[finite]
    if tolerance.ulps == 0.0:
        return bool(np.all((want == got) & (np.signbit(want) == np.signbit(got))))
    size = np.abs(want)
    if tolerance.scaled and size.size:
        size = np.maximum(size.max(), 1.0)
    return bool(np.all(np.abs(got - want) <= tolerance.ulps * np.finfo(want.dtype).eps * size))


def outcome(form: Form) -> tuple[str, str]:
    """One of AGREE, TRACE_ERROR, WRONG or CRASHED, and a line that says more."""
    want = eager(form)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        try:
            got = arc_compile(form.fn)(*form.call_args())
        except TraceError as error:
            return TRACE_ERROR, str(error)
        except Exception as error:
            return CRASHED, f"{type(error).__name__}: {error}"
    why = difference(want, got, form.tolerance)
    return (WRONG, why) if why else (AGREE, "")
