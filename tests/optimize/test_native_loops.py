"""The loops of the interior-point method against NumPy and SciPy, for sizes that fit no vector."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.linalg import cho_solve_banded, cholesky_banded

from archimedes.optimize.problems.blocks import Block, Evaluator, Structure
from archimedes.optimize.solvers.interior_point.band_loops import PANEL, Rows, Sizes
from archimedes.optimize.solvers.interior_point.banded_system import BandedSystem, find_chain
from archimedes.optimize.solvers.interior_point.loop_descriptions import native_loops
from archimedes.optimize.solvers.interior_point.point_loops import Sides, Slacks


@pytest.fixture(scope="module")
def loops():
    found = native_loops()
    assert found is not None
    return found


def band(n: int, width: int, seed: int = 0) -> np.ndarray:
    """Return a definite matrix as SciPy keeps its lower band, (width + 1, n)."""
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(width + 1, n))
    low[0] = 2.0 * (width + 1) + rng.uniform(size=n)
    for t in range(1, width + 1):
        low[t, n - t :] = 0.0
    return low


def store(low: np.ndarray) -> tuple[np.ndarray, Sizes]:
    """Return it as the loops store it, with its sizes."""
    width, n = low.shape[0] - 1, low.shape[1]
    ld, kept = -(-(width + PANEL + 8) // 8) * 8, -(-n // PANEL) * PANEL
    K = np.zeros((kept, ld))
    K[:n, : width + 1] = low.T
    K[n:, 0] = 1.0
    return K, Sizes(n, 0, kept, width, ld, kept + ld + 8)


@pytest.mark.parametrize(("n", "width"), [(1, 0), (3, 0), (4, 3), (7, 2), (50, 9), (61, 17)])
def test_factors_and_solutions(loops, n, width):
    low = band(n, width)
    K, sizes = store(low)
    inverse, x = np.zeros(sizes.nc), np.zeros(sizes.nv)
    right = np.random.default_rng(1).normal(size=n)
    x[:n] = right
    assert loops.factor_band(K, inverse, *sizes) == 0
    expected = cholesky_banded(low, lower=True)
    for t in range(width + 1):
        np.testing.assert_allclose(K[: n - t, t], expected[t, : n - t], rtol=1e-13, atol=1e-14)
    assert not K[:, width + 1 :].any()
    loops.solve_band(K, inverse, *sizes, x)
    np.testing.assert_allclose(x[:n], cho_solve_banded((expected, True), right), rtol=1e-12)
    assert not x[sizes.nc :].any()


@pytest.mark.parametrize("where", [0, 5, 10])
@pytest.mark.parametrize("bad", [-1.0, 0.0, math.nan])
def test_a_matrix_that_is_not_definite_is_told(loops, where, bad):
    low = band(11, 2)
    low[0, where] = bad
    K, sizes = store(low)
    assert loops.factor_band(K, np.zeros(sizes.nc), *sizes) == where + 1


def test_entries_listed_twice_are_added():
    # Each place knows an unknown twice, and both blocks write to the same rows.
    index = np.array([[0, 1, 1], [1, 2, 2], [2, 3, 3]])
    rows = np.arange(3)[:, None]
    first = Block(lambda z: np.stack([z[0] * z[1] + 3.0 * z[2]]), index, rows)
    second = Block(lambda z: np.stack([z[0] ** 2 + z[2]]), index, rows)
    blocks = [first, second]
    structure = Structure([b.patterns(()) for b in blocks], 4, 3)
    evaluator = Evaluator(blocks, structure, ())
    free = np.array([True, True, False, True])
    chain = find_chain(structure.patterns, free, np.arange(4.0))
    system = BandedSystem(structure, chain, native_loops())
    x = np.array([0.3, -1.2, 0.7, 2.0])
    entries = evaluator.slopes(x)[1]
    scale = np.array([2.0, 3.0, 5.0])
    system.take_jacobian(evaluator.slopes(x)[1], scale)
    A = scale[:, None] * structure.jacobian(entries)[:, chain.band]
    lam = np.array([0.1, 0.2, -0.4])
    np.testing.assert_allclose(system.multiply_transpose(lam), A.T @ lam, rtol=1e-14, atol=1e-16)
    # The unknown that is held has no column in A, but a multiplier.
    whole = evaluator.multiply_transpose(x, lam)
    np.testing.assert_allclose(whole, structure.jacobian(entries).T @ lam, rtol=1e-14)
    system.take_hessian()
    D = np.array([0.5, 0.1, 1.0])
    assert system.factor(np.ones(3), D)
    r, rc = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5, 0.2])
    K = np.block([[np.eye(3), A.T], [A, -np.diag(D)]])
    expected = np.linalg.solve(K, np.concatenate([r, rc]))
    np.testing.assert_allclose(
        np.concatenate(system.solve(r, rc, refined=False)[:2]), expected, rtol=1e-11
    )


def test_logarithms_of_distances(loops):
    rng = np.random.default_rng(2)
    w = np.exp(rng.uniform(-200.0, 200.0, size=300))
    at, edge, away = np.arange(300), np.zeros(300), np.ones(300)
    dw, new, x, d, out = np.zeros(300), np.zeros(300), np.zeros(300), np.zeros(300), np.zeros(5)

    def move(w: np.ndarray) -> list[float]:
        slacks, sides = Slacks(at, 300, 0), Sides(at, away, 300)
        loops.move_point(at, dw, 300, *slacks, *sides, edge, w, dw, 0.0, new, x, d, out)
        return out.tolist()

    product, power, outside, largest, _ = move(w)
    assert (outside, largest) == (0.0, w.max())
    assert math.log(product) + power * math.log(2.0) == pytest.approx(np.log(w).sum(), abs=1e-9)
    for bad in (0.0, -1.0, math.nan):
        assert move(np.where(np.arange(300) == 7, bad, w))[2] == 1.0


def test_numbers_that_are_not_finite_are_seen(loops):
    none, one = np.zeros(0), np.ones(1)
    numbers, starts = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    pull, room, out = np.zeros(2), np.zeros(2), np.zeros(5)
    for bad in (math.nan, math.inf, -math.inf):
        gradient = np.array([1.0, bad])
        rows, slacks = Rows(none, numbers, starts, 0), Slacks(numbers, 2, 0)
        sides = Sides(numbers, one, 0)
        arrays = (gradient, none, none, none, pull, room, out)
        loops.measure_balance(*rows, *slacks, *sides, *arrays)
        assert not math.isfinite(out[0])


def test_bound_arrays_are_held_and_checked(loops):
    """A bound function holds its arrays, and refuses those that native code would misread."""
    numbers = np.ones(64)  # whole vectors, as it writes no others
    clear = loops.set_zero.bind(numbers)
    other = sys.getrefcount(numbers)
    assert clear(64) == 0
    np.testing.assert_array_equal(numbers, np.zeros(64))
    del clear
    assert sys.getrefcount(numbers) == other - 1
    for wrong in (np.ones(3, np.float32), np.ones(6)[::2]):
        with pytest.raises(ValueError, match="must be C-contiguous float64"):
            loops.set_zero.bind(wrong)
    with pytest.raises(ValueError, match="argument"):
        loops.set_zero(numbers)
