"""A problem as users write it, for one structure of unknowns and arguments: blocks and layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import Compiled
from archimedes.optimize.blocks import Block
from archimedes.optimize.evaluation import Structure
from archimedes.optimize.limits import name_of

__all__ = ["Program", "as_unknowns"]


def as_unknowns(x0: Any, what: str = "x0") -> Any:
    """Return a start as a tree of float64; a list of numbers is an array."""
    if isinstance(x0, (list, tuple)) and all(np.isscalar(x) or x is None for x in x0):
        x0 = np.array(x0, dtype=float)
    found = tree.map(lambda leaf: np.asarray(leaf, dtype=float)[()], x0)
    flat = tree.ravel(found)[0]
    if flat.size == 0:
        raise ValueError(f"{what} holds no numbers to solve for")
    bad = np.flatnonzero(~np.isfinite(flat))
    if bad.size:
        k = int(bad[0])
        raise ValueError(f"{name_of(found, k, what)} is {flat[k]}: a start must be finite")
    return found


@dataclass(eq=False)
class Program:
    """Objective and constraints as one block, for unknowns like ``unknowns``."""

    obj: Compiled
    constr: Compiled | None
    unknowns: Any
    args: tuple[Any, ...]

    def __post_init__(self) -> None:
        self.size = tree.ravel(self.unknowns)[0].size
        self._unravel = tree.ravel(self.unknowns)[1]
        self._structure: Structure | None = None
        #: What the constraints' values look like: the limits are read by it.
        self.values_like = self._constraints_like()
        self.rows = tree.ravel(self.values_like)[0].size if self.constr is not None else 0
        self._check_objective()

    def unravel(self, x: np.ndarray) -> Any:
        """Return a vector of unknowns as the user's tree."""
        return self._unravel(x)

    def _constraints_like(self) -> Any:
        if self.constr is None:
            return {}
        return shapes_of(self.constr, self.unknowns, self.args, "constr")

    def _check_objective(self) -> None:
        leaves = tree.leaves(shapes_of(self.obj, self.unknowns, self.args, "obj"))
        if len(leaves) != 1 or np.size(leaves[0]) != 1:
            shapes = [np.shape(leaf) for leaf in leaves]
            raise ValueError(
                f"obj must return one number, it returns {len(leaves)} of shape {shapes}: add them "
                "up, for example with np.sum"
            )

    @cached_property
    def func(self) -> Callable[..., Any]:
        """``(x, *args) -> [f, *g]``, all flat."""
        unravel, obj, constr = self._unravel, self.obj, self.constr

        def together(x: Any, *args: Any) -> Any:
            unknowns = unravel(x)
            f = np.reshape(tree.leaves(obj(unknowns, *args))[0] * 1.0, (1,))
            if constr is None:
                return f
            return np.concatenate([f, tree.ravel(constr(unknowns, *args))[0] * 1.0])

        return together

    @cached_property
    def blocks(self) -> list[Block]:
        """The problem's blocks: one."""
        rows = np.arange(-1, self.rows)[None]
        index = np.arange(self.size)[None]
        return [Block(self.func, index, rows, name=self.obj.name)]

    def structure(self, args: tuple[Any, ...]) -> Structure:
        """Return the sparsity, made anew where what the functions read has changed it."""
        patterns = [block.patterns(args) for block in self.blocks]
        known = self._structure
        if known is None or any(a is not b for a, b in zip(patterns, known.patterns)):
            known = Structure(patterns, self.size, self.rows)
            self._check_dependence(known)
            self._structure = known
        return known

    def _check_dependence(self, made: Structure) -> None:
        idle = np.setdiff1d(np.arange(self.rows), made.jac_rows)
        if idle.size:
            name = name_of(self.values_like, int(idle[0]), "constr")
            raise ValueError(
                f"{name} does not depend on any unknown, so that nothing can satisfy or violate "
                "it: leave it out of the constraints"
            )
        used = np.union1d(made.gradient_at, made.jac_columns)
        unused = np.setdiff1d(np.arange(self.size), used)
        if unused.size:
            name = name_of(self.unknowns, int(unused[0]), "x0")
            raise ValueError(
                f"{name} enters neither the objective nor any constraint, so that any value would "
                "do: take it out of the unknowns and pass it in args"
            )


def shapes_of(function: Compiled, unknowns: Any, args: tuple[Any, ...], what: str) -> Any:
    """Return zeros like the result of a function, found by recording it."""
    recording = function.recording(unknowns, *args)
    found = []
    for out, path in zip(recording.outs, recording.out_tree.paths(what)):
        value = out.spec.value
        if not out.spec.traced and not isinstance(value, (int, float, np.ndarray, np.generic)):
            raise ValueError(f"{path} is a {type(value).__name__}, but numbers are needed")
        found.append(np.zeros(out.spec.shape if out.spec.traced else np.shape(value))[()])
    return recording.out_tree.unflatten(found)
