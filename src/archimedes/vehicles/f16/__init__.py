"""The F-16: tables, aerodynamics, engine, the whole aircraft, an autopilot."""

from __future__ import annotations

from archimedes.vehicles.f16.aerodynamics import F16Aerodynamics, F16Engine
from archimedes.vehicles.f16.autopilot import CircleGuidance, F16Autopilot
from archimedes.vehicles.f16.f16 import F16

__all__ = ["F16", "CircleGuidance", "F16Aerodynamics", "F16Autopilot", "F16Engine"]
