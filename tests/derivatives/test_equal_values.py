"""Derivatives where eigenvalues or singular values are equal, or nearly so.

Functions that do not depend on the choice of vectors are differentiated like any other; the
oracle is the same function in 60 digits, by differences. The others give nan.
"""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest

import archimedes as arc
from archimedes.graph.dtypes import length_of

from .cases import Case, agree, hessian, jacobian, weights

pytestmark = pytest.mark.usefixtures("compiled_once")

SKEW = np.array([[0.0, 0.4, -0.2], [-0.4, 0.0, 0.7], [0.2, -0.7, 0.0]])
TURN = np.linalg.solve(np.eye(3) + SKEW, np.eye(3) - SKEW)
PLANE = np.array([[0.8, 0.6], [-0.6, 0.8]])


def turned(q: np.ndarray, *values: float) -> np.ndarray:
    a = (q * np.array(values)) @ q.T
    return (a + a.T) / 2


#: Symmetric matrices with equal eigenvalues, exactly or up to rounding.
MATRICES = {
    "I2": np.eye(2),
    "turned 3, 3": turned(PLANE, 3.0, 3.0 + 1e-15),
    "2 I3": 2.0 * np.eye(3),
    "diag(2, 2, 5)": np.diag([2.0, 2.0, 5.0]),
    "diag(5, 1, 5)": np.diag([5.0, 1.0, 5.0]),
    "turned 2, 2, 5": turned(TURN, 2.0, 2.0, 5.0),
    "turned 4, 4, 4": turned(TURN, 4.0, 4.0, 4.0),
}
#: Nearly equal: what a quotient by the difference would spoil.
NEAR = {
    f"gap {gap}": turned(TURN, 2.0, 2.0 + gap, 5.0)
    for gap in (1e-13, 1e-10, 1e-8, 1e-6, 1e-5, 3e-5, 1e-4)
}


def both(a: Any) -> Any:
    return (a + a.T) / 2


# ---- the functions, in double precision and in 60 digits -----------------------------------------


def by_vectors(scalar: Any) -> Any:
    """A function of a symmetric matrix by its eigenvalues and vectors."""

    def function(np: Any, a: Any) -> Any:
        w, v = np.linalg.eigh(both(a))
        return (v * scalar(np, w)) @ v.T

    return function


def by_values(scalar: Any) -> Any:
    return lambda np, a: np.sum(scalar(np, np.linalg.eigvalsh(both(a))))


def eigh(a: Any) -> tuple[np.ndarray, np.ndarray]:
    w, v = mp.eigsy(mp.matrix(a.tolist()))
    n = len(a)
    return (
        np.array([w[i] for i in range(n)], dtype=object),
        np.array([[v[i, j] for j in range(n)] for i in range(n)], dtype=object),
    )


@pytest.fixture(autouse=True)
def eigenvectors_in_60_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    from . import multiprecision

    monkeypatch.setattr(multiprecision.LINALG, "eigh", eigh, raising=False)


SCALARS = {
    "root": lambda np, w: np.sqrt(w),
    "exp": lambda np, w: np.exp(w),
    "log": lambda np, w: np.log(w),
    "inverse": lambda np, w: 1.0 / w,
    "square": lambda np, w: w * w,
}


def first(name: str, fn: Any, x: np.ndarray, tolerance: float) -> None:
    case = Case(name, fn, x)
    want = jacobian(case)
    mine = case.bind(np, arc)
    got = np.asarray(arc.jac(mine)(x))
    agree(got.reshape(want.shape), want, name, tolerance)
    w = weights(len(want))
    pulled = arc.grad(lambda a: np.sum(w * np.ravel(mine(a))))(x)
    agree(np.ravel(pulled), w @ want, name, tolerance)


def second(name: str, fn: Any, x: np.ndarray, tolerance: float) -> None:
    case = Case(name, fn, x)
    want = hessian(case)
    mine = case.bind(np, arc)
    count = np.size(mine(x))
    got = np.asarray(arc.hess(lambda a: np.sum(weights(count) * np.ravel(mine(a))))(x))
    agree(got.reshape(want.shape), want, name, tolerance)


# ---- functions free of the choice of vectors -----------------------------------------------------


