"""Trajectories from tables and files; the inverse of `archimedes.simulate.trajectory.exports`.

Files hold names and numbers, and most of them a description of the structure. `like`, a state,
gives the structure back whatever the file says; where neither does, a state of named parts comes as
nested dicts that carry the same names. Numbers in another unit than that of their field are
converted.
"""

from __future__ import annotations

import csv
import importlib
import json
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from archimedes import tree
from archimedes.errors import UnitsError
from archimedes.physical_units import from_si, parse_unit, to_si
from archimedes.simulate.trajectory.array_files import FORMAT, Contents
from archimedes.simulate.trajectory.columns import (
    PARTS,
    LeafLabel,
    component_names,
    find_steps,
    label_leaves,
    path_steps,
    split_names,
)
from archimedes.simulate.trajectory.exports import name_source, open_file, require
from archimedes.simulate.trajectory.structure import recall_tree

if TYPE_CHECKING:
    from archimedes.typing import Tree

UNITS = re.compile(r" \(([^()]*)\)$")
COMPONENT = re.compile(r"(.*)\[(\d+(?:,\d+)*)\]")

#: The most runs that a table may have, per line.
MOST = 100

Arrays = Mapping[str, np.ndarray]
Parts = dict[str, Any]
Header = Mapping[str, Any]
#: Where the components of a leaf are: ``names_of(leaf name, shape)``.
NamesOf = Callable[[str, tuple[int, ...]], list[str]]


def read_csv(source: Any, **likes: Any) -> Parts:
    """Return t, x, u, y from text as `to_csv` writes it; see `Trajectory.from_csv`."""
    where = name_source("from_csv", source)
    try:
        with open_file(source, "r") as file:
            lines = [line for line in csv.reader(file) if line]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{where} is not a table of numbers: {error}") from error
    if not lines:
        raise ValueError(f"{where} is empty; it needs a header line with a column t")
    # Spreadsheets put a byte order mark in front.
    heads = [name.strip().removeprefix("\ufeff") for name in lines[0]]
    names = [UNITS.sub("", head) for head in heads]
    if len(names) == 1 and (other := re.search(r"[;\t]", names[0])):
        raise ValueError(
            f"{where}: its columns are separated by {other[0]!r}: write commas between columns, "
            "and points in numbers"
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{where}: the column {twice[0]!r} appears twice")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != (count := len(names)):
            raise ValueError(f"{where}: line {number} has {len(line)} values, the header {count}")
    texts = list(zip(*lines[1:])) if len(lines) > 1 else [()] * len(names)
    columns = {name: parse_column(name, column, where) for name, column in zip(names, texts)}
    units = {name: m[1] for name, head in zip(names, heads) if (m := UNITS.search(head))}
    return from_columns(columns, where, {"units": units}, **likes)


def read_pandas(frame: Any, caller: str = "from_pandas", **likes: Any) -> Parts:
    """Return t, x, u, y from a frame as `to_pandas` makes it; see `Trajectory.from_pandas`."""
    if not hasattr(frame, "columns"):
        raise TypeError(f"{caller}: frame must be a DataFrame, got {type(frame).__name__}")
    said, flat = frame.attrs, frame.copy(deep=False)
    flat.attrs = {}  # pandas copies them at each step
    flat = flat.reset_index() if set(flat.index.names) - {None} else flat
    if twice := [name for name, count in Counter(map(str, flat.columns)).items() if count > 1]:
        raise ValueError(f"{caller}: the column {twice[0]!r} appears twice")
    columns = {str(n): read_numbers(caller, str(n), flat[n]) for n in flat.columns}
    header = check_header(said, caller, "the attributes of the frame")
    return from_columns(columns, caller, header, **likes)


def read_numbers(caller: str, name: str, series: Any) -> np.ndarray:
    """Return a column of a frame as numbers, dates as seconds from the first."""
    values = series.to_numpy()
    if values.dtype.kind == "O" and getattr(series.dtype, "kind", "O") in "biuf":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)  # a column with pandas' NA
    if values.dtype.kind == "O" and getattr(series.dtype, "kind", "O") == "M":
        values = series.to_numpy(dtype="datetime64[ns]")  # of a time zone
    if values.dtype.kind in "mM" and name == "t":
        first = values.ravel()[:1] if values.dtype.kind == "M" else np.timedelta64(0)
        return (values - first) / np.timedelta64(1, "s")
    if values.dtype.kind not in "biufc":
        odd = next((v for v in values.tolist() if not isinstance(v, (int, float, complex))), "")
        raise ValueError(f"{caller}: column {name!r} holds something other than numbers: {odd!r}")
    return values


