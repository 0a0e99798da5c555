"""A satellite: its model, its parameters, its scene."""

from __future__ import annotations

from archimedes.vehicles.satellite.satellite import Satellite

__all__ = ["Satellite"]
