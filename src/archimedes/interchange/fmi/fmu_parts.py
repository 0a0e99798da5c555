"""FMUs inside models: what `solve_ode`, derivatives and compiled functions call.

A recording cannot look into a binary, so it calls back (:func:`archimedes.callback`). That is why
an FMU cannot go into C code or to a GPU, and why it has first derivatives only: those that it
offers itself.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function import callback
from archimedes.interchange.fmi.co_simulation import SteppedModel
from archimedes.interchange.fmi.description_reader import FLOATS, FmuVariable
from archimedes.interchange.fmi.fmu_binary import Access, FmuBinary, FmuError
from archimedes.interchange.fmi.fmu_inputs import check_value
from archimedes.interchange.fmi.model_exchange import ContinuousModel, difference, time_scale
from archimedes.interchange.fmi.named_values import (
    NamedValues,
    name_values,
    pack_values,
    unpack_values,
)
from archimedes.simulate import Event, Sampled

if TYPE_CHECKING:
    from archimedes.interchange.fmi.import_fmu import ImportedFmu

_serials = itertools.count()


class SharedInstance:
    """The instance behind `dynamics`, `outputs` and `events`.

    Its discrete states depend on the events that were. These are remembered: asked for an earlier
    time, it begins anew and repeats those before.
    """

    def __init__(self, fmu: ImportedFmu, binary: FmuBinary) -> None:
        # The FMU holds this object: a reference back would keep both alive.
        self.name, self.binary, self.serial = fmu.name, binary, next(_serials)
        self.has_derivatives = fmu.has_derivatives
        self.states, self.u = fmu._states, [v for v in fmu._inputs if v.type in FLOATS]
        self.y = [v for v in fmu._outputs if v.is_number]
        self.start = fmu._start()
        self.model = ContinuousModel(binary, self.start, self.u)
        self.n = fmu.description.size_x
        self.read_y = Access(self.y, binary.version_3)
        self.starts = [np.zeros(v.shape) if v.start is None else v.start for v in self.u]
        self.lock = threading.RLock()
        self.history: list[tuple[float, np.ndarray, int | None, np.ndarray]] = []
        self.began = self.start.t0
        self.knowns = fmu._references(fmu.description.states)
        self.rates = fmu._derivatives()
        self.sizes = {"derivatives": self.n, "outputs": sum(v.size for v in self.y)}

    def __content__(self) -> tuple[int]:
        return (self.serial,)

    def free(self) -> None:
        """Free the instance; another is made where one is needed again."""
        with self.lock:
            self.model.free()
            self.history = []

    # ---- at run time ---------------------------------------------------------------------------

    def visit(self, t: float) -> None:
        """See to it that the discrete states are those of a time."""
        is_back = bool(self.history) and t < self.history[-1][0]
        early = t < self.began and np.isfinite(self.model.next_time)
        if self.model.instance is not None and not is_back and not early:
            return
        kept = [event for event in self.history if event[0] <= t]
        if not kept:
            self.began = t
        self.history = []
        self.model.begin(self.began, self.starts)
        for time, x, indicator, _ in kept:
            self.fire(time, x, self.starts, indicator)

    def fire(self, t: float, x: np.ndarray, u: list[Any], k: int | None = None) -> np.ndarray:
        """Let an event happen, that of indicator k if it is one; return the states after it."""
        last = self.history[-1] if self.history else None
        if last is not None and last[::2] == (t, k) and np.array_equal(last[3], x):
            return x  # asked twice
        # An event in time is located to rounding; FMUs compare with the time that they gave.
        due = self.model.next_time
        at = due if k is None and abs(due - t) <= 1e-12 * max(1.0, abs(t)) else t
        if k is None:
            after, _ = self.model.event(at, x, u)
        else:
            sides = np.zeros(self.model.size_z)
            sides[k] = np.nan
            after, _ = self.model.state_event(sides, at, x, u)
        if self.model.has_ended:
            raise FmuError(f"{self.name}: the FMU asked to end the simulation at t = {t:.17g}")
        self.history.append((t, x.copy(), k, after.copy()))
        return after

    def inputs(self, names: tuple[str, ...], values: np.ndarray) -> list[Any]:
        """Return all inputs, those that are not named at their start values."""
        given, at = {}, 0
        sizes = {v.name: v for v in self.u}
        for name in names:
            variable = sizes[name]
            part = values[at : at + variable.size].reshape(variable.shape)
            given[name] = check_value(variable, part, "u")
            at += variable.size
        return [given.get(v.name, start) for v, start in zip(self.u, self.starts)]

    def value(self, what: str, t: float, x: np.ndarray, u: list[Any]) -> np.ndarray:
        """Return a value at a point: "derivatives", "outputs", "indicators" or "time"."""
        if what == "derivatives":
            return self.model.derivatives(t, x, u)
        if what == "outputs":
            values = self.model.read(self.read_y, t, x, u)
            return np.concatenate([np.zeros(0), *(np.ravel(v) * 1.0 for v in values)])
        if what == "indicators":
            return self.model.indicators(t, x, u)
        return np.array([t - self.model.next_time if np.isfinite(self.model.next_time) else -1.0])

    def compute(self, what: str, names: tuple[str, ...], t: Any, x: Any, u: Any) -> np.ndarray:
        """Return a value where a recording runs; nan where it asks for nan."""
        with self.lock:
            t, x = float(t), np.asarray(x, dtype=np.float64)
            if not np.isfinite(t) or not np.isfinite(x).all() or not np.isfinite(u).all():
                return np.full(self.size(what), np.nan)
            self.visit(t)
            return self.value(what, t, x, self.inputs(names, np.asarray(u)))

    def size(self, what: str) -> int:
        """Return how many numbers a value has."""
        return self.sizes.get(what, self.model.size_z if what == "indicators" else 1)

    def jacobian(self, what: str, names: tuple[str, ...], t: Any, x: Any, u: Any) -> np.ndarray:
        """Return the derivatives (n, 1 + size of x + size of u) of a value in t, x and u."""
        with self.lock:
            t, x, u = float(t), *(np.asarray(p, dtype=np.float64) for p in (x, u))
            size, count = self.size(what), len(x) + len(u)
            if not all(np.isfinite(part).all() for part in (t, x, u)):
                return np.full((size, 1 + count), np.nan)
            self.visit(t)
            values = self.inputs(names, u)
            by_time = difference(
                lambda s: self.value(what, t + s, x, values), t, max(1.0, abs(t)), self.since
            )
            unknowns = self.rates
            if what == "outputs":
                unknowns = np.array([v.reference for v in self.y], dtype=np.uint32)
            inputs = {v.name: v.reference for v in self.u}
            references = np.array([inputs[name] for name in names], dtype=np.uint32)
            knowns = np.concatenate([self.knowns, references])
            columns = [
                self.model.tangent(unknowns, knowns, (t, x, values), seed, size)
                for seed in np.eye(count)
            ]
            return np.stack([by_time, *columns], axis=1)

    def slope(self, what: str, args: Sequence[Any]) -> np.ndarray:
        """Return how fast an indicator changes along (dt, dx), by differences."""
        with self.lock:
            t, x, dt, dx = float(args[0]), np.asarray(args[1]), float(args[3]), np.asarray(args[4])
            if not all(np.isfinite(part).all() for part in (t, x, dt, dx)):
                return np.full(self.size(what), np.nan)
            self.visit(t)
            rate = difference(
                lambda s: self.value(what, t + s * dt, x + s * dx, self.starts),
                *(t, time_scale(x, dx), self.since if dt > 0.0 else -np.inf),
            )
            if what == "indicators":
                return np.where(self.model.is_two_valued, 0.0, rate)
            return rate

    @property
    def since(self) -> float:
        """When the last event was: differences do not reach back before it."""
        return self.history[-1][0] if self.history else self.began

    def reset(self, k: int | None, t: Any, x: Any) -> np.ndarray:
        """Return the states after an event: that of indicator k, or one in time."""
        with self.lock:
            self.visit(float(t))
            return self.fire(float(t), np.asarray(x, dtype=np.float64), self.starts, k)

    # ---- in recordings -------------------------------------------------------------------------

    def call(self, what: str, names: tuple[str, ...], t: Any, x: Any, u: Any) -> Any:
        """Return values as a part of a program, with first derivatives if the FMU has any."""
        example = np.zeros(self.size(what))

        def value(t: Any, x: Any, u: Any) -> np.ndarray:
            return self.compute(what, names, t, x, u)

        def tangent(primals: Any, tangents: Any) -> Any:
            if what in ("indicators", "time"):
                return callback(slope, example, *primals, *tangents, jvp=self.refuse_events)
            if not self.has_derivatives:
                raise TraceError(
                    f"{self.name} offers no directional derivatives, so it cannot be "
                    "differentiated: use an explicit method, or an FMU exported with them"
                )
            # A product with a matrix, so that reverse mode can transpose it.
            (dt, dx, du), n = tangents, np.shape(x)[0]
            shape = np.zeros((len(example), 1 + n + np.shape(u)[0]))
            matrix = callback(jacobian, shape, *primals, jvp=self.refuse)
            total = matrix[:, 0] * dt + matrix[:, 1 : 1 + n] @ dx
            return total + matrix[:, 1 + n :] @ du if names else total

        def jacobian(t: Any, x: Any, u: Any) -> np.ndarray:
            return self.jacobian(what, names, t, x, u)

        def slope(*args: Any) -> np.ndarray:
            return self.slope(what, args)

        value.__name__ = jacobian.__name__ = slope.__name__ = f"{self.name}.{what}"
        return callback(value, example, t, x, u, jvp=tangent)

    def like(self, x: Any, flat: np.ndarray) -> Any:
        """Return a flat state by name, if the state x is."""
        return unpack_values(self.states, flat) if isinstance(x, Mapping) else flat

    def refuse(self, primals: Any, tangents: Any) -> Any:
        """Refuse a second derivative."""
        raise TraceError(
            f"{self.name}: FMUs have first derivatives only, and second ones were asked for"
        )

    def refuse_events(self, primals: Any, tangents: Any) -> Any:
        """Refuse derivatives through events."""
        raise TraceError(
            f"{self.name}: a solve cannot be differentiated through the events of an FMU, which "
            "offers no derivatives of what happens there: differentiate a span without events, "
            "leaving out events=fmu.events"
        )

    def events(self) -> list[Event]:
        """Return the events of state and time."""
        no_input, new = np.zeros(0), np.zeros(self.n)

        def reset(k: int | None) -> Callable[..., Any]:
            def happen(t: Any, x: Any) -> np.ndarray:
                return self.reset(k, t, x)

            def after(t: Any, x: Any) -> Any:
                flat = pack_values(x, self.states, "x")
                return self.like(x, callback(happen, new, t, flat, jvp=self.refuse_events))

            return after

        def indicator(k: int) -> Callable[..., Any]:
            def z(t: Any, x: Any) -> Any:
                return self.call("indicators", (), t, pack_values(x, self.states, "x"), no_input)[k]

            return z

        def time(t: Any, x: Any) -> Any:
            return self.call("time", (), t, pack_values(x, self.states, "x"), no_input)[0]

        own = [Event(indicator(k), reset=reset(k)) for k in range(self.model.size_z)]
        return [*own, Event(time, 1, reset=reset(None))]


class SampledFmu:
    """A co-simulation FMU behind a sampled part."""

    def __init__(
        self, fmu: ImportedFmu, binary: FmuBinary, inputs: Callable[..., Mapping[str, Any]] | None
    ) -> None:
        self.name, self.inputs, self.serial = fmu.name, inputs, next(_serials)
        self.variables = {v.name: v for v in fmu._inputs if v.is_number}
        self.y = [v for v in fmu._outputs if v.is_number]
        self.model = SteppedModel(binary, fmu._start(), list(self.variables.values()))
        self.access = Access(self.y, binary.version_3)
        self.starts = {
            v.name: np.zeros(v.shape) if v.start is None else v.start
            for v in self.variables.values()
        }
        self.last: list[Any] = []
        self.lock = threading.RLock()

    def __content__(self) -> tuple[Any, ...]:
        return (self.serial, self.inputs)

    def step(self, names: tuple[str, ...], t: Any, *values: Any) -> list[np.ndarray]:
        """Go on to a sampling time, take the inputs there, and return the outputs."""
        with self.lock:
            t, model = float(t), self.model
            given = [
                check_value(self.variables[name], _typed(value, self.variables[name]), "inputs")
                for name, value in zip(names, values)
            ]
            every = [{**self.starts, **dict(zip(names, given))}[name] for name in self.variables]
            if model.instance is None or t < model.t:
                model.begin(t, every)
            elif t > model.t:
                model.go(t)
                if model.has_ended:
                    raise FmuError(f"{self.name}: the FMU asked to end at t = {model.t:.17g}")
                model.set_inputs(every)
            elif not all(map(np.array_equal, every, self.last)):
                raise FmuError(
                    f"{self.name} was asked twice for t = {t:.6g}, with different inputs: an FMU "
                    "holds one simulation at a time, so that it cannot be solved in a batch. For "
                    "another solve from the same start, make another part with sampled()"
                )
            self.last = every
            return [np.asarray(value) * 1.0 for value in model.read(self.access)]

    def part(self, dt: float) -> Sampled:
        """Return the part, whose memory are the outputs as floats."""
        example = [np.zeros(v.shape) for v in self.y]
        inputs, y, known = self.inputs, self.y, self.variables

        def update(t: Any, x: Any, u: Any, *args: Any) -> NamedValues:
            given = {} if inputs is None else inputs(t, x, *args)
            for name in given:
                if name not in known:
                    raise ValueError(
                        f"inputs[{name!r}] is no input of {self.name}; there are: "
                        f"{', '.join(known) or 'none'}"
                    )
            step = functools.partial(self.step, tuple(given))
            return name_values(y, callback(step, example, t, *given.values()))

        return Sampled(update, name_values(y, example), dt=dt)


def _typed(value: Any, variable: FmuVariable) -> Any:
    """Return a number of a recording as what a discrete input takes."""
    if variable.type == "Boolean":
        return np.asarray(value) != 0
    return value
