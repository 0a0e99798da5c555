"""Read the ranges that users give for the arguments of a function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.display import Readable
from archimedes.errors import ShapeDtypeError, StructError
from archimedes.function.compiled import Compiled
from archimedes.function.leaf_specs import argument_paths
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import DTYPES
from archimedes.symbolic.core.user_frames import recording_lines

__all__ = ["Interval"]

Array = np.ndarray
_FORM = 'write a pair such as {"x": (-1.0, 1.0)}, arrays of the argument\'s shape for each element'


@dataclass(frozen=True, repr=False)
class Interval(Readable):
    """A range from `lower` to `upper`, both included.

    It stands for an argument, or for a part of one, where ranges of arguments are asked for. For
    numbers and arrays a plain pair ``(lower, upper)`` means the same.

    Parameters
    ----------
    lower : number, array or tree
        Least values.
    upper : number, array or tree
        Largest values, of the same structure.

    Examples
    --------
    >>> import archimedes as arc
    >>> f = arc.compile(lambda p: p["mass"] * p["rate"])
    >>> ranges = {"p": Interval({"mass": 1.0, "rate": -2.0}, {"mass": 3.0, "rate": 2.0})}
    >>> float(f.bounds(ranges).upper)
    6.0
    """

    lower: Any
    upper: Any


class Arguments(NamedTuple):
    """A recording for arguments, and lower and upper ends (2, inputs) of its graph's inputs."""

    recording: Recording
    ends: Array
    #: Paths of the argument leaves.
    names: list[str]


def _is_number(x: object) -> bool:
    """Return whether something is a number or an array of them; tuples are ranges, or arguments."""
    if isinstance(x, list):
        return len(x) > 0 and all(map(_is_number, x))
    return isinstance(x, (int, float, np.ndarray, np.generic)) and not isinstance(x, bool)


def _is_range(x: object) -> bool:
    """Return whether something in a tree of ranges is a range: an Interval or a pair of numbers."""
    is_pair = type(x) is tuple and len(x) == 2 and all(map(_is_number, x))
    return is_pair or isinstance(x, Interval)


def _is_leaf(x: object) -> bool:
    return _is_range(x) or (isinstance(x, list) and _is_number(x))


def _pair_of(leaf: Any) -> tuple[Any, Any]:
    if isinstance(leaf, Interval):
        return leaf.lower, leaf.upper
    return leaf if _is_range(leaf) else (leaf, leaf)


def _as_float(x: Any) -> Any:
    """Return a leaf of a range as it is recorded: numbers as floats, unless NumPy says int."""
    if isinstance(x, bool) or not _is_number(x):
        return x
    if isinstance(x, (int, float)):
        return float(x)
    return x if isinstance(x, np.generic) else np.asarray(x) * (1 if _is_typed(x) else 1.0)


def _is_typed(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def _split(spec: Any, name: str) -> tuple[Any, Any]:
    """Return a tree of ranges as a tree of lower and a tree of upper ends."""
    if type(spec) is tuple and len(spec) == 2 and not _is_range(spec):
        # A pair of whole trees, such as structs.
        structures = [tree.structure(part, _is_leaf) for part in spec]
        if structures[0].matches(structures[1]) and not any(map(_has_range, spec)):
            spec = Interval(*spec)
    leaves, treedef = tree.flatten(spec, _is_leaf)
    pairs = [_pair_of(leaf) for leaf in leaves]
    lower, upper = (treedef.unflatten([pair[k] for pair in pairs]) for k in (0, 1))
    lower, upper = (tree.map(_as_float, x, is_leaf=_is_leaf) for x in (lower, upper))
    one, two = tree.structure(lower), tree.structure(upper)
    if not one.matches(two):
        raise StructError(
            f"bounds: lower and upper ends of {name} have different structures, "
            f"{one.difference(two, name)}"
        )
    return lower, upper


def _has_range(spec: Any) -> bool:
    return any(map(_is_range, tree.leaves(spec, _is_leaf)))


def read_arguments(
    compiled: Compiled, ranges: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}
) -> Arguments:
    """Return the recording of a function for ranges of its arguments, and the ends of its inputs.

    With `args` or `kwargs`, `ranges` is a mapping from paths in them to ranges; what is not named
    keeps its value. Otherwise it has a range for every argument: see ``Compiled.bounds``.
    """
    if args or kwargs:
        return _around(compiled, ranges, tuple(args), dict(kwargs))
    lower, upper = {}, {}
    for name, spec in _by_name(compiled, ranges).items():
        lower[name], upper[name] = _split(spec, name)
    signature = compiled.signature
    low_args = signature.unbind(lower)
    high_args = signature.unbind(upper)
    with recording_lines():
        leaves, recording, _ = compiled.lookup(*low_args)
        _ = recording.graph  # with its lines
    names = list(recording.names)
    values = signature.bind(*high_args)
    fixed = signature.fixed(values)
    highs = tree.leaves(tuple(v for k, v in values.items() if k not in fixed))
    ends = _ends(recording, names, leaves, highs)
    if values and not ends.size and not any(spec.traced for spec in recording.leaves):
        raise TypeError(f"bounds of {compiled.name}: no number in ranges={ranges!r}; {_FORM}")
    return Arguments(recording, ends, names)


