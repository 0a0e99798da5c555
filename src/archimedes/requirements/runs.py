"""Runs: what requirements are evaluated on, whatever it comes from, at the times they ask for.

Between samples, states are those of the dense output where the solver kept it. Without it they are
linear between samples; inputs that are held stay what they are until the next sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.records import record
from archimedes.requirements.windows import Fold, fold_windows
from archimedes.simulate.campaigns.campaign import Campaign
from archimedes.simulate.trajectory.trajectory import Trajectory

#: Parts that a step of a trajectory with dense output is divided into.
REFINE = 8
#: Times that differ by less than this many units in the last place are the same.
SAME = 16.0

#: Bounds of the robustness: a lower and an upper one, the same object where all is known.
Bounds = tuple[Any, Any]


@record
class Windows:
    """The windows of a temporal operator: positions in the times at which its part is needed."""

    times: np.ndarray
    first: np.ndarray
    last: np.ndarray
    #: Which windows pass the end of the run, and which lie beyond it altogether.
    cut: np.ndarray
    empty: np.ndarray

    @property
    def unknown(self) -> Bounds:
        """The bounds where all windows lie beyond the end of the run."""
        upper = np.full(len(self.cut), np.inf)
        return -upper, upper

    def minimum(self, bounds: Bounds, fold: Fold) -> Bounds:
        """Return the bounds of the minimum over each window; what is not known may be anything."""
        low, high = bounds
        upper = fold_windows(high, self.first, self.last, fold)
        lower = upper if low is high else fold_windows(low, self.first, self.last, fold)
        if self.cut.any():
            lower = np.where(self.cut, -np.inf, lower)
        if self.empty.any():
            upper = np.where(self.empty, np.inf, upper)
        return lower, upper


@record
class Run:
    """One run, or several with the same times, and how minima are taken on it."""

    trajectory: Trajectory
    #: Times at which conditions are evaluated, (n,), increasing.
    t: np.ndarray
    #: Whether the run ended where it was to end.
    complete: bool = True
    fold: Fold = field(default_factory=Fold)
    #: What the margin of a comparison is divided by, by the identity of the comparison.
    scales: Mapping[int, Any] = field(default_factory=dict)
    frames: dict[bytes, Trajectory] = field(default_factory=dict)

    @property
    def same(self) -> float:
        """Times that differ by less are the same."""
        return SAME * float(np.spacing(np.abs(self.t[[0, -1]]).max()))

    def windows(self, times: np.ndarray, start: float, stop: float | None) -> Windows:
        """Return the windows from ``times + start`` to ``times + stop``, None for the run's end."""
        same, end = self.same, self.t[-1]
        low = times + start
        high = np.full_like(times, end) if stop is None else times + stop
        cut = np.full(len(times), not self.complete) if stop is None else high > end + same
        empty = low > end + same
        low, high = np.minimum(low, end), np.minimum(high, end)
        inside = (self.t >= low.min() - same) & (self.t <= high.max() + same)
        ends = np.concatenate([low[~empty], high[~empty]])
        grid = np.unique(np.concatenate([self.t[inside & ~empty.all()], self.snap(ends)]))
        first = np.searchsorted(grid, low - same, side="left")
        last = np.searchsorted(grid, high + same, side="right") - 1
        return Windows(grid, np.minimum(first, last), last, cut, empty)

    def snap(self, times: np.ndarray) -> np.ndarray:
        """Return times, moved to a sample where they are one but for rounding."""
        after = np.minimum(np.searchsorted(self.t, times), len(self.t) - 1)
        before = np.maximum(after - 1, 0)
        closer = np.abs(times - self.t[before]) < np.abs(times - self.t[after])
        near = self.t[np.where(closer, before, after)]
        return np.where(np.abs(times - near) <= self.same, near, times)

    def frame(self, times: np.ndarray) -> Trajectory:
        """Return the run at some times."""
        key = times.tobytes()
        if key not in self.frames:
            self.frames[key] = self._interpolate(times)
        return self.frames[key]

    def _interpolate(self, times: np.ndarray) -> Trajectory:
        traj = self.trajectory
        samples = increasing_times(traj)
        if np.array_equal(times, samples):
            return traj
        k = np.clip(np.searchsorted(samples, times, side="right") - 1, 0, max(len(samples) - 2, 0))
        after = np.minimum(k + 1, len(samples) - 1)
        length = np.where(after > k, samples[after] - samples[k], 1.0)
        weight = np.clip((times - samples[k]) / length, 0.0, 1.0)
        # At a sample the value itself, whatever stands beside it.
        k, weight = np.where(weight == 1.0, after, k), np.where(weight == 1.0, 0.0, weight)
        axis = traj.t.ndim - 1

        def linear(leaf: Any) -> Any:
            before = np.take(leaf, k, axis=axis)
            if not weight.any():
                return before
            w = np.reshape(weight, (len(times), *(1,) * (leaf.ndim - axis - 1)))
            between = (1.0 - w) * before + w * np.take(leaf, after, axis=axis)
            return np.where(w == 0.0, before, between)

        def held(leaf: Any) -> Any:
            return np.take(leaf, k, axis=axis)

        x = traj.dense(times) if traj.dense is not None else tree.map(linear, traj.x)
        u = tree.map(held if traj.hold == "zoh" else linear, traj.u)
        t = np.broadcast_to(times, (*traj.batch_shape, len(times)))
        return Trajectory(t, x, u=u, y=tree.map(linear, traj.y), hold=traj.hold)


