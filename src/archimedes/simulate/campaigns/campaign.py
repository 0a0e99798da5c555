"""What a campaign returns: parameters and results of its runs, statistics, and what failed.

A run is good (0) or has failed: with nan in its results (which is what a recorded solve gives when
it fails), or, where the model is called as plain Python, with an arithmetic error. Other errors
are mistakes in the model and end the campaign.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.display import (
    COLUMNS,
    axis_label,
    digits_for,
    for_reading,
    html_table,
    number,
    text_table,
    without_noise,
)
from archimedes.simulate.campaigns.chunk_store import RAISED, CampaignError
from archimedes.simulate.statuses import SimulationError, Status
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.simulate.trajectory.exports import require

if TYPE_CHECKING:
    from archimedes.typing import Array, Tree

__all__ = ["Campaign", "summarize"]

#: Errors that are failures of a run, not of the model.
NUMERICAL = (ArithmeticError, np.linalg.LinAlgError, SimulationError)
#: Runs and reasons that are listed by name.
LISTED, NAMED = 10, 3
#: Results in the table that is printed, and numbers in one of them, such as one over time.
ROWS, LARGE = 12, 9
#: The same in a notebook.
HTML_ROWS = 40


def statuses_of(results: Tree, count: int) -> np.ndarray:
    """Return the status of each of `count` runs by their stacked results: nan is a failure.

    >>> statuses_of({"a": np.array([1.0, np.nan]), "b": np.array([1, 2])}, 2)
    array([ 0, -2])
    """
    bad = np.zeros(count, dtype=bool)
    for leaf in map(np.asarray, tree.leaves(results)):
        if leaf.dtype.kind in "fc" and leaf.shape[:1] == (count,):
            bad |= _with_nan(leaf)
    return np.where(bad, Status.NON_FINITE, Status.FINISHED)


def _with_nan(rows: np.ndarray) -> np.ndarray:
    """Return which rows hold nan."""
    return np.isnan(rows).any(axis=tuple(range(1, rows.ndim)))


def fill_in(stacked: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Return an array with the rows `stacked` where runs are `good`, and nan (or none) elsewhere.

    Whole numbers become float64, which has nan.

    >>> fill_in(np.array([1, 2]), np.array([True, False, True]))
    array([ 1., nan,  2.])
    """
    kind = stacked.dtype.kind
    dtype = np.dtype(np.float64) if kind in "biu" else stacked.dtype
    nothing: Any = {"U": "", "S": b"", "O": None, "M": "NaT", "m": "NaT"}.get(kind, np.nan)
    rows = np.full((len(good), *stacked.shape[1:]), nothing, dtype=dtype)
    rows[good] = stacked
    return rows


