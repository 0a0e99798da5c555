"""The satellite in a scene: a box with wings of solar cells, the Earth turning below."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archimedes.vehicles.satellite.satellite import Satellite
from archimedes.viewer.actors import Flight, Placing, add_vehicle, attitude_chart, rate_chart
from archimedes.viewer.meshes import box, cylinder, moved, revolve
from archimedes.viewer.scene import Camera, Chart, Earth, Mesh, Scene

GOLD, CELLS, FRAME, WHITE, DARK = "#c9973c", "#24408e", "#aab2bd", "#e9edf2", "#3a4049"


def add_to_scene(satellite: Satellite, scene: Scene, flight: Flight) -> None:
    """Add a satellite above the Earth, in inertial axes."""
    angle, rate = float(satellite.angle), float(satellite.omega)
    flight.placing = Placing(np.eye(3), np.zeros(3), earth=Earth(rate=rate, angle=angle))
    scene.earth = scene.earth or flight.placing.earth
    meshes = satellite_meshes((float(satellite.mass) / 300.0) ** (1.0 / 3.0))
    camera = Camera("follow", flight.name, azimuth=-60.0, elevation=25.0)
    body = add_vehicle(scene, flight, meshes, camera, least_pixels=90.0)
    camera.distance = 5.0 * body.radius
    scene.ghosts += flight.ghosts(2.0 * body.radius)
    momenta = np.asarray(flight.trajectory.x.h).T
    labels = [str(k + 1) for k in range(len(momenta))]
    scene.charts += [
        attitude_chart(flight),
        rate_chart(flight),
        Chart("momenta of the wheels", flight.t, momenta, labels, "N m s"),
    ]


def satellite_meshes(size: float = 1.0) -> list[Mesh]:
    """Return a box of an edge `size` in m with two wings along y and a dish towards x."""
    parts = [
        box([1.0, 1.0, 1.0], color=GOLD),
        moved(box([0.86, 0.86, 0.05], color=WHITE), [0, 0, 0.52]),
        moved(box([0.86, 0.86, 0.05], color=WHITE), [0, 0, -0.52]),
        revolve([[0.5, 0.05], [0.72, 0.06]], 10, color=FRAME),
        revolve([[0.72, 0.1], [0.78, 0.26], [0.9, 0.4], [0.88, 0.4]], 24, color=WHITE),
        revolve([[0.8, 0.02], [1.05, 0.02]], 8, color=DARK),
    ]
    for side in (-1.0, 1.0):
        boom = cylinder(0.03, 0.5, axis=[0, 1, 0], n=8, color=FRAME)
        parts.append(moved(boom, [0, side * 0.72, 0]))
        for k in range(3):
            middle = np.array([0.0, side * (1.45 + 1.0 * k), 0.0])
            parts.append(moved(box([0.98, 0.94, 0.035], color=FRAME), middle))
            for row in (-0.25, 0.25):
                cells = box([0.44, 0.84, 0.05], color=CELLS)
                parts.append(moved(cells, middle + np.array([row, 0.0, 0.0])))
    return [replace(mesh, vertices=size * mesh.vertices) for mesh in parts]
