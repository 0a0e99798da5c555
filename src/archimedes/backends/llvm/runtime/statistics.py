"""What is known of a kernel's making."""

from __future__ import annotations

from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Statistics"]


@lazy_dataclass(frozen=True)
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
