"""The F-16: tables, aerodynamics, engine, and the whole aircraft."""

from __future__ import annotations

from archimedes.vehicles.f16.aerodynamics import F16Aerodynamics
from archimedes.vehicles.f16.engine import F16Engine
from archimedes.vehicles.f16.f16 import F16

__all__ = ["F16", "F16Aerodynamics", "F16Engine"]
