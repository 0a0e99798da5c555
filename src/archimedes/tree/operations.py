"""Functions on whole trees: take apart, rebuild, map, reduce, name the leaves."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from archimedes.errors import StructError
from archimedes.tree.nodes import FLATTENERS, Stop, flattener_of, resolve
from archimedes.tree.treedef import LEAF, TreeDef, intern

__all__ = [
    "all",
    "flatten",
    "flatten_up_to",
    "is_leaf",
    "leaves",
    "map",
    "paths",
    "reduce",
    "structure",
    "unflatten",
]

find = FLATTENERS.get
MISSING = object()


def flatten(tree: Any, is_leaf: Stop | None = None) -> tuple[list, TreeDef]:
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
    found: list = []
    treedef = f(tree, found.append, is_leaf)
    return found, treedef


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


def structure(tree: Any, is_leaf: Stop | None = None) -> TreeDef:
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


def leaves(tree: Any, is_leaf: Stop | None = None) -> list:
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


def map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Stop | None = None) -> Any:
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


def flatten_up_to(treedef: TreeDef, tree: Any, root: str = "") -> list:
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

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.flatten_up_to(tree.structure({"a": 0, "b": 0}), {"a": [1.0, 2.0], "b": 3.0})
    [[1.0, 2.0], 3.0]
    """
    if treedef is LEAF:
        return [tree]
    children, shallow = flatten(tree, lambda node: node is not tree)
    upper = intern(treedef.kind, (LEAF,) * len(treedef.children), treedef.aux)
    if not upper.matches(shallow):
        raise StructError(f"the trees differ {upper.difference(shallow, root, (), children)}")
    labels = treedef.kind.labels(treedef.aux, len(children))
    parts = zip(treedef.children, children, labels)
    return [leaf for d, child, at in parts for leaf in flatten_up_to(d, child, root + at)]


def all(tree: Any) -> bool:
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
    tree: Any,
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
    found = leaves(tree, is_leaf)
    if initializer is not MISSING:
        return functools.reduce(fn, found, initializer)
    if not found:
        raise StructError("reduce: the tree has no leaves; give an initializer")
    return functools.reduce(fn, found)


def is_leaf(x: Any) -> bool:
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


def paths(tree: Any, root: str = "", is_leaf: Stop | None = None) -> list[str]:
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
