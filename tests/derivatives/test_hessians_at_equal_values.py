"""Second derivatives where eigenvalues or singular values are equal, exactly or nearly so.

A function of a symmetric matrix, V g(w) V^T, has second derivatives made of divided differences
g[w_i, w_j, w_k] (Daleckii, Krein, 1965), here in 60 digits. Functions of singular vectors are
compared with programs that use none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import archimedes as arc

SCALARS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "root": (np.sqrt, mp.sqrt),
    "exp": (np.exp, mp.exp),
    "log": (np.log, mp.log),
    "inverse": (lambda w: 1.0 / w, lambda x: 1 / x),
}


def weights(n: int) -> np.ndarray:
    return both(np.cos(np.arange(float(n * n))).reshape(n, n))


def both(a: Any) -> Any:
    return (a + a.T) / 2


def turn(n: int) -> np.ndarray:
    """A rotation with no zeros in it."""
    k = np.sin(np.arange(1.0, n * n + 1)).reshape(n, n)
    return np.linalg.solve(np.eye(n) + k - k.T, np.eye(n) - k + k.T)


def points(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Eigenvalues and vectors by name."""
    eye, q, rest = np.eye(n), turn(n), np.full(n - 2, 5.0)
    pairs = np.concatenate([[1.0, 1.0], np.full(n - 2, 2.0)])
    found = {
        "I": (np.ones(n), eye),
        "one pair": (np.concatenate([[1.0, 1.0], np.arange(2.0, n)]), eye),
        "two groups": (pairs, eye),
        "two groups turned": (pairs, q),
        "all equal turned": (np.full(n, 3.0), q),
        "apart": (np.arange(1.0, n + 1), q),
        "three close": (np.concatenate([[2.0, 2.0 + 1e-7, 2.0 + 3e-7], rest[1:]]), q),
    }
    for gap in (1e-14, 1e-11, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        found[f"gap {gap}"] = (np.concatenate([[2.0, 2.0 + gap], rest]), q)
    return found


# ---- functions of symmetric matrices -------------------------------------------------------------


def by_vectors(scalar: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def function(a: Any) -> Any:
        w, v = np.linalg.eigh(both(a))
        return (v * scalar(w)) @ v.T

    return function


def divided(g: Callable[[Any], Any], values: list[Any]) -> Any:
    """The divided difference of a function at sorted values."""
    if len(values) == 1:
        return g(values[0])
    if values[-1] - values[0] < mp.mpf(10) ** -12 * values[0]:
        middle = sum(values) / len(values)
        return mp.diff(g, middle, len(values) - 1) / mp.factorial(len(values) - 1)
    step = values[-1] - values[0]
    return (divided(g, values[1:]) - divided(g, values[:-1])) / step


def exact(g: Callable[[Any], Any], w: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The Hessian of the weighted sum of Q g(w) Q^T in the entries of the matrix."""
    n = len(w)
    third: dict[Any, float] = {}
    table = np.empty((n, n, n))
    with mp.workdps(60):
        for place in np.ndindex(n, n, n):
            key = tuple(sorted(w[list(place)].tolist()))
            if key not in third:
                third[key] = float(divided(g, [mp.mpf(x) for x in key]))
            table[place] = third[key]
    units = both_units(n)
    p = np.einsum("ia,xij,jb->xab", q, units, q)
    pairs = np.einsum("ikj,xik,ykj->xyij", table, p, p)
    pairs = pairs + pairs.transpose(1, 0, 2, 3)
    return np.einsum("ij,xyij->xy", q.T @ weights(n) @ q, pairs)


def both_units(n: int) -> np.ndarray:
    units = np.eye(n * n).reshape(n * n, n, n)
    return (units + units.transpose(0, 2, 1)) / 2


@cache
def hessian(name: str, n: int) -> Callable[[np.ndarray], np.ndarray]:
    function = by_vectors(SCALARS[name][0])
    total = arc.hess(lambda a: np.sum(weights(n) * function(a)))
    run = arc.compile(total, backend="interpreter")
    return lambda a: np.asarray(run(a)).reshape(n * n, n * n)


def check(name: str, n: int, at: str) -> None:
    w, q = points(n)[at]
    want = exact(SCALARS[name][1], w, q)
    got = hessian(name, n)(both((q * w) @ q.T))
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-12 * np.abs(want).max())


@pytest.mark.parametrize("at", points(3))
@pytest.mark.parametrize("name", SCALARS)
def test_three_by_three(name: str, at: str) -> None:
    check(name, 3, at)


@pytest.mark.long
@pytest.mark.parametrize("at", ["I", "one pair", "two groups turned", "gap 1e-06"])
@pytest.mark.parametrize("name", SCALARS)
def test_four_by_four(name: str, at: str) -> None:
    check(name, 4, at)


@pytest.mark.long
@pytest.mark.parametrize("at", ["I", "two groups", "two groups turned"])
def test_five_by_five(at: str) -> None:
    check("root", 5, at)


def test_sums_over_values() -> None:
    # sum(w**2) is the sum of a_ij**2, so its Hessian is twice the symmetric identity
    squares = arc.hess(lambda a: np.sum(np.linalg.eigvalsh(both(a)) ** 2))
    curve = arc.compile(squares, backend="interpreter")
    want = 2.0 * both_units(4).reshape(4, 4, 4, 4)
    for a in (np.eye(4), np.diag([1.0, 1.0, 2.0, 2.0]), both(turn(4) @ turn(4).T)):
        np.testing.assert_allclose(curve(a), want, atol=1e-13)
    # that of sum(exp(w)) is the derivative of the matrix exponential
    w, q = points(4)["two groups turned"]
    a = both((q * w) @ q.T)
    powers = arc.hess(lambda x: np.sum(np.exp(np.linalg.eigvalsh(both(x)))))
    got = arc.compile(powers, backend="interpreter")(a)
    want = arc.compile(arc.jac(by_vectors(np.exp)), backend="interpreter")(a)
    np.testing.assert_allclose(got, want, atol=1e-12)


ROOT = by_vectors(np.sqrt)
STEP = np.sin(np.arange(9.0)).reshape(3, 3)


def total(a: Any) -> Any:
    return np.sum(weights(3) * ROOT(a))


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "jac of grad": lambda a: np.einsum("ij,ijkl->kl", STEP, arc.jac(arc.grad(total))(a)),
    "jac of jac": lambda a: np.einsum(
        "xy,ij,xyijkl->kl", weights(3), STEP, arc.jac(arc.jac(ROOT))(a)
    ),
    "forward over reverse": lambda a: arc.jvp(arc.grad(total))(a, STEP),
    "reverse over reverse": lambda a: arc.vjp(arc.grad(total))(a, STEP),
    "reverse over forward": lambda a: arc.grad(lambda x: arc.jvp(total)(x, STEP))(a),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_way_to_a_second_derivative(form: str) -> None:
    run = arc.compile(FORMS[form], backend="interpreter")
    for at in ("I", "one pair"):
        w, q = points(3)[at]
        want = (STEP.ravel() @ exact(mp.sqrt, w, q)).reshape(3, 3)
        np.testing.assert_allclose(run(np.diag(w)), want, atol=1e-15)


def test_third_derivatives() -> None:
    # sqrt(1 + t E) = ... + t**3 E**3 / 16
    e = both(STEP)[:2, :2]
    along = lambda t: np.sum(weights(2) * ROOT(np.eye(2) + t * e))
    third = arc.compile(arc.grad(arc.grad(arc.grad(along))), backend="interpreter")(0.0)
    assert third == pytest.approx(np.sum(weights(2) * (e @ e @ e)) * 6 / 16, rel=1e-14)


def test_the_same_bits() -> None:
    run = {
        backend: arc.compile(arc.hess(total), backend=backend)
        for backend in ("interpreter", "llvm")
    }
    for at in ("I", "two groups turned", "gap 0.0001", "apart"):
        w, q = points(3)[at]
        a = both((q * w) @ q.T)
        np.testing.assert_array_equal(run["interpreter"](a), run["llvm"](a))


# ---- functions of singular vectors ---------------------------------------------------------------


def polar(a: Any) -> Any:
    u, _, vt = np.linalg.svd(a, full_matrices=False)
    return u @ vt


def polar_by_newton(a: Any) -> Any:
    """A (A^T A)^(-1/2), the inverse root by Newton's iteration (Denman, Beavers, 1976)."""
    y, z = a.T @ a, np.eye(a.shape[1])
    for _ in range(6):
        y, z = 0.5 * (y + np.linalg.inv(z)), 0.5 * (z + np.linalg.inv(y))
    return a @ z


def space(a: Any) -> Any:
    u = np.linalg.svd(a, full_matrices=False)[0]
    return u @ u.T


FACTORS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "polar factor": (polar, polar_by_newton),
    "nuclear norm": (
        lambda a: np.linalg.norm(a, "nuc"),
        lambda a: np.sum(polar_by_newton(a) * a),
    ),
    "column space": (space, lambda a: a @ np.linalg.solve(a.T @ a, a.T)),
    "rest of the space": (
        lambda a: (lambda u: u[:, a.shape[1] :] @ u[:, a.shape[1] :].T)(np.linalg.svd(a)[0]),
        lambda a: np.eye(len(a)) - a @ np.linalg.solve(a.T @ a, a.T),
    ),
}
SINGULAR_POINTS = {
    "I3": np.eye(3),
    "2 rotations": 2.0 * turn(3),
    "1, 1, 2": (turn(3) * [1.0, 1.0, 2.0]) @ turn(3),
    "4 by 4": turn(4),
    "tall": turn(4)[:, :3],
}


@pytest.mark.long
@pytest.mark.parametrize("at", SINGULAR_POINTS)
@pytest.mark.parametrize("name", FACTORS)
def test_functions_of_singular_vectors(name: str, at: str) -> None:
    a = SINGULAR_POINTS[at]
    mine, other = FACTORS[name]
    if "space" in name and a.shape[0] == a.shape[1]:
        a = a[:, :2]
    w = np.cos(np.arange(64.0))

    def curve(f: Callable[[Any], Any]) -> np.ndarray:
        total = arc.hess(lambda x: np.sum(w[: np.size(f(x))] * np.ravel(f(x))))
        return np.asarray(arc.compile(total, backend="interpreter")(a))

    np.testing.assert_allclose(curve(mine), curve(other), atol=1e-12)


# ---- what depends on the choice of vectors -------------------------------------------------------

UNDEFINED: dict[str, Callable[[Any], Any]] = {
    "a component": lambda a: np.linalg.eigh(both(a))[1][0, 0],
    "its square": lambda a: np.linalg.eigh(both(a))[1][1, 0] ** 2,
    "its cube": lambda a: np.linalg.eigh(both(a))[1][1, 0] ** 3,
    "something beside a root": lambda a: ROOT(a)[0, 0] + np.linalg.eigh(both(a))[1][0, 1] ** 2,
}


@pytest.mark.parametrize("at", ["I", "one pair", "two groups turned"])
@pytest.mark.parametrize("name", UNDEFINED)
def test_a_choice_of_vectors_has_no_derivative(name: str, at: str) -> None:
    w, q = points(3)[at]
    a = both((q * w) @ q.T)
    for derivative in (arc.grad, arc.hess):
        run = arc.compile(derivative(UNDEFINED[name]), backend="interpreter")
        assert np.isnan(run(a)).any()


def test_one_of_equal_values_has_no_curvature() -> None:
    for a in (np.eye(3), np.diag([1.0, 1.0, 2.0]), np.eye(4)):
        assert np.isnan(arc.hess(lambda x: np.linalg.eigvalsh(both(x))[0])(a)).any()
