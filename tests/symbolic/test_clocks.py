"""The time read in a recorded function is refused, and nothing else is changed by that."""

from __future__ import annotations

import cProfile
import datetime
import sys
import threading
import time
from datetime import datetime as moment
from time import perf_counter as stopwatch

import numpy as np
import pytest

import archimedes as arc


class Meter:
    def __init__(self):
        self.read = time.monotonic

    def __call__(self, x):
        return x + self.read()


class Local(datetime.datetime):
    pass


def seconds():
    return float(time.strftime("%S"))


def imported_inside(x):
    import time as clock

    return x + clock.process_time()


READING = {
    "time.time": lambda x: x + time.time(),
    "time.time_ns": lambda x: x + time.time_ns() % 7,
    "time.perf_counter": lambda x: x + stopwatch(),
    "time.monotonic": Meter(),
    "time.process_time": imported_inside,
    "time.strftime": lambda x: x + seconds(),
    "time.gmtime": lambda x: x + time.gmtime().tm_sec,
    "time.localtime": lambda x: x + time.localtime().tm_sec,
    "datetime.now": lambda x: x + moment.now().second,
    "datetime.today": lambda x: x + datetime.datetime.today().second,
    "Local.now": lambda x: x + Local.now().second,
    "date.today": lambda x: x + datetime.date.today().day,
    "np.datetime64": lambda x: x + np.datetime64("now").astype(float),
    "np.datetime64 of the day": lambda x: x + np.datetime64("today").astype(int),
}


@pytest.mark.parametrize("name", READING)
def test_refused(name):
    with pytest.raises(arc.TraceError, match="Pass the time as an argument") as caught:
        arc.compile(READING[name])(1.0)
    assert str(caught.value).startswith(name.split()[0])
    assert "test_clocks.py" in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda f: arc.grad(f)(1.0),
        lambda f: arc.vmap(f)(np.ones(3)),
        lambda f: arc.hess(f)(1.0),
        lambda f: arc.compile(lambda x: arc.scan(lambda c, _: (f(c), c), x, length=3))(1.0),
        lambda f: arc.compile(f, freeze=True)(1.0),
        lambda f: arc.odeint(lambda t, x: f(x), (0.0, 1.0), 1.0),
        lambda f: arc.solve_ode(lambda t, x: f(x), (0.0, 1.0), 1.0),
        lambda f: arc.codegen(f, (1.0,), name="f"),
    ],
    ids=["grad", "vmap", "hess", "scan", "freeze", "odeint", "solve_ode", "codegen"],
)
def test_everything_that_records_refuses(use):
    for model in (READING["time.perf_counter"], Meter(), READING["datetime.now"]):
        with pytest.raises((arc.TraceError, arc.CodegenError), match="Pass the time"):
            use(model)


def test_times_that_are_given_may_be_converted():
    def model(x):
        day = datetime.date(2000, 1, 2) - datetime.date(2000, 1, 1)
        return x + day.days + time.gmtime(0).tm_year + float(time.strftime("%Y", time.gmtime(0)))

    assert arc.compile(model)(1.0) == 2.0 + 2 * 1970


def test_callbacks_read_clocks():
    f = arc.compile(lambda x: arc.callback(lambda x: x + stopwatch(), x, x))
    assert f(1.0) != f(1.0)


def test_clocks_that_are_only_there_do_no_harm():
    def model(x):
        if x.ndim > 7:
            return x + time.time() + np.float64(np.datetime64(0, "s").astype(float))
        return x + 1.0

    assert arc.compile(model)(np.ones(1)) == 2.0


def test_profilers_go_on():
    calls = []

    def profile(frame, event, argument):
        calls.append(event)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with pytest.raises(arc.TraceError, match="Pass the time"):
            arc.compile(READING["time.time"])(1.0)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)
    assert "c_call" in calls
    with cProfile.Profile() as profiler:
        arc.compile(lambda x: x + 1.0 if time else x)(1.0)
    assert profiler.getstats()


def test_other_threads_read_their_clocks():
    recording, told = threading.Event(), threading.Event()

    def other():
        recording.wait(10)
        time.perf_counter()
        told.set()

    def model(x):
        recording.set()
        assert told.wait(10)
        return x + (1.0 if time else 0.0)

    thread = threading.Thread(target=other)
    thread.start()
    assert arc.compile(model)(1.0) == 2.0
    thread.join()


def test_only_functions_that_reach_a_clock_are_watched():
    watched = []

    def model(x):
        watched.append(sys.getprofile())
        return np.sin(x)

    before = sys.getprofile()
    arc.compile(model, freeze=True)(1.0)
    assert watched == [before]
