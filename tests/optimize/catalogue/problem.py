"""One published problem: functions, start, limits and the minima that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Problem", "least_squares", "make", "min_max", "vector"]


@dataclass(frozen=True)
class Problem:
    """A problem whose functions take the vector of unknowns.

    ``equal`` constraints vanish, ``positive`` ones are not negative. ``best`` is the published
    minimum; ``others`` are further local minima, at which a method may end as well.
    """

    obj: Callable[..., Any]
    x0: Any
    best: float
    equal: Callable[..., Any] | None = None
    positive: Callable[..., Any] | None = None
    bounds: Any = None
    others: tuple[float, ...] = ()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``minimize`` besides the objective and the start."""
        given: dict[str, Any] = {"bounds": self.bounds}
        kinds = {"equal": (self.equal, (0, 0)), "positive": (self.positive, (0, None))}
        kinds = {name: kind for name, kind in kinds.items() if kind[0] is not None}
        if kinds:
            given["constr"] = {name: f for name, (f, _) in kinds.items()}
            given["constr_bounds"] = {name: limits for name, (_, limits) in kinds.items()}
        return given

    def is_minimum(self, fun: float, rel: float = 1e-5) -> bool:
        """Return whether a value is that of a known minimum."""
        return any(abs(fun - v) <= rel * max(1.0, abs(v)) for v in (self.best, *self.others))


def vector(obj, x0, best, **more):
    """Return a problem whose functions take the vector of unknowns."""
    rows = {name: more.pop(name) for name in ("equal", "positive") if name in more}
    rows = {name: (lambda x, f=f: np.array(f(x))) for name, f in rows.items()}
    return Problem(obj, np.array(x0, dtype=float), best, **rows, **more)


def make(obj, x0, best, **more):
    """Return a problem whose functions take the unknowns one by one; tuples are added up."""

    def total(x):
        value = obj(*x)
        return sum(value) if isinstance(value, tuple) else value

    rows = {name: more.pop(name) for name in ("equal", "positive") if name in more}
    rows = {name: (lambda x, f=f: f(*x)) for name, f in rows.items()}
    return vector(total, x0, best, **rows, **more)


def least_squares(residuals, x0, best, **more):
    """Return the problem of the sum of squares of residuals of the unknowns, one by one."""
    return make(lambda *x: sum(r**2 for r in residuals(*x)), x0, best, **more)


def min_max(functions, x0, best, first=0.0, **more):
    """Return  min u,  functions(x) <= u: the least largest value of several functions."""
    return make(
        lambda *x: x[-1],
        [*x0, first],
        best,
        positive=lambda *x: [x[-1] - f for f in functions(*x[:-1])],
        **more,
    )
