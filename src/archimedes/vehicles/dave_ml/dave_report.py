"""What became of a DAVE-ML file: which check cases hold, what was used and what was not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archimedes.vehicles.dave_ml.elements import Definitions, Shot, Signal
from archimedes.vehicles.dave_ml.expressions import Expression
from archimedes.vehicles.dave_ml.lookups import Lookup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from archimedes.vehicles.dave_ml.dave_model import DaveModel

__all__ = ["CheckReport", "CheckRow", "ImportReport"]


@dataclass(frozen=True)
class CheckRow:
    """One value of one check case; `note` says what else is to be known.

    Parameters
    ----------
    shot : str
        Name of the check case.
    signal : str
        Name of the signal.
    expected : float
        Value in the file.
    got : float
        Computed value.
    tolerance : float
        Tolerance.
    ok : bool
        Whether they agree.
    internal : bool
        Whether it is an intermediate value, which does not decide.
    note : str, optional
        Further remarks.

    Examples
    --------
    >>> from archimedes.vehicles.dave_ml import CheckRow
    >>> print(CheckRow("cruise", "lift", 1.0, 1.5, 1e-6, ok=False, internal=False))
    cruise: lift: expected 1.0, got 1.5, tolerance 1e-06: FAILED
    """

    shot: str
    signal: str
    expected: float
    got: float
    tolerance: float
    ok: bool
    internal: bool
    note: str = ""

    def __str__(self) -> str:
        """Write the row in one line."""
        word = "ok" if self.ok else "FAILED"
        return (
            f"{self.shot}: {self.signal}: expected {self.expected!r}, got {self.got!r}, "
            f"tolerance {self.tolerance:g}: {word}" + (f" ({self.note})" if self.note else "")
        )


@dataclass(frozen=True)
class CheckReport:
    """All values of all check cases; `ok` if every output is within its tolerance.

    Parameters
    ----------
    rows : tuple of CheckRow
        All values.
    shots : int
        Number of check cases.

    Examples
    --------
    >>> from archimedes.vehicles.dave_ml import CheckReport, CheckRow
    >>> row = CheckRow("cruise", "lift", 1.0, 1.0, 1e-6, ok=True, internal=False)
    >>> report = CheckReport((row,), shots=1)
    >>> print(report)
    1 shots: 1 of 1 values agree
    >>> report.ok, report.failures
    (True, ())
    """

    rows: tuple[CheckRow, ...]
    shots: int

    @property
    def ok(self) -> bool:
        """Whether there are outputs to check and all agree; values in between do not count."""
        outputs = [row for row in self.rows if not row.internal]
        return bool(outputs) and all(row.ok for row in outputs)

    @property
    def failures(self) -> tuple[CheckRow, ...]:
        """The rows that do not agree, values in between included."""
        return tuple(row for row in self.rows if not row.ok)

    def __str__(self) -> str:
        """Write a summary, then the rows that fail or have a note."""
        good = sum(row.ok for row in self.rows)
        shown = [str(row) for row in self.rows if not row.ok or row.note]
        return "\n".join([f"{self.shots} shots: {good} of {len(self.rows)} values agree", *shown])


def run_shots(model: DaveModel, shots: list[Shot], internal_rtol: float) -> CheckReport:
    """Run check cases through a model."""
    rows = []
    for shot in shots:
        try:
            inputs = {model.id_of_signal(s, model.inputs): s.value for s in shot.inputs}
            values = model.signals(inputs)
        except ValueError as error:
            raise ValueError(f"{shot.place}: shot {shot.name!r}: {error}") from None
        for signals, internal in ((shot.outputs, False), (shot.internal, True)):
            for signal in signals:
                allowed = signal.tolerance
                if allowed is None:
                    allowed = internal_rtol * max(1.0, abs(signal.value))
                row = CheckRow(
                    *(shot.name, signal.name, signal.value, float("nan"), allowed),
                    ok=False,
                    internal=internal,
                )
                rows.append(_compare(model, row, signal, values))
    return CheckReport(tuple(rows), len(shots))


def _compare(
    model: DaveModel, row: CheckRow, signal: Signal, values: Mapping[str, Any]
) -> CheckRow:
    """Return a row with the value that the model computes for a signal."""
    try:
        key = model.id_of_signal(signal, () if row.internal else model.outputs)
    except ValueError as error:
        return replace(row, note=str(error))
    got, units, note = float(values[key]), model.variables[key].units, ""
    if signal.units and signal.units != units:
        note = f"units are {signal.units!r} in the check data, {units!r} in the model"
    ok = got == row.expected or abs(got - row.expected) <= row.tolerance
    return replace(row, signal=key, got=got, ok=ok, note=note)


@dataclass(frozen=True)
class ImportReport:
    """What of a file is used, approximated and ignored, one line each.

    Parameters
    ----------
    used : tuple of str
        What is used.
    approximated : tuple of str
        What is approximated.
    ignored : tuple of str
        What is ignored.

    Examples
    --------
    >>> from archimedes.vehicles.dave_ml import ImportReport
    >>> ImportReport(used=("2 tables",), approximated=(), ignored=("provenance",)).ignored
    ('provenance',)
    """

    used: tuple[str, ...]
    approximated: tuple[str, ...]
    ignored: tuple[str, ...]

    def __str__(self) -> str:
        """Write the three lists."""
        return "\n".join(
            f"{title}:\n" + "\n".join(f"  {line}" for line in lines or ("nothing",))
            for title, lines in vars(self).items()
        )


def import_report(model: DaveModel, definitions: Definitions) -> ImportReport:
    """Say what of a file's definitions a model uses."""
    variables = definitions.variables.values()
    lookups = {v.id: v.source for v in variables if isinstance(v.source, Lookup)}
    formulas = [v for v in variables if isinstance(v.source, Expression)]

    def join_names(keys: Iterable[str]) -> str:
        told = (f"{k} [{definitions.variables[k].units}]" for k in keys)
        return ", ".join(told) or "none"

    used = [
        f"inputs: {join_names(model.inputs)}",
        f"outputs: {join_names(model.outputs)}",
        f"constants: {join_names(model.constants)}",
        f"calculations: {', '.join(v.id for v in formulas) or 'none'}",
        *(f"table: {_describe(key, lookup)}" for key, lookup in lookups.items()),
        f"check cases: {len(definitions.shots)}",
    ]
    approximated = list(definitions.approximated)
    unmarked = [v.id for v in variables if v.id in model.inputs and not v.roles]
    if unmarked:
        approximated.append(f"taken as inputs, not marked as such: {', '.join(unmarked)}")
    if not any(v.roles & {"isOutput", "isStateDeriv"} for v in variables):
        approximated.append("no output is marked: all that is computed and not used further is one")
    unused = sorted(set(definitions.tables) - definitions.tables_used)
    ignored = [f"<{tag}>: {count}" for tag, count in sorted(definitions.ignored.items())]
    ignored += [f"table {key!r}: no function refers to it" for key in unused]
    ignored += [
        f"initialValue of {v.id}: it is computed"
        for v in variables
        if v.source is not None and v.initial is not None
    ]
    return ImportReport(tuple(used), tuple(approximated), tuple(ignored))


def _describe(key: str, lookup: Lookup) -> str:
    axes = ", ".join(
        f"{a.variable} ({len(a.points)} points, {a.interpolate}, extrapolate {a.extrapolate})"
        for a in lookup.axes
    )
    return f"{key} = {lookup.name}({axes})"