def reasons(results: Tree, status: np.ndarray, messages: dict[int, str], runs: np.ndarray) -> str:
    """Say why runs failed, the most frequent reason first: ``nan in result.range (12 runs)``."""
    count: Counter[str] = Counter()
    for run in np.asarray(runs)[status == RAISED].tolist():
        count[messages[run]] += 1
    rows = status == Status.NON_FINITE
    for path, leaf in zip(tree.structure(results).paths("result"), tree.leaves(results)):
        values = np.asarray(leaf)
        if values.dtype.kind in "fc" and values.shape[:1] == status.shape:
            count[f"nan in {path}"] += int(_with_nan(values[rows]).sum())
    counts = [(why, number) for why, number in count.most_common() if number]
    texts = [f"{why} ({number} run{'s' * (number > 1)})" for why, number in counts]
    return "; ".join(texts[:NAMED] + ([f"{len(texts) - NAMED} more"] if texts[NAMED:] else []))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics over runs: trees like one run's result. `quantiles` is a dict of trees by share.

    `count` has how many of all the runs (`total`) gave a number; those that gave nan are left out.
    """

    total: int
    count: Any
    mean: Any
    std: Any
    min: Any
    max: Any
    quantiles: dict[float, Any]

    def __repr__(self) -> str:
        rows = self._rows()[: ROWS + 1]
        columns = tree_columns(self.mean, 0, "result", prefix=False)
        left_out = [c for c in columns if c.name not in {row[0].split(" (")[0] for row in rows}]
        if not left_out:
            return text_table(rows)
        names = [*dict.fromkeys(c.name.split("[")[0] for c in left_out)]
        some = ", ".join(names[:NAMED]) + ", ..." * (len(names) > NAMED)
        table = [text_table(rows)] if len(rows) > 1 else []
        return "\n".join([*table, f"... {len(left_out)} more numbers ({some}): see report()"])

    def report(self) -> str:
        """Return the statistics of all numbers as text, a line for each."""
        return text_table(self._rows(largest=np.inf))

    def _rows(self, largest: float = LARGE) -> list[list[str]]:
        """Return the cells of a table, the heading first; leaves that are `largest` at most."""
        shares = sorted(self.quantiles)
        counts = tree.leaves(self.count)
        trees = [self.mean, self.std, self.min, *(self.quantiles[q] for q in shares), self.max]
        quantiles = [f"{100 * q:g} %" for q in shares]
        leaves = [tree.leaves(t) for t in trees]
        rows = [["", "runs", "mean", "std", "std/mean", "min", *quantiles, "max"]]
        for column in tree_columns(self.mean, 0, "result", prefix=False):
            if np.size(leaves[0][column.leaf]) > largest:
                continue
            values = np.array([each[column.leaf][column.place] for each in leaves])
            shown, units = for_reading(values, column.units)
            mean, std, *others = without_noise(shown)
            digits = digits_for(shown, std)
            count = counts[column.leaf][column.place]
            runs = str(count) if count == self.total else f"{count} of {self.total}"
            cells = [runs, number(mean, digits), number(std, 3)]
            cells += [relative_spread(mean, std), *(number(value, digits) for value in others)]
            rows.append([axis_label(column.name, units), *cells])
        return rows


def relative_spread(mean: float, std: float) -> str:
    """Return a standard deviation in percent of the mean; nothing where that says nothing.

    >>> relative_spread(40.0, 2.0), relative_spread(0.0, 1.0)
    ('5 %', '')
    """
    tells = np.isfinite(mean) and np.isfinite(std) and std <= 10.0 * abs(mean) and mean != 0.0
    return f"{100.0 * std / abs(mean):.2g} %" if tells else ""


def summarize(results: Tree, quantiles: float | Sequence[float] = (0.05, 0.5, 0.95)) -> Statistics:
    """Return statistics over the first axis of each leaf.

    Values that are nan are left out and counted. The standard deviation is that of a sample, with n
    - 1. Quantiles interpolate between the two nearest runs, as `np.quantile` does. Leaves that do
    not hold real numbers have no statistics: these are nan, from 0 runs.

    Parameters
    ----------
    results : tree
        Results with the runs along the first axis of each leaf.
    quantiles : array_like (k,), optional
        Fractions between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> summarize({"range": np.array([1.0, 2.0, 3.0, np.nan])}).mean
    {'range': np.float64(2.0)}
    """
    shares = (quantiles,) if isinstance(quantiles, (int, float)) else tuple(quantiles)
    if wrong := [q for q in shares if not 0.0 <= q <= 1.0]:
        raise ValueError(
            f"quantiles must be between 0 and 1, got {wrong[0]!r}: write 0.95 for 95 %"
        )
    leaves, treedef = tree.flatten(results)
    columns = [leaf_statistics(np.asarray(leaf), shares) for leaf in leaves]
    trees = [treedef.unflatten(list(values)) for values in zip(*columns)]
    if not trees:
        trees = [results] * (5 + len(shares))
    count, mean, std, low, high, *at_shares = trees
    total = len(leaves[0]) if leaves else 0
    return Statistics(total, count, mean, std, low, high, dict(zip(shares, at_shares)))


def leaf_statistics(values: np.ndarray, quantiles: tuple[float, ...]) -> list[Any]:
    """Return count, mean, std, min, max and the quantiles over the first axis, without warnings."""
    if values.dtype.kind not in "biuf":  # text, and complex numbers, which have no order
        values = np.full(values.shape, np.nan)
    x = values.astype(np.float64)
    known = ~np.isnan(x)
    count = known.sum(axis=0)

    def over(n: Array, total: Array) -> Any:
        return np.divide(total, n, out=np.full(np.shape(total), np.nan), where=n > 0)[()]

    mean = over(count, np.where(known, x, 0.0).sum(axis=0))
    squares = np.where(known, (x - mean) ** 2, 0.0).sum(axis=0)
    std = np.sqrt(over(count - 1, squares))
    low = np.where(count > 0, np.where(known, x, np.inf).min(axis=0, initial=np.inf), np.nan)[()]
    high = np.where(count > 0, np.where(known, x, -np.inf).max(axis=0, initial=-np.inf), np.nan)[()]
    ordered = np.sort(x, axis=0)  # nan goes to the end
    values_at = [quantile_of_sorted(ordered, count, q) for q in quantiles]
    return [count[()], mean, std, low, high, *values_at]


def quantile_of_sorted(ordered: np.ndarray, count: np.ndarray, q: float) -> Any:
    """Return the quantile of the first `count` values of each column (linear interpolation)."""
    if not len(ordered):
        return np.full(ordered.shape[1:], np.nan)[()]
    at = q * np.maximum(count - 1, 0)
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    first, second = (np.take_along_axis(ordered, k[None], axis=0)[0] for k in (below, above))
    return (first + (at - below) * (second - first))[()]


@dataclass(frozen=True, eq=False)
class Campaign:
    """The runs of a Monte Carlo campaign, with their parameters and results.

    Parameters
    ----------
    runs : array (n,)
        Numbers of the runs: 0 to n - 1 in a complete campaign, fewer if it was interrupted.
    params : tree
        Parameters that were drawn, with the runs as the leading axis of each leaf.
    results : tree or None
        What the model returned, with the runs as the leading axis of each leaf. The results of a
        failed run are nan. None if every run failed without a result.
    total : int
        Number of runs that were asked for.
    executed : int
        Number of runs that this call executed. The others were read from the folder.
    status : array (n,)
        0 for each successful run, a negative number for each one that failed.
    messages : dict
        Error messages of the runs that raised one, by the number of the run.
    keys : tuple of str, optional
        Names of the parameters that are keys of random numbers. Tables and plots leave them out.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes.simulate import Normal
    >>> found = arc.monte_carlo(lambda p: p["a"] ** 2, {"a": Normal(1.0, 0.1)}, n=100)
    >>> bool(found.success.all()), found.results.shape
    (True, (100,))
    """

    runs: np.ndarray
    params: Any
    results: Any
    total: int
    executed: int
    status: np.ndarray
    messages: dict[int, str]
    keys: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all runs are there, good or not."""
        return len(self.runs) == self.total

    @property
    def success(self) -> np.ndarray:
        """Which of `runs` are good: ``found.results[found.success]``."""
        return self.status >= 0

    @property
    def failed(self) -> np.ndarray:
        """The numbers of the runs that failed."""
        return self.runs[~self.success]

    def __len__(self) -> int:
        return len(self.runs)

    def statistics(self, quantiles: float | Sequence[float] = (0.05, 0.5, 0.95)) -> Statistics:
        """Return mean, standard deviation, extremes and quantiles of the results.

        Parameters
        ----------
        quantiles : array_like (k,), optional
            Fractions between 0 and 1.
        """
        if self.results is None and len(self):
            raise CampaignError(f"statistics: there are no results, {self._failures()}")
        return summarize(self.results, quantiles)

    def to_pandas(self) -> Any:
        """Return a DataFrame: a line per run, columns status, ``params.`` and ``result.``.

        Keys of random numbers are left out; ``campaign.params`` has them.
        """
        pd = require("pandas", "data", "Campaign.to_pandas")
        columns: dict[str, Any] = {"status": self.status}
        for root, value in (("params", self.params), ("result", self.results)):
            leaves = tree.leaves(value)
            for c in tree_columns(value, 1, root):
                if np.ndim(leaves[c.leaf]) and not self.is_key(c.name, f"{root}."):
                    columns[c.name] = leaves[c.leaf][(slice(None), *c.place)]
        return pd.DataFrame(columns, index=pd.Index(self.runs, name="run"))

    def to_xarray(self, dims: Mapping[str, Sequence[str]] | None = None) -> Any:
        """Return a Dataset: results as variables over ``run``, parameters as its coordinates.

        A result that is a trajectory has the dimension ``t`` after ``run``, if all runs share their
        times. Units are attributes. Keys of random numbers are left out.

        Parameters
        ----------
        dims : mapping of str to sequence of str, optional
            Names of the axes of results after the run, such as ``{"path": ("t", "axis")}``. By
            default ``path_0``, ``path_1``, ...

        Examples
        --------
        >>> import archimedes as arc
        >>> from archimedes.simulate import Normal
        >>> found = arc.monte_carlo(lambda p: {"s": p["a"] * 2}, {"a": Normal()}, n=5)
        >>> data = found.to_xarray()
        >>> data["s"].dims, "a" in data.coords
        (('run',), True)
        """
        from archimedes.simulate.campaigns import datasets

        return datasets.to_dataset(self, dims or {})

    def to_netcdf(self, target: Any, dims: Mapping[str, Sequence[str]] | None = None) -> None:
        """Write the Dataset of `to_xarray` to a NetCDF 4 file, which is an HDF5 file, too.

        Parameters
        ----------
        target : path or file
            Where to write.
        dims : mapping of str to sequence of str, optional
            As in `to_xarray`.
        """
        from archimedes.simulate.campaigns import datasets

        datasets.write_dataset(self, target, dims or {})

    def is_key(self, column: str, prefix: str = "") -> bool:
        """Return whether a column of the parameters is part of a key of random numbers.

        Parameters
        ----------
        column : str
            Name of the column, such as ``"key[0]"``.
        prefix : str, optional
            What its name starts with. Nothing by default.
        """
        return any(column.startswith(f"{prefix}{key}[") for key in self.keys)

    def _failures(self) -> str:
        """Say which runs failed, and why."""
        failed = self.failed
        why = reasons(self.results, self.status, self.messages, self.runs)
        number = "all runs" if len(failed) == len(self) else f"{len(failed)} of {len(self)} runs"
        numbers = ", ".join(map(str, failed[:LISTED].tolist())) + ", ..." * (len(failed) > LISTED)
        return f"{number} failed, {why}: {numbers}"

    def __repr__(self) -> str:
        return self._describe(repr)

    def _repr_html_(self) -> str:
        head = self._describe(lambda statistics: "").strip()
        if self.results is None or not len(self):
            return html_table(head, [[""]])
        rows = self.statistics()._rows()
        remark = f"... {len(rows) - HTML_ROWS - 1} more: .report()" if len(rows) > HTML_ROWS else ""
        return html_table(head, rows[:HTML_ROWS], remark)

    def report(self) -> str:
        """Return everything as text: what failed, and statistics of results and parameters."""
        text = self._describe(Statistics.report)
        numbers = [leaf for leaf in tree.leaves(self.params) if np.ndim(leaf)]
        if not numbers:
            return text
        table = summarize(self.params).report().splitlines()
        shown = [line for line in table if not self.is_key(line)]
        return "\n".join([text, "", "Parameters", *shown])

    def _describe(self, write: Callable[[Statistics], str]) -> str:
        state = "complete" if self.complete else f"interrupted, {self.total - len(self)} missing"
        if len(self.failed):
            state += f", {len(self.failed)} failed"
        lines = [f"Campaign: {len(self)} of {self.total} runs ({state}), {self.executed} run now"]
        if len(self.failed):
            lines += textwrap.wrap(self._failures(), COLUMNS)
        if len(self) and self.results is not None:
            lines.append(write(self.statistics()))
        return "\n".join(lines)
