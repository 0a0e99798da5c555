"""Derivatives of solves in times, parameters and through events, to third order."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import archimedes as arc
from tests.simulate.solve_derivative_cases import CASES, REPEATED, Case

ONE = np.ones(())


def along(fn):
    """The derivative by forward mode."""
    return lambda p: arc.jvp(fn)(p, ONE)


def exact(case: Case, count: int) -> np.ndarray:
    with mp.workdps(40):
        return np.array([float(mp.diff(case.exact, mp.mpf(case.at), k)) for k in range(count)])


def close(found, wanted) -> bool:
    return np.allclose(found, wanted, rtol=2e-7, atol=2e-8 * np.max(np.abs(wanted)))


@pytest.mark.long_cases("*t*", "a bounce by*")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_orders_forward(case):
    """Value and derivatives to third order (cases like others: to second)."""
    fns = [case.fn]
    for _ in range(2 if case.name in REPEATED else 3):
        fns.append(along(fns[-1]))
    found = arc.compile(lambda p: np.stack([fn(p) for fn in fns]))(case.at)
    wanted = exact(case, len(fns))
    assert close(found, wanted), (found, wanted)


BACK = [case for case in CASES if case.name not in REPEATED]


@pytest.mark.long
@pytest.mark.parametrize("case", BACK, ids=[case.name for case in BACK])
def test_second_order_through_reverse(case):
    found, wanted = arc.hess(case.fn)(np.float64(case.at)), exact(case, 3)
    assert close([*wanted[:2], found], wanted), (found, wanted)
