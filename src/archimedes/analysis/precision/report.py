"""``PrecisionReport``: errors of results, errors by line, findings, and what needs double."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from archimedes.analysis.findings import Finding, Report
from archimedes.analysis.precision.results import ResultError

__all__ = ["LineError", "PrecisionReport", "ResultError"]

#: Results and lines that tables have at most.
_ROWS = 10


@dataclass(frozen=True)
class LineError:
    """What one line of source did to the digits.

    Parameters
    ----------
    file, line : str, int
        Where it is.
    text : str
        Its source.
    local : float
        Largest relative error that the line makes by itself, on the operands it was given.
    amplification : float
        Largest condition number of its operations, by operands that have an error.
    error : float
        Largest relative error of its values.
    effect : float
        Relative error of the results if this line alone is computed in the shorter type; nan where
        that was not computed.
    absorbed : float
        Part of its executions in which an addend left a sum as it was.
    drift : float
        By how much the error of what it carries from step to step grows in a step, 0 outside loops.

    Examples
    --------
    >>> LineError("model.py", 3, "y = a - b", 6e-8, 1e6, 0.06, 0.06, 0.0, 0.0).amplification
    1000000.0
    """

    file: str
    line: int
    text: str
    local: float
    amplification: float
    error: float
    effect: float
    absorbed: float
    drift: float


class PrecisionReport(Report):
    """What ``f.precision(...)`` found: a list of findings, empty if all results have their digits.

    Parameters
    ----------
    findings : iterable of Finding
        Lines that cost the results their digits, each with a suggestion.
    about : str
        What was examined.
    dtype, against : str
        The arithmetic that was examined and the more accurate one.
    results : sequence of ResultError
        Error of each result.
    lines : sequence of LineError
        What each line did, those with the largest errors first.
    rtol : float
        Relative error that results may have.
    double : sequence of str
        Lines and arguments that in double bring the results within ``rtol``.
    double_error : float
        The error of the results then, computed by such a program.
    proven, sampled : sequence of str
        What holds for all arguments in the ranges, and what was only seen at samples.
    notes : sequence of str
        Further remarks.

    Examples
    --------
    >>> import archimedes as arc
    >>> report = arc.compile(lambda x: 2.0 * x).precision(0.1)
    >>> report.ok, report.results[0].digits > 7
    (True, True)
    """

    def __init__(
        self,
        findings: Iterable[Finding] = (),
        about: str = "",
        *,
        dtype: str = "float32",
        against: str = "float64",
        results: Sequence[ResultError] = (),
        lines: Sequence[LineError] = (),
        rtol: float = 0.0,
        double: Sequence[str] = (),
        double_error: float = 0.0,
        proven: Sequence[str] = (),
        sampled: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(findings, about)
        self.dtype, self.against, self.rtol = dtype, against, rtol
        self.results, self.lines = tuple(results), tuple(lines)
        self.double, self.double_error = tuple(double), double_error
        self.proven, self.sampled, self.notes = tuple(proven), tuple(sampled), tuple(notes)

    @property
    def ok(self) -> bool:
        """Whether all results are within ``rtol``, and nothing overflowed on the way."""
        return not self

    @property
    def digits(self) -> float:
        """Right digits of the worst result."""
        return min((result.digits for result in self.results), default=float("inf"))

    def as_json(self) -> list[dict[str, Any]]:
        """Return the findings as dicts of plain values."""
        return super().as_json()

    def figures(self) -> dict[str, Any]:
        """Return everything but the findings as plain values."""
        names = ("dtype", "against", "rtol", "double_error")
        return {
            **{name: getattr(self, name) for name in names},
            "results": [asdict(result) for result in self.results],
            "lines": [asdict(line) for line in self.lines],
            **{n: list(getattr(self, n)) for n in ("double", "proven", "sampled", "notes")},
        }

    def table(self) -> str:
        """Return the errors of the results and of the lines as text."""
        rows = [("result", self.against, self.dtype, "rel. error", "digits", "ulps")]
        shown = self.results
        if len(shown) > _ROWS:
            shown = tuple(sorted(shown, key=lambda r: -r.relative)[:_ROWS])
        for r in shown:
            figures = f"{r.relative:.1e}", f"{r.digits:.1f}", f"{r.ulps:.3g}"
            rows.append((r.name, f"{r.value:.9g}", f"{r.computed:.9g}", *figures))
        text = _columns(rows)
        more = len(self.results) - len(shown)
        text += f"\n  and {more} results with smaller errors" if more else ""
        if self.lines:
            head = ("line", "makes", "amplifies", "error", "effect", "")
            table = [head, *map(_row, self.lines[:_ROWS])]
            if all(line.effect != line.effect for line in self.lines):
                table = [(*row[:4], row[5]) for row in table]
            text += "\n\n" + _columns(table)
            more = len(self.lines) - _ROWS
            text += f"\n  and {more} lines with smaller errors" if more > 0 else ""
        return text

    def __str__(self) -> str:
        about = f"{self.about}: " if self.about else ""
        state = "within" if all(r.relative <= self.rtol for r in self.results) else "not within"
        parts = [
            f"{about}{self.dtype} against {self.against}, results {state} {self.rtol:.0e}",
            self.table(),
            *(str(finding) for finding in self),
        ]
        if self.double:
            parts.append(
                f"in double: {', '.join(self.double)}: the error is then {self.double_error:.1e}"
            )
        parts += [f"proven: {text}" for text in self.proven]
        parts += [f"only sampled: {text}" for text in self.sampled]
        parts += [f"note: {text}" for text in self.notes]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return str(self)


def _row(line: LineError) -> tuple[str, ...]:
    where = f"{PurePath(line.file).name}:{line.line}" if line.file else "unknown"
    effect = "" if line.effect != line.effect else f"{line.effect:.1e}"
    text = line.text if len(line.text) <= 60 else f"{line.text[:57]}..."
    figures = f"{line.local:.1e}", f"{line.amplification:.1e}", f"{line.error:.1e}"
    return (where, *figures, effect, text)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows with aligned columns: words to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        first, *middle, last = row
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(middle, widths[1:-1])]
        is_text = rows[0][-1] == ""
        cells.append(last if is_text else last.rjust(widths[-1]))
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
