"""Sensors with seeded errors: noise comes from keys of `archimedes.random`, so runs repeat."""

from __future__ import annotations

from archimedes.vehicles.sensors.air_data import AirData
from archimedes.vehicles.sensors.navigation_sensors import Gnss, StarTracker
from archimedes.vehicles.sensors.triad_sensors import Imu, Magnetometer, TriadErrors

__all__ = ["AirData", "Gnss", "Imu", "Magnetometer", "StarTracker", "TriadErrors"]
