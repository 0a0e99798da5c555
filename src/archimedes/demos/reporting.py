"""The report of a demonstration: sections of lines, checks and files, as text and as data."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import archimedes as arc
from archimedes.simulate.trajectory.exports import MissingExtra
from archimedes.system.cpus import architecture
from archimedes.typing import Tree
from archimedes.viewer import View
from archimedes.viz import plot

__all__ = ["Report"]


def time_call(work: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """Return the result of some work and the least time in s that it took."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return result, best


def duration(seconds: float) -> str:
    """Return a time in words of few characters.

    >>> duration(0.0123), duration(2.5)
    ('12.3 ms', '2.50 s')
    """
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.2f} s"


def _solve(func: Callable[..., Any], x0: Tree, **options: Any) -> arc.Trajectory:
    return arc.solve_ode(func, (0.0, options["t_eval"][-1]), x0, **options)


class Report:
    """Collects lines, checks and files, and prints them at once.

    `folder` is made; `runs` is how many dispersed copies are wanted, or None.
    """

    def __init__(self, name: str, folder: Path, runs: int | None = None, quiet: bool = False):
        self.name, self.folder, self.runs, self.quiet = name, Path(folder), runs, quiet
        self.figures: dict[str, dict[str, dict[str, Any]]] = {}
        self.checks: dict[str, bool] = {}
        self.files: list[Path] = []
        self._section = ""
        self._start = time.perf_counter()
        self.folder.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("MPLBACKEND", "agg")  # files are wanted, no windows
        self.say(
            f"Archimedes {arc.__version__}  (Python {sys.version.split()[0]}, NumPy "
            f"{np.__version__}, {architecture()}, {os.cpu_count()} cores)"
        )

    @property
    def good(self) -> bool:
        """Whether all checks passed."""
        return all(self.checks.values())

    @property
    def progress(self) -> bool:
        """Whether progress bars are wanted: on a terminal, unless told to be quiet."""
        return not self.quiet and sys.stderr.isatty()

    def copies(self, usual: int) -> int:
        """Return how many dispersed copies to run."""
        return usual if self.runs is None else self.runs

    def say(self, text: str = "") -> None:
        """Print a line."""
        if not self.quiet:
            print(text, flush=True)

    def section(self, title: str) -> None:
        """Begin a section."""
        self._section = title
        self.say(f"\n{title}")

    def line(
        self, name: str, value: Any, digits: str = "", units: str = "", remark: str = ""
    ) -> None:
        """Print one line, and keep its number for ``summary.json``.

        `digits` is how the number is written, such as ".2f"; a time in s without it is written by
        `duration`. A value that is text is only printed.
        """
        if isinstance(value, str):
            text = value
        else:
            number = int(value) if digits == "d" else float(value)
            figure = {"value": number, "units": units} if units else {"value": number}
            figures = self.figures.setdefault(self._section, {})
            if name in figures:
                raise ValueError(f"report: {name!r} is there already in {self._section!r}")
            figures[name] = figure
            plain = units == "s" and not digits
            text = duration(number) if plain else f"{number:{digits}} {units}".rstrip()
        self.say(f"  {name:<34}{text:>12}   {remark}".rstrip())

    def time_motion(
        self, title: str, seconds: float, *problem: Any, repeats: int = 3, **options: Any
    ) -> arc.Trajectory:
        """Solve ``(func, x0)`` until the last time of `t_eval`, and say how long that takes.

        `seconds` is how long the motion lasts; `options` are those of `solve_ode`.
        """
        result, first = time_call(lambda: _solve(*problem, **options))
        _, again = time_call(lambda: _solve(*problem, **options), repeats)
        self.section(title)
        self.speed(first, again, seconds)
        return result

    def time_batch(self, title: str, *problem: Any, **options: Any) -> arc.Trajectory:
        """Solve a batch likewise, once."""
        result, first = time_call(lambda: _solve(*problem, **options))
        _, again = time_call(lambda: _solve(*problem, **options))
        self.section(title)
        self.line("compilation", max(first - again, 0.0), "", "s", "once")
        self.line("flight", again, "", "s", "all copies together")
        return result

    def speed(self, first: float, again: float, seconds: float, motion: str = "flight") -> None:
        """Print what compilation takes and what the motion itself, also relative to real time."""
        compiling = max(first - again, 0.0)
        self.line("compilation", compiling, "", "s", "once: the first call has both")
        self.line(motion, again, "", "s", f"each time, for {seconds:g} s of it")
        self.line("against real time", seconds / again, ",.0f", "x", "faster, without compilation")

    def check(self, name: str, passed: bool | np.bool_) -> None:
        """Record whether a condition holds; a failure is printed at once."""
        self.checks[name] = bool(passed)
        if not passed:
            self.say(f"  CHECK FAILED: {name}")

    def figure(self, name: str, *what: Any, **options: Any) -> None:
        """Plot something to a file; `options` are those of `plot`."""
        path = self.folder / f"{name}.png"
        try:
            plot(*what, file=path, **options)
        except MissingExtra as missing:
            print(f"No plot {path.name}: {missing}", file=sys.stderr)
        else:
            self.files.append(path)

    def table(self, name: str, trajectory: arc.Trajectory) -> None:
        """Write a trajectory as a table with units."""
        path = self.folder / f"{name}.csv"
        trajectory.to_csv(path, units=True)
        self.files.append(path)

    def page(self, view: View, name: str) -> None:
        """Save a view as ``name.html``."""
        self.files.append(view.save(self.folder / f"{name}.html"))

    def close(self) -> None:
        """Write ``summary.json`` and say how it went and where everything is."""
        seconds = time.perf_counter() - self._start
        path = self.folder / "summary.json"
        self.files.append(path)
        path.write_text(json.dumps(self.data(), indent=2) + "\n", encoding="utf-8", newline="\n")
        self.section(f"Written to {self.folder.absolute()}")
        for file in self.files:
            size = f"{file.stat().st_size / 1e3:>10,.0f} kB"
            kind = LIVE_PAGE if file.stem.endswith("_live") else KINDS[file.suffix]
            self.say(f"  {file.name:<24}{size}   {kind}")
        failed = [name for name, passed in self.checks.items() if not passed]
        verdict = f"FAILED: {', '.join(failed)}" if failed else "All checks passed"
        self.say(f"\n{verdict} ({duration(seconds)}).")

    def data(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "demo": self.name,
            "good": self.good,
            "checks": self.checks,
            "figures": self.figures,
            "folder": str(self.folder.absolute()),
            "files": [file.name for file in self.files],
        }


LIVE_PAGE = "open it in a browser: the model runs in it, move it"
KINDS = {
    ".html": "open it in a browser: the flight in 3-D, offline",
    ".png": "plot",
    ".csv": "trajectory as a table",
    ".json": "all figures above",
}
