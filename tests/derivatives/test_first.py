"""First derivatives of the catalogue, forward and reverse, against 60-digit differences and JAX."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

import archimedes as arc

from . import cases
from .cases import Case, agree, weights
from .catalogue import CASES

BY_NAME = {case.name: case for case in CASES}
NAMES = list(BY_NAME)


@cache
def jacobian(name: str) -> np.ndarray:
    return cases.jacobian(BY_NAME[name])


def traced(case: Case):
    return case.bind(np, arc)


def direction(case: Case) -> np.ndarray:
    return np.reshape(np.sin(2.0 + np.arange(case.x.size)), case.x.shape)


@pytest.mark.parametrize("name", NAMES)
def test_value(name: str) -> None:
    case = BY_NAME[name]
    agree(np.ravel(arc.compile(traced(case))(case.x)), cases.value(case), name)


@pytest.mark.parametrize("name", NAMES)
def test_jac(name: str) -> None:
    case, want = BY_NAME[name], jacobian(name)
    got = np.asarray(arc.jac(traced(case))(case.x))
    shape = np.shape(arc.compile(traced(case))(case.x))
    assert got.shape == shape + case.x.shape
    agree(got.reshape(want.shape), want, name)


@pytest.mark.parametrize("name", NAMES)
def test_jvp(name: str) -> None:
    case, v = BY_NAME[name], direction(BY_NAME[name])
    got = arc.jvp(traced(case))(case.x, v)
    agree(np.ravel(got), jacobian(name) @ v.ravel(), name)


@pytest.mark.parametrize("name", NAMES)
def test_vjp(name: str) -> None:
    case, want = BY_NAME[name], jacobian(name)
    shape = np.shape(arc.compile(traced(case))(case.x))
    w = weights(len(want)).reshape(shape)
    got = np.asarray(arc.vjp(traced(case))(case.x, w))
    assert got.shape == case.x.shape
    agree(got.ravel(), w.ravel() @ want, name)


@pytest.mark.parametrize("name", NAMES)
def test_grad_of_weighted_sum(name: str) -> None:
    case, want = BY_NAME[name], jacobian(name)
    w, fn = weights(len(want)), traced(case)
    got = np.asarray(arc.grad(lambda x: np.sum(w * np.ravel(fn(x))))(case.x))
    assert got.shape == case.x.shape
    agree(got.ravel(), w @ want, name)


# JAX compiles for about 0.1 s a case: every fourth one keeps the second oracle honest
@pytest.mark.long_cases("*a*")
@pytest.mark.parametrize("name", [case.name for case in CASES if case.jax][::4])
def test_two_oracles_agree(name: str, jax_float64) -> None:
    jax, case = jax_float64, BY_NAME[name]
    fn = case.bind(jax.numpy, None)
    got = jax.jit(jax.jacfwd(lambda z: jax.numpy.ravel(fn(z))))(jax.numpy.asarray(case.x))
    agree(np.reshape(got, jacobian(name).shape), jacobian(name), name, 1e-11)


def test_catalogue_is_large_and_names_are_unique() -> None:
    assert len(CASES) >= 170
    assert not [name for name, count in Counter(c.name for c in CASES).items() if count > 1]
