"""Pictures of the examples: each is drawn from what its script leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

__all__ = ["PICTURES"]

#: By the name of the example: a function of its variables that returns a figure.
PICTURES: dict[str, Callable[[SimpleNamespace], Any]] = {}
