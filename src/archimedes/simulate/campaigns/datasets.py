"""Campaigns as one xarray Dataset: runs along one axis, parameters as coordinates, units."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate.trajectory.columns import LeafLabel, label_leaves
from archimedes.simulate.trajectory.exports import require, write_netcdf
from archimedes.simulate.trajectory.trajectory import Trajectory

Dims = Mapping[str, Sequence[str]]
Variable = tuple[Sequence[str], np.ndarray, dict[str, str]]


def to_dataset(campaign: Any, dims: Dims) -> Any:
    """Return the Dataset of a campaign; see `Campaign.to_xarray`."""
    xr = require("xarray", "data", "Campaign.to_xarray")
    results = _name_leaves(campaign.results, "result")
    names = {label.name: leaf.shape[1:] for label, leaf in results}
    if unknown := [name for name in dims if name not in names]:
        raise ValueError(f"to_xarray: dims names {unknown[0]!r}; the results are {sorted(names)}")
    variables: dict[str, Variable] = {}
    coordinates: dict[str, Variable] = {"run": (["run"], campaign.runs, {})}
    for label, leaf in results:
        axes = _axes(label.name, dims, names)
        attributes = {"units": label.units} if label.units else {}
        clock = label.name == "t" or label.name.endswith(".t")
        if clock and axes == [label.name] and _rows_are_equal(leaf):
            coordinates[label.name] = (axes, leaf[0], attributes or {"units": "s"})
        elif label.name in axes:  # xarray keeps this name for the coordinate of the axis
            variables[f"{label.name}_of_run"] = (["run", *axes], leaf, attributes)
        else:
            variables[label.name] = (["run", *axes], leaf, attributes)
    taken = {*variables, *coordinates, "status"}
    coordinates["status"] = (["run"], campaign.status, {})
    for label, leaf in _name_leaves(campaign.params, "params"):
        # Text and fixed values, which have no axis of runs, and keys of random numbers stay out.
        if leaf.ndim and leaf.dtype.kind in "biufc" and not campaign.is_key(f"{label.name}["):
            name = f"params.{label.name}" if label.name in taken else label.name
            axes = [f"{name}_{k}" for k in range(leaf.ndim - 1)]
            attributes = {"units": label.units} if label.units else {}
            coordinates[name] = (["run", *axes], leaf, attributes)
    messages = {str(run): text for run, text in campaign.messages.items()}
    attributes = {"total": campaign.total, "messages": json.dumps(messages)}
    return xr.Dataset(variables, coordinates, attributes)


def write_dataset(campaign: Any, target: Any, dims: Dims) -> None:
    """Write the Dataset of a campaign; see `Campaign.to_netcdf`."""
    require("h5netcdf", "data", "Campaign.to_netcdf")
    write_netcdf(to_dataset(campaign, dims), target, "to_netcdf")


def _name_leaves(value: Any, root: str) -> list[tuple[LeafLabel, np.ndarray]]:
    """Return the leaves of parameters or results; those of trajectories as these call them."""
    named = []
    leaves, treedef = tree.flatten(value, lambda node: isinstance(node, Trajectory))
    for leaf, label in zip(leaves, label_leaves(treedef, root, prefix=False)):
        if not isinstance(leaf, Trajectory):
            named.append((label, np.asarray(leaf)))
            continue
        front = "" if label.name == root else f"{label.name}."
        named.append((LeafLabel(f"{front}t", "s"), leaf.t))
        for part in ("x", "u", "y"):
            for array, each in zip(tree.leaves(getattr(leaf, part)), leaf.part_labels(part)):
                named.append((each._replace(name=front + each.name), np.asarray(array)))
    return named


def _axes(name: str, dims: Dims, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Return the names of the axes of a result after that of the runs."""
    shape = shapes[name]
    count = len(shape)
    if name in dims:
        if len(dims[name]) != count:
            raise ValueError(
                f"to_xarray: dims[{name!r}] has {len(dims[name])} names, and {name} has {count} "
                "axes after the run"
            )
        return list(dims[name])
    front = name.rpartition(".")[0]
    clocks = [f"{front}.t" if front else "t", "t"]
    own = [f"{name}_{k}" for k in range(count)]
    clock = next((each for each in clocks if count and shapes.get(each) == shape[:1]), None)
    return [clock, *own[1:]] if clock else own


def _rows_are_equal(rows: np.ndarray) -> bool:
    return len(rows) > 0 and all(np.array_equal(row, rows[0]) for row in rows)
