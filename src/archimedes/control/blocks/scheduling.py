"""Gains that depend on the operating point: tables over a grid, interpolated.

Weights are tents: the weight of grid point k falls linearly from 1 at that point to 0 at its
neighbours, so that no branch and no lookup depends on data; several axes multiply.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable, check_increasing, is_traced
from archimedes.control.matrix_checks import real_numbers, vector
from archimedes.errors import ShapeDtypeError
from archimedes.function import vmap
from archimedes.tree import struct
from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["GainSchedule", "schedule_gains"]


@struct
class GainSchedule:
    """Gains on a grid of operating points: linear in between, constant beyond the edges.

    Points and gains are leaves, with derivatives.

    Parameters
    ----------
    points : tuple of arrays
        Grid: an increasing vector for each scheduling variable.
    gains : tree
        Gains at the grid points. Each leaf has one leading axis for each scheduling variable; a
        number holds everywhere.

    Examples
    --------
    >>> schedule = GainSchedule(([100.0, 200.0],), np.array([[[1.0]], [[3.0]]]))
    >>> schedule.at(150.0)
    array([[2.]])
    """

    points: tuple[Array, ...]
    gains: Tree

    def __post_init__(self) -> None:
        axes = self.points if isinstance(self.points, (tuple, list)) else (self.points,)
        points = tuple(check_increasing(axis, f"points[{k}]") for k, axis in enumerate(axes))
        shape = tuple(axis.shape[0] for axis in points)
        leaves, treedef = tree.flatten(self.gains)
        leaves = [real_numbers(leaf, "gains") for leaf in leaves]
        for leaf, path in zip(leaves, treedef.paths("gains")):
            if leaf.shape and leaf.shape[: len(shape)] != shape:
                raise ShapeDtypeError(
                    f"{path} must begin with the shape of the grid {shape}, got {leaf.shape}"
                )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "gains", treedef.unflatten(leaves))

    def weights(self, *values: Scalar) -> Array:
        """Return the weight of each grid point. The sum is one.

        Parameters
        ----------
        *values
            Scheduling values, one for each axis of the grid.
        """
        if len(values) != len(self.points):
            raise TypeError(f"give {len(self.points)} scheduling values, got {len(values)}")
        weights: Any = 1.0
        for axis, value in zip(self.points, values):
            weights = np.expand_dims(weights, -1) * _tents(axis, value)
        return weights

    def at(self, *values: Scalar) -> Tree:
        """Return the gains at scheduling values.

        Parameters
        ----------
        *values
            Scheduling values, one for each axis of the grid.
        """
        weights = np.reshape(self.weights(*values), (-1,))

        def mix(leaf: Array) -> Array:
            if not leaf.shape:
                return leaf
            shape = leaf.shape[len(self.points) :]
            flat = np.reshape(leaf, (weights.shape[0], math.prod(shape)))
            return np.reshape(weights @ flat, shape)

        return tree.map(mix, self.gains)

    def step(self, state: Tree, input: tuple[Any, Array]) -> tuple[Tree, Array]:
        """Return the state, and the scheduled gain matrix times a vector.

        Parameters
        ----------
        state : tree
            State of the block. It has none, so that any value will do, and is returned.
        input : pair
            The scheduling values (a number or a tuple), and the vector to multiply.
        """
        values, error = input
        values = values if isinstance(values, (tuple, list)) else (values,)
        return state, self.at(*values) @ error


def _tents(axis: Array, value: Scalar) -> Array:
    value = np.minimum(np.maximum(value, axis[0]), axis[-1])
    gaps = axis[1:] - axis[:-1]
    part = np.minimum(np.maximum((value - axis[:-1]) / gaps, 0.0), 1.0)  # of each gap passed
    one = np.ones(1)
    return np.concatenate([one, part]) - np.concatenate([part, 0.0 * one])


def schedule_gains(design: Callable[..., Any], *points: ArrayLike) -> GainSchedule:
    """Design gains at all points of a grid, as one native batch.

    Parameters
    ----------
    design : callable
        Function of one number for each axis of the grid, which returns the gains, any tree. Plain
        NumPy: linearize, solve a Riccati equation, and so on.
    *points
        Grid: an increasing vector for each scheduling variable.

    Examples
    --------
    >>> from archimedes.control import lqr
    >>> def design(k):
    ...     return lqr(np.array([[0.0, 1.0], [-k, 0.0]]), [[0.0], [1.0]], np.eye(2), [[1.0]])[0]
    >>> schedule = schedule_gains(design, [1.0, 4.0, 9.0])
    >>> schedule.at(1.0).round(4)
    array([[0.4142, 1.3522]])
    """
    check_callable(design, "design", "of one number for each axis")
    if not points:
        raise TypeError("schedule_gains: give points, an increasing vector for each axis")
    axes = [vector(axis, f"points[{k}]") for k, axis in enumerate(points)]
    mesh = np.meshgrid(*axes, indexing="ij")
    designs = vmap(design)(*[np.reshape(part, (-1,)) for part in mesh])
    shape = tuple(axis.shape[0] for axis in axes)
    gains = tree.map(lambda leaf: np.reshape(leaf, (*shape, *leaf.shape[1:])), designs)
    for leaf in tree.leaves(gains):
        if not is_traced(leaf) and not np.all(np.isfinite(leaf)):
            bad = np.argwhere(~np.isfinite(leaf))[0][: len(axes)]
            where = [float(axis[k]) for axis, k in zip(axes, bad)]
            raise ValueError(f"design gives gains that are not finite at {where}")
    return GainSchedule(tuple(axes), gains)
