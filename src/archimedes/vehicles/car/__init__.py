"""A car: its model, its parameters, its scene."""

from __future__ import annotations

from archimedes.vehicles.car.car import Car, Tyre

__all__ = ["Car", "Tyre"]
