"""Model exchange: an FMU gives derivatives, and our solvers integrate them.

:class:`ContinuousModel` is an instance as functions of time, state and input, with its events.
:func:`simulate_model` runs it by the methods of :mod:`archimedes.simulate`: the loops that are
recorded elsewhere run here as they are written, in NumPy, because each value comes from a call of
the binary anyway. That leaves room for what FMI asks for between steps: completed integrator steps,
events that are iterated, times of events that are known only when the one before has happened.

Symbols: z event indicators, x continuous states, u inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.interchange.fmi.description_reader import FLOATS, FmuVariable
from archimedes.interchange.fmi.fmu_binary import (
    MOST_ROUNDS,
    Access,
    EventInfo,
    FmuBinary,
    FmuError,
    FmuInstance,
    Log,
)
from archimedes.interchange.fmi.fmu_inputs import FmuInputs
from archimedes.simulate.events.event import TINY, Event, Watch
from archimedes.simulate.events.event_location import (
    CLOSE_COUNT,
    NEAR_COUNT,
)
from archimedes.simulate.methods.implicit import DenseJacobian
from archimedes.simulate.problem.state_layout import layout_of
from archimedes.simulate.solves.initial_value_problem import Options, find_method
from archimedes.simulate.statuses import Status, message_of
from archimedes.simulate.stepping.dense_output import interpolate
from archimedes.simulate.stepping.solve_loops import make_step
from archimedes.simulate.stepping.trial_step import Integration, Plan, Run

#: How far from where an event was located it may be, as a part of the time scale of the states.
FARTHEST = 1e-6
#: The cube root of the rounding unit: steps of central differences.
DIFFERENCE = 6e-6


@dataclass(frozen=True)
class Start:
    """How an instance begins: values to set, the time span, a tolerance, a log."""

    parameters: Sequence[tuple[FmuVariable, Any]] = ()
    t0: float = 0.0
    t1: float | None = None
    tolerance: float | None = None
    log: Log | None = None


def start_instance(
    binary: FmuBinary, start: Start, inputs: Access, u: Sequence[Any]
) -> FmuInstance:
    """Return a new instance that has just left initialization mode."""
    instance = FmuInstance(binary, binary.description.name, start.log)
    try:
        variables = [variable for variable, _ in start.parameters]
        Access(variables, binary.version_3).write(instance, [v for _, v in start.parameters])
        instance.enter_initialization(start.t0, start.t1, start.tolerance)
        inputs.write(instance, u)
        instance.exit_initialization()
    except BaseException:
        instance.free()
        raise
    return instance


class ContinuousModel:
    """An instance in continuous-time mode, as functions of t, x (n,) and u.

    Parameters
    ----------
    binary : FmuBinary
        The loaded binary.
    start : Start
        How it begins.
    inputs : sequence of FmuVariable
        The inputs that are given.
    """

    def __init__(self, binary: FmuBinary, start: Start, inputs: Sequence[FmuVariable]) -> None:
        self.binary, self.start = binary, start
        self.inputs = Access(inputs, binary.version_3)
        smooth = [v for v in inputs if v.type in FLOATS and v.variability == "continuous"]
        self._smooth = Access(smooth, binary.version_3)
        self._is_smooth = [variable in smooth for variable in inputs]
        self.instance: FmuInstance | None = None
        self.next_time = np.inf
        self._point: tuple[float, bytes] | None = None
        self._u: list[Any] = []
        #: Which indicators (m,) have had only two values, a and -a: truth values of some tools.
        self.is_two_valued = np.ones(self.size_z, dtype=bool)
        self._size_z: np.ndarray | None = None

    def begin(self, t: float, u: Sequence[Any]) -> np.ndarray:
        """Make a new instance at a time; return its states (n,)."""
        self.free()
        begun = Start(self.start.parameters, t, self.start.t1, self.start.tolerance, self.start.log)
        self.instance = instance = start_instance(self.binary, begun, self.inputs, u)
        self._u, self._point = list(u), None
        info = instance.update_discrete_states()
        instance.enter_continuous_time_mode()
        self.next_time = info.next_time
        self.has_ended = info.terminate
        return instance.states()

    def end(self) -> None:
        """End the simulation in order: FMUs may write files then."""
        if self.instance is not None:
            self.instance.terminate()

    def free(self) -> None:
        """Free the instance, if there is one."""
        if self.instance is not None:
            self.instance.free()
            self.instance = None

    # ---- functions of t, x, u ------------------------------------------------------------------

    def _put(self, t: float, x: np.ndarray, u: Sequence[Any]) -> FmuInstance | None:
        """Set time, states and inputs; None where the FMU does not take the states."""
        instance = self.instance
        assert instance is not None
        point = (t, x.tobytes())
        if self._point != point:
            self._point = None
            instance.set_time(t)
            if not instance.set_states(x):
                return None
            self._point = point
        if u is not self._u:
            self._smooth.write(instance, [v for v, is_in in zip(u, self._is_smooth) if is_in])
            self._u = list(u) if not isinstance(u, list) else u
        return instance

    def derivatives(self, t: float, x: np.ndarray, u: Sequence[Any]) -> np.ndarray:
        """Return dx/dt (n,); nan where the FMU has none."""
        instance = self._put(t, x, u)
        return np.full(x.shape, np.nan) if instance is None else instance.derivatives()

    def indicators(self, t: float, x: np.ndarray, u: Sequence[Any]) -> np.ndarray:
        """Return z (m,)."""
        instance = self._put(t, x, u)
        if instance is None:
            return np.full(self.size_z, np.nan)
        z = instance.indicators()
        size = np.abs(z)
        self._size_z = size if self._size_z is None else self._size_z
        self.is_two_valued = self.is_two_valued & (size == self._size_z)
        return z

    @property
    def size_z(self) -> int:
        """Number of event indicators."""
        return self.binary.description.indicators

    def read(self, access: Access, t: float, x: np.ndarray, u: Sequence[Any]) -> list[Any]:
        """Return the values of variables."""
        instance = self._put(t, x, u)
        assert instance is not None
        return access.read(instance)

    def tangent(
        self,
        unknowns: np.ndarray,
        knowns: np.ndarray,
        point: tuple[float, np.ndarray, Sequence[Any]],
        seed: np.ndarray,
        size: int,
    ) -> np.ndarray:
        """Return the directional derivative of unknowns at a point (t, x, u)."""
        instance = self._put(*point)
        if instance is None:
            return np.full(size, np.nan)
        return instance.directional_derivative(unknowns, knowns, seed, size)

    # ---- events --------------------------------------------------------------------------------

    def event(self, t: float, x: np.ndarray, u: Sequence[Any]) -> tuple[np.ndarray, EventInfo]:
        """Let an event happen; return the states after it and what it left."""
        instance = self._put(t, x, u)
        assert instance is not None
        instance.enter_event_mode()
        self.inputs.write(instance, u)
        self._u = list(u)
        info = instance.update_discrete_states()
        instance.enter_continuous_time_mode()
        self.next_time, self.has_ended, self._point = info.next_time, info.terminate, None
        return (instance.states() if info.states_changed else x.copy()), info

    def state_event(
        self, sides: np.ndarray, t: float, x: np.ndarray, u: Sequence[Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Let the event happen at which indicators change their sides.

        Events are located to rounding, on either side, but FMUs look at the sign: found a rounding
        error too early, a ball above the floor would go on falling. So it happens at the first
        point at which the sides have changed. Where the states after it take an indicator right
        back (the ball leaves the floor), the standard calls that an event too, and indicators with
        a hysteresis need it. It happens here, so that rounding cannot lose it.

        Parameters
        ----------
        sides : ndarray (m,)
            From which side each indicator comes: 1 where it was positive, -1 where it was not, nan
            where its rate tells, 0 where it does not matter.
        t : float
            Time.
        x : ndarray (n,)
            States.
        u : sequence
            Inputs.

        Returns
        -------
        after : ndarray (n,)
            States after the event.
        returned : ndarray (m,)
            The sides to which indicators have returned at once, 0 for all others.
        """
        if np.isnan(sides).any():
            sides = self._sides(sides, t, x, u)
        returned = np.zeros(self.size_z)
        after, info = self.event(*(self._cross(sides, t, x, u) or (t, x)), u)
        if not info.states_changed:
            return x.copy(), returned
        if not self.has_ended:
            there = (self.indicators(t, after, u) > 0.0) == (sides < 0.0)
            back = np.where(there, -sides, 0.0)
            point = self._cross(back, t, after, u) if back.any() else None
            if point is not None:
                later, info = self.event(*point, u)
                after, returned = (later if info.states_changed else after), -back
        return after, returned

    def _sides(self, sides: np.ndarray, t: float, x: np.ndarray, u: Sequence[Any]) -> np.ndarray:
        """Return the sides from which indicators come, where they are not known: nan."""
        slope = self.derivatives(t, x, u)
        scale = time_scale(x, slope)

        def z(s: float) -> np.ndarray:
            return self.indicators(t + s, x + s * slope, u)

        rates = np.where(self.is_two_valued, 0.0, difference(z, t, scale, t))
        # An indicator that has two values only has no rate, but a past.
        was_positive = np.where(rates == 0.0, z(-FARTHEST * scale) > 0.0, rates < 0.0)
        return np.where(np.isnan(sides), np.where(was_positive, 1.0, -1.0), sides)

    def _cross(
        self, sides: np.ndarray, t: float, x: np.ndarray, u: Sequence[Any]
    ) -> tuple[float, np.ndarray] | None:
        """Return the first point from (t, x) on at which sides have changed, if it is near."""
        slope = self.derivatives(t, x, u)
        farthest = FARTHEST * time_scale(x, slope)
        step = 0.0
        while step <= farthest:
            point = (t + step, x + step * slope)
            if np.all((sides == 0.0) | ((self.indicators(*point, u) > 0.0) == (sides < 0.0))):
                return point
            step = max(2.0 * step, float(np.spacing(abs(t))))
        return None

    def completed_step(self, t: float, x: np.ndarray, u: Sequence[Any]) -> tuple[bool, bool]:
        """Say that a step has ended here; return whether an event is wanted, or the end."""
        instance = self._put(t, x, u)
        assert instance is not None
        return instance.completed_step()


