"""``solve_ode``: a simulation with all there is to know about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.registry import asked_for, check_backend
from archimedes.collecting import rarely
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.progress import monitor_of
from archimedes.simulate.solves.initial_values import Problem, prepare
from archimedes.simulate.solves.prepared_model import ATOL, RTOL, Options
from archimedes.simulate.solves.prepared_solves import request_of
from archimedes.simulate.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from archimedes.simulate.events.event import EventLike
    from archimedes.simulate.problem.sampled_parts import Sampled
    from archimedes.simulate.solves.hybrid import Hybrid

__all__ = ["solve_ode"]


def solve_ode(
    func: Callable[..., Any],
    t_span: Sequence[float],
    x0: Any,
    *,
    method: str | Method | None = None,
    t_eval: Any = None,
    args: Any = (),
    rtol: Any = RTOL,
    atol: Any = ATOL,
    dt: float | None = None,
    first_step: float | None = None,
    max_step: float = np.inf,
    max_steps: int | None = None,
    project: bool = True,
    events: EventLike | Sequence[EventLike] | None = None,
    inputs: Callable[[Any], Any] | None = None,
    sampled: Sampled | Sequence[Sampled] | None = None,
    dense: bool | None = None,
    static_argnames: str | Sequence[str] | None = None,
    in_axes: Any = None,
    threads: int | None = None,
    progress: bool | Callable[[float, float], None] | None = None,
    backend: str | None = None,
) -> Trajectory:
    """Solve ``dx/dt = func(t, x, *args)`` from ``x0`` over ``t_span`` = (start, end).

    ``x0`` is a number, an array or any tree of them; func returns a derivative of the same
    structure. The Trajectory has time as the leading axis of every leaf: at ``t_eval`` or, without
    it, at every step. ``end`` may lie before ``start``. Steps are chosen to keep the error of each
    below ``atol + rtol |x|`` (numbers, or trees like the state); ``dt`` gives fixed steps instead.
    Structs in the state with a ``normalize()`` method, such as quaternions, are normalised after
    each step, unless ``project=False``. ``dense=True`` keeps the interpolants also with t_eval, so
    that the Trajectory can be called. ``progress`` is True for a bar, or a function of the part
    done (0 to 1) and the time; ``backend`` what runs the solve, as in :func:`compile`.

    ``in_axes`` makes it a batch, computed in lanes and ``threads``: for x0 and for each of args
    the axis along which the instances lie (None: shared by all), or one number for everything, as
    in :func:`vmap`. The Trajectory then has the instances along its first axis, each with the same
    bits as alone.

    ``events``: what to watch for, one or several, each a function ``g(t, x, *args)`` or an
    :class:`Event`; what happened is in the Trajectory's ``events``. ``inputs``, a function u(t) or
    an :class:`InputSeries`, makes it ``func(t, x, u, *args)``; ``sampled``, one :class:`Sampled`
    part or a list of them, adds their memories as an argument after that (to event functions and
    resets too). Both are in the Trajectory as ``u``.

    A solve that fails or is interrupted (Ctrl-C) returns the part computed, with ``status`` < 0
    and ``message``.

    >>> traj = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0)
    >>> traj.success, round(float(traj.x[-1]), 8)
    (True, 0.36787944)
    """
    argument_checks.refuse_traced(t_span, x0, args, t_eval)
    usual = events is None and inputs is None and sampled is None and in_axes is None
    request = None
    if usual and not (progress or static_argnames):
        steps = (dt, first_step, max_step, max_steps, project)
        settings = (method, rtol, atol, asked_for(backend), *steps)
        request = request_of(func, t_span, x0, args, t_eval, False, settings)
        prepared = None if request is None else request.prepared
        if request is not None and prepared is not None and (t_eval is None or not dense):
            ready = prepared.solve(request, t_eval)
            if ready is not None:
                return prepared.trajectory(ready)
    options = Options(rtol, atol, dt, first_step, max_step, max_steps, project, events)
    options.backend = check_backend("solve_ode", backend)
    ask = (t_eval, dense, threads, progress)
    if inputs is None and sampled is None:
        given = prepare(func, t_span, x0, method, args, static_argnames, options, in_axes)
        if request is not None:
            request.remember(given)
        return _solved(given, *ask)
    if static_argnames:
        raise ValueError("static_argnames cannot be combined with inputs or sampled")
    from archimedes.simulate.solves.hybrid import hybrid_of

    hybrid = hybrid_of(func, inputs, sampled, *argument_checks.check_span(t_span, x0))
    given = _with_parts(hybrid, t_span, x0, method, args, options, in_axes)
    return hybrid.shown(_solved(given, *ask))


def _with_parts(
    hybrid: Hybrid,
    t_span: Any,
    x0: Any,
    method: str | Method | None,
    args: Any,
    options: Options,
    in_axes: Any,
) -> Problem:
    """Prepare the solve of a model with inputs or sampled parts, by its larger state."""
    given = argument_checks.check_args(args)
    start, _ = argument_checks.check_span(t_span, x0)
    begun = hybrid.begin(start, x0, given, in_axes)
    options.clock, options.events = hybrid.acting, hybrid.events(options.events)
    if in_axes is not None:
        axes = (in_axes,) * (1 + len(given)) if isinstance(in_axes, int) else tuple(in_axes)
        in_axes = (0, *axes[1:])
    return prepare(hybrid.dynamics, t_span, begun, method, given, None, options, in_axes)


def _solved(
    problem: Problem, t_eval: Any, dense: bool | None, threads: int | None, progress: Any
) -> Trajectory:
    """Solve for what a user asked for."""
    times = None if t_eval is None else problem.times(t_eval)
    # One rest of the collector for all that a first solve makes.
    with rarely, monitor_of(progress) as monitor:
        return problem.solve(times, bool(dense), monitor, threads=threads)
