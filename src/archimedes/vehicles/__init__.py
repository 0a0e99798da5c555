"""Vehicles: parts, the worlds they move in, and whole models."""

from __future__ import annotations

from archimedes.vehicles.f16 import F16, F16Aerodynamics, F16Engine
from archimedes.vehicles.flight_case import FlightCase, FlightRecord, fly
from archimedes.vehicles.multirotor import GeometricController, Multirotor, ring
from archimedes.vehicles.projectile import Projectile
from archimedes.vehicles.satellite import Satellite
from archimedes.vehicles.steady_flight import Linearization, Trim, linearize, trim
from archimedes.vehicles.surroundings import FlightState, Surroundings
from archimedes.vehicles.worlds import FlatEarth, RotatingEarth

__all__ = [
    "F16",
    "F16Aerodynamics",
    "F16Engine",
    "FlatEarth",
    "FlightCase",
    "FlightRecord",
    "FlightState",
    "GeometricController",
    "Linearization",
    "Multirotor",
    "Projectile",
    "RotatingEarth",
    "Satellite",
    "Surroundings",
    "Trim",
    "fly",
    "linearize",
    "ring",
    "trim",
]
