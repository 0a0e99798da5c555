"""Kernels are reused where they may be, and only there."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from archimedes.function.dependencies import states as identity
from archimedes.function.dependencies.states import fingerprint
from archimedes.function.recording_store import store
from archimedes.simulate import odeint

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
        count.append(len(store))
    assert count == [count[0]] * 5
    assert count[0] <= store.size


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


@dataclasses.dataclass
class Held:
    gains: np.ndarray
    names: tuple
    more: dict
    offset: float = 0.0


class Plain:
    def __init__(self):
        self.k = 1.0

    def rate(self, t, x):
        return -self.k * x


class Other(Plain):
    pass


def changed(func, change):
    """Whether a fingerprint, asked for several times before, is another one after a change."""
    assert fingerprint(func) == fingerprint(func)
    first, second = fingerprint(func), fingerprint(func)
    assert first is second  # remembered
    change()
    assert fingerprint(func) == fingerprint(func)
    return fingerprint(func) != first


def test_a_remembered_function_is_walked_again_after_any_change():
    held = Held(np.ones(2), ("a", [1.0]), {"b": 2.0})
    listed, number, unused = [1.0, [2.0]], 3.0, np.ones(3)

    def rate(t, x, p=listed, *, q=1.0):
        return held.gains[0] * x * listed[0] * number * p[0] * q

    def renumber():
        nonlocal number
        number = 4.0

    def same_number():
        nonlocal number
        number = 2.0 + 2.0

    changes = [
        lambda: held.gains.__setitem__(0, 5.0),
        lambda: setattr(held, "gains", np.ones(2)),
        lambda: setattr(held, "offset", 1.0),
        lambda: held.names[1].append(2.0),
        lambda: held.more.update(c=1.0),
        lambda: held.gains.resize((1, 2), refcheck=False),
        lambda: listed[1].append(3.0),
        renumber,
        lambda: setattr(rate, "__defaults__", (1.0,)),
        lambda: setattr(rate, "__kwdefaults__", {"q": 2.0}),
        lambda: rate.__kwdefaults__.update(q=3.0),
        lambda: setattr(held, "__dict__", {**vars(held), "offset": 7.0}),
    ]
    assert [changed(rate, change) for change in changes] == [True] * len(changes)
    assert not changed(rate, same_number)
    assert not changed(rate, lambda: unused.__setitem__(0, 2.0))


def test_a_remembered_method_notices_its_object():
    plain = Plain()
    assert changed(plain.rate, lambda: setattr(plain, "k", 2.0))
    assert not changed(plain.rate, lambda: setattr(plain, "extra", 2.0)), "which it does not read"
    assert not changed(plain.rate, lambda: delattr(plain, "extra"))
    assert changed(plain.rate, lambda: setattr(plain, "__class__", Other))
    assert changed(plain.rate, lambda: setattr(plain, "__dict__", {"k": 3.0}))
    assert fingerprint(plain.rate) != fingerprint(Plain().rate)


def test_a_remembered_function_notices_names_that_appear(monkeypatch):
    def rate(t, x):
        return abs(x) * appearing  # noqa: F821

    first = fingerprint(rate), fingerprint(rate)
    assert first[0] == first[1]
    first = first[1]
    assert fingerprint(rate) is first
    monkeypatch.setattr(f"{__name__}.abs", lambda x: -x, raising=False)
    assert fingerprint(rate) != first
    monkeypatch.setattr(f"{__name__}.appearing", None, raising=False)
    third = fingerprint(rate)
    assert third != first
    monkeypatch.setattr(f"{__name__}.appearing", 1.0)
    assert fingerprint(rate) not in (first, third)


def test_few_functions_are_remembered():
    for k in range(3 * identity.REMEMBERED):
        fingerprint(lambda t, x, k=k: k * x)
    assert len(identity._remembered) == identity.REMEMBERED


def test_an_object_with_its_own_equality_is_asked_each_time():
    class Own:
        value = 1.0

        def __eq__(self, other):
            return self.value == other.value

        def __hash__(self):
            return hash(self.value)

    own = Own()

    def rate(t, x):
        return own.value * x

    first = hash(fingerprint(rate))
    own.value = 2.0
    assert hash(fingerprint(rate)) != first
