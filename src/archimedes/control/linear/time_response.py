"""Responses of linear systems in time: exact at the samples, whatever their distance.

Time is the first axis, as in trajectories.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.checks import check_hold, check_positive, is_traced, transpose_hint
from archimedes.control.linear.delays import respond
from archimedes.control.linear.discretization import hold_matrices
from archimedes.control.linear.interconnection import DelaySystem
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.linear.transfer_function import TransferFunction, ss
from archimedes.control.matrix_checks import vector
from archimedes.errors import ShapeDtypeError
from archimedes.function import compile, scan
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = [
    "Response",
    "forced_response",
    "impulse_response",
    "initial_response",
    "lsim",
    "step_info",
    "step_response",
]

System = StateSpace | TransferFunction | DelaySystem


@struct
class Response:
    """Outputs of a linear system over time; ``t, y = response`` unpacks it.

    Parameters
    ----------
    t : array (N,)
        Times in s.
    y : array (N, p) or (N, p, m)
        Outputs. Step and impulse responses of several inputs have a column for each.
    x : array (N, n) or (N, n, m)
        States.
    inputs : tuple of str, optional
        Names of the inputs.
    outputs : tuple of str, optional
        Names of the outputs.
    input_units : tuple of str, optional
        Units of the inputs.
    output_units : tuple of str, optional
        Units of the outputs.
    kind : str, optional
        ``"step"``, ``"impulse"``, ``"initial"`` or ``"forced"``.
    discrete : bool, optional
        Whether the system is in discrete time.

    Examples
    --------
    >>> from archimedes.control import step_response, tf
    >>> t, y = step_response(tf([1.0], [1.0, 1.0]), [0.0, 1.0, 2.0])
    >>> y[:, 0].round(4)
    array([0.    , 0.6321, 0.8647])
    """

    t: Array = field(units="s")
    y: Array
    x: Array
    inputs: tuple[str, ...] = field(static=True, default=())
    outputs: tuple[str, ...] = field(static=True, default=())
    input_units: tuple[str, ...] = field(static=True, default=())
    output_units: tuple[str, ...] = field(static=True, default=())
    kind: str = field(static=True, default="forced")
    discrete: bool = field(static=True, default=False)

    def field_units(self) -> dict[str, str]:
        """Return that the unit of time is that of the system's matrices, seconds as a rule."""
        return {"t": "?"}

    def __iter__(self) -> Iterator[Array]:
        return iter((self.t, self.y))

    def columns(self) -> Array:
        """Return the outputs (N, p, inputs), with an axis for a single input too."""
        return self.y if np.ndim(self.y) == 3 else self.y[..., None]


def _respond(system: Any, t: Array, y: Array, x: Array, kind: str) -> Response:
    names = (system.inputs, system.outputs, system.input_units, system.output_units)
    if np.ndim(y) == 3 and y.shape[2] == 1:
        x, y = x[..., 0], y[..., 0]
    return Response(t, y, x, *names, kind, system.dt is not None)


def _respond_late(
    system: DelaySystem, t: ArrayLike | None, kind: str, inputs: Any, x0: Any = None
) -> Response:
    """Return a response of a system with delays, in numbers; ``inputs`` as `respond` takes them."""
    if is_traced(system, t, x0):
        raise TypeError(
            "responses with delays in continuous time run on numbers: in recorded code use "
            "system.discretize(dt), where delays are states, or system.pade(3)"
        )
    times = np.asarray(_times(system.pade(1), t)[0], dtype=float)
    columns = 1 if kind in ("forced", "initial") else system.ninputs
    start = np.zeros((system.nstates, columns)) if x0 is None else np.asarray(x0)[:, None]
    A, B, C, D = (np.asarray(M, dtype=float) for M in system.plant)
    delays = np.asarray(system.delays, dtype=float)
    u_at = inputs(times) if inputs is not None else None
    x, y = respond((A, B, C, D), delays, times, start, u_at, kinks=kind == "forced")
    return _respond(system, times, y, x, kind)


def _march(F: Array, inflow: Array, x0: Array) -> Array:
    """Return x (N, ...) of x+ = F x + inflow[k], which has N - 1 rows."""

    def step(x: Array, push: Array) -> tuple[Array, Array]:
        return F @ x + push, x

    last, before = scan(step, x0, inflow)
    return np.concatenate([before, last[None]])


_march_natively = compile(_march)


def _states(F: Array, inflow: Array, x0: Array) -> Array:
    run = _march if is_traced(F, inflow, x0) else _march_natively
    return run(F, inflow, x0) if len(inflow) else x0[None]


