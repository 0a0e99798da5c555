"""A DAVE-ML model as a function of its inputs, with reports on its check cases and its file."""

from __future__ import annotations

import difflib
import os
import textwrap
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.display import COLUMNS, axis_label, brief, named_lines
from archimedes.vehicles.dave_ml import elements
from archimedes.vehicles.dave_ml.sources import Expression, Lookup, Values
from archimedes.xml_elements import read_elements

__all__ = ["CheckReport", "CheckRow", "DaveModel", "ImportReport", "read"]

#: Rows of a check that are printed.
LISTED = 10

NAMESPACES = ("http://daveml.org/2010/DAVEML", "http://www.w3.org/1998/Math/MathML")
#: Marks of variables that come from outside, and of those that go there.
GIVEN = {"isInput", "isControl", "isDisturbance", "isState"}
WANTED = {"isOutput", "isStateDeriv"}


def read(path: str | os.PathLike[str]) -> DaveModel:
    """Read a DAVE-ML file (ANSI/AIAA S-119) into a function of its inputs.

    Nothing that the file names is fetched; files that declare entities, are larger than 64 MiB or
    nested deeper than 100 elements are refused. Errors are ValueErrors with file and line.

    Parameters
    ----------
    path : path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "twice.dml")
    ...     _ = file.write_text(
    ...         '<DAVEfunc><variableDef varID="x" name="given" units="m"/>'
    ...         '<variableDef varID="z" name="twice" units="m"><calculation><math>'
    ...         '<apply><times/><cn>2</cn><ci>x</ci></apply>'
    ...         '</math></calculation></variableDef></DAVEfunc>'
    ...     )
    ...     model = read(file)
    >>> float(model(x=3.0)["z"]), model.variables["z"].units
    (6.0, 'm')
    """
    return DaveModel(elements.read_definitions(read_elements(path, NAMESPACES)))