def read_parquet(source: Any, **likes: Any) -> Parts:
    """Return t, x, u, y from a Parquet file; see `Trajectory.from_parquet`."""
    pd = require("pandas", "data", "Trajectory.from_parquet")
    pa = require("pyarrow", "data", "Trajectory.from_parquet")
    parquet = importlib.import_module("pyarrow.parquet")
    if not hasattr(source, "read"):
        with open_file(source, "rb"):  # raises what opening it raises
            pass
    try:
        schema = parquet.read_schema(source)
        if hasattr(source, "seek"):
            source.seek(0)
        frame = pd.read_parquet(source, engine="pyarrow")
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"from_parquet: {source} cannot be read as Parquet: {error}") from error
    tagged = {f.name: f.metadata[b"units"] for f in schema if f.metadata and b"units" in f.metadata}
    units = {name: text.decode("utf-8", "replace") for name, text in tagged.items()}
    frame.attrs["units"] = {**units, **frame.attrs.get("units", {})}
    return read_pandas(frame, name_source("from_parquet", source), **likes)


def read_xarray(dataset: Any, caller: str = "from_xarray", **likes: Any) -> Parts:
    """Return t, x, u, y from a Dataset as `to_xarray` makes it; see `Trajectory.from_xarray`."""
    if "t" not in dataset.variables:
        raise ValueError(
            f"{caller}: no variable t; there are {sorted(map(str, dataset.variables))}"
        )
    if not dataset.data_vars:
        raise ValueError(f"{caller}: there is no variable beside the coordinates")
    time = str(dataset["t"].dims[-1]) if dataset["t"].dims else "t"
    first = next(iter(dataset.data_vars.values()))
    batch = [str(d) for d in first.dims if str(d)[:3] == "run" and str(d) != time]
    lead = [*batch, time]
    leaves, units = {}, {"t": dataset["t"].attrs.get("units", "s")}
    for name, variable in dataset.data_vars.items():
        if missing := [d for d in lead if d not in variable.dims]:
            raise ValueError(
                f"{caller}: the variable {name!r} has the dimensions {variable.dims}, without "
                f"{missing[0]!r}: drop it, or give it the dimensions of the others"
            )
        leaves[str(name)] = read_numbers(caller, str(name), variable.transpose(*lead, ...))
        if "units" in variable.attrs:
            units[str(name)] = variable.attrs["units"]
    said = {**dataset.attrs, "units": units}
    header = check_header(said, caller, "the attributes of the Dataset")
    t = read_numbers(caller, "t", dataset["t"].transpose(..., time)).astype(np.float64)
    t = np.broadcast_to(t, (*(dataset.sizes[d] for d in batch), t.shape[-1])).copy()
    return from_leaves(t, leaves, caller, header, **likes)


def read_netcdf(source: Any, **likes: Any) -> Parts:
    """Return t, x, u, y from a NetCDF file; see `Trajectory.from_netcdf`."""
    xr = require("xarray", "data", "Trajectory.from_netcdf")
    require("h5netcdf", "data", "Trajectory.from_netcdf")
    if not hasattr(source, "read"):
        with open_file(source, "rb"):  # raises what opening it raises
            pass
    try:
        # Units of time, such as h, stay units, and numbers stay as they are.
        with xr.open_dataset(
            source,
            engine="h5netcdf",
            decode_times=False,
            decode_timedelta=False,
            mask_and_scale=False,
        ) as file:
            dataset = file.load()
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError) as error:
        raise ValueError(f"from_netcdf: {source} cannot be read as NetCDF 4: {error}") from error
    names = {n: unquote(str(n)) for n in [*dataset.variables, *dataset.dims]}
    dataset = dataset.rename({old: new for old, new in names.items() if old != new})
    pieces = [
        dataset.attrs[n]
        for k in range(len(dataset.attrs))
        if (n := f"structure_{k}") in dataset.attrs
    ]
    if pieces:
        dataset.attrs["structure"] = "".join(map(str, pieces))
    return read_xarray(dataset, name_source("from_netcdf", source), **likes)


