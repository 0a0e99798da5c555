"""Robustness against its definition, another library, and what must hold for any run."""

from __future__ import annotations

import math

import numpy as np
import pytest

import archimedes as arc
from archimedes import requirements as req

from . import definitions as by


def signals(rng, n):
    return {name: rng.normal(size=n).cumsum() * 0.5 for name in "abc"}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dt", [1.0, 0.1])
def test_random_formulas_agree_with_the_definition(seed, dt):
    rng = np.random.default_rng(seed)
    for depth in (1, 2, 3):
        formula = by.random_formula(rng, depth, most=3)
        n = by.horizon(formula) + 6
        values = signals(rng, n)
        wanted = [by.robustness(formula, values, k) for k in range(6)]
        requirement = by.requirement(formula, dt)
        assert requirement.horizon == pytest.approx(by.horizon(formula) * dt)
        t = np.arange(n) * dt
        got = requirement.trace(values, t)[1][:6]
        np.testing.assert_allclose(got, wanted, rtol=0.0, atol=2e-14 if dt != 1.0 else 0.0)
        assert requirement.robustness(values, t) == got[0]


@pytest.mark.parametrize("seed", range(30))
def test_runs_that_end_too_early_have_bounds_that_hold_for_any_future(seed):
    rng = np.random.default_rng(1000 + seed)
    formula = by.random_formula(rng, 2, most=4)
    n, requirement = by.horizon(formula) + 1, by.requirement(formula)
    whole = signals(rng, n)
    for short in range(1, n + 1):
        begun = {name: values[:short] for name, values in whole.items()}
        (run,) = req.formulas.runs_of(begun, np.arange(short) * 1.0)
        lower, upper = requirement.start_bounds(run)
        futures = [whole]
        for size in (0.1, 1e3):
            rest = {name: size * rng.normal(size=n - short) for name in "abc"}
            futures.append({name: np.r_[begun[name], rest[name]] for name in "abc"})
        for sign in (-1e6, 1e6):
            futures.append({k: np.r_[v, np.full(n - short, sign)] for k, v in begun.items()})
        truths = [by.robustness(formula, future, 0) for future in futures]
        assert lower <= min(truths)
        assert max(truths) <= upper
        if short == n:
            assert lower == upper == truths[0]
        verdict = requirement.verdict(begun, np.arange(short) * 1.0)
        if verdict.status == "violated":
            assert max(truths) < 0.0
        if verdict.status == "satisfied":
            assert min(truths) >= 0.0


def test_the_bounds_are_as_near_as_they_can_be():
    alt = req.signal("alt") > 0
    run = {"t": np.arange(4.0), "alt": np.array([3.0, 1.0, 2.0, 5.0])}
    (known,) = req.formulas.runs_of(run)
    assert req.always(alt, between=(0, 9)).start_bounds(known) == (-np.inf, 1.0)
    assert req.eventually(alt, between=(0, 9)).start_bounds(known) == (5.0, np.inf)
    assert req.always(alt, between=(5, 9)).start_bounds(known) == (-np.inf, np.inf)
    assert req.until(alt, req.signal("alt") > 9, between=(0, 9)).start_bounds(known)[1] == 1.0
    falls = {**run, "alt": run["alt"] - 2.0}
    assert req.always(alt, between=(0, 9)).verdict(falls).status == "violated"
    assert req.always(alt, between=(0, 9)).robustness(falls) == -1.0


@pytest.mark.parametrize("seed", range(25))
def test_uneven_times_with_windows_between_the_samples(seed):
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.exponential(size=30) + 1e-3) * 0.4
    values = signals(rng, 30)
    length = t[-1] - t[0]
    for kind in ("always", "eventually", "until"):
        parts = [("x", str(rng.choice(list("abc"))), float(rng.normal()))]
        if kind == "until":
            parts.append(("x", str(rng.choice(list("abc"))), float(rng.normal())))
        a, b = sorted(rng.uniform(0.0, length, 2))
        got = getattr(req, kind)(*map(by.requirement, parts), between=(a, b)).robustness(values, t)
        wanted = by.at_time((kind, *parts, a, b), t, values, t[0])
        assert got == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_nested_windows_converge_to_continuous_time(seed):
    """Between samples, what is nested is a little coarser than the truth: refining converges."""
    rng = np.random.default_rng(seed)
    formula = by.random_formula(rng, 2, most=3)
    t = np.linspace(0.0, 8.0, 33)
    smooth = {k: np.sin(rng.uniform(0.5, 2) * t + rng.uniform(0, 6)) for k in "abc"}
    requirement = by.requirement(formula)
    truth = requirement.robustness(smooth, t, refine=64)
    errors = [abs(requirement.robustness(smooth, t, refine=k) - truth) for k in (1, 4, 16)]
    assert errors[0] < 0.25
    assert errors[2] <= max(errors[0], 1e-12)
    assert errors[2] < 0.02


def test_against_rtamt():
    """The library of Nickovic and Yamaguchi (RV 2023), on whole samples."""
    rtamt = pytest.importorskip("rtamt")

    def text(f):
        if f[0] == "x":
            return f"({f[1]} > {f[2]!r})"
        parts = [text(part) for part in f if isinstance(part, tuple)]
        if f[0] == "not":
            return f"(not {parts[0]})"
        if f[0] in ("and", "or"):
            return f"({parts[0]} {f[0]} {parts[1]})"
        window = f"[{f[-2]},{f[-1]}]"
        if f[0] == "until":  # there the first one need not hold at the end
            return f"({parts[0]} until{window} ({parts[0]} and {parts[1]}))"
        return f"({f[0]}{window} {parts[0]})"

    rng = np.random.default_rng(7)
    for _ in range(60):
        formula = by.random_formula(rng, 2, most=4)
        n = by.horizon(formula) + 4
        values = signals(rng, n)
        spec = rtamt.StlDiscreteTimeSpecification()
        for name in "abc":
            spec.declare_var(name, "float")
        spec.spec = text(formula)
        spec.parse()
        table = {"time": list(range(n)), **{k: v.tolist() for k, v in values.items()}}
        wanted = spec.evaluate(table)[0][1]
        got = by.requirement(formula).robustness(values, np.arange(n) * 1.0)
        assert got == pytest.approx(wanted, abs=1e-12), text(formula)


