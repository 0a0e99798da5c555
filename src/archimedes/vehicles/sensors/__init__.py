"""Sensors with seeded errors: noise comes from keys of `archimedes.random`, so runs repeat."""

from __future__ import annotations

from archimedes.vehicles.sensors.air_data import AirData
from archimedes.vehicles.sensors.gnss import Gnss
from archimedes.vehicles.sensors.imu import Imu
from archimedes.vehicles.sensors.magnetometer import Magnetometer
from archimedes.vehicles.sensors.star_tracker import StarTracker
from archimedes.vehicles.sensors.triad_errors import TriadErrors

__all__ = ["AirData", "Gnss", "Imu", "Magnetometer", "StarTracker", "TriadErrors"]
