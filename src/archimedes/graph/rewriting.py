"""Graph to Graph: a program written anew node by node, in the bodies of its regions too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.graph.regions.base import Region
from archimedes.graph.walk import Outputs, Walk

__all__ = ["Emit", "rewrite"]

#: ``emit(dst, i, operands)`` returns what takes the place of node i on operands in ``dst``.
Emit = Callable[[Graph, int, tuple[int, ...]], int]
Emitter = Callable[[Graph], Emit]


class _Rewriting(Walk):
    """Writes the operations by another hand, and rewrites bodies in the same way."""

    def __init__(
        self, src: Graph, emitter: Emitter, known: dict[str, Graph], own: Sequence[bool] | None
    ) -> None:
        dst = Graph()
        self.own = own
        super().__init__(dst, src, [dst.input(dtype) for dtype in src.input_dtypes])
        self.emit, self.emitter, self.known = emitter(src), emitter, known

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        return self.emit(self.dst, i, operands)

    def region(self, i: int, region: Region) -> Outputs:
        bodies = [rewrite(body, self.emitter, self.known, self.own) for body in region.bodies]
        if isinstance(region, Call) and region.copied:
            return inline(self.dst, bodies[0], self.moved(region).inputs)
        return self.dst.region(self.moved(region).with_bodies(bodies)).tolist()


def rewrite(
    src: Graph,
    emitter: Emitter,
    known: dict[str, Graph] | None = None,
    own: Sequence[bool] | None = None,
) -> Graph:
    """Return the live part of a program with its operations put down by another hand.

    ``emitter(graph)`` is asked for each graph (``src`` and every body in it) and returns the
    function that writes its operations (by op, those of ``own``; others are copied). All inputs
    stay. ``known`` holds bodies done already.
    Derivative rules are left out: they have done their work, and are no part of a kernel; bodies
    that were calls for their sake alone are copied to where they are called.
    """
    known = {} if known is None else known
    found = known.get(src.digest())
    if found is not None:
        return found
    walk = _Rewriting(src, emitter, known, own)
    dst = walk.program()
    known[src.digest()] = dst
    return dst
