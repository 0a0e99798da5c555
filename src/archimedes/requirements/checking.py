"""Checks: which runs violate which requirements, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.checks import check_type
from archimedes.display import number, text_table
from archimedes.requirements.formulas import Requirement
from archimedes.requirements.runs import runs_of
from archimedes.requirements.verdicts import (
    Verdict,
    axis_value,
    decide,
    judge_run,
    status_of,
    take_run,
)

__all__ = ["CheckReport", "check"]

#: Requirements in print, and characters of what stands in a cell.
ROWS, WIDEST = 12, 44


@dataclass(frozen=True, eq=False, repr=False)
class CheckReport:
    """Requirements against runs; made by :func:`check`.

    Parameters
    ----------
    requirements : dict of Requirement
        The requirements by name.
    robustness : array (requirements, runs)
        Distance to the limit, negative where a run violates a requirement; nan where it is
        undetermined.
    status : array (requirements, runs) of str
        ``"satisfied"``, ``"violated"`` or ``"undetermined"``.
    verdicts : list of Verdict
        For each requirement the verdict on its worst run.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import requirements as req
    >>> runs = {"t": np.tile([0.0, 1.0], (3, 1)), "alt": np.array([[5.0, 4], [2, 1], [3, 7]])}
    >>> report = req.check({"floor": req.always(req.signal("alt") > 2)}, runs)
    >>> report.ok, report.violations
    (False, [('floor', 1, -1.0)])
    """

    requirements: dict[str, Requirement]
    robustness: np.ndarray
    status: np.ndarray
    verdicts: list[Verdict]

    @property
    def ok(self) -> bool:
        """Whether every run keeps every requirement, and none is undetermined."""
        return bool((self.status == "satisfied").all())

    @property
    def violations(self) -> list[tuple[str, int, float]]:
        """Name of the requirement, number of the run and robustness, the worst first by each."""
        found = []
        for name, row, status in zip(self.requirements, self.robustness, self.status):
            runs = np.flatnonzero(status == "violated")
            order = runs[np.argsort(row[runs], kind="stable")]
            found += [(name, int(run), float(row[run])) for run in order]
        return found

    def report(self) -> str:
        """Return everything as text: all requirements, and every violation."""
        lines = [f"{name}, run {run}: {number(size)}" for name, run, size in self.violations]
        return "\n".join([text_table(self._rows()), *lines])

    def _rows(self) -> list[list[str]]:
        rows = [["requirement", "violated", "undetermined", "worst", "run", "what decides"]]
        count = self.robustness.shape[1]
        for k, (name, requirement) in enumerate(self.requirements.items()):
            violated, unknown = (
                int((self.status[k] == s).sum()) for s in ("violated", "undetermined")
            )
            verdict, label = self.verdicts[k], name if name else requirement.text()
            worst, run = "", ""
            if unknown < count:
                worst = axis_value(verdict.robustness, verdict.units)
                run = str(int(np.nanargmin(self.robustness[k])))
            why = verdict.reason or f"{verdict.condition} at t = {number(verdict.time)}"
            rows.append([label, f"{violated} of {count}", str(unknown), worst, run, why])
        return rows

    def __repr__(self) -> str:
        rows = [[shorten(cell) for cell in row] for row in self._rows()]
        lines = [text_table(rows[: ROWS + 1])]
        if len(rows) > ROWS + 1:
            lines.append(f"... {len(rows) - ROWS - 1} more requirements: see report()")
        if len(self.violations) > 1:
            lines.append(f"{len(self.violations)} violations in all: see violations and report()")
        return "\n".join(lines)


def check(
    requirements: Any, source: Any, t: Any = None, *, refine: int | None = None
) -> CheckReport:
    """Return which runs violate which requirements, and by how much.

    Parameters
    ----------
    requirements : Requirement, sequence or dict of them
        What is required; the keys of a dict are names.
    source : Trajectory, table or Campaign
        One run or many: a trajectory or a batch of them, a dict of arrays (n,) or (runs, n) by
        name, a DataFrame, or a `Campaign` whose model returns a trajectory or a dict with times
        ``t``.
    t : array_like (n,) or (runs, n), optional
        Times of the samples of a table without a column ``t``.
    refine : int, optional
        Parts that each step is divided into, as in :meth:`Requirement.robustness`.

    Returns
    -------
    CheckReport
        Robustness and status of each requirement in each run.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import requirements as req
    >>> from archimedes.simulate import Uniform, monte_carlo
    >>> t = np.linspace(0.0, 5.0, 51)
    >>> def fall(p):
    ...     return {"t": t, "alt": p["alt"] - 4.905 * t**2}
    >>> campaign = monte_carlo(fall, {"alt": Uniform(100.0, 150.0)}, n=200)
    >>> report = req.check({"floor": req.always(req.signal("alt") > 0)}, campaign)
    >>> bool(len(report.violations) == np.sum(report.robustness < 0) > 0)
    True
    """
    named = name_requirements(requirements)
    runs = runs_of(source, t, 0.0, refine)
    robustness, statuses, verdicts = [], [], []
    for requirement in named.values():
        bounds = [requirement.start_bounds(run) for run in runs]
        lower, upper = (np.concatenate([np.atleast_1d(b[k]) for b in bounds]) for k in (0, 1))
        values = decide(lower, upper)
        robustness.append(values)
        statuses.append(status_of(lower, upper))
        worst = int(np.nanargmin(values)) if np.isfinite(values).any() else 0
        verdicts.append(judge_run(requirement, take_run(runs, worst), lower[worst], upper[worst]))
    shape = (len(named), sum(max(1, *run.trajectory.batch_shape, 1) for run in runs))
    return CheckReport(
        named,
        np.reshape(robustness, shape),
        np.reshape(np.array(statuses, dtype=str), shape),
        verdicts,
    )


def name_requirements(requirements: Any) -> dict[str, Requirement]:
    """Return requirements by their names, or by what they say."""
    if isinstance(requirements, Requirement):
        requirements = [requirements]
    if not isinstance(requirements, Mapping):
        check_type(requirements, "check: requirements", Sequence, "write [a, b] or {'name': a}")
        requirements = {getattr(r, "name", "") or repr(r): r for r in requirements}
    for name, requirement in requirements.items():
        check_type(requirement, f"check: {name}", Requirement, "such as req.always(alt > 100)")
    return dict(requirements)


def shorten(text: str) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."
