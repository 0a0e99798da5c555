"""Names for annotations of users' functions."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

__all__ = ["ArrayLike", "NDArray", "Tree"]

#: Structs, containers, arrays and numbers, nested in any way.
Tree: TypeAlias = Any
#: What `np.asarray` makes an array of: ``def f(x: ArrayLike) -> NDArray[np.float64]``.
ArrayLike = npt.ArrayLike
#: An array of a dtype: ``NDArray[np.float64]``.
NDArray = npt.NDArray
