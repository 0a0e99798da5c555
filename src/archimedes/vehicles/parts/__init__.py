"""Parts that vehicles are made of: each a struct, used alone or in a whole."""

from __future__ import annotations

from archimedes.vehicles.parts.actuators import FirstOrderActuator, SecondOrderActuator
from archimedes.vehicles.parts.ground_contact import GroundContact
from archimedes.vehicles.parts.magnetorquers import Magnetorquers
from archimedes.vehicles.parts.mass_properties import MassProperties, Tank, combined, cylinder
from archimedes.vehicles.parts.reaction_wheels import ReactionWheels
from archimedes.vehicles.parts.rotors import Rotors
from archimedes.vehicles.parts.thrusters import Thrusters

__all__ = [
    "FirstOrderActuator",
    "GroundContact",
    "Magnetorquers",
    "MassProperties",
    "ReactionWheels",
    "Rotors",
    "SecondOrderActuator",
    "Tank",
    "Thrusters",
    "combined",
    "cylinder",
]
