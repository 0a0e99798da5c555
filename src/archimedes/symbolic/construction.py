"""Arrays made from traced values: linspace, vander, fill_diagonal and their like."""

from __future__ import annotations
