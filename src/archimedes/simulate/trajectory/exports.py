"""Trajectories as tables and files: pandas, xarray, CSV and NumPy archives.

Numbers are written such that reading them back gives the same bits. A batch becomes one long table
with a column ``run``. Dense output is a program, not data, so it is not written.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.errors import ArchimedesError
from archimedes.installation import install_command
from archimedes.simulate.trajectory.columns import (
    PARTS,
    label_leaves,
    needs_prefix,
    tree_columns,
)

if TYPE_CHECKING:
    from archimedes.typing import Tree

__all__ = ["MissingExtra"]

#: What unpacking a damaged or hostile archive may raise.
_DAMAGE = (
    *(EOFError, KeyError, OSError, NotImplementedError, MemoryError, AttributeError, TypeError),
    *(SyntaxError, RecursionError, OverflowError, zipfile.BadZipFile, zlib.error),
)


def read_archive(file: Any) -> dict[str, np.ndarray]:
    """Return the arrays of an open archive by name; damage of any kind is a ValueError."""
    try:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is a single array, not an archive")
        with archive:
            arrays = {name: archive[name] for name in archive.files}
    except _DAMAGE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if wrong := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise ValueError(f"{wrong[0]} is not an array")
    return arrays


#: What the header of an archive says about itself.
FORMAT = {"format": "archimedes-trajectory", "version": 1}


class MissingExtra(ArchimedesError, ImportError):
    """An optional package is needed that is not installed.

    >>> from archimedes.simulate import MissingExtra
    >>> issubclass(MissingExtra, ImportError)
    True
    """


def require(module: str, extra: str | None, purpose: str) -> Any:
    """Import a package that may be missing, or raise an error that says how to get it.

    `extra` is the extra of this package that brings it along; None: it is installed with it.

    >>> require("json", "data", "tables").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        command = f"pip install {name}" if extra is None else install_command(extra)
        raise MissingExtra(f"{purpose} needs {name}: {command}") from error


class Table(NamedTuple):
    """A trajectory as columns of equal length; `run` is None for a single one."""

    run: np.ndarray | None
    t: np.ndarray
    columns: dict[str, np.ndarray]
    units: dict[str, str]


def make_table(traj: Any) -> Table:
    """Lay a trajectory out as columns, those of inputs and outputs after those of the state.

    The names of the state start with ``x.`` only where the plain ones could be misread.
    """
    known = ~np.isnan(traj.t)
    columns, units = {}, {}
    named = _name_parts(traj, lambda value, *name: tree_columns(value, traj.t.ndim, *name))
    for part, part_columns in named.items():
        leaves = tree.leaves(getattr(traj, part))
        for column in part_columns:
            columns[column.name] = leaves[column.leaf][(..., *column.place)][known]
            if column.units:
                units[column.name] = column.units
    runs = None
    if traj.batch_shape:
        number = np.arange(int(np.prod(traj.batch_shape))).reshape(*traj.batch_shape, 1)
        runs = np.broadcast_to(number, traj.t.shape)[known]
    return Table(runs, traj.t[known], columns, units)


def plain(value: Tree) -> Any:
    """Return NumPy numbers and arrays as Python numbers and lists."""
    return np.asarray(value).tolist()


def to_pandas(traj: Any) -> Any:
    """Return a DataFrame with the time as its index; see `Trajectory.to_pandas`."""
    pd = require("pandas", "data", "Trajectory.to_pandas")
    run, t, columns, units = make_table(traj)
    if run is None:
        index = pd.Index(t, name="t")
    else:
        index = pd.MultiIndex.from_arrays([run, t], names=["run", "t"])
    frame = pd.DataFrame(columns, index=index)
    frame.attrs.update(units=units, status=plain(traj.status), message=traj.message, hold=traj.hold)
    return frame


