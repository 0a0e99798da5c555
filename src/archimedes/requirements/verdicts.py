"""Verdicts: whether a run keeps a requirement, by how much, and what decides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.display import number
from archimedes.requirements.runs import Run, runs_of

if TYPE_CHECKING:
    from archimedes.requirements.formulas import Requirement

__all__ = ["Verdict"]

STATUSES = np.array(["undetermined", "satisfied", "violated"])


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """Whether one run keeps a requirement.

    Parameters
    ----------
    requirement : Requirement
        The requirement.
    status : str
        ``"satisfied"``, ``"violated"``, or ``"undetermined"`` where the run ends before it is
        decided, or a signal is nan. A robustness of exactly zero counts as satisfied.
    robustness : float
        The distance to the limit, negative where it is violated; nan where it is undetermined.
    lower, upper : float
        Bounds of the robustness, whatever would have come after the end of the run.
    time : float
        The time that decides.
    condition : str
        The comparison that decides, as text.
    units : str
        Unit of the robustness, "" where it has none, or where different ones are compared.
    reason : str
        Why it is undetermined, "" elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import requirements as req
    >>> table = {"t": np.arange(4.0), "alt": np.array([5.0, 2.0, 4.0, 6.0])}
    >>> verdict = req.eventually(req.signal("alt") > 5).verdict(table)
    >>> verdict.status, float(verdict.robustness), float(verdict.time)
    ('satisfied', 1.0, 3.0)
    """

    requirement: Requirement
    status: str
    robustness: float
    lower: float
    upper: float
    time: float
    condition: str
    units: str = ""
    reason: str = ""

    def __repr__(self) -> str:
        if self.status == "undetermined":
            return f"undetermined: {self.reason}"
        size = axis_value(abs(self.robustness), self.units)
        return f"{self.status} by {size}: {self.condition} at t = {number(self.time)}"


def decide(lower: Any, upper: Any) -> Any:
    """Return the robustness that two bounds leave; nan where they leave the sign open."""
    if lower is upper:
        return upper
    open_ = np.where(lower >= 0.0, lower, np.nan)
    return np.where(lower == upper, upper, np.where(upper < 0.0, upper, open_))[()]


def judge(requirement: Requirement, source: Any, t: Any, refine: int | None) -> Verdict:
    """Return the verdict on one run."""
    runs = runs_of(source, t, 0.0, refine)
    if len(runs) > 1 or runs[0].trajectory.batch_shape:
        raise ValueError(
            "verdict is about one run: take one, traj[k], or use req.check(...) for all"
        )
    lower, upper = requirement.start_bounds(runs[0])
    return judge_run(requirement, runs[0], lower, upper)


def status_of(lower: Any, upper: Any) -> np.ndarray:
    """Return what bounds of the robustness say; nan leaves it open."""
    return STATUSES[np.where(upper < 0.0, 2, np.where(lower >= 0.0, 1, 0))]


def take_run(runs: Sequence[Run], number: int) -> Run:
    """Return one run of many."""
    if len(runs) > 1 or not runs[0].trajectory.batch_shape:
        return runs[number]
    batch = runs[0]
    return Run(batch.trajectory[number], batch.t, batch.complete, batch.fold)


def judge_run(requirement: Requirement, run: Run, lower: Any, upper: Any) -> Verdict:
    status, robustness = str(status_of(lower, upper)), decide(lower, upper)
    if status == "undetermined":
        reason = _say_why(requirement, run, lower, upper)
        return Verdict(requirement, status, robustness, lower, upper, np.nan, "", "", reason)
    # Where the bounds differ, the one that decides is that nearer to zero.
    decisive, time = requirement.critical(run, float(run.t[0]), 1 if status == "violated" else 0)
    return Verdict(
        *(requirement, status, robustness, lower, upper, time, decisive.text()),
        units=decisive.units_in(run),
    )


def _say_why(requirement: Requirement, run: Run, lower: Any, upper: Any) -> str:
    if np.isnan(lower) or np.isnan(upper):
        for comparison in requirement.comparisons():
            values = comparison.bounds(run, run.t)[0]
            if np.isnan(values).any():
                when = run.t[int(np.argmax(np.isnan(values)))]
                return f"{comparison.text()} is nan at t = {number(when)}"
        return "the margins are infinite with both signs"
    end = f"the run ends at t = {number(float(run.t[-1]))}"
    if not run.complete:
        return f"{end}, where the simulation failed: {run.trajectory.message}"
    until = float(run.t[0]) + requirement.horizon
    if np.isfinite(until):
        return f"{end}, the requirement looks until t = {number(until)}"
    return f"{end}, before what the requirement waits for is decided"


def axis_value(value: float, units: str) -> str:
    """Return a number with its unit.

    >>> axis_value(2.5, "m"), axis_value(2.5, "")
    ('2.5 m', '2.5')
    """
    return number(float(value)) + (f" {units}" if units else "")
