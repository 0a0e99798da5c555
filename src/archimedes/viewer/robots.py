"""Robots in a scene: a body per link, placed by forward kinematics.

A link has the shapes of the robot's file, or rods from joint to joint where there are none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.checks import as_array, concrete
from archimedes.display import for_reading
from archimedes.function import vmap
from archimedes.multibody.algorithms.configurations import neutral
from archimedes.multibody.algorithms.kinematics import world_poses
from archimedes.multibody.algorithms.links import links_at
from archimedes.multibody.models.model import Model
from archimedes.multibody.parts.geometry import Shape, Surface
from archimedes.multibody.parts.height_field import HeightField
from archimedes.multibody.systems.dynamics import State
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion
from archimedes.viewer.actors import R_UP_NED, Flight, Placing, add_actor
from archimedes.viewer.mesh_files import (
    MOST_TRIANGLES,
    MeshFileError,
    Part,
    largest_part,
    look_of,
    read_parts,
    scale_part,
    simplify,
)
from archimedes.viewer.meshes import box, capsule, cylinder, moved, rod, sphere, squares_of_edges
from archimedes.viewer.scene import COLORS, Body, Camera, Chart, Ground, Mesh, Scene, numbers

JOINT = "#2f353d"


def link_poses(model: Model, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (m, n, 3, 3) to the world's axes and positions (m, n, 3) of all links."""

    def one(q: Any) -> tuple[Any, Any]:
        poses = world_poses(model, links_at(model, q).X)
        return np.stack([X.R for X in poses]), np.stack([X.p for X in poses])

    R, p = vmap(one)(as_array(q))
    return np.asarray(R), np.asarray(p)


def still(model: Model, state: Any = None) -> Trajectory:
    """Return a trajectory that stays in one state, by default near zero and where the file is."""
    q = np.asarray(start(model) if state is None else state.q, dtype=float)
    if q.shape != (model.nq,):
        raise ValueError(f"view: the state of a robot must have q ({model.nq},), got {q.shape}")
    return Trajectory(np.zeros(2), State(np.stack([q, q]), np.zeros((2, model.nv))))


def start(model: Model) -> np.ndarray:
    """Return the configuration nearest to neutral within limits; bases are where the file is."""
    q = np.clip(neutral(model), np.asarray(model.lower), np.asarray(model.upper))
    for link in model.links:
        if link.kind.nv == 6 and not link.mimic:
            q[link.q : link.q + 7] = np.asarray(model.rest)[link.q : link.q + 7]
    return q


@add_actor.register
def _(model: Model, scene: Scene, flight: Flight) -> None:
    x = getattr(flight.trajectory.x, "robot", flight.trajectory.x)
    R, p = link_poses(model, numbers(x.q, f"{flight.name}: q", (None, model.nq)))
    down = float(np.asarray(model.gravity)[2]) > 0.0
    placing = flight.placing = Placing(R_UP_NED if down else np.eye(3), np.zeros(3), Ground(0.0))
    q = np.asarray(Quaternion.from_matrix(np.swapaxes(R, -1, -2)).array)
    known = concrete(p)  # None while a page's model is recorded, which looks at places alone
    reach = (
        1.0 if known is None else float(np.linalg.norm(known - known[:, :1], axis=2).max()) + 0.2
    )
    left_out: list[str] = []
    fixed, links = link_meshes(model, left_out)
    bodies = []
    for k, (link, meshes) in enumerate(zip(model.links, links)):
        name = f"{flight.name}: {link.body or link.joint}"
        pose = placing.points(p[:, k]), placing.attitudes(q[:, k])
        look: dict[str, Any] = {"trail": link.kind.nv == 6, "reach": reach, "framed": True}
        bodies.append(Body(name, meshes, flight.t, *pose, **look))
    if fixed:
        upright = placing.attitudes([1.0, 0.0, 0.0, 0.0])
        bodies.append(Body(f"{flight.name}: world", fixed, 0.0, [0, 0, 0], upright, reach=reach))
    scene.bodies += bodies
    scene.left_out += dict.fromkeys(left_out)
    if known is not None:
        place_ground_and_camera(model, scene, bodies)
    if len(flight.t) == 1 or flight.t[-1] > flight.t[0]:
        add_joint_charts(model, scene, flight, x)


