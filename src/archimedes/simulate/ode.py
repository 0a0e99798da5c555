"""``solve_ode``: a simulation with all there is to know about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.registry import backend_choice, check_backend
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.solves import initial_value_problem as ivp
from archimedes.simulate.solves.prepared_solves import request_of
from archimedes.simulate.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from archimedes.simulate.events.event import EventLike
    from archimedes.simulate.problem.inputs import Sampled
    from archimedes.typing import ArrayLike, Tree

__all__ = ["solve_ode"]


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

    Returns
    -------
    Trajectory
        Times ``t`` and states ``x``, with time as the leading axis of every leaf. If the solver
        fails or is interrupted (Ctrl-C), the trajectory holds what was computed up to then, with a
        negative ``status`` and a ``message``.

    Examples
    --------
    >>> traj = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0)
    >>> traj.success, round(float(traj.x[-1]), 8)
    (True, 0.36787944)
    """
    argument_checks.refuse_traced(t_span, x0, args, t_eval)
    usual = events is None and inputs is None and sampled is None and in_axes is None
    request = None
    if usual and not (progress or static_argnames):
        steps = (dt, first_step, max_step, max_steps, project)
        settings = (method, rtol, atol, backend_choice(backend), *steps)
        request = request_of(func, t_span, x0, args, t_eval, False, settings)
        if request is not None and (t_eval is None or not dense):
            solution = request.solve(t_eval)
            if solution is not None:
                return solution.trajectory()
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
    return trajectory if hybrid is None else hybrid.show(trajectory)