def _times(system: StateSpace, t: Any) -> tuple[Array, Scalar]:
    """Return times and the distance between them, which must be the same everywhere."""
    if t is None:
        return default_times(system)
    if np.ndim(t) == 0 and not is_traced(t):  # the end
        check_positive(t, "t", "s")
        count = 1000 if system.dt is None else max(int(np.round(t / system.dt)), 1)
        t = np.linspace(0.0, t if system.dt is None else count * system.dt, count + 1)
    times = vector(t, "t")
    if times.shape[0] < 2:
        raise ShapeDtypeError(f"t must hold at least two times, got {times.shape[0]}")
    step = times[1] - times[0]
    if not is_traced(times):
        steps = np.diff(times)
        if not np.all(steps > 0.0) or np.ptp(steps) > 1e-6 * np.abs(step):
            raise ValueError(
                f"t must increase in equal steps, as np.linspace makes them; got steps from "
                f"{steps.min():.6g} to {steps.max():.6g} s"
            )
        if system.dt is not None and abs(step - system.dt) > 1e-6 * system.dt:
            raise ValueError(
                f"t must be in steps of the system's dt = {system.dt} s, got {float(step):.6g} s"
            )
    return times, step


def default_times(system: StateSpace, most: int = 2000) -> tuple[np.ndarray, float]:
    """Return times in which the modes of a system show themselves, and their distance."""
    if is_traced(system.A):
        raise TypeError("t must be given in recorded code, where poles are not known")
    poles = np.linalg.eigvals(np.asarray(system.A, dtype=float)).astype(complex)
    dt = None if system.dt is None else float(system.dt)
    if dt is not None:
        poles = np.log(np.where(poles == 0.0, 1e-300, poles)) / dt
        poles = poles[poles.real > -50.0 / dt]
    size = np.abs(poles)
    moving = poles[size > 1e-10 * max(size.max(initial=0.0), 1e-300)]
    if not len(moving):
        span, fastest = 10.0 * (dt or 1.0), 1.0 / (dt or 1.0)
    else:
        # Until the slowest mode has died away or grown, or has swung ten times.
        rates = np.maximum(
            np.abs(moving.real), np.abs(moving.imag) * np.log(1000.0) / (20.0 * np.pi)
        )
        slowest, fastest = rates.min(), np.abs(moving).max()
        span = np.log(1000.0) / slowest * (1.0 if len(moving) == len(poles) else 1.5)
        if np.any(moving.real > 1e-9 * fastest):
            span = min(span, np.log(1000.0) / moving.real.max())
    if dt is not None:
        return dt * np.arange(int(np.clip(np.ceil(span / dt), 10, most)) + 1), dt
    count = int(np.clip(np.ceil(span * fastest * 10.0), 200, most))
    return np.linspace(0.0, span, count + 1), span / count


def step_response(system: System, t: ArrayLike | None = None) -> Response:
    """Return the response to a unit step of each input, from rest.

    Parameters
    ----------
    system : StateSpace, TransferFunction or DelaySystem
        The linear system.
    t : array (N,) or float, optional
        Times in s, in equal steps; in discrete time steps of ``dt``. A number is the last time.
        Chosen from the poles by default.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> response = step_response(tf([1.0], [1.0, 1.0]))
    >>> response.y.shape[1:], round(float(response.y[-1, 0]), 3)
    ((1,), 0.999)
    """
    if isinstance(system, DelaySystem):
        eye = np.eye(system.ninputs)
        return _respond_late(system, t, "step", lambda _: lambda at: np.stack([eye] * len(at)))
    G = ss(system)
    times, step = _times(G, t)
    F, held = (G.A, G.B) if G.dt is not None else hold_matrices(G.A, G.B, step)[:2]
    inflow = np.broadcast_to(held, (times.shape[0] - 1, *held.shape))
    x = _states(F, inflow, np.zeros(G.B.shape))
    return _respond(G, times, G.C @ x + G.D, x, "step")


def impulse_response(system: System, t: ArrayLike | None = None) -> Response:
    """Return the response to an impulse of area one at each input.

    In continuous time the impulse that a feedthrough D passes on is left out. In discrete time the
    impulse is 1 / dt for one step.

    Parameters
    ----------
    system : StateSpace, TransferFunction or DelaySystem
        The linear system.
    t : array (N,), optional
        Times in s, in equal steps. Chosen from the poles by default.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> t, y = impulse_response(tf([1.0], [1.0, 1.0]), [0.0, 1.0, 2.0])
    >>> y[:, 0].round(4)
    array([1.    , 0.3679, 0.1353])
    """
    if isinstance(system, DelaySystem):
        return _respond_late(system, t, "impulse", None)
    G = ss(system)
    times, step = _times(G, t)
    none = np.zeros((times.shape[0] - 1, *G.B.shape))
    if G.dt is None:
        x = _states(hold_matrices(G.A, G.B, step)[0], none, G.B)
        return _respond(G, times, G.C @ x, x, "impulse")
    first = np.zeros(times.shape[0])
    first[0] = 1.0
    x = _states(G.A, first[:-1, None, None] * G.B / G.dt, np.zeros(G.B.shape))
    return _respond(G, times, G.C @ x + first[:, None, None] * G.D / G.dt, x, "impulse")


