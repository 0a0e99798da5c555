"""Solves that are made again and again: few Python calls, and what the first one gave."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from dataclasses import field

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from archimedes.simulate.solves import prepared_solves
from archimedes.spatial import Quaternion, RigidBody
from tests.interrupting import interrupted

#: Python calls that a repeated solve may make.
MOST = 61
MANY, FEW = np.linspace(0.0, 2.0, 101), np.linspace(0.5, 2.0, 7)
INERTIA = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def nothing_prepared(monkeypatch):
    """Begin with nothing prepared, and keep nothing for other tests."""
    for name in ("_solves", "_functions"):
        monkeypatch.setattr(prepared_solves, name, OrderedDict())


def prepared():
    return [p for p in prepared_solves._solves.values() if isinstance(p, prepared_solves.Prepared)]


def count_calls(work):
    """Return how many Python functions are called."""
    count = 0

    def see(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def tumble(t, w):
    return np.cross(INERTIA * w, w) / INERTIA


def spin(t, x, rate, gains):
    return -rate * x + gains["a"] * np.sin(x)


@arc.struct
class Ball:
    height: float
    speed: float


@arc.struct
class Planet:
    gravity: float
    drag: np.ndarray
    name: str = field(default="Earth", metadata={"static": True})

    def fall(self, t, x, wind):
        return Ball(x.speed, -self.gravity - np.sum(self.drag) * (x.speed - wind))


def free_body(t, x):
    body = RigidBody()
    forces, moments, mass = np.zeros(3), np.zeros(3), 2.0
    return body.dynamics(t, x, RigidBody.Input(forces, moments, mass, np.diag(INERTIA)))


W0, SPAN = np.array([1.0, 0.1, 0.01]), (0.0, 2.0)
BODY = {"pos": np.zeros(3), "turn": {"rate": np.array(1.0), "angle": 0.5}}


def swing(t, x):
    turn = x["turn"]
    return {"pos": -x["pos"] + 1.0, "turn": {"rate": -np.sin(turn["angle"]), "angle": turn["rate"]}}


#: Functions, initial states and further options.
FORMS = {
    "array": (tumble, W0, {}),
    "list": (tumble, W0.tolist(), {}),
    "number": (lambda t, x: -x + np.sin(t), 1.0, {}),
    "matrix": (lambda t, x: -x @ x, np.eye(2) + 0.5, {}),
    "tree": (swing, BODY, {}),
    "arguments": (spin, np.ones(2), {"args": (0.5, {"a": np.array([1.0, 2.0])})}),
    "one argument": (lambda t, x, k: -k * x, W0, {"args": 2}),
    "bound method": (Planet(9.81, np.array([0.1, 0.2])).fall, Ball(1.0, 0.0), {"args": (0.3,)}),
    "attitude": (
        lambda t, x: {"q": x["q"].kinematics(x["w"]), "w": tumble(t, x["w"])},
        {"q": Quaternion.identity(), "w": W0},
        {},
    ),
    "stiff method": (tumble, W0, {"method": "rodas5p"}),
    "fixed steps": (tumble, W0, {"method": "rk4", "dt": 0.05}),
    "tolerances": (tumble, W0, {"rtol": 1e-5, "atol": 1e-6, "max_step": 0.1, "first_step": 0.01}),
}
SOLVES = {
    "odeint": lambda f, span, x0, **o: arc.odeint(f, span, x0, **o),
    "odeint, many": lambda f, span, x0, **o: arc.odeint(f, span, x0, t_eval=MANY, **o),
    "odeint, few": lambda f, span, x0, **o: arc.odeint(f, span, x0, t_eval=FEW, **o),
    "solve_ode": lambda f, span, x0, **o: arc.solve_ode(f, span, x0, **o),
    "solve_ode, many": lambda f, span, x0, **o: arc.solve_ode(f, span, x0, t_eval=MANY, **o),
    "solve_ode, few": lambda f, span, x0, **o: arc.solve_ode(f, span, x0, t_eval=FEW, **o),
}


def assert_equal(a, b):
    """Compare results bit by bit, with all that a trajectory says."""
    if isinstance(a, arc.Trajectory):
        assert (a.status, a.message, a.stats) == (b.status, b.message, b.stats)
        assert (a.dense is None) == (b.dense is None) and a.events is None is b.events
        if a.dense is not None:
            time = 0.5 * (a.t[0] + a.t[-1])
            assert_equal(a(time), b(time))
        a, b = (a.t, a.x), (b.t, b.x)
    mine, structure = tree.flatten(a)
    theirs, other = tree.flatten(b)
    assert structure is other
    for one, two in zip(mine, theirs, strict=True):
        assert type(one) is type(two) and np.shape(one) == np.shape(two)
        assert np.asarray(one).tobytes() == np.asarray(two).tobytes()


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("solve", list(SOLVES))
def test_repeated_solves_give_what_the_first_one_gave(form, solve):
    func, x0, options = FORMS[form]
    run = lambda: SOLVES[solve](func, SPAN, x0, **options)
    first = run()
    assert_equal(run(), first)
    assert len(prepared()) == 1
    assert_equal(run(), first)
    assert_equal(run(), first)


FIXED, ADAPTIVE = ("euler", "heun", "radau5"), ("bs3", "dopri5", "tsit5", "esdirk4", "auto")


@pytest.mark.parametrize("method", [*FIXED, *ADAPTIVE])
@pytest.mark.parametrize("func", [tumble, lambda t, w: np.ones(3), lambda t, w: 0.0 * w])
def test_repeated_solves_by_every_method(method, func):
    steps = {"dt": 0.1} if method in FIXED else {}
    for times in (None, MANY, FEW):
        options = {"method": method, "t_eval": times, **steps}
        first, *others = [arc.solve_ode(func, SPAN, W0, **options) for _ in range(3)]
        for one in others:
            assert_equal(one, first)
    assert len(prepared()) == 2


@pytest.mark.parametrize("form", ["array", "list", "arguments", "stiff method", "fixed steps"])
@pytest.mark.parametrize("solve", list(SOLVES))
def test_a_repeated_solve_makes_few_calls(form, solve):
    func, x0, options = FORMS[form]
    run = lambda: SOLVES[solve](func, SPAN, x0, **options)
    for _ in range(4):
        run()
    assert count_calls(run) <= MOST


@pytest.mark.parametrize("solve", list(SOLVES))
def test_other_numbers_give_other_results(solve):
    # A span that is a list is solved the ordinary way.
    decay = lambda t, x, k: -k * x
    for k, x, end in [(1.0, 1.0, 2.0), (1.0, 1.0, 2.0), (2.0, 1.0, 2.0), (0.5, -3.0, 2.5)]:
        x0 = np.array([x, 2.0 * x])
        found, expected = (
            SOLVES[solve](decay, span, x0, args=(k,)) for span in ((0.0, end), [0.0, end])
        )
        assert_equal(found, expected)
    assert len(prepared()) == 1


@pytest.mark.parametrize("outputs", [MANY[::-1], FEW[::-1], None])
def test_back_in_time(outputs):
    run = lambda: arc.solve_ode(tumble, (2.0, 0.0), W0, t_eval=outputs)
    first = run()
    for _ in range(3):
        assert_equal(run(), first)
    assert prepared() and first.t[-1] <= 0.5


def test_outputs_that_end_before_the_span_and_repeat():
    times = np.repeat(np.linspace(0.0, 1.0, 40), 2)
    run = lambda: arc.solve_ode(tumble, (0.0, 50.0), W0, t_eval=times)
    first = run()
    for _ in range(3):
        assert_equal(run(), first)
    assert first.stats["steps"] < 100


@pytest.mark.parametrize("outputs", [np.linspace(0.0, 2.0, 100), [0.5, 1.5], None])
def test_failures_are_told_in_the_same_words(outputs):
    burst = lambda t, x: x**2
    run = lambda: arc.solve_ode(burst, (0.0, 2.0), 1.0, t_eval=outputs)
    first = run()
    for _ in range(3):
        assert_equal(run(), first)
    assert first.status == -1 and prepared()
    for _ in range(4):
        with pytest.raises(arc.SimulationError, match="odeint: the step size became too small"):
            arc.odeint(burst, (0.0, 2.0), 1.0, t_eval=outputs)
    limited = lambda: arc.solve_ode(tumble, (0.0, 9.0), W0, t_eval=outputs, max_steps=3)
    first = limited()
    for _ in range(3):
        assert_equal(limited(), first)
    assert first.status == -3


def test_what_is_refused_is_refused_again():
    run = lambda x0=W0, span=SPAN, times=MANY: arc.odeint(tumble, span, x0, t_eval=times)
    for _ in range(3):
        run()
    for _ in range(2):
        with pytest.raises(ValueError, match="x0 is nan or infinite"):
            run(np.array([1.0, np.nan, 0.0]))
        with pytest.raises(ValueError, match="t_eval must be sorted"):
            run(times=MANY[::-1])
        with pytest.raises(ValueError, match=r"t_eval holds 2\.02, which is outside"):
            run(times=1.01 * MANY)
        with pytest.raises(ValueError, match="is empty: start and end are equal"):
            run(span=(2.0, 2.0))
        with pytest.raises(ValueError, match="must be finite"):
            run(span=(0.0, np.inf))
    assert len(prepared()) == 1


GAIN = 1.0


def test_a_function_that_reads_something_else_is_solved_anew(monkeypatch):
    weights = np.array([1.0, 2.0])

    def decay(t, x):
        return -GAIN * weights * x

    run = lambda: arc.odeint(decay, (0.0, 1.0), np.ones(2), rtol=1e-10)
    for gain, weight in [(1.0, 2.0), (3.0, 2.0), (3.0, 0.5), (1.0, 2.0)]:
        monkeypatch.setattr(sys.modules[__name__], "GAIN", gain)
        weights[1] = weight
        for _ in range(4):
            expected = np.exp(-gain * np.array([1.0, weight]))
            assert np.allclose(run(), expected, rtol=1e-8)
        assert len(prepared()) == 1


def test_functions_that_are_written_anew_for_each_call():
    scale = np.array([1.0, 2.0, 3.0])

    def run(gain=1.0, offset=0.0):
        def decay(t, x, *, k=gain):
            return -k * scale * x + offset

        return arc.odeint(decay, (0.0, 1.0), np.ones(3), rtol=1e-10)

    plain = lambda: arc.odeint(lambda t, x: -scale * x, (0.0, 1.0), np.ones(3), rtol=1e-10)
    for _ in range(4):
        assert np.allclose(plain(), np.exp(-scale), rtol=1e-8)
    assert count_calls(plain) <= MOST and len(prepared()) == 1
    for gain, offset in [(1.0, 0.0), (1.0, 0.0), (2.0, 0.0), (2.0, 0.5), (1.0, 0.0)]:
        for _ in range(3):
            rate = gain * scale
            expected = offset / rate + (1.0 - offset / rate) * np.exp(-rate)
            assert np.allclose(run(gain, offset), expected, rtol=1e-8)
    scale[0] = 4.0
    for _ in range(3):
        assert np.allclose(plain(), np.exp(-scale), rtol=1e-8)


def test_functions_of_one_factory_are_told_apart():
    def decay(k):
        return lambda t, x, s=1.0: -k * s * x

    one, two = decay(1.0), decay(2.0)
    for _ in range(4):
        for func, k in ((one, 1.0), (two, 2.0), (decay(1.0), 1.0), (decay(3.0), 3.0)):
            found = arc.odeint(func, (0.0, 1.0), 1.0, rtol=1e-10)
            assert found == pytest.approx(np.exp(-k), rel=1e-8)


def test_states_and_arguments_of_other_forms_are_solved_anew():
    decay = lambda t, x, k: -k * x
    for x0, k in [(np.ones(2), 1.0), (np.ones(3), 1.0), (np.ones(2), np.ones(2)), (1.0, 1)]:
        for _ in range(3):
            found = arc.odeint(decay, (0.0, 1.0), x0, args=(k,), rtol=1e-10)
            assert np.allclose(found, np.exp(-1.0) * np.asarray(x0), rtol=1e-8)
    assert len(prepared()) == 4


def test_functions_of_equal_content_do_not_read_each_other():
    # The kernels are those of both, recorded from the one that was met last.
    def make():
        gain = [2.0]
        return (lambda t, x: -gain[0] * x), gain

    (one, _), (two, gain) = make(), make()
    for func in (one, one, two):
        assert arc.odeint(func, (0.0, 1.0), 1.0) == pytest.approx(np.exp(-2.0), rel=1e-7)
    gain[0] = 3.0
    for times in (None, [1.0], np.linspace(0.0, 1.0, 50)):
        for _ in range(3):
            found = arc.odeint(one, (0.0, 1.0), 1.0, t_eval=times)
            assert np.ravel(found)[-1] == pytest.approx(np.exp(-2.0), rel=1e-7)


def test_results_are_arrays_of_their_own():
    run = lambda: arc.solve_ode(tumble, SPAN, W0, t_eval=MANY)
    for solve in (run, lambda: arc.solve_ode(tumble, SPAN, W0)):
        first = [solve() for _ in range(4)]
        kept = first[-1].x.copy()
        arc.solve_ode(tumble, SPAN, 2.0 * W0, t_eval=MANY)
        arc.solve_ode(tumble, SPAN, 2.0 * W0)
        assert np.array_equal(first[-1].x, kept)
        first[-1].x[:] = 0.0
        assert np.array_equal(solve().x, kept)


def test_threads_do_not_share_memory():
    starts = [W0 * (1.0 + 0.1 * k) for k in range(8)]
    expected = [arc.odeint(lambda t, w: tumble(t, w), SPAN, w, t_eval=MANY) for w in starts]
    for _ in range(3):
        arc.odeint(tumble, SPAN, W0, t_eval=MANY)
    wrong = []

    def work(k):
        for _ in range(20):
            found = arc.odeint(tumble, SPAN, starts[k], t_eval=MANY)
            if not np.array_equal(found, expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("times", [None, [1e7], np.linspace(0.0, 1e7, 100)])
def test_ctrl_c_returns_the_part_computed(times):
    options = {"rtol": 1e-9, "max_steps": 10**9}
    for end in (1.0, 1.0, 1.0):
        some = None if times is None else np.asarray(times) * (end / 1e7)
        arc.odeint(tumble, (0.0, end), W0, t_eval=some, **options)
    run = lambda: arc.odeint(tumble, (0.0, 1e7), W0, t_eval=times, **options)
    found = interrupted(run)
    assert isinstance(found, KeyboardInterrupt) and "odeint: interrupted at t = " in str(found)
    assert prepared()


def test_what_is_not_usual_goes_the_ordinary_way():
    for _ in range(4):
        arc.solve_ode(tumble, SPAN, W0, events=lambda t, w: w[0])
        arc.solve_ode(tumble, SPAN, W0, t_eval=MANY, dense=True)
        arc.odeint(tumble, SPAN, W0, rtol=np.full(3, 1e-6))
        arc.odeint(arc.compile(tumble), SPAN, W0)
        arc.solve_ode(tumble, SPAN, W0[None], in_axes=0)
        arc.odeint(tumble, [0.0, 2.0], W0)
    dense = [p for p in prepared() if isinstance(p, prepared_solves.InRows)]
    assert len(prepared()) == len(dense) == 1  # the solves with dense=True prepare those without


def test_few_are_kept(monkeypatch):
    monkeypatch.setattr(prepared_solves, "KEPT", 4)
    for k in range(6):
        scale = lambda t, x, k=k: -x
        arc.odeint(scale, (0.0, 1.0), 1.0)
    assert len(prepared_solves._solves) == 4


def test_the_backend_of_the_environment_is_heeded(monkeypatch):
    decay = lambda t, x: -x
    expected = [arc.odeint(decay, (0.0, 1.0), 1.0) for _ in range(3)][-1]
    assert len(prepared()) == 1
    monkeypatch.setenv("ARCHIMEDES_BACKEND", "interpreter")
    for _ in range(3):
        assert arc.odeint(decay, (0.0, 1.0), 1.0) == expected
    assert len(prepared()) == 1  # and none of another backend
    monkeypatch.setenv("ARCHIMEDES_BACKEND", "abacus")
    with pytest.raises(ValueError, match="ARCHIMEDES_BACKEND='abacus' is not one of"):
        arc.odeint(decay, (0.0, 1.0), 1.0)
