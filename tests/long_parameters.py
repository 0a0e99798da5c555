"""Parameters of tests of which only some are tried by default; the rest by ``pytest -m long``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["long_after", "long_but"]


def long_after(quick: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only the first `quick` are tried by default."""
    return [v if k < quick else _long(v) for k, v in enumerate(values)]


def long_but(quick: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only those in `quick` are tried by default."""
    tried = list(quick)
    return [v if v in tried else _long(v) for v in values]


def _long(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.long)
