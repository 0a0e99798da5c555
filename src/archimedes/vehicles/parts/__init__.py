"""Parts that vehicles are made of: each a struct, used alone or in a whole."""

from __future__ import annotations

from archimedes.vehicles.parts.actuators import FirstOrderActuator, SecondOrderActuator
from archimedes.vehicles.parts.attitude_control import Magnetorquers, ReactionWheels, Thrusters
from archimedes.vehicles.parts.ground_contact import GroundContact
from archimedes.vehicles.parts.mass_properties import MassProperties, Tank, combined, cylinder
from archimedes.vehicles.parts.rotors import Rotors

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
