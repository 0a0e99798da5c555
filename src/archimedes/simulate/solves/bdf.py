"""``bdf``: a multistep method for large stiff systems and for DAEs, of order 1 to 5, sparse.

It solves xdot = f(t, x) and F(t, x, xdot) = 0: these differ in what Newton's iteration makes zero,
in its matrix and in when it has converged (:class:`ExplicitEquations`, :class:`ImplicitEquations`).

Numerical differentiation formulas in backward differences, with steps that stay equal for a while.
One system with one matrix is solved for each Newton iteration, of which a step needs one or two;
factors serve many steps: they are made anew where c of I - c J has changed by more than a third, or
where Newton's iteration converges badly. Sources: L. F. Shampine, M. W. Reichelt, "The MATLAB ODE
suite", SIAM J. Sci. Comput. 18 (1997) 1-22, for the formulas; A. C. Hindmarsh et al., "SUNDIALS",
ACM TOMS 31 (2005) 363-396, section 2.1, for when factors are kept, how corrections are scaled
then, and when an iteration has converged; K. E. Brenan, S. L. Campbell, L. R. Petzold, "Numerical
Solution of Initial-Value Problems in Differential-Algebraic Equations", SIAM 1996, for DAEs.

Symbols: h step, k order, D backward differences of the state, d the last correction, c = h / alpha
with the formula's leading coefficient alpha; the formula's derivative is xdot = (psi + d) / c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.simulate.methods.method_table import method_outside, piece, register, rms_norm
from archimedes.simulate.solves.collectors import Result, Samples
from archimedes.simulate.sparse.sparse_jacobians import SparseJacobian, SparsePencil
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.stepwise import Stepwise
from archimedes.simulate.stepping.trial_step import Setup, initial_step, smallest_step

if TYPE_CHECKING:
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.typing import Array, Scalar

#: Solves a linear system for a right side (n,).
Solver = Callable[[np.ndarray], np.ndarray]

MOST = 5
_KAPPA = np.array([0.0, -0.1850, -1.0 / 9.0, -0.0823, -0.0415, 0.0])
_GAMMA = np.array([0.0, 1.0, 1.5, 11.0 / 6.0, 25.0 / 12.0, 137.0 / 60.0])
_ALPHA = (1.0 - _KAPPA) * _GAMMA
_ERROR = _KAPPA * _GAMMA + 1.0 / np.arange(1, MOST + 2)
#: Newton's iterations in a step at most; it has converged where the error left is so small a part
#: of the error that a step may have, and diverges where changes grow by more than a factor.
ITERATIONS, CONVERGED, DIVERGED = 4, 0.01, 2.0
#: Factors are kept while c changes by no more than this part, and Jacobians for this many steps.
KEPT, OLD = 0.4, 50
#: Factors of this many unknowns are in single precision, which takes half the time, where that
#: changes the matrix by no more than this part of I.
LARGE, ROUNDED = 256, 0.1
#: Steps grow only if by this factor at least, by ten at most; failed ones shrink to no less.
WORTH, GROW, SHRINK, SAFETY = 1.2, 10.0, 0.2, 0.8
#: So much larger than the first change of an iteration may be what is left for a DAE.
UNSURE = 100.0
#: The first step of a DAE takes no more than this part of the span.
FIRST = 1e-3


@piece(often=True)
def _root(error: Scalar, order: Scalar) -> Any:
    """Return by how much a step of this error (relative to what it may be) could be longer."""
    return np.power(np.maximum(error, 1e-20), -1.0 / (order + 1.0))


def _rescaling(order: int, factor: float) -> np.ndarray:
    """Return the matrix (k + 1, k + 1) that brings differences to a step times a factor."""

    def table(factor: float) -> np.ndarray:
        i, j = np.arange(1, order + 1)[:, None], np.arange(1, order + 1)
        steps = np.zeros((order + 1, order + 1))
        steps[1:, 1:] = (i - 1.0 - factor * j) / i
        steps[0] = 1.0
        return np.cumprod(steps, axis=0)

    left, right = table(factor), table(1.0)
    matrix = np.zeros_like(left)
    for k in range(order + 1):
        matrix += left[:, k, None] * right[k]
    return matrix


class ExplicitEquations:
    """The equations xdot = f(t, x) of a step."""

    #: Factors may be rounded: see ``_Newton.renew``. Rates of convergence count as this at most.
    may_round, slowest = True, 1.0

    def __init__(self, kernels: Kernels, setup: Setup, x: np.ndarray, args: Args) -> None:
        single = kernels.single
        if not isinstance(single, Stepwise):
            single = kernels.keep("stepwise", lambda: Stepwise(kernels))
        self.f, self.args, self.evaluations = single.f, args, 0
        self.form = single.jacobian(setup.t_start, x, args)

    def slope(self, t: float, x: np.ndarray) -> np.ndarray:
        """Return f(t, x)."""
        self.evaluations += 1
        return self.f(float(t), x, self.args)

    def start(self, setup: Setup, x: np.ndarray, sign: float) -> tuple[np.ndarray, float]:
        """Return the derivative at the start and the size of a first step."""
        t = float(setup.t_start)
        slope = self.slope(t, x)
        with np.errstate(all="ignore"):
            return slope, float(initial_step(self.slope, t, x, slope, sign, setup, 1))

    def defect(
        self, t: float, x: np.ndarray, d: np.ndarray, psi: np.ndarray, c: float
    ) -> np.ndarray:
        """Return what the correction d leaves of the equations, times -c."""
        return c * self.slope(t, x) - psi - d

    @staticmethod
    def next_rate(before: float, measured: float | None) -> float:
        """Return the rate of convergence after an iteration; in the first none is measured."""
        return before if measured is None else max(0.3 * before, measured)

    def linearize(self, t: float, x: np.ndarray, xdot: np.ndarray) -> SparseJacobian:
        """Return df/dx."""
        return self.form.at(t, x, self.args)[1]

    def factorize(self, jacobian: SparseJacobian, c: float, rounded: bool) -> Solver:
        """Return r -> (I - c df/dx)^-1 r."""
        return jacobian.solver(1.0, -c, rounded)


class ImplicitEquations:
    """The equations F(t, x, xdot) = 0 of a step, from a consistent start.

    Parameters
    ----------
    residual
        F(t, x, xdot), (n,).
    pencil
        ``pencil(t, x, xdot)`` is dF/dxdot and dF/dx.
    xdot, xddot
        First and second derivatives of the state at the start, (n,).
    """

    may_round, slowest = False, np.inf

    def __init__(
        self,
        residual: Callable[[float, np.ndarray, np.ndarray], np.ndarray],
        pencil: Callable[[float, np.ndarray, np.ndarray], SparsePencil],
        xdot: np.ndarray,
        xddot: np.ndarray,
    ) -> None:
        self.residual, self.linearize = residual, pencil
        self.xdot, self.xddot, self.evaluations = xdot, xddot, 0

    def start(self, setup: Setup, x: np.ndarray, sign: float) -> tuple[np.ndarray, float]:
        """Return the derivative at the start and the size of a first step."""
        # The error of the first step, which has order 1, is about a third of h^2 xddot.
        scale = setup.atol + setup.rtol * np.abs(x)
        bend = float(rms_norm(self.xddot, scale))
        most = FIRST * abs(float(setup.t_end) - float(setup.t_start))
        return self.xdot, min(most, float(np.sqrt(0.5 / max(bend, 1e-300))))

    def defect(
        self, t: float, x: np.ndarray, d: np.ndarray, psi: np.ndarray, c: float
    ) -> np.ndarray:
        """Return what the correction d leaves of the equations, times -c."""
        self.evaluations += 1
        return -c * self.residual(t, x, (psi + d) / c)

    @staticmethod
    def next_rate(before: float, measured: float | None) -> float:
        """Return how much of a change is left to be made, after an iteration.

        Nothing is remembered of earlier steps: where an algebraic equation has become much less
        steep than its old derivative, changes are far too small and look like convergence, and
        its error is there in the next step, however short that is.
        """
        if measured is None:
            return UNSURE
        return measured / (1.0 - measured) if measured < 1.0 else np.inf

    def factorize(self, pencil: SparsePencil, c: float, rounded: bool) -> Solver:
        """Return r -> (dF/dxdot + c dF/dx)^-1 r."""
        return pencil.solver(c)


class _Newton:
    """Solves for corrections, and decides when factors and Jacobians are made anew."""

    def __init__(self, equations: Any, size: int) -> None:
        self.equations = equations
        self.jacobian: Any = None
        self.solver: Any = None
        self.c = 0.0
        self.rate = 1.0
        #: Whether factors may be rounded to single precision, and whether the present ones are.
        self.may_round, self.rounded = equations.may_round and size >= LARGE, False
        #: Whether all was finite in the last iteration.
        self.finite = True
        #: Steps since the Jacobian was computed; whether it belongs to this very step.
        self.age, self.fresh = 0, False
        self.jacobians = self.factorisations = 0

    def renew(self, t: float, guess: np.ndarray, psi: np.ndarray, c: float, jacobian: bool) -> None:
        """Make new factors for c, of a new Jacobian if asked for or if the one there is old."""
        if jacobian or self.jacobian is None or self.age > OLD:
            self.jacobian = self.equations.linearize(t, guess, psi / c)
            self.jacobians += 1
            self.age, self.fresh = 0, True
        # Rounding changes I - c J by this much at most. Where J does nothing, only I is left: it
        # must not be lost, or corrections there are far too small and look like convergence.
        rounding = abs(c) * self.jacobian.norm() * float(np.finfo(np.float32).eps)
        self.rounded = self.may_round and bool(rounding <= ROUNDED)
        self.solver = self.equations.factorize(self.jacobian, c, self.rounded)
        self.factorisations += 1
        self.c, self.rate = c, 1.0

    def correction(
        self, t: float, guess: np.ndarray, psi: np.ndarray, c: float, scale: Array, allowed: float
    ) -> np.ndarray | None:
        """Return d with guess + d = the new state, or None where no iteration converged."""
        if self.solver is None or abs(c / self.c - 1.0) > KEPT:
            self.renew(t, guess, psi, c, jacobian=False)
        d = self._iterate(t, guess, psi, c, scale, allowed)
        while d is None:
            if not np.isfinite(self.jacobian.norm()):
                # A shorter step may stay where there is one.
                self.solver = self.jacobian = None
                return None
            if self.fresh and self.c == c and not self.rounded:
                return None
            # From now on factors are exact, should it be their rounding that is in the way.
            self.may_round = self.may_round and not (self.fresh and self.c == c and self.rounded)
            self.renew(t, guess, psi, c, jacobian=not self.fresh)
            d = self._iterate(t, guess, psi, c, scale, allowed)
        return d

    def _iterate(
        self, t: float, guess: np.ndarray, psi: np.ndarray, c: float, scale: Array, allowed: float
    ) -> np.ndarray | None:
        d, x, before = np.zeros_like(guess), guess, 0.0
        # Factors of another c: the correction that is best for slow and fast parts alike.
        part = 2.0 / (1.0 + c / self.c)
        for m in range(ITERATIONS):
            change = self.solver(self.equations.defect(t, x, d, psi, c))
            if part != 1.0:
                change = part * change
            d = d + change
            x = guess + d
            size = float(rms_norm(change, scale))
            self.finite = bool(np.isfinite(size))
            if not self.finite:
                return None
            self.rate = self.equations.next_rate(self.rate, size / before if m else None)
            if size * min(self.equations.slowest, self.rate) <= allowed:
                return d
            if m and size > DIVERGED * before:
                return None
            before = size
        return None


class _March:
    """Steps through the span: where it stands, with which differences."""

    def __init__(self, equations: ExplicitEquations | ImplicitEquations, samples: Samples) -> None:
        setup, x = samples.setup, samples.x0
        self.setup, self.newton, self.most = setup, _Newton(equations, x.size), samples.max_steps
        self.t, self.sign = float(setup.t_start), samples.sign
        self.status, self.accepted, self.rejected = Status.RUNNING, 0, 0
        #: Whether states between steps will be asked for.
        self.keeps = samples.times is not None
        slope, size = equations.start(setup, x, self.sign)
        if not np.isfinite(slope).all():
            self.status = Status.NON_FINITE
        elif self.t == setup.t_end:
            self.status = Status.FINISHED
        self.order, self.equal = 1, 0
        size = min(float(setup.h) or size, float(setup.max_step), abs(float(setup.t_end) - self.t))
        self.h = self.sign * size
        self.D = np.zeros((MOST + 3, x.size))
        self.D[0], self.D[1] = x, self.h * slope

    def _resize(self, factor: float) -> None:
        """Change the step, and the differences to those of the new one."""
        k, new = self.order, []
        matrix = _rescaling(k, factor)
        for i in range(k + 1):
            total = matrix[0, i] * self.D[0]
            for j in range(1, k + 1):
                total = total + matrix[j, i] * self.D[j]
            new.append(total)
        self.D[: k + 1] = new
        self.h *= factor
        self.equal = 0

    def step(self) -> bool:
        """Make a step; return False where it could not be made, which the status explains."""
        newton, setup, tried = self.newton, self.setup, False
        newton.age, newton.fresh = newton.age + 1, False
        while self.status == Status.RUNNING:
            self._aim()
            k, D = self.order, self.D
            t = float(setup.t_end) if self.last else self.t + self.h
            guess = np.add.reduce(D[: k + 1])
            psi = np.add.reduce(_GAMMA[1 : k + 1, None] * D[1 : k + 1]) / _ALPHA[k]
            scale = setup.atol + setup.rtol * np.abs(guess)
            allowed = CONVERGED / _ERROR[k]
            d = newton.correction(t, guess, psi, self.h / _ALPHA[k], scale, allowed)
            if d is None:
                self._refuse(0.5 if not tried else 0.25)
                tried = True
                continue
            x = guess + d
            scale = setup.atol + setup.rtol * np.abs(x)
            error = float(rms_norm(_ERROR[k] * d, scale))
            if error <= 1.0:
                self._accept(t, d, error, scale)
                return True
            factor = SAFETY * float(_root(np.float64(error), np.float64(k)))
            self._refuse(max(SHRINK, min(SAFETY, factor)) if np.isfinite(error) else SHRINK)
        return False

    def _aim(self) -> None:
        """Shorten a step that would go beyond the end; stretch one that nearly reaches it."""
        left = float(self.setup.t_end) - self.t
        self.last = 1.001 * abs(self.h) >= abs(left)
        if self.last and self.h != left:
            self._resize(left / self.h)
            self.h = left

    def _refuse(self, factor: float) -> None:
        self.rejected += 1
        self._resize(factor)
        least = smallest_step(self.t, abs(self.setup.t_end - self.setup.t_start))
        if abs(self.h) < least or self.t + self.h == self.t:
            self.status = Status.STEP_UNDERFLOW if self.newton.finite else Status.NON_FINITE
        elif self.accepted + self.rejected >= self.most:
            self.status = Status.TOO_MANY_STEPS

    def _accept(self, t: float, d: np.ndarray, error: float, scale: np.ndarray) -> None:
        k, D = self.order, self.D
        self.t, self.accepted, self.equal = t, self.accepted + 1, self.equal + 1
        D[k + 2] = d - D[k + 1]
        D[k + 1] = d
        for i in reversed(range(k + 1)):
            D[i] += D[i + 1]
        # The polynomial through this step and those before it, for what lies between.
        self.made, self.polynomial = self.h, D[: k + 1].copy() if self.keeps else D
        if self.last:
            self.status = Status.FINISHED
        elif self.accepted + self.rejected >= self.most:
            self.status = Status.TOO_MANY_STEPS
        elif self.equal > k:
            self._choose(error, scale)

    def _choose(self, error: float, scale: np.ndarray) -> None:
        """Choose the order whose step is longest, and that step if it is worth a change."""
        k, D = self.order, self.D
        errors = {k: error}
        if k > 1:
            errors[k - 1] = float(rms_norm(_ERROR[k - 1] * D[k], scale))
        if k < MOST:
            errors[k + 1] = float(rms_norm(_ERROR[k + 1] * D[k + 2], scale))
        factors = {
            order: float(_root(np.float64(size), np.float64(order)))
            for order, size in errors.items()
        }
        best = max(factors, key=lambda order: (factors[order], -order))
        factor = min(GROW, SAFETY * factors[best])
        factor = min(factor, float(self.setup.max_step) / abs(self.h))
        if factor >= WORTH or factor < SAFETY:
            self.order = best
            self._resize(factor)

    def at(self, times: np.ndarray) -> np.ndarray:
        """Return the states at times within the last step."""
        s = (times - self.t) / self.made
        states = np.repeat(self.polynomial[:1], len(times), axis=0)
        weight = np.ones(len(times))
        for j in range(1, len(self.polynomial)):
            weight = weight * ((s + (j - 1.0)) / j)
            states = states + weight[:, None] * self.polynomial[j]
        return states


def solve_equations(equations: ExplicitEquations | ImplicitEquations, samples: Samples) -> Result:
    """Solve for the samples that are asked for."""
    march, start = _March(equations, samples), samples.x0
    samples.add(march.t, start, lambda times: [start] * len(times))
    try:
        with np.errstate(all="ignore"):
            while march.status == Status.RUNNING:
                if march.step():
                    samples.add(march.t, march.D[0], march.at)
                samples.report(march.t)
    except KeyboardInterrupt:
        march.status = Status.INTERRUPTED
    newton = march.newton
    stats = {
        "method": "bdf",
        "steps": march.accepted,
        "rejected": march.rejected,
        "evaluations": equations.evaluations,
        "jacobians": newton.jacobians,
        "factorisations": newton.factorisations,
    }
    return samples.result(march.status, march.t, march.rejected, stats)


def _drive(kernels: Kernels, args: Args, samples: Samples) -> Result:
    equations = ExplicitEquations(kernels, samples.setup, samples.x0, args)
    return solve_equations(equations, samples)


BDF = register(method_outside("bdf", _drive))
