"""Vehicles: parts, the worlds they move in, and whole models."""

from __future__ import annotations

from archimedes.vehicles import dave_ml
from archimedes.vehicles.car import Car, Tyre
from archimedes.vehicles.f16 import F16, CircleGuidance, F16Aerodynamics, F16Autopilot, F16Engine
from archimedes.vehicles.flight_case import FlightCase, FlightRecord, fly, ground_event
from archimedes.vehicles.multirotor import GeometricController, Multirotor, ring
from archimedes.vehicles.projectile import Projectile
from archimedes.vehicles.rocket import OrbitGuidance, Rocket, Stage, two_stage_rocket
from archimedes.vehicles.satellite import Satellite
from archimedes.vehicles.steady_flight import Trim, linearize, trim
from archimedes.vehicles.vehicle_files import load, parameter_file
from archimedes.vehicles.worlds import FlatEarth, FlightState, RotatingEarth, Surroundings

__all__ = [
    "F16",
    "Car",
    "CircleGuidance",
    "F16Aerodynamics",
    "F16Autopilot",
    "F16Engine",
    "FlatEarth",
    "FlightCase",
    "FlightRecord",
    "FlightState",
    "GeometricController",
    "Multirotor",
    "OrbitGuidance",
    "Projectile",
    "Rocket",
    "RotatingEarth",
    "Satellite",
    "Stage",
    "Surroundings",
    "Trim",
    "Tyre",
    "dave_ml",
    "fly",
    "ground_event",
    "linearize",
    "load",
    "parameter_file",
    "ring",
    "trim",
    "two_stage_rocket",
]