def test_root_of_a_matrix() -> None:
    def root(a):
        w, v = np.linalg.eigh(np.array([[1.0, a], [a, 1.0]]))
        return (v * np.sqrt(w)) @ v.T

    slope = np.array([[0.0, 0.5], [0.5, 0.0]])
    np.testing.assert_allclose(arc.jac(root)(0.0), slope, atol=1e-15)
    np.testing.assert_allclose(arc.jvp(root)(0.0, 1.0), slope, atol=1e-15)
    assert arc.grad(lambda a: root(a)[0, 1])(0.0) == 0.5
    # sqrt(1 + a) + sqrt(1 - a) over 2 on the diagonal: its second derivative is -1/4
    assert arc.grad(arc.grad(lambda a: root(a)[0, 0]))(0.0) == pytest.approx(-0.25, rel=1e-14)


def test_sum_of_squares() -> None:
    # sum(w**2) is the sum of a_ij**2; the lower triangle stands for both
    curve = arc.hess(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(np.eye(2))
    want = np.zeros((2, 2, 2, 2))
    want[0, 0, 0, 0] = want[1, 1, 1, 1] = 2.0
    want[1, 0, 1, 0] = 4.0
    np.testing.assert_allclose(curve, want, atol=1e-14)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("at", MATRICES)
def test_first_derivatives_of_matrix_functions(at: str, name: str) -> None:
    first(f"{name} at {at}", by_vectors(SCALARS[name]), MATRICES[at], 1e-12)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("at", ["I2", "turned 3, 3"])
def test_second_derivatives_of_matrix_functions(at: str, name: str) -> None:
    second(f"{name} at {at}", by_vectors(SCALARS[name]), MATRICES[at], 1e-11)


@pytest.mark.long
@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("at", MATRICES)
def test_second_derivatives_of_sums_over_values(at: str, name: str) -> None:
    second(f"sum of {name} at {at}", by_values(SCALARS[name]), MATRICES[at], 1e-12)


@pytest.mark.long_cases("gap*")
@pytest.mark.parametrize("at", NEAR)
def test_nearly_equal_values(at: str) -> None:
    first(f"root at {at}", by_vectors(SCALARS["root"]), NEAR[at], 1e-10)
    second(f"sum of exp at {at}", by_values(SCALARS["exp"]), NEAR[at], 1e-10)


# ---- singular values -----------------------------------------------------------------------------


def polar(a: Any) -> Any:
    u, _, vt = np.linalg.svd(a)
    return u @ vt


def composed(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return (u * s) @ vt


POLAR_POINTS = {"I": np.eye(3), "rotation": TURN, "2 rotations": 2.0 * TURN, "plane": PLANE}


@pytest.mark.parametrize("at", POLAR_POINTS)
def test_nearest_rotation(at: str) -> None:
    # The polar factor of R (1 + E) is R (1 + (E - E^T) / 2) to first order.
    a = POLAR_POINTS[at]
    n, size = len(a), np.linalg.norm(a, 2)
    step = np.cos(np.arange(n * n)).reshape(n, n)
    inner = (a / size).T @ step / size
    want = (a / size) @ (inner - inner.T) / 2
    np.testing.assert_allclose(arc.jvp(polar)(a, step), want, atol=1e-14)


COMPOSED_POINTS = {
    "I": np.eye(3),
    "rotation": TURN,
    "zero": np.zeros((2, 2)),
    "rank one": np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0]),
    "tall": np.vstack([np.eye(2), np.zeros((1, 2))]),
    "tall turned": TURN[:, :2],
    "wide": TURN[:2],
}


@pytest.mark.parametrize("at", COMPOSED_POINTS)
def test_a_matrix_from_its_own_factors(at: str) -> None:
    a = COMPOSED_POINTS[at]
    identity = np.eye(a.size).reshape(a.shape * 2)
    np.testing.assert_allclose(arc.jac(composed)(a), identity, atol=1e-13)


@pytest.mark.parametrize("at", ["I", "rotation", "tall", "tall turned", "wide"])
def test_sums_over_singular_values(at: str) -> None:
    # sum(s**4) is the trace of (A^T A)**2
    a = COMPOSED_POINTS[at]
    fourth = arc.hess(lambda x: np.sum(np.linalg.svdvals(x) ** 4))(a)
    want = arc.hess(lambda x: np.trace(x.T @ x @ x.T @ x))(a)
    np.testing.assert_allclose(fourth, want, atol=1e-12)


