"""After a refused recording everything is as it was."""

from __future__ import annotations

import collections
import functools
import types

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import Event, Sampled, odeint, solve_ode

X = np.array([1.0, 2.0])


class PI:
    """The controller of the issue."""

    def __init__(self):
        self.i = 0.0

    def __call__(self, error):
        self.i += 0.01 * error
        return 2.0 * error + self.i


def test_the_controller_of_the_issue():
    control = PI()

    def closed_loop(t, x):
        return control(1.0 - x) - x

    for solve in (
        lambda: odeint(closed_loop, (0.0, 10.0), 0.0),
        lambda: solve_ode(closed_loop, (0.0, 10.0), 0.0),
        lambda: arc.compile(closed_loop)(0.0, 0.5),
        lambda: arc.jac(closed_loop, argnums=1)(0.0, 0.5),
        lambda: arc.discretize(closed_loop, dt=0.1)(0.0, 0.5),
    ):
        with pytest.raises(arc.TraceError, match=r"control\.i .*traced value(.|\n)*Sampled"):
            solve()
        assert type(control.i) is float and control.i == 0.0
    assert control(1.0) == 2.01


def test_state_in_events_and_sampled_parts():
    seen, control = [], PI()
    watch = Event(lambda t, x: (seen.append(x), x - 0.5)[1])
    with pytest.raises(arc.TraceError, match="list seen"):
        solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, events=[watch])
    part = Sampled(lambda t, x, u: control(x), 0.0, dt=0.1)
    with pytest.raises(arc.TraceError, match=r"\.i "):
        solve_ode(lambda t, x, u: -u, (0.0, 1.0), 1.0, sampled=part)
    assert seen == [] and isinstance(control.i, float)


class Everything:
    """One of each kind of place."""

    __slots__ = ("slot",)
    shared = 0


def test_all_kinds_of_places_are_put_back():
    space, slotted = types.SimpleNamespace(a=1.0), Everything()
    slotted.slot = 1.0
    items, table, window = [1.0], {"a": 1.0}, collections.deque([1.0])
    members, numbers, raw = {1}, np.ones(2), bytearray(b"ab")
    variable = 1.0

    def default(x=[1.0]):  # noqa: B006
        return x

    def f(x):
        nonlocal variable
        space.a, slotted.slot, variable = x, x, x
        space.new = x
        Everything.shared += 1
        items.append(x)
        table["a"] = x
        window.append(x)
        members.discard(1)
        numbers[0] += 1.0
        raw[0] = 120
        default()[0] = x
        return x

    with pytest.raises(arc.TraceError):
        arc.compile(f)(1.0)
    assert vars(space) == {"a": 1.0} and slotted.slot == 1.0 and variable == 1.0
    assert items == [1.0] and table == {"a": 1.0} and list(window) == [1.0]
    assert members == {1} and numbers.tolist() == [1.0, 1.0] and raw == b"ab"
    assert default() == [1.0] and Everything.shared == 0


def test_an_error_in_the_middle_leaves_no_traced_value():
    space = types.SimpleNamespace(last=0.0)

    def f(x):
        space.last = x
        return float(x)

    for _ in range(2):
        with pytest.raises(arc.TraceError, match="float"):
            arc.compile(f)(1.0)
        assert space.last == 0.0


def test_the_line_that_changes_it_is_named():
    class Deep:
        def __init__(self):
            self.n = 0.0

        def move(self, x):
            self.n = self.n + x  # this line
            return self.n

    deep = Deep()
    line = Deep.move.__code__.co_firstlineno + 1
    with pytest.raises(arc.TraceError, match=rf"test_side_effects\.py:{line}, in move"):
        arc.compile(lambda x: deep.move(x))(1.0)


def test_memos_are_kept_and_cost_one_more_recording():
    class Model:
        @functools.cached_property
        def table(self):
            return [2.0]

        def __call__(self, x):
            return self.table[0] * x

    model = Model()
    f = arc.compile(model)
    for _ in range(5):
        assert f(3.0) == 6.0
    assert model.table == [2.0] and len(f.explain().splitlines()) == 2
    model.table[0] = 5.0
    assert f(3.0) == 15.0


def test_frozen_functions_may_change_what_they_read_but_keep_no_traced_value():
    seen, kept = [], []
    f = arc.compile(lambda x: (seen.append(x.shape), x)[1], freeze=True)
    f(X), f(X)
    assert seen == [(2,)]
    with pytest.raises(arc.TraceError, match="list kept"):
        arc.compile(lambda x: (kept.append(x), x)[1], freeze=True)(X)
    assert kept == []


def test_a_recorded_function_inside_another():
    control = PI()
    inner = arc.compile(control)
    with pytest.raises(arc.TraceError, match=r"\.i "):
        arc.compile(lambda x: inner(x) + 1.0)(1.0)
    assert control.i == 0.0


def test_values_of_the_function_around_may_be_used():
    def outer(x):
        held = types.SimpleNamespace(x=x)
        inner = arc.compile(lambda y: held.x * y)
        first = inner(2.0)
        held.x = 3.0 * x
        return first + inner(2.0) + arc.grad(lambda y: held.x * y)(1.0)

    assert arc.compile(outer)(5.0) == 10.0 + 30.0 + 15.0


class Lazy:
    """Makes its table when it is first needed, as many classes do."""

    def __init__(self):
        self._table = None

    def __call__(self, t, x):
        if self._table is None:
            self._table = [2.0]
        return -self._table[0] * x


class First:
    """Returns something else the first time."""

    def __init__(self):
        self.k = None

    def __call__(self, t, x):
        if self.k is None:
            self.k = 5.0
            return 0.0 * x
        return -self.k * x


def test_tables_made_when_they_are_first_needed():
    assert [arc.compile(Lazy())(0.0, 3.0) for _ in range(3)] == [-6.0] * 3
    assert abs(odeint(Lazy(), (0.0, 1.0), 1.0) - np.exp(-2.0)) < 1e-6
    table = Lazy()
    watch = Event(lambda t, x: table(t, x) + 1.0, terminal=True)
    found = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, events=[watch])
    assert abs(found.x[-1] - 0.5) < 1e-9


def test_a_first_call_that_differs():
    plain, recorded = First(), First()
    f = arc.compile(recorded)
    assert (
        [f(0.0, 1.0) for _ in range(3)] == [plain(0.0, 1.0) for _ in range(3)] == [0.0, -5.0, -5.0]
    )
    with pytest.raises(arc.TraceError, match=r"computes something else once .*\.k is set"):
        odeint(First(), (0.0, 1.0), 1.0)
