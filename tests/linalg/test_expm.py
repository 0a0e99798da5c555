"""The matrix exponential, plain and traced, against SciPy and mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.linalg

import archimedes as arc
from archimedes import expm

from .matrices import random, traced

pytestmark = pytest.mark.usefixtures("compiled_once")

BOTH = [expm, lambda a: traced(expm, a)]
SIZES = [0.0, 1e-8, 1e-3, 0.5, 5.0, 6.0, 30.0, 1e2, 1e3]


def scaled(seed: int, n: int, size: float) -> np.ndarray:
    """A stable matrix of the given 1-norm, so that its exponential stays in range."""
    a = random(seed, n, n)
    a = a - a.T - 0.02 * np.eye(n)
    return a * (size / np.linalg.norm(a, 1))


def exact(a: np.ndarray) -> np.ndarray:
    with mpmath.workdps(60):
        result = mpmath.expm(mpmath.matrix(a.tolist()), method="taylor")
    return np.array(result.tolist(), dtype=float).reshape(a.shape)


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
@pytest.mark.parametrize("size", SIZES)
def test_against_scipy(function, size: float) -> None:
    for n in (3, 5):  # for two rows SciPy has a formula that loses digits; see below
        a = scaled(0, n, size)
        want = scipy.linalg.expm(a)
        tolerance = 5e-15 * max(size, 20.0) * np.abs(want).max()
        np.testing.assert_allclose(function(a), want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
@pytest.mark.parametrize("size", [1e-8, 0.5, 5.0, 20.0, 300.0])
def test_against_many_digits(function, size: float) -> None:
    for n in (2, 3):
        a = scaled(1, n, size)
        want = exact(a)
        tolerance = 4 * np.finfo(float).eps * max(size, 2.0) * np.abs(want).max()
        np.testing.assert_allclose(function(a), want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
def test_special_matrices(function) -> None:
    np.testing.assert_allclose(function(np.zeros((3, 3))), np.eye(3), rtol=3e-16)
    shear = np.array([[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(function(shear), np.eye(2) + shear, rtol=3e-16)
    np.testing.assert_allclose(function(np.diag([1.0, -2.0])), np.diag(np.exp([1.0, -2.0])),
                               rtol=1e-15, atol=1e-300)  # fmt: skip
    np.testing.assert_allclose(function(np.array([[700.0]])), np.exp([[700.0]]), rtol=1e-15)
    turn = np.array([[0.0, -1e4], [1e4, 0.0]])
    want = np.array([[np.cos(1e4), -np.sin(1e4)], [np.sin(1e4), np.cos(1e4)]])
    np.testing.assert_allclose(function(turn), want, atol=1e-11)


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
def test_stacks_of_different_sizes(function) -> None:
    stack = np.stack([scaled(k, 3, size) for k, size in enumerate((1e-8, 1.0, 40.0, 500.0))])
    want = np.stack([scipy.linalg.expm(a) for a in stack])
    np.testing.assert_allclose(function(stack.reshape(2, 2, 3, 3)).reshape(4, 3, 3), want,
                               atol=1e-11)  # fmt: skip


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
def test_dtypes(function) -> None:
    single = function(scaled(0, 3, 10.0).astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, scipy.linalg.expm(scaled(0, 3, 10.0)), atol=2e-5)
    whole = function(np.array([[0, 1], [-1, 0]]))
    assert whole.dtype == np.float64
    np.testing.assert_allclose(whole[0, 0], np.cos(1.0), rtol=1e-15)


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
def test_values_that_have_no_exponential(function) -> None:
    for bad in (np.nan, np.inf, 1e50):
        assert np.isnan(function(np.array([[0.0, bad], [1.0, 0.0]]))).all()
    # The hyperbolic functions of 1e15.
    assert np.isinf(function(np.array([[0.0, 1e30], [1.0, 0.0]]))).all()
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        function(random(0, 2, 3))


def test_inside_a_program() -> None:
    def step(a, x):
        return expm(0.1 * a) @ x + expm([[x[0], 1.0], [0.0, x[0]]])[0]

    a, x = random(0, 2, 2), random(1, 2)
    want = scipy.linalg.expm(0.1 * a) @ x + np.exp(x[0]) * np.ones(2)
    np.testing.assert_allclose(traced(step, a, x), want, rtol=1e-14)


def test_constant_matrix_leaves_no_loop() -> None:
    a = scaled(0, 3, 30.0)
    program = arc.compile(lambda x: expm(np.array(a)) @ x)
    assert set(program.statistics(np.ones(3)).by_op) <= {"mul", "add", "sub"}
    np.testing.assert_allclose(program(np.ones(3)), scipy.linalg.expm(a) @ np.ones(3), atol=1e-13)


@pytest.mark.parametrize("size", [1e-8, 1.0, 20.0])
def test_derivative_is_frechets(size: float) -> None:
    a = scaled(2, 3, size)
    want = np.empty((3, 3, 3, 3))
    for i in range(3):
        for j in range(3):
            e = np.zeros((3, 3))
            e[i, j] = 1.0
            want[..., i, j] = exact(np.block([[a, e], [np.zeros((3, 3)), a]]))[:3, 3:]
    np.testing.assert_allclose(arc.jac(expm)(a), want, rtol=1e-12, atol=1e-13)
    bar = random(3, 3, 3)
    pulled = np.einsum("ij,ijkl->kl", bar, want)
    np.testing.assert_allclose(arc.vjp(expm)(a, bar), pulled, rtol=1e-11, atol=1e-12)


def in_other_units(seed: int, n: int, decades: float) -> tuple[np.ndarray, np.ndarray]:
    """A matrix whose states are in units that differ by up to 2 ``decades``, and the units."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-decades, decades, n)
    return rng.normal(size=(n, n)) * units[:, None] / units, units


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
@pytest.mark.parametrize("decades", [3.0, 6.0])
def test_states_in_other_units_lose_nothing(function, decades: float) -> None:
    """Each entry to rounding of the largest one in units that suit the matrix."""
    for n in (2, 4):
        for seed in range(4):
            a, units = in_other_units(seed, n, decades)
            error = np.abs(function(a) - exact(a)) / units[:, None] * units
            assert error.max() < 1e-14 * np.abs(exact(a) / units[:, None] * units).max()


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
def test_one_state_in_micrometres(function) -> None:
    a = np.array([[0.0, 1.0, 0.0], [-4.0, -0.4, 1e6], [1e-6, 0.0, -2.0]])
    want = exact(a)
    np.testing.assert_allclose(function(a), want, rtol=3e-15, atol=0)
    np.testing.assert_allclose(function(a), scipy.linalg.expm(a), rtol=1e-13, atol=0)


