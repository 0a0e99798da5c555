"""Recorded, differentiated, mapped and generated as C: the same numbers as plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.algorithms.regressor import inertial_parameters

from .random_trees import random_state, random_tree

MODEL = random_tree(11, kinds=("revolute", "spherical", "helical", "planar", "mimic", "universal"))
STATE = random_state(MODEL, 5)
FUNCTIONS = {
    "rnea": lambda q, v, a: mb.rnea(MODEL, q, v, a),
    "aba": lambda q, v, a: mb.aba(MODEL, q, v, a),
    "crba": lambda q, v, a: mb.crba(MODEL, q),
    "coriolis_matrix": lambda q, v, a: mb.coriolis_matrix(MODEL, q, v),
    "integrate": lambda q, v, a: mb.integrate(MODEL, q, v),
    "frame_acceleration": lambda q, v, a: mb.frame_acceleration(MODEL, q, v, a, "body2"),
    "centroidal_momentum": lambda q, v, a: mb.centroidal_momentum(MODEL, q, v),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_interpreted_and_native(name):
    function = FUNCTIONS[name]
    eager = function(*STATE)
    interpreted = arc.compile(function, backend="interpreter")(*STATE)
    native = arc.compile(function, backend="llvm")(*STATE)
    assert np.array_equal(interpreted, native)
    np.testing.assert_allclose(native, eager, atol=1e-11)


def test_mapped_rows_are_single_calls():
    rnea = arc.compile(FUNCTIONS["rnea"], backend="llvm")
    rows = [np.stack(x) for x in zip(*(random_state(MODEL, k) for k in range(20)))]
    together = arc.vmap(rnea)(*rows)
    singly = np.stack([rnea(*(x[k] for x in rows)) for k in range(20)])
    assert np.array_equal(together, singly)


def test_parameters_are_traced():
    """Torques are linear in the masses: their derivative is the regressor's."""
    model = random_tree(4, kinds=("revolute", "prismatic", "spherical"), armature=False)
    state = random_state(model, 1)

    def torques(masses):
        return mb.rnea(model.replace(masses=masses), *state)

    J = arc.jac(torques)(model.masses)
    Y = mb.torque_regressor(model, *state)
    parameters = inertial_parameters(model).reshape(-1, 10)
    c = np.asarray(model.centers)
    for i in range(3):
        # m moves m c and the parallel-axis part of the inertia along
        shift = (c[i] @ c[i]) * np.eye(3) - np.outer(c[i], c[i])
        upper = shift[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        expected = Y[:, 10 * i : 10 * i + 10] @ np.concatenate([[1.0], c[i], upper])
        np.testing.assert_allclose(J[:, i], expected, atol=1e-10)
    assert parameters[:, 0] == pytest.approx(model.masses)


def test_a_model_is_an_argument():
    model = random_tree(4, kinds=("revolute", "prismatic"))
    state = random_state(model, 1)
    rnea = arc.compile(mb.rnea, backend="llvm")
    heavier = model.replace(masses=2.0 * model.masses)
    for each in (model, heavier):
        np.testing.assert_allclose(rnea(each, *state), mb.rnea(each, *state), atol=1e-12)


def test_length_of_an_arm_is_differentiated():
    """Reach of a two-link arm: its derivative in the length of the first link is exact."""

    def reach(length):
        b = mb.Builder()
        b.add_body("upper", mass=1.0, inertia=[0.1, 0.1, 0.1])
        b.attach("upper", joint="shoulder", axis=[0, 1, 0])
        b.add_body("lower", mass=1.0, inertia=[0.1, 0.1, 0.1])
        b.attach("lower", "upper", joint="elbow", axis=[0, 1, 0], position=[length, 0.0, 0.0])
        return mb.frame_pose(b.build(), np.array([0.3, 0.4]), "lower").t

    J = arc.jac(reach)(np.float64(0.5))
    np.testing.assert_allclose(J, [np.cos(0.3), 0.0, -np.sin(0.3)], atol=1e-15)


def test_derivatives_of_quaternions_ignore_their_length():
    model = random_tree(2, kinds=("spherical", "free"))
    q, v, a = random_state(model, 0)
    J = arc.jac(lambda q: mb.rnea(model, q, v, a))(q)
    for name in model.joint_names:
        places = model.q_slice(name)
        along = np.zeros(model.nq)
        along[places.stop - 4 : places.stop] = q[places.stop - 4 : places.stop]
        np.testing.assert_allclose(J @ along, 0.0, atol=1e-11)


@pytest.mark.parametrize(
    ("function", "count"),
    [(mb.aba, 3), (mb.crba, 1), (mb.coriolis_matrix, 2), (mb.rnea_derivatives, 3),
     (mb.inverse_mass_matrix, 1), (mb.passive_torque, 2), (mb.torque_regressor, 3)],
)  # fmt: skip
def test_whole_models_are_traced(function, count):
    """Nothing looks at the numbers of a model: it may be an argument of any of them."""
    model = random_tree(7, kinds=("revolute", "universal", "mimic"), loaded=True)
    state = random_state(model, 1)[:count]
    recorded = arc.compile(function, backend="interpreter")(model, *state)
    eager = function(model, *state)
    for one, other in zip(np.atleast_2d(recorded), np.atleast_2d(eager), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_gradient_in_a_model_is_a_model():
    model = random_tree(7, kinds=("revolute", "prismatic"))
    q, _, _ = random_state(model, 1)
    slope = arc.grad(lambda m: mb.potential_energy(m, q))(model)
    assert isinstance(slope, mb.Model)
    heights = [
        mb.frame_pose(model, q, n).apply(c)[2] for n, c in zip(model.body_names, model.centers)
    ]
    np.testing.assert_allclose(slope.masses, 9.81 * np.array(heights), atol=1e-12)


def test_large_matrices_stay_in_lanes():
    """Results put together number by number are no blocks, whose batches go one by one."""
    b = mb.Builder()
    for k in range(33):
        b.add_body(f"b{k}", 1.0, [0.1, 0.0, 0.0], [0.1, 0.1, 0.1])
        b.attach(f"b{k}", f"b{k % 3}" if k > 2 else "world", joint=f"j{k}", axis=[0, 0, 1])
    model = b.build()
    f, q = arc.compile(lambda q: mb.crba(model, q)), np.zeros(33)
    assert len(f.lookup((q,), {})[1].graph.outputs) == 33 * 33


def test_a_model_keeps_its_numbers():
    """What it is given is copied; what it has cannot be written to, and calls need not look."""
    masses = np.array(MODEL.masses)
    other = MODEL.replace(masses=masses)
    f = arc.compile(lambda q: mb.crba(other, q))
    q = STATE[0]
    first = f(q)
    masses *= 2.0
    assert np.array_equal(f(q), first) and not np.array_equal(other.masses, masses)
    for name in ("masses", "inertias", "gravity", "armature"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(other, name)[...] = 0.0
    identity = f.lookup((q,), {})[2].state
    watched = [type(p).__name__ for p in identity.reads]
    assert "ArrayRead" not in watched


def test_functions_see_another_model():
    heavy = MODEL.replace(masses=2.0 * MODEL.masses)
    q = STATE[0]
    held = {"model": MODEL}
    f = arc.compile(lambda q: mb.crba(held["model"], q), backend="llvm")
    for model in (MODEL, heavy) * 6:
        held["model"] = model
        np.testing.assert_allclose(f(q), mb.crba(model, q), atol=1e-11)