def read_contents(contents: Contents, source: Any, caller: str, **likes: Any) -> Parts:
    """Return all parts from named arrays and their header."""
    arrays, said = dict(contents.arrays), contents.header
    caller = name_source(caller, source)
    if "format" in said and (
        said["format"] != FORMAT["format"] or not said.keys() >= {"version", "message"}
    ):
        raise ValueError(f"{caller} is incomplete, or was changed by another program")
    if said.get("version", 0) > FORMAT["version"]:
        raise ValueError(f"{caller} was written by a newer version of this package")
    header = check_header(said, caller, "the header")
    if not isinstance(texts := said.get("texts", {}), dict):
        raise ValueError(f"{caller} is incomplete, or was changed by another program")
    arrays |= {name: np.asarray(text, dtype=str) for name, text in texts.items()}
    if "t" not in arrays:
        raise ValueError(f"{caller} has no t with the times; it has {sorted(arrays)}")
    status = arrays.pop("status", np.zeros(())) if "format" in said else np.asarray(0)
    t = arrays.pop("t")
    if t.dtype.kind not in "biuf":
        raise ValueError(f"{caller}: t has the dtype {t.dtype}; times are real numbers")
    aside = {
        root: nest({n: a for n, a in arrays.items() if _root_of(n) == root}, root)
        for root in ("stats", "events")
    }
    leaves = {n: a for n, a in arrays.items() if _root_of(n) not in aside}
    if status.dtype.kind not in "iu" or status.shape not in ((), t.shape[:-1]):
        raise ValueError(f"{caller} is incomplete, or was changed by another program")
    stats = aside["stats"] if isinstance(aside["stats"], dict) else {}
    return {
        **from_leaves(t, leaves, caller, {**header, "status": status}, **likes),
        "stats": {n: v if np.ndim(v) else np.asarray(v).item() for n, v in stats.items()},
        "events": aside["events"],
    }


# ---- what is said beside the numbers -------------------------------------------------------


def check_header(header: Header, caller: str, where: str) -> Parts:
    """Return what a header says about a trajectory, or raise ValueError."""
    units, structure = header.get("units", {}), header.get("structure", {})
    if isinstance(structure, str):
        try:
            structure = json.loads(structure)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{caller}: structure in {where} is damaged: {error}") from error
    message, hold = header.get("message", ""), header.get("hold")
    wrong = {
        "units": not isinstance(units, dict) or not all(isinstance(u, str) for u in units.values()),
        "structure": not isinstance(structure, dict),
        "message": not isinstance(message, str),
        "hold": hold not in (None, "zoh", "foh"),
    }
    if any(wrong.values()):
        name = next(name for name, bad in wrong.items() if bad)
        raise ValueError(f"{caller}: {where} has {name} of {header[name]!r}, which is damaged")
    shape = header.get("batch_shape") or ()
    return {
        "units": units,
        "structure": structure,
        "message": message,
        "hold": hold,
        "status": np.asarray(header.get("status", 0)),
        "batch_shape": tuple(n for n in shape if isinstance(n, int)),
    }


def fit_status(status: Any, shape: tuple[int, ...]) -> Any:
    """Return the status of each run; where runs were dropped since, the worst for all of them."""
    codes = np.asarray(status)
    if codes.dtype.kind not in "iu" or not codes.size:
        return 0
    if not shape or not codes.ndim:
        return int(codes.min())
    return codes if codes.shape == shape else np.full(shape, codes.min())


def convert_units(values: np.ndarray, unit: str, own: str, where: str) -> np.ndarray:
    """Return numbers of a file, which are in `unit`, in the unit that their field declares."""
    if not unit or not own or unit == own:
        return values
    try:
        given, wanted = parse_unit(unit), parse_unit(own)
    except UnitsError as error:
        raise ValueError(f"{where} is in {unit!r}, not in {own!r}: {error}") from error
    if not given.same_dimension(wanted):
        raise ValueError(
            f"{where} is in {unit!r}, and its field in {own!r}: rename it, or convert it"
        )
    return values if given == wanted else from_si(to_si(values, given), wanted)


# ---- numbers from text -------------------------------------------------------------------