# ---- functions that do depend on it --------------------------------------------------------------


@pytest.mark.parametrize("at", ["I2", "2 I3", "turned 2, 2, 5"])
def test_vectors_of_equal_values_have_no_derivative(at: str) -> None:
    a = MATRICES[at]
    vectors = np.asarray(arc.jac(lambda x: np.linalg.eigh(x)[1])(a))
    assert np.isnan(vectors[:, 0]).any() and np.isnan(vectors[:, 1]).any()
    projector = lambda x: np.outer(np.linalg.eigh(x)[1][:, 0], np.linalg.eigh(x)[1][:, 0])
    assert np.isnan(np.asarray(arc.jac(projector)(a))).any()


def test_the_other_vectors_keep_theirs() -> None:
    # The vector of 5 is alone: its projector moves by 1 / (5 - 2) times the step.
    a, step = MATRICES["diag(2, 2, 5)"], both(np.cos(np.arange(9.0)).reshape(3, 3))

    def projector(x):
        v = np.linalg.eigh(x)[1][:, 2]
        return np.outer(v, v)

    want = np.zeros((3, 3))
    want[2, :2] = want[:2, 2] = step[2, :2] / 3.0
    np.testing.assert_allclose(arc.jvp(projector)(a, step), want, atol=1e-14)
    # The projector on both of the others is one minus it.
    pair = lambda x: np.linalg.eigh(x)[1][:, :2] @ np.linalg.eigh(x)[1][:, :2].T
    np.testing.assert_allclose(arc.jvp(pair)(a, step), -want, atol=1e-14)


def test_curvature_of_one_of_equal_values() -> None:
    curve = np.asarray(arc.hess(lambda x: np.linalg.eigvalsh(x)[0])(np.eye(2)))
    assert np.isnan(curve).any()


def test_singular_vectors_of_equal_values() -> None:
    for part in (0, 2):
        assert np.isnan(arc.jac(lambda x, k=part: np.linalg.svd(x)[k])(np.eye(2))).any()


# ---- wherever it is used -------------------------------------------------------------------------


