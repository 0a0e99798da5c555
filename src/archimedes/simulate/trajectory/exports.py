"""Trajectories as tables and files.

There are two layouts. A *table* (pandas, CSV, Parquet) has a column for each number; a batch
becomes one long table with a column ``run``. *Arrays* (xarray and NetCDF; NumPy archives, HDF5 and
MATLAB files) has one for each leaf. What a format cannot say by itself (structure, status, message)
goes into a header beside. Numbers are written such that reading them back gives the same bits.
Dense output is a program, not data, so it is not written.
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
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from archimedes import tree
from archimedes.errors import ArchimedesError
from archimedes.installation import install_command
from archimedes.simulate.trajectory.columns import PARTS, needs_prefix
from archimedes.simulate.trajectory.structure import describe_tree, is_describable

if TYPE_CHECKING:
    from archimedes.typing import Tree

__all__ = ["MissingExtra"]

#: What unpacking a damaged or hostile archive may raise.
_DAMAGE = (
    *(EOFError, KeyError, OSError, NotImplementedError, MemoryError, AttributeError, TypeError),
    *(SyntaxError, RecursionError, OverflowError, zipfile.BadZipFile, zlib.error),
)
#: Attributes of NetCDF files have 64 kB at most; the header is divided.
ATTRIBUTE = 32_000


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
    for part, part_columns in _name_parts(traj.part_columns).items():
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
    # pandas copies what is in here at each step: as text that costs nothing.
    frame.attrs["structure"] = json.dumps(describe_parts(traj))
    frame.attrs["batch_shape"] = list(traj.batch_shape)
    return frame


def to_parquet(traj: Any, target: Any) -> None:
    """Write a Parquet file with a column per number; see `Trajectory.to_parquet`."""
    pa = require("pyarrow", "data", "Trajectory.to_parquet")
    _, _, columns, units = make_table(traj)
    for name, column in columns.items():
        check_numbers("to_parquet", name, column, "biuf", "to_hdf5 or to_npz")
    frame = to_pandas(traj).reset_index()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    # pandas reads its attributes from the table, others the units from the fields.
    tags = {name: {"units": unit} for name, unit in {"t": "s", **units}.items()}
    fields = [field.with_metadata(tags.get(field.name, {})) for field in table.schema]
    table = table.cast(pa.schema(fields, table.schema.metadata))
    importlib.import_module("pyarrow.parquet").write_table(table, target)


def check_numbers(caller: str, name: str, array: np.ndarray, kinds: str, remedy: str) -> None:
    """Raise if a file cannot hold an array."""
    if array.dtype.kind in kinds and array.dtype.itemsize <= (16 if array.dtype.kind == "c" else 8):
        return
    if array.dtype.kind in "biufc":
        raise TypeError(
            f"{caller}: {name} has the dtype {array.dtype}, which this format has not: write "
            f"{remedy}, or convert it"
        )
    what = "Python objects" if array.dtype.hasobject else f"values of the dtype {array.dtype}"
    raise TypeError(f"{caller}: {name} holds {what}, and only numbers can be written")


def to_xarray(traj: Any) -> Any:
    """Return a Dataset with a variable per leaf; see `Trajectory.to_xarray`."""
    xr = require("xarray", "data", "Trajectory.to_xarray")
    t, lead = traj.t, traj.t.ndim
    batch = ["run"] if lead == 2 else [f"run_{k}" for k in range(lead - 1)]
    rows = t.reshape(int(np.prod(t.shape[:-1])), t.shape[-1])
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
    attributes["structure"] = json.dumps(describe_parts(traj))
    return xr.Dataset(variables, coordinates, attributes)


def to_netcdf(traj: Any, target: Any) -> None:
    """Write a NetCDF 4 file; see `Trajectory.to_netcdf`."""
    require("h5netcdf", "data", "Trajectory.to_netcdf")
    write_netcdf(to_xarray(traj), target, "to_netcdf")


def write_netcdf(dataset: Any, target: Any, caller: str) -> None:
    """Write a Dataset with names that NetCDF can have; long attributes are divided."""
    for name, variable in dataset.variables.items():
        kinds = "biufUO" if name in dataset.coords else "biuf"
        check_numbers(caller, str(name), variable, kinds, "to_hdf5 or to_npz")
    names = {name: quote_name(str(name)) for name in [*dataset.variables, *dataset.dims]}
    renamed = dataset.rename({old: new for old, new in names.items() if old != new})
    renamed.attrs = {}
    for name, value in dataset.attrs.items():
        long = isinstance(value, str) and len(value) > ATTRIBUTE
        pieces = (value[k : k + ATTRIBUTE] for k in range(0, len(value), ATTRIBUTE)) if long else ()
        renamed.attrs |= {f"{name}_{k}": piece for k, piece in enumerate(pieces)} or {name: value}
    # nan is a number here, not a sign of what is missing.
    encoding = {name: {"_FillValue": None} for name in renamed.variables}
    renamed.to_netcdf(target, engine="h5netcdf", encoding=encoding)


def quote_name(name: str) -> str:
    """Return a name with what NetCDF and HDF5 do not take written as in web addresses.

    >>> quote_name("x['a/b']"), quote_name("pos[0,1]")
    ('x[%27a%2Fb%27]', 'pos[0,1]')
    """
    return quote(name, safe="[],._ -+()")


def describe_parts(traj: Any) -> dict[str, Any]:
    """Return the structure of state, inputs and outputs, as far as it can be written."""
    descriptions = {}
    for part in PARTS:
        value = getattr(traj, part)
        if value is not None and is_describable(value):
            descriptions[part] = describe_tree(value, traj.t.ndim)
    return descriptions


def leaves_by_name(traj: Any, prefix: bool = True) -> dict[str, tuple[np.ndarray, str]]:
    """Return the leaves of state, inputs and outputs, with their units, by name.

    The names of the state start with ``x`` if `prefix`, else only where they must.
    """
    return {
        label.name: (np.asarray(leaf), label.units)
        for part, labels in _name_parts(traj.part_labels, prefix).items()
        for leaf, label in zip(tree.leaves(getattr(traj, part)), labels)
    }


def _name_parts(
    name: Callable[[str, bool], Sequence[Any]], prefix: bool = False
) -> dict[str, Sequence[Any]]:
    """Return what ``name(part, prefix)`` calls the numbers of state, inputs and outputs.

    The names of the state start with ``x`` if `prefix`, else only where they must.
    """
    named = {part: name(part, prefix) for part in PARTS}
    if prefix or not needs_prefix({p: [c.name for c in each] for p, each in named.items()}):
        return named
    return _name_parts(name, prefix=True)


def name_source(caller: str, source: Any) -> str:
    """Return how an error starts: what was called, and of which file.

    >>> name_source("from_csv", "run.csv")
    'from_csv: run.csv'
    """
    return f"{caller}: {source}" if isinstance(source, (str, PathLike)) else caller


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
