"""Where the parts of a URDF file are: its <origin> elements, and attributes of three numbers."""

from __future__ import annotations

import numpy as np

from archimedes.multibody.models.joints import turn
from archimedes.numbers_in_text import number
from archimedes.xml_elements import Element

__all__ = ["origin", "triple"]


def origin(element: Element) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3, 3), child to parent, and position (3,) of an <origin>."""
    found = element.find("origin")
    if found is None:
        return np.eye(3), np.zeros(3)
    roll, pitch, yaw = triple(found, "rpy", [0.0, 0.0, 0.0])
    X, Y, Z = (turn(a, x) for a, x in zip(np.eye(3).tolist(), (roll, pitch, yaw), strict=True))
    return Z @ Y @ X, np.array(triple(found, "xyz", [0.0, 0.0, 0.0]))


def triple(element: Element, key: str, default: list[float]) -> list[float]:
    """Return an attribute of three numbers."""
    if key not in element.attributes:
        return default
    words = element.attributes[key].split()
    if len(words) != 3:
        raise element.error(f"{key}={element.attributes[key]!r} must be three numbers")
    return [number(word, element, key) for word in words]
