"""The F-16 in a scene: a fighter with a cropped delta wing, after its proportions.

Axes: x forward, y right, z down, origin at the centre of mass. Length 15 m, span 9.4 m; sections
read off three-view drawings by eye, fit for looking at and for nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.environment.tables import read_tables
from archimedes.function import vmap
from archimedes.typing import Tree
from archimedes.vehicles.f16.f16 import F16
from archimedes.viewer import actors
from archimedes.viewer.meshes import box, ellipse, loft, mirror, moved, panel, revolve
from archimedes.viewer.scene import Body, Camera, Chart, Mesh, Scene

GREY, DARK, PALE = "#98a2b0", "#6f7a89", "#b4bcc8"
GLASS, METAL, BLACK = "#2c3a4a", "#545a63", "#23272e"

#: Sections of hull, canopy and inlet, profile of a missile.
SHAPE = read_tables("archimedes.vehicles.f16", "f16_shape.toml")
#: How the moving surfaces turn: about a point and an axis in body axes, by an input and its sign.
HINGES = {
    "elevator": ((-5.0, 0.0, 0.05), (0.0, 1.0, 0.0), "elevator", -1.0),
    "aileron_right": ((-2.05, 2.3, -0.02), (0.0, 1.0, 0.0), "aileron", -1.0),
    "aileron_left": ((-2.05, -2.3, -0.02), (0.0, 1.0, 0.0), "aileron", 1.0),
    "rudder": ((-5.9, 0.0, -2.0), (0.42, 0.0, 1.0), "rudder", -1.0),
}


def add_to_scene(plane: F16, scene: Scene, flight: actors.Flight) -> None:
    """Add an F-16: its surfaces move and forces are drawn where the inputs are known."""
    placing = flight.place(plane.world, scene)
    camera = Camera("chase", flight.name, azimuth=160.0, elevation=14.0, distance=34.0)
    actors.add_vehicle(scene, flight, fighter(), camera, ghosts=12.0)
    u, x, batch = flight.inputs, flight.trajectory.x, flight.batch
    state = plane.world.flight(flight.t, flight.motion)
    others = None if batch is None else plane.world.flight(batch.t, actors.motion_of(batch.x))

    def spread(values: Any) -> dict[str, Any]:
        return {} if others is None else actors.band(scene.ghosts[-1].t, values(others))

    altitude = spread(lambda f: f.alt)
    scene.charts.append(Chart("altitude", flight.t, state.alt, units="m", **altitude))
    if u is not None:
        add_surfaces(scene, flight, u)
        out = vmap(plane.outputs)(flight.t, x, u)
        force = vmap(plane.forces)(flight.t, x, u)[0]
        thrust = np.asarray(out.thrust)[:, None] * np.array([1.0, 0.0, 0.0])
        weight = float(plane.mass) * actors.STANDARD_GRAVITY
        scale = 9.0 / weight
        down = placing.R.T @ np.array([0.0, 0.0, -weight])
        down_B = np.asarray(flight.motion.att.as_matrix()) @ np.asarray(down)
        scene.arrows += [
            flight.arrow("aerodynamic force", force - thrust, "#3d8bd4", scale),
            flight.arrow("thrust", thrust, "#f5a623", scale),
            flight.arrow("weight", down_B, "#8e63ce", scale),
        ]
        scene.charts += [
            Chart("airspeed", flight.t, out.airspeed, units="m/s"),
            Chart("load factor", flight.t, out.load_factor, units="g"),
            Chart("angle of attack", flight.t, np.rad2deg(out.alpha), units="deg"),
        ]
    bank = spread(lambda f: np.rad2deg(np.unwrap(f.rpy[..., 0], axis=1)))
    scene.charts.append(Chart("bank", flight.t, actors.degrees(state.rpy)[:1], units="deg", **bank))
    scene.charts.append(Chart("heading", flight.t, actors.degrees(state.rpy)[2:], units="deg"))


def add_surfaces(scene: Scene, flight: actors.Flight, u: Tree) -> None:
    """Add elevator, ailerons and rudder, turned as the inputs say: trailing edge down, left."""
    for name, parts in fighter_surfaces().items():
        point, axis, control, sign = HINGES[name]
        meshes = [moved(mesh, -np.asarray(point)) for mesh in parts]
        unit = np.asarray(axis) / np.linalg.norm(axis)
        half = 0.5 * np.broadcast_to(sign * np.asarray(getattr(u, control)), flight.t.shape)
        q = np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * unit], axis=1)
        label = f"{flight.name}: {name.replace('_', ', ')}"
        scene.bodies.append(Body(label, meshes, flight.t, point, q, parent=flight.name))


def fighter(color: str = GREY) -> list[Mesh]:
    """Return what of the aircraft does not move."""
    hull = loft([ellipse(x, w, h, z, 24, p) for x, w, h, z, p in SHAPE.HULL], color=color)
    canopy = loft([ellipse(x, w, h, z, 16) for x, w, h, z in SHAPE.CANOPY], color=GLASS)
    inlet = loft([ellipse(x, w, h, z, 20, p) for x, w, h, z, p in SHAPE.INLET], color=DARK)
    mouth = loft(
        [ellipse(3.62, 0.47, 0.19, 0.86, 20, 3), ellipse(3.4, 0.4, 0.12, 0.86, 20, 3)],
        color=BLACK,
    )
    nozzle = revolve([[-5.1, 0.66], [-5.9, 0.62], [-6.5, 0.5]], color=METAL)
    flame = revolve([[-6.45, 0.42], [-6.53, 0.40]], color=BLACK)
    probe = revolve([[8.5, 0.05], [9.5, 0.015]], 8, color=BLACK)
    wing = panel((1.55, 0.85, -0.02, 4.35), (-1.5, 4.6, -0.02, 1.05), (0.045, 0.03), color=PALE)
    strake = panel((4.4, 0.45, -0.1, 3.4), (1.2, 1.25, -0.03, 0.9), (0.025, 0.06), color=PALE)
    ventral = panel((-2.9, 0.5, 0.6, 1.3), (-3.4, 0.95, 1.35, 0.7), (0.05, 0.05), color=DARK)
    rail = moved(box([2.9, 0.09, 0.09], color=METAL), (-1.7, 4.66, -0.02))
    missile = moved(revolve(SHAPE.MISSILE, 10, color="#dfe4ea"), (-1.5, 4.78, 0.0))
    fins = [moved(box([0.28, 0.02, 0.5], color="#c8ced6"), (-2.9, 4.78, 0.0))]
    fin = panel((-2.6, 0.0, -0.65, 3.2), (-5.05, 0.0, -3.2, 1.25), (0.04, 0.03), color=color)
    root = moved(box([2.6, 0.26, 0.36], color=DARK), (-4.6, 0.0, -0.72))
    pairs = mirror([wing, strake, ventral, rail, missile, *fins])
    return [hull, canopy, inlet, mouth, nozzle, flame, probe, fin, root, *pairs]


def fighter_surfaces() -> dict[str, list[Mesh]]:
    """Return the moving surfaces by name, each in axes that start at its hinge."""
    tail = panel((-4.1, 0.72, 0.05, 2.2), (-6.0, 2.75, 0.12, 0.85), (0.035, 0.03), color=PALE)
    flap = panel((-1.95, 0.95, -0.02, 0.82), (-2.02, 3.4, -0.02, 0.62), (0.05, 0.05), color=DARK)
    rudder = panel((-5.35, 0.0, -0.9, 0.75), (-5.95, 0.0, -2.95, 0.42), (0.05, 0.05), color=DARK)
    return {
        "elevator": mirror([tail]),
        "aileron_right": [flap],
        "aileron_left": mirror([flap])[1:],
        "rudder": [rudder],
    }
