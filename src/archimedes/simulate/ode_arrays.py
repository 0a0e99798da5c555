"""``odeint`` and ``integrator``: solutions as plain arrays, inside recordings too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.backends.registry import asked_for, check_backend
from archimedes.checks import is_traced
from archimedes.function import Compiled, stop_gradient, vmap
from archimedes.function.derivatives.flows import moved
from archimedes.function.former_options import former_options
from archimedes.function.region_bodies import any_traced
from archimedes.simulate.events.event import EventLike
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.problem.inputs import Sampled
from archimedes.simulate.problem.state_layout import Layout, as_state, layout_of
from archimedes.simulate.progress import monitor_of
from archimedes.simulate.solves.bound_solves import Solved
from archimedes.simulate.solves.hybrid import Hybrid, hybrid_of
from archimedes.simulate.solves.initial_value_problem import (
    ATOL,
    DEFAULT_METHOD,
    RTOL,
    Options,
    find_method,
    model_of,
    prepare,
    setup_of,
    step_limit,
)
from archimedes.simulate.solves.prepared_solves import Prepared, Request, request_of
from archimedes.simulate.statuses import (
    EVENT,
    FINISHED,
    INTERRUPTED,
    RUNNING,
    TOO_MANY_STEPS,
    UNORDERED,
    SimulationError,
    SolveInfo,
)
from archimedes.simulate.stepping.dense_output import known
from archimedes.simulate.stepping.solve_loops import FOREVER, go_to_end, go_to_times
from archimedes.simulate.stepping.trial_step import Plan, Run, Setup, begin_run, direction_of

__all__ = ["integrator", "odeint"]

#: Trial steps that a recorded solve may make between two outputs.
RECORDED = 10_000


def odeint(
    func: Callable[..., Any],
    t_span: Sequence[Any],
    x0: Any,
    method: str | Method | None = None,
    t_eval: Any = None,
    atol: Any = ATOL,
    rtol: Any = RTOL,
    args: Any = None,
    static_argnames: str | Sequence[str] = (),
    *,
    dt: float | None = None,
    first_step: float | None = None,
    max_step: float = np.inf,
    max_steps: int | None = None,
    project: bool = True,
    events: EventLike | Sequence[EventLike] | None = None,
    inputs: Callable[[Any], Any] | None = None,
    sampled: Sampled | Sequence[Sampled] | None = None,
    progress: bool | Callable[[float, float], None] | None = None,
    full_output: bool = False,
    backend: str | None = None,
    **former: Any,
) -> Any:
    """Solve ``dx/dt = func(t, x, *args)`` and return the states.

    Inside a compiled or differentiated function the solution becomes part of the program. Its
    derivatives exist to any order, forward and reverse. With respect to `x0` and `args` they are
    the derivatives of the steps taken, with the step sizes held constant; with respect to the times
    in `t_span`, `t_eval` and of events they are those of the exact solution through the computed
    states.

    Parameters
    ----------
    func : callable
        The model, as in :func:`solve_ode`.
    t_span : (float, float)
        Start and end time. The end may lie before the start.
    x0 : float, array or tree
        State at the start.
    method : str, optional
        Name of the integration method, a key of `arc.simulate.METHODS`; ``"dop853"`` by default.
    t_eval : array_like (m,), optional
        Times at which the state is wanted. By default only the final state is returned.
    atol, rtol : float or tree, optional
        Absolute and relative tolerance, as in :func:`solve_ode`.
    args : tuple, optional
        Further arguments of `func`. Anything but a tuple or list is passed as the only one.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program.
    dt : float, optional
        Step size of a fixed-step solution.
    first_step, max_step : float, optional
        Step size that is tried first, and largest step size allowed.
    max_steps : int, optional
        Largest number of steps allowed; inside a compiled function, between two outputs. The
        default there is the number of fixed steps if it is known, else 10,000.
    project : bool, optional
        Normalize quaternions and other structs with a method ``normalize()`` after each step.
    events : callable, Event or sequence of them, optional
        Zero crossings to locate, as in :func:`solve_ode`.
    inputs : callable or InputSeries, optional
        Input ``u(t)`` of the model.
    sampled : Sampled or sequence of Sampled, optional
        Parts that act at sampling times of their own.
    progress : bool or callable, optional
        True shows a progress bar. A function is called with the fraction done (0 to 1) and the
        time.
    full_output : bool, optional
        Return a pair, the states and a :class:`SolveInfo`, and do not raise if the solver fails.
        This is how to recognise a failure inside a compiled function.
    backend : str, optional
        What runs the solution, as in :func:`compile`.
    **former
        Options of the original package that have no meaning here. They are accepted with a warning.

    Returns
    -------
    array or tree
        The final state. With `t_eval`, an array (n, m) for a state of shape (n,), and for a tree
        the tree with time as the leading axis of each leaf. States that were not reached, after a
        terminal event or a failure, are nan.

    Raises
    ------
    SimulationError
        The solver failed. The error holds the part computed. Inside a compiled function, where
        nothing can be raised, the states and their derivatives are nan instead.

    Examples
    --------
    >>> odeint(lambda t, x: np.array([x[1], -x[0]]), (0.0, np.pi), [0.0, 1.0]).round(6) + 0.0
    array([ 0., -1.])
    >>> end, info = odeint(lambda t, x: x**2, (0.0, 2.0), 1.0, full_output=True)
    >>> float(end), bool(info.success)
    (nan, False)
    """
    if former:
        former_options("odeint", former)
    request = None
    if events is None and inputs is None and sampled is None and not (progress or static_argnames):
        steps = (dt, first_step, max_step, max_steps, project)
        settings = (method, rtol, atol, asked_for(backend), *steps)
        request = request_of(func, t_span, x0, args, t_eval, True, settings)
        prepared = None if request is None else request.prepared
        if request is not None and prepared is not None and not full_output:
            ready = prepared.solve(request, t_eval)
            if ready is not None:
                return _states(prepared, ready, t_eval is None)
    options = Options(rtol, atol, dt, first_step, max_step, max_steps, project, events)
    options.backend = check_backend("odeint", backend)
    ask = _Ask(method, t_eval, static_argnames, options, progress, not full_output, request)
    if inputs is None and sampled is None:
        found, info = _solved(func, t_span, x0, args, ask)
    else:
        hybrid = hybrid_of(func, inputs, sampled, *argument_checks.check_span(t_span, x0))
        found, info = _with_parts(hybrid, t_span, x0, args, ask)
    return (found, info) if full_output else found


@dataclass(frozen=True)
class _Ask:
    """How to solve, and what is asked for."""

    method: str | Method | None
    t_eval: Any
    static_argnames: str | Sequence[str]
    options: Options
    progress: Any
    raises: bool
    #: The same, where it can be kept ready for the next time.
    request: Request | None = None


def _with_parts(
    hybrid: Hybrid, t_span: Any, x0: Any, args: Any, ask: _Ask
) -> tuple[Any, SolveInfo]:
    """Solve a model with inputs or sampled parts, by its larger state."""
    start, end = argument_checks.check_span(t_span, x0)
    given, options = argument_checks.check_args(args), ask.options
    options.clock, options.events = hybrid.acting, hybrid.events(options.events)
    begun = hybrid.begin(start, x0, given, None)
    (found, _), info = _solved(hybrid.dynamics, t_span, begun, given, ask)
    if hybrid.acting is not None and is_traced(end):
        # Sampled parts cannot follow back in time, which nothing could say before.
        forward = end > start
        found = tree.map(lambda leaf: known(forward, leaf), found)
        status = stop_gradient(np.where(forward, info.status, UNORDERED))
        info = tree.replace(info, success=status >= 0, status=status)
    flat = ask.t_eval is not None and tree.is_leaf(begun[0])
    return (np.moveaxis(found, 0, -1) if flat else found), info


def _solved(
    func: Callable[..., Any], t_span: Any, x0: Any, args: Any, ask: _Ask
) -> tuple[Any, SolveInfo]:
    """Return the states, and how the solve ended."""
    if any_traced(t_span, x0, args, ask.t_eval):
        return _recorded(func, t_span, x0, args, ask)
    problem = prepare(func, t_span, x0, ask.method, args, ask.static_argnames, ask.options)
    if ask.request is not None:
        ask.request.remember(problem)
    layout = problem.kernels.plan.layout
    times = None if ask.t_eval is None else problem.times(ask.t_eval)
    with monitor_of(ask.progress) as monitor:
        found = problem.solve(times, monitor=monitor, final=times is None)
    if found.status == INTERRUPTED:
        raise KeyboardInterrupt(f"odeint: {found.message}")
    if ask.raises and not found.success:
        raise SimulationError(f"odeint: {found.message}", found)
    x = found.x
    if times is not None and len(found.t) < len(times):
        x = tree.map(lambda leaf: _filled(leaf, len(times)), x)
    elif times is None and not found.success:
        x = tree.map(lambda leaf: np.full_like(leaf, np.nan), x)
    t, steps = np.float64(problem.run.t), np.int64(problem.run.accepted)
    info = SolveInfo(np.bool_(found.success), np.int64(found.status), t, steps)
    return _shaped(x, layout, times is None), info


def _states(prepared: Prepared, found: Solved, final: bool) -> Any:
    """Return the states of a solve; raise if it failed."""
    if found.end.status < 0:
        part = prepared.trajectory(found)
        if part.status == INTERRUPTED:
            raise KeyboardInterrupt(f"odeint: {part.message}")
        raise SimulationError(f"odeint: {part.message}", part)
    x = prepared.unpack(found.x)
    if final:
        return x[0] if type(x) is np.ndarray else tree.map(lambda leaf: leaf[0], x)
    if type(x) is not np.ndarray:
        return x
    # The axis of time comes last.
    return x.T if x.ndim < 3 else x.transpose(*range(1, x.ndim), 0)


def _filled(leaf: np.ndarray, count: int) -> np.ndarray:
    """Return a leaf with nan for the times that were not reached."""
    missing = np.full((count - len(leaf), *leaf.shape[1:]), np.nan)
    return np.concatenate([leaf, missing])


def _shaped(x: Any, layout: Layout, final: bool) -> Any:
    """Bring states with a leading time axis to the shape that odeint returns."""
    if final:
        return tree.map(lambda leaf: leaf[0], x)
    return np.moveaxis(x, 0, -1) if layout.is_array else x


def _recorded(
    func: Callable[..., Any], t_span: Any, x0: Any, args: Any, ask: _Ask
) -> tuple[Any, SolveInfo]:
    """Record the loops of a solve into the current trace."""
    t_eval, options = ask.t_eval, ask.options
    start, end = argument_checks.check_span(t_span, x0)
    times = np.zeros(0) if t_eval is None else t_eval
    if np.ndim(times) != 1:
        raise ValueError(f"t_eval must have shape (m,), got {np.shape(times)}")
    if not is_traced(start, end, times) and t_eval is not None:
        times = argument_checks.check_times(t_eval, start, end)
    state = as_state(x0)
    layout = layout_of(state)
    chosen = find_method(DEFAULT_METHOD if ask.method is None else ask.method)
    model = model_of(func, args, ask.static_argnames)
    plan = model.plan(layout, chosen, options)
    count = 1 if t_eval is None else np.shape(times)[0]
    t0 = stop_gradient(start)
    x = layout.pack(state)
    if is_traced(start):
        x = moved(plan.derivative(model.args), start, t0, x)
    setup = setup_of(layout, options, t0, stop_gradient(end), FOREVER)
    keep = t_eval is not None or plan.events is not None
    run = begin_run(plan, setup, t0, x, model.args, dense=keep)
    limit = step_limit(options, _recorded_steps(plan, options, start, end, times))
    solve = _Recorded(plan, setup, model.args, limit)
    run, rows, status = solve.final(run, end) if t_eval is None else solve.outputs(run, times, end)
    info = stop_gradient(SolveInfo(status >= 0, status, run.t, run.accepted))
    return _shaped(layout.unpack(rows, (count,)), layout, t_eval is None), info


def _recorded_steps(plan: Plan, options: Options, start: Any, end: Any, times: Any) -> int:
    """Return how many trial steps a recorded solve may make between two outputs, if not told.

    Fixed steps between times that are known can be counted; events and sampled parts add some.
    """
    if plan.adaptive or options.dt is None or is_traced(start, end, times, options.dt):
        return RECORDED
    ends = np.array([start, *times] if len(times) else [start, end], dtype=np.float64)
    longest = np.abs(np.diff(ends)).max(initial=0.0)
    count = int(np.ceil(longest / float(options.dt))) + 2
    alone = plan.events is None and plan.clock is None
    return max(count if alone else count + RECORDED, RECORDED)


@dataclass(frozen=True)
class _Recorded:
    """A solve that becomes part of a recording; each way returns the run, rows (m, n) and status.

    Times may be traced: the solve itself goes by their values, and states are then moved along
    the solution, which gives them the derivatives of their times.
    """

    plan: Plan
    setup: Setup
    args: tuple[Any, ...]
    limit: int

    def final(self, run: Run, end: Any) -> tuple[Run, Any, Any]:
        """Go on to the end."""
        run = go_to_end(self.plan, self.setup, self.args, run, self.limit)
        x = run.x
        if is_traced(end):
            # A run that ended by an event does not depend on the end of the span.
            last = np.where(run.status == EVENT, stop_gradient(run.t), end)
            x = moved(self.plan.derivative(self.args), stop_gradient(last), last, x)
        status = np.where(run.status == RUNNING, TOO_MANY_STEPS, run.status)
        return run, known(status >= 0, x)[None], status

    def outputs(self, run: Run, times: Any, end: Any) -> tuple[Run, Any, Any]:
        """Go on to each of the times (m,)."""
        fixed, setup = stop_gradient(times), self.setup
        run, rows = go_to_times(self.plan, setup, self.args, run, fixed, self.limit)
        left = direction_of(setup) * (fixed[-1:] - run.t) > 0.0
        short = np.where(np.any(left), TOO_MANY_STEPS, FINISHED)
        status = np.where(run.status == RUNNING, short, run.status)
        if is_traced(times):
            f = self.plan.derivative(self.args)
            good = argument_checks.in_order(fixed, setup.t_start, stop_gradient(end))
            status = np.where(np.all(good), status, UNORDERED)
            rows = known(good[:, None], rows)
            rows = vmap(lambda a, b, x: moved(f, a, b, x))(fixed, times, rows)
        return run, rows, status


def integrator(
    func: Callable[..., Any],
    method: str | Method | None = None,
    t_eval: Any = None,
    atol: Any = ATOL,
    rtol: Any = RTOL,
    static_argnames: str | Sequence[str] = (),
    name: str | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a function ``solve(x0, t_span, *args)`` that solves with fixed options.

    It does what :func:`odeint` does, and can be compiled, differentiated and mapped over batches.
    The state comes first, since that is what such a function is usually mapped over and
    differentiated in.

    Parameters
    ----------
    func : callable
        The model, as in :func:`solve_ode`.
    method : str, optional
        Name of the integration method, a key of `arc.simulate.METHODS`; ``"dop853"`` by default.
    t_eval : array_like (m,), optional
        Times at which the state is wanted. By default only the final state is returned.
    atol, rtol : float or tree, optional
        Absolute and relative tolerance, as in :func:`solve_ode`.
    static_argnames : str or sequence of str, optional
        Names of arguments of `func` that are part of the compiled program.
    name : str, optional
        Name of the function, ``integrate_`` and the model's name by default.
    **options
        Further options of :func:`odeint`.

    Returns
    -------
    callable
        ``solve(x0, t_span, *args)``, which returns what :func:`odeint` returns.

    Examples
    --------
    >>> solve = integrator(lambda t, x, k: -k * x)
    >>> round(float(solve(1.0, (0.0, 1.0), 2.0)), 8)
    0.13533528
    """
    compiled = func if isinstance(func, Compiled) else Compiled(func)

    def solve(x0: Any, t_span: Sequence[Any], *args: Any) -> Any:
        argument_checks.check_pair(t_span, x0, argument_checks.INTEGRATOR_ORDER)
        return odeint(
            compiled, t_span, x0, method, t_eval, atol, rtol, args, static_argnames, **options
        )

    solve.__name__ = solve.__qualname__ = name or f"integrate_{compiled.name}"
    return solve
