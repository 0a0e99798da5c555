"""Eigenvalues of general matrices: against LAPACK, their derivatives against 60 digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import TraceError

from .matrices import random

CYCLE = np.roll(np.eye(4), 1, 0)
MATRICES = {
    "one": np.array([[-3.0]]),
    "real pair": np.array([[2.0, 1.0], [1.0, -1.0]]),
    "complex pair": np.array([[0.0, 1.0], [-4.0, -0.4]]),
    "rotation": np.array([[0.6, -0.8], [0.8, 0.6]]),
    "general 3": random(1, 3, 3),
    "general 5": random(2, 5, 5),
    "triangle": np.triu(random(3, 4, 4)),
    "symmetric": random(4, 4, 4) + random(4, 4, 4).T,
    "cycle": CYCLE,
    "zero": np.zeros((3, 3)),
    "nilpotent": np.diag(np.ones(3), 1),
    "large": 1e200 * random(5, 3, 3),
    "small": 1e-200 * random(6, 3, 3),
}


def parts(a):
    z = np.linalg.eigvals(a)
    return z.real, z.imag


VALUES = {backend: arc.compile(parts, backend=backend) for backend in ("interpreter", "llvm")}


def matched(got: np.ndarray, want: np.ndarray) -> float:
    """The largest distance when each value is paired with the nearest one that is left."""
    rest, worst = list(want), 0.0
    for z in got:
        k = int(np.argmin(np.abs(np.array(rest) - z)))
        worst = max(worst, abs(rest.pop(k) - z))
    return worst


@pytest.mark.parametrize("name", MATRICES)
def test_values(name: str) -> None:
    a = MATRICES[name]
    real, imag = VALUES["interpreter"](a)
    assert matched(real + 1j * imag, np.linalg.eigvals(a)) <= 1e-14 * np.abs(a).max()
    assert (np.diff(real) >= -1e-14 * np.abs(a).max()).all()


@pytest.mark.parametrize("name", ["complex pair", "general 3", "cycle"])
def test_backends(name: str) -> None:
    for one, other in zip(*(values(MATRICES[name]) for values in VALUES.values())):
        np.testing.assert_array_equal(one, other)


def test_real_values_have_no_imaginary_part() -> None:
    for name in ("real pair", "triangle", "symmetric"):
        assert (VALUES["interpreter"](MATRICES[name])[1] == 0).all()


def test_stacks() -> None:
    stack = np.stack([MATRICES["real pair"], MATRICES["complex pair"]])
    real, imag = VALUES["interpreter"](stack)
    for k in range(2):
        single = VALUES["interpreter"](stack[k])
        np.testing.assert_array_equal([real[k], imag[k]], single)


def test_not_a_number() -> None:
    assert np.isnan(VALUES["interpreter"](np.full((3, 3), np.nan))[0]).all()


def exact(a: mp.matrix) -> list:
    values = mp.eig(a, left=False, right=False)
    return sorted(values, key=lambda z: (round(float(mp.re(z)), 9), float(mp.im(z))))


@pytest.mark.parametrize("name", ["real pair", "complex pair", "general 3"])
def test_derivatives_to_second_order(name: str) -> None:
    a, step = MATRICES[name], np.cos(np.arange(MATRICES[name].size)).reshape(MATRICES[name].shape)
    with mp.workdps(60):
        h = mp.mpf(10) ** -15
        points = [
            exact(mp.matrix(a.tolist()) + k * h * mp.matrix(step.tolist())) for k in (-1, 0, 1)
        ]
        low, middle, high = (np.array(p, dtype=object) for p in points)
        first = np.array([complex(v) for v in (high - low) / (2 * h)])
        second = np.array([complex(v) for v in (high - 2 * middle + low) / h**2])

    def line(t):
        z = np.linalg.eigvals(a + t * step)
        return np.concatenate([z.real, z.imag])

    got = np.asarray(arc.jac(line)(0.0))
    n = len(a)
    np.testing.assert_allclose(got[:n] + 1j * got[n:], first, rtol=1e-12, atol=1e-12)
    got = np.asarray(arc.jac(arc.jac(line))(0.0))
    np.testing.assert_allclose(got[:n] + 1j * got[n:], second, rtol=1e-11, atol=1e-11)
    bar = np.cos(1.0 + np.arange(2 * n))
    pulled = arc.grad(lambda t: np.sum(bar * line(t)))(0.0)
    np.testing.assert_allclose(pulled, bar[:n] @ first.real + bar[n:] @ first.imag, rtol=1e-12)


def test_values_that_are_not_simple_have_no_derivative() -> None:
    slope = arc.jac(lambda a: np.linalg.eigvals(a).real)(np.array([[1.0, 1.0], [0.0, 1.0]]))
    assert not np.isfinite(slope).all()


def test_stability_margin() -> None:
    """The use they are recorded for: the largest real part of a closed loop."""
    a, b = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[0.0], [1.0]])
    margin = arc.compile(lambda k: np.max(np.linalg.eigvals(a - b @ k).real))
    k = np.array([[6.0, 4.0]])
    np.testing.assert_allclose(margin(k), -2.0, atol=1e-7)  # a double value at -2
    np.testing.assert_allclose(margin(np.array([[5.0, 4.0]])), -1.0, rtol=1e-14)


def test_messages() -> None:
    with pytest.raises(TraceError, match=r"np\.linalg\.eigvals\(a\)\.real"):
        arc.compile(lambda a: np.linalg.eig(a))(np.eye(2))
    with pytest.raises(TraceError, match=r"12 rows is too large to record \(at most 10\)"):
        arc.compile(lambda a: np.linalg.eigvals(a).real)(np.eye(12))
    with pytest.raises(TraceError, match=r"result is complex[\s\S]*\.real and \.imag"):
        arc.compile(lambda a: np.linalg.eigvals(a))(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        arc.compile(lambda a: np.linalg.eigvals(a).real)(np.ones((2, 3)))
