"""Why a call was recorded, in one line: what ``f.explain()`` tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording
from archimedes.graph.regions import Nest

__all__ = ["reason_to_record"]


def reason_to_record(
    name: str, key: Any, earlier: list[Any], names: list[str], read: str, in_place: bool = False
) -> str:
    """Say in one line why a call was recorded: what differs from the nearest earlier one.

    ``read`` is what differs among what the function reads; ``in_place``: it reads arrays where
    they lie, and was recorded with their values before.
    """
    treedef, specs, _, fixed, state, rules = key
    text = f"{name}({', '.join(_describe(treedef, specs, names))})"
    if not earlier:
        return f"{text}: first call"
    same_tree = [k for k in earlier if k[0] is treedef or k[0] == treedef]
    if not same_tree:
        return f"{text}: arguments of another structure"
    nearest = min(reversed(same_tree), key=lambda k: sum(a != b for a, b in zip(specs, k[1])))
    for mine, old, path in zip(specs, nearest[1], treedef.paths()):
        if mine != old:
            position, _, rest = path[1:].partition("]")
            return f"{text}: {names[int(position)]}{rest} was {old}, now {mine}"
    if all(k[5] != rules for k in same_tree):
        return f"{text}: loops are made by other rules: {rules}, not {nearest[5]}"
    if read and any(k[3] == fixed and k[4] != state for k in same_tree):
        return f"{text}: {read} has changed"
    if in_place:
        return f"{text}: large captured arrays are read where they lie"
    return f"{text}: another value of a static argument"


def loops_text(recording: Recording) -> str:
    """Say which loops over arrays the last recording has; nothing where it has none."""
    g = recording.blocks
    nests = [region for region in g.regions.values() if isinstance(region, Nest)]
    if not nests:
        return ""
    most = max(nests, key=lambda region: math.prod(region.shape))
    return (
        f"last recording: {len(nests)} loops over arrays, the largest {most.summary()}; arrays of "
        "fewer elements than compile's loops_from (64) are recorded element by element"
    )


def _describe(treedef: Any, specs: Sequence[LeafSpec], names: list[str]) -> list[str]:
    paths = [p for name, sub in zip(names, treedef.children) for p in sub.paths(name)]
    return [f"{path}: {spec}" for path, spec in zip(paths, specs)]
