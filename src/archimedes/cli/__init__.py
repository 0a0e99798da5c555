"""The command ``archimedes``, and ``python -m archimedes``."""

from __future__ import annotations

from archimedes.cli.commands import main

__all__ = ["main"]
