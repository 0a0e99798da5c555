"""Inputs of a simulation: time series, and parts that are sampled, such as digital controllers.

A time series interpolates values between given times. A sampled part acts at times of its own. It
has a memory ``u``: any tree of numbers, which does not change between samples. The loops stop
exactly at each sampling time, let the parts that are due change their memory, and go on. The
memories travel as a part of the state whose derivative is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from archimedes import checks, tree
from archimedes.checks import is_traced
from archimedes.display import number
from archimedes.errors import TraceError
from archimedes.function import cond
from archimedes.function.dependencies.states import fingerprint
from archimedes.function.interpolation import Axis, look_up
from archimedes.function.region_bodies import must_record
from archimedes.random.arguments import check_key
from archimedes.random.keys import fold_in
from archimedes.simulate.problem.state_layout import Args, Layout, rounding
from archimedes.tree.struct_methods import struct_repr

if TYPE_CHECKING:
    from archimedes.simulate.trajectory.trajectory import Trajectory
    from archimedes.typing import Array, Scalar, Tree

__all__ = ["InputSeries", "Sampled"]


class InputSeries:
    """An input given by samples: ``series(t)`` is the value at t.

    Before the first and after the last sample the value there is held. Given to `solve_ode` as
    `inputs`, it makes the solver stop at the samples, so that jumps and kinks cost no accuracy.

    Parameters
    ----------
    t : array_like (m,)
        Times of the samples, increasing.
    u : array or tree
        Values, with m samples along the first axis of every leaf. Inside a compiled function they
        may be computed.
    hold : {"zoh", "foh"}, optional
        How the input goes on between samples. ``"zoh"`` (zero-order hold), the default: each value
        until the next sample, as a digital controller gives it out. ``"foh"`` (first-order hold):
        linear in between.

    Examples
    --------
    >>> series = InputSeries([0.0, 1.0, 3.0], [0.0, 2.0, 4.0])
    >>> float(series(2.0)), float(InputSeries(series.t, series.u, hold="foh")(2.0))
    (2.0, 3.0)
    """

    def __init__(self, t: Scalar, u: Tree, hold: str = "zoh") -> None:
        checks.check_hold(hold, "InputSeries: hold")
        remedy = "sort the samples (np.argsort) and drop repeated times"
        self.t = checks.check_increasing(_numbers(t, "t"), "InputSeries: t", remedy=remedy)
        self.u = u if not isinstance(u, list) else np.array(u)
        self.hold = hold
        self._axis = Axis(self.t, "t", data=True)
        leaves, self._treedef = tree.flatten(self.u)
        paths = self._treedef.paths("u")
        self._tables = [_table(leaf, path, len(self.t)) for leaf, path in zip(leaves, paths)]

    def __repr__(self) -> str:
        ends = f"{number(self.t[0])} to {number(self.t[-1])}"
        return f"InputSeries({len(self.t)} samples, {ends} s, {self.hold})"

    @classmethod
    def from_trajectory(cls, trajectory: Trajectory, hold: str | None = None) -> Self:
        """Return the inputs of a simulation or of an optimal control, for another simulation.

        Parameters
        ----------
        trajectory : Trajectory
            One trajectory with inputs ``u``.
        hold : {"zoh", "foh"}, optional
            How they go on between the samples. By default as ``trajectory.hold`` says. Give it if
            the input was a function of time, which no hold reproduces exactly.

        Examples
        --------
        >>> import archimedes as arc
        >>> import numpy as np
        >>> traj = arc.Trajectory([0.0, 1.0], np.zeros(2), u=np.array([1.0, 3.0]), hold="foh")
        >>> float(arc.InputSeries.from_trajectory(traj)(0.5))
        2.0
        """
        if trajectory.u is None:
            raise ValueError("InputSeries: the trajectory has no inputs: its u is None")
        return cls(trajectory.t, trajectory.u, find_hold(trajectory, hold))

    def __call__(self, t: Any) -> Any:
        """Return the value at the time t; of an array of times, their values along its axes."""
        t = t if is_traced(t) else np.asarray(t, dtype=np.float64)[()]
        k = self._axis.interval(t)
        start, end = look_up(self.t, k), look_up(self.t, k + 1)
        theta = np.clip((t - start) / (end - start), 0.0, 1.0)
        if self.hold == "zoh":
            theta = np.floor(theta)

        def between(table: np.ndarray) -> Any:
            low, high = look_up(table, k), look_up(table, k + 1)
            part = np.reshape(theta, (*np.shape(theta), *(1,) * (table.ndim - 1)))
            return np.where(part >= 1.0, high, low + part * (high - low))

        return self._treedef.unflatten([between(table) for table in self._tables])


def find_hold(trajectory: Trajectory, hold: str | None) -> str:
    """Return the hold of the inputs of a trajectory; raise where it is unknown, or another one."""
    if trajectory.hold not in (None, hold or trajectory.hold):
        raise ValueError(
            f"hold={hold!r} differs from the {trajectory.hold!r} that the trajectory was "
            "simulated with: leave it out"
        )
    if (found := hold or trajectory.hold) is None:
        raise ValueError(
            "hold must be given: the input of this trajectory is neither held nor linear "
            "between its samples, because it is a function of time, or because t_eval leaves "
            'out times at which it changes; "foh" is the nearer one for a smooth function'
        )
    return found


def _table(leaf: Any, path: str, count: int) -> np.ndarray:
    table = _numbers(leaf, path)
    if table.ndim == 0 or len(table) != count:
        raise ValueError(
            f"InputSeries: {path} has shape {table.shape}, but there are {count} "
            "times: the first axis must be time"
            + checks.transpose_hint(table.shape, count, path, 0)
        )
    return table


def _numbers(value: Tree, name: str) -> np.ndarray:
    """Return a copy as float64; anything but finite real numbers is refused."""
    if is_traced(value):
        return checks.as_array(value, f"InputSeries: {name}")
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"InputSeries: {name} must hold real numbers, got {array.dtype}: give real and "
            "imaginary parts, or times in seconds, as numbers"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"InputSeries: {name} holds nan or inf: leave such samples out")
    return array.astype(np.float64)


#: Two times closer than this part of a period are the same sample.
SAME = 1e-9
#: The largest fraction of a period by which rounding may move a sample time.
COARSE = 0.25


@dataclass(frozen=True, repr=False)
class Sampled:
    """A part of a model that acts at sampling times, such as a digital controller.

    It has a memory, which changes only when it acts. Parts that are due at the same time act in the
    order of the list, and each sees what those before it left. A part that is due at the start acts
    there.

    Parameters
    ----------
    update : callable
        Function ``update(t, x, u, *args)`` that returns the new memory. ``u`` is the memory of this
        part or, if `sampled` of the solver is a list, the tuple of all memories.
    init : tree
        Memory at the start. It fixes structure and shapes.
    dt : float, optional
        Sampling period. Give either `dt` or `times`.
    offset : float, optional
        Time of the first sample with `dt`, 0 by default.
    times : array_like (m,), optional
        Sampling times, increasing.
    key : key or callable, optional
        Key of `arc.random`. The update is then called with a keyword argument ``key``, a new key at
        each sample, which depends only on this key, on the position of the part in the list and on
        the number of the sample. If it differs between runs, pass it in `args` and give a function
        that takes it from there: ``key=lambda *args: args[0].key``.

    Examples
    --------
    >>> hold = Sampled(lambda t, x, u: -2.0 * x[0], init=0.0, dt=0.1)
    >>> hold.dt
    0.1
    """

    update: Callable[..., Any]
    init: Any
    dt: float | None = None
    offset: float = 0.0
    times: Any = None
    key: Any = None

    __repr__ = struct_repr

    def __post_init__(self) -> None:
        checks.check_callable(self.update, "Sampled: update", "update(t, x, u, *args) -> u")
        if (self.dt is None) == (self.times is None):
            raise ValueError("Sampled: give either dt, the period, or times")
        if self.dt is not None:
            checks.check_positive(self.dt, "Sampled: dt")
        if self.key is not None and not callable(self.key):
            check_key(self.key, "Sampled")

    @property
    def identity(self) -> Any:
        """What makes two parts the same for a kernel."""
        times = None if self.times is None else np.asarray(self.times, dtype=np.float64).tobytes()
        key = fingerprint(self.key) if callable(self.key) else self.key
        key = key.tobytes() if isinstance(key, np.ndarray) else key
        return fingerprint(self.update), self.dt, self.offset, times, key

    def following(self, t: Array) -> Any:
        """Return the first sampling time after a time, or inf if there is none.

        Parameters
        ----------
        t : float
            Time.
        """
        if self.dt is not None:
            count = np.floor((t - self.offset) / self.dt + self._slack(t)) + 1.0
            return self.offset + np.maximum(count, 0.0) * self.dt
        times = np.asarray(self.times, dtype=np.float64)
        padded = np.concatenate([[-np.inf], times, [np.inf]])
        grid = np.concatenate([[times[0] - 1.0], times, [times[-1] + 1.0]])
        k = Axis(grid, "times", data=True).interval(t)
        return look_up(padded, k + 1)

    def times_between(self, start: float, end: float) -> np.ndarray:
        """Return the sampling times from one time to another.

        Parameters
        ----------
        start, end : float
            The limits, which count.
        """
        if self.dt is not None:
            low, high = (np.array([start, end]) - self.offset) / self.dt
            count = np.arange(max(np.ceil(low), 0.0), np.floor(high) + 1.0)
            return self.offset + count * self.dt
        times = np.asarray(self.times, dtype=np.float64)
        return times[(times >= start) & (times <= end)]

    def _slack(self, t: Array) -> Any:
        """Return by how much, in periods, a sample time may be off."""
        return SAME + rounding(t, self.offset) / self.dt

    def due(self, t: Array) -> Any:
        """Return whether a time is a sampling time, to within rounding.

        Parameters
        ----------
        t : float
            Time.
        """
        if self.dt is not None:
            count = (t - self.offset) / self.dt
            nearest = np.round(count)
            return (np.abs(count - nearest) <= self._slack(t)) & (nearest >= 0.0)
        times = np.asarray(self.times, dtype=np.float64)
        return look_up(times, self.index(t)) == t

    def index(self, t: Array) -> Any:
        """Return the number of the sample at a time, counted from 0.

        Parameters
        ----------
        t : float
            Time.
        """
        if self.dt is not None:
            return np.round((t - self.offset) / self.dt).astype(np.int64)
        times = np.asarray(self.times, dtype=np.float64)
        grid = np.concatenate([times, [times[-1] + 1.0]])
        return Axis(grid, "times", data=True).interval(t)

    def act(self, number: int, t: Array, x: Tree, u: Tree, args: Args) -> Any:
        """Return the new memory of the part.

        Parameters
        ----------
        number : int
            Position of the part in the list.
        t : float
            Time.
        x : tree
            State.
        u : tree
            Memory of the part, or the tuple of all memories.
        args : tuple
            Further arguments of the update.
        """
        if self.key is None:
            return self.update(t, x, u, *args)
        key = self.key(*args) if callable(self.key) else self.key
        mine = fold_in(fold_in(key, number), self.index(t))
        return self.update(t, x, u, *args, key=mine)


def check_sampled(
    sampled: Sampled | Sequence[Sampled], start: Any = 0.0, end: Any = 0.0
) -> tuple[Sampled, ...]:
    """Return sampled parts as a tuple; periods must be longer than the rounding of the times."""
    parts = (sampled,) if isinstance(sampled, Sampled) else tuple(sampled)
    for k, part in enumerate(parts):
        if not isinstance(part, Sampled):
            raise TypeError(
                f"sampled[{k}] is a {type(part).__name__}: write sampled=[arc.Sampled(update, "
                "init, dt=...)]"
            )
        if part.dt is not None and not must_record(start, end):
            noise = rounding(start, end, part.offset)
            if noise > COARSE * part.dt:
                raise ValueError(
                    f"sampled[{k}]: dt = {part.dt:.6g} is too short at t = {end:.17g}, "
                    f"where neighbouring times are {np.spacing(abs(end)):.2g} apart: count time "
                    "from a nearer origin"
                )
    return parts


@dataclass(frozen=True)
class Clock:
    """Sampled parts on flat vectors, as the loops see them: the state is (x, tuple of memories)."""

    parts: tuple[Sampled, ...]
    single: bool
    #: How many of the parts users see; one more may hold an input.
    visible: int

    @property
    def key(self) -> Any:
        """What makes two clocks the same for a kernel."""
        return tuple(part.identity for part in self.parts), self.single, self.visible

    def stop(self, t: Array, end: Scalar) -> Any:
        """Return where the next steps have to stop: the next sample, or the end."""
        times = [part.following(t) for part in self.parts]
        return np.minimum(np.min(np.stack(times)), end)

    def visible_memories(self, memories: Sequence[Any]) -> Any:
        """Return the memories as users see them."""
        return memories[0] if self.single else tuple(memories[: self.visible])

    def tick(self, t: Array, state: Tree, args: Args) -> Any:
        """Return the state after the parts that are due at t have acted."""
        x, memories = state[0], list(state[1])
        for k, part in enumerate(self.parts):

            def act(k: int = k, part: Sampled = part) -> Any:
                # Copies, into which the user's function may write.
                own, visible = tree.map(np.copy, (x, self.visible_memories(memories)))
                new = part.act(k, t, own, visible, args)
                return _like(new, memories[k], k)

            if tree.leaves(memories[k]):
                memories[k] = cond(part.due(t), act, lambda k=k: memories[k])
        return x, tuple(memories)

    def flat_tick(self, layout: Layout, t: Array, x: Tree, args: Args) -> Any:
        """The same on a flat vector."""
        return layout.pack(self.tick(t, layout.unpack(x), args))


def _like(new: Tree, old: Tree, k: int) -> Any:
    """Return a new memory as floats, after checking that it is like the old one."""
    leaves, treedef = tree.flatten(new)
    before, expected = tree.flatten(old)
    shapes = [np.shape(leaf) for leaf in leaves]
    if not expected.matches(treedef) or shapes != [np.shape(leaf) for leaf in before]:
        raise TraceError(
            f"sampled[{k}].update must return a memory like its init, {old!r}, it returned {new!r}"
        )
    return expected.unflatten([leaf * 1.0 for leaf in leaves])
