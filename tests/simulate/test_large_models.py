"""Large models: single runs stepped in Python, sparse Jacobians, systems solved block by block."""

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.sparse import coo_array, eye_array
from scipy.sparse.linalg import spsolve

import archimedes as arc
from archimedes import Event
from archimedes.backends.registry import get_backend
from archimedes.function.recording_store import store
from archimedes.simulate.sparse.sparse_jacobians import CompressedJacobian, Compression
from archimedes.simulate.sparse.sparse_systems import SparseSystem, order_elimination
from archimedes.simulate.stepping import solve_kernels
from tests.optional_packages import import_or_skip

from . import block_factors


def ring(t, x, a):
    return np.sin(np.roll(x, 1)) * a - x * np.cos(x) + np.exp(-t)


def solved(monkeypatch, in_python, n=5, **options):
    monkeypatch.setattr(solve_kernels, "in_python", lambda plan: in_python)
    store.clear()
    return arc.solve_ode(ring, (0.0, 4.0), np.linspace(0.0, 1.0, n), args=(1.3,), **options)


WAYS = {
    "every step": {},
    "tsit5": {"method": "tsit5", "rtol": 1e-6},
    "fixed steps": {"method": "rk4", "dt": 0.1},
    "many outputs": {"t_eval": np.linspace(0.0, 4.0, 50)},
    "few outputs": {"t_eval": np.linspace(0.0, 4.0, 5)},
    "events": {
        "events": [Event(lambda t, x, a: x[0] - 0.7, reset=lambda t, x, a: x * 0.5)],
        "method": "tsit5",
    },
}


@pytest.mark.long_cases("events", "every step", "few outputs", "many outputs")
@pytest.mark.parametrize("way", WAYS)
def test_steps_in_python_have_the_bits_of_kernels(monkeypatch, way):
    kernel, python = (solved(monkeypatch, where, **WAYS[way]) for where in (False, True))
    assert np.array_equal(kernel.t, python.t)
    assert np.array_equal(kernel.x, python.x)
    assert kernel.stats == python.stats


@pytest.mark.long
@pytest.mark.parametrize("method", ["rodas5p", "esdirk4", "radau5", "auto"])
def test_stiff_methods_agree_with_dense_systems(monkeypatch, method):
    options = {"method": method, **({"dt": 0.1} if method == "radau5" else {})}
    kernel, python = (solved(monkeypatch, where, **options) for where in (False, True))
    assert kernel.x.shape == python.x.shape
    # Factors are rounded in other places, so steps end at other times: within the tolerance.
    assert np.allclose(kernel.x[-1], python.x[-1], rtol=1e-7, atol=1e-7)


def test_sampled_parts_act_between_steps(monkeypatch):
    def model(t, x, u):
        return -x + u

    def update(t, x, u):
        return np.cos(t) * np.sum(x) * np.ones(3)

    def run(where):
        monkeypatch.setattr(solve_kernels, "in_python", lambda plan: where)
        store.clear()
        part = arc.Sampled(update, np.zeros(3), dt=0.25)
        return arc.solve_ode(model, (0.0, 1.0), np.arange(3.0), sampled=part)

    kernel, python = run(False), run(True)
    assert np.array_equal(kernel.x, python.x)


def grid(n):
    """Entries of two species on n x n cells with neighbours, periodic."""
    cell = np.arange(n * n).reshape(n, n)
    pairs = {(i, i) for i in range(2 * n * n)}
    for shift in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        other = np.roll(cell, shift, (0, 1))
        for a, b in zip(cell.ravel().tolist(), other.ravel().tolist()):
            pairs |= {(a, b), (a + n * n, b + n * n)}
    for a in range(n * n):
        pairs |= {(a, a + n * n), (a + n * n, a)}
    rows, columns = np.array(sorted(pairs)).T
    return rows, columns, 2 * n * n


def arrow(n):
    """A state that all others are coupled to."""
    every, none = np.arange(n), np.zeros(n, dtype=int)
    pairs = {*zip(every, every), *zip(every, none), *zip(none, every)}
    rows, columns = np.array(sorted(pairs)).T
    return rows, columns, n


def band(n):
    every = [(i, j) for i in range(n) for j in range(max(0, i - 2), min(n, i + 2))]
    rows, columns = np.array(every).T
    return rows, columns, n


