"""A spacecraft that meets another: structs of this package, match, async, decorators."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes import struct
from archimedes.spatial import Quaternion, RigidBody

MU = 3.986004418e14


@struct
class Relative:
    r_L: Any
    v_L: Any


@arc.compile
def lvlh_axes(p_I, v_I):
    z_I = -p_I / np.linalg.norm(p_I)
    h_I = np.cross(p_I, v_I)
    y_I = -h_I / np.linalg.norm(h_I)
    x_I = np.cross(y_I, z_I)
    return np.stack([x_I, y_I, z_I])


def relative_state(p_I, v_I, p_target_I, v_target_I) -> Relative:
    R_LI = lvlh_axes(p_target_I, v_target_I)
    dp_I = p_I - p_target_I
    n = np.linalg.norm(np.cross(p_target_I, v_target_I)) / (p_target_I @ p_target_I)
    w_LI_L = np.array([0.0, -n, 0.0])
    r_L = R_LI @ dp_I
    v_L = R_LI @ (v_I - v_target_I) - np.cross(w_LI_L, r_L)
    return Relative(r_L=r_L, v_L=v_L)


def clohessy_wiltshire(rel: Relative, n, u_L):
    _, _, z = rel.r_L
    vx, _, vz = rel.v_L
    drift_L = np.array([2 * n * vz, 0.0, 3 * n * n * z - 2 * n * vx])
    return Relative(rel.v_L, drift_L + u_L)


class Chaser(RigidBody):
    thrust: float = 20.0

    def command(self, x: RigidBody.State, force_L, R_LI):
        force_I = R_LI.T @ force_L
        force_B = x.att.rotate(force_I)
        return np.clip(force_B, -self.thrust, self.thrust)

    def dynamics(self, t, x, force_B, moment_B, m, J_B):
        g_I = -MU * x.pos / np.linalg.norm(x.pos) ** 3
        g_B = x.att.rotate(g_I)
        u = RigidBody.Input(F_B=force_B + m * g_B, M_B=moment_B, m=m, J_B=J_B)
        return super().dynamics(t, x, u)

    def momentum(self, x, J_B):
        h_B = J_B @ x.w_B
        h_I = x.att.rotate(h_B, inverse=True)
        return h_I


def point_at(mode, rel: Relative, q_LI: Quaternion, sun_I):
    match mode:
        case "target":
            axis_L = -rel.r_L / np.linalg.norm(rel.r_L)
        case "sun":
            axis_L = q_LI.rotate(sun_I)
        case _:
            axis_L = np.array([1.0, 0.0, 0.0])
    return axis_L


async def approach(sensor, chaser, x, R_LI, gain):
    async for rel in sensor:
        wanted_L = -gain * rel.r_L - 2.0 * gain * rel.v_L
        if (distance := np.linalg.norm(rel.r_L)) < 1.0:
            wanted_L = 0.1 * wanted_L / distance
        yield await chaser.fire(chaser.command(x, wanted_L, R_LI))