#: Tried in order: to_csv writes whole numbers without a point and all others with one.
READERS: Sequence[tuple[Callable[[str], Any], type]] = (
    ({"True": True, "False": False}.__getitem__, np.bool_),
    (int, np.int64),
    (lambda text: float(text) if text.strip() else np.nan, np.float64),
    (complex, np.complex128),
)


def parse_column(name: str, texts: Sequence[str], where: str) -> np.ndarray:
    """Return the numbers of a column; an empty place is nan."""
    if not texts:
        return np.zeros(0)
    for read, dtype in READERS:
        try:
            return np.array([read(text) for text in texts], dtype=dtype)
        except (KeyError, ValueError, OverflowError):
            continue
    wrong = next(text for text in texts if not is_number(text))
    raise ValueError(f"{where}: column {name!r} holds something other than numbers: {wrong!r}")


def is_number(text: str) -> bool:
    """Return whether a text is a number, or empty."""
    try:
        complex(text or "nan")
    except ValueError:
        return False
    return True


# ---- columns to leaves -------------------------------------------------------------------


def from_columns(columns: Arrays, caller: str, header: Header, **likes: Any) -> Parts:
    """Build the parts of a trajectory from flat columns, split into runs where there are any."""
    columns = dict(columns)
    if "t" not in columns:
        raise ValueError(f"{caller}: no column named t; there are {list(columns)}")
    t = columns.pop("t")
    if t.dtype.kind == "c":
        raise ValueError(f"{caller}: column 't' holds complex numbers; times are real")
    t = t.astype(np.float64)
    run = columns.pop("run", None)
    if run is not None:
        position = run_places(run)
        shape = header.get("batch_shape", ())
        count = math.prod(shape) if shape else 0
        if count <= max(len(t), 1) and position[0].max(initial=-1) < count:
            t, *rest = (spread(c, position, f, count) for c, f in _with_fill(t, columns))
            t, *rest = (each.reshape(*shape, each.shape[-1]) for each in (t, *rest))
        else:
            t, *rest = (spread(c, position, f) for c, f in _with_fill(t, columns))
        columns = dict(zip(columns, rest))

    header = {**header, "units": _units_of_leaves(header.get("units", {}), columns)}

    def names_of(name: str, shape: tuple[int, ...]) -> list[str]:
        # As many as there are columns, before they are listed: a file may claim a billion.
        return component_names(name, shape) if math.prod(shape) <= len(columns) else [name]

    return _finish(t, columns, caller, header, likes, names_of, group_columns)


