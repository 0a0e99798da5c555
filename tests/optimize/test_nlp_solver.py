"""``nlp_solver``: set up once; recorded, differentiated and mapped."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import nlp_solver


def distance(x, p):
    return np.sum((x - p["target"]) ** 2) + 0.1 * x[0] * x[1] * p["tilt"]


def disc(x, p):
    return np.sum(x**2) / p["radius"] ** 2


P = {"target": np.array([2.0, 1.0]), "tilt": 0.5, "radius": 1.2}
LIMITS = (None, 1.0)
X0 = np.array([0.1, 0.1])


@pytest.fixture(scope="module")
def solver():
    return nlp_solver(distance, disc, options={"tol": 1e-10})


def test_called_again_nothing_is_recorded_again(solver, recordings):
    first = solver(X0, P, constr_bounds=LIMITS)
    recordings.clear()
    other = {**P, "radius": 1.0, "tilt": 0.0}
    second = solver(X0 + 0.2, other, constr_bounds=(None, 1.0), bounds=(-3.0, 3.0))
    assert not recordings
    assert np.linalg.norm(first) == pytest.approx(1.2, abs=1e-6)
    np.testing.assert_allclose(second, P["target"] / np.linalg.norm(P["target"]), atol=1e-6)


def test_no_solution_raises_outside_and_is_nan_inside(solver):
    with pytest.raises(arc.ConvergenceError, match="no point near here satisfies"):
        solver(X0, P, constr_bounds=(None, -1.0))
    inside = arc.compile(lambda p: solver(X0, p, constr_bounds=(None, -1.0)))(P)
    assert np.all(np.isnan(inside))


def test_recorded_equals_eager(solver):
    recorded = arc.compile(lambda x0, p: solver(x0, p, constr_bounds=LIMITS) * 2.0)
    np.testing.assert_array_equal(recorded(X0, P), 2.0 * solver(X0, P, constr_bounds=LIMITS))


@pytest.mark.long_cases("interior")
@pytest.mark.parametrize("limit", [1.0, 9.0], ids=["constraint holds", "interior"])
def test_derivatives_in_parameters_against_differences(solver, limit):
    def solution(p):
        return solver(X0, p, constr_bounds=(None, limit))

    def differences(p, name, direction):
        h = 1e-4
        shifted = [{**p, name: p[name] + s * h * direction} for s in (-2, -1, 1, 2)]
        a, b, c, d = (solution(q) for q in shifted)
        return (a - 8 * b + 8 * c - d) / (12 * h)

    slopes = arc.jac(solution)(P)
    for name, direction in (("radius", 1.0), ("tilt", 1.0)):
        np.testing.assert_allclose(slopes[name], differences(P, name, direction), atol=1e-6)
    for k, direction in enumerate(np.eye(2)):
        np.testing.assert_allclose(
            slopes["target"][:, k], differences(P, "target", direction), atol=1e-6
        )


def test_derivatives_in_limits():
    tight = nlp_solver(lambda x, p: np.sum((x - p) ** 2), lambda x, p: x[0] + x[1])

    def solution(bound, limit):
        return tight(
            np.zeros(3), np.full(3, 2.0), bounds=(None, bound), constr_bounds=(None, limit)
        )

    # x = (limit/2, limit/2, bound)
    by_bound, by_limit = arc.jac(solution, argnums=(0, 1))(1.5, 1.0)
    np.testing.assert_allclose(by_bound, [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(by_limit, [0.5, 0.5, 0], atol=1e-9)


def test_reverse_mode(solver):
    def score(p):
        return np.sum(solver(X0, p, constr_bounds=LIMITS) ** 2 * np.array([1.0, 3.0]))

    slope = arc.grad(score)(P)
    forward = arc.jac(lambda p: solver(X0, p, constr_bounds=LIMITS))(P)
    x = solver(X0, P, constr_bounds=LIMITS)
    weights = 2 * x * np.array([1.0, 3.0])
    np.testing.assert_allclose(slope["target"], weights @ forward["target"], rtol=1e-9)
    np.testing.assert_allclose(slope["radius"], weights @ forward["radius"], rtol=1e-9)


def test_a_batch_is_a_loop_to_the_bit(solver):
    targets = np.random.default_rng(1).normal(size=(6, 2)) * 3

    def one(target):
        return solver(X0, {**P, "target": target}, constr_bounds=LIMITS)

    np.testing.assert_array_equal(arc.vmap(one)(targets), [one(t) for t in targets])


def test_a_change_of_what_the_functions_read_is_noticed():
    center = np.array([1.0, 2.0])
    solver = nlp_solver(lambda x: np.sum((x - center) ** 2))
    np.testing.assert_allclose(solver(np.zeros(2)), [1, 2], atol=1e-7)
    center[0] = 5.0
    np.testing.assert_allclose(solver(np.zeros(2)), [5, 2], atol=1e-7)


def test_structs_of_unknowns():
    solver = nlp_solver(lambda u, p: (u["a"] - p) ** 2 + np.sum((u["b"] - 1.0) ** 2))
    found = solver.solve({"a": 0.0, "b": np.zeros((2, 2))}, 3.0)
    assert found.x["b"].shape == (2, 2)
    slope = arc.jac(lambda p: solver({"a": 0.0, "b": np.zeros((2, 2))}, p))(3.0)
    assert slope["a"] == pytest.approx(1.0)
    np.testing.assert_allclose(slope["b"], 0.0, atol=1e-12)
