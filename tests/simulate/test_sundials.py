"""CVODE and IDA of the extra ``sundials`` against closed forms and SciPy's Radau."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import ArchimedesError
from archimedes.simulate.events.event import Event
from archimedes.simulate.ode import odeint, solve_ode
from archimedes.simulate.statuses import Status

from ..optional_packages import import_or_skip
from .conftest import robertson

import_or_skip("sksundae")


@pytest.mark.long_cases("cvode")
@pytest.mark.parametrize("method", ["cvode", "ida"])
def test_stiff_system(method, robertson_end):
    span, times = (0.0, 1e5), [0.0, 0.0, 10.0, 1e5]
    found = solve_ode(robertson, span, [1.0, 0.0, 0.0], method=method, atol=1e-14)
    assert found.success and found.stats["method"] == method
    assert found.x[-1] == pytest.approx(robertson_end, rel=1e-6)
    at = solve_ode(robertson, span, [1.0, 0.0, 0.0], method=method, atol=1e-14, t_eval=times)
    assert at.t.tolist() == times
    assert at.x[-1] == pytest.approx(robertson_end, rel=1e-6)
    last = odeint(robertson, span, [1.0, 0.0, 0.0], method=method, atol=1e-14)
    assert last == pytest.approx(robertson_end, rel=1e-6)


def test_structs_arguments_and_going_back():
    @arc.struct
    class State:
        a: float
        b: np.ndarray

    def dynamics(t, x, k):
        return State(-k * x.a, k * x.b)

    start = State(1.0, np.array([1.0, 2.0]))
    found = solve_ode(dynamics, (0.0, -1.0), start, method="cvode", args=(0.5,))
    assert found.x.a[-1] == pytest.approx(np.exp(0.5), rel=1e-6)
    assert found.x.b[-1] == pytest.approx(np.exp(-0.5) * start.b, rel=1e-6)


def test_failures_return_what_was_computed():
    found = solve_ode(lambda t, x: x**2, (0.0, 2.0), 1.0, method="cvode")
    assert not found.success and 0.9 < found.t[-1] < 1.01
    few = solve_ode(robertson, (0.0, 1e5), [1.0, 0.0, 0.0], method="cvode", max_steps=10)
    assert few.status == Status.TOO_MANY_STEPS and len(few.t) == 11
    nan = solve_ode(lambda t, x: np.sqrt(0.5 - t) * x, (0.0, 1.0), 1.0, method="ida")
    assert nan.status < 0 and nan.t[-1] < 0.6


def test_what_cannot_be_done_is_said():
    with pytest.raises(ArchimedesError, match="method='cvode' has no events"):
        solve_ode(
            robertson, (0.0, 1.0), [1.0, 0.0, 0.0], method="cvode", events=Event(lambda t, x: x[0])
        )
    with pytest.raises(ArchimedesError, match="runs outside the kernels"):
        arc.jac(lambda x: odeint(robertson, (0.0, 1.0), x, method="cvode"))(
            np.array([1.0, 0.0, 0.0])
        )


def test_interruption_keeps_what_was_computed():
    def interrupt(part, t):
        if part > 0.3:
            raise KeyboardInterrupt

    found = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, method="cvode", progress=interrupt)
    assert "interrupted" in found.message and 0.2 < found.t[-1] < 1.0