def place_ground_and_camera(model: Model, scene: Scene, bodies: list[Body]) -> None:
    """Put the ground where nothing starts below it, and the camera where all of it is seen."""
    floats = _floats(model)
    low, high = box_around(bodies, 1 if floats else 9)
    size = float(np.linalg.norm(high - low))
    below = float(low[2]) if low[2] < -0.02 * size else 0.0
    scene.ground = scene.ground or Ground(below)
    look: dict[str, Any] = {"azimuth": -55.0, "elevation": 16.0, "distance": 1.45 * size}
    if floats:
        scene.camera = Camera("follow", bodies[0].name, **look)
    else:
        scene.camera = Camera("free", bodies[0].name, target=0.5 * (low + high), **look)


def box_around(bodies: list[Body], samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest coordinates (3,) of bodies at some times from the first on."""
    lows, highs = [], []
    for body in bodies:
        vertices = [mesh.vertices for mesh in body.meshes] or [np.zeros((1, 3))]
        points = np.concatenate(vertices)
        for k in np.linspace(0, len(body.t) - 1, min(samples, len(body.t))).astype(int):
            # The matrix of an attitude takes coordinates of the scene to the body's.
            seen = points @ np.asarray(Quaternion(body.attitude[k]).as_matrix()) + body.position[k]
            lows.append(seen.min(axis=0))
            highs.append(seen.max(axis=0))
    return np.min(lows, axis=0), np.max(highs, axis=0)


def _floats(model: Model) -> bool:
    return model.links[0].kind.nv == 6


#: What coordinates and velocities of joints are called, by their units in the model.
TITLES = {
    "rad": "joint angles", "m": "joint positions", "rad/s": "joint rates", "m/s": "joint speeds"
}  # fmt: skip
#: Joints in one chart: those that move most, by name.
MOST_LINES = 7


def add_joint_charts(model: Model, scene: Scene, flight: Flight, x: Any) -> None:
    """Add charts of the base's height, of the joints, and of their speeds."""
    if _floats(model):
        base = scene.body(f"{flight.name}: {model.links[0].body or model.links[0].joint}")
        scene.charts.append(Chart("height of the base", flight.t, base.position[:, 2], units="m"))
    for which in ("q", "v"):
        scene.charts += joint_charts(model, flight.t, getattr(x, which), which)


def joint_charts(model: Model, t: np.ndarray, values: Any, which: str) -> list[Chart]:
    """Return charts of coordinates ("q") or velocities ("v"), by joint: in deg and in m."""
    columns: dict[str, dict[str, int]] = {}
    for link in model.links:
        if link.mimic or link.kind.nv == 6:
            continue
        names = getattr(link.kind, f"{which}_names") or ("",)
        units = getattr(link.kind, f"{which}_units")
        for k, (name, unit) in enumerate(zip(names, units)):
            label = f"{link.joint}.{name}" if name else link.joint
            columns.setdefault(unit, {})[label] = getattr(link, which) + k
    charts = []
    for unit in [unit for unit in TITLES if unit in columns]:
        rows = {name: np.asarray(values)[:, k] for name, k in columns[unit].items()}
        most = list(rows)
        if len(t) > 1:
            most.sort(key=lambda name: -np.ptp(rows[name]))
        del most[MOST_LINES:]
        shown = [name for name in rows if name in most]
        few = f" ({len(shown)} of {len(rows)})" if len(shown) < len(rows) else ""
        read, unit_read = for_reading(np.stack([rows[name] for name in shown]), unit)
        charts.append(Chart(TITLES[unit] + few, t, read, shown, unit_read))
    return charts


def link_meshes(model: Model, left_out: list[str]) -> tuple[list[Mesh], list[list[Mesh]]]:
    """Return the meshes of what is fixed to the world, and those of each link in its axes.

    They are of the file, or rods to what a link carries. `left_out` gets a line for each mesh whose
    file cannot be shown.
    """
    shapes = shape_meshes(model, left_out)
    fixed = shapes.pop(-1, [])
    if shapes:
        return fixed, [shapes.get(k, []) for k in range(len(model.links))]
    positions, centers = np.asarray(model.positions), np.asarray(model.centers)
    reach = _reach(model)
    ends: list[list[Any]] = [[] for _ in model.links]
    for k, link in enumerate(model.links):
        if link.parent >= 0:
            ends[link.parent].append(positions[k])
    for frame, position in zip(model.frames, np.asarray(model.frame_positions)):
        if frame.link >= 0 and np.linalg.norm(position) > 1e-9:
            ends[frame.link].append(position)
    links = []
    for k, link in enumerate(model.links):
        points = [p for p in ends[k] if np.linalg.norm(p) > 1e-9]
        if not points and np.linalg.norm(centers[k]) > 1e-9:
            points = [2.0 * centers[k]]  # a rod whose middle is its centre of mass
        floating = link.parent < 0 and link.kind.nv == 6
        thick = 0.08 * reach
        meshes = [] if floating else [sphere(1.25 * thick, 16, color=JOINT)]
        color = COLORS[k % len(COLORS)]
        if floating:
            meshes += _trunk(points, model, k, thick)
        elif link.body:
            meshes += [rod(np.zeros(3), p, thick, color=color) for p in points]
        if link.body and not floating and not ends[k]:
            meshes.append(moved(sphere(0.9 * thick, 14, color=color), 2.0 * centers[k]))
        links.append(meshes)
    return fixed, links


def _trunk(points: list[Any], model: Model, k: int, thick: float) -> list[Mesh]:
    """Return the block for a floating base: over its joints, or with its inertia."""
    if len(points) >= 3:
        spread = np.abs(np.stack(points)).max(axis=0)
        size = 2.0 * np.maximum(spread, 0.9 * thick) + [1.6 * thick, 0.2 * thick, 0.8 * thick]
    else:
        squares = squares_of_edges(np.asarray(model.inertias)[k], np.asarray(model.masses)[k])
        size = np.sqrt(np.maximum(squares, 1e-4))
    front = [0.5 * size[0], 0.0, 0.0]
    return [
        box(size, color="#d7dde5"),
        moved(box([0.12 * size[0], 0.5 * size[1], 0.5 * size[2]], color=JOINT), front),
    ]


def _reach(model: Model) -> float:
    """Return a typical length of this robot in m."""
    lengths = np.linalg.norm(np.concatenate([model.positions, model.frame_positions]), axis=1)
    some = lengths[lengths > 1e-6]
    return float(np.median(some)) if some.size else 0.5


def shape_meshes(model: Model, left_out: list[str]) -> dict[int, list[Mesh]]:
    """Return the shapes to look at that the robot's file has, by link, in the link's axes.

    Bodies that are welded to others are frames of these; what stands on the ground is of link -1.
    Meshes whose file cannot be shown are left out, and named in `left_out`. If there are very many
    triangles, the largest meshes are made coarser.
    """
    numbers = {frame.name: k for k, frame in enumerate(model.frames)}
    parts_of = functools.cache(read_shape)
    parts: list[tuple[Part, Shape]] = []
    meshes: dict[int, list[Mesh]] = {}

    def add(solid: Mesh, shape: Shape) -> None:
        if shape.body not in numbers:
            meshes.setdefault(-1, []).append(moved(solid, shape.position, shape.rotation))
            return
        k = numbers[shape.body]
        R, p = np.asarray(model.frame_rotations)[k], np.asarray(model.frame_positions)[k]
        on_body = moved(solid, shape.position, shape.rotation)
        meshes.setdefault(model.frames[k].link, []).append(moved(on_body, p, R))

    for shape in model.geometry:
        if shape.role != "visual" or shape.body not in (*numbers, "world"):
            continue
        if shape.kind in SOLIDS:
            add(replace(SOLIDS[shape.kind](shape.size), **look_of(shape.color)), shape)
        elif isinstance(shape.surface, HeightField):
            add(Mesh(*shape.surface.triangles(), **look_of(shape.color)), shape)
        elif shape.kind == "mesh":
            try:
                known = parts_of(shape.file, shape.surface, shape.size)
                parts += [(part, shape) for part in known]
            except MeshFileError as error:
                left_out.append(str(error))
    most = largest_part([len(part.triangles) for part, _ in parts], MOST_TRIANGLES)
    coarse: dict[int, tuple[Any, Any]] = {}  # legs may share their meshes
    for part, shape in parts:
        if id(part) not in coarse:
            coarse[id(part)] = simplify(part.vertices, part.triangles, most)
        add(Mesh(*coarse[id(part)], **look_of(part.color or shape.color)), shape)
    return meshes


def read_shape(file: str | None, surface: Surface | None, scale: tuple[float, ...]) -> list[Part]:
    """Return the triangles of a mesh about its own origin."""
    if surface is not None:
        parts = [Part(surface.vertices, surface.triangles)]
    else:
        parts = read_parts(file or "")
    return [scale_part(part, scale) for part in parts]


def _ellipsoid(size: Sequence[float]) -> Mesh:
    ball = sphere(1.0)
    return replace(ball, vertices=ball.vertices * np.asarray(size, dtype=float))


SOLIDS: dict[str, Callable[[Sequence[float]], Mesh]] = {
    "box": box,
    "sphere": lambda size: sphere(size[0]),
    "cylinder": lambda size: cylinder(size[0], size[1]),
    "capsule": lambda size: capsule(size[0], size[1]),
    "ellipsoid": _ellipsoid,
}