# ---- simulation --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Indicators(Watch):
    """Event indicators as the events of a solve, without recordings."""

    functions: Any = None

    def value(self, k: int, t: Any, x: Any, args: Any) -> Any:
        return self.functions.z(float(t), x)[k]

    def rate(self, k: int, t: Any, x: Any, xdot: Any, args: Any) -> Any:
        return self.functions.z_rate(float(t), x, xdot)[k]

    def values(self, t: Any, x: Any, args: Any) -> Any:
        return self.functions.z(float(t), x)

    def rates(self, t: Any, x: Any, xdot: Any, args: Any) -> Any:
        return self.functions.z_rate(float(t), x, xdot)

    def truths(self, t: Any, x: Any, args: Any) -> np.ndarray:
        return self.functions.model.is_two_valued.copy()


class _Functions:
    """The functions of a model that solvers call, with the inputs of the span under way."""

    def __init__(self, model: ContinuousModel, jacobian: Callable[..., np.ndarray] | None) -> None:
        self.model = model
        self.u_at: Callable[[float], list[Any]] = lambda t: []
        self.own_jacobian = jacobian
        #: When the last event was: differences do not reach back before it.
        self.since = -np.inf

    def f(self, t: Any, x: np.ndarray) -> np.ndarray:
        t = float(t)
        return self.model.derivatives(t, x, self.u_at(t))

    def z(self, t: float, x: np.ndarray) -> np.ndarray:
        return self.model.indicators(t, np.asarray(x), self.u_at(t))

    def z_rate(self, t: float, x: np.ndarray, xdot: np.ndarray) -> np.ndarray:
        rate = difference(lambda s: self.z(t + s, x + s * xdot), t, time_scale(x, xdot), self.since)
        return np.where(self.model.is_two_valued, 0.0, rate)

    def linearize(self, t: Any, x: np.ndarray) -> tuple[Any, Any]:
        """Return df/dt and df/dx, for implicit methods."""
        t = float(t)
        f_t = difference(lambda s: self.f(t + s, x), t, max(1.0, abs(t)), self.since)
        if self.own_jacobian is not None:
            return f_t, DenseJacobian(self.own_jacobian(t, x, self.u_at(t)))
        columns = [self._column(t, x, e) for e in np.eye(len(x))]
        return f_t, DenseJacobian(np.stack(columns, axis=1))

    def _column(self, t: float, x: np.ndarray, e: np.ndarray) -> Any:
        return difference(lambda s: self.f(t, x + s * e), 0.0, max(1.0, abs(float(x @ e))))


