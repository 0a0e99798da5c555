"""ESDIRK methods for stiff systems: diagonally implicit, one Newton matrix for all stages.

Sources: C. A. Kennedy, M. H. Carpenter, "Additive Runge-Kutta schemes for convection-diffusion-
reaction equations", Applied Numerical Mathematics 44 (2003) 139-181, for ARK4(3)6L[2]SA, whose
implicit half this is (L-stable, stiffly accurate, stage order 2), with its dense output of order
3.

Symbols: k_i slope of stage i, X_i its state, g = gamma, M = I - g h df/dx(t, x).

    X_i = x + h sum_{j<i} a_ij k_j + g h k_i,    k_i = f(t + c_i h, X_i)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from archimedes.function.linear_combinations import weighted
from archimedes.simulate.methods.linear_systems import linearised
from archimedes.simulate.methods.method_table import Derivative, Method, Step, register
from archimedes.simulate.methods.newton import FAILED, simplified_newton

__all__ = ["ESDIRK4", "Esdirk"]

NEWTON_STEPS = 10
#: A step is refused where Newton's iteration leaves more than this part of the error it may have.
#: What it leaves says nothing about the local error, so it does not take part in step control.
REFUSED = 0.1


def _residual(f: Derivative, t: Any, base: Any, gh: Any, X: Any) -> Any:
    """What is left of a stage's equation, X = base + gh f(t, X)."""
    return base + gh * f(t, X) - X


@dataclass(frozen=True)
class Esdirk:
    """The data of an ESDIRK method whose last stage is the solution.

    ``a``: rows of the strictly lower triangle, one per stage; ``c`` times of the stages;
    ``embedded``: weights of the error estimator's solution; ``dense[k][i]``: weight of stage i
    in the coefficient of theta^(k+1).
    """

    gamma: float
    a: tuple[tuple[float, ...], ...]
    c: tuple[float, ...]
    embedded: tuple[float, ...]
    dense: tuple[tuple[float, ...], ...]

    def start(self, f: Derivative, t: Any, x: Any) -> Any:
        """Return the slope, which is the first stage."""
        return f(t, x)

    def step(self, f: Derivative, t: Any, x: Any, h: Any, memory: Any, scale: Any = None) -> Step:
        """Take one step; where Newton's iteration does not converge, the error is inf.

        Without ``scale`` no step is repeated, and the state is nan then.
        """
        gh = self.gamma * h
        solve = linearised(f, t, x)[1].solver(1.0, -gh)
        slopes = [memory]
        state, worst = x, np.zeros(())
        for c, row in zip(self.c[1:], self.a[1:]):
            base = weighted(row, slopes, np.zeros_like(x), h, x)
            guess = base + gh * slopes[-1]
            residual = partial(_residual, f, t + c * h, base, gh)
            state, error = simplified_newton(residual, base, guess, solve, NEWTON_STEPS, scale)
            worst = np.maximum(worst, error)
            # The slope from the equation, not from f: f would amplify what Newton left over.
            slopes.append((state - base) / gh)
        last = (*self.a[-1], self.gamma)
        difference = [b - e for b, e in zip(last, self.embedded)]
        local = weighted(difference, slopes, None, h)
        if scale is None:
            return Step(np.where(worst <= FAILED, state, np.nan), local, slopes[-1], slopes)
        return Step(state, np.where(worst <= REFUSED, local, np.inf), slopes[-1], slopes)

    def dense_coefficients(self, f: Derivative, t: Any, x: Any, h: Any, step: Step) -> Any:
        """Return the coefficients of the interpolant."""
        return np.stack([weighted(row, step.stages, None, h) for row in self.dense])


# ARK4(3)6L[2]SA, implicit part (Kennedy & Carpenter 2003, p. 176).
_ARK4 = Esdirk(
    gamma=1 / 4,
    a=(
        (),
        (1 / 4,),
        (8611 / 62500, -1743 / 31250),
        (5012029 / 34652500, -654441 / 2922500, 174375 / 388108),
        (
            15267082809 / 155376265600,
            -71443401 / 120774400,
            730878875 / 902184768,
            2285395 / 8070912,
        ),
        (82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211),
    ),
    c=(0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0),
    embedded=(
        4586570599 / 29645900160,
        0.0,
        178811875 / 945068544,
        814220225 / 1159782912,
        -3700637 / 11593932,
        61727 / 225920,
    ),
    dense=(
        (
            6943876665148 / 7220017795957,
            0.0,
            7640104374378 / 9702883013639,
            -20649996744609 / 7521556579894,
            8854892464581 / 2390941311638,
            -11397109935349 / 6675773540249,
        ),
        (
            -54480133 / 30881146,
            0.0,
            -11436875 / 14766696,
            174696575 / 18121608,
            -12120380 / 966161,
            3843 / 706,
        ),
        (
            6818779379841 / 7100303317025,
            0.0,
            2173542590792 / 12501825683035,
            -31592104683404 / 5083833661969,
            61146701046299 / 7138195549469,
            -17219254887155 / 4939391667607,
        ),
    ),
)

ESDIRK4 = register(
    Method(
        name="esdirk4",
        order=4,
        error_order=3,
        dense_order=3,
        dense_degree=3,
        start=_ARK4.start,
        step=_ARK4.step,
        dense=_ARK4.dense_coefficients,
        stiff=True,
        iterative=True,
    )
)
