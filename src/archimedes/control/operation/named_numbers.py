"""The numbers of a tree as a vector whose entries have names and units."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.typing import Array, Tree


class NamedNumbers(NamedTuple):
    """A tree as a vector (n,), the way back, and the names and units of its entries."""

    vector: Array
    unravel: Callable[[Array], Tree]
    names: tuple[str, ...]
    units: tuple[str, ...]


def name_numbers(value: Tree, root: str) -> NamedNumbers:
    """Take a tree of numbers apart; one array or number is called by the name of its root.

    >>> name_numbers({"speed": 3.0, "wind": np.zeros(2)}, "x").names
    ('speed', 'wind[0]', 'wind[1]')
    """
    leaves, treedef = tree.flatten(value)
    kinds = [getattr(leaf, "dtype", np.asarray(leaf).dtype).kind for leaf in leaves]
    if any(kind not in "fiu" for kind in kinds):
        raise ShapeDtypeError(f"{root} must hold real numbers, got {value!r}")
    vector, unravel = tree.ravel(treedef.unflatten([leaf * 1.0 for leaf in leaves]))
    columns = tree_columns(value, 0, root, prefix=False)
    names, units = (tuple(getattr(c, k) for c in columns) for k in ("name", "units"))
    return NamedNumbers(vector, unravel, names, units)


def find_entries(names: str | Iterable[str], known: tuple[str, ...], what: str) -> list[int]:
    """Return where names are among the known ones; a name also stands for all that is in it.

    >>> find_entries(["wind"], ("speed", "wind[0]", "wind[1]"), "free")
    [1, 2]
    """
    entries: set[int] = set()
    for name in (names,) if isinstance(names, str) else names:
        inside = (f"{name}.", f"{name}[")
        matches = [k for k, own in enumerate(known) if own == name or own.startswith(inside)]
        if not matches:
            raise ValueError(f"{what} names {name!r}, which is not among {', '.join(known)}")
        entries.update(matches)
    return sorted(entries)
