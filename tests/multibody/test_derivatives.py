"""Analytic derivatives of the dynamics, against differences, Pinocchio and automatic ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archimedes as arc
from archimedes import multibody as mb
from archimedes.graph import Map
from archimedes.spatial import quaternion_to_dcm

from .random_trees import random_state, random_tree

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=5, deadline=None, derandomize=True)
STEP = 1e-4


def differences(function, size):
    """Return the derivative of function(e) at e = 0 by differences of fourth order."""
    e = STEP * np.eye(size)
    parts = [function(k * e).T for k in (-2, -1, 1, 2)]
    return (parts[0] - 8 * parts[1] + 8 * parts[2] - parts[3]) / (12 * STEP)


def near(ours, theirs):
    np.testing.assert_allclose(ours, theirs, atol=2e-8 * max(1.0, np.abs(theirs).max()))


@quick
@given(seeds, st.booleans())
def test_inverse_dynamics(seed, passive):
    model = random_tree(seed, loaded=passive)
    q, v, a = random_state(model, seed)
    v = v + np.sign(v)  # friction is steep around zero: differences would not see it
    forces = np.random.default_rng(seed).normal(size=(len(model.body_names), 6))
    dq, dv, da = mb.rnea_derivatives(model, q, v, a, forces, passive)
    rnea = lambda q, v, a: mb.rnea(model, q, v, a, forces, passive)
    near(dq, differences(lambda e: rnea(mb.integrate(model, q, e), v, a), model.nv))
    near(dv, differences(lambda e: rnea(q, v + e, a), model.nv))
    np.testing.assert_allclose(da, mb.crba(model, q), atol=1e-12)


@quick
@given(seeds, st.booleans())
def test_forward_dynamics(seed, passive):
    model = random_tree(seed, loaded=passive)
    q, v, tau = random_state(model, seed)
    v = v + np.sign(v)
    dq, dv, dtau = mb.aba_derivatives(model, q, v, tau, passive=passive)
    aba = lambda q, v: mb.aba(model, q, v, tau, passive=passive)
    near(dq, differences(lambda e: aba(mb.integrate(model, q, e), v), model.nv))
    near(dv, differences(lambda e: aba(q, v + e), model.nv))
    np.testing.assert_allclose(dtau @ mb.crba(model, q), np.eye(model.nv), atol=1e-10)
    np.testing.assert_allclose(mb.inverse_mass_matrix(model, q), dtau, atol=1e-10)


def test_automatic_derivatives_agree():
    model = random_tree(5, kinds=("revolute", "helical", "cylindrical", "mimic", "universal"))
    q, v, a = random_state(model, 2)
    ours = mb.rnea_derivatives(model, q, v, a)
    theirs = arc.jac(lambda q, v, a: mb.rnea(model, q, v, a), argnums=(0, 1, 2))(q, v, a)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


@pytest.mark.parametrize("kind", ["spherical", "free", "planar", "helical"])
def test_where_formulas_divide_zero_by_zero(kind):
    """At neutral, where nothing has turned: automatic derivatives through the manifold agree."""
    b = mb.Builder()
    for name, parent in (("a", "world"), ("b", "a")):
        b.add_body(name, 1.0, [0.1, 0.2, -0.1], [0.1, 0.2, 0.25])
        pitch = 0.1 if kind == "helical" else 0.0
        b.attach(name, parent, joint=name, kind=kind, position=[0.3, 0, 0.1], pitch=pitch)
    model = b.build()
    q, rng = mb.neutral(model), np.random.default_rng(0)
    v, a = rng.normal(size=(2, model.nv))
    zero = np.zeros(model.nv)
    moved = lambda e: mb.rnea(model, mb.integrate(model, q, e), v, a)
    np.testing.assert_allclose(
        arc.jac(moved)(zero), mb.rnea_derivatives(model, q, v, a)[0], atol=1e-11
    )
    apart = lambda e: mb.difference(model, q, mb.integrate(model, q, e))
    np.testing.assert_allclose(arc.jac(apart)(zero), np.eye(model.nv), atol=1e-13)


def test_batches_and_native_code():
    model = random_tree(9, kinds=("free", "revolute", "planar"))
    states = [np.stack(x) for x in zip(*(random_state(model, k) for k in range(3)))]
    native = arc.compile(lambda *x: mb.aba_derivatives(model, *x), backend="llvm")
    together = mb.aba_derivatives(model, *states)
    for k in range(3):
        single = native(*(x[k] for x in states))
        for one, rows in zip(single, together, strict=True):
            np.testing.assert_allclose(one, rows[k], rtol=1e-9, atol=1e-9)


def test_kinds_whose_motions_change_are_refused():
    from .random_trees import SWING

    b = mb.Builder()
    b.add_body("a", 1.0, inertia=[1, 1, 1])
    b.attach("a", joint="j", kind=SWING)
    with pytest.raises(NotImplementedError, match=r"use arc\.jac of rnea"):
        mb.rnea_derivatives(b.build(), *np.zeros((3, 2)))


def floating():
    """Return a floating body with two arms."""
    b = mb.Builder("floating")
    b.add_body("base", 3.0, com=[0.1, 0, 0.2], inertia=[0.2, 0.3, 0.1])
    b.attach("base", joint="root", kind="free")
    for side in (-1.0, 1.0):
        below = "base"
        for k, axis in enumerate(([0, 1, 0], [0, 0.6, 0.8])):
            name = f"link{side}{k}"
            b.add_body(name, 1.0 + k, com=[0.1, 0.2, side], inertia=[0.1, 0.2, 0.2])
            b.attach(name, below, joint=f"to_{name}", axis=axis, position=[0.3, side, 0.1])
            below = name
    return b.build()


@pytest.mark.long
@pytest.mark.parametrize("limbs, maps", [(100_000, 4), (0, 1)], ids=["limbs", "one"])
def test_columns_in_loops(limbs, maps, monkeypatch):
    """Large robots solve the columns of a limb in a loop: the same numbers, bit for bit."""
    from archimedes.multibody.algorithms import mass_matrix

    model = floating()
    states = np.stack([np.concatenate(random_state(model, k)) for k in range(5)])
    cuts = [model.nq, model.nq + model.nv]

    def derivatives(x):
        return mb.aba_derivatives(model, *np.split(x, cuts))

    def recorded(backend):
        return arc.compile(lambda x: derivatives(x), backend=backend)

    written_out = recorded("interpreter")(states[2])
    monkeypatch.setattr(mass_matrix, "UNROLLED", 0)
    monkeypatch.setattr(mass_matrix, "LIMBS", limbs)
    f = recorded("llvm")
    regions = f.graph(states[2]).regions.values()
    assert sum(isinstance(x, Map) for x in regions) == maps  # tiny ones are written out
    found = [f(states[2]), recorded("interpreter")(states[2])]
    found.append([x[2] for x in arc.vmap(f)(states)])
    for each in found:
        for one, other in zip(each, written_out, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(derivatives(states[2]), written_out, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_floating_base_in_free_fall():
    """How a robot is turned, and how fast it moves along, changes no joint's acceleration."""
    model = floating()
    q, v, tau = random_state(model, 1)
    dq, dv, _ = mb.aba_derivatives(model, q, v, tau)
    assert not dq[:, :3].any() and not dq[3:, :6].any() and not dv[3:, :3].any()
    down = quaternion_to_dcm(q[3:7]) @ model.gravity  # from the world
    np.testing.assert_allclose(dq[:3, 3:6] @ [1, 2, 3], np.cross(down, [1, 2, 3]), atol=1e-12)
    np.testing.assert_allclose(dv[:3, :3] @ [1, 2, 3], -np.cross(v[3:6], [1, 2, 3]), atol=1e-12)


def test_an_armature_of_the_base_is_a_mass_that_gravity_does_not_pull():
    model = floating().replace(armature=np.full(10, 0.3))
    q, v, tau = random_state(model, 1)
    dq, dv, _ = mb.aba_derivatives(model, q, v, tau)
    near(dq, differences(lambda e: mb.aba(model, mb.integrate(model, q, e), v, tau), model.nv))
    near(dv, differences(lambda e: mb.aba(model, q, v + e, tau), model.nv))
