"""Joints that move nothing with inertia: an error that names them, never a silent nan."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

ROUND, NONE = [0.1, 0.1, 0.1], [0.0, 0.0, 0.0]


def chain(*links, **values):
    """Return a chain of links (mass, moments, axis), each half a metre below the last."""
    b, parent = mb.Builder("chain"), "world"
    for k, (mass, inertia, axis) in enumerate(links):
        b.add_body(f"b{k}", mass, [0, 0, -0.3] if mass else None, inertia)
        b.attach(f"b{k}", parent, joint=f"j{k}", axis=axis, position=[0, 0, -0.5], **values)
        parent = f"b{k}"
    return b.build()


def on_one_axis():
    """Return two joints about one line with nothing between them."""
    b = mb.Builder("double")
    b.add_body("between")
    b.add_body("bob", 1.0, [1, 0, 0], ROUND)
    b.attach("between", joint="first")
    b.attach("bob", "between", joint="second")
    return b.build()


Y, Z = [0, 1, 0], [0, 0, 1]
SINGULAR = {
    "a massless link at the end": (
        lambda: chain((1.0, ROUND, Y), (0.0, NONE, Y)),
        "joint 'j1': body 'b1' and all that it carries have no inertia along it",
    ),
    "massless links all the way": (
        lambda: chain((0.0, NONE, Y), (0.0, NONE, Z)),
        "joint 'j1': body 'b1' and all",
    ),
    "a point mass on the axis": (
        lambda: chain((1.0, NONE, Z)),
        "joint 'j0': body 'b0' and all that it carries have no inertia along it",
    ),
    "a point mass on a ball joint": (
        lambda: chain((1.0, NONE, Y), kind="spherical"),
        "joint 'j0': body 'b0'",
    ),
    "a point mass that floats": (
        lambda: chain((1.0, NONE, Y), kind="free"),
        "joint 'j0': body 'b0'",
    ),
    "two joints about one line": (
        on_one_axis,
        "joint 'first': body 'between' has no inertia along it but what joints below",
    ),
}
REGULAR = {
    "a massless link between": lambda: chain((0.0, NONE, Y), (1.0, ROUND, Y)),
    "a universal joint's cross": lambda: chain(
        (1.0, ROUND, Y), kind="universal", second_axis=[1, 0, 0]
    ),
    "armature": lambda: chain((1.0, ROUND, Y), (0.0, NONE, Y), armature=0.1),
    "a point mass on an arm": lambda: chain((1.0, NONE, Y)),
    "two point masses": lambda: chain((1.0, NONE, Y), (1.0, NONE, Y)),
    "tiny inertias": lambda: chain((1.0, ROUND, Y), (1e-12, [1e-18, 1e-18, 1e-18], Z)),
}


def forward(model):
    """Return the ways to ask for accelerations."""
    q, v = mb.neutral(model), np.zeros(model.nv)
    hold = [mb.Closure("world", model.frame_names[0])]
    return {
        "aba": lambda: mb.aba(model, q, v, v),
        "aba_derivatives": lambda: mb.aba_derivatives(model, q, v, v),
        "inverse_mass_matrix": lambda: mb.inverse_mass_matrix(model, q),
        "dynamics": lambda: mb.dynamics(model, 0.0, mb.State(q, v)),
        "constrained": lambda: mb.constrained_acceleration(model, hold, q, v, v),
        "compiled": lambda: arc.compile(lambda q: mb.aba(model, q, v, v))(q),
    }


@pytest.mark.parametrize("case", SINGULAR)
def test_an_error_names_joint_and_body(case):
    make, message = SINGULAR[case]
    model = make()
    for call in forward(model).values():
        with pytest.raises(ValueError, match=message) as error:
            call()
        assert "armature" in str(error.value) and "weld or lock" in str(error.value)


@pytest.mark.parametrize("case", SINGULAR)
def test_all_that_needs_no_inverse_works(case):
    model = SINGULAR[case][0]()
    q, v = mb.neutral(model), np.ones(model.nv)
    assert np.isfinite(mb.rnea(model, q, v, v)).all()
    assert np.linalg.matrix_rank(mb.crba(model, q)) < model.nv
    assert np.isfinite(mb.frame_jacobian(model, q, model.frame_names[-1])).all()


@pytest.mark.parametrize("case", REGULAR)
def test_massless_links_that_carry_something_are_fine(case):
    model = REGULAR[case]()
    q, v, tau = 0.3 * np.ones(model.nq), 0.1 * np.ones(model.nv), 0.7 * np.ones(model.nv)
    a = mb.aba(model, q, v, tau)
    back = mb.rnea(model, q, v, a)
    assert np.isfinite(a).all()
    size = np.abs(tau) + np.abs(mb.crba(model, q)) @ np.abs(a)
    assert (np.abs(back - tau) / size).max() < 1e-12


def test_traced_numbers_give_nan_as_is_written():
    """Where masses are traced nobody knows: the division by zero is seen in the result."""
    model = chain((1.0, ROUND, Y))
    q = np.zeros(1)

    def swing(scale):
        light = model.replace(masses=scale * model.masses, inertias=scale * model.inertias)
        return mb.aba(light, q, q, q + 1.0)

    compiled = arc.compile(swing)
    assert np.isfinite(compiled(1.0)).all()
    assert not np.isfinite(compiled(0.0)).any()
