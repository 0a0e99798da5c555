"""Keeping attitudes on their manifold.

A struct in the state whose class has a ``normalize()`` method (quaternions, rotation matrices,
Rodrigues parameters, a user's own) is replaced by its normalised self after each accepted step
and at each output. Between these points a step is an ordinary one in coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.simulate.problem.state_layout import Layout
from archimedes.tree import TreeDef

__all__ = ["projection"]

Projection = Callable[[Any], Any]


def _places(node: TreeDef, first: int) -> list[tuple[TreeDef, int]]:
    """Outermost nodes below ``node`` that can normalise themselves, with their first leaf."""
    if callable(getattr(node.kind.cls, "normalize", None)):
        return [(node, first)]
    found = []
    for child in node.children:
        found += _places(child, first)
        first += child.num_leaves
    return found


def projection(layout: Layout) -> Projection | None:
    """Return the function x (n,) -> x (n,) that normalises, or None if nothing in x can.

    >>> import numpy as np
    >>> from archimedes.simulate.problem.state_layout import layout_of
    >>> projection(layout_of(np.zeros(3))) is None
    True
    """
    places = _places(layout.treedef, 0)
    if not places:
        return None
    sizes = [math.prod(shape) for shape in layout.shapes]
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()

    def project(x: Any) -> Any:
        parts, at = [], 0
        for node, first in places:
            last = first + node.num_leaves
            start, stop = starts[first], starts[last]
            own = Layout(node, layout.shapes[first:last])
            parts += [x[at:start], own.pack(own.unpack(x[start:stop]).normalize())]
            at = stop
        return np.concatenate([*parts, x[at:]])

    return project