def runs_of(
    source: Any, t: Any = None, smooth: float = 0.0, refine: int | None = None
) -> list[Run]:
    """Return the runs in a source: one, or one for each run of a batch with times of its own.

    A batch whose runs have the same times is one run, with its instances along the first axis.
    """
    return [
        Run(traj, _grid(traj, refine), bool(np.all(traj.success)), Fold(float(smooth)))
        for traj in _split(as_trajectory(source, t))
    ]


def as_trajectory(source: Any, t: Any = None) -> Trajectory:
    """Return what was simulated or measured as a trajectory."""
    if isinstance(source, Campaign):
        source = source.results
    if isinstance(source, Trajectory):
        return source
    if hasattr(source, "columns") and hasattr(source, "index"):  # a DataFrame
        return Trajectory.from_pandas(source)
    if isinstance(source, Mapping):
        source = {
            k: np.asarray(v) if isinstance(v, (list, tuple)) else v for k, v in source.items()
        }
    if t is None and isinstance(source, Mapping) and "t" in source:
        t = source["t"]
        shape = np.shape(t)
        source = {
            name: value
            for name, value in source.items()
            if name != "t" and all(np.shape(v)[: len(shape)] == shape for v in tree.leaves(value))
        }
    if t is None:
        raise ValueError(
            'a table needs the times of its rows: give t=..., or a column "t"; got '
            f"{type(source).__name__}. Simulations return a Trajectory, which has them"
        )
    return Trajectory(t, source)


def _split(traj: Trajectory) -> Iterator[Trajectory]:
    """Yield parts of a batch that have the same times; one run as it is."""
    if len(traj.batch_shape) > 1:
        raise ValueError(f"requirements are evaluated on one batch axis, got {traj.batch_shape}")
    if is_traced(traj.t):
        raise TypeError(
            "requirements need to know the times of the samples while a function is recorded: "
            "give t_eval as an array of numbers, not as an argument"
        )
    if not traj.t.shape[-1]:
        raise ValueError("this run has no samples: requirements need at least one")
    if traj.t.ndim == 1 or (traj.dense is None and (traj.t == traj.t[:1]).all()):
        yield traj
    else:
        yield from (traj[k] for k in range(len(traj.t)))


def increasing_times(traj: Trajectory) -> np.ndarray:
    """Return the times (n,); two samples at one time, as before and after a jump, come in order."""
    t = np.array(traj.t if traj.t.ndim == 1 else traj.t[0])
    if not np.isfinite(t).all() or (np.diff(t) < 0.0).any():
        raise ValueError("the times of a run must be finite and increase: sort the samples by time")
    while (again := np.flatnonzero(np.diff(t) <= 0.0)).size:
        t[again + 1] = np.nextafter(t[again], np.inf)
    return t


def _grid(traj: Trajectory, refine: int | None) -> np.ndarray:
    """Return the times at which conditions are evaluated: the samples, and more between them."""
    t = increasing_times(traj)
    parts = refine or (1 if traj.dense is None else REFINE)
    if parts == 1 or len(t) == 1:
        return t
    shares = np.arange(parts) / parts
    between = (t[:-1, None] + np.diff(t)[:, None] * shares).ravel()
    return np.unique(np.concatenate([between, t]))
