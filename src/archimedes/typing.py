"""Names for annotations of users' functions."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

__all__ = ["Array", "ArrayLike", "Matrix", "NDArray", "Quat", "Scalar", "Tree", "Vec3", "Vector"]

#: Structs, containers, arrays and numbers, nested in any way.
Tree: TypeAlias = Any
#: What `np.asarray` makes an array of: ``def f(x: ArrayLike) -> NDArray[np.float64]``.
ArrayLike = npt.ArrayLike
#: An array of a dtype: ``NDArray[np.float64]``.
NDArray = npt.NDArray
#: An array of numbers of any shape, or a traced array.
Array: TypeAlias = npt.NDArray[Any]
#: A number, or an array of numbers where many are computed at once: shape ``(...)``.
Scalar: TypeAlias = float | npt.NDArray[Any]
#: A vector ``(..., n)``, a vector ``(..., 3)``, a quaternion ``(..., 4)`` (scalar first), a matrix
#: ``(..., m, n)``.
Vector: TypeAlias = npt.NDArray[Any]
Vec3: TypeAlias = npt.NDArray[Any]
Quat: TypeAlias = npt.NDArray[Any]
Matrix: TypeAlias = npt.NDArray[Any]