PATTERNS = {"grid": grid(6), "arrow": arrow(30), "band": band(50), "one": band(1), "dense": grid(2)}


@pytest.mark.parametrize("name", PATTERNS)
def test_systems_are_solved_with_the_same_bits_natively(name):
    rows, columns, n = PATTERNS[name]
    rng = np.random.default_rng(0)
    values, right = rng.normal(size=len(rows)), rng.normal(size=n)
    native = get_backend("llvm").block_factors()
    plain, fast = (SparseSystem(rows, columns, n, how) for how in (block_factors, native))
    ours, theirs = plain.factorize(values, 9.0), fast.factorize(values, 9.0)
    assert np.array_equal(ours.blocks, theirs.blocks)
    assert np.array_equal(ours.solve(right), theirs.solve(right))
    rounded = [system.factorize(values, 9.0, rounded=True) for system in (plain, fast)]
    assert np.array_equal(rounded[0].solve(right), rounded[1].solve(right))
    assert np.allclose(rounded[0].solve(right), ours.solve(right), rtol=1e-5, atol=1e-6)
    matrix = coo_array((values, (rows, columns)), shape=(n, n)).tocsc() + 9.0 * eye_array(n)
    expected = np.atleast_1d(spsolve(matrix.tocsc(), right))
    assert np.allclose(ours.solve(right), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [1.0, 1e-13, 1e-19, 1e-30, 1e-42])
def test_rounded_factors_have_the_same_bits_where_numbers_vanish(size):
    """What is far from the diagonal decays below the normal numbers of float32."""
    rows, columns, n = grid(6)
    rng = np.random.default_rng(2)
    values, right = size * rng.normal(size=len(rows)), rng.normal(size=n)
    native = get_backend("llvm").block_factors()
    ours, theirs = (
        SparseSystem(rows, columns, n, how).factorize(values, 7.0, rounded=True)
        for how in (block_factors, native)
    )
    assert ours.blocks.dtype == np.float32
    assert np.array_equal(ours.blocks, theirs.blocks)
    left = np.abs(ours.blocks[ours.blocks != 0.0])
    assert left.min() >= np.finfo(np.float32).tiny
    matrix = coo_array((values, (rows, columns)), shape=(n, n)).tocsc() + 7.0 * eye_array(n)
    expected = spsolve(matrix.tocsc(), right)
    assert np.allclose(theirs.solve(right), expected, rtol=1e-6, atol=1e-6)


def test_panels_are_columns_of_the_same_pattern():
    rows, columns, n = grid(8)
    system = SparseSystem(rows, columns, n)
    below, panels = system.elimination.below, system.panels.tolist()
    assert panels[0] == 0 and panels[-1] == system.count
    targets = iter(system.targets.tolist())
    for first, end in itertools.pairwise(panels):
        for k in range(first, end - 1):
            assert below[k] == [k + 1, *below[k + 1]]
        for i, j in itertools.combinations(below[end - 1], 2):
            assert system.later[at := next(targets)] == j
            assert system.starts[i] <= at < system.starts[i + 1]
    assert next(targets, None) is None
    # Not one for each column, or nothing would stay in registers.
    assert len(panels) - 1 < system.count


def test_fill_is_what_elimination_makes():
    rows, columns, n = grid(5)
    found = order_elimination(rows, columns, n)
    assert sorted(i for block in found.blocks for i in block) == list(range(n))
    home = {i: k for k, block in enumerate(found.blocks) for i in block}
    coupled = {(home[i], home[j]) for i, j in zip(rows.tolist(), columns.tolist())}
    for k, below in enumerate(found.below):
        assert all(later > k for later in below)
        assert {max(a, b) for a, b in coupled if min(a, b) == k != max(a, b)} <= set(below)
        assert all(b in found.below[a] for a in below for b in below if a < b)


def test_singular_and_growing_systems_are_nan():
    at = np.array([0, 1, 2]), np.array([0, 1, 2])
    for native in (block_factors, get_backend("llvm").block_factors()):
        system = SparseSystem(*at, 3, native)
        assert np.isnan(system.factorize(np.array([1.0, -1.0, 1.0]), 1.0).solve(np.ones(3))).all()
        assert np.isnan(system.factorize(np.full(3, np.nan), 1.0).solve(np.ones(3))).all()


