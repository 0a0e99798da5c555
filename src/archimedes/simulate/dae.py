"""``solve_dae``: differential-algebraic equations F(t, x, xdot) = 0, through SUNDIALS' IDA.

Which states are algebraic is read off the recorded residual: those whose derivative it does not
use. A start must satisfy the equations; derivatives that are not given are computed from them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import ArchimedesError
from archimedes.function import jac, sparsity
from archimedes.simulate import checks
from archimedes.simulate.fingerprints import fingerprint
from archimedes.simulate.kernels import native
from archimedes.simulate.layout import Layout, as_state, layout_of
from archimedes.simulate.models import ATOL, MAX_STEPS, RTOL, Options, setup_of
from archimedes.simulate.progress import monitor_of
from archimedes.simulate.statuses import message_of
from archimedes.simulate.sundials import drive_residual
from archimedes.simulate.trajectory import Trajectory

__all__ = ["InconsistentStart", "solve_dae"]

#: A start is consistent if a Newton step from it moves no number by more than this, relative to
#: its size (or to 1 where it is small).
CONSISTENT = 1e-6
NEWTON_STEPS = 20


class InconsistentStart(ArchimedesError, ValueError):
    """The initial values of a DAE do not satisfy its equations."""


class _Functions:
    """F on flat vectors with its derivatives, compiled."""

    def __init__(self, func: Callable[..., Any], layout: Layout) -> None:

        def flat(t: Any, x: Any, xdot: Any, args: Any) -> Any:
            result = func(t, layout.unpack(x), layout.unpack(xdot), *args)
            if layout.is_array and isinstance(result, (list, tuple)):
                result = np.stack(result)
            vector, _ = tree.ravel(result)
            if vector.shape != (layout.size,):
                raise ValueError(
                    f"the residual has {vector.size} equations for the {layout.size} numbers of "
                    "the state: a DAE needs as many"
                )
            return vector

        def newton(t: Any, x: Any, xdot: Any, c: Any, args: Any) -> Any:
            by_x, by_xdot = jac(flat, argnums=(1, 2))(t, x, xdot, args)
            return by_x + c * by_xdot

        self.residual = native(flat, "residual")
        self.newton = native(newton, "residual_jacobian")
        self.jacobians = native(jac(flat, argnums=(1, 2)), "residual_jacobians")


#: Kept between calls, the oldest is forgotten.
_kept: OrderedDict[Hashable, _Functions] = OrderedDict()
KEPT = 32


def _functions(func: Callable[..., Any], layout: Layout) -> _Functions:
    key = (fingerprint(func), layout)
    if key not in _kept:
        _kept[key] = _Functions(func, layout)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return _kept[key]


class _Residual:
    """F and its derivatives for given arguments."""

    def __init__(self, func: Callable[..., Any], layout: Layout, args: tuple[Any, ...]) -> None:
        self.functions = _functions(func, layout)
        self.args = args

    def __call__(self, t: float, x: np.ndarray, xdot: np.ndarray) -> np.ndarray:
        return self.functions.residual(t, x, xdot, self.args)

    def jacobian(self, t: float, x: np.ndarray, xdot: np.ndarray, c: float) -> np.ndarray:
        return self.functions.newton(t, x, xdot, c, self.args)

    def jacobians(self, t: float, x: Any, xdot: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.functions.jacobians(t, x, xdot, self.args)

    def algebraic(self, t: float, x: np.ndarray) -> np.ndarray:
        """Return which states' derivatives F does not use."""
        flat = self.functions.residual
        pattern = sparsity(flat, argnums=2)(t, x, np.zeros_like(x), self.args)
        return np.logical_not(pattern.toarray().any(axis=0))


def _solved(residual: _Residual, t: float, x: Any, xdot: Any, free: Any) -> tuple[Any, Any]:
    """Solve F = 0 for the derivatives of differential states and for the ``free`` states.

    Gauss-Newton, as there may be more equations than unknowns; returns x and xdot.
    """
    algebraic = residual.algebraic(t, x)
    for _ in range(NEWTON_STEPS):
        by_x, by_xdot = residual.jacobians(t, x, xdot)
        unknown = np.concatenate([by_xdot[:, ~algebraic], by_x[:, free]], axis=1)
        value = residual(t, x, xdot)
        if not (np.isfinite(value).all() and np.isfinite(unknown).all()):
            raise InconsistentStart(
                f"solve_dae: the residual is nan or infinite at the start: F = {value}"
            )
        step = np.linalg.lstsq(unknown, -value, rcond=None)[0]
        count = int((~algebraic).sum())
        x, xdot = x.copy(), xdot.copy()
        xdot[~algebraic] += step[:count]
        x[free] += step[count:]
        if np.all(
            np.abs(step) <= 1e-13 * (1.0 + np.abs(np.concatenate([xdot[~algebraic], x[free]])))
        ):
            break
    return x, xdot


