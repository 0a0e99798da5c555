"""Inputs and outputs at times: what models are fitted to."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_increasing, check_positive, is_traced
from archimedes.control.matrix_checks import real_numbers
from archimedes.display import number, text_table
from archimedes.errors import ShapeDtypeError
from archimedes.tree import field, struct

if TYPE_CHECKING:
    from archimedes.typing import Tree

__all__ = ["Timeseries"]

#: How far steps may be from equal, relative to their mean, and still be one dt.
UNEVEN = 1e-6
#: Lines of the table that is printed.
MOST = 20


@struct
class Timeseries:
    """Measured inputs and outputs, with the times along the last axis.

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

    Examples
    --------
    >>> data = Timeseries([0.0, 0.1, 0.2], [1.0, 1.0, 0.0], [[0.0, 0.1, np.nan]])
    >>> len(data), data.us.shape, round(data.dt, 6)
    (3, (1, 3), 0.1)
    """

    ts: Any = field(units="s")
    us: Any
    ys: Any
    inputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    outputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)

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
        for kind, names, values in (("in", self.inputs, self.us), ("out", self.outputs, self.ys)):
            for name, row in zip(names, np.asarray(values)):
                known = row[~np.isnan(row)]
                ends = [number(known.min()), number(known.max())] if known.size else ["", ""]
                missing = str(len(row) - known.size) if len(row) > known.size else ""
                rows.append([f"{kind} {name}", *ends, missing])
        count = len(self.ts)
        head = f"Timeseries: {count} samples, {number(self.ts[0])} to {number(self.ts[-1])} s"
        rest = 0 if most is None else max(len(rows) - most, 0)
        more = [f"... {rest} more: report()"] if rest else []
        return "\n".join([head, text_table(rows[:most]), *more])

    def __post_init__(self) -> None:
        remedy = "sort the samples by time and drop those that repeat"
        ts = np.asarray(check_increasing(real_numbers(self.ts, "ts"), "ts", remedy=remedy))
        us = np.zeros((0, len(ts))) if self.us is None else _rows(self.us, "us", len(ts))
        ys = _rows(self.ys, "ys", len(ts))
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

    def __len__(self) -> int:
        return len(self.ts)

    def __getitem__(self, samples: slice) -> Timeseries:
        if not isinstance(samples, slice):
            raise TypeError("data[a:b] takes a slice of samples")
        names = {"inputs": self.inputs, "outputs": self.outputs}
        return Timeseries(self.ts[samples], self.us[:, samples], self.ys[:, samples], **names)

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
        """Return the series at even times, linear in between; nan where a neighbour is missing.

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
        us, ys = (
            np.array([np.interp(ts, self.ts, row) for row in part]).reshape(len(part), count)
            for part in (self.us, self.ys)
        )
        return Timeseries(ts, us, ys, inputs=self.inputs, outputs=self.outputs)

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

    @classmethod
    def from_pandas(
        cls, frame: Any, inputs: Sequence[str], outputs: Sequence[str], time: str | None = None
    ) -> Timeseries:
        """Read columns of a table by name; without ``time`` the index is the time.

        Times of dates are seconds from the first. Rows need not be evenly spaced.

        Parameters
        ----------
        frame : DataFrame
            The table. Rows need not be evenly spaced.
        inputs : sequence of str
            Columns with inputs.
        outputs : sequence of str
            Columns with outputs.
        time : str, optional
            Column with the time. By default the index. Dates are converted to seconds from the
            first.
        """
        names = [*([] if time is None else [time]), *inputs, *outputs]
        if missing := [name for name in names if name not in frame.columns]:
            raise ValueError(f"the table has no columns {missing}; it has {list(frame.columns)}")
        ts = np.asarray(frame.index if time is None else frame[time])
        if ts.dtype.kind in "mM":
            ts = (ts - ts[0]) / np.timedelta64(1, "s")
        columns = [np.asarray(frame[list(part)], dtype=float).T for part in (inputs, outputs)]
        us = columns[0] if inputs else None
        return cls(ts, us, columns[1], inputs=tuple(inputs), outputs=tuple(outputs))

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        inputs: Sequence[str],
        outputs: Sequence[str],
        time: str = "t",
    ) -> Timeseries:
        """Read columns of a CSV file by the names in its first line; empty cells are missing.

        Parameters
        ----------
        path : path
            The file. Its first line has the names of the columns; empty cells are missing.
        inputs : sequence of str
            Columns with inputs.
        outputs : sequence of str
            Columns with outputs.
        time : str, optional
            Column with the time, ``"t"`` by default.
        """
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
        return cls(times, us, ys, inputs=tuple(inputs), outputs=tuple(outputs))


def _rows(value: Tree, name: str, count: int) -> np.ndarray:
    rows = np.asarray(real_numbers(value, name))
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != count:
        turned = rows.ndim == 2 and rows.shape[0] == count
        raise ShapeDtypeError(
            f"{name} must have one column per time, shape (rows, {count}), got {rows.shape}"
            + (f": times are last, give {name}.T" if turned else "")
        )
    return rows