def to_xarray(traj: Any) -> Any:
    """Return a Dataset with a variable per leaf; see `Trajectory.to_xarray`."""
    xr = require("xarray", "data", "Trajectory.to_xarray")
    t, lead = traj.t, traj.t.ndim
    batch = ["run"] if lead == 2 else [f"run_{k}" for k in range(lead - 1)]
    rows = t.reshape(-1, t.shape[-1])
    shared = len(rows) > 0 and all(np.array_equal(row, rows[0]) for row in rows)
    axes = [*batch, "t"] if shared else [*batch, "sample"]
    coordinates = {"t": ("t", rows[0]) if shared else (axes, t)}
    variables = {}
    for name, (leaf, units) in leaves_by_name(traj, prefix=False).items():
        own = [f"{name}_{k}" for k in range(np.ndim(leaf) - lead)]
        variables[name] = ([*axes, *own], leaf, {"units": units} if units else {})
    attributes = {"message": traj.message, "status": plain(traj.status)}
    if traj.hold is not None:
        attributes["hold"] = traj.hold
    return xr.Dataset(variables, coordinates, attributes)


def leaves_by_name(traj: Any, prefix: bool = True) -> dict[str, tuple[np.ndarray, str]]:
    """Return the leaves of state, inputs and outputs, with their units, by name.

    The names of the state start with ``x`` if `prefix`, else only where they must.
    """
    named = _name_parts(
        traj, lambda value, *name: label_leaves(tree.structure(value), *name), prefix
    )
    return {
        label.name: (np.asarray(leaf), label.units)
        for part, labels in named.items()
        for leaf, label in zip(tree.leaves(getattr(traj, part)), labels)
    }


def _name_parts(
    traj: Any, name: Callable[[Tree, str, bool], Sequence[Any]], prefix: bool = False
) -> dict[str, Sequence[Any]]:
    """Return what ``name(tree, root, prefix)`` calls the numbers of state, inputs and outputs.

    The names of the state start with ``x`` if `prefix`, else only where they must.
    """
    named = {p: name(getattr(traj, p), p, prefix or p != "x") for p in PARTS}
    if prefix or not needs_prefix({p: [c.name for c in each] for p, each in named.items()}):
        return named
    return _name_parts(traj, name, prefix=True)


@contextmanager
def open_file(target: Any, mode: str) -> Iterator[Any]:
    """Open a path; an open file passes through and stays open."""
    if hasattr(target, "write") or hasattr(target, "read"):
        yield target
        return
    text = {} if "b" in mode else {"newline": "", "encoding": "utf-8"}
    with Path(target).open(mode, **text) as file:  # type: ignore[call-overload]
        yield file


def to_csv(traj: Any, target: Any = None, units: bool = False) -> str | None:
    """Write text with a line per sample, or return it; see `Trajectory.to_csv`."""
    if target is None:
        text = io.StringIO(newline="")
        to_csv(traj, text, units)
        return text.getvalue()
    run, t, columns, known = make_table(traj)
    lines = {**({} if run is None else {"run": run}), "t": t, **columns}
    unit = {"t": "s", **known} if units else {}
    header = [f"{name} ({unit[name]})" if name in unit else name for name in lines]
    with open_file(target, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        # Python writes the shortest text that reads back as the same number.
        writer.writerows(zip(*(column.tolist() for column in lines.values())))
    return None


def to_npz(traj: Any, target: Any, compressed: bool = False) -> None:
    """Write an archive of arrays without pickles; see `Trajectory.to_npz`."""
    leaves = leaves_by_name(traj)
    arrays = {"t": traj.t, "status": np.asarray(traj.status)}
    arrays.update({name: leaf for name, (leaf, _) in leaves.items()})
    for root in ("stats", "events"):
        values, treedef = tree.flatten(getattr(traj, root))
        for leaf, label in zip(values, label_leaves(treedef, root)):
            arrays[label.name] = np.asarray(leaf)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"to_npz: {name} holds Python objects, and only numbers can be written")
    units = {name: unit for name, (_, unit) in leaves.items() if unit}
    header = json.dumps({**FORMAT, "message": traj.message, "units": units, "hold": traj.hold})
    write = np.savez_compressed if compressed else np.savez
    with open_file(target, "wb") as file:
        write(file, header=np.array(header), **arrays)
