"""A rocket in stages with its guidance, its parameters, its scene."""

from __future__ import annotations

from archimedes.vehicles.rocket.rocket import Rocket, Stage, cylindrical_stage, two_stage_rocket
from archimedes.vehicles.rocket.rocket_guidance import OrbitGuidance

__all__ = ["OrbitGuidance", "Rocket", "Stage", "cylindrical_stage", "two_stage_rocket"]