def initial_response(
    system: System, t: ArrayLike | None = None, x0: ArrayLike | None = None
) -> Response:
    """Return the response from a state, with inputs of zero.

    Parameters
    ----------
    system : StateSpace, TransferFunction or DelaySystem
        The linear system.
    t : array (N,), optional
        Times in s, in equal steps. Chosen from the poles by default.
    x0 : array (n,), optional
        State at the first time; zero by default.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> t, y = initial_response(lag, [0.0, 1.0], [2.0])
    >>> y[:, 0].round(4)
    array([2.    , 0.7358])
    """
    return forced_response(system, t, 0.0, x0, kind="initial")


def forced_response(
    system: System,
    t: ArrayLike | None = None,
    u: Any = 0.0,
    x0: ArrayLike | None = None,
    *,
    hold: str = "foh",
    kind: str = "forced",
) -> Response:
    """Return the response to inputs that are linear between samples, or held.

    In continuous time the result is exact for such inputs.

    Parameters
    ----------
    system : StateSpace, TransferFunction or DelaySystem
        The linear system.
    t : array (N,), optional
        Times in s, in equal steps. By default those of `u` in discrete time, otherwise chosen from
        the poles.
    u : array (N, m), (N,) or float, optional
        Inputs at the times, zero by default. One number is held throughout.
    x0 : array (n,), optional
        State at the first time; zero by default.
    hold : {"foh", "zoh"}, optional
        How the inputs of a continuous system go on between the times. ``"foh"``: linear, the
        default, as in python-control and SciPy's ``lsim``. ``"zoh"``: each value until the next
        time.
    kind : str, optional
        What the response is called on plots.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> t = np.linspace(0.0, 2.0, 3)
    >>> _, y = forced_response(tf([1.0], [1.0, 0.0]), t, t)  # a ramp, integrated
    >>> y[:, 0], forced_response(tf([1.0], [1.0, 0.0]), t, t, hold="zoh").y[:, 0]
    (array([0. , 0.5, 2. ]), array([0., 0., 1.]))
    """
    check_hold(hold, "forced_response: hold")
    if isinstance(system, DelaySystem):

        def follow(times: np.ndarray) -> Any:
            samples = np.asarray(_as_inputs(u, len(times), system.ninputs), dtype=float)
            table = [np.stack([times, s]) for s in samples.T]

            def held(at: np.ndarray) -> np.ndarray:
                which = np.searchsorted(times, 0.5 * (at[0] + at[-1])) - 1  # no sample is between
                return np.stack([samples[which]] * len(at))[..., None]

            def linear(at: np.ndarray) -> np.ndarray:
                return np.stack([np.interp(at, *row) for row in table], axis=1)[..., None]

            return held if hold == "zoh" else linear

        if x0 is not None:
            x0 = vector(x0, "x0", system.nstates)
        return _respond_late(system, t, kind, follow, x0)
    G = ss(system)
    if t is None and G.dt is not None and np.ndim(u):
        t = G.dt * np.arange(len(u))
    times, step = _times(G, t)
    inputs = _as_inputs(u, times.shape[0], G.ninputs)
    start = np.zeros(G.nstates) if x0 is None else vector(x0, "x0", G.nstates)
    if G.dt is not None:
        F, inflow = G.A, inputs[:-1] @ G.B.T
    else:
        F, held, ramp = hold_matrices(G.A, G.B, step)
        inflow = inputs[:-1] @ held.T
        if hold == "foh":
            inflow = inflow + (inputs[1:] - inputs[:-1]) @ ramp.T
    x = _states(F, inflow, start)
    return _respond(G, times, x @ G.C.T + inputs @ G.D.T, x, kind)


def _as_inputs(u: Any, count: int, m: int) -> Array:
    """Return inputs at all times, (count, m)."""
    if np.ndim(u) == 0:
        return u * np.ones((count, m))
    inputs = u if is_traced(u) else np.asarray(u)
    inputs = inputs[:, None] if np.ndim(inputs) == 1 and m == 1 else inputs
    if np.shape(inputs) != (count, m):
        turned = transpose_hint(np.shape(inputs), count, "u", 0)
        raise ShapeDtypeError(f"u must have shape ({count}, {m}), got {np.shape(u)}{turned}")
    return inputs


