"""Files of named arrays with a header: NumPy archives, HDF5 and MATLAB files.

A trajectory becomes `Contents`: arrays by name (``t``, ``x.pos``, ``stats.steps``)
and a header of texts and numbers. Each format writes and reads these. In HDF5 and MATLAB files
``x.pos`` is ``pos`` in the group or struct ``x``, as their users expect; the header has the names.

Files are data of somebody. Readers refuse, with the file's name, what is damaged, what points to
other files, and what claims to be far larger than the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.simulate.trajectory.columns import label_leaves, path_steps
from archimedes.simulate.trajectory.exports import (
    check_numbers,
    describe_parts,
    leaves_by_name,
    name_source,
    open_file,
    quote_name,
    read_archive,
    require,
)
from archimedes.simulate.trajectory.mat_reader import MatError, read_mat5

#: What the header of a file says about itself.
FORMAT = {"format": "archimedes-trajectory", "version": 1}
#: The name under which HDF5 and MATLAB files have the header.
HEADER = "archimedes"
#: Names in MATLAB have 63 characters at most.
LONGEST = 63
#: How many times larger than its file an array may claim to be; zlib reaches 1032.
EXPANSION, SMALLEST = 2000, 1 << 20


class Contents(NamedTuple):
    """What a file holds: arrays by name, and a header that JSON can say."""

    arrays: dict[str, np.ndarray]
    header: dict[str, Any]


def to_contents(traj: Any) -> Contents:
    """Return all of a trajectory but its interpolants as named arrays and a header."""
    leaves = leaves_by_name(traj)
    arrays = {"t": traj.t, "status": np.asarray(traj.status)}
    arrays.update({name: leaf for name, (leaf, _) in leaves.items()})
    for root in ("stats", "events"):
        values, treedef = tree.flatten(getattr(traj, root))
        for leaf, label in zip(values, label_leaves(treedef, root)):
            arrays[label.name] = np.asarray(leaf)
    units = {name: unit for name, (_, unit) in leaves.items() if unit}
    texts = {name: a for name, a in arrays.items() if a.dtype.kind == "U" and name not in leaves}
    arrays = {name: array for name, array in arrays.items() if name not in texts}
    header: dict[str, Any] = {**FORMAT, "message": traj.message, "units": units, "hold": traj.hold}
    if texts:  # such as the method of a solve
        header["texts"] = {name: array.tolist() for name, array in texts.items()}
    return Contents(arrays, {**header, "structure": describe_parts(traj)})


def place_names(names: Sequence[str], spell: Any, longest: int = 255) -> dict[str, tuple[str, ...]]:
    """Return for each name of a leaf the steps under which a file has it, all different.

    >>> place_names(["t", "x.wing.cl", "x.a[0]"], str)
    {'t': ('t',), 'x.wing.cl': ('x', 'wing', 'cl'), 'x.a[0]': ('x', 'a', '0')}
    """
    spelled: dict[tuple[Any, ...], str] = {}
    used: set[tuple[str, ...]] = set()
    places: dict[str, tuple[str, ...]] = {}
    for name in names:
        steps: tuple[Any, ...] = tuple(path_steps(name))
        place: tuple[str, ...] = ()
        for k in range(1, len(steps) + 1):
            if steps[:k] not in spelled:
                whole, suffix = spell(str(steps[k - 1])), ""
                while (*place, step := whole[: longest - len(suffix)] + suffix) in used:
                    suffix = f"_{int(suffix[1:] or 1) + 1}"
                spelled[steps[:k]] = step
                used.add((*place, step))
            place = (*place, spelled[steps[:k]])
        places[name] = place
    return places


# ---- NumPy archives ----------------------------------------------------------------------


def write_npz(contents: Contents, target: Any, compressed: bool = False) -> None:
    """Write an archive of arrays without pickles; see `Trajectory.to_npz`."""
    for name, array in contents.arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"to_npz: {name} holds Python objects, and only numbers can be written")
    write = np.savez_compressed if compressed else np.savez
    header = np.array(json.dumps(contents.header))
    with open_file(target, "wb") as file:
        write(file, header=header, **contents.arrays)  # type: ignore[arg-type]


def read_npz(source: Any, caller: str) -> Contents:
    """Return what `write_npz` wrote."""
    with open_file(source, "rb") as file:
        try:
            arrays = read_archive(file)
            header = json.loads(str(arrays.pop("header")))
        except (ValueError, KeyError, RecursionError) as error:
            raise ValueError(
                f"{name_source(caller, source)} is not an archive of to_npz: {error}"
            ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT["format"]:
        raise ValueError(f"{name_source(caller, source)} is an archive, but not of a trajectory")
    return Contents(arrays, header)


# ---- HDF5 --------------------------------------------------------------------------------


def spell_hdf5(step: str) -> str:
    """Return a name that HDF5 and its paths take."""
    return quote_name(step).replace(".", "%2E") or "%"


def write_hdf5(contents: Contents, target: Any, caller: str) -> None:
    """Write an HDF5 file: a dataset for each array, with its unit, and groups for structs."""
    h5py = require("h5py", "data", caller)
    for name, array in contents.arrays.items():
        check_numbers(caller, name, array, "biufc", "to_npz")
    places = place_names(list(contents.arrays), spell_hdf5)
    with h5py.File(target, "w", track_order=True) as file:
        file[HEADER] = _text(json.dumps(contents.header), h5py)
        for name, array in contents.arrays.items():
            dataset = file.create_dataset("/".join(places[name]), data=array, track_order=True)
            dataset.attrs["name"] = _text(name, h5py)
            if unit := {"t": "s", **contents.header["units"]}.get(name):
                dataset.attrs["units"] = unit


def read_hdf5(source: Any, caller: str) -> Contents:
    """Return the arrays of an HDF5 file, with the header if it is one of ours."""
    h5py = require("h5py", "data", caller)
    size = _size_of(source)
    try:
        with h5py.File(source, "r") as file:
            arrays, units = {}, {}
            header: dict[str, Any] = {}
            for path, dataset in _datasets(file, h5py):
                if path == HEADER:
                    header = json.loads(_read_text(dataset[()]))
                    continue
                name = _read_text(dataset.attrs.get("name", path.replace("/", ".")))
                if name in arrays:
                    raise ValueError(f"the name {name!r} means two datasets")
                arrays[name] = _read_dataset(dataset, path, size)
                if unit := _read_text(dataset.attrs.get("units", "")):
                    units[name] = unit
    except (OSError, KeyError, TypeError, RuntimeError, MemoryError, ValueError) as error:
        raise ValueError(
            f"{name_source(caller, source)} cannot be read as HDF5: {error}"
        ) from error
    except RecursionError as error:
        raise ValueError(
            f"{name_source(caller, source)} has a header that is nested too deep"
        ) from error
    if not isinstance(header, dict):
        raise ValueError(f"{name_source(caller, source)} has a header that is not ours")
    return Contents(arrays, {**header, "units": {**header.get("units", {}), **units}})


def _text(text: str, h5py: Any) -> np.ndarray:
    """Return text of a fixed length: other text lies in a heap, which damage turns into loops."""
    data = text.encode()
    return np.array(data, h5py.string_dtype("utf-8", max(len(data), 1)))


def _read_text(value: Any) -> str:
    """Return text that a file has, fixed or not; other values are no text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, str):
        raise ValueError(f"{value!r} where text should be")
    return value


