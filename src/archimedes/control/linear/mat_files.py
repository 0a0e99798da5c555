"""Linear systems in MATLAB files, as the arguments of MATLAB's ``ss`` and ``tf``.

The variables are those that MATLAB and python-control name: ``A, B, C, D, Ts``, or cell arrays
``num, den`` and ``Ts``. ``Ts`` is 0 in continuous time. Names and units are cell arrays of text,
``StateName``, ``InputUnit`` and so on, after the properties of MATLAB's systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.simulate.trajectory.array_files import read_variables, write_variables
from archimedes.simulate.trajectory.exports import name_source

#: Names and units: those of MATLAB, and ours.
TEXTS = {
    "StateName": "states",
    "InputName": "inputs",
    "OutputName": "outputs",
    "StateUnit": "state_units",
    "InputUnit": "input_units",
    "OutputUnit": "output_units",
}


def write_system(system: Any, numbers: dict[str, Any], target: Any, caller: str) -> None:
    """Write the numbers of a system with its step, names and units."""
    leaves = [each for value in numbers.values() for each in np.ravel(value)]
    if is_traced(*leaves, system.dt):
        raise TypeError(f"{caller} writes numbers: call it outside recorded functions")
    texts = {
        matlab: as_cells(getattr(system, ours))
        for matlab, ours in TEXTS.items()
        if hasattr(system, ours)
    }
    step = 0.0 if system.dt is None else float(system.dt)
    write_variables({**numbers, "Ts": step, **texts}, target, caller)


def read_system(source: Any, names: Sequence[str], caller: str) -> dict[str, Any]:
    """Return the variables of a system, ``dt``, and names and units where the file has them."""
    where = name_source(caller, source)
    variables = read_variables(source, caller)
    if missing := [name for name in names if name not in variables]:
        raise ValueError(
            f"{where} has no variable {missing[0]}; it has {sorted(variables)}. In MATLAB: "
            f"save('system.mat', {', '.join(map(repr, [*names, 'Ts']))})"
        )
    step = variables.get("Ts", np.zeros((1, 1)))
    if getattr(step, "size", 0) != 1 or step.dtype.kind not in "iuf" or step.item() < 0:
        raise ValueError(f"{where}: Ts must be the length of a step in s, 0 in continuous time")
    texts = {
        ours: tuple("".join(map(str, np.ravel(cell))) for cell in variables[matlab].ravel("F"))
        for matlab, ours in TEXTS.items()
        if getattr(variables.get(matlab), "dtype", np.dtype(float)).kind == "O"
    }
    named = {ours: each for ours, each in texts.items() if any(each)}
    dt = float(step.item()) or None
    return {**{name: variables[name] for name in names}, "dt": dt, **named}


def read_matrix(value: Any, name: str, where: str) -> np.ndarray:
    """Return a matrix of real numbers that a file has."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf" or value.ndim != 2:
        raise ValueError(f"{where}: {name} must be a matrix of real numbers")
    return value.astype(np.float64)


def as_cells(values: Sequence[Any]) -> np.ndarray:
    """Return a cell array with a column of values."""
    cells = np.empty((len(values), 1), dtype=object)
    cells[:, 0] = values
    return cells


def polynomial_cells(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return a cell array (outputs, inputs) of polynomials as rows."""
    cells = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for i, j in np.ndindex(*cells.shape):
        cells[i, j] = np.asarray(rows[i][j], dtype=float)[None, :]
    return cells


def read_polynomials(value: Any, name: str, where: str) -> list[list[np.ndarray]]:
    """Return rows of polynomials; a file may have one as a plain vector."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        value = np.array([[None]], dtype=object) if value.ndim != 2 else _one_cell(value)
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        raise ValueError(f"{where}: {name} must be a vector, or a cell array of vectors")
    return [[read_matrix(cell, name, where).ravel() for cell in row] for row in value]


def _one_cell(value: Any) -> np.ndarray:
    cell = np.empty((1, 1), dtype=object)
    cell[0, 0] = value
    return cell
