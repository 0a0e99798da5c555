"""Trajectories from tables and files; the inverse of `archimedes.simulate.trajectory.exports`.

Files hold names and numbers. `like`, a state, gives the structure back; without it a state of
named parts comes as nested dicts that carry the same names.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.simulate.trajectory.columns import component_names, label_leaves, split_names
from archimedes.simulate.trajectory.exports import FORMAT, open_file, read_archive

if TYPE_CHECKING:
    from archimedes.typing import Tree

UNITS = re.compile(r" \([^()]*\)$")
COMPONENT = re.compile(r"(.*)\[(\d+(?:,\d+)*)\]")
#: A field, a number in brackets, or a key in brackets as `repr` writes it.
STEP = re.compile(
    r"""\.?([^.\[]+)|\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""", re.DOTALL
)

#: The most runs that a table may have, per line.
MOST = 100

Arrays = Mapping[str, np.ndarray]
Parts = dict[str, Any]


def read_csv(source: Any, **likes: Any) -> Parts:
    """Return t, x, u, y from text as `to_csv` writes it; see `Trajectory.from_csv`."""
    try:
        with open_file(source, "r") as file:
            lines = [line for line in csv.reader(file) if line]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"from_csv: {source} is not a table of numbers: {error}") from error
    if not lines:
        raise ValueError(f"from_csv: {source} is empty; it needs a header line with a column t")
    # Spreadsheets put a byte order mark in front.
    names = [UNITS.sub("", name.strip().removeprefix("\ufeff")) for name in lines[0]]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"from_csv: the column {twice[0]!r} appears twice")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != (count := len(names)):
            raise ValueError(f"from_csv: line {number} has {len(line)} values, the header {count}")
    texts = list(zip(*lines[1:])) if len(lines) > 1 else [()] * len(names)
    columns = {name: parse_column(name, column) for name, column in zip(names, texts)}
    return from_columns(columns, "from_csv", **likes)


def read_pandas(frame: Any, **likes: Any) -> Parts:
    """Return t, x, u, y from a frame as `to_pandas` makes it; see `Trajectory.from_pandas`."""
    flat = frame.reset_index() if set(frame.index.names) - {None} else frame
    columns = {str(name): flat[name].to_numpy() for name in flat.columns}
    return from_columns(columns, "from_pandas", **likes) | _read_attributes(frame.attrs)


def read_xarray(dataset: Any, **likes: Any) -> Parts:
    """Return t, x, u, y from a Dataset as `to_xarray` makes it; see `Trajectory.from_xarray`."""
    leaves = {str(name): variable.to_numpy() for name, variable in dataset.data_vars.items()}
    t = dataset["t"].to_numpy()
    batch = [str(d) for d in next(iter(dataset.data_vars.values())).dims if str(d)[:3] == "run"]
    shape = tuple(dataset.sizes[d] for d in batch)
    parts = from_leaves(leaves, "from_xarray", **likes) | _read_attributes(dataset.attrs)
    return {"t": np.broadcast_to(t, (*shape, t.shape[-1])).copy(), **parts}


def _read_attributes(attributes: Mapping[str, Any]) -> Parts:
    """Return status, message and hold, which tables keep as attributes."""
    status = attributes.get("status", 0)
    status = np.asarray(status) if isinstance(status, list) else status
    message, hold = attributes.get("message", ""), attributes.get("hold")
    return {"status": status, "message": message, "hold": hold}


def read_npz(source: Any, **likes: Any) -> Parts:
    """Return all parts from an archive as `to_npz` writes it; see `Trajectory.from_npz`."""
    with open_file(source, "rb") as file:
        try:
            arrays = read_archive(file)
            header = json.loads(str(arrays.pop("header")))
        except (ValueError, KeyError, RecursionError) as error:
            raise ValueError(f"from_npz: {source} is not an archive of to_npz: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT["format"]:
        raise ValueError(f"from_npz: {source} is an archive, but not of a trajectory")
    complete = header.keys() >= {"version", "message"} and arrays.keys() >= {"status", "t"}
    if not complete or arrays["status"].shape not in ((), arrays["t"].shape[:-1]):
        raise ValueError(f"from_npz: {source} is incomplete, or was changed by another program")
    if header["version"] > FORMAT["version"]:
        raise ValueError(f"from_npz: {source} was written by a newer version of this package")
    status, t = arrays.pop("status"), arrays.pop("t")
    aside = {
        root: nest({n: a for n, a in arrays.items() if _root_of(n) == root}, root)
        for root in ("stats", "events")
    }
    leaves = {n: a for n, a in arrays.items() if _root_of(n) not in aside}
    stats = aside["stats"] or {}
    return {
        "t": t,
        **from_leaves(leaves, "from_npz", **likes),
        "status": status if status.ndim else int(status),
        "message": header["message"],
        "stats": {name: value if value.ndim else value.item() for name, value in stats.items()},
        "events": aside["events"],
        "hold": header.get("hold"),
    }


# ---- numbers from text -------------------------------------------------------------------


#: Tried in order: to_csv writes whole numbers without a point and all others with one.
READERS: Sequence[tuple[Callable[[str], Any], type]] = (
    ({"True": True, "False": False}.__getitem__, np.bool_),
    (int, np.int64),
    (lambda text: float(text) if text.strip() else np.nan, np.float64),
    (complex, np.complex128),
)


def parse_column(name: str, texts: Sequence[str]) -> np.ndarray:
    """Return the numbers of a column; an empty place is nan."""
    if not texts:
        return np.zeros(0)
    for read, dtype in READERS:
        try:
            return np.array([read(text) for text in texts], dtype=dtype)
        except (KeyError, ValueError, OverflowError):
            continue
    wrong = next(text for text in texts if not is_number(text))
    raise ValueError(f"from_csv: column {name!r} holds something other than numbers: {wrong!r}")


def is_number(text: str) -> bool:
    """Return whether a text is a number, or empty."""
    try:
        complex(text or "nan")
    except ValueError:
        return False
    return True


# ---- columns to leaves -------------------------------------------------------------------


def from_columns(columns: Arrays, caller: str, **likes: Any) -> Parts:
    """Build the parts of a trajectory from flat columns, split into runs where there are any."""
    columns = dict(columns)
    if "t" not in columns:
        raise ValueError(f"{caller}: no column named t; there are {list(columns)}")
    t = columns.pop("t").astype(np.float64)
    run = columns.pop("run", None)
    if run is not None:
        position = run_places(run)
        t = spread(t, position, np.nan)
        columns = {name: spread(column, position, 0) for name, column in columns.items()}
    return {"t": t, **assemble(columns, caller, likes, component_names, group_columns)}


def group_columns(columns: Arrays) -> dict[str, np.ndarray]:
    """Put columns such as ``pos[0]``, ``pos[1]`` together where all of their places are there."""
    groups: dict[str, dict[tuple[int, ...], str]] = {}
    for name in columns:
        match = COMPONENT.fullmatch(name)
        leaf, index = (match[1], match[2].split(",")) if match else (name, [])
        groups.setdefault(leaf, {})[tuple(map(int, index))] = name
    leaves: dict[str, np.ndarray] = {}
    for leaf, indices in groups.items():
        shape = tuple(n + 1 for n in np.max(np.array(list(indices)), axis=0)) if indices else ()
        # As many as there are places, before these are listed: a name may claim a billion.
        whole = len({len(p) for p in indices}) == 1 and len(indices) == math.prod(map(int, shape))
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


def spread(column: np.ndarray, position: tuple[np.ndarray, np.ndarray], fill: float) -> np.ndarray:
    """Put the lines of a column into an array (runs, samples)."""
    shape = tuple(int(p.max()) + 1 if p.size else 0 for p in position)
    out = np.full(shape, fill, dtype=column.dtype)
    out[position] = column
    return out


# ---- to trees ----------------------------------------------------------------------------


def from_leaves(leaves: Arrays, caller: str, **likes: Any) -> Parts:
    """Build state, inputs and outputs from leaves by their names."""
    return assemble(leaves, caller, likes, lambda name, shape: [name], dict)


def assemble(
    named: Arrays,
    caller: str,
    likes: Mapping[str, Any],
    names_of: Callable[[str, tuple[int, ...]], list[str]],
    group: Callable[[Arrays], Arrays],
) -> Parts:
    """Build x, u and y: those with a like in its structure, the others as names and numbers.

    ``names_of(leaf name, shape)`` tells under which names a leaf is stored; `group` puts what is
    left together into leaves.
    """
    rest = dict(named)
    known = {part: like for part, like in likes.items() if like is not None}
    parts = {part: fill(part, like, rest, caller, names_of) for part, like in known.items()}
    for part, names in split_names(rest, rooted="x" in known).items():
        if part not in known:
            parts[part] = nest(group({name: rest.pop(name) for name in names}), part)
    if rest:
        raise ValueError(
            f"{caller}: like has no leaf for {sorted(rest)}; leave like out to get everything as "
            "nested dicts"
        )
    return parts


def fill(
    part: str,
    like: Tree,
    named: dict[str, np.ndarray],
    caller: str,
    names_of: Callable[[str, tuple[int, ...]], list[str]],
) -> Any:
    """Take the leaves of `like` out of `named` and put them into its structure."""
    own, treedef = tree.flatten(like)
    filled = []
    spellings = [label_leaves(treedef, part, prefix) for prefix in (True, part != "x")]
    for leaf, *labels in zip(own, *spellings):
        shape, dtype = np.shape(leaf), np.asarray(leaf).dtype
        tried = [names_of(label.name, shape) for label in labels]
        names = next((names for names in tried if all(n in named for n in names)), None)
        if names is None:
            raise ValueError(
                f"{caller}: {labels[0].name}, which like has with shape {shape}, is not there; "
                f"there are {sorted(named)}"
            )
        arrays = [named.pop(name) for name in names]
        is_whole = names[0] in [label.name for label in labels]
        array = arrays[0] if is_whole else join(arrays, shape)
        if array.shape[array.ndim - len(shape) :] != shape:
            raise ValueError(
                f"{caller}: {names[0]} has shape {array.shape}, time axes included, but like has "
                f"{shape} there"
            )
        fits = np.can_cast(array.dtype, dtype, "same_kind")
        filled.append(array.astype(dtype) if fits else array)
    return treedef.unflatten(filled)


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
        steps = [read_step(name, match) for match in STEP.finditer(name)]
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


def read_step(name: str, match: re.Match[str]) -> Any:
    """Return the field, number or key that a step of a leaf's name stands for."""
    field, number, key = match.groups()
    if key is None:
        return int(number) if number else field
    try:
        return ast.literal_eval(key)
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"the name {name!r} has a key that is not text: {key}") from error


def _with_lists(node: Any) -> Any:
    if not isinstance(node, OrderedDict):
        return node
    children = OrderedDict((key, _with_lists(child)) for key, child in node.items())
    is_list = list(children) == list(range(len(children)))
    return list(children.values()) if is_list else children
