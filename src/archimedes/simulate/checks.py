"""Checks of what users give to a solver; each error names the argument and the remedy."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate.layout import Layout
from archimedes.simulate.methods import Method

__all__ = ["check_args", "check_span", "check_state", "check_step", "check_times", "static_places"]


def check_span(t_span: Any) -> tuple[float, float]:
    """Return the ends of a time span."""
    pair = isinstance(t_span, (tuple, list)) and list(map(type, t_span)) == [float, float]
    if not pair and np.shape(t_span) != (2,):
        raise ValueError(f"t_span must be a pair (start, end), got {t_span!r}")
    start, end = map(float, t_span)
    if not (math.isfinite(start) and math.isfinite(end)):
        raise ValueError(f"t_span = ({start}, {end}) must be finite")
    if start == end:
        raise ValueError(f"t_span = ({start}, {end}) is empty: start and end are equal")
    return start, end


def check_times(t_eval: Any, start: float, end: float) -> np.ndarray:
    """Return output times: within the span, in its direction."""
    times = np.asarray(t_eval, dtype=np.float64)
    if times.ndim != 1:
        raise ValueError(f"t_eval must have shape (m,), got {times.shape}")
    low, high = min(start, end), max(start, end)
    early, late = (times[:-1], times[1:]) if end > start else (times[1:], times[:-1])
    # Sorted times lie in the span if the first and the last do; nan is never sorted.
    ends = times[:1].tolist() + times[-1:].tolist()
    if all(low <= t <= high for t in ends) and (early <= late).all():
        return times
    if not np.isfinite(times).all():
        raise ValueError("t_eval must be finite")
    outside = (times < low) | (times > high)
    if outside.any():
        raise ValueError(
            f"t_eval holds {times[outside][0]:.17g}, which is outside t_span = ({start}, {end})"
        )
    at = int(np.argmax(early > late))
    raise ValueError(
        f"t_eval must be sorted in the direction of t_span: t_eval[{at}] = {times[at]:.17g} "
        f"comes before t_eval[{at + 1}] = {times[at + 1]:.17g}"
    )


def check_state(x0: Any, layout: Layout) -> np.ndarray:
    """Return a state as a vector (n,); one that is nan or infinite is refused, naming the leaf."""
    x = layout.pack(x0)
    if np.isfinite(x).all():
        return x if x.dtype == np.float64 else x.astype(np.float64)
    leaves = zip(layout.treedef.paths("x0"), tree.leaves(x0))
    path, leaf = next(pair for pair in leaves if not np.isfinite(pair[1]).all())
    raise ValueError(f"{path} is nan or infinite: {leaf!r}")


def check_tolerances(rtol: Any, atol: Any) -> None:
    """Refuse tolerances that no step could meet."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not (np.isfinite(value).all() and (value >= 0.0).all()):
            raise ValueError(f"{name} must be finite and not negative")
    if not ((rtol > 0.0) | (atol > 0.0)).all():
        raise ValueError("rtol and atol must not both be zero")


def check_step(name: str, value: Any) -> float:
    """Return a step size, which must be positive."""
    if not float(value) > 0.0:
        raise ValueError(f"{name} = {value!r} must be positive")
    return float(value)


def check_fixed(method: Method, dt: Any) -> bool:
    """Tell whether a solve is adaptive."""
    if dt is not None:
        return False
    if method.error_order is None:
        raise ValueError(
            f"method={method.name!r} has no error estimate, so it takes fixed steps only: give "
            "their size with dt=..., or choose an adaptive method such as 'dop853'"
        )
    return True


def check_args(args: Any) -> tuple[Any, ...]:
    """Return the further arguments of the function as a tuple."""
    if args is None:
        return ()
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


def static_places(
    func: Callable[..., Any], static_argnames: str | Sequence[str] | None, count: int
) -> list[int]:
    """Return which of the ``count`` further arguments of func(t, x, *args) are static."""
    names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames or ())
    if not names:
        return []
    known = list(inspect.signature(func).parameters)
    for name in names:
        if name not in known[2 : 2 + count]:
            raise ValueError(
                f"static_argnames: {name!r} is not among the arguments {known[2 : 2 + count]} that "
                "args gives"
            )
    return [known.index(name) - 2 for name in names]
