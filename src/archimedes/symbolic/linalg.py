"""Linear algebra on small traced matrices: unrolled where small, Solve regions where not."""

from __future__ import annotations