def _datasets(group: Any, h5py: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the datasets below a group that lie in this file; links to others are refused."""
    if path.count("/") > 50:
        raise ValueError(f"{path[:60]}... is nested more than 50 deep")
    for key in group:
        link = group.get(key, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"{path}{key} is a link to something else")
        node = group[key]
        if isinstance(node, h5py.Group):
            yield from _datasets(node, h5py, f"{path}{key}/")
        elif isinstance(node, h5py.Dataset):
            yield f"{path}{key}", node


def _read_dataset(dataset: Any, path: str, size: int) -> np.ndarray:
    """Return the numbers of a dataset that is what it seems to be."""
    if dataset.is_virtual or dataset.external:
        raise ValueError(f"{path} takes its numbers from another file")
    if dataset.shape is None or dataset.dtype.kind not in "biufc":
        raise ValueError(f"{path} holds something other than numbers: {dataset.dtype}")
    if dataset.nbytes > EXPANSION * max(size, SMALLEST):
        raise ValueError(f"{path} claims {dataset.nbytes} bytes, in a file of {size}")
    return np.asarray(dataset[()])


def _size_of(source: Any) -> int:
    """Return the size of a file in bytes; a path that is none raises as opening it does."""
    if isinstance(source, (str, PathLike)):
        with Path(source).open("rb") as file:
            return file.seek(0, 2)
    size = source.seek(0, 2)
    source.seek(0)
    return int(size)


# ---- MATLAB ------------------------------------------------------------------------------


def spell_matlab(step: str) -> str:
    """Return a name that MATLAB takes.

    >>> spell_matlab("v_B"), spell_matlab("0"), spell_matlab("_a b")
    ('v_B', 'x0', 'x_a_b')
    """
    name = re.sub(r"\W", "_", step, flags=re.ASCII)
    return name if re.match(r"[A-Za-z]", name) else f"x{name}"


def write_mat(contents: Contents, target: Any, caller: str) -> None:
    """Write a MATLAB 5 file: structs for structs, and the units in a struct of the same form."""
    for name, array in contents.arrays.items():
        check_numbers(caller, name, array, "biufc", "to_hdf5 or to_npz")
    places = place_names(list(contents.arrays), spell_matlab, LONGEST)
    units = {"t": "s", **contents.header["units"]}
    shapes = [[name, places[name], a.dtype.str, a.shape] for name, a in contents.arrays.items()]
    variables: dict[str, Any] = {}
    for name, array in contents.arrays.items():
        half = array.dtype == np.float16  # which MATLAB has not
        _put(variables, places[name], array.astype(np.float32) if half else array)
        if name in units:
            _put(variables, ("units", *places[name]), units[name])
    header = {**contents.header, "arrays": shapes}
    write_variables({**variables, HEADER: json.dumps(header)}, target, caller)


def _put(into: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for step in place[:-1]:
        into = into.setdefault(step, {})
    into[place[-1]] = value


def write_variables(variables: Mapping[str, Any], target: Any, caller: str) -> None:
    """Write variables to a MATLAB 5 file."""
    import scipy.io

    path = fspath(target) if isinstance(target, PathLike) else target
    try:
        scipy.io.savemat(
            path, dict(variables), appendmat=False, long_field_names=True, oned_as="column"
        )
    except (ValueError, scipy.io.matlab.MatWriteError) as error:
        raise ValueError(
            f"{caller}: {target} cannot be written as a MATLAB 5 file, whose variables have 4 GB "
            f"at most: {error}"
        ) from error


def read_variables(source: Any, caller: str) -> dict[str, Any]:
    """Return the variables of a MATLAB file of version 5 to 7."""
    with open_file(source, "rb") as file:
        data = file.read()
    try:
        return read_mat5(data)
    except MatError as error:
        raise ValueError(
            f"{name_source(caller, source)} cannot be read as a MATLAB file: {error}"
        ) from error


def read_mat(source: Any, caller: str) -> Contents:
    """Return the arrays of a MATLAB file, with the header if it is one of ours."""
    variables = read_variables(source, caller)
    where = name_source(caller, source)
    found = dict(_walk_mat(variables, (), where))
    texts = {place: value for place, value in found.items() if value.dtype.kind in "US"}
    numbers = {place: value for place, value in found.items() if place not in texts}
    if (HEADER,) in texts:
        return _read_own_mat(numbers, str(texts[HEADER,].item()), where)
    if "t" not in variables:
        raise ValueError(f"{where} has no variable t with the times; it has {sorted(variables)}")
    said = {".".join(place): str(text.item()) for place, text in texts.items() if text.size == 1}
    units = {name[6:]: text for name, text in said.items() if name.startswith("units.")}
    beside: dict[str, Any] = {name: said[name] for name in ("message", "hold") if name in said}
    count = numbers["t",].size if ("t",) in numbers else 0
    arrays = {
        ".".join(p): _as_rows(value, count, ".".join(p), where) for p, value in numbers.items()
    }
    return Contents(arrays, {**beside, "units": units})


def _read_own_mat(numbers: Mapping[tuple[str, ...], np.ndarray], text: str, where: str) -> Contents:
    try:
        header = json.loads(text)
        rows = header.pop("arrays")
        arrays = {
            name: numbers[tuple(place)].reshape(shape).astype(dtype, casting="unsafe")
            for name, place, dtype, shape in rows
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{where} has a header that does not fit its variables: {type(error).__name__}: {error}"
        ) from error
    return Contents(arrays, header)


def _as_rows(value: np.ndarray, count: int, name: str, where: str) -> np.ndarray:
    """Return an array of MATLAB, which has two axes at least, with the time as its first axis."""
    if value.ndim == 2 and 1 in value.shape and value.size == count:
        return value.ravel()
    if len(value) != count:
        turned = f"; write {name}'" if value.ndim == 2 and value.shape[1] == count else ""
        raise ValueError(
            f"{where}: {name} has the size {' x '.join(map(str, value.shape))}, and there are "
            f"{count} times, one per row{turned}. Save t, x, u and y alone: "
            "save('run.mat', 't', 'x')"
        )
    return value


def _walk_mat(
    value: Any, place: tuple[str, ...], where: str
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Yield the arrays in variables and structs of a MATLAB file, each with its path."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield place, value
        return
    if isinstance(value, np.ndarray):
        raise ValueError(
            f"{where}: {'.'.join(place)} is a cell array, which is not read: save plain arrays and "
            "structs"
        )
    for key, part in value.items():
        yield from _walk_mat(part, (*place, key), where)