def _by_name(compiled: Compiled, ranges: Any) -> dict[str, Any]:
    """Return the range of each argument by its name."""
    known = compiled.signature.positional
    needed = [
        p.name
        for p in compiled.signature.parameters.parameters.values()
        if p.default is p.empty and p.name in compiled.signature.known
    ]
    what = f"bounds of {compiled.name}{compiled.signature.parameters}"
    if isinstance(ranges, Mapping) and {*ranges} <= compiled.signature.known:
        missing = [name for name in needed if name not in ranges]
        if missing:
            raise TypeError(f"{what}: no range for {', '.join(missing)}; {_FORM}")
        return {
            name: ranges[name]
            for name in compiled.signature.parameters.parameters
            if name in ranges
        }
    if known and (len(known) == 1 or (len(needed) == 1 and _is_range(ranges))):
        alone = type(ranges) is tuple and len(ranges) == 1
        return {known[0]: ranges[0] if alone else ranges}
    if isinstance(ranges, (tuple, list)) and len(needed) <= len(ranges) <= len(known):
        return dict(zip(known, ranges))
    if isinstance(ranges, Mapping):
        strange = [str(key) for key in ranges if key not in compiled.signature.known]
        remedy = (
            "for parts of arguments, give the values of all arguments too: "
            f"f.bounds(ranges, {', '.join(known)})"
        )
        raise TypeError(f"{what}: there is no argument {', '.join(strange)}; {remedy}")
    raise TypeError(f"{what}: ranges must name a range for each argument, got {ranges!r}; {_FORM}")


_INDEX = re.compile(r"\[(-?\d+(?:, ?-?\d+)*)\]$")


def _around(
    compiled: Compiled, ranges: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """Read ranges of some parts of given arguments."""
    with recording_lines():
        _, recording, _ = compiled.lookup(args, kwargs)
        _ = recording.graph
    values = compiled.signature.bind(args, kwargs)
    fixed = compiled.signature.fixed(values)
    dynamic = {k: v for k, v in values.items() if k not in fixed}
    return arguments_around(recording, dynamic, ranges, f"bounds of {compiled.name}")


def arguments_around(
    recording: Recording, values: Mapping[str, Any], ranges: Any, what: str
) -> Arguments:
    """Return the ends of a recording's inputs: values by name, and ranges by paths in them."""
    if not isinstance(ranges, Mapping):
        raise TypeError(
            f"{what}: beside values of arguments, ranges must be a dict from paths in them to "
            f"pairs, got {type(ranges).__name__}; {_FORM}"
        )
    leaves, treedef = tree.flatten(tuple(values.values()))
    paths = argument_paths(treedef, list(values))
    lows, highs = (
        [np.array(x) if spec.traced else x for x, spec in zip(leaves, recording.leaves)]
        for _ in range(2)
    )
    for key, spec in ranges.items():
        inside = (f"{key}.", f"{key}[")
        mine = [k for k, path in enumerate(paths) if path == key or path.startswith(inside)]
        at: Any = ...
        index = _INDEX.search(key)
        if not mine and index:
            whole = key[: index.start()]
            mine = [k for k, path in enumerate(paths) if path == whole]
            at = tuple(map(int, index[1].split(",")))
        if not mine or not all(recording.leaves[k].traced for k in mine):
            raise ValueError(f"{what}: no number of the arguments is called {key!r}: {paths}")
        for k, low, high in zip(mine, *_leaves_for(spec, key, len(mine))):
            for target, value in ((lows, low), (highs, high)):
                _put(target[k], at, value, key)
    return Arguments(recording, _ends(recording, paths, lows, highs), paths)


def _leaves_for(spec: Any, key: str, count: int) -> tuple[list[Any], list[Any]]:
    lower, upper = (tree.leaves(x) for x in _split(spec, key))
    if len(lower) == 1:
        lower, upper = lower * count, upper * count
    if len(lower) != count:
        raise ValueError(f"bounds: {key} has {count} leaves, but its range has {len(lower)}")
    return lower, upper


def _put(target: Array, at: Any, value: Any, key: str) -> None:
    try:
        target[at] = value
    except (ValueError, IndexError, TypeError):
        raise ShapeDtypeError(
            f"bounds: a range of shape {np.shape(value)} does not fit {key}, of shape "
            f"{np.shape(target[at] if at is ... else target)}"
        ) from None


def _ends(
    recording: Recording, names: list[str], lows: Sequence[Any], highs: Sequence[Any]
) -> Array:
    """Return the ends of the inputs of a recording's graph, after checking them."""
    parts: list[Array] = []
    for name, spec, low, high in zip(names, recording.leaves, lows, highs):
        if not spec.traced:
            continue
        try:
            ends = np.stack(
                [np.broadcast_to(np.asarray(x, float), spec.shape) for x in (low, high)]
            )
        except ValueError:
            raise ShapeDtypeError(
                f"bounds: the lower end of {name} has shape {np.shape(low)}, the upper end "
                f"{np.shape(high)}"
            ) from None
        if np.isnan(ends).any():
            raise ValueError(f"bounds: an end of the range of {name} is nan; use inf for no limit")
        if (ends[0] > ends[1]).any():
            raise ValueError(
                f"bounds: {name}: lower limit above upper limit, got {np.asarray(low).tolist()} "
                f"and {np.asarray(high).tolist()}"
            )
        if DTYPES[spec.code].kind == "f" and DTYPES[spec.code].itemsize == 4:
            ends = ends.astype(np.float32).astype(float)
        parts.append(ends.reshape(2, -1))
    return np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
