"""A DAVE-ML model as a function of its inputs."""

from __future__ import annotations

import difflib
import os
from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.vehicles.dave_ml import dave_report
from archimedes.vehicles.dave_ml.elements import Definitions, Signal, Variable, read_definitions
from archimedes.vehicles.dave_ml.expressions import Expression, in_order
from archimedes.xml_elements import read_elements

__all__ = ["DaveModel", "read"]

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
    return DaveModel(read_definitions(read_elements(path, NAMESPACES)))


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

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.name = definitions.name
        #: All variables by varID.
        self.variables: dict[str, Variable] = definitions.variables
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
        return f"<DAVE-ML model {self.name!r}: {len(self.inputs)} inputs, {list(self.outputs)}>"

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

    def check(self, internal_rtol: float = 1e-6) -> dave_report.CheckReport:
        """Run the check data of the file.

        Outputs must agree within the tolerances of the file. Intermediate values have none there:
        they are compared with `internal_rtol` times their size (at least 1), and do not decide.

        Parameters
        ----------
        internal_rtol : float, optional
            Relative tolerance of intermediate values.
        """
        return dave_report.run_shots(self, self._definitions.shots, internal_rtol)

    def report(self) -> dave_report.ImportReport:
        """Return what of the file is used, approximated and ignored."""
        return dave_report.import_report(self, self._definitions)

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
            raise ValueError(
                f"the model has no variable {name!r}{hint}; its inputs are {', '.join(self.inputs)}"
            )
        return ids[0]

    def id_of_signal(self, signal: Signal, among: Container[str] = ()) -> str:
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

    def _read_inputs(
        self, inputs: Mapping[str, Any] | None, named: Mapping[str, Any]
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, value in [*(inputs or {}).items(), *named.items()]:
            key = self.id_of(name, self._free)
            if key in values:
                raise ValueError(f"input {key!r} is given twice (as {name!r} the second time)")
            if self.variables[key].source is not None:
                raise ValueError(f"{name!r} is computed by the model and cannot be given")
            values[key] = _real(value, name)
        return values

    def _run(
        self, order: tuple[str, ...], inputs: Mapping[str, Any] | None, named: Mapping[str, Any]
    ) -> dict[str, Any]:
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


def _real(value: Any, name: str) -> Any:
    """Return an input as NumPy's floats."""
    dtype = None if is_traced(value) else np.asarray(value).dtype
    if dtype is not None and dtype.kind not in "biuf":
        raise ValueError(f"input {name!r} must be real numbers, got {str(dtype).lstrip('<>')}")
    return np.multiply(value, 1.0)