# ---- recorded, differentiated, smooth ------------------------------------------------------


def response(t):
    alt, speed = req.signal("alt"), req.signal("speed")
    request = req.eventually(req.always(speed < 0.4, between=(0, 0.5)), between=(0, 1.3))
    return req.always((alt < 0.2) >> request, between=(0.1, 2.0)) & req.until(
        alt > -2, speed > -0.9, between=(0.5, 1.1)
    )


def motion(p, t):
    return arc.Trajectory(t, {"alt": np.sin(p[0] * t) + p[1], "speed": p[0] * np.cos(p[0] * t)})


def test_recorded_is_eager_and_derivatives_are_those_of_differences():
    t = np.sort(np.r_[0.0, np.random.default_rng(0).uniform(0, 4, 24), 4.0])
    requirement = response(t)
    values = np.random.default_rng(1).normal(size=(2, len(t)))
    table = lambda v: requirement.robustness({"alt": v[0], "speed": v[1]}, t)
    assert arc.compile(table)(values) == table(values)
    slope = arc.grad(table)(values)
    assert np.count_nonzero(slope) in (1, 2)  # one sample decides, or two between which it lies
    for smooth in (0.0, 0.05):
        f = lambda p, smooth=smooth: requirement.robustness(motion(p, t), smooth=smooth)
        p, step = np.array([1.3, 0.4]), 1e-6
        by_differences = [(f(p + d) - f(p - d)) / (2 * step) for d in step * np.eye(2)]
        np.testing.assert_allclose(arc.grad(f)(p), by_differences, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_smooth_values_are_near_the_strict_ones(seed):
    rng = np.random.default_rng(seed)
    formula = by.random_formula(rng, 2, most=4)
    n = by.horizon(formula) + 1
    values, requirement = signals(rng, n), by.requirement(formula)
    t = np.arange(n) * 1.0
    strict = requirement.robustness(values, t)
    for width in (1.0, 0.1, 1e-4):
        # Each of at most five operators takes at most n + 5 samples.
        most = 5 * width * math.log(n + 5)
        assert abs(requirement.robustness(values, t, smooth=width) - strict) <= most
    part = req.always(by.requirement(("x", "a", 0.0)))
    assert part.robustness(values, t, smooth=0.3) <= part.robustness(values, t)


def test_windows_of_any_length_take_one_pass():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 100):
        values = rng.normal(size=(3, n))
        first = np.sort(rng.integers(0, n, 50))
        last = np.maximum(np.sort(rng.integers(0, n, 50)), first)
        got = req.windows.fold_windows(values, first, last, req.windows.Fold())
        wanted = [values[:, i : j + 1].min(axis=1) for i, j in zip(first, last)]
        np.testing.assert_array_equal(got, np.transpose(wanted))
    long = rng.normal(size=200_000)
    first = np.arange(100_000)
    got = req.windows.fold_windows(long, first, first + 50_000, req.windows.Fold())
    assert got[123] == long[123:50_124].min()


# ---- nasty values --------------------------------------------------------------------------


def test_nan_is_never_satisfied():
    alt = req.signal("alt")
    table = {"t": np.arange(3.0), "alt": np.array([1.0, np.nan, 2.0])}
    for requirement in (req.always(alt > 0), req.eventually(alt > 0), ~req.always(alt > 0)):
        verdict = requirement.verdict(table)
        assert verdict.status == "undetermined"
        assert str(verdict) == "undetermined: alt > 0 is nan at t = 1"
        assert np.isnan(requirement.robustness(table))


def test_infinite_values_one_sample_and_jumps():
    alt = req.signal("alt")
    table = {"t": np.arange(3.0), "alt": np.array([1.0, np.inf, 2.0])}
    assert req.always(alt > 0).robustness(table) == 1.0
    assert req.eventually(alt > 0).robustness(table) == np.inf
    one = {"t": np.zeros(1), "alt": np.ones(1)}
    assert req.always(alt > 0).robustness(one) == 1.0
    assert req.until(alt > 0, alt > 0.5).robustness(one) == 0.5
    assert req.always(alt > 0, between=(0, 1)).verdict(one).status == "undetermined"
    # Before and after a jump: both values count.
    bounce = {"t": np.array([0.0, 1.0, 1.0, 2.0]), "alt": np.array([1.0, -3.0, 3.0, 1.0])}
    assert req.always(alt > -5).robustness(bounce) == 2.0
    assert req.eventually(alt > 0).robustness(bounce) == 3.0
    huge = {"t": 1e9 + np.arange(3.0), "alt": np.array([1e300, -1e300, 0.0])}
    assert req.always(alt > 0, between=(1, 2)).robustness(huge) == -1e300


def test_zero_counts_as_satisfied():
    table = {"t": np.arange(2.0), "alt": np.zeros(2)}
    verdict = req.always(req.signal("alt") >= 0).verdict(table)
    assert (verdict.status, verdict.robustness) == ("satisfied", 0.0)
