"""Solutions of ordinary differential equations.

``solve_ode`` returns a trajectory, with all there is to know about a simulation; ``odeint`` and
``integrator`` return plain arrays, inside recordings too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.registry import backend_choice, check_backend
from archimedes.checks import is_traced
from archimedes.function import Compiled, stop_gradient
from archimedes.function.region_bodies import must_record
from archimedes.function.signatures import warn_of_former_options
from archimedes.graph.program import origins
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.problem.state_layout import Args, as_state, layout_of
from archimedes.simulate.solves import initial_value_problem as ivp
from archimedes.simulate.solves.prepared_solves import Solution, request_of
from archimedes.simulate.statuses import SimulationError, SolveInfo, Status
from archimedes.simulate.stepping.dense_output import nan_unless
from archimedes.simulate.stepping.solve_loops import FOREVER, go_to_end, go_to_times
from archimedes.simulate.stepping.trial_step import Integration, Plan
from archimedes.simulate.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from archimedes.simulate.events.event import EventLike
    from archimedes.simulate.problem.inputs import Sampled
    from archimedes.typing import ArrayLike, Scalar, Tree

__all__ = ["integrator", "odeint", "solve_ode"]

#: Trial steps that a recorded solve may make between two outputs.
RECORDED = 10_000


def solve_ode(
    func: Callable[..., Any],
    t_span: Sequence[float],
    x0: Tree,
    *,
    method: str | Method | None = None,
    t_eval: ArrayLike | None = None,
    args: Any = (),
    rtol: Tree = ivp.RTOL,
    atol: Tree = ivp.ATOL,
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
    check_units: bool = False,
) -> Trajectory:
    """Solve ``dx/dt = func(t, x, *args)`` and return the trajectory.

    Parameters
    ----------
    func : callable
        The model, ``func(t, x, *args)``: plain NumPy that returns the derivative of the state, with
        the structure of `x0`. With `inputs` it is called as ``func(t, x, u, *args)``, and with
        `sampled` the memory of the sampled parts follows as one more argument.
    t_span : (float, float)
        Start and end time. The end may lie before the start.
    x0 : float, array or tree
        State at the start: a number, an array, or any tree of them (a struct, a dict).
    method : str, optional
        Name of the integration method, a key of `arc.simulate.METHODS`; ``"dop853"`` by default.
        ``"auto"`` changes between an explicit and a stiff method as the problem requires.
    t_eval : array_like (m,), optional
        Times within `t_span`, in its direction, at which the state is wanted. By default these are
        the times of the steps.
    args : tuple, optional
        Further arguments of `func`. Anything but a tuple or list is passed as the only one.
    rtol, atol : float or tree, optional
        Relative and absolute tolerance. The step size is chosen so that the estimated error of each
        step stays below ``atol + rtol |x|``. Give a number, or a tree like the state.
    dt : float, optional
        Step size of a fixed-step solution. Without it, step sizes are chosen by the tolerances.
    first_step : float, optional
        Step size that is tried first.
    max_step : float, optional
        Largest step size allowed.
    max_steps : int, optional
        Largest number of steps allowed.
    project : bool, optional
        Normalize structs in the state that have a method ``normalize()``, such as quaternions,
        after each step. True by default.
    events : callable, Event or sequence of them, optional
        Functions ``g(t, x, *args)`` whose zero crossings are located, or :class:`Event` objects,
        which can also stop the solution or reset the state. What happened is in ``events`` of the
        trajectory.
    inputs : callable or InputSeries, optional
        Input ``u(t)`` of the model. It is recorded as ``u`` of the trajectory.
    sampled : Sampled or sequence of Sampled, optional
        Parts, such as digital controllers, that act at sampling times of their own.
    dense : bool, optional
        Keep the interpolants even if `t_eval` is given, so that the trajectory can be called at any
        time.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program, for example flags.
    in_axes : int, None or tuple, optional
        Solve a batch. For `x0` and each of `args`, the axis along which the instances lie, or None
        if all share the value; a single int holds for all, as in :func:`vmap`. The trajectory has
        the instances along its first axis, and each one has the same bits as if solved alone.
    threads : int, optional
        Number of threads for a batch. By default one for each available CPU.
    progress : bool or callable, optional
        True shows a progress bar. A function is called with the fraction done (0 to 1) and the
        time.
    backend : str, optional
        What runs the solution, as in :func:`compile`.
    check_units : bool, optional
        Check the units of the model, and of sampled parts, before anything is solved: each
        derivative must have the unit of its state per second. Units are declared by
        ``field(units=...)`` of structs, see :func:`archimedes.check_units`. False by default.

    Returns
    -------
    Trajectory
        Times ``t`` and states ``x``, with time as the leading axis of every leaf. If the solver
        fails or is interrupted (Ctrl-C), the trajectory holds what was computed up to then, with a
        negative ``status`` and a ``message``.

    Raises
    ------
    UnitsError
        With `check_units`, units do not fit. The error holds the ``report``.

    Examples
    --------
    >>> traj = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0)
    >>> traj.success, round(float(traj.x[-1]), 8)
    (True, 0.36787944)
    """
    argument_checks.refuse_traced(t_span, x0, args, t_eval)
    if check_units:
        from archimedes.simulate.problem.unit_checks import check_model_units

        check_model_units(func, t_span, x0, args, inputs, sampled, static_argnames, in_axes)
    request = None
    if not (events or inputs or sampled or progress or static_argnames) and in_axes is None:
        steps = (dt, first_step, max_step, max_steps, project)
        settings = (method, rtol, atol, backend_choice(backend), *steps)
        request = request_of(func, t_span, x0, args, t_eval, False, settings)
        if request is not None and (t_eval is None or not dense):
            solution = request.solve(t_eval)
            if solution is not None:
                return _with_model(solution.trajectory(), func)
    model = func
    options = ivp.Options(
        *(method, static_argnames, rtol, atol, dt, first_step, max_step, max_steps, project),
        *(events, inputs, sampled, check_backend("solve_ode", backend)),
    )
    args = argument_checks.check_args(args)
    axes = ivp.axes_tuple(in_axes, args)
    hybrid, func, x0 = ivp.expand_parts(func, t_span, x0, args, options, axes)
    if hybrid is not None and axes is not None:
        axes = (0, *axes[1:])
    problem = ivp.prepare(func, t_span, x0, args, options, axes)
    if request is not None:
        request.remember(problem)
    trajectory = problem.solve(t_eval, bool(dense), progress, threads=threads)
    return _with_model(trajectory if hybrid is None else hybrid.show(trajectory), model)


def _with_model(trajectory: Trajectory, func: Any) -> Trajectory:
    """Note the vehicle whose method was solved, so that a view knows what to draw."""
    owner = getattr(func, "__self__", None)
    if owner is not None and tree.is_struct(owner):
        trajectory.model = owner
    return trajectory


def odeint(
    func: Callable[..., Any],
    t_span: Sequence[Any],
    x0: Tree,
    method: str | Method | None = None,
    t_eval: ArrayLike | None = None,
    atol: Tree = ivp.ATOL,
    rtol: Tree = ivp.RTOL,
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
    check_units: bool = False,
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
    check_units : bool, optional
        Check the units of the model before anything is solved, as in :func:`solve_ode`.
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
        warn_of_former_options("odeint", former)
    if check_units and origins.kind is None:
        from archimedes.simulate.problem.unit_checks import check_model_units

        check_model_units(func, t_span, x0, args, inputs, sampled, static_argnames or None)
    request = None
    if not (events or inputs or sampled or progress or static_argnames):
        steps = (dt, first_step, max_step, max_steps, project)
        settings = (method, rtol, atol, backend_choice(backend), *steps)
        request = request_of(func, t_span, x0, args, t_eval, True, settings)
        if request is not None and not full_output:
            solution = request.solve(t_eval)
            if solution is not None:
                return _states(solution, t_eval is None)
    options = ivp.Options(
        *(method, static_argnames, rtol, atol, dt, first_step, max_step, max_steps, project),
        *(events, inputs, sampled, check_backend("odeint", backend)),
    )
    args = argument_checks.check_args(args)
    hybrid, func, x0 = ivp.expand_parts(func, t_span, x0, args, options)
    if must_record(t_span, x0, args, t_eval):
        x, info = _record(func, t_span, x0, args, t_eval, options)
        x = x if hybrid is None else x[0]
    else:
        problem = ivp.prepare(func, t_span, x0, args, options)
        if request is not None:
            request.remember(problem)
        trajectory = problem.solve(t_eval, progress=progress, final=t_eval is None)
        trajectory = trajectory if hybrid is None else hybrid.show(trajectory)
        _raise_failure(trajectory, full_output)
        x = _fill(trajectory, t_eval)
        t, steps_taken = np.float64(problem.run.t), np.int64(problem.run.accepted)
        success, status = np.bool_(trajectory.success), np.int64(trajectory.status)
        info = SolveInfo(success, status, t, steps_taken)
    if t_eval is None:
        x = tree.map(lambda leaf: leaf[0], x)
    elif tree.is_leaf(x):
        x = np.moveaxis(x, 0, -1)
    return (x, info) if full_output else x


def _raise_failure(trajectory: Trajectory, full_output: bool = False) -> None:
    """Raise where a solve was interrupted or, unless a status is returned, has failed."""
    if trajectory.status == Status.INTERRUPTED:
        raise KeyboardInterrupt(f"odeint: {trajectory.message}")
    if not full_output and not trajectory.success:
        raise SimulationError(f"odeint: {trajectory.message}", trajectory)


def _fill(trajectory: Trajectory, t_eval: ArrayLike | None) -> Tree:
    """Return the states, with nan for the times that were not reached."""
    count = 1 if t_eval is None else np.size(t_eval)
    reached = 0 if t_eval is None and not trajectory.success else len(trajectory.t)

    def fill(leaf: np.ndarray) -> np.ndarray:
        missing = np.full((count - reached, *leaf.shape[1:]), np.nan)
        return np.concatenate([leaf[:reached], missing])

    return trajectory.x if reached == count else tree.map(fill, trajectory.x)


def _states(solution: Solution, final: bool) -> Tree:
    """Return the states of a solve; raise if it failed."""
    if solution.end.status < 0:
        _raise_failure(solution.trajectory())
    x = solution.states()
    if final:
        return x[0] if type(x) is np.ndarray else tree.map(lambda leaf: leaf[0], x)
    if type(x) is not np.ndarray:
        return x
    # The axis of time comes last.
    return x.T if x.ndim < 3 else x.transpose(*range(1, x.ndim), 0)


def _record(
    func: Callable[..., Any],
    t_span: Sequence[Scalar],
    x0: Tree,
    args: Args,
    t_eval: ArrayLike | None,
    options: ivp.Options,
) -> tuple[Tree, SolveInfo]:
    """Record the loops of a solve into the current trace; return the states, times first.

    Times may be traced: the solve itself goes by their values, and states are then moved along
    the solution, which gives them the derivatives of their times.
    """
    from archimedes.function import vmap
    from archimedes.function.derivatives.flows import move_state

    start, end = argument_checks.check_span(t_span, x0)
    times: Any = np.zeros(0) if t_eval is None else t_eval
    if np.ndim(times) != 1:
        raise ValueError(f"t_eval must have shape (m,), got {np.shape(times)}")
    if not is_traced(start, end, times) and t_eval is not None:
        times = argument_checks.check_times(t_eval, start, end)
    state = as_state(x0)
    layout = layout_of(state)
    model = ivp.model_of(func, args, options.static_argnames)
    plan = model.plan(layout, ivp.find_method(options.method), options)
    f, t0, t_end = plan.derivative(model.args), stop_gradient(start), stop_gradient(end)
    x = layout.pack(state)
    if is_traced(start):
        x = move_state(f, start, t0, x)
    if origins.kind is not None:  # a check of units: only those of the state count
        from archimedes.analysis.units.rates import require_rates

        rows = np.broadcast_to(require_rates(f, t0, x), (max(1, np.size(times)), layout.size))
        return layout.unpack(rows, rows.shape[:1]), SolveInfo(True, 0, t_end, 0)
    setup = options.setup(layout, t0, t_end, FOREVER)
    ode = Integration(plan, setup, model.args)
    run = ode.begin(t0, x, dense=t_eval is not None or plan.events is not None)
    limit = options.step_limit(_default_limit(plan, options, start, end, times))
    if t_eval is None:
        run = go_to_end(ode, run, limit)
        status, rows = (
            np.where(run.status == Status.RUNNING, Status.TOO_MANY_STEPS, run.status),
            run.x,
        )
        if is_traced(end):
            # A run that ended by an event does not depend on the end of the span.
            last = np.where(run.status == Status.EVENT, stop_gradient(run.t), end)
            rows = move_state(f, stop_gradient(last), last, rows)
        rows = nan_unless(status >= 0, rows)[None]
    else:
        fixed = stop_gradient(times)
        run, rows = go_to_times(ode, run, fixed, limit)
        is_short = np.any(ode.direction * (fixed[-1:] - run.t) > 0.0)
        outcome = np.where(is_short, Status.TOO_MANY_STEPS, Status.FINISHED)
        status = np.where(run.status == Status.RUNNING, outcome, run.status)
        if is_traced(times):
            good = argument_checks.in_order(fixed, t0, t_end)
            status = np.where(np.all(good), status, Status.UNORDERED)
            rows = vmap(lambda a, b, x: move_state(f, a, b, x))(
                fixed, times, nan_unless(good[:, None], rows)
            )
    if options.clock is not None and is_traced(end):
        # Sampled parts cannot follow back in time; only now is the direction known.
        forward = end > start
        rows = nan_unless(forward, rows)
        status = np.where(forward, status, Status.UNORDERED)
    info = stop_gradient(SolveInfo(status >= 0, status, run.t, run.accepted))
    return layout.unpack(rows, rows.shape[:1]), info


def _default_limit(
    plan: Plan, options: ivp.Options, start: Scalar, end: Scalar, times: np.ndarray
) -> int:
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


def integrator(
    func: Callable[..., Any],
    method: str | Method | None = None,
    t_eval: ArrayLike | None = None,
    atol: Tree = ivp.ATOL,
    rtol: Tree = ivp.RTOL,
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

    def solve(x0: Tree, t_span: Sequence[Any], *args: Any) -> Any:
        argument_checks.check_pair(t_span, x0, argument_checks.INTEGRATOR_ORDER)
        return odeint(
            compiled, t_span, x0, method, t_eval, atol, rtol, args, static_argnames, **options
        )

    solve.__name__ = solve.__qualname__ = name or f"integrate_{compiled.name}"
    return solve
