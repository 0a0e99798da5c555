"""Rotations as turns about coordinate axes, and inertias moved to parents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archimedes as arc
from archimedes import multibody as mb
from archimedes.graph.ops import CODES
from archimedes.multibody.algorithms.inverse_dynamics import link_forces, torques_of
from archimedes.multibody.algorithms.links import Tree, move_rods, read_tree
from archimedes.spatial import axis_rotations as t

from .random_trees import random_state, random_tree

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None, derandomize=True)


def about(k: int, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    if abs(angle) % (np.pi / 2) == 0:
        c, s = np.round(c), np.round(s)
    i, j = (k + 1) % 3, (k + 2) % 3
    R = np.zeros((3, 3))
    R[k, k] = 1.0
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


@quick
@given(seeds, st.sampled_from([None, 0, 1, 2]))
def test_a_matrix_is_the_product_of_its_turns(seed, last):
    rng = np.random.default_rng(seed)
    R = np.eye(3)
    for _ in range(rng.integers(0, 4)):
        angle = rng.choice([rng.normal(), 1.5708, 1e-9, *(np.pi / 2 * np.arange(4))])
        R = R @ about(rng.integers(3), angle)
    turns = t.factor_rotation(R, last)
    if turns is None:
        return
    v, M = rng.normal(size=3), rng.normal(size=(3, 3))
    near = lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=1e-13)
    near(t.rotate_vector(turns, v), R @ v)
    near(t.rotate_back(turns, v), R.T @ v)
    near(t.rotate_matrix(turns, M), R @ M @ R.T)
    near(t.rotate_symmetric(turns, M + M.T), R @ (M + M.T) @ R.T)


def test_few_turns_are_found():
    assert t.factor_rotation(np.eye(3)) == ()
    assert len(t.factor_rotation(about(0, 1.5708))) == 1
    assert len(t.factor_rotation(about(1, 0.3) @ about(2, 0.7), last=2)) == 2
    assert [abs(x.s) for x in t.factor_rotation(about(0, np.pi / 2) @ about(1, np.pi / 2))] == [
        1,
        1,
    ]
    # An axis close to a coordinate axis is not one.
    assert t.axis_rotation((0.0, -1.0, -4e-8), 0.3) is None


def test_batches_and_traces_of_turns():
    angles = np.array([0.1, 0.7, 2.0])
    turns = t.merge_rotations(
        [*t.factor_rotation(about(0, 0.4)), *t.axis_rotation((0.0, 0.0, -1.0), angles)]
    )
    v = np.array([1.0, 2.0, 3.0])
    for k, angle in enumerate(angles):
        R = about(0, 0.4) @ about(2, -angle)
        np.testing.assert_allclose(t.rotate_vector(turns, v)[k], R @ v, atol=1e-14)
        np.testing.assert_allclose(t.rotate_symmetric(turns, np.eye(3))[k], np.eye(3), atol=1e-14)
    recorded = arc.compile(
        lambda a: t.rotate_vector(t.axis_rotation((0, 1.0, 0), a), np.array([1.0, 2, 3])),
        backend="llvm",
    )
    np.testing.assert_allclose(recorded(0.4), about(1, 0.4) @ v, atol=1e-15)


@quick
@given(seeds)
def test_moved_inertias_give_the_same_torques(seed):
    model = random_tree(seed)
    q, v, a = random_state(model, seed)
    torques = [
        torques_of(model, *link_forces(tree, q, v, a))[0]
        for tree in (read_tree(model), Tree(model, move_rods(model), {}))
    ]
    np.testing.assert_allclose(*torques, atol=1e-11 * max(1.0, np.abs(torques[0]).max()))


@pytest.mark.parametrize(("function", "most"), [(mb.rnea, 340), (mb.aba, 850)])
def test_products_of_an_arm(function, most):
    """A chain of six joints at right angles: what was counted, so that nobody loses it."""
    b = mb.Builder()
    rng = np.random.default_rng(0)
    for k in range(6):
        b.add_body(f"b{k}", 1.0, rng.normal(size=3), np.diag([0.3, 0.4, 0.5]))
        turn = about(0, (-1) ** k * np.pi / 2)
        b.attach(f"b{k}", f"b{k - 1}" if k else "world", joint=f"j{k}", axis=[0, 0, 1],
                 rotation=turn, position=[0.1, 0.0, 0.2])  # fmt: skip
    model = b.build()
    f, x = arc.compile(lambda *x: function(model, *x)), np.zeros(6)
    f(x, x, x)
    graph = f.lookup((x, x, x), {})[1].graph
    assert sum(graph.op[i] == CODES["mul"] for i in graph.live()) <= most


def test_skew_axes_and_anchors_cost_no_more():
    """A chain about any axes beside the origins of its bodies: the same torques, and work."""
    counts, models = [], []
    for skew in (False, True):
        b = mb.Builder()
        for k in range(3):
            b.add_body(f"b{k}", 1.0, [0.1, 0.2, 0.3], np.diag([0.3, 0.4, 0.5]))
            axis = np.array([1.0, -2.0, 0.5]) if skew else np.array([0.0, 0.0, 1.0])
            b.attach(f"b{k}", f"b{k - 1}" if k else "world", joint=f"j{k}",
                     axis=axis / np.sqrt(axis @ axis), position=[0.1, 0.2, 0.3],
                     anchor=(0.1, 0.0, 0.2) if skew else (0.0, 0.0, 0.0))  # fmt: skip
        models.append(b.build())
        f, x = arc.compile(lambda *x, m=models[-1]: mb.aba(m, *x)), np.ones(3)
        f(x, x, x)
        counts.append(len(f.lookup((x, x, x), {})[1].graph.live()))
    assert counts[1] < 1.6 * counts[0]
    x = random_state(models[1], 0)
    force = {"b2": np.arange(6.0)}
    back = mb.rnea(models[1], *x[:2], mb.aba(models[1], *x, force), force)
    np.testing.assert_allclose(back, x[2], atol=1e-12)
