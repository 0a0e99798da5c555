"""Errors of states as vectors, and the functions of a model in these errors.

States may be vectors or trees of numbers, and hold attitudes. The error of a number is a
difference. The error of an attitude is a small rotation e (3,) in body axes,
q = q_estimate * exp(e), so that covariances have no redundant direction and attitudes stay
attitudes (F. L. Markley, J. L. Crassidis, "Fundamentals of spacecraft attitude determination and
control", 2014, 6.2; J. Sola, arXiv:1711.02508, section 6).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.control.matrix_checks import real_numbers
from archimedes.errors import ShapeDtypeError
from archimedes.function import jac
from archimedes.spatial import Quaternion, so3_right_jacobian
from archimedes.spatial.attitudes.attitude_base import AttitudeBase

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar, Tree


#: Further arguments of a model's functions.
Args: TypeAlias = tuple[Any, ...]


def _is_attitude(node: object) -> bool:
    return isinstance(node, AttitudeBase)


class Chart:
    """Vectors (n,): errors are differences."""

    #: Whether errors are those of the numbers themselves.
    plain = True

    def __init__(self, x: Tree) -> None:
        self.size = int(x.shape[0])

    def plus(self, x: Tree, e: Array) -> Any:
        """Return the state that differs from x by an error e (n,)."""
        return x + e

    def minus(self, x: Tree, base: Tree) -> Any:
        """Return the error (n,) of x as seen from a base."""
        return x - base

    def check_state(self, value: Tree, name: str) -> Tree:
        """Return a state that a function of the user gave."""
        return _check_vector(value, name, self.size)

    def mean(self, weights: Array, states: list[Any]) -> Any:
        """Return the mean of states with weights that sum to one."""
        return weights @ np.stack(states)

    def transport(self, shift: Array) -> Array | None:
        """Return the matrix that takes errors about x to those about plus(x, shift), or None."""
        return None


class TreeChart(Chart):
    """Trees of numbers and attitudes: an error has an entry per number, three per attitude."""

    plain = False

    def __init__(self, x: Tree) -> None:
        self.nodes, self.treedef = tree.flatten(x, is_leaf=_is_attitude)
        sizes = [3 if _is_attitude(v) else math.prod(np.shape(v)) for v in self.nodes]
        for node, path in zip(self.nodes, self.treedef.paths("x")):
            if _is_attitude(node) and np.ndim(node.array) != np.ndim(type(node).identity().array):
                raise ShapeDtypeError(f"{path} must be one attitude, not a batch of them")
        ends = list(itertools.accumulate(sizes, initial=0))
        self.parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.size = ends[-1]

    def _nodes(self, x: Tree) -> list[Any]:
        return tree.leaves(x, is_leaf=_is_attitude)

    def plus(self, x: Tree, e: Array) -> Any:
        """Return the state that differs from x by an error e (n,)."""
        moved = []
        for node, part in zip(self._nodes(x), self.parts):
            if _is_attitude(node):
                turned = node.mul(Quaternion.exp(e[part]))
                moved.append(turned.normalize() if hasattr(turned, "normalize") else turned)
            else:
                moved.append(node + np.reshape(e[part], np.shape(node)))
        return self.treedef.unflatten(moved)

    def minus(self, x: Tree, base: Tree) -> Any:
        """Return the error (n,) of x as seen from a base."""
        rows = []
        for node, origin in zip(self._nodes(x), self._nodes(base)):
            if _is_attitude(node):
                rows.append(origin.as_quat().inv().mul(node).log())
            else:
                rows.append(np.reshape(node - origin, (-1,)))
        return np.concatenate(rows)

    def check_state(self, value: Tree, name: str) -> Tree:
        """Return a state that a function of the user gave."""
        nodes, treedef = tree.flatten(value, is_leaf=_is_attitude)
        difference = self.treedef.difference(treedef, "x")
        shapes = [tuple(map(np.shape, tree.leaves(v))) for v in (self.nodes, nodes)]
        if difference is not None or shapes[0] != shapes[1]:
            raise ShapeDtypeError(
                f"{name}(t, x, *args) must return a state with the structure of x: "
                f"{difference or f'shapes {shapes[1]} in place of {shapes[0]}'}"
            )
        return treedef.unflatten([v if _is_attitude(v) else v * 1.0 for v in nodes])

    def mean(self, weights: Array, states: list[Any]) -> Any:
        """Return the mean of states with weights that sum to one.

        Two passes: the mean error about the first state, then about that mean.
        """
        base = states[0]
        for _ in range(2):
            base = self.plus(base, weights @ np.stack([self.minus(x, base) for x in states]))
        return base

    def transport(self, shift: Array) -> Array | None:
        """Return the matrix that takes errors about x to those about plus(x, shift), or None.

        For attitudes it is the right Jacobian of exp (Sola, 287 and 183).
        """
        turns = [k for k, node in enumerate(self.nodes) if _is_attitude(node)]
        if not turns:
            return None
        G = np.zeros((self.size, self.size))
        for k, part in enumerate(self.parts):
            block = np.eye(part.stop - part.start)
            G[part, part] = so3_right_jacobian(shift[part]) if k in turns else block
        return G


def chart_of(x: Tree, size: int | None = None) -> tuple[Chart, Any]:
    """Return the chart of a state and the state, as an array where it is a vector.

    >>> chart, x = chart_of({"att": Quaternion.identity(), "bias": np.zeros(3)})
    >>> chart.size
    6
    """
    is_array = hasattr(x, "dtype") or (
        isinstance(x, (list, tuple)) and all(np.ndim(v) == 0 and not tree.is_struct(v) for v in x)
    )
    if is_array:
        x = real_numbers(x, "x")
        if np.ndim(x) != 1 or (size is not None and x.shape != (size,)):
            wanted = "(n,)" if size is None else f"({size},), the size of Q"
            raise ShapeDtypeError(f"x must be a vector of shape {wanted}, got {np.shape(x)}")
        if not is_traced(x) and not np.all(np.isfinite(x)):
            raise ValueError(f"x must hold finite numbers, got {x}: did the model diverge before?")
        return Chart(x), x
    leaves, treedef = tree.flatten(x)
    x = treedef.unflatten([real_numbers(v, p) for v, p in zip(leaves, treedef.paths("x"))])
    chart = TreeChart(x)
    if size is not None and chart.size != size:
        raise ShapeDtypeError(
            f"x has errors of {chart.size} numbers (3 for an attitude), the covariances {size}"
        )
    return chart, x


def ravel_measurement(value: Tree) -> Any:
    """Return the numbers of a measurement that is a struct or a dict, in order; else itself."""
    is_tree = isinstance(value, Mapping) or tree.is_struct(type(value))
    return tree.ravel(value)[0] if is_tree else value


def _check_vector(value: ArrayLike, name: str, size: int) -> Any:
    """Return the vector that a user's function must have returned."""
    numbers = real_numbers(value, f"what {name} returned")
    if np.shape(numbers) != (size,):
        raise ShapeDtypeError(
            f"{name}(t, x, *args) must return a vector of shape ({size},), got {np.shape(numbers)}"
        )
    return numbers


def measure(func: Callable[..., Any], t: Scalar, x: Tree, args: Args, size: int) -> Any:
    """Return the measurement (size,) that a model expects; a single one may be a number."""
    return _check_vector(_as_vector(ravel_measurement(func(t, x, *args))), "obs", size)


def _as_vector(value: Any) -> Any:
    return np.reshape(value, (1,)) if np.ndim(value) == 0 else value


def jacobian(
    func: Callable[..., Any], chart: Chart, t: Scalar, x: Tree, args: Args, state: bool
) -> Any:
    """Return the Jacobian of dyn (``state``) or obs in the error of the state."""
    if chart.plain:
        J = jac(func, argnums=1)(t, x, *args)
        return J if np.ndim(J) == 2 else J[None]
    return _jacobian(np.zeros(chart.size), t, x, tuple(args), func, state)


def _along(e: Array, t: Scalar, x: Tree, args: Args, func: Callable[..., Any], state: bool) -> Any:
    chart, x = chart_of(x)
    moved = func(t, chart.plus(x, e), *args)
    return chart.minus(moved, func(t, x, *args)) if state else _as_vector(ravel_measurement(moved))


_jacobian = jac(_along, static_argnames=("func", "state"))