def test_systems_of_very_different_scales_are_solved():
    rows, columns, n = band(20)
    rng = np.random.default_rng(1)
    values = rng.normal(size=len(rows)) * 10.0 ** rng.integers(-8, 9, size=20)[rows]
    right = rng.normal(size=n)
    for shift in (1.0, 1e14, 1e-3):
        found = SparseSystem(rows, columns, n).factorize(values, shift).solve(right)
        matrix = coo_array((values, (rows, columns)), shape=(n, n)).toarray() + shift * np.eye(n)
        scale = np.abs(matrix) @ np.abs(found) + np.abs(right)
        assert (np.abs(matrix @ found - right) <= 1e-10 * scale).all()


def test_pivots_are_found_within_blocks():
    rows, columns = np.array([0, 1]), np.array([1, 0])
    for native in (block_factors, get_backend("llvm").block_factors()):
        factors = SparseSystem(rows, columns, 2, native).factorize(np.array([2.0, 4.0]), 0.0)
        assert np.array_equal(factors.solve(np.array([2.0, 8.0])), [2.0, 1.0])


def test_directions_share_no_row():
    rows, columns, n = grid(6)
    compression = Compression(rows, columns, n)
    matrix = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    for direction in compression.directions:
        assert (matrix @ direction).max() == 1.0
    assert sum(compression.directions).tolist() == [1.0] * n
    assert len(compression.directions) <= 9


def test_compressed_jacobians_have_the_bits_of_dense_ones():
    def f(t, x, a):
        return np.sin(x) * np.roll(x, 1) * a + t * x[::-1] ** 2

    x = np.linspace(0.1, 2.0, 9)
    form = CompressedJacobian(f, lambda f, name: arc.compile(f), 0.5, x, (1.5), None)
    f_t, jacobian = form.at(0.5, x, 1.5)
    dense = np.zeros((9, 9))
    dense[form.rows, form.columns] = jacobian.values
    expected_t, expected = arc.jac(f, argnums=(0, 1))(0.5, x, 1.5)
    assert np.array_equal(dense, expected)
    assert np.array_equal(f_t, expected_t)
    assert jacobian.norm() == pytest.approx(np.abs(expected).sum(axis=1).max(), rel=1e-14)


def brusselator(n, alpha=2e-3):
    def f(t, y):
        u, v = y[: n * n].reshape(n, n), y[n * n :].reshape(n, n)

        def spread(w):
            sides = np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1)
            return alpha * (n - 1) ** 2 * (sides - 4.0 * w)

        du = 1.0 + u * u * v - 4.4 * u + spread(u)
        dv = 3.4 * u - u * u * v + spread(v)
        return np.concatenate([du.ravel(), dv.ravel()])

    x = np.linspace(0.0, 1.0, n)
    u = 22.0 * (x * (1.0 - x)) ** 1.5
    start = np.concatenate([np.tile(u, (n, 1)).T.ravel(), np.tile(27.0 * u / 22.0, (n, 1)).ravel()])
    return f, start


@pytest.mark.long_cases("auto", "esdirk4")
@pytest.mark.parametrize("method", ["rodas5p", "esdirk4", "auto", "cvode", "bdf"])
def test_brusselator_in_two_dimensions(method):
    if method == "cvode":
        import_or_skip("sksundae")
    f, start = brusselator(6)
    expected = solve_ivp(f, (0.0, 1.5), start, method="DOP853", rtol=1e-10, atol=1e-10).y[:, -1]
    found = arc.solve_ode(f, (0.0, 1.5), start, method=method, rtol=1e-7, atol=1e-7)
    assert found.status == 0
    assert np.allclose(found.x[-1], expected, rtol=1e-5, atol=1e-5)


def test_backends_give_the_same_bits_for_large_models():
    f, start = brusselator(6)
    ways = [
        arc.solve_ode(f, (0.0, 0.1), start, method="rodas5p", rtol=1e-5, atol=1e-5, backend=name)
        for name in ("interpreter", "llvm")
    ]
    assert np.array_equal(ways[0].x, ways[1].x)


def test_large_models_report_progress_and_can_be_interrupted():
    f, start = brusselator(6)
    seen = []

    def monitor(part, t):
        seen.append(t)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = arc.solve_ode(f, (0.0, 50.0), start, method="tsit5", progress=monitor)
    assert len(seen) == 3
    assert found.status == -4
    assert 0.0 < found.t[-1] < 50.0
    assert len(found.t) > 16
