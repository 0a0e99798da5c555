"""Code of programs with longer tables, kept in memory: it is used again for other data."""

from __future__ import annotations

import threading
from collections import OrderedDict

__all__ = ["KEPT", "clear", "code", "remember"]

#: Programs whose code is kept.
KEPT = 64
_made: OrderedDict[str, bytes] = OrderedDict()
_lock = threading.Lock()


def code(key: str) -> bytes | None:
    """Return the code with a key, if it was made lately."""
    return _made.get(key)


def remember(key: str, made: bytes) -> None:
    """Keep code under a key; the oldest goes."""
    with _lock:
        _made[key] = made
        _made.move_to_end(key)
        while len(_made) > KEPT:
            _made.popitem(last=False)


def clear() -> None:
    """Forget all of it."""
    with _lock:
        _made.clear()
