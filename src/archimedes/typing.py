"""Names for annotations of users' functions."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

__all__ = ["ArrayLike", "NDArray", "Tree"]

#: Structs, containers, arrays and numbers, nested in any way.
Tree: TypeAlias = Any
ArrayLike = npt.ArrayLike
NDArray = npt.NDArray
