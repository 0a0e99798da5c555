"""Checks that several kinds of elements share: identifiers, ranges, breakpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.xml_elements import Element, number

__all__ = ["increasing", "new_key", "optional_number", "range_of"]


def new_key(key: str, among: Any, element: Element, kind: str) -> str:
    """Return an identifier that nothing of its kind has yet."""
    if not key:
        raise element.error(f"{kind} is empty")
    if key in among:
        raise element.error(f"{kind} {key!r} is defined twice")
    return key


def optional_number(element: Element, name: str, default: Any) -> Any:
    """Return an attribute that is a number, or the default."""
    text = element.attributes.get(name)
    return default if text is None else number(text, element, f"{name} of <{element.tag}>")


def range_of(element: Element, low: str, high: str) -> tuple[float, float]:
    """Return the bounds that two attributes give, infinite without them."""
    least, most = optional_number(element, low, -np.inf), optional_number(element, high, np.inf)
    if least > most:
        raise element.error(f"{low} {least} is above {high} {most}")
    return least, most


def increasing(points: np.ndarray, element: Element, what: str) -> tuple[float, ...]:
    """Return breakpoints, which must increase."""
    if not np.all(np.diff(points) > 0):
        raise element.error(f"{what} must increase strictly")
    return tuple(points.tolist())
