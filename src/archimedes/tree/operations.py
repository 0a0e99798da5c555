"""Functions on whole trees: flatten, rebuild, map, reduce, name the leaves, ravel to a vector."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.errors import StructError
from archimedes.tree.nodes import FLATTENERS, Stop, flattener_of, resolve
from archimedes.tree.treedef import LEAF, TreeDef, intern

if TYPE_CHECKING:
    from archimedes.typing import Tree

__all__ = [
    "all",
    "flatten",
    "flatten_up_to",
    "is_leaf",
    "leaves",
    "map",
    "paths",
    "ravel",
    "reduce",
    "structure",
    "unflatten",
]

find = FLATTENERS.get
MISSING = object()


def flatten(tree: Tree, is_leaf: Stop | None = None) -> tuple[list, TreeDef]:
    """Split a tree into its leaves and its structure.

    Parameters
    ----------
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.
    is_leaf : callable, optional
        Called with each subtree. Where it returns True, the subtree is taken as a leaf.

    Returns
    -------
    leaves : list
        The leaves, in order.
    treedef : TreeDef
        The structure.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.flatten({"b": (2.0, None), "a": 1.0})
    ([1.0, 2.0], TreeDef({'b': (*, None), 'a': *}))
    """
    f = find(type(tree), resolve) if is_leaf is None or not is_leaf(tree) else None
    if f is None:
        return [tree], LEAF
    leaves: list = []
    treedef = f(tree, leaves.append, is_leaf)
    return leaves, treedef


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Rebuild a tree from its structure and its leaves; the inverse of :func:`flatten`.

    Structs are filled in without calling ``__init__`` or ``__post_init__``, so the leaves may be
    any objects.

    Parameters
    ----------
    treedef : TreeDef
        The structure.
    leaves : iterable
        The leaves, in the order of :func:`flatten`.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.unflatten(tree.structure([0, (0,)]), ["a", "b"])
    ['a', ('b',)]
    """
    if not isinstance(treedef, TreeDef):
        raise StructError(
            f"unflatten(treedef, leaves): the first argument is a TreeDef, got {treedef!r}"
        )
    return treedef.unflatten(leaves)


def structure(tree: Tree, is_leaf: Stop | None = None) -> TreeDef:
    """Return the structure of a tree: everything but its leaves.

    Parameters
    ----------
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.
    is_leaf : callable, optional
        Called with each subtree. Where it returns True, the subtree is taken as a leaf.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.structure({"a": 1.0, "b": 2.0}) == tree.structure({"a": 3.0, "b": 4.0})
    True
    """
    return flatten(tree, is_leaf)[1]


def leaves(tree: Tree, is_leaf: Stop | None = None) -> list:
    """Return the leaves of a tree, in order.

    Parameters
    ----------
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.
    is_leaf : callable, optional
        Called with each subtree. Where it returns True, the subtree is taken as a leaf.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.leaves([1.0, {"a": 2.0}, None])
    [1.0, 2.0]
    """
    return flatten(tree, is_leaf)[0]


def map(fn: Callable[..., Any], tree: Tree, *rest: Tree, is_leaf: Stop | None = None) -> Any:
    """Apply a function to the leaves of a tree, and return a tree of the results.

    Parameters
    ----------
    fn : callable
        Function of one leaf, or of one leaf of each tree.
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.
    *rest
        Further trees of the same structure. Leaves of dicts correspond by key, in whatever order
        these were filled.
    is_leaf : callable, optional
        Called with each subtree. Where it returns True, the subtree is taken as a leaf.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.map(lambda a, b: a + b, {"a": 1.0, "b": [2.0]}, {"a": 10.0, "b": [20.0]})
    {'a': 11.0, 'b': [22.0]}
    """
    first, treedef = flatten(tree, is_leaf)
    columns = [first]
    for i, other in enumerate(rest):
        column, other_def = flatten(other, is_leaf)
        if not treedef.matches(other_def):
            where = treedef.difference(other_def, "", first, column)
            raise StructError(
                f"map: tree number {i + 2} has another structure than the first, {where}"
            )
        columns.append(column)
    return treedef.build(treedef, builtins.map(fn, *columns).__next__)


