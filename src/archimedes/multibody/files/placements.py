"""Where parts are in files of robots: <origin> elements, attributes of three numbers, turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.function.reproducible import cos, matmul, norm, sin
from archimedes.multibody.models.turns import Turn, rotation_of
from archimedes.numbers_in_text import number
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.xml_elements import Element

__all__ = ["by_angles", "by_quaternion", "guarded", "inertia_in_body", "origin", "triple"]


def origin(element: Element) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3, 3), child to parent, and position (3,) of an <origin>."""
    found = element.find("origin")
    if found is None:
        return np.eye(3), np.zeros(3)
    if "quat_xyzw" in found.attributes:
        if "rpy" in found.attributes:
            raise found.error("<origin> has rpy and quat_xyzw; one of them is the rotation")
        R = by_quaternion(found.attributes["quat_xyzw"].split(), found, "quat_xyzw")
    else:
        R = by_angles(triple(found, "rpy", [0.0, 0.0, 0.0]))
    return R, np.array(triple(found, "xyz", [0.0, 0.0, 0.0]))


def by_angles(angles: Sequence[float]) -> np.ndarray:
    """Return the rotation (3, 3), child to parent, of roll, pitch and yaw about fixed axes."""
    c, s = cos(np.array(angles)).tolist(), sin(np.array(angles)).tolist()
    X, Y, Z = (rotation_of(Turn(k, c[k], s[k])) for k in range(3))
    return matmul(Z, Y, X)


def by_quaternion(words: list[str], element: Element, what: str) -> np.ndarray:
    """Return the rotation (3, 3), child to parent, of a quaternion written x y z w."""
    x, y, z, w = ([number(word, element, what) for word in words] + [np.nan] * 4)[:4]
    size = norm([w, x, y, z])
    if len(words) != 4 or abs(size - 1.0) > 1e-3:
        raise element.error(f"{what} {' '.join(words)!r} must be four numbers x y z w of length 1")
    return quaternion_to_dcm(np.array([w, x, y, z]) / size).T


def inertia_in_body(R: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return an inertia (3, 3) given in axes that R turns into the body's, exactly symmetric."""
    turned = J if np.all(np.eye(3) == R) else matmul(R, J, R.T)
    return 0.5 * turned + 0.5 * turned.T


def triple(element: Element, key: str, default: list[float]) -> list[float]:
    """Return an attribute of three numbers."""
    if key not in element.attributes:
        return default
    words = element.attributes[key].split()
    if len(words) != 3:
        raise element.error(f"{key}={element.attributes[key]!r} must be three numbers")
    return [number(word, element, key) for word in words]


def guarded(element: Element, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a call gives; its errors get the place in the file."""
    try:
        return call(*args, **kwargs)
    except ValueError as error:
        raise element.error(str(error)) from None
