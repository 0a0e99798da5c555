"""Co-simulation: an FMU brings its own solver, and is told step by step how far to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.interchange.fmi.description_reader import FmuVariable
from archimedes.interchange.fmi.fmu_binary import Access, FmuBinary, FmuError, FmuInstance
from archimedes.interchange.fmi.model_exchange import Outcome, Recorder, Start, start_instance
from archimedes.simulate.statuses import Status

#: Times that differ by less than this part of a step are the same communication point.
SAME = 1e-9
#: Communication steps in a simulation.
MOST_STEPS = 100_000_000


class SteppedModel:
    """An instance between communication points.

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
        self.instance: FmuInstance | None = None
        self.t = np.nan
        self.has_ended = False

    def begin(self, t: float, u: Sequence[Any]) -> None:
        """Make a new instance at a time, with its inputs there."""
        self.free()
        own = self.start
        begun = Start(own.parameters, t, own.t1, own.tolerance, own.log)
        self.instance = start_instance(self.binary, begun, self.inputs, u)
        self.t, self.has_ended = t, False
        if self.binary.interface.event_mode:
            self._iterate()

    def _iterate(self) -> None:
        assert self.instance is not None
        self.has_ended |= self.instance.update_discrete_states().terminate
        self.instance.enter_step_mode()

    def set_inputs(self, u: Sequence[Any]) -> None:
        """Set the inputs for the next step."""
        assert self.instance is not None
        self.inputs.write(self.instance, u)

    def go(self, t: float) -> None:
        """Go on to a time, with the inputs as they are."""
        instance = self.instance
        assert instance is not None
        while self.t < t and not self.has_ended:
            reached, has_event, has_ended = instance.do_step(self.t, t - self.t)
            if not np.isfinite(reached) or (reached <= self.t and not (has_event or has_ended)):
                raise FmuError(
                    f"{self.binary.description.name}: the step from t = {self.t:.17g} ended at "
                    f"{reached:.17g}, so the FMU does not move"
                )
            self.t, self.has_ended = reached, self.has_ended or has_ended
            if has_event and self.binary.interface.event_mode:
                instance.enter_event_mode()
                self._iterate()

    def read(self, access: Access) -> list[Any]:
        """Return the values of variables."""
        assert self.instance is not None
        return access.read(self.instance)

    def end(self) -> None:
        """End the simulation in order: FMUs may write files then."""
        if self.instance is not None:
            self.instance.terminate()

    def free(self) -> None:
        """Free the instance, if there is one."""
        if self.instance is not None:
            self.instance.free()
            self.instance = None


def communication_points(
    start: float, end: float, dt: float, times: np.ndarray | None, variable: bool, name: str
) -> np.ndarray:
    """Return the times at which steps end: multiples of dt, and the times that were asked for.

    An FMU of fixed communication steps takes none of another length.
    """
    if (end - start) / dt > MOST_STEPS:
        raise ValueError(
            f"dt = {dt:.6g} makes {(end - start) / dt:.3g} steps in t_span; at most {MOST_STEPS}: "
            "choose a larger dt, or a shorter span"
        )
    count = int(np.ceil((end - start) / dt - SAME))
    grid = start + dt * np.arange(1, count + 1)
    whole = abs(grid[-1] - end) <= SAME * dt
    grid[-1] = end
    points = grid
    if times is not None:
        # Times next to a point of the grid are that point.
        nearest = np.clip(np.round((times - start) / dt).astype(np.int64), 0, count)
        off = np.abs(times - np.concatenate([[start], grid])[nearest]) > SAME * dt
        points = np.unique(np.concatenate([grid, times[off]]))
        if off.any() and not variable:
            raise ValueError(
                f"t_eval holds {times[off][0]:.12g}, which is no multiple of dt = {dt:.6g}, and "
                f"{name} takes only steps of equal length: choose dt so that it divides all times"
            )
    if not whole and not variable:
        raise ValueError(
            f"t_span ends at {end:.12g}, no whole number of steps dt = {dt:.6g} after {start:.12g},"
            f" and {name} takes only steps of equal length: choose another end, or dt"
        )
    return points


def simulate_steps(
    model: SteppedModel,
    inputs: Any,
    start: float,
    points: np.ndarray,
    recorder: Recorder,
    x: Access,
) -> Outcome:
    """Step through the communication points."""

    def state(t: float) -> np.ndarray:
        values = [np.ravel(value) for value in model.read(x)]
        return np.concatenate([np.zeros(0), *values])

    def record(t: float) -> None:
        times, done = recorder.times, len(recorder.t)
        if times is None:
            recorder.add(t, state(t))
        else:
            slack = SAME * float(np.min(np.diff(points, prepend=start)))
            while done < len(times) and abs(times[done] - t) <= slack:
                recorder.add(float(times[done]), state(t))
                done += 1

    model.begin(start, inputs.at(start))
    record(start)
    for count, t in enumerate(points.tolist()):
        if count:
            model.set_inputs(inputs.at(model.t))
        model.go(t)
        record(model.t)
        if model.has_ended:
            message = f"the FMU ended the simulation at t = {model.t:.17g}"
            return Outcome(Status.EVENT, message, count + 1)
    return Outcome(Status.FINISHED, "the end of the time span was reached", len(points))
