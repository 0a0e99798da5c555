"""Constant tables read at computed indices."""

from __future__ import annotations

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.elements import element

__all__ = ["lookup"]


def lookup(f: Function, table: np.ndarray, dtype: int, index: str) -> str:
    """Read a constant table at an index clamped to it; lanes read one by one."""
    return element(f, f.module.looked_up(table, dtype), len(table), index)
