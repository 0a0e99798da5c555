"""What a search may choose: numbers and input signals within ranges, as points of a unit cube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_hold, check_whole
from archimedes.records import record
from archimedes.simulate.campaigns.distributions import Distribution, Uniform
from archimedes.simulate.problem.inputs import InputSeries
from archimedes.typing import Array, Tree

__all__ = ["PiecewiseInput"]

#: How near the ends of an unbounded distribution the search goes.
TAIL = 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseInput(Distribution):
    """An input signal of a search: constant or linear in pieces, within limits.

    The model gets an :class:`InputSeries`, a function of time.

    Parameters
    ----------
    low, high : float or array_like (n,)
        Limits of the input, or of each of n inputs.
    pieces : int
        Number of pieces of equal length.
    hold : {"zoh", "foh"}, optional
        ``"zoh"``, the default: constant in each piece. ``"foh"``: linear, with ``pieces + 1``
        corners.
    t_span : (float, float), optional
        Start and end of the signal in seconds. By default those of the simulation.

    Examples
    --------
    >>> import numpy as np
    >>> throttle = PiecewiseInput(0.0, 100.0, pieces=4, t_span=(0.0, 20.0))
    >>> float(throttle.series(throttle.draw(np.array([0.0, 0.5, 1.0, 0.25])))(7.0))
    50.0
    """

    low: Any
    high: Any
    pieces: int
    hold: str = "zoh"
    t_span: Any = None

    def __post_init__(self) -> None:
        check_whole(self.pieces, "PiecewiseInput: pieces", 1)
        check_hold(self.hold, "PiecewiseInput: hold")
        value = Uniform(self.low, self.high)  # checks the limits
        object.__setattr__(self, "shape", (self.corners, *value.shape))

    @property
    def corners(self) -> int:
        """Number of values of the signal."""
        return self.pieces + (self.hold == "foh")

    def quantile(self, p: Array) -> Any:
        """Return low + (high - low) p.

        Parameters
        ----------
        p : array
            Fractions, with the shape of the distribution.
        """
        low, high = np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)
        return low + (high - low) * p

    def times(self, t_span: Any = None) -> np.ndarray:
        """Return the times of the values.

        Parameters
        ----------
        t_span : (float, float), optional
            Start and end, where the signal itself has none.
        """
        span = self.t_span if self.t_span is not None else t_span
        if span is None:
            raise ValueError(
                "PiecewiseInput: how long is the signal? Give t_span=(start, end) to the input, or "
                "to falsify"
            )
        return np.linspace(float(span[0]), float(span[1]), self.pieces + 1)[: self.corners]

    def series(self, values: Array, t_span: Any = None) -> InputSeries:
        """Return the signal with given values.

        Parameters
        ----------
        values : array (corners, ...)
            Values of the pieces, or of the corners.
        t_span : (float, float), optional
            Start and end, where the signal itself has none.
        """
        times = self.times(t_span)
        if len(times) == 1:  # a constant: a series needs two samples
            times, values = np.array([times[0], times[0] + 1.0]), np.stack([values[0], values[0]])
        return InputSeries(times, values, self.hold)


@record
class SearchSpace:
    """Ranges as a box: the numbers that are free, and the arguments for points of a unit cube."""

    leaves: list[Any]
    treedef: Any
    t_span: Any = None

    @classmethod
    def of(cls, ranges: Tree, t_span: Any = None) -> SearchSpace:
        """Return the space of a tree of ranges and fixed values."""
        leaves, treedef = tree.flatten(ranges)
        for leaf, path in zip(leaves, treedef.paths("ranges")):
            if isinstance(leaf, type) and issubclass(leaf, Distribution):
                name = leaf.__name__
                raise TypeError(f"falsify: {path} is the class {name}: write {name}(...)")
            if isinstance(leaf, PiecewiseInput):
                leaf.times(t_span)
        space = cls(leaves, treedef, t_span)
        if not space.size:
            raise ValueError(
                "falsify: ranges leaves nothing to search: put arc.simulate.Uniform(low, high) or "
                "req.PiecewiseInput(low, high, pieces) where a value may vary. A pair of numbers "
                f"is two fixed numbers; got {ranges!r}"
            )
        return space

    @property
    def free(self) -> list[Distribution]:
        """The ranges among the leaves."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Distribution)]

    @property
    def size(self) -> int:
        """How many numbers are free."""
        return sum(leaf.uniforms for leaf in self.free)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limit of each coordinate: the cube, less the tails that have no end."""
        margins = [
            np.full(leaf.uniforms, 0.0 if isinstance(leaf, (Uniform, PiecewiseInput)) else TAIL)
            for leaf in self.free
        ]
        margin = np.concatenate(margins)
        return margin, 1.0 - margin

    def arguments(self, z: Array) -> Any:
        """Return the tree of arguments for a point of the cube."""
        values, start = [], 0
        for leaf in self.leaves:
            if isinstance(leaf, Distribution):
                value = leaf.draw(z[start : start + leaf.uniforms])
                start += leaf.uniforms
                if isinstance(leaf, PiecewiseInput):
                    value = leaf.series(value, self.t_span)
                values.append(value)
            else:
                values.append(leaf)
        return self.treedef.unflatten(values)

    def level(self, points: np.ndarray) -> np.ndarray:
        """Return points (n, d) with every input signal constant over its pieces."""
        parts, start = [], 0
        for leaf in self.free:
            part = points[:, start : start + leaf.uniforms]
            start += leaf.uniforms
            if isinstance(leaf, PiecewiseInput):
                rows = part.reshape(len(points), leaf.corners, -1)
                part = np.repeat(rows[:, :1], leaf.corners, axis=1).reshape(part.shape)
            parts.append(part)
        return np.concatenate(parts, axis=1)
