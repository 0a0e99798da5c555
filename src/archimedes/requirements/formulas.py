"""Requirements in signal temporal logic, and how well a run keeps them.

The robustness of a requirement is a number: positive where it holds, negative where it is violated,
with the distance to the limit as its size. A comparison has its margin. ``&`` and ``always`` take
the least, ``|`` and ``eventually`` the greatest, ``~`` turns the sign (Donze and Maler, Robust
satisfaction of temporal logic over real-valued signals, 2010). Each is evaluated at the samples and
at the ends of the windows.

A window may pass the end of the run. What would come then is not known, so everything is computed
as a pair of bounds, which differ only where that matters (Deshmukh et al., Robust online monitoring
of signal temporal logic, 2017).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_not_negative
from archimedes.display import number
from archimedes.function import scan
from archimedes.requirements.runs import Bounds, Run, Windows, runs_of
from archimedes.requirements.verdicts import Verdict, decide, judge

if TYPE_CHECKING:
    from archimedes.requirements.signals import Signal
    from archimedes.typing import Array

__all__ = ["Requirement", "always", "eventually", "implies", "until"]


class Requirement:
    """A condition on runs; made by comparing signals, and from other requirements.

    ``a & b``, ``a | b``, ``~a`` and ``a >> b`` (a implies b) combine requirements. Each comparison
    needs parentheses: ``(alt > 100) & (speed < 50)``.

    Examples
    --------
    >>> from archimedes import requirements as req
    >>> alt, speed = req.signal("alt", units="m"), req.signal("speed")
    >>> safe = req.always((alt > 100) | (speed < 50), between=(0, 60)).named("floor")
    >>> print(safe)
    floor: always((alt > 100 m) | (speed < 50), between=(0, 60))
    """

    name: str = ""

    # ---- evaluation ----------------------------------------------------------------------

    def robustness(
        self, source: Any, t: Any = None, *, smooth: float = 0.0, refine: int | None = None
    ) -> Any:
        """Return how well a run keeps the requirement, from its start; negative where it does not.

        It can be part of compiled and differentiated functions. The derivative of the strict value
        is that of the one sample that decides.

        Parameters
        ----------
        source : Trajectory, table or Campaign
            The run: a trajectory, a table of columns by name (a dict of arrays (n,), a DataFrame),
            or a batch of runs.
        t : array_like (n,), optional
            Times of the samples of a table without a column ``t``.
        smooth : float, optional
            Width, in the unit of the robustness, within which other samples count beside the worst
            one. The result differs from the strict one by at most ``smooth * log(n)`` at each
            operator with n samples. 0, the default, is strict.
        refine : int, optional
            Parts that each step is divided into. By default 8 where the trajectory has dense
            output, and 1 otherwise.

        Returns
        -------
        float or array (runs,)
            The robustness; nan where the run is too short to tell.

        Examples
        --------
        >>> import numpy as np
        >>> from archimedes import requirements as req
        >>> table = {"t": np.array([0.0, 1.0, 3.0]), "alt": np.array([5.0, 2.0, 4.0])}
        >>> req.always(req.signal("alt") > 1, between=(0, 3)).robustness(table)
        np.float64(1.0)
        """
        check_not_negative(smooth, "robustness: smooth")
        runs = runs_of(source, t, smooth, refine)
        values = [decide(*self.start_bounds(run)) for run in runs]
        return values[0] if len(runs) == 1 else np.stack(values)

    def trace(self, source: Any, t: Any = None, *, refine: int | None = None) -> tuple[Any, Any]:
        """Return times (m,) and the robustness from each of them on, nan where it is not known.

        Parameters
        ----------
        source : Trajectory, table or Campaign
            One run, or a batch of runs with the same times.
        t : array_like (n,), optional
            Times of the samples of a table.
        refine : int, optional
            Parts that each step is divided into, as in `robustness`.
        """
        runs = runs_of(source, t, 0.0, refine)
        if len(runs) > 1:
            raise ValueError("trace: these runs have different times: take one, traj[k]")
        return runs[0].t, decide(*self.bounds(runs[0], runs[0].t))

    def verdict(self, source: Any, t: Any = None, *, refine: int | None = None) -> Verdict:
        """Return whether one run keeps the requirement, by how much, and what decides it.

        Parameters
        ----------
        source : Trajectory or table
            One run. For many runs or requirements see :func:`check`.
        t : array_like (n,), optional
            Times of the samples of a table.
        refine : int, optional
            Parts that each step is divided into, as in `robustness`.

        Examples
        --------
        >>> import numpy as np
        >>> from archimedes import requirements as req
        >>> table = {"t": np.array([0.0, 1.0, 3.0]), "alt": np.array([5.0, 2.0, 4.0])}
        >>> req.always(req.signal("alt", units="m") > 3, between=(0, 3)).verdict(table)
        violated by 1 m: alt > 3 m at t = 1
        >>> req.always(req.signal("alt") > 1, between=(0, 9)).verdict(table)
        undetermined: the run ends at t = 3, the requirement looks until t = 9
        """
        return judge(self, source, t, refine)

    def start_bounds(self, run: Run) -> Bounds:
        """Return the bounds at the start of a run.

        Parameters
        ----------
        run : Run
            The run.
        """
        lower, upper = self.bounds(run, run.t[:1])
        shape = run.trajectory.batch_shape
        first = np.broadcast_to(upper[..., 0], shape)[()]
        return (first if lower is upper else np.broadcast_to(lower[..., 0], shape)[()]), first

    def bounds(self, run: Run, times: np.ndarray) -> Bounds:
        """Return lower and upper bound of the robustness at some times of a run.

        Parameters
        ----------
        run : Run
            The run.
        times : array (m,)
            Times within the run, increasing.
        """
        raise NotImplementedError

    def critical(self, run: Run, time: float, side: int) -> tuple[Comparison, float]:
        """Return the comparison and the time that decide a bound.

        Parameters
        ----------
        run : Run
            The run.
        time : float
            Time at which the requirement is evaluated.
        side : int
            Which bound: 0 the lower, 1 the upper one.
        """
        raise NotImplementedError

    @property
    def horizon(self) -> float:
        """How long a run has to be to tell, inf where the requirement holds to its end."""
        return max(part.horizon for part in self.parts())

    def parts(self) -> tuple[Requirement, ...]:
        """Return the requirements that this one is made of."""
        return ()

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the comparisons in the requirement, from left to right."""
        for part in self.parts():
            yield from part.comparisons()

    # ---- combination ---------------------------------------------------------------------

    def named(self, name: str) -> Requirement:
        """Return the requirement with a name, for reports.

        Parameters
        ----------
        name : str
            The name.
        """
        import copy

        other = copy.copy(self)
        other.name = name
        return other

    def implies(self, other: Requirement) -> Requirement:
        """Return the requirement that `other` holds where this one does, ``self >> other``.

        Parameters
        ----------
        other : Requirement
            What has to follow.
        """
        return implies(self, other)

    def until(self, other: Requirement, between: Any = None) -> Requirement:
        """Return the requirement that this one holds until `other` does.

        Parameters
        ----------
        other : Requirement
            What ends it, and has to come.
        between : (float, float), optional
            When it has to come, as in :func:`until`.
        """
        return until(self, other, between)

    def __and__(self, other: object) -> Requirement:
        return _combine(All, self, other, "&")

    def __or__(self, other: object) -> Requirement:
        return _combine(Any_, self, other, "|")

    def __rshift__(self, other: object) -> Requirement:
        return _combine(Any_, Not(self), other, ">>")

    def __rand__(self, other: object) -> Requirement:
        return _combine(All, other, self, "&")

    def __ror__(self, other: object) -> Requirement:
        return _combine(Any_, other, self, "|")

    def __rrshift__(self, other: object) -> Requirement:
        return implies(check_requirement(other, ">>"), self)

    def __invert__(self) -> Requirement:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"the requirement {self.text()} is neither true nor false before it is evaluated on a "
            "run. Python decides a < x < b, and, or, not, if, min and max at once: write "
            "(a < x) & (x < b), a & b, a | b, ~a; of signals np.minimum(x, y)"
        )

    # ---- text ----------------------------------------------------------------------------

    def text(self) -> str:
        """Return the requirement as it is written in Python, with units."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def __str__(self) -> str:
        return f"{self.name}: {self.text()}" if self.name else self.text()


class Comparison(Requirement):
    """A signal below or above another one, or a number."""

    def __init__(self, left: Signal, right: Signal, sign: str) -> None:
        self.left, self.right, self.sign = left, right, sign

    def bounds(self, run: Run, times: np.ndarray) -> Bounds:
        frame = run.frame(times)
        left, right = self.left.read(frame), self.right.read(frame)
        margin = right - left if self.sign[0] == "<" else left - right
        if id(self) in run.scales:
            margin = margin / run.scales[id(self)]
        return margin, margin

    def critical(self, run: Run, time: float, side: int) -> tuple[Comparison, float]:
        return self, time

    @property
    def horizon(self) -> float:
        return 0.0

    def comparisons(self) -> Iterator[Comparison]:
        yield self

    def units_in(self, run: Run) -> str:
        """Return the unit of the margin."""
        frame = run.trajectory
        return join_units(self.left.units_in(frame), self.right.units_in(frame), self.text())

    def text(self) -> str:
        units = self.left.units or self.right.units
        return f"{self.left} {self.sign} {self.right}" + (f" {units}" if units else "")


class Not(Requirement):
    """What holds where its part does not."""

    def __init__(self, part: Requirement) -> None:
        self.part = part

    def parts(self) -> tuple[Requirement, ...]:
        return (self.part,)

    def bounds(self, run: Run, times: np.ndarray) -> Bounds:
        return negate(self.part.bounds(run, times))

    def critical(self, run: Run, time: float, side: int) -> tuple[Comparison, float]:
        return self.part.critical(run, time, 1 - side)

    def text(self) -> str:
        return f"~{_enclose(self.part)}"


class All(Requirement):
    """Several requirements at once."""

    symbol, sense = "&", 1.0

    def __init__(self, *parts: Requirement) -> None:
        self._parts = parts

    def parts(self) -> tuple[Requirement, ...]:
        return self._parts

    def bounds(self, run: Run, times: np.ndarray) -> Bounds:
        both = [oriented(part.bounds(run, times), self.sense) for part in self._parts]
        low, high = both[0]
        for lower, upper in both[1:]:
            known = low is high and lower is upper
            high = run.fold.pair(high, upper)
            low = high if known else run.fold.pair(low, lower)
        return oriented((low, high), self.sense)

    def critical(self, run: Run, time: float, side: int) -> tuple[Comparison, float]:
        at = np.array([time])
        values = [self.sense * part.bounds(run, at)[side][..., 0] for part in self._parts]
        return self._parts[int(np.argmin(values))].critical(run, time, side)

    def text(self) -> str:
        return f" {self.symbol} ".join(map(_enclose, self._parts))


class Any_(All):
    """At least one of several requirements."""

    symbol, sense = "|", -1.0


class Always(Requirement):
    """A requirement at all times of a window."""

    word, sense = "always", 1.0

    def __init__(self, part: Requirement, start: float, stop: float | None) -> None:
        self.part, self.start, self.stop = part, start, stop

    def parts(self) -> tuple[Requirement, ...]:
        return (self.part,)

    @property
    def horizon(self) -> float:
        return np.inf if self.stop is None else self.stop + self.part.horizon

    def bounds(self, run: Run, times: np.ndarray) -> Bounds:
        windows = run.windows(times, self.start, self.stop)
        if not len(windows.times):
            return windows.unknown
        part = oriented(self.part.bounds(run, windows.times), self.sense)
        return oriented(windows.minimum(part, run.fold), self.sense)

    def critical(self, run: Run, time: float, side: int) -> tuple[Comparison, float]:
        windows = run.windows(np.array([time]), self.start, self.stop)
        values = self.sense * self.part.bounds(run, windows.times)[side]
        return self.part.critical(run, windows.times[int(np.argmin(values))], side)

    def text(self) -> str:
        return f"{self.word}({self.part.text()}{_between(self.start, self.stop)})"


class Eventually(Always):
    """A requirement at some time of a window."""

    word, sense = "eventually", -1.0


class Until(Requirement):
    """A requirement that holds until another one does.

    With the windows [a, b] it is ``eventually(q, [a, b]) & always(p until q, [0, a])``, where the
    until without a window needs one pass backwards (Donze, Ferrere and Maler, Efficient robust
    monitoring for STL, 2013).
    """

    def __init__(self, p: Requirement, q: Requirement, start: float, stop: float | None) -> None:
        self.p, self.q, self.start, self.stop = p, q, start, stop

    def parts(self) -> tuple[Requirement, ...]:
        return self.p, self.q

    @property
    def horizon(self) -> float:
        return np.inf if self.stop is None else self.stop + super().horizon

    def bounds(self, run: Run, times: np.ndarray) -> Bounds:
        coming = run.windows(times, self.start, self.stop)
        lasting = run.windows(times, 0.0, self.start)
        inside = (run.t >= times[0]) & (run.t <= max([times[-1], *coming.times[-1:]]))
        grid = np.unique(np.concatenate([run.t[inside], times, coming.times, lasting.times]))
        p, q = self.p.bounds(run, grid), self.q.bounds(run, grid)
        unknown = bool(coming.cut.any())

        def pass_back(p: Array, q: Array, after: float) -> Any:
            """Return ``min(p, max(q, what follows))`` at each time, from the last to the first."""

            def step(later: Any, now: Any) -> Any:
                value = run.fold.pair(now[0], -run.fold.pair(-now[1], -later))
                return value, value

            shape = np.broadcast_shapes(np.shape(p), np.shape(q))
            rows = [np.moveaxis(np.broadcast_to(v, shape), -1, 0)[::-1] for v in (p, q)]
            # The last time comes before the others: nothing follows it, or nobody knows what.
            last = rows[0][0] if after > 0.0 else run.fold.pair(rows[0][0], rows[1][0])
            values = [last[None]]
            if len(grid) > 1:
                values.append(scan(step, last, (rows[0][1:], rows[1][1:]))[1])
            return np.moveaxis(np.concatenate(values)[::-1], 0, -1)

        upper = pass_back(p[1], q[1], np.inf if unknown else -np.inf)
        known = not unknown and p[0] is p[1] and q[0] is q[1]
        lower = upper if known else pass_back(p[0], q[0], -np.inf)
        meets = self._reduce(run, negate(q), grid, coming)
        return _least(run, negate(meets), self._reduce(run, (lower, upper), grid, lasting))

    def _reduce(self, run: Run, bounds: Bounds, grid: np.ndarray, windows: Windows) -> Bounds:
        """Return the minimum over windows of what is known on a grid."""
        if not len(windows.times):
            return windows.unknown
        places = np.searchsorted(grid, windows.times)
        low, high = bounds
        upper = high[..., places]
        return windows.minimum((upper if low is high else low[..., places], upper), run.fold)

    def critical(self, run: Run, time: float, side: int) -> tuple[Comparison, float]:
        coming = run.windows(np.array([time]), self.start, self.stop)
        inside = (run.t >= time) & (run.t <= max([time, *coming.times[-1:]]))
        grid = np.unique(np.concatenate([run.t[inside], [time], coming.times]))
        p, q = self.p.bounds(run, grid)[side], self.q.bounds(run, grid)[side]
        worst = np.minimum.accumulate(p)
        allowed = np.searchsorted(grid, coming.times)
        best = allowed[int(np.argmax(np.minimum(worst, q)[allowed]))] if len(allowed) else -1
        waits = side == 1 and coming.cut[0] and worst[-1] >= min(worst[best], q[best])
        if best < 0 or waits:  # the other one may still come: the first one decides
            return self.p.critical(run, grid[int(np.argmin(p))], side)
        if q[best] <= worst[best]:
            return self.q.critical(run, grid[best], side)
        return self.p.critical(run, grid[int(np.argmin(p[: best + 1]))], side)

    def text(self) -> str:
        inside = f"{self.p.text()}, {self.q.text()}"
        return f"until({inside}{_between(self.start, self.stop)})"


# ---- what users write ----------------------------------------------------------------------


def always(part: Requirement, between: Any = None, *, name: str = "") -> Requirement:
    """Return the requirement that a condition holds at all times of a window.

    Parameters
    ----------
    part : Requirement
        The condition, such as ``alt > 100``.
    between : (float, float), optional
        Start and end of the window in seconds, counted from the time at which the requirement is
        evaluated: from the start of the run or, inside another temporal operator, from each time of
        its window. The end may be None: to the end of the run, as without a window.
    name : str, optional
        Name in reports.

    Examples
    --------
    >>> from archimedes import requirements as req
    >>> always(req.signal("alt") > 100, between=(0, 60), name="floor")
    always(alt > 100, between=(0, 60))
    """
    start, stop = check_window("always", between)
    return Always(check_requirement(part, "always"), start, stop).named(name)


def eventually(part: Requirement, between: Any = None, *, name: str = "") -> Requirement:
    """Return the requirement that a condition holds at some time of a window.

    Parameters
    ----------
    part : Requirement
        The condition.
    between : (float, float), optional
        Start and end of the window in seconds, as in :func:`always`.
    name : str, optional
        Name in reports.

    Examples
    --------
    >>> from archimedes import requirements as req
    >>> speed = req.signal("speed")
    >>> landed = req.always(speed < 0.1, between=(0, 2))
    >>> eventually(landed, between=(0, 30))
    eventually(always(speed < 0.1, between=(0, 2)), between=(0, 30))
    """
    start, stop = check_window("eventually", between)
    return Eventually(check_requirement(part, "eventually"), start, stop).named(name)


def until(
    part: Requirement, other: Requirement, between: Any = None, *, name: str = ""
) -> Requirement:
    """Return the requirement that a condition holds until another one does, which has to come.

    Both hold at the time at which the other one comes.

    Parameters
    ----------
    part : Requirement
        The condition that holds.
    other : Requirement
        The condition that ends it.
    between : (float, float), optional
        Window, in seconds, in which the other one has to come, as in :func:`always`.
    name : str, optional
        Name in reports.

    Examples
    --------
    >>> from archimedes import requirements as req
    >>> alt, gear = req.signal("alt"), req.signal("gear")
    >>> until(alt > 50, gear > 0.9, between=(0, 20))
    until(alt > 50, gear > 0.9, between=(0, 20))
    """
    start, stop = check_window("until", between)
    p, q = check_requirement(part, "until"), check_requirement(other, "until")
    return Until(p, q, start, stop).named(name)


def implies(part: Requirement, other: Requirement) -> Requirement:
    """Return the requirement that `other` holds where `part` does: ``~part | other``.

    Parameters
    ----------
    part : Requirement
        The condition.
    other : Requirement
        What has to follow from it.

    Examples
    --------
    >>> from archimedes import requirements as req
    >>> implies(req.signal("alt") < 50, req.signal("sink") < 2)
    ~(alt < 50) | (sink < 2)
    """
    return check_requirement(part, "implies") >> check_requirement(other, "implies")


# ---- pieces --------------------------------------------------------------------------------


def join_units(first: str, second: str, where: str) -> str:
    """Return the unit of two signals; raise where they have different ones."""
    if first and second and first != second:
        raise ValueError(f"{where}: the units {first} and {second} do not agree")
    return first or second


def negate(bounds: Bounds) -> Bounds:
    """Return the bounds of the contrary."""
    low, high = bounds
    contrary = -high
    return contrary, contrary if low is high else -low


def oriented(bounds: Bounds, sense: float) -> Bounds:
    """Return bounds for a minimum: those of the contrary where a maximum is meant."""
    return bounds if sense > 0.0 else negate(bounds)


def _least(run: Run, first: Bounds, second: Bounds) -> Bounds:
    """Return the bounds of the lesser of two."""
    upper = run.fold.pair(first[1], second[1])
    known = first[0] is first[1] and second[0] is second[1]
    return (upper if known else run.fold.pair(first[0], second[0])), upper


def _combine(kind: type[All], first: object, second: object, sign: str) -> Requirement:
    parts = [check_requirement(part, sign) for part in (first, second)]
    flat = [p.parts() if type(p) is kind and not p.name else (p,) for p in parts]
    return kind(*flat[0], *flat[1])


def check_requirement(value: object, who: str) -> Requirement:
    """Return a requirement as it is; raise for everything else."""
    if isinstance(value, Requirement):
        return value
    if hasattr(value, "units_in"):
        raise TypeError(f"{who}: {value} is a signal, not a condition: compare it, {value} > 0")
    hint = ""
    if isinstance(value, (bool, np.bool_)):
        hint = "; it was compared before it was a signal: begin with req.signal(...)"
    raise TypeError(
        f"{who}: expected a requirement such as alt > 100, got {type(value).__name__}{hint}"
    )


def check_window(who: str, between: Any) -> tuple[float, float | None]:
    """Return start and end of a window, with None for the end of the run."""
    if between is None:
        return 0.0, None
    try:
        start, stop = between
        start, stop = float(start), np.inf if stop is None else float(stop)
    except (TypeError, ValueError):
        raise TypeError(
            f"{who}: between must be (start, end) in seconds, with None for the end of the run, "
            f"got {between!r}"
        ) from None
    if not (0.0 <= start <= stop) or start == np.inf:
        raise ValueError(
            f"{who}: between={between!r}: the window must start at 0 or later and not after its end"
        )
    return start, None if stop == np.inf else stop


def _enclose(part: Requirement) -> str:
    plain = isinstance(part, (Always, Until, Not))
    return part.text() if plain else f"({part.text()})"


def _between(start: float, stop: float | None) -> str:
    if start == 0.0 and stop is None:
        return ""
    return f", between=({number(start)}, {'None' if stop is None else number(stop)})"
