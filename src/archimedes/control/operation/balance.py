"""The search for a balance: bounded least squares, and words for what is left."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.operation.conditions import Condition
from archimedes.control.operation.model_functions import ModelFunctions
from archimedes.optimize import least_squares

__all__ = ["Balance", "message_of"]

#: The search ends where nothing changes any more.
TIGHT: dict[str, Any] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


class Balance:
    """The least-squares problem: an equation for each condition.

    A condition with room between its edges has a slack: an unknown between them that it equals.
    Rows are divided by their slopes, so that units do not decide what is met first.
    """

    def __init__(
        self, functions: ModelFunctions, wanted: list[Condition], low: Any, high: Any
    ) -> None:
        self.functions, self.wanted, self.low, self.high = functions, wanted, low, high
        self.edges = np.array([c.low for c in wanted]), np.array([c.high for c in wanted])
        self.loose = self.edges[0] < self.edges[1]
        #: Where the conditions without room should lie.
        self.aims = np.where(self.loose, 0.0, self.edges[0])

    def misfit(self, zs: Any, args: Any) -> np.ndarray:
        """Return what is left of each equation for unknowns and slacks."""
        return np.asarray(self.functions.misfit(zs, self.aims, args))

    def slopes(self, zs: Any, args: Any) -> np.ndarray:
        """Return the derivatives of ``misfit``."""
        return np.asarray(self.functions.slopes(zs, self.aims, args))

    def values(self, z: Any, args: Any) -> np.ndarray:
        """Return the numbers that the conditions are about."""
        none = np.zeros(np.count_nonzero(self.loose))
        return self.misfit(np.concatenate([z, none]), args) + self.aims

    def left(self, z: Any, args: Any) -> np.ndarray:
        """Return what is left of each condition."""
        found = self.values(z, args)
        return found - np.clip(found, *self.edges)

    def rows(self, z: Any, args: Any) -> np.ndarray:
        """Return the slopes of the conditions in z."""
        none = np.zeros(np.count_nonzero(self.loose))
        return self.slopes(np.concatenate([z, none]), args)[:, : len(z)]

    def reached(self, z: Any, args: Any) -> dict[str, bool]:
        """Tell which conditions anything that is free changes."""
        return {c.name: bool(np.any(r != 0.0)) for c, r in zip(self.wanted, self.rows(z, args))}

    def search(self, z: Any, args: Any) -> Any:
        """Return the solution within bounds; equal bounds take an unknown out."""
        values, rows = self.values(z, args), self.rows(z, args)
        low = np.concatenate([self.low, self.edges[0][self.loose]])
        high = np.concatenate([self.high, self.edges[1][self.loose]])
        held, open_ = np.clip(np.concatenate([z, values[self.loose]]), low, high), low < high
        if not np.all(np.isfinite(values)) or not np.all(np.isfinite(rows)) or not np.any(open_):
            return z
        size = np.linalg.norm(rows * np.maximum(np.abs(z), 1.0), axis=1)
        power = -np.round(np.log2(np.where(size > 0.0, size, 1.0)))
        weights = np.ldexp(1.0, power.astype(int))

        def whole(v: Any) -> np.ndarray:
            full = np.array(held)
            full[open_] = v
            return full

        found = least_squares(
            lambda v: weights * self.misfit(whole(v), args),
            held[open_],
            jac=lambda v: weights[:, None] * self.slopes(whole(v), args)[:, open_],
            bounds=(low[open_], high[open_]),
            **TIGHT,
        )
        return whole(found.x)[: len(z)]


def message_of(
    residuals: dict[str, float], stuck: dict[str, float], tol: float, reached: dict[str, bool]
) -> str:
    """Say what is left, the largest first, and why, where that can be seen."""
    if not all(np.isfinite(v) for v in residuals.values()):
        bad = next(k for k, v in residuals.items() if not np.isfinite(v))
        return f"not balanced: {bad} is {residuals[bad]}; start where the model is defined"
    worst = sorted(residuals, key=lambda k: -abs(residuals[k]))
    texts = []
    for name in [k for k in worst if abs(residuals[k]) > tol][:4]:
        why = "" if reached[name] else ", and nothing that is free changes it"
        texts.append(f"{name} is left at {residuals[name]:.3g}{why}")
    held = ", ".join(f"{name} is at its bound {v:.6g}" for name, v in stuck.items())
    return (
        f"not balanced: {'; '.join(texts)}{f' ({held})' if held else ''}; widen bounds, free more, "
        "or start nearer"
    )