@pytest.mark.parametrize("function", BOTH, ids=["plain", "traced"])
def test_far_from_normal(function) -> None:
    """Large only off the diagonal: the norm says nothing about how much scaling is needed."""
    for b in (1e3, 1e6, 1e10):
        a = np.array([[-1.0, b], [0.0, -1.5]])
        want = np.array(
            [[np.exp(-1.0), b * (np.exp(-1.0) - np.exp(-1.5)) / 0.5], [0.0, np.exp(-1.5)]]
        )
        np.testing.assert_allclose(function(a), want, rtol=2e-15, atol=0)


def test_stiff_and_in_other_units() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        units = 10.0 ** rng.uniform(-6, 6, 4)
        a = turn @ np.diag(-(10.0 ** rng.uniform(-3, 3, 4))) @ turn.T * units[:, None] / units
        error = np.abs(expm(a) - exact(a)) / units[:, None] * units
        assert error.max() < 3e-13


def test_derivatives_in_other_units() -> None:
    a, units = in_other_units(1, 3, 6.0)
    direction = random(5, 3, 3) * units[:, None] / units
    want = exact(np.block([[a, direction], [np.zeros((3, 3)), a]]))[:3, 3:]
    found = arc.jvp(expm)(a, direction)
    scale = np.abs(want / units[:, None] * units).max()
    np.testing.assert_allclose((found - want) / units[:, None] * units, 0.0, atol=1e-13 * scale)
    bar = random(6, 3, 3) / units[:, None] * units
    pulled = np.sum(arc.vjp(expm)(a, bar) * direction)
    assert pulled == pytest.approx(np.sum(bar * want), rel=1e-12)


def test_the_same_everywhere_in_other_units() -> None:
    a, units = in_other_units(2, 4, 6.0)
    slow, native = (arc.compile(expm, backend=b)(a) for b in ("interpreter", "llvm"))
    np.testing.assert_array_equal(native, slow)
    error = np.abs(native - expm(a)) / units[:, None] * units
    assert error.max() < 1e-14 * np.abs(native / units[:, None] * units).max()
    stack = np.stack([a, 0.1 * a])
    np.testing.assert_allclose(arc.compile(expm)(stack)[0], native, rtol=1e-13)