class DaveModel:
    """A model of a DAVE-ML file, made by :func:`read`.

    ``model(alpha=5.0, el=-2.0)`` returns the outputs, a dict by varID in the order of the file.
    Inputs are given by varID or by name, as keywords or in a dict, in the units of the file
    (`model.variables[id].units`): numbers, arrays (elementwise, with NumPy's broadcasting) or
    traced values. `inputs` must be given unless they have an initial value; constants may be
    replaced in the same way. As the file says, tables hold their outermost values or continue, and
    minValue and maxValue limit a variable.

    Parameters
    ----------
    definitions : Definitions
        Variables, tables and calculations.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from archimedes.vehicles import dave_ml
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "half.dml")
    ...     _ = file.write_text(
    ...         '<DAVEfunc><variableDef varID="x" name="given" units="m" initialValue="3"/>'
    ...         '<variableDef varID="z" name="half" units="m"><calculation><math>'
    ...         '<apply><divide/><ci>x</ci><cn>2</cn></apply>'
    ...         '</math></calculation></variableDef></DAVEfunc>'
    ...     )
    ...     model = dave_ml.read(file)
    >>> [float(model(**given)["z"]) for given in ({}, {"x": 1.0})]
    [1.5, 0.5]
    """

    def __init__(self, definitions: elements.Definitions) -> None:
        self._definitions = definitions
        self.name = definitions.name
        #: All variables by varID.
        self.variables: dict[str, elements.Variable] = definitions.variables
        self._order = in_order(self.variables)
        free = [v for v in self.variables.values() if v.source is None]
        self._free = frozenset(v.id for v in free)
        #: varIDs of what comes from outside: marked so in the file, or without any value there.
        self.inputs = tuple(v.id for v in free if v.roles & GIVEN or v.initial is None)
        #: varIDs of the other variables that nothing in the file computes.
        self.constants = tuple(v.id for v in free if v.id not in self.inputs)
        #: varIDs of the results: marked so in the file, or computed and used by nothing.
        self.outputs = self._results()
        self._needed = in_order(self.variables, self.outputs)
        self._ids: dict[str, list[str]] = {}
        for variable in self.variables.values():
            self._ids.setdefault(variable.name, []).append(variable.id)

    def __repr__(self) -> str:
        rows = [("inputs", self.inputs), ("outputs", self.outputs), ("constants", self.constants)]
        lines = [(f"{len(ids)} {title}", brief(self._list(ids))) for title, ids in rows]
        return f"DAVE-ML model {self.name!r}\n{named_lines(lines)}"

    def _list(self, ids: Iterable[str]) -> str:
        """Return variables with their units, as in ``alpha (deg), el (deg)``."""
        return ", ".join(axis_label(k, self.variables[k].units) for k in ids) or "none"

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Return the outputs by varID."""
        values = self._run(self._needed, inputs, named)
        return {key: values[key] for key in self.outputs}

    def signals(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Return all variables by varID, inputs and constants included.

        Parameters
        ----------
        inputs : mapping, optional
            Inputs by varID or name, in the units of the file.
        **named
            The same as keywords.
        """
        return self._run(self._order, inputs, named)

    def check(self, internal_rtol: float = 1e-6) -> CheckReport:
        """Run the check data of the file.

        Outputs must agree within the tolerances of the file. Intermediate values have none there:
        they are compared with `internal_rtol` times their size (at least 1), and do not decide.

        Parameters
        ----------
        internal_rtol : float, optional
            Relative tolerance of intermediate values.
        """
        return run_shots(self, self._definitions.shots, internal_rtol)

    def report(self) -> ImportReport:
        """Return what of the file is used, approximated and ignored."""
        return import_report(self, self._definitions)

    def id_of(self, name: str, among: Container[str] = (), by_name: bool = False) -> str:
        """Return the varID of a variable.

        Parameters
        ----------
        name : str
            varID or name.
        among : container of str, optional
            Variables that are meant if several have the name.
        by_name : bool, optional
            Try names first. False by default.
        """
        ids = self._ids.get(name, [])
        if name in self.variables and not (by_name and ids):
            return name
        if len(ids) > 1:
            ids = [key for key in ids if key in among] or ids
        if len(ids) > 1:
            raise ValueError(f"the name {name!r} belongs to {', '.join(ids)}: give a varID")
        if not ids:
            near = difflib.get_close_matches(name, [*self.variables, *self._ids], n=3)
            hint = f" (did you mean {', '.join(near)}?)" if near else ""
            listed = ", ".join(self.inputs)
            raise ValueError(f"the model has no variable {name!r}{hint}; its inputs are {listed}")
        return ids[0]

    def id_of_signal(self, signal: elements.Signal, among: Container[str] = ()) -> str:
        """Return the varID of a signal in check data.

        Parameters
        ----------
        signal : Signal
            Signal in check data.
        among : container of str, optional
            Variables that are meant if several have the name.
        """
        return self.id_of(signal.name, among, signal.by_name)

    def _results(self) -> tuple[str, ...]:
        marked = tuple(v.id for v in self.variables.values() if v.roles & WANTED)
        used = {key for v in self.variables.values() for key in v.reads}
        computed = (v.id for v in self.variables.values() if v.source is not None)
        return marked or tuple(key for key in computed if key not in used)

    def _read_inputs(self, inputs: Values | None, named: Values) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, value in [*(inputs or {}).items(), *named.items()]:
            key = self.id_of(name, self._free)
            if key in values:
                raise ValueError(f"input {key!r} is given twice (as {name!r} the second time)")
            if self.variables[key].source is not None:
                raise ValueError(f"{name!r} is computed by the model and cannot be given")
            values[key] = _real(value, name)
        return values

    def _run(self, order: tuple[str, ...], inputs: Values | None, named: Values) -> dict[str, Any]:
        known = self._read_inputs(inputs, named)
        missing = [k for k in self.inputs if k not in known and self.variables[k].initial is None]
        if missing:
            told = ", ".join(f"{k} ({self.variables[k].units})" for k in missing)
            raise ValueError(f"the model needs values of its inputs {told}")
        values: dict[str, Any] = {}
        for key in order:
            variable = self.variables[key]
            if variable.source is None:
                value: Any = known.get(key, variable.initial)
            else:
                value = variable.source(values)
            if isinstance(variable.source, Expression):
                value = np.multiply(value, 1.0)  # truth values are numbers here
            values[key] = variable.limit(value)
        return values


