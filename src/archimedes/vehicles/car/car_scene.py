"""The car in a scene."""

from __future__ import annotations

import numpy as np

from archimedes.vehicles.car.car import Car
from archimedes.viewer.actors import Flight, add_vehicle, attitude_chart
from archimedes.viewer.meshes import Y, box, cylinder, moved
from archimedes.viewer.scene import Camera, Chart, Mesh, Scene


def add_to_scene(car: Car, scene: Scene, flight: Flight) -> None:
    """Add a car."""
    flight.place(getattr(car, "world", None), scene)
    sizes = [float(getattr(car, name)) for name in ("front", "rear", "track", "height")]
    camera = Camera("chase", flight.name, azimuth=165.0, elevation=16.0, distance=14.0)
    add_vehicle(scene, flight, car_meshes(*sizes), camera, ghosts=2.0)
    motion = flight.motion
    scene.charts += [
        Chart("speed", flight.t, np.asarray(motion.v_B)[:, 0], units="m/s"),
        Chart("to the side", flight.t, np.asarray(motion.pos)[:, 1], units="m"),
        attitude_chart(flight),
    ]


def car_meshes(front: float, rear: float, track: float, height: float) -> list[Mesh]:
    """Return a car about its centre of mass: x forward, z down, wheels below the axles."""
    length, width = front + rear + 1.6, track + 0.25
    wheel = 0.32
    parts = [
        moved(box([length, width, 0.55], color="#c0392b"), [0.5 * (front - rear), 0, 0.0]),
        moved(box([0.52 * length, 0.86 * width, 0.5], color="#2b3440"), [-0.15, 0, -0.5]),
        moved(box([0.46 * length, 0.8 * width, 0.06], color="#c0392b"), [-0.15, 0, -0.77]),
    ]
    for x in (front, -rear):
        for y in (-0.5 * track, 0.5 * track):
            hub = np.array([x, y, height - wheel])
            parts.append(moved(cylinder(wheel, 0.22, axis=Y, color="#20242a"), hub))
            parts.append(moved(cylinder(0.6 * wheel, 0.235, axis=Y, color="#b8c0cc"), hub))
    return parts
