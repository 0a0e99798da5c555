"""Derivatives that recordings of the dynamics bring: the same numbers as plain ones, for less."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.algorithms import custom_derivatives

from .dense_dynamics import complex_steps, in_mpmath
from .random_trees import random_state, random_tree

KINDS = ("free", "revolute", "prismatic", "spherical", "planar", "mimic")


def plain(monkeypatch):
    """Differentiate the operations themselves from now on."""
    monkeypatch.setattr(custom_derivatives, "has_derivatives", lambda model, x: False)


def arm(joints: int = 4, base: str = "fixed") -> mb.Model:
    """Return a chain whose axes are at right angles: stretched at zero."""
    b = mb.Builder()
    rng = np.random.default_rng(1)
    up = "world"
    if base == "floating":
        b.add_body("base", 3.0, [0.0, 0.1, 0.0], [0.2, 0.3, 0.4])
        b.attach("base", joint="base", kind="free")
        up = "base"
    for k in range(joints):
        b.add_body(f"b{k}", 1.0 + k, rng.normal(size=3) * 0.1, [0.3, 0.4, 0.5])
        axis = np.eye(3)[(2 + k) % 3]
        b.attach(f"b{k}", up, joint=f"j{k}", axis=axis, position=[0.0, 0.0, 0.4], armature=0.1)
        up = f"b{k}"
    return b.build()


@pytest.mark.parametrize("function", [mb.rnea, mb.aba])
def test_derivatives_are_those_of_the_operations(function, monkeypatch):
    model = random_tree(4, kinds=KINDS)
    q, v, a = random_state(model, 3)
    # Quaternions of any length: the derivative along them is zero.
    q = q * 1.3 if model.links[0].kind.nq == 7 else q
    f = lambda q, v, a: function(model, q, v, a)
    ours = arc.jac(f, argnums=(0, 1, 2))(q, v, a)
    plain(monkeypatch)
    theirs = arc.jac(f, argnums=(0, 1, 2))(q, v, a)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10 * max(1.0, np.abs(other).max()))


@pytest.mark.long
@pytest.mark.parametrize("function", [mb.rnea, mb.aba])
def test_second_derivatives_batches_and_native_code(function, monkeypatch):
    model = arm(3, "floating")
    q, v, a = random_state(model, 1)
    weights = np.random.default_rng(0).normal(size=model.nv)
    f = lambda q, v, a: weights @ function(model, q, v, a)
    stretched = lambda q: np.stack([q, q + 0.01, q - 0.01])
    made = lambda: (
        arc.hess(f)(q, v, a),
        arc.jac(arc.jac(lambda v: function(model, q, v, a)))(v),
        arc.vmap(arc.jac(lambda q: function(model, q, v, a)))(stretched(q)),
        arc.compile(arc.grad(f, argnums=1), backend="llvm")(q, v, a),
        arc.compile(arc.jac(lambda q: function(model, q, v, a)), backend="llvm")(q),
    )
    ours = made()
    plain(monkeypatch)
    for one, other in zip(ours, made(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9 * max(1.0, np.abs(other).max()))


def test_forces_passive_torques_and_parameters(monkeypatch):
    model = arm(3).replace(damping=np.full(3, 0.2), stiffness=np.full(3, 1.5))
    q, v, tau = random_state(model, 5)
    force = np.arange(6.0)

    def f(q, force, masses):
        changed = model.replace(masses=masses)
        at = {"b2": force}
        known = mb.aba(model, q, v, tau, at, passive=True)
        return known + mb.aba(changed, q, v, tau, at) + mb.rnea(model, q, v, tau, at, passive=True)

    args = (q, force, np.array(model.masses))
    made = lambda: arc.jac(f, argnums=(0, 1, 2))(*args)
    ours = made()
    plain(monkeypatch)
    for one, other in zip(ours, made(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11 * max(1.0, np.abs(other).max()))


@pytest.mark.long
def test_jac_takes_less_work_and_few_directions_none(monkeypatch):
    model = arm(5)
    x = random_state(model, 0)
    f = lambda q, v, tau: mb.aba(model, q, v, tau)
    count = lambda g: arc.compile(g, backend="llvm").report(*x).native_operations
    whole = lambda: count(arc.jac(f, argnums=(0, 1, 2)))
    one = lambda: count(arc.grad(lambda *x: f(*x)[0]))
    ours, ours_one = whole(), one()
    direct = count(lambda q, v, tau: mb.aba_derivatives(model, q, v, tau))
    plain(monkeypatch)
    assert ours < 1.2 * direct
    assert ours < 0.5 * whole()
    assert ours_one == one()


@pytest.mark.long
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_singular_configurations(base):
    """Stretched, folded, turned over: against complex steps and 60 digits."""
    model = arm(3 if base == "fixed" else 2, base)
    rng = np.random.default_rng(2)
    v, a = rng.normal(size=(2, model.nv))
    joints = {"stretched": np.zeros(3), "folded": np.array([0.0, np.pi, np.pi / 2])}
    for name, angles in joints.items():
        q = angles = angles[: len(model.links) - (base == "floating")]
        if base == "floating":
            over = [0.0, 1.0, 0.0, 0.0] if name == "folded" else [1.0, 0.0, 0.0, 0.0]
            q = np.concatenate([[0.0, 0.0, 0.0], over, angles])
        for ours, theirs in (
            (mb.rnea_derivatives(model, q, v, a), complex_steps(model, q, v, a)),
            (mb.aba_derivatives(model, q, v, a), in_mpmath(model, q, v, a)),
        ):
            for one, other in zip(ours, theirs, strict=True):
                size = max(1.0, np.abs(other).max())
                np.testing.assert_allclose(one, other, atol=2e-13 * size, err_msg=name)
        if base == "fixed":
            recorded = arc.jac(lambda q: mb.aba(model, q, v, a))(q)
            np.testing.assert_allclose(recorded, in_mpmath(model, q, v, a)[0], atol=1e-11)
