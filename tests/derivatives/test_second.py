"""Second derivatives of the catalogue against 60-digit differences."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import archimedes as arc

from . import cases
from .cases import agree, weights
from .catalogue import CASES

BY_NAME = {case.name: case for case in CASES if case.smooth}
NAMES = list(BY_NAME)


@cache
def hessian(name: str) -> np.ndarray:
    return cases.hessian(BY_NAME[name])


def weighted(name: str):
    """The scalar function whose Hessian the oracle gives."""
    case = BY_NAME[name]
    fn = case.bind(np, arc)
    w = weights(cases.value(case).size)
    return lambda x: np.sum(w * np.ravel(fn(x)))


@pytest.mark.long_cases("expm*")
@pytest.mark.parametrize("name", NAMES)
def test_hess(name: str) -> None:
    case, want = BY_NAME[name], hessian(name)
    got = np.asarray(arc.hess(weighted(name))(case.x))
    assert got.shape == case.x.shape * 2
    agree(got.reshape(want.shape), want, name)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_forward_over_reverse(name: str) -> None:
    case, want = BY_NAME[name], hessian(name)
    v = np.cos(3.0 + np.arange(case.x.size))
    got = arc.jvp(arc.grad(weighted(name)))(case.x, v.reshape(case.x.shape))
    agree(np.ravel(got), want @ v, name)


# Reverse over forward and reverse over reverse build the largest graphs: a third of the cases.
@pytest.mark.parametrize("name", NAMES[::3])
def test_reverse_over_forward(name: str) -> None:
    case, want = BY_NAME[name], hessian(name)
    v = np.cos(3.0 + np.arange(case.x.size))
    fn = weighted(name)
    got = arc.grad(lambda x: arc.jvp(fn)(x, v.reshape(case.x.shape)))(case.x)
    agree(np.ravel(got), want @ v, name)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES[1::3])
def test_reverse_over_reverse(name: str) -> None:
    case, want = BY_NAME[name], hessian(name)
    v = np.cos(3.0 + np.arange(case.x.size))
    fn = weighted(name)
    got = arc.grad(lambda x: np.sum(v.reshape(case.x.shape) * arc.grad(fn)(x)))(case.x)
    agree(np.ravel(got), want @ v, name)
