"""A run: where a solve stands, and what it is made of; how it begins.

A run is a struct, so it travels through kernels, lanes and recordings, and can be stopped and
taken up again anywhere. Its ``status`` is RUNNING until the end of the span is reached or
something failed. ``trial_step.py`` moves it on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import stop_gradient
from archimedes.lazy_dataclasses import lazy_dataclass
from archimedes.simulate.methods.method_table import Derivative, Method
from archimedes.simulate.methods.stiffness import Suspicion
from archimedes.simulate.problem.state_layout import Layout
from archimedes.simulate.statuses import FINISHED, NON_FINITE, RUNNING
from archimedes.simulate.stepping.manifold import Projection
from archimedes.simulate.stepping.step_size import SMALLEST_LOG, initial_step
from archimedes.tree import struct

if TYPE_CHECKING:
    from archimedes.simulate.events.event import Watch
    from archimedes.simulate.problem.sampled_parts import Clock

__all__ = ["Plan", "Run", "Setup", "begin_run", "direction_of"]


@lazy_dataclass(frozen=True)
class Plan:
    """All that is fixed when a solve is recorded."""

    func: Callable[..., Any]
    layout: Layout
    method: Method
    project: Projection | None = None
    adaptive: bool = True
    events: Watch | None = None
    clock: Clock | None = None

    arguments: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
    #: What ``derivative`` returns, where that is something else than the function as it is.
    bound: Callable[[tuple[Any, ...]], Derivative] | None = None

    def derivative(self, args: tuple[Any, ...]) -> Derivative:
        """Return f(t, x) on flat vectors for these arguments."""
        if self.bound is not None:
            return self.bound(args)

        def f(t: Any, x: Any) -> Any:
            found = self.func(t, self.layout.unpack(x), *args)
            return self.layout.pack_derivative(found, self.func)

        return f


@struct
class Setup:
    """Numbers that a solve is given: they may differ between calls and between lanes.

    ``h`` is the fixed step, or a wish for the first one (0: to be chosen); ``pause`` the number of
    trial steps at which the loops return.
    """

    t_start: Any
    t_end: Any
    h: Any
    max_step: Any
    rtol: Any
    atol: Any
    pause: Any


@struct
class Run:
    """Where a solve stands: at time t with state x; the step before began at t_old, x_old."""

    t: Any
    x: Any
    h: Any
    memory: Any
    log_error: Any
    again: Any
    status: Any
    accepted: Any
    rejected: Any
    t_old: Any
    x_old: Any
    dense: Any
    signals: Any
    #: What speaks for a stiff system; None for methods that do not look out for it.
    suspicion: Any


def direction_of(setup: Setup) -> Any:
    """Return 1 where time goes forward, -1 where it goes back."""
    return np.where(setup.t_end >= setup.t_start, 1.0, -1.0)


def begin_run(plan: Plan, setup: Setup, t: Any, x: Any, args: tuple[Any, ...], dense: bool) -> Run:
    """Return the run that stands at t with state x; used at the start and after resets."""
    f, method = plan.derivative(args), plan.method
    memory = method.start(f, t, x)
    f0 = f(t, x)
    if plan.adaptive:
        assert method.error_order is not None
        guess = initial_step(
            f, t, x, f0, direction_of(setup), setup.atol, setup.rtol, method.error_order
        )
        # A guess that is lost in the rounding of t is too careful: the step's error will tell.
        guess = np.maximum(guess, float(np.finfo(np.float64).eps) * np.abs(t))
        size = np.where(setup.h > 0.0, setup.h, guess)
        size = np.minimum(np.minimum(size, setup.max_step), np.abs(setup.t_end - t))
    else:
        size = setup.h
    fine = np.all(np.isfinite(f0)) & np.all(np.isfinite(x))
    degree = method.dense_degree
    return Run(
        t=t * 1.0,
        x=x,
        h=stop_gradient(direction_of(setup) * size),
        memory=memory,
        log_error=SMALLEST_LOG + 0.0 * stop_gradient(size),
        again=fine & False,
        status=np.where(fine, np.where(t == setup.t_end, FINISHED, RUNNING), NON_FINITE),
        accepted=np.where(fine, 0, 0),
        rejected=np.where(fine, 0, 0),
        t_old=t * 1.0,
        x_old=x,
        dense=np.zeros((degree, plan.layout.size)) if dense else None,
        signals=(
            None
            if plan.events is None
            else stop_gradient(plan.events.start(t, x, f0, direction_of(setup), args))
        ),
        suspicion=_unsuspected(fine) if plan.adaptive and method.stability else None,
    )


def _unsuspected(fine: Any) -> Suspicion:
    return Suspicion(np.where(fine, 0, 0), np.where(fine, 0, 0))