def time_scale(x: np.ndarray, xdot: np.ndarray) -> float:
    """Return a time in which no state changes by more than about its own size."""
    speed = np.max(np.abs(xdot) / (1.0 + np.abs(x)), initial=0.0)
    return 1.0 / max(float(speed), 1.0)


def difference(g: Callable[[float], Any], t: float, scale: float, since: float = -np.inf) -> Any:
    """Return dg/ds at s = 0; one-sided, to second order, where t - s would lie before `since`."""
    s = max(DIFFERENCE * scale, 16.0 * np.spacing(abs(t)))
    if t - s >= since:
        return (g(s) - g(-s)) / (2.0 * s)
    return (4.0 * g(s) - g(2.0 * s) - 3.0 * g(0.0)) / (2.0 * s)


@dataclass
class Recorder:
    """Keeps samples: at the times that were asked for, or wherever the simulation stands.

    ``inputs`` are those of the span under way, so that a sample before a jump has the value before.
    """

    read: Callable[[float, np.ndarray, list[Any]], list[Any]]
    inputs: Callable[[float], list[Any]]
    times: np.ndarray | None
    t: list[float] = field(default_factory=list)
    x: list[np.ndarray] = field(default_factory=list)
    u: list[list[Any]] = field(default_factory=list)
    y: list[list[Any]] = field(default_factory=list)

    def add(self, t: float, x: np.ndarray) -> None:
        """Add a sample."""
        u = self.inputs(t)
        self.y.append(self.read(t, x, u))
        self.t.append(float(t))
        self.x.append(np.array(x))
        self.u.append(u)

    def reach(self, t: float, state: Callable[[float], np.ndarray], last: bool = False) -> None:
        """Add what was asked for before t (with `last`, and at t), or the end of a step at t."""
        if self.times is None:
            self.add(t, state(t))
            return
        while len(self.t) < len(self.times) and (
            self.times[len(self.t)] < t or (last and self.times[len(self.t)] == t)
        ):
            at = float(self.times[len(self.t)])
            self.add(at, state(at))


