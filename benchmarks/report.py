"""Tables of measurements, and the page they are written to.

A benchmark module takes part by having a function ``tables() -> list[Table]``; ``python -m
benchmarks`` finds it. Figures are medians over fresh processes: ``in_processes`` runs a function
of a module in each and collects the numbers it returns.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Table", "environment", "in_processes", "medians", "page", "processor", "replaced"]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
PACKAGES = ("numpy", "scipy", "llvmlite", "scikit-sundae", "casadi", "jax", "diffrax", "numba")


@dataclass(frozen=True)
class Table:
    """Measurements under a title; ``note`` says how they were taken."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """The table as text."""
        lines = [f"## {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("|" + "---|" * len(self.columns))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def _environment_of_child() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def in_processes(module: str, function: str, count: int) -> list[dict[str, float]]:
    """Call ``module.function()``, which returns a dict of numbers, in ``count`` fresh processes."""
    code = f"import json; from {module} import {function} as f; print(json.dumps(f()))"
    return [json.loads(_run(code).splitlines()[-1]) for _ in range(count)]


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=_environment_of_child(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a benchmark process failed:\n{done.stderr}")
    return done.stdout


def seconds_of(statement: str, count: int) -> list[float]:
    """Time one statement in fresh processes, each measured from inside."""
    code = (
        f"import time; start = time.perf_counter()\n{statement}\nprint(time.perf_counter() - start)"
    )
    _run(code)  # writes .pyc files
    return [float(_run(code).splitlines()[-1]) for _ in range(count)]


def medians(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Median of each number over runs."""
    runs = list(runs)
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def environment() -> Table:
    """The machine and the versions of what was measured."""
    rows = [
        ("processor", processor()),
        ("cores", str(os.cpu_count())),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("Python", platform.python_version()),
    ]
    for name in PACKAGES:
        try:
            rows.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return Table("Environment", ("what", "which"), rows)


def processor() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def page(tables: Sequence[Table]) -> str:
    """All tables as one page."""
    head = "# Measurements\n\nWritten by `python -m benchmarks`.\n"
    return "\n".join([head, *(t.markdown() for t in (environment(), *tables))])


def replaced(text: str, tables: Sequence[Table]) -> str:
    """Return a page with these tables in the place of those of the same title, or at its end.

    >>> old = "# Page\\n\\n" + Table("One", ["what"], [["1"]]).markdown()
    >>> print(replaced(old, [Table("One", ["what"], [["2"]])]).splitlines()[-1])
    | 2 |
    """
    parts = text.split("\n## ")
    titles = [part.partition("\n")[0] for part in parts]
    for table in tables:
        new = table.markdown().removeprefix("## ")
        if table.title in titles:
            parts[titles.index(table.title)] = new
        else:
            parts.append(new)
    return "\n## ".join(parts)