def flatten_up_to(
    treedef: TreeDef, tree: Tree, root: str = "", *, none_fills: bool = False
) -> list:
    """Return the subtrees of a tree at the leaves of a structure.

    This is how one setting, such as a batch axis, applies to a whole subtree.

    Parameters
    ----------
    treedef : TreeDef
        Structure of the upper part of `tree`. Where it has a leaf, `tree` may have anything.
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.
    root : str, optional
        Name of the tree in error messages.
    none_fills : bool, optional
        Take None in place of a whole subtree as one of which all leaves are None. False by default.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.flatten_up_to(tree.structure({"a": 0, "b": 0}), {"a": [1.0, 2.0], "b": 3.0})
    [[1.0, 2.0], 3.0]
    """
    if treedef is LEAF:
        return [tree]
    if none_fills and tree is None:
        return [None] * treedef.num_leaves
    children, shallow = flatten(tree, lambda node: node is not tree)
    upper = intern(treedef.kind, (LEAF,) * len(treedef.children), treedef.aux)
    if not upper.matches(shallow):
        raise StructError(f"the trees differ {upper.difference(shallow, root, (), children)}")
    labels = treedef.kind.labels(treedef.aux, len(children))
    parts = zip(treedef.children, children, labels)
    return [
        leaf
        for d, child, at in parts
        for leaf in flatten_up_to(d, child, root + at, none_fills=none_fills)
    ]


def all(tree: Tree) -> bool:
    """Return whether every element of every leaf is true. A tree without leaves gives True.

    Parameters
    ----------
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.all({"a": True, "b": [1, 0]})
    False
    """
    return builtins.all(bool(np.all(leaf)) for leaf in leaves(tree))


def reduce(
    fn: Callable[[Any, Any], Any],
    tree: Tree,
    initializer: Any = MISSING,
    *,
    is_leaf: Stop | None = None,
) -> Any:
    """Combine the leaves from left to right: ``fn(fn(initializer, leaf_0), leaf_1) ...``.

    Parameters
    ----------
    fn : callable
        Function of the value so far and a leaf.
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.
    initializer : object, optional
        The first value. By default the first leaf.
    is_leaf : callable, optional
        Called with each subtree. Where it returns True, the subtree is taken as a leaf.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.reduce(lambda a, b: a + b, {"a": 1.0, "b": [2.0, 3.0]}, 0.0)
    6.0
    """
    values = leaves(tree, is_leaf)
    if initializer is not MISSING:
        return functools.reduce(fn, values, initializer)
    if not values:
        raise StructError("reduce: the tree has no leaves; give an initializer")
    return functools.reduce(fn, values)


def is_leaf(x: object) -> bool:
    """Return whether a value is a leaf. None and empty containers are nodes without leaves.

    Parameters
    ----------
    x : object
        Any value.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.is_leaf(1.0), tree.is_leaf([1.0]), tree.is_leaf(None)
    (True, False, False)
    """
    return flattener_of(type(x)) is None


def paths(tree: Tree, root: str = "", is_leaf: Stop | None = None) -> list[str]:
    """Return the path of each leaf, in the order of the leaves.

    Parameters
    ----------
    tree : tree
        Any nesting of structs, dicts, lists, tuples, arrays and numbers.
    root : str, optional
        Name of the tree itself.
    is_leaf : callable, optional
        Called with each subtree. Where it returns True, the subtree is taken as a leaf.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.paths([{"mass": 1.0}, 2.0], "x")
    ["x[0]['mass']", 'x[1]']
    """
    return structure(tree, is_leaf).paths(root)


PYTHON_NUMBERS = (bool, int, float, complex)
NUMERIC_KINDS = "biufcO"


def _check_numeric(leaf: Any, treedef: TreeDef, index: int) -> Any:
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

    def __call__(self, vector: Any) -> Tree:
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


def ravel(tree: Tree) -> tuple[Any, Unravel]:
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
    arrays = [_check_numeric(leaf, treedef, i) for i, leaf in enumerate(leaves)]
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
