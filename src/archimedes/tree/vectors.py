"""Trees as flat vectors, for solvers that know only arrays.

Only NumPy functions that dispatch on their arguments touch the leaves, so array-like objects with
``__array_function__`` pass through in both directions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.errors import StructError
from archimedes.tree.operations import flatten
from archimedes.tree.treedef import TreeDef

__all__ = ["Unravel", "ravel"]

PYTHON_NUMBERS = (bool, int, float, complex)
NUMERIC_KINDS = "biufcO"


def as_array(leaf: Any, treedef: TreeDef, index: int) -> Any:
    """Return the leaf, or an array of it, if it is numeric; else raise naming the leaf."""
    array = leaf if hasattr(leaf, "dtype") and hasattr(leaf, "shape") else np.asarray(leaf)
    kind = np.dtype(array.dtype).kind
    if kind not in NUMERIC_KINDS or (kind == "O" and array is not leaf):
        path = treedef.paths()[index] or "the tree itself"
        raise StructError(
            f"ravel: leaf {path} is not a number or an array of numbers but of type "
            f"{type(leaf).__qualname__}; if it is a setting, mark the field static"
        )
    return array


def common_dtype(dtypes: list[np.dtype]) -> np.dtype:
    """Return the dtype that all share, else the one that holds them all and float64."""
    distinct = set(dtypes)
    if len(distinct) == 1:
        return distinct.pop()
    return np.result_type(np.float64, *distinct)


class Unravel:
    """Turns a flat vector back into a tree: ``unravel(vector) -> tree``; made by `ravel`.

    Attributes: ``treedef``, ``size`` (length of the vector), ``dtype`` (of the vector) and
    ``slices`` (one per leaf, in the order of the leaves). Those of trees with equal structure,
    shapes and dtypes are equal.
    """

    __slots__ = ("dtype", "layout", "size", "slices", "treedef")

    def __init__(self, treedef: TreeDef, layout: list[tuple], dtype: np.dtype):
        self.treedef = treedef
        self.layout = layout
        self.dtype = dtype
        self.slices: list[slice] = []
        stop = 0
        for shape, _, _ in layout:
            start, stop = stop, stop + math.prod(shape)
            self.slices.append(slice(start, stop))
        self.size = stop

    def __call__(self, vector: Any) -> Any:
        """Return the tree whose leaves hold the entries of `vector`, shape (size,)."""
        if not (hasattr(vector, "dtype") and hasattr(vector, "shape")):
            vector = np.asarray(vector)
        if tuple(vector.shape) != (self.size,):
            raise StructError(
                f"unravel: {self.treedef!r} needs a vector of shape ({self.size},), "
                f"got shape {tuple(vector.shape)}"
            )
        if not np.can_cast(vector.dtype, self.dtype, "same_kind"):
            raise StructError(
                f"unravel: the tree was ravelled as {self.dtype}, and a vector of "
                f"{vector.dtype} would lose its fractions; make the leaves of the tree floats"
            )
        leaves = []
        for (shape, dtype, is_scalar), part in zip(self.layout, self.slices):
            leaf = vector[part.start] if is_scalar else np.reshape(vector[part], shape)
            leaves.append(leaf if leaf.dtype == dtype else leaf.astype(dtype))
        return self.treedef.unflatten(leaves)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unravel):
            return NotImplemented
        same = self.treedef is other.treedef and self.dtype == other.dtype
        return same and self.layout == other.layout

    def __hash__(self) -> int:
        return hash((self.treedef, self.dtype, self.size))

    def __repr__(self) -> str:
        return f"Unravel({self.treedef!r}, size={self.size})"


def ravel(tree: Any) -> tuple[Any, Unravel]:
    """Join all leaves into one vector.

    Parameters
    ----------
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.

    Returns
    -------
    vector : array (n,)
        All numbers, in the dtype that all leaves share, else in float64 (complex128 if a leaf is
        complex).
    unravel : callable
        ``unravel(vector)`` rebuilds the tree with its shapes and dtypes. Python numbers come back
        as NumPy scalars; Python ints and floats among other dtypes take the dtype of the vector.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import tree
    >>> vector, unravel = tree.ravel({"a": 1.0, "b": np.array([[2.0, 3.0]])})
    >>> vector
    array([1., 2., 3.])
    >>> unravel(10 * vector)["b"]
    array([[20., 30.]])
    """
    leaves, treedef = flatten(tree)
    arrays = [as_array(leaf, treedef, i) for i, leaf in enumerate(leaves)]
    dtypes = [np.dtype(a.dtype) for a in arrays]
    dtype = common_dtype(dtypes) if arrays else np.dtype(np.float64)
    layout = []
    for leaf, array, own in zip(leaves, arrays, dtypes):
        weak = type(leaf) in (int, float, complex) or getattr(leaf, "weak", False)
        is_scalar = isinstance(leaf, (*PYTHON_NUMBERS, np.generic))
        layout.append((tuple(array.shape), dtype if weak else own, is_scalar))
    unravel = Unravel(treedef, layout, dtype)
    if not arrays:
        return np.zeros(0), unravel
    vector = np.concatenate([np.ravel(a) for a in arrays])
    return (vector if vector.dtype == dtype else vector.astype(dtype)), unravel
