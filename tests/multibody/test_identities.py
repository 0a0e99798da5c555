"""What holds for every tree of joints, on random ones with every kind of joint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.algorithms.regressor import inertial_parameters

from .random_trees import EVERY_KIND, SWING, random_state, random_tree

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=8, deadline=None, derandomize=True)
STEP = 1e-4


def rate_along(model, q, v, function):
    """Return d/dt of a function of q while q moves along v, to the fourth order of the step."""
    at = [function(mb.integrate(model, q, k * STEP * v)) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * STEP)


def tree_and_state(seed, **kwargs):
    model = random_tree(seed, **kwargs)
    return model, *random_state(model, seed)


@quick
@given(seeds)
def test_torques_of_accelerations_of_torques(seed):
    model, q, v, tau = tree_and_state(seed)
    a = mb.aba(model, q, v, tau)
    np.testing.assert_allclose(mb.rnea(model, q, v, a), tau, rtol=0, atol=1e-10)


@quick
@given(seeds)
def test_external_forces_are_torques_of_jacobians(seed):
    model, q, v, a = tree_and_state(seed)
    forces = np.random.default_rng(seed).normal(size=(len(model.body_names), 6))
    torques = sum(
        mb.frame_jacobian(model, q, name).T @ f for name, f in zip(model.body_names, forces)
    )
    pushed = mb.rnea(model, q, v, a, forces=forces)
    np.testing.assert_allclose(pushed, mb.rnea(model, q, v, a) - torques, atol=1e-11)
    by_name = dict(zip(model.body_names, forces))
    assert np.array_equal(mb.rnea(model, q, v, a, forces=by_name), pushed)
    moved = mb.aba(model, q, v, pushed, forces=forces)
    np.testing.assert_allclose(moved, a, rtol=0, atol=1e-9)


@quick
@given(seeds)
def test_mass_matrix_is_the_derivative_in_the_acceleration(seed):
    model, q, v, a = tree_and_state(seed)
    M = mb.crba(model, q)
    eye = np.eye(model.nv)
    columns = mb.rnea(model, q, v, a + eye) - mb.rnea(model, q, v, a)
    np.testing.assert_allclose(columns.T, M, atol=1e-11)
    np.testing.assert_allclose(M, M.T, atol=0)
    assert np.linalg.eigvalsh(M).min() > 0


@quick
@given(seeds)
def test_coriolis_matrix(seed):
    model, q, v, _ = tree_and_state(seed)
    C = mb.coriolis_matrix(model, q, v)
    zero = np.zeros(model.nv)
    bias = mb.rnea(model, q, v, zero) - mb.gravity_torque(model, q)
    np.testing.assert_allclose(C @ v, bias, atol=1e-11)
    rate = rate_along(model, q, v, lambda x: mb.crba(model, x))
    np.testing.assert_allclose(C + C.T, rate, atol=1e-8 * max(1, np.abs(C).max()))


@quick
@given(seeds)
def test_power_balance(seed):
    """What the torques do goes into kinetic and potential energy."""
    model, q, v, tau = tree_and_state(seed)
    a = mb.aba(model, q, v, tau)
    M = mb.crba(model, q)
    kinetic = mb.kinetic_energy(model, q, v)
    assert kinetic == pytest.approx(0.5 * v @ M @ v)
    rate = rate_along(
        model, q, v, lambda x: mb.kinetic_energy(model, x, v) + mb.potential_energy(model, x)
    )
    assert v @ M @ a + rate == pytest.approx(v @ tau, rel=1e-8, abs=1e-7)


@quick
@given(seeds)
def test_gravity_is_the_slope_of_the_potential(seed):
    model, q, v, _ = tree_and_state(seed)
    rate = rate_along(model, q, v, lambda x: mb.potential_energy(model, x))
    assert v @ mb.gravity_torque(model, q) == pytest.approx(rate, rel=1e-8, abs=1e-8)


@quick
@given(seeds)
def test_regressor_times_parameters(seed):
    model, q, v, a = tree_and_state(seed, armature=False)
    Y = mb.torque_regressor(model, q, v, a)
    expected = mb.rnea(model, q, v, a)
    np.testing.assert_allclose(Y @ inertial_parameters(model), expected, atol=1e-10)


@quick
@given(seeds, st.sampled_from(["body", "world", "aligned"]))
def test_frames(seed, axes):
    model, q, v, a = tree_and_state(seed)
    frame = model.frame_names[seed % len(model.frame_names)]
    J = mb.frame_jacobian(model, q, frame, axes)
    twist = mb.frame_twist(model, q, v, frame, axes)
    np.testing.assert_allclose(J @ v, twist, atol=1e-12)
    rate = mb.frame_jacobian_rate(model, q, v, frame, axes)
    moving = rate_along(model, q, v, lambda x: mb.frame_jacobian(model, x, frame, axes))
    np.testing.assert_allclose(rate, moving, atol=1e-8 * max(1, np.abs(rate).max()))
    acceleration = mb.frame_acceleration(model, q, v, a, frame, axes)
    np.testing.assert_allclose(J @ a + rate @ v, acceleration, atol=1e-10)
    if axes == "aligned":
        place = rate_along(model, q, v, lambda x: mb.frame_pose(model, x, frame).t)
        np.testing.assert_allclose(twist[:3], place, atol=1e-8)


@quick
@given(seeds)
def test_momentum_of_a_floating_robot(seed):
    """Only gravity changes it, whatever the joints do."""
    floating = mb.Builder()
    floating.add_body("base", 3.0, [0.1, 0, 0], [0.2, 0.3, 0.4])
    floating.add_body("arm", 1.0, [0, 0.2, 0], [0.02, 0.03, 0.04])
    floating.attach("arm", "base", joint="ball", kind="spherical", position=[0.3, 0, 0])
    floating.add_body("leg", 1.0, [0, 0.2, 0.1], [0.02, 0.03, 0.04])
    floating.attach("leg", "arm", joint="slide", kind="cylindrical", axis=[0, 1, 0])
    model = floating.build(base="floating")
    q, v, tau = random_state(model, seed)
    tau[:6] = 0.0
    a = mb.aba(model, q, v, tau)
    A = mb.centroidal_matrix(model, q)
    np.testing.assert_allclose(A @ v, mb.centroidal_momentum(model, q, v), atol=1e-12)
    rate = A @ a + rate_along(model, q, v, lambda x: mb.centroidal_momentum(model, x, v))
    weight = 5.0 * np.array([0, 0, -9.81, 0, 0, 0])
    np.testing.assert_allclose(rate, weight, atol=1e-7)
    speed = rate_along(model, q, v, lambda x: mb.center_of_mass(model, x))
    np.testing.assert_allclose(5.0 * speed, mb.centroidal_momentum(model, q, v)[:3], atol=1e-8)


@quick
@given(seeds)
def test_configurations_are_a_manifold(seed):
    model, q, v, _ = tree_and_state(seed)
    v = 0.4 * v
    moved = mb.integrate(model, q, v)
    np.testing.assert_allclose(mb.difference(model, q, moved), v, atol=1e-11)
    np.testing.assert_allclose(mb.difference(model, q, q), 0, atol=1e-12)
    halves = mb.integrate(model, mb.integrate(model, q, 0.5 * v), 0.5 * v)
    np.testing.assert_allclose(mb.difference(model, moved, halves), 0, atol=1e-11)
    near = (mb.integrate(model, q, 1e-6 * v) - mb.integrate(model, q, -1e-6 * v)) / 2e-6
    np.testing.assert_allclose(mb.coordinate_rates(model, q, v), near, atol=1e-8)


@quick
@given(seeds)
def test_batches_are_rows(seed):
    model = random_tree(seed)
    states = [random_state(model, seed + k) for k in range(2)]
    rows = [np.stack(x) for x in zip(*states)]
    for function, count in ((mb.rnea, 3), (mb.aba, 3), (mb.crba, 1), (mb.coriolis_matrix, 2)):
        together = function(model, *rows[:count])
        for k, state in enumerate(states):
            np.testing.assert_allclose(together[k], function(model, *state[:count]), atol=1e-8)


def test_user_defined_joints():
    """A joint whose motions change with its coordinates, against two revolute ones."""
    models = []
    for own in (True, False):
        b = mb.Builder()
        b.add_body("base", 2.0, [0.1, 0, 0], [0.1, 0.2, 0.25])
        b.attach("base", kind="prismatic", axis=[1, 0, 0], joint="rail")
        b.add_body("arm", 0.0)
        b.add_body("hand", 1.0, [0.1, 0.2, 0], [0.03, 0.02, 0.04])
        if own:
            b.remove("arm")
            b.attach("hand", "base", joint="swing", kind=SWING)
        else:
            b.attach("arm", "base", joint="shoulder", axis=[0, 1, 0])
            b.attach("hand", "arm", joint="wrist", axis=[0, 0, 1], position=[0.3, 0, 0])
        b.add_body("finger", 0.2, [0, 0, 0.1], [0.01, 0.01, 0.01])
        b.attach("finger", "hand", joint="knuckle", axis=[1, 0, 0], position=[0, 0.1, 0])
        models.append(b.build())
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 4))
    for function, args in (
        (mb.rnea, (q, v, a)), (mb.aba, (q, v, a)), (mb.crba, (q,)), (mb.gravity_torque, (q,)),
        (mb.frame_jacobian, (q, "finger")), (mb.frame_jacobian_rate, (q, v, "finger", "aligned")),
        (mb.frame_acceleration, (q, v, a, "finger")), (mb.centroidal_matrix, (q,)),
    ):  # fmt: skip
        ours, theirs = (function(model, *args) for model in models)
        np.testing.assert_allclose(ours, theirs, atol=1e-12, err_msg=function.__name__)


@pytest.mark.long
@quick
@given(seeds)
def test_identities_with_joints_of_your_own(seed):
    """Among all others a joint whose motions change with its coordinates."""
    model, q, v, tau = tree_and_state(seed, kinds=(*EVERY_KIND, SWING), armature=False)
    a = mb.aba(model, q, v, tau)
    np.testing.assert_allclose(mb.rnea(model, q, v, a), tau, rtol=0, atol=1e-9)
    M = mb.crba(model, q)
    columns = mb.aba(model, q, v, tau + 1.0 * M[:, 0]) - a
    np.testing.assert_allclose(columns, np.eye(model.nv)[0], atol=1e-9)
    Y = mb.torque_regressor(model, q, v, a)
    np.testing.assert_allclose(Y @ inertial_parameters(model), tau, atol=1e-9)
    power = rate_along(
        model, q, v, lambda x: mb.kinetic_energy(model, x, v) + mb.potential_energy(model, x)
    )
    assert v @ M @ a + power == pytest.approx(v @ tau, rel=1e-7, abs=1e-6)


def test_every_kind_is_tried():
    kinds = {link.kind.name for link in random_tree(1).links}
    assert kinds >= {*EVERY_KIND} - {"universal", "mimic"}
    assert any(link.mimic for link in random_tree(1).links)
    assert sum(link.joint == "joint0" for k in range(20) for link in random_tree(k).links) > 20


@pytest.mark.parametrize("kind", ["free", "planar"])
def test_armature_along_axes_that_turn(kind):
    """It flies straight on where it is the same along all axes, and never takes or gives energy."""
    b = mb.Builder()
    b.add_body("body", mass=2.0, inertia=[0.3, 0.3, 0.3])
    b.attach("body", joint="joint", kind=kind, axis=[0.6, 0.0, 0.8])
    model = b.build().replace(gravity=np.zeros(3))
    rng = np.random.default_rng(0)
    q, v = mb.random_configuration(model, rng), rng.normal(size=model.nv)
    round_one = model.replace(armature=np.full(model.nv, 1.5))
    zero = np.zeros(model.nv)
    free_flight = mb.aba(model, q, v, zero)
    np.testing.assert_allclose(mb.aba(round_one, q, v, zero), free_flight, atol=1e-13)
    long_one = model.replace(armature=rng.uniform(0.5, 2.0, size=model.nv))
    bias = mb.rnea(long_one, q, v, zero)
    assert v @ bias == pytest.approx(0.0, abs=1e-13) and np.abs(bias).max() > 0.1
    C = mb.coriolis_matrix(long_one, q, v)
    np.testing.assert_allclose(C @ v, bias, atol=1e-13)
    np.testing.assert_allclose(C + C.T, 0.0, atol=1e-13)
    dq, dv, _ = mb.rnea_derivatives(long_one, q, v, zero)
    slope = arc.jac(lambda v: mb.rnea(long_one, q, v, zero))(v)
    np.testing.assert_allclose(dv, slope, atol=1e-12)
    by_steps = [(mb.rnea(long_one, q, v + 1e-6 * e, zero) - bias) / 1e-6 for e in np.eye(len(v))]
    np.testing.assert_allclose(dv, np.stack(by_steps, axis=1), atol=1e-5)
    np.testing.assert_allclose(dq, 0.0, atol=1e-12)
