"""What commands answer: data as JSON, and errors for the person who typed."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["CommandError", "print_json"]


class CommandError(Exception):
    """A command cannot be carried out; the text says why, for the person who typed it."""


def print_json(data: Any) -> None:
    """Print plain data on the standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False))