def lsim(
    system: System,
    u: ArrayLike,
    t: ArrayLike | None = None,
    x0: ArrayLike | None = None,
    *,
    hold: str = "foh",
) -> Response:
    """Return `forced_response`, with the arguments in MATLAB's order.

    Parameters
    ----------
    system : StateSpace, TransferFunction or DelaySystem
        The linear system.
    u : array (N, m), (N,) or float
        Inputs at the times.
    t : array (N,), optional
        Times in s, in equal steps.
    x0 : array (n,), optional
        State at the first time; zero by default.
    hold : {"foh", "zoh"}, optional
        Inputs between the times: linear, the default, or held.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> t = np.linspace(0.0, 2.0, 3)
    >>> lsim(tf([1.0], [1.0, 0.0]), t, t).y[:, 0]
    array([0. , 0.5, 2. ])
    """
    return forced_response(system, t, u, x0, hold=hold)


def step_info(
    system: Any, t: ArrayLike | None = None, *, settling: float = 0.02, rise: tuple = (0.1, 0.9)
) -> Any:
    """Return rise time, settling time, overshoot and more of a step response.

    Parameters
    ----------
    system : StateSpace, TransferFunction or Response
        The system, or a response that was computed before; its last value is then the final one.
    t : array (N,), optional
        Times in s of the step response.
    settling : float, optional
        Part of the final value that the response has settled within, 2 % by default.
    rise : pair of float, optional
        Parts of the final value between which the rise time is taken.

    Returns
    -------
    dict, or rows of dicts for several inputs and outputs
        ``RiseTime``, ``SettlingTime``, ``SettlingMin``, ``SettlingMax``, ``Overshoot`` (%),
        ``Undershoot`` (%), ``Peak``, ``PeakTime``, ``SteadyStateValue``. Times in s; nan where the
        response has no such.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> info = step_info(tf([1.0], [1.0, 1.0]))
    >>> round(info["RiseTime"], 3), round(info["SettlingTime"], 3), info["Overshoot"]
    (2.197, 3.912, 0.0)
    """
    response = system if isinstance(system, Response) else step_response(system, t)
    y = response.columns()
    final = y[-1] if isinstance(system, Response) else np.atleast_2d(system.dcgain())
    rows = [
        [
            _describe_step(response.t, y[:, i, j], final[i, j], settling, rise)
            for j in range(y.shape[2])
        ]
        for i in range(y.shape[1])
    ]
    return rows[0][0] if len(rows) == len(rows[0]) == 1 else rows


def _describe_step(
    t: np.ndarray, y: np.ndarray, final: float, settling: float, rise: tuple
) -> dict[str, float]:
    names = ["RiseTime", "SettlingTime", "SettlingMin", "SettlingMax", "Overshoot"]
    names += ["Undershoot", "Peak", "PeakTime", "SteadyStateValue"]
    if not np.isfinite(final) or not np.all(np.isfinite(y)):
        return dict.fromkeys(names, np.nan) | {"Peak": np.inf, "PeakTime": np.inf}
    size = float(final)
    part = y / size if size else y
    low, high = (_first_crossing(t, part, level) for level in rise)
    outside = np.flatnonzero(np.abs(y - size) > settling * abs(size))
    if not len(outside):
        settled = 0.0
    elif outside[-1] + 1 == len(t):
        settled = np.nan
    else:
        k = outside[-1]
        edge = size + np.sign(y[k] - size) * settling * abs(size)
        settled = float(t[k] + (edge - y[k]) / (y[k + 1] - y[k]) * (t[k + 1] - t[k]))
    risen = np.flatnonzero(part >= rise[1])
    after = y[risen[0] :] if len(risen) else y[-1:]
    peak = int(np.argmax(np.abs(y)))
    over = 100.0 * max(0.0, float(part.max()) - 1.0) if size else np.inf
    under = 100.0 * max(0.0, -float(part.min())) if size else np.inf
    values = (high - low, settled, float(after.min()), float(after.max()), _round_off(over))
    return dict(zip(names, (*values, under, float(abs(y[peak])), float(t[peak]), size)))


def _round_off(percent: float) -> float:
    """Return zero for an overshoot that is nothing but rounding."""
    return 0.0 if percent < 1e-9 else percent


def _first_crossing(t: np.ndarray, y: np.ndarray, level: float) -> float:
    """Return the time at which samples first reach a level, by linear interpolation."""
    reached = np.flatnonzero(y >= level)
    if not len(reached):
        return np.nan
    k = int(reached[0])
    return float(t[k] if k == 0 else np.interp(level, y[k - 1 : k + 1], t[k - 1 : k + 1]))
