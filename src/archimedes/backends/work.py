"""How much work a program is, roughly: what decides when to compile it and when to share it out."""

from __future__ import annotations

from archimedes.graph.program import Graph

__all__ = ["EVERYTHING", "operations"]

#: More instances, or rounds of a loop, than there ever are.
EVERYTHING = 2**62
#: How often a bounded loop is assumed to run.
ROUNDS = 100


def operations(graph: Graph, rounds: int = ROUNDS) -> int:
    """Count the nodes of a graph and of the bodies in it: roughly what one run costs.

    A loop with a bound is taken to run ``rounds`` times, or as often as it may if that is less.
    """

    def body(inner: Graph) -> int:
        return operations(inner, rounds)

    return len(graph) + sum(region.work(body, rounds) for region in graph.regions.values())
