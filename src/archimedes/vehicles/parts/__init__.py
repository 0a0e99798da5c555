"""Parts that vehicles are made of: each a struct, used alone or in a whole."""

from __future__ import annotations

from archimedes.vehicles.parts.magnetorquers import Magnetorquers
from archimedes.vehicles.parts.reaction_wheels import ReactionWheels
from archimedes.vehicles.parts.thrusters import Thrusters

__all__ = ["Magnetorquers", "ReactionWheels", "Thrusters"]
