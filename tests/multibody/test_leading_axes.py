"""Leading axes broadcast in every function, whichever of its arguments have them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .random_trees import random_tree


def slider() -> mb.Model:
    """Return a joint that its coordinate has no effect on: nothing depends on q."""
    b = mb.Builder("slider")
    b.add_body("block", 2.0, [0.1, 0.2, 0.3], [0.3, 0.4, 0.5])
    b.attach("block", joint="rail", kind="prismatic", axis=[0, 0, 1])
    b.add_frame("wall", "world", position=[1.0, 0.0, 0.0])
    return b.build()


MODELS = {
    "slider": slider(),
    "hinge": random_tree(1, kinds=("revolute",)),
    "tree": random_tree(4, kinds=("prismatic", "revolute", "spherical", "mimic")),
}
#: Functions by name, and the arguments they take: q, v, a, and f forces.
FUNCTIONS = {
    "rnea": (mb.rnea, "qvaf"),
    "aba": (mb.aba, "qvaf"),
    "gravity_torque": (mb.gravity_torque, "q"),
    "coriolis_matrix": (mb.coriolis_matrix, "qv"),
    "frame_pose": (lambda m, q: mb.frame_pose(m, q, m.frame_names[-1]).as_matrix(), "q"),
    "frame_twist": (lambda m, q, v: mb.frame_twist(m, q, v, m.frame_names[-1]), "qv"),
    "frame_acceleration": (
        lambda m, q, v, a: mb.frame_acceleration(m, q, v, a, m.frame_names[-1]), "qva"),
    "frame_jacobian_rate": (
        lambda m, q, v: mb.frame_jacobian_rate(m, q, v, m.frame_names[-1], "world"), "qv"),
    "kinetic_energy": (mb.kinetic_energy, "qv"),
    "torque_regressor": (mb.torque_regressor, "qva"),
    "rnea_derivatives": (lambda *x: np.stack(mb.rnea_derivatives(*x), axis=-1), "qvaf"),
    "aba_derivatives": (lambda *x: np.stack(mb.aba_derivatives(*x), axis=-1), "qvaf"),
    "coordinate_rates": (mb.coordinate_rates, "qv"),
}  # fmt: skip


def arguments(model):
    rng = np.random.default_rng(1)
    q = np.stack([mb.random_configuration(model, rng) for _ in range(2)])
    v, a = rng.normal(size=(2, 2, model.nv))
    return {"q": q, "v": v, "a": a, "f": rng.normal(size=(2, len(model.body_names), 6))}


@pytest.mark.long_cases("*-tree")
@pytest.mark.parametrize("robot", MODELS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_whichever_arguments_have_them(name, robot):
    model, (function, letters) = MODELS[robot], FUNCTIONS[name]
    given = arguments(model)
    for wide in itertools.product((False, True), repeat=len(letters)):
        both = [given[x] if w else given[x][0] for x, w in zip(letters, wide, strict=True)]
        rows = [
            function(model, *(x[k] if w else x for x, w in zip(both, wide, strict=True)))
            for k in range(2)
        ]
        expected = np.stack(rows) if any(wide) else rows[0]
        found = function(model, *both)
        assert np.shape(found) == expected.shape, wide
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=str(wide))


@pytest.mark.parametrize("name", [n for n, (_, letters) in FUNCTIONS.items() if "v" in letters])
def test_axes_that_do_not_fit_are_named(name):
    model, (function, letters) = MODELS["hinge"], FUNCTIONS[name]
    given = {**arguments(model), "v": np.zeros((3, model.nv))}
    with pytest.raises(ValueError, match=r"must broadcast, got shapes q \(2, 1\), v \(3, 1\)"):
        function(model, *(given[x] for x in letters if x != "f"))
    if "f" in letters:
        given["v"] = given["v"][0]
        with pytest.raises(ValueError, match=r"forces \(4, 1, 6\)"):
            function(model, *(given[x] for x in "qva"), np.zeros((4, 1, 6)))


@pytest.mark.parametrize("name", ["rnea", "aba"])
def test_derivatives_where_only_forces_have_them(name):
    model = MODELS["hinge"]
    given = arguments(model)
    q, v, a, forces = given["q"][0], given["v"][0], given["a"][0], given["f"]
    J = arc.jac(lambda q: FUNCTIONS[name][0](model, q, v, a, forces))(q)
    exact = {"rnea": mb.rnea_derivatives, "aba": mb.aba_derivatives}[name]
    for k in range(2):
        np.testing.assert_allclose(J[k], exact(model, q, v, a, forces[k])[0], atol=1e-12)


def test_configurations_within_one_limit():
    """A single limit beyond pi: configurations were beyond it, or always at it."""
    rng = np.random.default_rng(0)
    for low, high in ((5.0, np.inf), (-np.inf, -4.0), (-1.0, np.inf)):
        b = mb.Builder()
        b.add_body("block", 1.0, inertia=[1.0, 1.0, 1.0])
        b.attach("block", joint="rail", kind="prismatic", lower=low, upper=high)
        model = b.build()
        found = np.concatenate([mb.random_configuration(model, rng) for _ in range(20)])
        assert ((found >= low) & (found <= high)).all() and np.ptp(found) > 1.0


def test_models_of_single_precision():
    model = MODELS["tree"]
    single = model.replace(rotations=np.asarray(model.rotations, dtype=np.float32))
    q = arguments(model)["q"][0]
    np.testing.assert_allclose(mb.crba(single, q), mb.crba(model, q), atol=1e-5)


def test_energy_of_bodies_without_mass():
    """A rotor given by its armature alone: no centre of mass, but an energy, zero."""
    b = mb.Builder()
    b.add_body("rotor", 0.0, inertia=[0.0, 0.0, 0.0])
    b.attach("rotor", joint="axle", armature=1.0)
    assert mb.potential_energy(b.build(), [0.1]) == 0.0