@dataclass
class Outcome:
    """How a simulation ended: status, message, counts and events."""

    status: int
    message: str
    steps: int = 0
    rejected: int = 0
    events: list[tuple[float, int, np.ndarray, np.ndarray]] = field(default_factory=list)


def simulate_model(
    model: ContinuousModel,
    inputs: FmuInputs,
    span: tuple[float, float],
    recorder: Recorder,
    options: Options,
    jacobian: Callable[..., np.ndarray] | None,
) -> Outcome:
    """Integrate a model over a span, with its events."""
    return _Simulation(model, inputs, span, recorder, options, jacobian).run()


class _Simulation:
    def __init__(
        self,
        model: ContinuousModel,
        inputs: FmuInputs,
        span: tuple[float, float],
        recorder: Recorder,
        options: Options,
        jacobian: Callable[..., np.ndarray] | None,
    ) -> None:
        self.model, self.inputs, self.recorder, self.options = model, inputs, recorder, options
        self.t0, self.t1 = span
        self.functions = _Functions(model, jacobian)
        self.n = model.binary.description.size_x
        method = find_method(options.method)
        if method.drive is not None:
            raise ValueError(
                f"method={method.name!r} cannot integrate an FMU, because it has no events: use a "
                "built-in method, for stiff systems method='rodas5p'"
            )
        # A model without continuous states gets one that stands still.
        layout = layout_of(np.zeros(max(1, self.n)))
        functions = self.functions

        class Derivative:
            def __call__(self, t: Any, x: np.ndarray) -> np.ndarray:
                return functions.f(t, x) if n else np.zeros(1)

            def linearize(self, t: Any, x: np.ndarray) -> tuple[Any, Any]:
                return functions.linearize(t, x) if n else (np.zeros(1), DenseJacobian(np.eye(1)))

        n, derivative = self.n, Derivative()
        watch = None
        if model.size_z:
            events = tuple(Event(_nothing, terminal=True) for _ in range(model.size_z))
            watch = _Indicators(events, layout, tuple, False, self)
        self.plan = Plan(
            _nothing,
            layout,
            method,
            adaptive=options.is_adaptive(method),
            events=watch,
            bound=lambda args: derivative,
        )
        self.setup = options.setup(layout, self.t0, self.t1, 2**62)
        self.limit = options.step_limit()
        self.outcome = Outcome(Status.FINISHED, "")
        self.returned = np.zeros(model.size_z)

    def z(self, t: float, x: np.ndarray) -> np.ndarray:
        return self.functions.z(t, x[: self.n])

    def z_rate(self, t: float, x: np.ndarray, xdot: np.ndarray) -> np.ndarray:
        return self.functions.z_rate(t, x[: self.n], xdot[: self.n])

    def run(self) -> Outcome:
        t = self.t0
        x = self._padded(self.model.begin(t, self.inputs.at(t)))
        jumps = self.inputs.jumps()
        jumps = jumps[jumps > t]
        self._hold(t)
        self._reach(t, x)
        run: Run | None = None
        while not self.model.has_ended and t < self.t1:
            stop = min(self.t1, self.model.next_time, *jumps[:1])
            if stop > t:
                run, x, ended = self._go(run, t, x, stop)
                t = float(run.t)
                if ended is not None:
                    return self._end(ended, t)
            if t >= stop:
                if stop < self.t1 or self.model.next_time <= t:
                    self._check_progress(t)
                    x, run = self._event(t, x), None
                else:
                    self._reach(t, x)
                jumps = jumps[jumps > t]
        self._reach(t, x)
        return self._end(Status.EVENT if self.model.has_ended else Status.FINISHED, t)

    def _reach(self, t: float, x: np.ndarray) -> None:
        """Add what was asked for until t, where the state is x, but no sample twice."""
        if self.recorder.times is not None or self.recorder.t[-1:] != [t]:
            self.recorder.reach(t, lambda t: x[: self.n], last=True)

    def _check_progress(self, t: float) -> None:
        """Refuse an FMU that wants events at the same time for ever."""
        last = [event[0] for event in self.outcome.events[-MOST_ROUNDS:]]
        if len(last) == MOST_ROUNDS and last[0] == t:
            raise FmuError(
                f"{self.model.binary.description.name}: time stands still at t = {t:.17g}, where "
                f"the FMU has asked for {MOST_ROUNDS} events in a row"
            )

    def _padded(self, x: np.ndarray) -> np.ndarray:
        return x if self.n else np.zeros(1)

    def _hold(self, t: float) -> None:
        self.functions.since = t
        self.functions.u_at = self.recorder.inputs = self.inputs.held_from(t)

    def _event(self, t: float, x: np.ndarray, sides: np.ndarray | None = None) -> np.ndarray:
        """Let an event happen at t, with samples before and after it; return the state.

        ``sides`` of the indicators as in :meth:`ContinuousModel.state_event`; None for an event in
        time.
        """
        own = x[: self.n]
        if self.recorder.times is None:
            if self.recorder.t[-1] != t:
                self.recorder.add(t, own)
        else:
            self.recorder.reach(t, lambda t: own)
        if sides is None:
            which, (after, _) = -1, self.model.event(t, own, self.inputs.at(t))
        else:
            which = int(np.flatnonzero(sides)[0])
            u = self.functions.u_at(t)
            after, self.returned = self.model.state_event(sides, t, own, u)
        self._hold(t)
        self.outcome.events.append((t, which, np.array(own), after))
        if self.recorder.times is None:
            self.recorder.add(t, after)
        else:
            self.recorder.reach(t, lambda t: after, last=True)
        return self._padded(after)

    def _end(self, status: int, t: float) -> Outcome:
        self.outcome.status = status
        if status == Status.EVENT:
            self.outcome.message = f"the FMU ended the simulation at t = {t:.17g}"
        else:
            self.outcome.message = message_of(status, t, self.limit, self.plan.method.stiff)
        return self.outcome

    def _go(
        self, run: Run | None, t: float, x: np.ndarray, stop: float
    ) -> tuple[Run, np.ndarray, int | None]:
        """Go on to `stop` or to an event of the state; also return why all ends, if it does."""
        ode = Integration(self.plan, tree.replace(self.setup, t_end=stop), ())
        with np.errstate(all="ignore"):
            run = ode.begin(t, x, True) if run is None else self._resume(ode, run)
            while run.status == Status.RUNNING:
                if self.outcome.steps + self.outcome.rejected >= self.limit:
                    return run, run.x, Status.TOO_MANY_STEPS
                before = run
                run, _, accepted, _ = make_step(ode, run)
                if not accepted:
                    self.outcome.rejected += 1
                    continue
                self.outcome.steps += 1
                step = self._step_reader(before, run)
                if run.status == Status.EVENT:
                    self.recorder.reach(float(run.t), step)
                    run, ended = self._state_event(ode, before, run)
                    return run, run.x, ended
                self.recorder.reach(float(run.t), step, last=run.t < stop)
                wish = self._complete(run)
                if wish is not None:
                    if wish == Status.EVENT:
                        return run, run.x, Status.EVENT
                    x = self._event(float(run.t), run.x)
                    return ode.begin(run.t, x, True), x, None
        ended = int(run.status)
        return run, run.x, None if ended == Status.FINISHED else ended

    def _resume(self, ode: Integration, run: Run) -> Run:
        """Return a run that goes on to another end of its span."""
        return tree.replace(run, status=np.where(run.t == ode.setup.t_end, 0, Status.RUNNING))

    def _step_reader(self, before: Run, run: Run) -> Callable[[float], np.ndarray]:
        ends = (run.t_old, run.t, run.x_old, run.x, run.dense)
        return lambda t: interpolate(*ends, t, None)[: self.n]

    def _complete(self, run: Run) -> int | None:
        """Tell the FMU that a step has ended; return what it wishes."""
        if not self.model.binary.interface.completed_step_needed:
            return None
        t = float(run.t)
        event, end = self.model.completed_step(t, run.x[: self.n], self.functions.u_at(t))
        return Status.EVENT if end else Status.SETTLED if event else None

    def _state_event(self, ode: Integration, before: Run, run: Run) -> tuple[Run, int | None]:
        """Return the run after an event of the state, and why all ends, if it does.

        ``before`` is the run before the step in which it happened. What fired is at its zero, or
        next to it by rounding, and on which side counts for nothing: where the states did not
        change it has gone to the other side, else it goes where its rate says.
        """
        t, old, start = float(run.t), run.signals, before.signals
        noise = 4.0 * np.abs(self.z(t, run.x)) + 1e-12 * np.abs(start.g)
        came_from = np.where(start.g == 0.0, np.nan, np.sign(start.g))
        x = self._event(t, run.x, np.where(old.fired, came_from, 0.0))
        begun = ode.begin(run.t, x, True)
        g, rate = begun.signals.g, begun.signals.rate
        leaving = np.sign(old.g) if np.array_equal(x, run.x) else np.sign(rate)
        leaving = np.where(self.returned != 0.0, self.returned, leaving)
        wrong = old.fired & (np.abs(g) <= noise) & (leaving != 0.0) & (np.sign(g) != leaving)
        g = np.where(wrong, TINY * leaving, g)
        signals = tree.replace(old, g=g, rate=rate, g_before=g, rate_before=rate)
        run = tree.replace(begun, signals=signals)
        if self.model.has_ended:
            return run, Status.EVENT
        # That the event was terminal hides that events follow each other without end.
        endless = old.near >= NEAR_COUNT or old.close >= CLOSE_COUNT
        return run, Status.CHATTERING if endless else None


def _nothing(t: Any, x: Any) -> Any:
    return 0.0
