"""Solvers record a user's function once, and again only where it reads something else."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.recording_store import Store
from archimedes.optimize import ElementFunction

X0 = np.array([-1.2, 1.0])
WEIGHT = 100.0


def rosenbrock(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def make_rosenbrock(center):
    return lambda x: 100.0 * (x[1] - x[0] ** 2) ** 2 + (center - x[0]) ** 2


@pytest.mark.parametrize("method", ["ipopt", "ipm", "sqp", "SLSQP", "BFGS"])
def test_minimize_records_nothing_at_the_second_call(recordings, method):
    first = arc.minimize(rosenbrock, X0, method=method)
    recordings.clear()
    second = arc.minimize(rosenbrock, X0 + 0.1, method=method)
    assert not recordings
    assert first.success and second.success
    np.testing.assert_allclose([first.x, second.x], 1.0, atol=1e-5)


def test_each_function_of_a_program_is_recorded_once(recordings):
    calls = []

    def obj(x):
        calls.append("obj")
        return np.sum((x - 2.0) ** 2)

    def constr(x):
        calls.append("constr")
        return x @ x

    # A log is state; functions that keep one are recorded as they are.
    frozen = arc.compile(obj, freeze=True), arc.compile(constr, freeze=True)
    result = arc.minimize(frozen[0], [0.5, 0.5], constr={"r": frozen[1]}, constr_bounds=(None, 1.0))
    assert result.success
    assert calls == ["obj", "constr"]


def test_a_lambda_written_anew_finds_the_recordings(recordings):
    for k, center in enumerate((1.0, 1.0, 1.0)):
        result = arc.minimize(make_rosenbrock(center), X0)
        assert result.success
        if k == 0:
            recordings.clear()
    assert not recordings


def test_a_changed_global_is_noticed(monkeypatch):
    def cost(x):
        return WEIGHT * x[0] ** 2 + (x[0] - 1.0) ** 2

    first = arc.minimize(cost, [3.0])
    monkeypatch.setitem(globals(), "WEIGHT", 1.0)
    second = arc.minimize(cost, [3.0])
    np.testing.assert_allclose([first.x[0], second.x[0]], [1.0 / 101.0, 0.5], atol=1e-8)


def test_a_changed_closure_array_and_attribute_are_noticed():
    target = np.array([1.0, 2.0])

    class Model:
        gain = 1.0

    model = Model()

    def cost(x):
        return np.sum((x - model.gain * target) ** 2)

    one, other = (1.0, 2.0), (3.0, 4.0)
    for gain, values in ((1.0, one), (1.0, other), (2.0, other), (1.0, one)):
        model.gain, target[:] = gain, values
        found = arc.minimize(cost, np.zeros(2)).x
        np.testing.assert_allclose(found, gain * np.array(values), atol=1e-6)


def test_a_function_that_changed_is_not_recorded_for_another_of_its_former_content():
    class Model:
        def __init__(self, center):
            self.center = center

        def cost(self, x):
            return np.sum((x - self.center) ** 2 + 0.1 * (x - self.center) ** 4)

    old = Model(1.0)
    assert arc.minimize(old.cost, np.zeros(2)).x[0] == pytest.approx(1.0, abs=1e-4)
    old.center = 5.0
    # The content that ``old`` had: its program is kept, what is recorded of it late must be new.
    found = arc.minimize(Model(1.0).cost, np.zeros(2), method="sqp")
    assert found.x[0] == pytest.approx(1.0, abs=1e-4)


def test_constraints_count_too():
    def make(limit):
        return lambda x: x[0] + x[1] - limit

    for limit in (1.0, 2.0, 1.0):
        found = arc.minimize(lambda x: x @ x, np.ones(2), constr=make(limit))
        np.testing.assert_allclose(found.x, 0.5 * limit, atol=1e-7)


def test_static_arguments_and_structures_count():
    def cost(x, kind):
        return np.sum((x["a"] - (1.0 if kind == "one" else 2.0)) ** 2)

    for kind, size in (("one", 2), ("two", 2), ("one", 3)):
        start = {"a": np.zeros(size)}
        found = arc.minimize(cost, start, (kind,), static_argnames="kind").x["a"]
        np.testing.assert_allclose(found, np.full(size, 1.0 if kind == "one" else 2.0), atol=1e-7)


def test_places_are_kept_by_their_content(recordings):
    def solve(last):
        pairs = np.stack([np.arange(3), np.arange(1, 4)], axis=1)
        ends = ElementFunction(
            lambda z, d: (z[0] - d) ** 2, np.array([[0], [3]]), np.array([0.0, last])
        )
        links = ElementFunction(lambda z: (z[1] - z[0]) ** 2, pairs)
        return arc.minimize([ends, links], np.zeros(4)).x

    first = solve(3.0)
    recordings.clear()
    second = solve(3.0)
    assert not recordings
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(solve(6.0), 2.0 * first, atol=1e-8)


def circle(x):
    return np.stack([x[0] ** 2 + x[1] ** 2 - 1.0, x[1] - WEIGHT * x[0]])


def relaxed(x):
    return x - 0.1 * circle(x)


def bowl(x):
    return np.sum((x - WEIGHT) ** 2)


def swing(t, x, u):
    return np.stack([x[1], u[0] - WEIGHT * np.sin(x[0])])


FUNCTIONS = {
    "root": lambda: arc.root(circle, X0 + 3.0)[1],
    "root within bounds": lambda: arc.root(circle, np.ones(2), bounds=(0.0, 2.0))[1],
    "least_squares": lambda: arc.optimize.least_squares(circle, np.ones(2)).x[1],
    "fixed_point": lambda: arc.optimize.fixed_point(relaxed, np.array([0.3, 0.3]))[1],
    "qpsol": lambda: arc.qpsol(bowl, lambda x: WEIGHT * x, np.zeros(2), uba=WEIGHT).x[1],
    "linearize": lambda: -arc.control.linearize(swing, np.zeros(2), np.zeros(1)).A[1, 0],
    "trim": lambda: arc.control.trim(swing, np.array([0.3, 0.0]), np.zeros(1), fixed="x").u[0],
}
VALUES = {
    "qpsol": lambda k: min(k, 1.0),
    "linearize": lambda k: k,
    "trim": lambda k: k * np.sin(0.3),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_others_record_nothing_at_the_second_call_and_notice_changes(recordings, monkeypatch, name):
    call = FUNCTIONS[name]
    value = VALUES.get(name, lambda k: k / np.sqrt(1.0 + k * k))
    monkeypatch.setitem(globals(), "WEIGHT", 2.0)
    assert call() == pytest.approx(value(2.0), abs=1e-8)
    recordings.clear()
    assert call() == pytest.approx(value(2.0), abs=1e-8)
    assert not recordings
    monkeypatch.setitem(globals(), "WEIGHT", 0.5)
    assert call() == pytest.approx(value(0.5), abs=1e-8)
    assert recordings


def test_roots_of_traced_closures_are_not_kept():
    def solution(k):
        return arc.root(lambda x: x**2 - k, 1.0)

    assert float(arc.grad(solution)(4.0)) == pytest.approx(0.25, abs=1e-10)
    assert float(arc.compile(solution)(9.0)) == pytest.approx(3.0, abs=1e-10)
    assert float(arc.compile(solution)(16.0)) == pytest.approx(4.0, abs=1e-10)


def test_what_a_callback_writes_does_not_count(recordings):
    log = []

    def note(value):
        log.append(float(value))
        return np.float64(0.0)

    def cost(x):
        return np.sum((x - 1.0) ** 2) + 0.0 * arc.callback(note, np.float64(0.0), x[0])

    def rate(t, x):
        return -x + arc.callback(note, np.float64(0.0), x)

    calls = {
        "minimize": lambda: arc.minimize(cost, np.zeros(2), method="SLSQP").x[0],
        "odeint": lambda: arc.odeint(rate, (0.0, 1.0), 1.0),
    }
    for call in calls.values():
        # That it calls back is known when it has been recorded.
        values = [call(), call()]
        recordings.clear()
        before = len(log)
        assert call() == values[0] == values[1]
        assert not recordings
        assert len(log) > before


def test_large_captured_arrays_belong_to_their_functions():
    def make(data):
        return lambda x: np.sum((x - data[:2, 0]) ** 2) + 0.0 * np.sum(data)

    def solved(function):
        return arc.minimize(function, np.zeros(2), method="SLSQP").x

    one, other = np.arange(90_000.0).reshape(300, 300), np.ones((300, 300))
    first, second = make(one), make(other)
    for function, data in ((first, one), (second, other), (first, one), (make(other), other)):
        np.testing.assert_allclose(solved(function), data[:2, 0], rtol=1e-6, atol=1e-6)
    copy = make(one.copy())
    one[:2, 0] = 7.0
    np.testing.assert_allclose(solved(first), 7.0, rtol=1e-6)
    np.testing.assert_allclose(solved(copy), [0.0, 300.0], rtol=1e-6, atol=1e-4)


def test_memory_is_bounded():
    kept = Store(size=3)
    for k in range(10):
        assert kept.find(k, (), lambda current, k=k: k) == k
    assert kept.values() == [7, 8, 9]
    kept.find(7, (), lambda current: None)
    kept.find(10, (), lambda current: 10)
    assert kept.values() == [9, 7, 10]
