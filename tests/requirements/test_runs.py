"""What requirements are evaluated on: dense output, tables, batches, campaigns."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import requirements as req
from archimedes.simulate import Uniform, monte_carlo

x0, x1 = req.signal("x[0]"), req.signal("x[1]")


def swing(t, x):
    return np.array([x[1], -x[0]])


def test_dense_output_finds_the_extreme_between_the_steps():
    run = arc.solve_ode(swing, (0.0, 10.0), np.array([0.0, 1.0]))
    below = req.always(x0 < 1.1)
    assert below.robustness(run) == pytest.approx(0.1, abs=2e-3)
    samples = arc.Trajectory(run.t, run.x)
    assert below.robustness(samples) > below.robustness(run)
    assert below.robustness(run, refine=64) == pytest.approx(0.1, abs=1e-4)
    verdict = req.always(x0 < 0.5, between=(0, 3)).verdict(run, refine=64)
    assert verdict.status == "violated"
    assert verdict.time == pytest.approx(np.pi / 2, abs=0.02)


def test_functions_of_state_inputs_and_time():
    push = arc.InputSeries([0.0, 1.0], [1.0, 3.0])
    times = np.linspace(0.0, 2.0, 21)
    run = arc.solve_ode(
        lambda t, x, u: np.array([x[1], u]), (0.0, 2.0), np.zeros(2), inputs=push, t_eval=times
    )
    power = req.signal(lambda t, x, u: x[1] * u, name="power")
    assert req.always(power <= 12).robustness(run) == pytest.approx(0.0, abs=1e-9)
    assert req.always(req.signal("u") >= 1).robustness(run) == 0.0
    late = req.always((req.signal("t") < 1) | (req.signal("u") > 2))
    assert late.robustness(run) == pytest.approx(0.1)  # at 0.9 s, the last sample before
    # Held inputs do not ramp between samples: 0.97 s is still before the jump.
    assert req.always(req.signal("u") < 2, between=(0, 0.97)).robustness(run) == 1.0


def test_a_simulation_that_failed_is_undetermined():
    run = arc.solve_ode(lambda t, x: x**2, (0.0, 2.0), 1.0)
    assert not run.success
    verdict = req.always(req.signal("x") > 0).verdict(run)
    assert verdict.status == "undetermined"
    assert "where the simulation failed" in str(verdict)
    assert req.always(req.signal("x") < 5).verdict(run).status == "violated"


def test_batches_and_campaigns_say_which_runs_violate_what():
    t = np.linspace(0.0, 3.0, 31)

    def fall(p):
        alt = p["alt"] - 4.905 * t**2
        return {"t": t, "alt": alt, "speed": 9.81 * t, "last": alt[-1]}

    campaign = monte_carlo(fall, {"alt": Uniform(20.0, 60.0)}, n=100, seed=3)
    rules = {
        "floor": req.always(req.signal("alt", units="m") > 0),
        "slow": req.always(req.signal("speed") < 20, between=(0, 2)),
        "long": req.always(req.signal("speed") < 90, between=(0, 9)),
    }
    report = req.check(rules, campaign)
    last = campaign.results["last"]
    assert report.robustness.shape == report.status.shape == (3, 100)
    np.testing.assert_array_equal(report.robustness[0], last)
    np.testing.assert_array_equal(report.status[0] == "violated", last < 0.0)
    assert (report.status[1] == "satisfied").all()
    assert (report.status[2] == "undetermined").all()
    assert not report.ok
    name, run, size = report.violations[0]
    assert (name, size) == ("floor", last.min())
    assert run == np.argmin(last)
    text = str(report)
    assert f"{np.sum(last < 0)} of 100" in text
    assert "alt > 0 m at t = 3" in text
    assert len(report.report().splitlines()) > len(text.splitlines())
    assert req.check(rules["slow"], campaign).ok


def test_batches_with_times_of_their_own():
    batch = arc.solve_ode(swing, (0.0, 3.0), np.array([[0.0, 1.0], [0.0, 2.0]]), in_axes=0)
    one = [req.always(x0 < 1.5).robustness(batch[k]) for k in range(2)]
    np.testing.assert_array_equal(req.always(x0 < 1.5).robustness(batch), one)
    assert [v[1] for v in req.check(req.always(x0 < 1.5), batch).violations] == [1]


def test_tables():
    pandas = pytest.importorskip("pandas")
    table = {"t": np.array([0.0, 1.0, 4.0]), "alt": np.array([3.0, 1.0, 2.0])}
    rule = req.always(req.signal("alt") > 0, between=(0.5, 2.5))
    assert rule.robustness(table) == 1.0
    assert rule.robustness({"alt": table["alt"]}, table["t"]) == 1.0
    assert rule.robustness(pandas.DataFrame(table)) == 1.0
    assert rule.robustness(arc.Trajectory(table["t"], {"alt": table["alt"]})) == 1.0
    times, values = req.eventually(req.signal("alt") > 2.5, between=(0, 1)).trace(table)
    np.testing.assert_array_equal(times, table["t"])
    np.testing.assert_allclose(values, [0.5, -7 / 6, np.nan])
    assert req.check([], table).ok
