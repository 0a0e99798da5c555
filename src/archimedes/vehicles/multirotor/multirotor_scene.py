"""The multirotor in a scene."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.typing import ArrayLike
from archimedes.vehicles.multirotor.multirotor import Multirotor
from archimedes.viewer.actors import STANDARD_GRAVITY, Flight, add_vehicle, attitude_chart
from archimedes.viewer.meshes import X, Z, box, capsule, cylinder, moved, rod, sphere
from archimedes.viewer.scene import Camera, Chart, Mesh, Scene

CARBON, ORANGE, LIGHT = "#343a43", "#e8743b", "#c9d0d9"


def add_to_scene(drone: Multirotor, scene: Scene, flight: Flight) -> None:
    """Add a multirotor, with an arrow for the thrust of each rotor."""
    flight.place(drone.world, scene)
    positions = np.asarray(drone.rotors.positions)
    camera = Camera("follow", flight.name, azimuth=-120.0, elevation=22.0)
    # Its path crosses itself close to the camera: a curtain below it would hide the vehicle.
    options: dict[str, Any] = {"curtain": False, "least_pixels": 40.0}
    body = add_vehicle(scene, flight, multirotor_meshes(positions), camera, **options)
    scene.ghosts += flight.ghosts(1.6 * body.radius)
    altitude = Chart("altitude", flight.t, body.position[:, 2], units="m")
    scene.charts += [altitude, attitude_chart(flight)]
    # A simpler model, of the motion alone, can be shown too.
    if hasattr(flight.trajectory.x, "speeds"):
        add_rotors(drone, scene, flight, body.radius)


def add_rotors(drone: Multirotor, scene: Scene, flight: Flight, radius: float) -> None:
    """Add an arrow for the thrust of each rotor, and a chart of the speeds."""
    speeds = np.asarray(flight.trajectory.x.speeds)
    thrusts = np.asarray(drone.rotors.thrust) * speeds**2
    scale = 5e-4 * radius * speeds.shape[1] / (float(drone.mass) * STANDARD_GRAVITY)
    for k, position in enumerate(np.asarray(drone.rotors.positions)):
        up = -thrusts[:, k, None] * np.array([0.0, 0.0, 1.0])
        thrust = flight.arrow(f"rotor {k + 1}", 1e3 * up, ORANGE, scale, "N")
        thrust.origin = position
        scene.arrows.append(thrust)
    labels = [str(k + 1) for k in range(speeds.shape[1])]
    scene.charts.append(Chart("rotor speeds", flight.t, speeds.T, labels, "rad/s"))


def multirotor_meshes(positions: ArrayLike) -> list[Mesh]:
    """Return a frame with an arm, a motor and a disc for each rotor at `positions` (n, 3)."""
    hubs = np.asarray(positions, dtype=float)
    reach = float(np.linalg.norm(hubs, axis=1).max())
    parts = [
        moved(capsule(0.16 * reach, 0.34 * reach, axis=X, color=LIGHT), [0, 0, -0.03 * reach]),
        moved(box([0.4 * reach, 0.22 * reach, 0.12 * reach], color=CARBON), [0, 0, 0.12 * reach]),
        moved(sphere(0.07 * reach, 14, color="#1d2127"), [0.34 * reach, 0, 0.08 * reach]),
    ]
    gap = float(np.linalg.norm(hubs - np.roll(hubs, 1, axis=0), axis=1).min())
    for hub in hubs:
        color = ORANGE if hub[0] > 0.0 else CARBON
        parts.append(rod([0, 0, 0], hub, 0.045 * reach, color=color))
        motor = cylinder(0.09 * reach, 0.16 * reach, n=16, color=CARBON)
        parts.append(moved(motor, hub - 0.06 * reach * Z))
        disc = cylinder(0.44 * gap, 0.012 * reach, n=36, color="#9fb4cc", opacity=0.35)
        parts.append(moved(disc, hub - 0.16 * reach * Z))
    for side in (-1.0, 1.0):
        y = 0.28 * reach * side
        z = 0.42 * reach
        parts.append(rod([-0.4 * reach, y, z], [0.4 * reach, y, z], 0.025 * reach))
        for x in (-0.22 * reach, 0.22 * reach):
            parts.append(rod([x, 0.4 * y, 0.1 * reach], [x, y, z], 0.02 * reach))
    return parts
