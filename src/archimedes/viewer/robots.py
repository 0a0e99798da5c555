"""Robots in a scene: a body per link, placed by forward kinematics."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import vmap
from archimedes.multibody.algorithms.links import coordinates_of, poses_of
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import Pose, compose
from archimedes.spatial import Quaternion
from archimedes.viewer.placing import R_UP_NED, Placing
from archimedes.viewer.scene import Body, Camera, Chart, Ground, Scene
from archimedes.viewer.shapes.robots import link_meshes
from archimedes.viewer.vehicles import Flight, add_actor, degrees

__all__ = ["link_poses"]


def link_poses(model: Model, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (m, n, 3, 3) to the world's axes and positions (m, n, 3) of all links."""

    def one(q: Any) -> tuple[Any, Any]:
        found: list[Pose] = []
        for link, pose in zip(model.links, poses_of(model, coordinates_of(model, q))):
            found.append(pose if link.parent < 0 else compose(found[link.parent], pose))
        return np.stack([X.R for X in found]), np.stack([X.p for X in found])

    R, p = vmap(one)(np.asarray(q, dtype=float))
    return np.asarray(R), np.asarray(p)


@add_actor.register
def _(model: Model, scene: Scene, flight: Flight) -> None:
    x = getattr(flight.trajectory.x, "robot", flight.trajectory.x)
    R, p = link_poses(model, x.q)
    down = float(np.asarray(model.gravity)[2]) > 0.0
    place = flight.placing = Placing(R_UP_NED if down else np.eye(3), np.zeros(3), Ground(0.0))
    scene.ground = scene.ground or place.ground
    q = np.asarray(Quaternion.from_matrix(np.swapaxes(R, -1, -2)).array)
    reach = float(np.linalg.norm(p - p[:, :1], axis=2).max()) + 0.2
    left_out: list[str] = []
    for k, (link, meshes) in enumerate(zip(model.links, link_meshes(model, left_out))):
        scene.bodies.append(
            Body(
                f"{flight.name}: {link.body or link.joint}",
                meshes,
                flight.t,
                place.points(p[:, k]),
                place.attitudes(q[:, k]),
                trail=link.kind.nv == 6,
                reach=reach,
                framed=True,
            )
        )
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
