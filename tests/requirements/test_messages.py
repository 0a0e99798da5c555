"""Errors that teach: precedence, chained comparisons, names, windows, ranges."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import requirements as req
from archimedes.simulate import Uniform

alt, speed = req.signal("alt"), req.signal("speed")
RUN = {"t": np.arange(3.0), "alt": np.ones(3), "speed": np.zeros(3)}


def run_of(p):
    return {"t": np.arange(3.0), "alt": p["a"] * np.ones(3)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: 1 < alt < 2, r"alt > 1 is neither true nor false.*\(a < x\) & \(x < b\)"),
        (lambda: (alt > 1) and (speed > 1), "a & b, a . b, ~a"),
        (lambda: not (alt > 1), "neither true nor false"),
        (lambda: max(alt, speed), r"np.minimum\(x, y\)"),
        (lambda: alt > 1 & speed < 2, r"1 & speed: Python binds & more tightly.*\(a > 1\) & \(b"),
        (lambda: alt > 1 | speed, "binds . more tightly"),
        (lambda: alt > 1 >> speed, "binds >> more tightly"),
        (lambda: ~alt, "compare it first"),
        (lambda: bool(alt), "the signal alt is a number over time"),
        (lambda: alt == 2, r"req.near\(alt, 2\)"),
        (lambda: alt != 2, "no margin"),
        (lambda: np.linalg.norm(alt), r"np.norm is not defined for signals.*lambda t, x"),
        (lambda: np.add.reduce(alt), "is not defined for signals"),
        (lambda: alt > "speed", r"write req.signal\('speed'\)"),
        (lambda: req.always(alt), "alt is a signal, not a condition: compare it, alt > 0"),
        (lambda: req.always(3 > 1), r"got bool; .* begin with req.signal"),
        (lambda: (alt > 1) & 2, "&: expected a requirement such as alt > 100, got int"),
        (lambda: req.always(alt > 1, between=5), r"between must be \(start, end\) in seconds"),
        (lambda: req.always(alt > 1, between=(2, 1)), "must start at 0 or later and not after"),
        (lambda: req.eventually(alt > 1, between=(-1, 1)), "must start at 0 or later"),
        (lambda: req.until(alt > 1, alt), "until: alt is a signal"),
        (lambda: req.signal(3.0), "signal: source must be a function .*name of a column"),
        (lambda: req.signal("a", units="m") + req.signal("b", units="s"), "m and s do not agree"),
        (lambda: req.signal("a", units="m") > req.signal("b", units="s"), "a > b: the units m and"),
        (lambda: req.always(req.signal("alr") > 1).robustness(RUN), "did you mean 'alt'"),
        (lambda: req.always(alt > 1).robustness(np.ones(3)), 'give t=..., or a column "t"'),
        (
            lambda: req.always(req.signal("x") > 1).robustness(np.ones((3, 2)), np.arange(3.0)),
            r"has shape \(2,\) at each time.*name a component",
        ),
        (
            lambda: req.always(req.signal(lambda t, x, u: u) > 1).robustness(RUN),
            r"a function of \(t, x, u\), and this run has no u",
        ),
        (
            lambda: req.always(alt > 1).robustness({**RUN, "t": np.array([0.0, 2.0, 1.0])}),
            "must be finite and increase",
        ),
        (lambda: req.always(alt > 1).robustness(RUN, smooth=-1.0), "smooth must not be negative"),
        (
            lambda: req.always(alt > 1).verdict({"t": np.ones((2, 3)), "alt": np.ones((2, 3))}),
            "verdict is about one run",
        ),
        (lambda: req.check(["alt > 1"], RUN), r"must be a Requirement, got str"),
        (lambda: arc.falsify(3, alt > 1, {}), "falsify: model must be a function"),
        (lambda: arc.falsify(run_of, alt > 1, {"a": (1.0, 2.0)}), "two fixed numbers"),
        (lambda: arc.falsify(run_of, alt > 1, {"a": Uniform}), r"write Uniform\(\.\.\.\)"),
        (
            lambda: arc.falsify(run_of, alt > 1, {"a": Uniform(0, 1)}, stop="best"),
            "'worst', 'first'",
        ),
        (lambda: arc.falsify(run_of, [], {"a": Uniform(0, 1)}), "give at least one"),
        (lambda: arc.falsify(run_of, alt > 1, {"a": Uniform(0, 1)}, dt=0.1), "need t_span"),
        (
            lambda: arc.falsify(run_of, alt > 1, {"a": Uniform(0, 1)}, t_span=(0, 1)),
            '"x0", the state',
        ),
        (
            lambda: arc.falsify(run_of, alt > 1, {"x0": Uniform(0, 1), "inputs": 3}, t_span=(0, 1)),
            "must be a req.PiecewiseInput",
        ),
        (
            lambda: arc.falsify(run_of, alt > 1, {"x0": Uniform(0, 1)}, t_span=(0, 1), args=(1,)),
            "args belongs into ranges",
        ),
        (
            lambda: arc.falsify(run_of, alt > 1, {"x0": Uniform(0, 1)}, t_span=(0, 1), events=[]),
            r"write model\(params\)",
        ),
        (
            lambda: arc.falsify(run_of, alt > 1, {"a": req.PiecewiseInput(0, 1, 3)}),
            "how long is the signal",
        ),
        (lambda: req.PiecewiseInput(0, 1, 0), "pieces must be a whole number of at least 1"),
        (lambda: req.PiecewiseInput(2, 1, 3), "low must not exceed high"),
        (lambda: req.PiecewiseInput(0, 1, 3, hold="linear"), "hold='linear' is not one of"),
    ],
)
def test_a_mistake_is_explained(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()


def test_times_must_be_known_in_recorded_code():
    with pytest.raises(TypeError, match="know the times of the samples"):
        arc.compile(lambda t: req.always(alt > 0).robustness({"alt": t}, t))(np.arange(3.0))


def test_units_that_differ_from_those_of_the_run():
    @arc.struct
    class State:
        alt: float = arc.field(units="m")

    run = arc.Trajectory(np.arange(2.0), State(np.ones(2)))
    assert req.always(alt > 2).verdict(run).units == "m"
    assert str(req.always(alt > 2).verdict(run)) == "violated by 1 m: alt > 2 at t = 0"
    with pytest.raises(ValueError, match="is in m in this run, and in ft in the requirement"):
        req.always(req.signal("alt", units="ft") > 2).verdict(run)


def test_texts():
    height = req.signal("alt", units="m")
    requirement = req.always((height > 100) & ~(speed > 5), between=(0, 60)).named("floor")
    assert str(requirement) == "floor: always((alt > 100 m) & ~(speed > 5), between=(0, 60))"
    assert repr(req.always(alt > 1, between=(2, None))) == "always(alt > 1, between=(2, None))"
    assert repr((alt > 1) | (speed < 2) | (alt < 0)) == "(alt > 1) | (speed < 2) | (alt < 0)"
    assert repr(np.hypot(alt, speed) < -speed) == "np.hypot(alt, speed) < -speed"
    assert repr(alt > 1.5) == "alt > 1.5"
    assert repr(np.float64(1.5) < alt) == "1.5 < alt"
    assert (alt > 1).implies(speed > 1).horizon == 0.0
