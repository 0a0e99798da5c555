"""Attitudes stay on their manifold; the promise for a long tumble."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import solve_ode
from archimedes.spatial import ModifiedRodrigues, Quaternion, RigidBody

J = np.diag([1.0, 2.0, 3.0])


def tumble(t, x):
    free = RigidBody.Input(F_B=np.zeros(3), M_B=np.zeros(3), m=1.0, J_B=J)
    return RigidBody.dynamics(t, x, free)


def tumbling():
    return RigidBody.State(
        pos=np.zeros(3),
        att=Quaternion([1.0, 0.0, 0.0, 0.0]),
        v_B=np.zeros(3),
        w_B=np.array([0.01, 3.0, 0.02]),
    )


def test_a_thousand_seconds_with_defaults():
    t = np.linspace(0.0, 1000.0, 1001)
    traj = solve_ode(tumble, (0.0, 1000.0), tumbling(), t_eval=t)
    assert traj.success
    assert np.abs(np.linalg.norm(traj.x.att.array, axis=1) - 1.0).max() < 1e-12
    energy = 0.5 * np.einsum("ti,ij,tj->t", traj.x.w_B, J, traj.x.w_B)
    assert np.abs(energy / energy[0] - 1.0).max() < 1e-6
    # Angular momentum in inertial axes is constant: attitude and rates belong together.
    momentum = np.array(
        [Quaternion(q).as_matrix().T @ J @ w for q, w in zip(traj.x.att.array, traj.x.w_B)]
    )
    assert np.abs(momentum - momentum[0]).max() < 1e-5


@arc.struct
class Spin:
    att: Quaternion


def spin(t, x):
    return Spin(x.att.kinematics(np.array([0.3, -0.2, 1.0]), baumgarte=0.0))


def test_projection_can_be_turned_off():
    x0 = Spin(Quaternion([1.0, 0.0, 0.0, 0.0]))
    on = solve_ode(spin, (0.0, 50.0), x0, rtol=1e-4, atol=1e-4)
    off = solve_ode(spin, (0.0, 50.0), x0, rtol=1e-4, atol=1e-4, project=False)
    norms = lambda traj: np.abs(np.linalg.norm(traj.x.att.array, axis=1) - 1.0).max()
    assert norms(on) < 1e-15
    assert norms(off) > 1e-6
    times = np.linspace(0.0, 50.0, 97)
    assert np.abs(np.linalg.norm(on(times).att.array, axis=1) - 1.0).max() < 1e-15


def test_rodrigues_parameters_change_their_chart():
    # A turn about one axis: the parameters are tan(angle / 4), switched at half a turn.
    @arc.struct
    class Turning:
        att: ModifiedRodrigues

    def turn(t, x):
        return Turning(x.att.kinematics(np.array([0.0, 0.0, 1.0])))

    x0 = Turning(ModifiedRodrigues(np.zeros(3)))
    t = np.linspace(0.0, 20.0, 101)
    traj = solve_ode(turn, (0.0, 20.0), x0, t_eval=t)
    assert np.linalg.norm(traj.x.att.array, axis=1).max() <= 1.0 + 1e-12
    found = 4.0 * np.arctan(traj.x.att.array[:, 2])
    error = np.angle(np.exp(1j * (np.abs(found) - np.abs(np.angle(np.exp(1j * t))))))
    assert np.abs(error).max() < 1e-6


def test_own_classes_can_normalise():
    @arc.struct
    class Direction:
        v: np.ndarray

        def normalize(self):
            return Direction(self.v / np.sqrt(np.sum(self.v**2)))

    def rotate(t, x):
        return {"d": Direction(np.cross([0.0, 0.0, 1.0], x["d"].v)), "s": 0.0}

    x0 = {"d": Direction(np.array([1.0, 0.0, 0.0])), "s": 2.0}
    traj = solve_ode(rotate, (0.0, 30.0), x0, rtol=1e-5, atol=1e-5)
    assert np.abs(np.linalg.norm(traj.x["d"].v, axis=1) - 1.0).max() < 1e-15
    assert (traj.x["s"] == 2.0).all()
    assert traj.x["d"].v[-1] == pytest.approx([np.cos(30.0), np.sin(30.0), 0.0], abs=1e-2)