def in_order(
    variables: Mapping[str, elements.Variable], wanted: Iterable[str] | None = None
) -> tuple[str, ...]:
    """Return the wanted variables (all by default) and those they need, needed ones first.

    Raises ValueError for names that are not defined and for variables that depend on themselves.
    """
    reads: dict[str, dict[str, str]] = {}
    waiting = list(variables if wanted is None else wanted)
    for key in waiting:  # which grows
        if key in reads:
            continue
        reads[key] = variables[key].reads
        for name, line in reads[key].items():
            if name not in variables:
                raise ValueError(f"{line}: {key!r} reads {name!r}, which no variableDef defines")
        waiting += reads[key]
    try:
        return tuple(TopologicalSorter(reads).static_order())
    except CycleError as error:
        circle = error.args[1][::-1]
        raise ValueError(
            f"{variables[circle[0]].place}: variables depend on themselves: {' <- '.join(circle)}"
        ) from None


def _real(value: Any, name: str) -> Any:
    """Return an input as NumPy's floats."""
    dtype = None if is_traced(value) else np.asarray(value).dtype
    if dtype is not None and dtype.kind not in "biuf":
        raise ValueError(f"input {name!r} must be real numbers, got {str(dtype).lstrip('<>')}")
    return np.multiply(value, 1.0)


# ---- reports ----------------------------------------------------------------------------


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


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        """Write a summary, then the first rows that fail or have a note."""
        good = sum(row.ok for row in self.rows)
        wrong = [str(row) for row in self.rows if not row.ok or row.note]
        shown = [textwrap.fill(row, COLUMNS, subsequent_indent="  ") for row in wrong[:LISTED]]
        rest = [f"... {len(wrong) - LISTED} more: report()"] if len(wrong) > LISTED else []
        head = f"{self.shots} shots: {good} of {len(self.rows)} values agree"
        return "\n".join([head, *shown, *rest])

    def report(self) -> str:
        """Return a line of text for every value."""
        return "\n".join([repr(self).splitlines()[0], *map(str, self.rows)])


def run_shots(model: DaveModel, shots: list[elements.Shot], internal_rtol: float) -> CheckReport:
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


def _compare(model: DaveModel, row: CheckRow, signal: elements.Signal, values: Values) -> CheckRow:
    """Return a row with the value that the model computes for a signal."""
    try:
        key = model.id_of_signal(signal, () if row.internal else model.outputs)
    except ValueError as error:
        return replace(row, note=str(error))
    value, units, note = float(values[key]), model.variables[key].units, ""
    if signal.units and signal.units != units:
        note = f"units are {signal.units!r} in the check data, {units!r} in the model"
    ok = value == row.expected or abs(value - row.expected) <= row.tolerance
    return replace(row, signal=key, got=value, ok=ok, note=note)


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

    __repr__ = __str__


def import_report(model: DaveModel, definitions: elements.Definitions) -> ImportReport:
    """Say what of a file's definitions a model uses."""
    variables = definitions.variables.values()
    lookups = {v.id: v.source for v in variables if isinstance(v.source, Lookup)}
    formulas = [v for v in variables if isinstance(v.source, Expression)]

    def join_names(keys: Iterable[str]) -> str:
        told = (axis_label(k, definitions.variables[k].units) for k in keys)
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
    if not any(v.roles & WANTED for v in variables):
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
