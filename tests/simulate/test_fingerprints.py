"""Kernels are reused where they may be, and only there."""

from __future__ import annotations

import functools

import numpy as np

from archimedes.simulate import kernels, odeint
from archimedes.simulate.fingerprints import fingerprint

SCALE = 1.0


def scaled(t, x):
    return -SCALE * x


def helper(x):
    return SCALE * x


def indirect(t, x):
    return -helper(x)


def test_a_changed_global_is_noticed(monkeypatch):
    first = odeint(scaled, (0.0, 1.0), 1.0, "bs3"), odeint(indirect, (0.0, 1.0), 1.0, "bs3")
    monkeypatch.setattr(f"{__name__}.SCALE", 2.0)
    second = odeint(scaled, (0.0, 1.0), 1.0, "bs3"), odeint(indirect, (0.0, 1.0), 1.0, "bs3")
    assert np.allclose(first, np.exp(-1.0), atol=1e-6)
    assert np.allclose(second, np.exp(-2.0), atol=1e-6)


def test_lambdas_written_anew_share_a_kernel_and_do_not_pile_up():
    count = []
    for _ in range(5):
        odeint(lambda t, x: -3.0 * x, (0.0, 1.0), 1.0, "bs3")
        count.append(len(kernels._kept))
    assert count == [count[0]] * 5
    assert count[0] <= kernels.KEPT


def test_what_makes_functions_different():
    def make(k, power=1):
        return lambda t, x, p=power: k * x**p

    same = fingerprint(make(np.ones(2)))
    assert same == fingerprint(make(np.ones(2)))
    assert hash(same) == hash(fingerprint(make(np.ones(2))))
    assert same != fingerprint(make(np.array([1.0, 2.0])))
    assert same != fingerprint(make(np.ones(2), power=2))
    assert fingerprint(make(1)) != fingerprint(make(1.0))
    assert fingerprint(functools.partial(scaled, k=1)) == fingerprint(
        functools.partial(scaled, k=1)
    )
    assert fingerprint(functools.partial(scaled, k=1)) != fingerprint(
        functools.partial(scaled, k=2)
    )


def test_methods_of_plain_objects_are_compared_by_what_they_hold():
    class Model:
        def __init__(self, k):
            self.k = k
            self.me = self  # a cycle

        def rate(self, t, x):
            return -self.k * x

    model = Model(1.0)
    first = odeint(model.rate, (0.0, 1.0), 1.0, "bs3")
    model.k = 2.0
    second = odeint(model.rate, (0.0, 1.0), 1.0, "bs3")
    assert abs(first - np.exp(-1.0)) < 1e-6
    assert abs(second - np.exp(-2.0)) < 1e-6
    assert fingerprint(model.rate) == fingerprint(model.rate)


def test_functions_that_call_themselves():
    def outer(t, x):
        return x if t > 0 else outer(t + 1.0, x)

    assert fingerprint(outer) == fingerprint(outer)
