"""Fourier transforms and other complex results of recorded functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archimedes as arc
from archimedes.errors import TraceError

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 21, 32]
NORMS = [None, "backward", "ortho", "forward"]


def signal(*shape: int) -> np.ndarray:
    return np.cos(np.arange(1.0, 1.0 + np.prod(shape)) ** 2).reshape(shape)


def parts(z):
    return z.real, z.imag


def recorded(fn, *args):
    real, imag = arc.compile(lambda *x: parts(fn(*x)), backend="interpreter")(*args)
    return real + 1j * imag


@pytest.mark.parametrize("n", SIZES)
def test_transforms_of_real_arrays(n: int) -> None:
    x = signal(n)
    for name in ("rfft", "fft", "ifft"):
        fn = getattr(np.fft, name)
        np.testing.assert_allclose(recorded(fn, x), fn(x), atol=4e-15 * n)
    back = arc.compile(lambda v: np.fft.irfft(np.fft.rfft(v), n), backend="interpreter")(x)
    np.testing.assert_allclose(back, x, atol=1e-15 * n)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [3, 6, 8])
def test_lengths_axes_and_norms(n: int, norm: str | None) -> None:
    x = signal(4, 5)
    for name in ("rfft", "fft", "ifft"):
        fn = getattr(np.fft, name)
        for axis in (0, -1):
            got = recorded(lambda v, f=fn, k=axis: f(v, n, axis=k, norm=norm), x)
            np.testing.assert_allclose(got, fn(x, n, axis=axis, norm=norm), atol=1e-14)
    real, imag = signal(4), -signal(4)
    got = arc.compile(
        lambda a: np.fft.irfft(np.fft.rfft(a) * np.array([1.0, 1j, 2.0]), n, norm=norm),
        backend="interpreter",
    )(real)
    want = np.fft.irfft(np.fft.rfft(real) * np.array([1.0, 1j, 2.0]), n, norm=norm)
    np.testing.assert_allclose(got, want, atol=1e-14)
    assert imag.shape == real.shape


def test_native_code_gives_the_same_bits() -> None:
    x = signal(12)
    power = lambda v: np.abs(np.fft.rfft(v)) ** 2
    one, other = (arc.compile(power, backend=b)(x) for b in ("interpreter", "llvm"))
    np.testing.assert_array_equal(one, other)
    rows = arc.vmap(power)(np.stack([x, 2 * x]))
    np.testing.assert_array_equal(rows[0], one)


def test_derivatives() -> None:
    # The energy of the spectrum is n times that of the signal (Parseval).
    x = signal(6)
    energy = lambda v: np.sum(np.abs(np.fft.fft(v)) ** 2)
    np.testing.assert_allclose(arc.grad(energy)(x), 12.0 * x, atol=1e-13)
    np.testing.assert_allclose(arc.hess(energy)(x), 12.0 * np.eye(6), atol=1e-12)
    # A transform is linear: its Jacobian is its matrix.
    matrix = np.fft.rfft(np.eye(6), axis=0)
    np.testing.assert_allclose(arc.jac(lambda v: np.fft.rfft(v).real)(x), matrix.real, atol=1e-15)
    np.testing.assert_allclose(arc.jac(lambda v: np.fft.rfft(v).imag)(x), matrix.imag, atol=1e-15)


@settings(deadline=None, max_examples=12)
@given(st.integers(1, 24), st.integers(0, 10**6))
def test_convolution_theorem(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    got = arc.compile(
        lambda x, y: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(y), n), backend="interpreter"
    )(a, b)
    want = [sum(a[j] * b[(k - j) % n] for j in range(n)) for k in range(n)]
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_arithmetic_of_complex_results() -> None:
    x, w = signal(5), np.array([1.0, 0.5 - 2j, 3j])

    def mixed(v):
        z = np.fft.rfft(v)
        return (w * z + 2.0 * z - z / (1.0 + w)) / z.conj() - (1.0 - z)[::-1] + 1.0 / (z + 3.0)

    np.testing.assert_allclose(recorded(mixed, x), mixed(x), atol=1e-13)
    angle = arc.compile(lambda v: np.angle(np.fft.rfft(v)))(x)
    np.testing.assert_allclose(angle, np.angle(np.fft.rfft(x)), atol=1e-14)
    total = recorded(lambda v: np.sum(np.fft.rfft(v)), x)
    np.testing.assert_allclose(total, np.sum(np.fft.rfft(x)), atol=1e-14)


MESSAGES = {
    "returned": (lambda x: np.fft.rfft(x), r"complex[\s\S]*return its \.real and \.imag"),
    "another function": (lambda x: np.exp(np.fft.rfft(x)), r"np\.exp of a complex[\s\S]*\.real"),
    "another attribute": (lambda x: np.fft.rfft(x).T, r"'T'[\s\S]*\.real and \.imag"),
    "numpy function": (lambda x: np.stack([np.fft.rfft(x)] * 2), r"np\.stack of a complex"),
    "two axes": (lambda x: np.fft.fft2(np.outer(x, x)), r"np\.fft\.fft2 is not available"),
    "too many": (lambda x: np.fft.rfft(x, 10007).real, r"too large to record[\s\S]*small primes"),
    "out": (lambda x: np.fft.rfft(x, out=np.zeros(3, complex)), r"out=\.\.\.[\s\S]*Omit out="),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    fn, text = MESSAGES[name]
    with pytest.raises(TraceError, match=text):
        arc.compile(fn)(signal(4))


@pytest.mark.parametrize("n", [0, -1])
def test_no_points(n: int) -> None:
    with pytest.raises(ValueError, match="Invalid number of"):
        arc.compile(lambda x: np.fft.rfft(x, n).real)(signal(4))
    with pytest.raises(ValueError, match="Invalid norm value"):
        arc.compile(lambda x: np.fft.rfft(x, norm="half").real)(signal(4))
