"""Robots in a scene: a body per link, placed by forward kinematics.

A link has the shapes of the robot's file, or rods from joint to joint where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.function import vmap
from archimedes.multibody.algorithms.kinematics import world_poses
from archimedes.multibody.algorithms.links import links_at
from archimedes.multibody.models.model import Model
from archimedes.multibody.parts.geometry import Shape
from archimedes.spatial import Quaternion
from archimedes.viewer import meshes as mesh_files
from archimedes.viewer.actors import R_UP_NED, Flight, Placing, add_actor, degrees
from archimedes.viewer.meshes import box, capsule, cylinder, moved, rod, sphere, squares_of_edges
from archimedes.viewer.scene import COLORS, Body, Camera, Chart, Ground, Mesh, Scene

JOINT = "#2f353d"


def link_poses(model: Model, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (m, n, 3, 3) to the world's axes and positions (m, n, 3) of all links."""

    def one(q: Any) -> tuple[Any, Any]:
        poses = world_poses(model, links_at(model, q).X)
        return np.stack([X.R for X in poses]), np.stack([X.p for X in poses])

    R, p = vmap(one)(np.asarray(q, dtype=float))
    return np.asarray(R), np.asarray(p)


@add_actor.register
def _(model: Model, scene: Scene, flight: Flight) -> None:
    x = getattr(flight.trajectory.x, "robot", flight.trajectory.x)
    R, p = link_poses(model, x.q)
    down = float(np.asarray(model.gravity)[2]) > 0.0
    placing = flight.placing = Placing(R_UP_NED if down else np.eye(3), np.zeros(3), Ground(0.0))
    scene.ground = scene.ground or placing.ground
    q = np.asarray(Quaternion.from_matrix(np.swapaxes(R, -1, -2)).array)
    reach = float(np.linalg.norm(p - p[:, :1], axis=2).max()) + 0.2
    left_out: list[str] = []
    for k, (link, meshes) in enumerate(zip(model.links, link_meshes(model, left_out))):
        name = f"{flight.name}: {link.body or link.joint}"
        pose = placing.points(p[:, k]), placing.attitudes(q[:, k])
        look: dict[str, Any] = {"trail": link.kind.nv == 6, "reach": reach, "framed": True}
        scene.bodies.append(Body(name, meshes, flight.t, *pose, **look))
    if left_out:
        more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        scene.note = f"{scene.note} Not shown: {left_out[0]}{more}".strip()
    seen = model.links[0 if _floats(model) else len(model.links) // 2]
    name = f"{flight.name}: {seen.body or seen.joint}"
    scene.camera = Camera("follow", name, azimuth=-55.0, elevation=16.0, distance=3.0 * reach)
    add_joint_charts(model, scene, flight, x)


def _floats(model: Model) -> bool:
    return model.links[0].kind.nv == 6


def add_joint_charts(model: Model, scene: Scene, flight: Flight, x: Any) -> None:
    """Add charts of angles and speeds of the joints, the first three."""
    names = [n for n in model.joint_names if model.q_slice(n).stop - model.q_slice(n).start == 1]
    shown = names[:3]
    if _floats(model):
        height = np.asarray(x.q)[:, 2]
        scene.charts.append(Chart("height of the base", flight.t, height, units="m"))
    if shown:
        angles = np.stack([np.asarray(x.q)[:, model.q_slice(n).start] for n in shown], axis=1)
        speeds = np.stack([np.asarray(x.v)[:, model.v_slice(n).start] for n in shown])
        scene.charts.append(Chart("joints", flight.t, degrees(angles), shown, "deg"))
        scene.charts.append(Chart("joint speeds", flight.t, np.rad2deg(speeds), shown, "deg/s"))


def link_meshes(model: Model, left_out: list[str]) -> list[list[Mesh]]:
    """Return the meshes of each link, in its axes: of the file, or rods to what it carries.

    `left_out` gets a line for each mesh whose file cannot be shown.
    """
    shapes = shape_meshes(model, left_out)
    if any(link >= 0 for link in shapes):
        return [shapes.get(k, []) for k in range(len(model.links))]
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
    return links


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

    Bodies that are welded to others are frames of these. Meshes whose file cannot be shown are
    left out, and named in `left_out`.
    """
    numbers = {frame.name: k for k, frame in enumerate(model.frames)}
    meshes: dict[int, list[Mesh]] = {}
    for shape in model.geometry:
        if shape.role != "visual" or shape.body not in numbers:
            continue
        solid = None
        try:
            solid = solid_of(shape)
        except mesh_files.MeshFileError as error:
            left_out.append(str(error))
        if solid is None:
            continue
        k = numbers[shape.body]
        R, p = np.asarray(model.frame_rotations)[k], np.asarray(model.frame_positions)[k]
        on_body = moved(solid, shape.position, shape.rotation)
        meshes.setdefault(model.frames[k].link, []).append(moved(on_body, p, R))
    return meshes


def solid_of(shape: Shape) -> Mesh | None:
    """Return a shape as a mesh about its own origin; None for what has no solid, as a plane."""
    if shape.kind == "mesh":
        if shape.surface is not None:
            return mesh_files.make_mesh(shape.surface.vertices, shape.surface.triangles, shape.size)
        return mesh_files.read_mesh(shape.file, shape.size) if shape.file else None
    make = SOLIDS.get(shape.kind)
    return make(shape.size) if make else None


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
