"""What is known of a kernel's making."""

from __future__ import annotations

from dataclasses import dataclass

from archimedes.backends.lowering.schedule import cost
from archimedes.graph.program import Graph

__all__ = ["Statistics", "why_slow"]


@dataclass(frozen=True)
class Statistics:
    """Figures about a kernel.

    ``nodes``: operations after expansion; ``code_bytes``: object code of all entries made so
    far; ``compile_seconds``: time to make them, cache or not; ``lanes``: instances computed at
    once in a batch; ``cached``: entries that came from disk.
    """

    nodes: int
    code_bytes: int
    compile_seconds: float
    lanes: int
    cached: int


def why_slow(graph: Graph) -> str:
    """Say why it takes long to compile a program."""
    return (
        f"it has {cost(graph, {}):,} operations, of which LLVM compiles some 20,000 per "
        "second. Shorter with operations on whole arrays, arc.vmap or arc.scan; code is kept "
        "on disk for the next time; backend='interpreter' starts at once"
    )