def _check_consistent(residual: _Residual, t: float, x: Any, xdot: Any, correct: bool) -> None:
    """Raise where F is not zero, judged by how far Newton's method would move the state."""
    value = residual(t, x, xdot)
    by_x, by_xdot = residual.jacobians(t, x, xdot)
    size = np.abs(by_x) @ (1.0 + np.abs(x)) + np.abs(by_xdot) @ (1.0 + np.abs(xdot))
    part = np.abs(value) / np.where(size > 0.0, size, 1.0)
    worst = int(np.argmax(np.where(np.isfinite(part), part, np.inf)))
    if not part[worst] <= CONSISTENT:
        remedy = (
            "no algebraic values near these satisfy it: give a better x0"
            if correct
            else "give values that satisfy it, or write correct=True to have algebraic states and "
            "derivatives computed from the others"
        )
        raise InconsistentStart(
            f"solve_dae: the start is inconsistent: equation {worst} of the residual is "
            f"{value[worst]:.6g}, not 0, at t = {t:.17g}: {remedy}"
        )


def solve_dae(
    residual: Callable[..., Any],
    x0: Any,
    t_span: Sequence[float],
    xdot0: Any = None,
    *,
    t_eval: Any = None,
    args: Any = (),
    rtol: Any = RTOL,
    atol: Any = ATOL,
    correct: bool = False,
    first_step: float | None = None,
    max_step: float = np.inf,
    max_steps: int | None = None,
    progress: bool | Callable[[float, float], None] | None = None,
) -> Trajectory:
    """Solve the index-1 equations residual(t, x, xdot, *args) = 0 over ``t_span``.

    ``x`` and ``xdot`` are arrays or trees like ``x0``; the residual is a tree or array with as
    many numbers. A system with a mass matrix is ``M @ xdot - f(t, x)``. States whose derivative
    the residual does not use are algebraic.

    Derivatives at the start are computed if ``xdot0`` is not given. A start that does not satisfy
    the equations raises :class:`InconsistentStart`; ``correct=True`` keeps the differential states
    of ``x0`` and computes the algebraic ones (from their values as a first guess). The Trajectory
    is that of ``solve_ode``, without dense output.

    >>> def circle(t, x, xdot):
    ...     return np.stack([xdot[0] + x[1], x[0] ** 2 + x[1] ** 2 - 1.0])
    >>> traj = solve_dae(circle, [0.0, 1.0], (0.0, 1.0))
    >>> bool(abs(traj.x[-1][0] + np.sin(1.0)) < 1e-6)
    True
    """
    start, end = checks.check_span(t_span)
    state = as_state(x0)
    layout = layout_of(state)
    checks.check_state(state, layout)
    given = checks.check_args(args)
    options = Options(rtol, atol, None, first_step, max_step, max_steps, project=False)
    setup = setup_of(layout, options, start, end)
    times = None if t_eval is None else checks.check_times(t_eval, start, end)
    limit = MAX_STEPS if max_steps is None else int(max_steps)

    equations = _Residual(residual, layout, given)
    x = layout.pack(state).astype(np.float64)
    algebraic = equations.algebraic(start, x)
    xdot = _derivatives(xdot0, layout)
    if xdot0 is None or correct:
        x, xdot = _solved(equations, start, x, xdot, algebraic & correct)
    _check_consistent(equations, start, x, xdot, correct)

    with monitor_of(progress) as monitor:
        result = drive_residual(
            equations, equations.jacobian, algebraic, setup, x, xdot, times, limit, monitor
        )
    return Trajectory(
        result.t,
        layout.unpack(result.x, (len(result.t),)),
        status=result.status,
        message=message_of(result.status, float(result.run.t), limit, stiff=True),
        stats=result.stats,
    )


def _derivatives(xdot0: Any, layout: Layout) -> np.ndarray:
    if xdot0 is None:
        return np.zeros(layout.size)
    state = as_state(xdot0)
    own = layout_of(state)
    if own != layout:
        raise ValueError(
            f"xdot0 must have the structure and shapes of x0: it has {own.shapes}, x0 has "
            f"{layout.shapes}"
        )
    return layout.pack(state).astype(np.float64)
