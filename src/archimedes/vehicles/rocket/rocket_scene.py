"""The rocket in a scene: its stages, which fall away, and its payload."""

from __future__ import annotations

import numpy as np

from archimedes.function import vmap
from archimedes.vehicles.rocket.rocket import Rocket
from archimedes.viewer.actors import Flight, add_vehicle, degrees
from archimedes.viewer.meshes import X, cylinder, moved, revolve, rod
from archimedes.viewer.scene import Body, Camera, Chart, Mesh, Scene

WHITE, DARK = "#e9edf2", "#3a4049"
BANDS = ("#e8743b", "#3d8bd4")
#: The attitude of a part in the axes of the rocket.
UPRIGHT = (1.0, 0.0, 0.0, 0.0)
#: Where a stage is that has been left behind, in m: out of sight.
GONE = 1e9


def add_to_scene(rocket: Rocket, scene: Scene, flight: Flight) -> None:
    """Add a rocket, a body for each stage."""
    placing = flight.place(rocket.world, scene)
    x, t = flight.trajectory.x, flight.t
    # The origin of the motion is the centre of mass, which moves along the rocket.
    com = np.asarray(vmap(rocket.mass_properties)(x).com)
    attached = np.asarray(x.attached)
    last = float(np.asarray(rocket.payload.com)[0])
    lengths = stage_lengths(rocket, last)
    # A part of the user's own need not know its cross-section.
    area = getattr(rocket.aero, "area", None)
    radius = 0.05 * last if area is None else float(np.sqrt(np.asarray(area) / np.pi))
    top = max(float(s.engine) + length for s, length in zip(rocket.stages, lengths))
    mode = "follow" if placing.earth is None else "overview"
    camera = Camera(mode, flight.name, azimuth=-60.0, elevation=20.0)
    add_vehicle(scene, flight, [], camera, least_pixels=70.0, reach=0.6 * last)
    nose = rocket_nose(top, max(2.0 * (last - top), 3.0 * radius), radius)
    parts = {"payload": (nose, -com)}
    for k, stage in enumerate(rocket.stages):
        meshes = rocket_stage(float(stage.engine), lengths[k], radius, BANDS[k % 2])
        parts[f"stage {k + 1}"] = (meshes, np.where(attached[:, k, None] > 0.5, -com, GONE))
    for name, (meshes, position) in parts.items():
        label = f"{flight.name}: {name}"
        scene.bodies.append(Body(label, meshes, t, position, UPRIGHT, parent=flight.name))
    state = rocket.world.flight(t, flight.motion)
    scale, units = (1.0, "m") if placing.earth is None else (1e-3, "km")
    speed = np.linalg.norm(np.asarray(state.v_NED), axis=1)
    propellant = 1e-3 * np.asarray(x.propellant).T
    labels = [f"stage {k + 1}" for k in range(len(propellant))]
    scene.charts += [
        Chart("altitude", t, np.asarray(state.alt) * scale, units=units),
        Chart("speed over ground", t, speed, units="m/s"),
        Chart("pitch", t, degrees(state.rpy)[1:2], units="deg"),
        Chart("propellant", t, propellant, labels, "t"),
    ]


def stage_lengths(rocket: Rocket, last: float) -> list[float]:
    """Return the length in m of each stage: that of its tank, or as far as the next engine."""
    ends = [float(stage.engine) for stage in rocket.stages[1:]] + [last]
    return [
        float(stage.tank.length) + 1.0
        if hasattr(stage.tank, "length")
        else end - float(stage.engine)
        for stage, end in zip(rocket.stages, ends)
    ]


def rocket_stage(bottom: float, length: float, radius: float, band: str) -> list[Mesh]:
    """Return a stage along x from `bottom` m up, with its engine below and a band of colour."""
    top = bottom + length
    bell = 0.85 * radius
    bell_profile = [
        [bottom, 0.28 * bell],
        [bottom - 0.25 * bell, 0.4 * bell],
        [bottom - 1.2 * bell, bell],
    ]
    return [
        revolve([[bottom, radius], [top, radius]], 32, color=WHITE),
        revolve([[top - 0.35, 1.012 * radius], [top, 1.012 * radius]], 32, color=DARK),
        revolve([[bottom, 1.012 * radius], [bottom + 0.5, 1.012 * radius]], 32, color=band),
        revolve(bell_profile, 24, color=DARK),
    ]


def rocket_nose(bottom: float, length: float, radius: float) -> list[Mesh]:
    """Return the ogive on top."""
    s = np.linspace(0.0, 1.0, 9)
    profile = np.stack([bottom + length * s, radius * np.sqrt(np.maximum(1.0 - s**1.7, 0.0))], 1)
    return [revolve(profile, 32, color="#d9dee5")]


def landing_legs(radius: float, length: float, count: int = 4) -> list[Mesh]:
    """Return legs about the tail at x = 0, spread out."""
    parts = []
    for angle in 2.0 * np.pi * (np.arange(count) + 0.5) / count:
        out = np.array([0.0, np.cos(angle), np.sin(angle)])
        start, end = 0.9 * radius * out + length * X, (radius + 0.75 * length) * out - 0.45 * X
        parts.append(rod(start, end, 0.09 * radius + 0.02, color=DARK))
        parts.append(moved(cylinder(0.22 * radius, 0.06, axis=X, n=14, color=DARK), end))
    return parts
