"""Transcendental functions as programs of exact primitives.

Each function is written once and runs on any provider of the primitives: eagerly on NumPy arrays,
or as nodes of a graph. No libm is called, so results are equal to the bit everywhere.
"""

from __future__ import annotations

from archimedes.graph.elementary.primitives import NUMPY
from archimedes.graph.elementary.table import ELEMENTARY, PROGRAMS, evaluate, in_float32