def root(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return (v * np.sqrt(w)) @ v.T


STEP = both(np.cos(np.arange(9.0)).reshape(3, 3))


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_backends(backend: str) -> None:
    slope = arc.compile(lambda a: arc.jvp(root)(a, STEP), backend=backend)
    np.testing.assert_allclose(slope(4.0 * np.eye(3)), STEP / 4.0, atol=1e-15)
    # elsewhere: X dX + dX X = dA
    a = turned(TURN, 1.0, 2.0, 4.0)
    x, dx = root(a), slope(a)
    np.testing.assert_allclose(x @ dx + dx @ x, STEP, atol=1e-13)


def test_one_after_the_other() -> None:
    # The fourth root of 16, without a loop: the values are equal at both stages.
    a = 16.0 * np.eye(2)
    step = STEP[:2, :2]
    np.testing.assert_allclose(arc.jvp(lambda x: root(root(x)))(a, step), step / 32.0, atol=1e-15)
    pulled = arc.grad(lambda x: np.sum(step * root(root(x))))(a)
    np.testing.assert_allclose(both(np.asarray(pulled)), step / 32.0, atol=1e-15)


def test_second_derivatives_of_the_nearest_rotation() -> None:
    # The first row's end of U V^T is (b - c) / sqrt((a + d)**2 + (b - c)**2) for [[a, b], [c, d]].
    def formula(x):
        return (x[0, 1] - x[1, 0]) / np.hypot(x[0, 0] + x[1, 1], x[0, 1] - x[1, 0])

    for a in (np.eye(2), PLANE, 3.0 * PLANE, np.array([[1.0, 0.3], [-0.2, 2.0]])):
        got = arc.hess(lambda x: polar(x)[0, 1])(a)
        np.testing.assert_allclose(got, arc.hess(formula)(a), atol=1e-13)


def test_in_a_loop_and_in_a_batch() -> None:
    def twice(a):
        return arc.fori_loop(0, 2, lambda k, x: root(x), a)

    # the fourth root of 16: d = dA / (4 * 16**(3/4))
    got = arc.jvp(twice)(16.0 * np.eye(3), STEP)
    np.testing.assert_allclose(got, STEP / 32.0, atol=1e-15)
    pulled = arc.grad(lambda a: np.sum(STEP * twice(a)))(16.0 * np.eye(3))
    np.testing.assert_allclose(both(np.asarray(pulled)), STEP / 32.0, atol=1e-15)
    stack = np.stack([np.eye(3), 4.0 * np.eye(3)])
    batch = arc.vmap(lambda a: arc.jvp(root)(a, STEP))(stack)
    np.testing.assert_allclose(batch, [STEP / 2.0, STEP / 4.0], atol=1e-15)


def test_factors_made_elsewhere() -> None:
    """A function that returns the factors is not symmetric, what uses them is."""
    factors = arc.compile(lambda a: np.linalg.eigh(a))

    def composed(a):
        w, v = factors(a)
        return (v * np.sqrt(w)) @ v.T

    np.testing.assert_allclose(arc.jvp(composed)(np.eye(3), STEP), STEP / 2.0, atol=1e-15)
    pulled = arc.grad(lambda a: np.sum(STEP * composed(a)))(np.eye(3))
    np.testing.assert_allclose(both(np.asarray(pulled)), STEP / 2.0, atol=1e-15)


def test_factors_carried_out_of_a_loop() -> None:
    """What a loop does with its results it cannot know: no derivative, rather than a wrong one."""

    def composed(a):
        w, v = arc.fori_loop(
            0, 1, lambda k, x: tuple(np.linalg.eigh((x[1] * x[0]) @ x[1].T)), (np.ones(2), a)
        )
        return (v * np.sqrt(w)) @ v.T

    step = np.array([[0.0, 1.0], [1.0, 0.0]])
    a = np.array([[0.6, 0.8], [-0.8, 0.6]])
    assert np.isnan(np.asarray(arc.jvp(composed)(a, step))).any()
    assert np.isnan(np.asarray(arc.grad(lambda a: np.sum(step * composed(a)))(a))).any()


def test_outputs_in_a_block() -> None:
    """The matrix root at a tie, with its elements and others in one array that is a loop."""
    points = np.cos(np.arange(10.0))
    a, step = 4.0 * np.eye(3), STEP + STEP.T

    @arc.compile(loops_from=2)
    def root(a):
        w, v = np.linalg.eigh(a)
        return np.outer(points, (v * np.sqrt(w)) @ v.T)

    assert any(length_of(k) for k in root.recording(a).blocks.output_dtypes)
    want = np.outer(points, step / 4.0)
    np.testing.assert_allclose(arc.jvp(root)(a, step), want, atol=1e-12)


def test_many_outputs() -> None:
    """Beyond 256 outputs forward mode has the ordinary rule: right away from ties, nan at them."""
    points = np.cos(np.arange(270.0)).reshape(90, 3)
    spread = lambda a: points @ np.linalg.eigh(a)[1]
    a, h = turned(TURN, 1.0, 2.0, 4.0), 1e-6
    low, high = (np.linalg.eigh(a + s * h * STEP)[1] for s in (-1, 1))
    signs = np.sign(np.sum(low * high, axis=0))
    own = np.sign(np.sum(low * np.asarray(arc.compile(lambda x: np.linalg.eigh(x)[1])(a)), axis=0))
    want = points @ ((high * signs - low) * own) / (2 * h)
    np.testing.assert_allclose(arc.jvp(spread)(a, STEP), want, atol=1e-8)
    assert np.isnan(arc.jvp(spread)(np.eye(3), STEP)).any()
    pairs = lambda a: np.outer(points, np.linalg.svd(a)[0] @ np.linalg.svd(a)[2])
    assert np.isnan(np.asarray(arc.jvp(pairs)(np.eye(3), STEP))).any()
    b = np.array([[3.0, 0.5, 0.1], [0.2, 2.0, -0.3], [0.4, 0.1, 1.0]])
    want = (polar(b + h * STEP) - polar(b - h * STEP)) / (2 * h)
    got = arc.jvp(pairs)(b, STEP)[0].reshape(3, 3) / points[0, 0]
    np.testing.assert_allclose(got, want, atol=1e-8)


def test_larger_matrices() -> None:
    slope = arc.compile(arc.grad(lambda x: root(x)[0, 1]), backend="interpreter")
    want = np.zeros((9, 9))
    want[1, 0] = 0.5  # the lower triangle stands for both
    np.testing.assert_allclose(slope(np.eye(9)), want, atol=1e-15)
