"""Inputs and outputs at times: what models are fitted to."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_hold, check_increasing, check_positive, check_type, is_traced
from archimedes.control.matrix_checks import real_numbers, signal_rows
from archimedes.display import axis_label, number, text_table
from archimedes.simulate import InputSeries, Trajectory
from archimedes.simulate.problem.inputs import find_hold
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.tree import field, struct

__all__ = ["Timeseries"]

#: How far steps may be from equal, relative to their mean, and still be one dt.
UNEVEN = 1e-6
#: Lines of the table that is printed.
MOST = 20


@struct
class Timeseries:
    """Measured inputs and outputs: one row per signal, the times along the last axis.

    Parameters
    ----------
    ts : array (N,)
        Times in s, increasing, evenly spaced or not.
    us : array (m, N), (N,) or None
        Inputs. None if there are none.
    ys : array (p, N) or (N,)
        Outputs, nan where missing.
    inputs : tuple of str, optional
        Names of the inputs.
    outputs : tuple of str, optional
        Names of the outputs.
    hold : {"zoh", "foh"}, optional
        How the inputs went on between the samples. ``"zoh"``, the default: each value until the
        next sample. ``"foh"``: linear in between. Fits follow it.
    input_units : tuple of str, optional
        Units of the inputs, ``""`` where they are not known.
    output_units : tuple of str, optional
        Units of the outputs.

    Examples
    --------
    >>> import numpy as np
    >>> data = Timeseries([0.0, 0.1, 0.2], [1.0, 1.0, 0.0], [[0.0, 0.1, np.nan]])
    >>> len(data), data.us.shape, round(data.dt, 6), data.hold
    (3, (1, 3), 0.1, 'zoh')
    """

    ts: Any = field(units="s")
    us: Any
    ys: Any
    inputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    outputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    hold: str = field(static=True, default="zoh", kw_only=True)
    input_units: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    output_units: tuple[str, ...] = field(static=True, default=(), kw_only=True)

    def __repr__(self) -> str:
        """Return how many samples there are and over which time, and the range of each signal."""
        return self._describe(MOST)

    def report(self) -> str:
        """Return a line of text for each signal: its range and what is missing."""
        return self._describe(None)

    def _describe(self, most: int | None) -> str:
        if is_traced(self.ts, self.us, self.ys):
            return "Timeseries(...)"  # while a function is being recorded there are no numbers
        rows = [["", "min", "max", "missing"]]
        for kind, names, units, values in (
            ("in", self.inputs, self.input_units, self.us),
            ("out", self.outputs, self.output_units, self.ys),
        ):
            for name, unit, row in zip(names, units, np.asarray(values)):
                known = row[~np.isnan(row)]
                ends = [number(known.min()), number(known.max())] if known.size else ["", ""]
                missing = str(len(row) - known.size) if len(row) > known.size else ""
                rows.append([f"{kind} {axis_label(name, unit)}", *ends, missing])
        count = len(self.ts)
        head = f"Timeseries: {count} samples, {number(self.ts[0])} to {number(self.ts[-1])} s"
        head += f", inputs hold={self.hold!r}" if self.inputs else ""
        rest = 0 if most is None else max(len(rows) - most, 0)
        more = [f"... {rest} more: report()"] if rest else []
        return "\n".join([head, text_table(rows[:most]), *more])

    def __post_init__(self) -> None:
        remedy = "sort the samples by time and drop those that repeat"
        ts = np.asarray(check_increasing(real_numbers(self.ts, "ts"), "ts", remedy=remedy))
        us = np.zeros((0, len(ts))) if self.us is None else signal_rows(self.us, "us", len(ts))
        ys = signal_rows(self.ys, "ys", len(ts))
        check_hold(self.hold, "Timeseries: hold")
        if not np.all(np.isfinite(us)):
            k = int(np.argwhere(~np.isfinite(us))[0, 1])
            raise ValueError(
                f"us must hold finite numbers, sample {k} does not; fill it, or cut the data there "
                "with data[a:b]"
            )
        if np.any(np.isinf(ys)):
            raise ValueError("ys must hold finite numbers, or nan where nothing was measured")
        put = object.__setattr__
        for name, rows in (("ts", ts), ("us", us), ("ys", ys)):
            put(self, name, rows)
        for name, rows, letter in (("inputs", us, "u"), ("outputs", ys, "y")):
            names = getattr(self, name)
            names = (names,) if isinstance(names, str) else tuple(names)
            if names and len(names) != len(rows):
                raise ValueError(f"{name} must name {len(rows)} rows, got {names}")
            put(self, name, names or tuple(f"{letter}[{k}]" for k in range(len(rows))))
            key = f"{name[:-1]}_units"
            units = getattr(self, key)
            units = (units,) if isinstance(units, str) else tuple(units)
            if units and len(units) != len(rows):
                raise ValueError(f"{key} must have {len(rows)} units, got {units}")
            put(self, key, units or ("",) * len(rows))

    def __len__(self) -> int:
        return len(self.ts)

    def __getitem__(self, samples: slice) -> Timeseries:
        if not isinstance(samples, slice):
            raise TypeError("data[a:b] takes a slice of samples")
        return tree.replace(
            self, ts=self.ts[samples], us=self.us[:, samples], ys=self.ys[:, samples]
        )

    @property
    def dt(self) -> float:
        """The step between samples in seconds; raises where it is not one."""
        steps = np.diff(self.ts)
        mean = float(self.ts[-1] - self.ts[0]) / len(steps)
        if np.max(np.abs(steps - mean)) > UNEVEN * mean:
            raise ValueError(
                f"ts is not uniform: steps go from {steps.min():.6g} to {steps.max():.6g} s; use "
                "data.resample(dt), or output_error, which takes times as they are"
            )
        return mean

    def resample(self, dt: float) -> Timeseries:
        """Return the series at even times.

        Outputs are linear between samples, and nan where a neighbour is missing. Inputs go on as
        `hold` says; held ones are exact only if each of their jumps is at one of the new times.

        Parameters
        ----------
        dt : float
            Time between two samples in s.

        Examples
        --------
        >>> Timeseries([0.0, 1.0, 3.0], None, [0.0, 1.0, 3.0]).resample(0.5).ys
        array([[0. , 0.5, 1. , 1.5, 2. , 2.5, 3. ]])
        """
        check_positive(dt, "dt", "s")
        span = self.ts[-1] - self.ts[0]
        count = int(np.floor(span / dt * (1.0 + 1e-12) + 1e-9)) + 1
        ts = self.ts[0] + dt * np.arange(count)
        ys = np.array([np.interp(ts, self.ts, row) for row in self.ys])
        # A time that rounding puts just before a jump is after it.
        at = ts + 1e-9 * dt if self.hold == "zoh" else ts
        us = self.input_series()(at).T if len(self.us) else np.zeros((0, count))
        return tree.replace(self, ts=ts, us=us, ys=ys)

    def split(self, part: float = 0.5) -> tuple[Timeseries, Timeseries]:
        """Return the first part of the samples, to fit, and the rest, to validate.

        Parameters
        ----------
        part : float, optional
            Fraction of the samples in the first part, 0.5 by default.
        """
        k = round(part * len(self))
        if not 2 <= k <= len(self) - 2:
            raise ValueError(f"part={part} of {len(self)} samples leaves less than two on a side")
        return self[:k], self[k:]

    def input_series(self) -> InputSeries:
        """Return the inputs as a function of time, ``inputs=`` of `solve_ode`, with their hold.

        Examples
        --------
        >>> import numpy as np
        >>> data = Timeseries([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], np.zeros(3), hold="foh")
        >>> data.input_series()(0.5)
        array([2.])
        """
        return InputSeries(self.ts, self.us.T, self.hold)

    def to_trajectory(self) -> Trajectory:
        """Return a trajectory, time first: the outputs as its states, the inputs as ``u``.

        Signals that were named are dicts of columns, others arrays.

        Examples
        --------
        >>> data = Timeseries([0.0, 1.0], [5.0, 6.0], [2.0, 3.0], outputs=("angle",))
        >>> traj = data.to_trajectory()
        >>> traj["angle"], traj.u.shape
        (array([2., 3.]), (2, 1))
        """
        named = ((self.outputs, self.ys), (self.inputs, self.us))
        x, u = (
            dict(zip(names, rows)) if all(map(str.isidentifier, names)) else rows.T
            for names, rows in named
        )
        return Trajectory(self.ts, x, u=u if len(self.us) else None, hold=self.hold)

    @classmethod
    def from_trajectory(
        cls,
        trajectory: Trajectory,
        outputs: str | Sequence[str] | None = None,
        inputs: str | Sequence[str] | None = None,
        *,
        hold: str | None = None,
    ) -> Timeseries:
        """Return the samples of a simulation as data, times last.

        Parameters
        ----------
        trajectory : Trajectory
            One simulation, not a batch. Its output times must include those at which a held input
            jumps, as they do unless `t_eval` leaves them out.
        outputs : str or sequence of str, optional
            Names of columns (``"angle"``, ``"pos[0]"``) or of whole leaves. By default all of
            ``trajectory.y`` or, if there is none, of ``trajectory.x``.
        inputs : str or sequence of str, optional
            The same for inputs. By default all of ``trajectory.u``.
        hold : {"zoh", "foh"}, optional
            How the inputs go on between the samples. By default as ``trajectory.hold`` says. Give
            it if the input was a function of time, which no hold reproduces exactly.

        Examples
        --------
        >>> import archimedes as arc
        >>> kick = arc.InputSeries([0.0, 0.5], [[1.0], [0.0]])
        >>> lag = lambda t, x, u: {"level": u[0] - x["level"]}
        >>> traj = arc.solve_ode(lag, (0.0, 1.0), {"level": 0.0}, inputs=kick)
        >>> data = Timeseries.from_trajectory(traj, outputs="level")
        >>> data.outputs, data.hold, data.us.shape == (1, len(traj))
        (('level',), 'zoh', True)
        """
        remedy = "give what solve_ode returns; of arrays (n, times) write Timeseries(ts, us, ys)"
        check_type(trajectory, "trajectory", Trajectory, remedy)
        if trajectory.batch_shape:
            raise ValueError(
                f"trajectory is a batch {trajectory.batch_shape}: take one of it, trajectory[k], "
                "and give pem the list of their series"
            )
        y_part = "x" if trajectory.y is None else "y"
        names, ys = _columns(trajectory, outputs, y_part)
        u_names, us = _columns(trajectory, inputs, "u")
        hold = "zoh" if us is None else find_hold(trajectory, hold)
        return cls(trajectory.t, us, ys, inputs=u_names, outputs=names, hold=hold)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        inputs: str | Sequence[str],
        outputs: str | Sequence[str],
        time: str | None = None,
        *,
        hold: str = "zoh",
    ) -> Timeseries:
        """Read columns of a table by name; without ``time`` the index is the time.

        Times of dates are seconds from the first. Rows need not be evenly spaced.

        Parameters
        ----------
        frame : DataFrame
            The table. Rows need not be evenly spaced.
        inputs : str or sequence of str
            Columns with inputs.
        outputs : str or sequence of str
            Columns with outputs.
        time : str, optional
            Column with the time. By default the index. Dates are converted to seconds from the
            first.
        hold : {"zoh", "foh"}, optional
            How the inputs go on between the samples: held, the default, or linear.
        """
        if not hasattr(frame, "columns"):
            raise TypeError(f"from_pandas: frame must be a DataFrame, got {type(frame).__name__}")
        inputs, outputs = _names(inputs), _names(outputs)
        names = [*([] if time is None else [time]), *inputs, *outputs]
        if missing := [name for name in names if name not in frame.columns]:
            raise ValueError(f"the table has no columns {missing}; it has {list(frame.columns)}")
        column = frame.index if time is None else frame[time]
        zoned = getattr(column.dtype, "tz", None) is not None
        ts = column.to_numpy(dtype="datetime64[ns]") if zoned else np.asarray(column)
        if ts.dtype.kind in "mM":
            ts = (ts - ts[0]) / np.timedelta64(1, "s")
        columns = [np.asarray(frame[list(part)], dtype=float).T for part in (inputs, outputs)]
        us = columns[0] if inputs else None
        return cls(ts, us, columns[1], inputs=inputs, outputs=outputs, hold=hold)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        inputs: str | Sequence[str],
        outputs: str | Sequence[str],
        time: str = "t",
        *,
        hold: str = "zoh",
    ) -> Timeseries:
        """Read columns of a CSV file by the names in its first line; empty cells are missing.

        Parameters
        ----------
        path : path
            The file. Its first line has the names of the columns; empty cells are missing.
        inputs : str or sequence of str
            Columns with inputs.
        outputs : str or sequence of str
            Columns with outputs.
        time : str, optional
            Column with the time, ``"t"`` by default.
        hold : {"zoh", "foh"}, optional
            How the inputs go on between the samples: held, the default, or linear.
        """
        inputs, outputs = _names(inputs), _names(outputs)
        # Spreadsheets begin files with a mark of their encoding.
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            numbered = [(k, line) for k, line in enumerate(csv.reader(file), start=1) if line]
        if len(numbered) < 3:
            raise ValueError(f"{path} must have a line of names and at least two samples")
        head = [name.strip() for name in numbered[0][1]]
        names = (time, *inputs, *outputs)
        if missing := [name for name in names if name not in head]:
            raise ValueError(
                f"{path} has no columns {missing}; it has {head}, as separated by commas"
            )
        if twice := [name for name in names if head.count(name) > 1]:
            raise ValueError(f"{path} has more than one column {twice[0]!r}: rename one of them")

        def column(name: str) -> np.ndarray:
            index, numbers = head.index(name), []
            for number, line in numbered[1:]:
                cell = line[index].strip() if index < len(line) else ""
                try:
                    numbers.append(float(cell) if cell else np.nan)
                except ValueError:
                    raise ValueError(
                        f"{path}, line {number}: {name} is {cell!r}, not a number"
                    ) from None
            return np.array(numbers)

        times = column(time)
        if np.any(np.isnan(times)):
            number = numbered[int(np.argmax(np.isnan(times))) + 1][0]
            raise ValueError(f"{path}, line {number}: {time} is missing; leave the line out")
        us = np.array([column(name) for name in inputs]) if inputs else None
        ys = np.array([column(name) for name in outputs])
        return cls(times, us, ys, inputs=inputs, outputs=outputs, hold=hold)


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns, of which there may be one."""
    return (names,) if isinstance(names, str) else tuple(names)


def _columns(
    trajectory: Trajectory, names: str | Sequence[str] | None, part: str
) -> tuple[tuple[str, ...], np.ndarray | None]:
    """Return names and rows of columns of a trajectory; None where it has none."""
    value = getattr(trajectory, part)
    if names is None:
        names = [column.name for column in tree_columns(value, 1, part, prefix=part != "x")]
    labels, rows = [], []
    for name in _names(names):
        leaf = trajectory[name]
        columns = tree_columns(leaf, 1, name, prefix=True)
        labels += [column.name for column in columns]
        rows += [leaf[(..., *column.place)] for column in columns]
    return tuple(labels), np.array(rows, dtype=float) if rows else None
