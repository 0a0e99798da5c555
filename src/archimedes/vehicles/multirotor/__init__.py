"""A multirotor with its controller, its parameters, its scene."""

from __future__ import annotations

from archimedes.vehicles.multirotor.multirotor import GeometricController, Multirotor, ring

__all__ = ["GeometricController", "Multirotor", "ring"]