def _units_of_leaves(units: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Return units by leaf where all components of a leaf are in one unit."""
    leaves: dict[str, list[str]] = {}
    for name in columns:
        leaves.setdefault(m[1] if (m := COMPONENT.fullmatch(name)) else name, []).append(name)
    shared = {
        leaf: units[names[0]]
        for leaf, names in leaves.items()
        if names[0] in units and len({units.get(name) for name in names}) == 1
    }
    return {**units, **shared}


def _with_fill(t: np.ndarray, columns: Arrays) -> list[tuple[np.ndarray, float]]:
    """Return the columns with what fills them up where a run has ended."""
    return [(t, np.nan), *((column, 0) for column in columns.values())]


def group_columns(columns: Arrays) -> dict[str, np.ndarray]:
    """Put columns such as ``pos[0]``, ``pos[1]`` together where all of their places are there.

    Columns such as ``gains[0]``, ``gains[1][0]`` stay apart: ``gains`` is a list, not an array.
    """
    groups: dict[str, dict[tuple[int, ...], str]] = {}
    for name in columns:
        match = COMPONENT.fullmatch(name)
        leaf, index = (match[1], match[2].split(",")) if match else (name, [])
        groups.setdefault(leaf, {})[tuple(map(int, index))] = name
    nodes = {leaf[: step.start()] for leaf in groups for step in find_steps(leaf)}
    leaves: dict[str, np.ndarray] = {}
    for leaf, indices in groups.items():
        alike = len({len(p) for p in indices}) == 1 and leaf not in nodes
        shape = tuple(max(n) + 1 for n in zip(*indices))
        # As many as there are places, before these are listed: a name may claim a billion.
        whole = alike and len(indices) == math.prod(shape)
        if whole and set(indices) == set(np.ndindex(*shape)):
            leaves[leaf] = join([columns[indices[p]] for p in np.ndindex(*shape)], shape)
        else:
            leaves.update({name: columns[name] for name in indices.values()})
    return leaves


def run_places(run: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each line of a table its run and its number within the run."""
    run = run.astype(np.int64)
    if run.size and not 0 <= run.min() <= run.max() < MOST * len(run):
        raise ValueError(
            f"the column run has numbers from {run.min()} to {run.max()} on {len(run)} lines: runs "
            "are counted from 0 on"
        )
    within = np.zeros(len(run), dtype=np.int64)
    for k in np.unique(run):
        mine = run == k
        within[mine] = np.arange(np.count_nonzero(mine))
    return run, within


def spread(
    column: np.ndarray, position: tuple[np.ndarray, np.ndarray], fill: float, runs: int = 0
) -> np.ndarray:
    """Put the lines of a column into an array (runs, samples), of `runs` runs at least."""
    count, samples = (int(p.max()) + 1 if p.size else 0 for p in position)
    shape = (max(count, runs), samples)
    out = np.full(shape, fill, dtype=column.dtype)
    out[position] = column
    return out


# ---- to trees ----------------------------------------------------------------------------


def from_leaves(t: np.ndarray, leaves: Arrays, caller: str, header: Header, **likes: Any) -> Parts:
    """Build the parts of a trajectory from its times and leaves."""
    return _finish(t, leaves, caller, header, likes, lambda name, shape: [name], dict)


def _finish(
    t: np.ndarray,
    named: Arrays,
    caller: str,
    header: Header,
    likes: Mapping[str, Any],
    names_of: NamesOf,
    group: Callable[[Arrays], Arrays],
) -> Parts:
    """Build all parts, and say of them what the header says."""
    units = dict(header.get("units", {}))
    t = convert_units(t, units.pop("t", ""), "s", f"{caller}: t")
    header = {**header, "units": units}
    parts = assemble(t.shape, named, caller, likes, names_of, group, header)
    said: Parts = {name: header[name] for name in ("message", "hold") if name in header}
    if "message" in header:
        said["status"] = fit_status(header["status"], t.shape[:-1])
    return {"t": t, **parts, **said, "units": units}


def assemble(
    lead: tuple[int, ...],
    named: Arrays,
    caller: str,
    likes: Mapping[str, Any],
    names_of: NamesOf,
    group: Callable[[Arrays], Arrays],
    header: Header,
) -> Parts:
    """Build x, u and y: those with a like in its structure, the others as names and numbers.

    ``names_of(leaf name, shape)`` tells under which names a leaf is stored; `group` puts what is
    left together into leaves. The header may describe structures: one is used unless names have
    been dropped or added since it was written.
    """
    rest, units = dict(named), header.get("units", {})
    known = {part: like for part, like in likes.items() if like is not None}
    recalled = recall_parts(header.get("structure", {}), known, rest, caller, names_of)
    parts = {
        part: fill(part, like, lead, rest, caller, names_of, units)
        for part, like in {**recalled, **known}.items()
    }
    for part, names in split_names(rest, rooted="x" in parts).items():
        if part in recalled and names:
            described = {p: d for p, d in header["structure"].items() if p != part}
            header = {**header, "structure": described}
            return assemble(lead, named, caller, likes, names_of, group, header)
        if part not in parts:
            parts[part] = nest(group({name: rest.pop(name) for name in names}), part)
    if rest:
        raise ValueError(
            f"{caller}: like has no leaf for {sorted(rest)}; leave like out to get everything as "
            "nested dicts"
        )
    return parts


def recall_parts(
    described: Mapping[str, Any],
    known: Iterable[str],
    named: Arrays,
    caller: str,
    names_of: NamesOf,
) -> dict[str, Tree]:
    """Return the trees that a header describes, of parts whose leaves are all there."""
    likes = {}
    for part in PARTS:
        if part not in described or part in known:
            continue
        try:
            like = recall_tree(described[part])
        except ValueError as error:
            raise ValueError(f"{caller}: the structure is damaged: {error}") from error
        labels = label_leaves(tree.structure(like), part)
        shapes = [np.shape(leaf) for leaf in tree.leaves(like)]
        if all(
            _is_there(part, each.name, shape, named, names_of)
            for each, shape in zip(labels, shapes)
        ):
            likes[part] = like
    return likes


def _is_there(
    part: str, name: str, shape: tuple[int, ...], named: Arrays, names_of: NamesOf
) -> bool:
    """Return whether a leaf of a name and shape is there, whole or in components."""
    names = locate(part, name, shape, named, names_of)
    if names is None:
        return False
    if not names or names[0] not in (name, name[2:]):
        return True
    array = named[names[0]]
    return array.shape[array.ndim - len(shape) :] == shape


def locate(
    part: str, name: str, shape: tuple[int, ...], named: Arrays, names_of: NamesOf
) -> list[str] | None:
    """Return the names under which a leaf is there; the state may be without its ``x.``."""
    bare = name[2:] if part == "x" and name.startswith("x.") else name
    tried = (names_of(each, shape) for each in (name, bare))
    return next((names for names in tried if all(n in named for n in names)), None)


def fill(
    part: str,
    like: Tree,
    lead: tuple[int, ...],
    named: dict[str, np.ndarray],
    caller: str,
    names_of: NamesOf,
    units: Mapping[str, str],
) -> Any:
    """Take the leaves of `like` out of `named` and put them into its structure."""
    own, treedef = tree.flatten(like)
    filled = []
    for leaf, label in zip(own, label_leaves(treedef, part)):
        shape, dtype = np.shape(leaf), np.asarray(leaf).dtype
        names = locate(part, label.name, shape, named, names_of)
        if names is None:
            raise ValueError(
                f"{caller}: {label.name}, which like has with shape {shape}, is not there; "
                f"there are {sorted(named)}"
            )
        if not names:  # a leaf without components has no column
            filled.append(np.zeros((*lead, *shape), dtype))
            continue
        array = _take_leaf(names, shape, label, named, caller, units)
        fits = np.can_cast(array.dtype, dtype, "same_kind")
        filled.append(array.astype(dtype) if fits else array)
    return treedef.unflatten(filled)


def _take_leaf(
    names: list[str],
    shape: tuple[int, ...],
    label: LeafLabel,
    named: dict[str, np.ndarray],
    caller: str,
    units: Mapping[str, str],
) -> np.ndarray:
    """Take the numbers of a leaf out of `named`, in the unit of its field."""
    leaf_unit = units.get(label.name, "")
    arrays = [
        convert_units(named.pop(n), units.get(n, leaf_unit), label.units, f"{caller}: {n}")
        for n in names
    ]
    is_whole = names[0] in (label.name, label.name[2:])
    array = arrays[0] if is_whole else join(arrays, shape)
    if array.shape[array.ndim - len(shape) :] != shape:
        raise ValueError(
            f"{caller}: {names[0]} has shape {array.shape}, time axes included, but like has "
            f"{shape} there"
        )
    return array


def join(arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Stack columns into a leaf with components of a shape."""
    stacked = np.stack(arrays, axis=-1)
    return stacked.reshape(*stacked.shape[:-1], *shape)


def _root_of(name: str) -> str:
    return re.split(r"[.\[]", name, maxsplit=1)[0]


def nest(leaves: Arrays, root: str) -> Any:
    """Build nested dicts (lists for numbered places) from leaves by name; None if there are none.

    >>> nest({"a.b": np.zeros(1), "a.c[0]": np.ones(1)}, "x")["a"]["c"]
    [array([1.])]
    """
    if not leaves:
        return None
    if set(leaves) == {root}:
        return leaves[root]
    top: dict[Any, Any] = OrderedDict()
    for name, array in leaves.items():
        steps = path_steps(name)
        if len(steps) > 1 and steps[0] == root:
            steps = steps[1:]
        node = top
        for step in steps[:-1]:
            node = node.setdefault(step, OrderedDict())
            if not isinstance(node, OrderedDict):
                raise ValueError(f"the names {name!r} and {step!r} cannot both be columns")
        if steps[-1] in node:
            raise ValueError(f"the name {name!r} means two different leaves")
        node[steps[-1]] = array
    return _with_lists(top)


def _with_lists(node: Any) -> Any:
    if not isinstance(node, OrderedDict):
        return node
    children = OrderedDict((key, _with_lists(child)) for key, child in node.items())
    is_list = list(children) == list(range(len(children)))
    return list(children.values()) if is_list else children
