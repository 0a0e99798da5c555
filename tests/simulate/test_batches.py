"""Batches: the same bits as alone, any size, any threads; failures of single instances."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from archimedes.simulate import solve_ode
from archimedes.simulate.statuses import Status


@arc.struct
class Swing:
    angle: np.ndarray
    rate: np.ndarray


def swing(t, x, p):
    return Swing(x.rate, -p["k"] * np.sin(x.angle) + 0.1 * np.cos(p["w"] * t))


RNG = np.random.default_rng(3)
COUNT = 300  # more than one group, and no multiple of the lanes
STATES = Swing(RNG.standard_normal(COUNT), RNG.standard_normal(COUNT))
PARAMETERS = {"k": RNG.uniform(0.5, 30.0, COUNT), "w": 1.3}
AXES = (0, {"k": 0, "w": None})


def one(k):
    return (
        tree.map(lambda leaf: leaf[k], STATES),
        {"k": PARAMETERS["k"][k], "w": PARAMETERS["w"]},
    )


def same(batch, k, alone):
    return all(np.array_equal(a[k], b) for a, b in zip(tree.leaves(batch.x), tree.leaves(alone.x)))


@pytest.mark.long_cases("100")
@pytest.mark.parametrize("times", [5, 100, 700])
def test_same_bits_as_alone(times):
    t = np.linspace(0.0, 4.0, times)
    batch = solve_ode(
        swing, (0.0, 4.0), STATES, t_eval=t, args=(PARAMETERS,), in_axes=AXES, method="tsit5"
    )
    assert batch.x.angle.shape == (COUNT, times)
    assert batch.success.all()
    assert batch.message == f"all {COUNT} instances reached their end"
    assert len(np.unique(batch.stats["steps"])) > 10
    for k in (0, 1, 7, 255, 256, COUNT - 1):
        x0, p = one(k)
        alone = solve_ode(swing, (0.0, 4.0), x0, t_eval=t, args=(p,), method="tsit5")
        assert same(batch, k, alone)
        assert batch.stats["steps"][k] == alone.stats["steps"]


def test_size_and_threads_do_not_matter():
    t = np.linspace(0.0, 4.0, 100)
    options = {"t_eval": t, "method": "tsit5", "in_axes": AXES}
    whole = solve_ode(swing, (0.0, 4.0), STATES, args=(PARAMETERS,), threads=2, **options)
    for count in (1, 3, 64):
        part = tree.map(lambda leaf, n=count: leaf[:n], STATES)
        p = {"k": PARAMETERS["k"][:count], "w": 1.3}
        found = solve_ode(swing, (0.0, 4.0), part, args=(p,), threads=1, **options)
        assert np.array_equal(found.x.angle, whole.x.angle[:count])


def test_natural_steps_of_each():
    part = tree.map(lambda leaf: leaf[:9], STATES)
    p = {"k": PARAMETERS["k"][:9], "w": 1.3}
    batch = solve_ode(swing, (0.0, 4.0), part, args=(p,), in_axes=AXES, method="tsit5")
    assert batch.t.shape[1] == batch.stats["steps"].max() + 1
    for k in range(9):
        x0, own = one(k)
        alone = solve_ode(swing, (0.0, 4.0), x0, args=(own,), method="tsit5")
        assert np.array_equal(batch[k].t, alone.t)
        assert np.array_equal(batch[k].x.rate, alone.x.rate)
    dense = solve_ode(swing, (0.0, 4.0), part, args=(p,), in_axes=AXES, method="tsit5", dense=True)
    assert np.array_equal(dense(1.7).angle[8], alone(1.7).angle)
    assert np.array_equal(dense[8](1.7).angle, alone(1.7).angle)


def test_one_axis_for_all_and_backward():
    x0 = np.array([[1.0], [2.0], [3.0]])
    rates = np.array([1.0, 2.0, 3.0])
    t = np.linspace(1.0, 0.0, 60)
    found = solve_ode(lambda t, x, k: -k * x, (1.0, 0.0), x0, args=(rates,), in_axes=0, t_eval=t)
    expected = x0[:, None, :] * np.exp(rates[:, None] * (1.0 - t))[:, :, None]
    assert np.allclose(found.x, expected, rtol=1e-6)
    shared = solve_ode(
        lambda t, x, k: -k * x, (0.0, 1.0), np.ones(1), args=(rates,), in_axes=(None, 0),
        t_eval=[1.0],
    )  # fmt: skip
    assert np.allclose(shared.x[:, 0, 0], np.exp(-rates), rtol=1e-7)


def test_instances_fail_alone():
    x0 = np.array([0.1, 1.0, 0.2, 4.0])
    t = np.linspace(0.0, 2.0, 81)
    batch = solve_ode(lambda t, x: x**2, (0.0, 2.0), x0, in_axes=(0,), t_eval=t)
    assert batch.status.tolist() == [
        Status.FINISHED,
        Status.STEP_UNDERFLOW,
        Status.FINISHED,
        Status.STEP_UNDERFLOW,
    ]
    assert batch.message.startswith("2 of 4 instances failed; instance 1: the step size became")
    for k, start in enumerate(x0):
        alone = solve_ode(lambda t, x: x**2, (0.0, 2.0), start, t_eval=t)
        good = len(alone.t)
        assert np.array_equal(batch.t[k, :good], alone.t)
        assert np.array_equal(batch.x[k, :good], alone.x)
        assert np.isnan(batch.t[k, good:]).all()
        assert np.isnan(batch.x[k, good:]).all()
    few = solve_ode(lambda t, x: x**2, (0.0, 0.2), x0, in_axes=(0,), max_steps=4, t_eval=[0.0, 0.2])
    assert Status.TOO_MANY_STEPS in few.status


@pytest.mark.parametrize("count", [60, COUNT])
def test_interrupted_batch(count):
    def stop(part, t):
        raise KeyboardInterrupt

    t = np.linspace(0.0, 4.0, 50)
    part = tree.map(lambda leaf: leaf[:count], STATES)
    p = {"k": PARAMETERS["k"][:count], "w": 1.3}
    batch = solve_ode(
        swing, (0.0, 4.0), part, args=(p,), in_axes=AXES, t_eval=t, method="tsit5", progress=stop
    )
    assert batch.x.angle.shape == (count, 50)
    assert np.array_equal(np.isnan(batch.t), np.isnan(batch.x.angle))
    short = np.isnan(batch.t[:, -1])
    assert np.array_equal(batch.status, np.where(short, Status.INTERRUPTED, Status.FINISHED))
    if count == 60:  # one group: interrupted in its first call; others may be done by then
        assert short.all()
        assert batch.message.startswith("60 of 60 instances failed; instance 0: interrupted at")


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((0,), "in_axes has 1 entries, but there are 2 values"),
        ((1, None), r"argument \[0\].* has shape \(300,\), which has no axis 1"),
        ((None, None), "no argument has an axis to map over"),
        ((0, {"k": 0}), "axes .* do not match the dict they are for"),
    ],
)
def test_bad_axes(axes, message):
    with pytest.raises(ValueError, match=message):
        solve_ode(swing, (0.0, 4.0), STATES, args=(PARAMETERS,), in_axes=axes)


def test_different_lengths():
    with pytest.raises(ValueError, match="the mapped axes have different lengths"):
        solve_ode(lambda t, x, k: -k * x, (0.0, 1.0), np.ones(3), args=(np.ones(4),), in_axes=0)


def test_empty_batch():
    with pytest.raises(ValueError, match="the batch is empty"):
        solve_ode(lambda t, x: -x, (0.0, 1.0), np.ones((0, 2)), in_axes=(0,))


@pytest.mark.long
def test_what_a_chunk_is_given_is_made_once(monkeypatch):
    """Python between chunks holds up all threads: it is made anew only when an instance ends."""
    from archimedes.simulate.solves.collectors import OutputTimes
    from archimedes.simulate.solves.kernel_runs import ManyRuns

    parts, chunks = [], []
    make, call = ManyRuns._choose, OutputTimes.call

    def made(self, *args):
        parts.append(self)
        make(self, *args)

    def called(self, *args):
        chunks.append(self)
        return call(self, *args)

    monkeypatch.setattr(ManyRuns, "_choose", made)
    monkeypatch.setattr(OutputTimes, "call", called)
    x0 = np.linspace(1.0, 1.001, 12)
    times = np.linspace(0.0, 60.0, 64)
    found = solve_ode(lambda t, x: -x * np.cos(t), (0.0, 60.0), x0, in_axes=0, t_eval=times)
    assert np.all(found.success) and len(chunks) > 5 * len(parts)


def falling(t, x):
    return np.stack([x[1], -9.81 - 0.1 * x[1]])


BOUNCE = arc.Event(lambda t, x: x[0], direction=-1, reset=lambda t, x: x * np.array([1.0, -0.7]))


@pytest.mark.long_cases("1.5*")
@pytest.mark.parametrize("events", [None, BOUNCE])
@pytest.mark.parametrize("outputs", ["few", "many", "steps", "dense", "sparse"])
@pytest.mark.parametrize("end", [1.5, -0.4])
def test_a_single_solve_is_a_batch_of_one(events, outputs, end):
    """One driver and one family of collectors: same samples, events, status and counts."""
    span = (0.0, end)
    count = {"few": 5, "many": 200, "dense": 50, "sparse": 40}.get(outputs)
    t = None if count is None else np.linspace(*span, count)
    options = {"t_eval": t, "events": events, "dense": outputs in ("dense", "steps")}
    if outputs == "sparse":  # more steps than outputs, which a batch notices on its way
        options["max_step"] = abs(end) / 400.0
    x0 = np.array([1.0, 0.5])
    alone = solve_ode(falling, span, x0, **options)
    batch = solve_ode(falling, span, x0[None], in_axes=0, **options)[0]
    assert np.array_equal(alone.t, batch.t) and np.array_equal(alone.x, batch.x)
    assert alone.status == batch.status and alone.success
    assert alone.stats["steps"] == batch.stats["steps"]
    assert alone.stats["rejected"] == batch.stats["rejected"]
    if events is not None:
        assert len(alone.events["t"]) == (2 if end > 0.0 else 0)
        for name in ("t", "event", "x_before", "x_after"):
            assert np.array_equal(alone.events[name], batch.events[name]), name
    if options["dense"]:
        between = np.linspace(*span, 7)
        assert np.array_equal(alone(between), batch(between))


@pytest.mark.long
def test_a_batch_keeps_steps_of_different_counts():
    """Instances make different numbers of steps, in several kernel calls, and end apart."""
    x0 = np.array([[1.0, 0.5], [40.0, -3.0], [0.2, 9.0]])
    batch = solve_ode(falling, (0.0, 3.0), x0, in_axes=0, events=BOUNCE, max_step=0.03)
    for k, start in enumerate(x0):
        alone = solve_ode(falling, (0.0, 3.0), start, events=BOUNCE, max_step=0.03)
        assert np.array_equal(batch[k].t, alone.t) and np.array_equal(batch[k].x, alone.x)
        assert np.array_equal(batch[k].events["x_after"], alone.events["x_after"])
    lengths = np.sum(~np.isnan(batch.t), axis=1)
    assert len(set(lengths.tolist())) > 1
