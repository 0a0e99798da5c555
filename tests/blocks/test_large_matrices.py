"""Linear algebra of large matrices: loops over blocks, against NumPy, differences and elements."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from tests.blocks.code_size import code_size


def system(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, n)), rng.standard_normal(n)


FIXED = system(30)[0]


def _definite(a):
    return a @ a.T + len(a) * np.eye(len(a))


FUNCTIONS = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "several": lambda a, b: np.linalg.solve(a, np.stack([b, a[0], a[:, 1]], axis=1)),
    "inv": lambda a, b: np.linalg.inv(a),
    "det": lambda a, b: np.linalg.det(a / 4.0),
    "slogdet": lambda a, b: np.stack(np.linalg.slogdet(a)),
    "cholesky": lambda a, b: np.linalg.cholesky(_definite(a)),
    "upper": lambda a, b: np.linalg.cholesky(_definite(a), upper=True),
    "qr": lambda a, b: np.concatenate(np.linalg.qr(a)),
    "tall": lambda a, b: np.concatenate(np.linalg.qr(a[:, : len(b) - 3])),
    "complete": lambda a, b: np.linalg.qr(a[:, :-2], mode="complete")[1],
    "lstsq": lambda a, b: np.linalg.lstsq(a[:, :-2], b, rcond=None)[0],
    "stack": lambda a, b: np.linalg.solve(np.stack([a, a.T]), b[:, None]),
    "constant": lambda a, b: np.linalg.solve(FIXED, np.resize(b, 30)),
    "float32": lambda a, b: np.linalg.inv((a + 9 * np.eye(len(b))).astype(np.float32)),
}


@pytest.mark.long_cases("*e*", "*t*")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_numpy_on_every_backend(name):
    a, b = system(18)
    want = np.asarray(FUNCTIONS[name](a, b))
    native, interpreted = (
        np.asarray(arc.compile(FUNCTIONS[name], backend=backend)(a, b))
        for backend in ("llvm", "interpreter")
    )
    tolerance = 1e-4 if name == "float32" else 1e-11
    np.testing.assert_allclose(native, want, rtol=tolerance, atol=tolerance)
    assert native.dtype == want.dtype
    assert native.tobytes() == interpreted.tobytes()


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "float32"])
def test_derivatives(name):
    """Reverse against forward, and forward against differences."""
    a, b = system(18)
    f = FUNCTIONS[name]

    def total(a, b):
        return np.sum(np.cos(f(a, b)))

    rng = np.random.default_rng(1)
    da, db = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    bars = arc.grad(total, argnums=(0, 1))(a, b)
    slope = np.sum(bars[0] * da) + np.sum(bars[1] * db)
    h = 1e-6
    ahead, behind = (total(a + s * da, b + s * db) for s in (h, -h))
    forward = arc.jvp(total, argnums=(0, 1))(a, b, (da, db))
    np.testing.assert_allclose(slope, forward, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["solve", "inv", "det", "cholesky", "qr"])
def test_programs_do_not_grow(name):
    def total(a, b):
        return np.sum(np.cos(FUNCTIONS[name](a, b)))

    for f in (arc.compile(FUNCTIONS[name]), arc.grad(total, argnums=(0, 1))):
        small, large = (code_size(f.recording(*system(n)).blocks) for n in (64, 128))
        assert large <= small + 20


@pytest.mark.long
def test_second_derivatives():
    a, b = system(17)

    def energy(b):
        return b @ np.linalg.solve(_definite(a) + np.outer(b, b), np.sin(b))

    elements = arc.hess(arc.compile(energy, loops_from=10_000))(b)
    np.testing.assert_allclose(arc.hess(energy)(b), elements, rtol=1e-8, atol=1e-10)


def test_a_singular_matrix_gives_no_numbers():
    a = np.ones((20, 20))
    assert not np.isfinite(arc.compile(np.linalg.solve)(a, np.arange(20.0))).any()
    assert arc.compile(np.linalg.det)(a) == 0.0
    assert np.isnan(arc.compile(np.linalg.cholesky)(-a)).any()
