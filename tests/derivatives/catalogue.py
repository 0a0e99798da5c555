"""Every derivative case: name, function, point and oracle."""

from __future__ import annotations

from . import array_cases, elementwise_cases, region_cases
from .cases import Case

__all__ = ["CASES", "REGION_CASES"]

REGION_CASES: list[Case] = region_cases.CASES
CASES: list[Case] = [*elementwise_cases.CASES, *array_cases.CASES, *REGION_CASES]
