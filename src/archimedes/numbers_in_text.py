"""Numbers as they are written in the text of a file."""

from __future__ import annotations

import math
import re

import numpy as np

from archimedes.xml_elements import Element

__all__ = ["number", "numbers"]

#: Python's float would also take 1_000, inf, nan and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number(text: str, of: Element, what: str) -> float:
    """Return the finite number that a text is; `of` and `what` say where it stands."""
    text = text.strip()
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise of.error(f"{what} is {text[:40]!r}, which is not a finite number")
    return value


def numbers(of: Element, what: str) -> np.ndarray:
    """Return the numbers in the text of an element, separated by commas or white space."""
    words = of.text.replace(",", " ").split()
    if not words:
        raise of.error(f"{what} holds no numbers")
    return np.array([number(word, of, f"{what}: entry {k}") for k, word in enumerate(words, 1)])
