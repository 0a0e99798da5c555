"""Demonstrations: each flies something, checks it, and leaves plots and a page to look at."""

from __future__ import annotations

from archimedes.demos.catalogue import DEMOS, Demo, run_demo

__all__ = ["DEMOS", "Demo", "run_demo"]
