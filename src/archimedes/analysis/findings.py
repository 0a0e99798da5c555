"""Findings of a checker: where, what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Finding", "Report"]


@dataclass(frozen=True)
class Finding:
    """One place in the user's source where something does not fit.

    Parameters
    ----------
    file : str
        The file, as a path that can be opened.
    line : int
        The line in the file, from 1.
    message : str
        What does not fit and what would be right.
    expression : str
        The source of the expression, "" if it is not known.
    kind : str
        What was checked: "units", "frames" or "digits".

    Examples
    --------
    >>> print(Finding("model.py", 7, "adds m and m/s: multiply by a time?", "x + v", "units"))
    model.py:7: units: adds m and m/s: multiply by a time?
        x + v
    """

    file: str
    line: int
    message: str
    expression: str = ""
    kind: str = ""

    def __str__(self) -> str:
        kind = f"{self.kind}: " if self.kind else ""
        text = f"{self.file}:{self.line}: {kind}{self.message}"
        return f"{text}\n    {self.expression}" if self.expression else text


class Report(list[Finding]):
    """Findings in the order of their lines; empty where everything fits.

    Parameters
    ----------
    findings : iterable of Finding, optional
        What does not fit, in any order.
    about : str, optional
        What was checked, for the line that is printed where there is nothing to report.

    Examples
    --------
    >>> report = Report([], about="3 functions")
    >>> report.ok, str(report)
    (True, 'nothing to report for 3 functions')
    """

    def __init__(self, findings: Iterable[Finding] = (), about: str = "") -> None:
        super().__init__(sorted(set(findings), key=lambda f: (f.file, f.line, f.message)))
        self.about = about

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self

    def as_json(self) -> list[dict[str, Any]]:
        """Return the findings as dicts of plain values."""
        return [asdict(finding) for finding in self]

    def __str__(self) -> str:
        if self.ok:
            return "nothing to report" + (f" for {self.about}" if self.about else "")
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        return str(self)
