"""Campaigns: the same runs whatever computes them, on disk or not, interrupted or not."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from archimedes.errors import DeviceError
from archimedes.simulate import (
    CampaignError,
    Integers,
    Normal,
    Trajectory,
    Uniform,
    disperse,
    monte_carlo,
    summarize,
)
from archimedes.simulate.campaigns.chunk_store import Chunk, missing_ranges
from tests.optional_packages import import_or_skip

from .campaign_models import DISPERSED, TUMBLING, Hit, counted, shoot, tumble

ROOT = Path(__file__).resolve().parents[2]
N = 300


def assert_same(one, other):
    assert np.array_equal(one.runs, other.runs)
    for part in ("params", "results"):
        a, b = getattr(one, part), getattr(other, part)
        assert tree.structure(a) is tree.structure(b)
        for left, right in zip(tree.leaves(a), tree.leaves(b)):
            assert left.tobytes() == right.tobytes()


@pytest.fixture(scope="module")
def whole():
    return monte_carlo(shoot, DISPERSED, N, seed=5)


def in_process(folder, n, chunk, how, when="never"):
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, sys.path)]
    command = ["-m", "tests.simulate.campaign_process", folder, n, chunk, how, when]
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_results_have_the_structure_of_the_model(whole):
    assert whole.complete and len(whole) == N and whole.executed == N
    assert isinstance(whole.results, Hit) and whole.results.path.shape == (N, 8, 3)
    assert whole.params.att.array.shape == (N, 4)
    assert np.all(whole.params.gravity == 9.81)
    one = shoot(tree.map(lambda leaf: leaf[17], whole.params))
    np.testing.assert_allclose(whole.results.path[17], one.path, rtol=1e-12)


def test_a_run_depends_on_its_number_and_the_seed_alone(whole):
    for n, chunk in ((N, 7), (100, 1000), (1, 1)):
        part = monte_carlo(shoot, DISPERSED, n, seed=5, chunk=chunk)
        assert part.results.path.tobytes() == whole.results.path[:n].tobytes()
    other = monte_carlo(shoot, DISPERSED, N, seed=6)
    assert not np.any(other.params.speed == whole.params.speed)


def test_another_parameter_does_not_change_the_draws_of_the_rest(whole):
    changed = DISPERSED.replace(gravity=Uniform(9.7, 9.9), angle=0.7)
    other = monte_carlo(shoot, changed, N, seed=5)
    assert other.params.speed.tobytes() == whole.params.speed.tobytes()
    assert other.params.wind.tobytes() == whole.params.wind.tobytes()


def test_thread_pool(whole):
    with ThreadPoolExecutor(2) as pool:
        assert_same(monte_carlo(shoot, DISPERSED, N, seed=5, executor=pool, chunk=64), whole)
    assert_same(monte_carlo(shoot, DISPERSED, N, seed=5, threads=1), whole)


@pytest.mark.long
def test_process_pool(whole, tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = monte_carlo(shoot, DISPERSED, N, 5, executor=pool, chunk=50, folder=tmp_path)
        assert_same(found, whole)
        with pytest.raises(CampaignError, match="Define the model with def at the top of a module"):
            monte_carlo(lambda p: p.speed, DISPERSED, 4, executor=pool)


@pytest.fixture(scope="module")
def dask_client():
    distributed = import_or_skip("distributed")
    options = {"dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.long
def test_dask_cluster_of_two_workers(whole, tmp_path, dask_client):
    options = {"executor": dask_client, "chunk": 30, "folder": tmp_path}
    part = monte_carlo(shoot, DISPERSED, 120, 5, **options)
    found = monte_carlo(shoot, DISPERSED, N, 5, **options)
    assert part.executed == 120 and found.executed == N - 120
    assert_same(found, whole)


@pytest.mark.long
def test_the_backend_travels_to_dask_workers(whole, dask_client):
    """Each worker computes on what it has: with a device, on its own."""
    found = monte_carlo(shoot, DISPERSED, 60, 5, executor=dask_client, chunk=30, backend="llvm")
    assert found.results.range.tobytes() == whole.results.range[:60].tobytes()
    with pytest.raises(DeviceError, match="install CuPy"):
        monte_carlo(shoot, DISPERSED, 60, 5, executor=dask_client, backend="cuda")


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_ten_thousand_six_dof_runs_killed_and_resumed(tmp_path, dask_client):
    n, folder, other = 10_000, tmp_path / "here", tmp_path / "cluster"
    killed = in_process(folder, n, 1000, "six-dof", f"after:{n // 2}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    shutil.copytree(folder, other)
    resumed = monte_carlo(tumble, TUMBLING, n, 5, folder=folder)
    spread = monte_carlo(tumble, TUMBLING, n, 5, folder=other, executor=dask_client, chunk=500)
    assert resumed.executed == spread.executed == n // 2
    unbroken = monte_carlo(tumble, TUMBLING, n, 5, chunk=4096)
    assert_same(resumed, unbroken)
    assert_same(spread, unbroken)


@pytest.mark.long_cases("after:150", "rename*")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("when", ["after:150", "rename:1", "rename:2", "rename:4"])
def test_killed_and_resumed(whole, tmp_path, when, monkeypatch):
    folder, log = tmp_path / "campaign", tmp_path / "log"
    monkeypatch.setenv("CAMPAIGN_LOG", str(log))
    killed = in_process(folder, N, 50, "python", when)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    saved = 50 * len(list(folder.glob("runs-*.npz")))
    assert 0 <= saved < N
    log.unlink(missing_ok=True)
    found = monte_carlo(counted, DISPERSED, N, 5, folder=folder, chunk=64, vectorize=False)
    assert found.complete and found.executed == N - saved
    executed = log.read_text().split()
    assert executed == [float(s).hex() for s in whole.params.speed[saved:]]
    assert not list(folder.glob("*.part"))
    unbroken = monte_carlo(counted, DISPERSED, N, 5, vectorize=False)
    assert_same(found, unbroken)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_native_campaign_killed_and_resumed(whole, tmp_path):
    folder = tmp_path / "campaign"
    killed = in_process(folder, N, 50, "native", "after:150")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    found = monte_carlo(shoot, DISPERSED, N, 5, folder=folder)
    assert found.executed == N - 150
    assert_same(found, whole)
    again = monte_carlo(shoot, DISPERSED, N, 5, folder=folder)
    assert again.executed == 0
    assert_same(again, whole)


def test_a_larger_campaign_goes_on_and_a_smaller_one_takes_its_part(whole, tmp_path):
    monte_carlo(shoot, DISPERSED, 100, 5, folder=tmp_path)
    found = monte_carlo(shoot, DISPERSED, N, 5, folder=tmp_path)
    assert found.executed == N - 100
    assert_same(found, whole)
    part = monte_carlo(shoot, DISPERSED, 30, 5, folder=tmp_path)
    assert part.executed == 0 and part.complete
    assert part.results.range.tobytes() == whole.results.range[:30].tobytes()


def test_interrupted_by_the_keyboard(whole, tmp_path):
    def impatient(done, n):
        if done >= 100:
            raise KeyboardInterrupt

    part = monte_carlo(shoot, DISPERSED, N, 5, folder=tmp_path, chunk=50, progress=impatient)
    assert not part.complete and part.runs.tolist() == list(range(100))
    assert part.results.path.tobytes() == whole.results.path[:100].tobytes()
    assert "200 missing" in repr(part)
    assert_same(monte_carlo(shoot, DISPERSED, N, 5, folder=tmp_path), whole)


CHANGES = {
    "seed": {"seed": 6},
    "other distributions": {"distributions": DISPERSED.replace(speed=Normal(30.0, 1.5))},
    "fixed values": {"distributions": DISPERSED.replace(gravity=9.80665)},
    "another model": {"model": lambda shot: shoot(shot).range},
    "vectorize": {"vectorize": False},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_folder_of_another_campaign_is_refused(tmp_path, what):
    first = {"model": shoot, "distributions": DISPERSED, "n": 10, "seed": 5, "folder": tmp_path}
    monte_carlo(**first)
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(CampaignError, match=rf"{what}.*(?s:.*)give another folder"):
        monte_carlo(**{**first, **CHANGES[what]})
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_changed_closure_is_another_model(tmp_path):
    def model_of(drag):
        return lambda shot: drag * shot.speed

    monte_carlo(model_of(0.1), DISPERSED, 10, folder=tmp_path)
    monte_carlo(model_of(0.1), DISPERSED, 20, folder=tmp_path)
    with pytest.raises(CampaignError, match="another model"):
        monte_carlo(model_of(0.2), DISPERSED, 20, folder=tmp_path)


def test_damaged_folders(tmp_path):
    monte_carlo(shoot, DISPERSED, 20, 5, folder=tmp_path, chunk=10)
    victim = sorted(tmp_path.glob("runs-*.npz"))[1]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 255
    victim.write_bytes(data)
    with pytest.raises(CampaignError, match=rf"{re.escape(str(victim))} is damaged.*delete it"):
        monte_carlo(shoot, DISPERSED, 20, 5, folder=tmp_path)
    victim.unlink()
    assert monte_carlo(shoot, DISPERSED, 20, 5, folder=tmp_path).executed == 10
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(CampaignError, match=r"manifest\.json cannot be read"):
        monte_carlo(shoot, DISPERSED, 20, 5, folder=tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(CampaignError, match=r"has runs but no manifest\.json"):
        monte_carlo(shoot, DISPERSED, 20, 5, folder=tmp_path)


def test_two_processes_at_once_are_refused(tmp_path):
    pytest.importorskip("fcntl")

    def second(done, n):
        with pytest.raises(CampaignError, match="another process is running the campaign"):
            monte_carlo(shoot, DISPERSED, N, 5, folder=tmp_path)

    assert monte_carlo(shoot, DISPERSED, 10, 5, folder=tmp_path, progress=second).complete


def test_models_that_cannot_be_recorded_are_not_run_as_python_in_silence():
    def branching(shot):
        return 1.0 if shot.speed > 30.0 else 0.0

    with pytest.raises(arc.TraceError) as caught:
        monte_carlo(branching, DISPERSED, 10)
    assert "vectorize=False" in "".join(caught.value.__notes__)
    found = monte_carlo(branching, DISPERSED, 10, vectorize=False)
    assert set(found.results) <= {0.0, 1.0}


def test_a_run_that_shows_a_mistake_in_the_model_is_named():
    def mistaken(shot):
        return {}["range"] if shot.speed > 31.0 else shot.speed

    speeds = monte_carlo(lambda shot: shot.speed, DISPERSED, N, seed=5).results
    first = int(np.flatnonzero(speeds > 31.0)[0])
    with pytest.raises(CampaignError, match=rf"run {first} failed, KeyError: 'range'"):
        monte_carlo(mistaken, DISPERSED, N, seed=5, vectorize=False)


def test_runs_of_different_form_are_named():
    def growing(p):
        return np.zeros(int(p["k"]))

    with pytest.raises(CampaignError, match=r"result has shape \(\d,\) in run \d+.*t_eval"):
        monte_carlo(growing, {"k": Integers(1, 9)}, 20, vectorize=False)

    def changing(p):
        return {"a": 0.0} if p["k"] < 5 else {"b": 0.0}

    with pytest.raises(CampaignError, match="returned another structure than run 0, at"):
        monte_carlo(changing, {"k": Integers(1, 9)}, 20, vectorize=False)


def test_trajectories_as_results(tmp_path):
    def decay(p):
        t = np.linspace(0.0, 1.0, 5)
        return Trajectory(t, {"a": np.exp(-p["rate"] * t)})

    dispersed = {"rate": Uniform(1.0, 2.0)}
    for vectorize in (True, False):
        found = monte_carlo(
            decay, dispersed, 6, folder=tmp_path / str(vectorize), vectorize=vectorize
        )
        again = monte_carlo(
            decay, dispersed, 6, folder=tmp_path / str(vectorize), vectorize=vectorize
        )
        assert_same(found, again)
        assert isinstance(again.results, Trajectory) and again.results.batch_shape == (6,)
        np.testing.assert_allclose(found.results[2].x["a"][-1], np.exp(-found.params["rate"][2]))


def test_fixed_settings_pass_through():
    def model(p):
        assert p["name"] == "drag" and p["count"] == 3  # a plain number: it may steer a loop
        return sum(p["k"] for _ in range(p["count"]))

    found = monte_carlo(model, {"k": Normal(), "name": "drag", "count": 3}, 5)
    np.testing.assert_allclose(found.results, 3 * found.params["k"], rtol=1e-15)
    same = monte_carlo(lambda p: {"a": p["b"]}, {"b": 2.0}, 4)
    assert same.results["a"].tolist() == [2.0] * 4


def test_no_runs_at_all(tmp_path):
    none = monte_carlo(shoot, DISPERSED, 0, folder=tmp_path)
    assert none.complete and len(none) == 0 and "0 of 0" in repr(none)


def test_bad_arguments():
    for change, error, words in [
        ({"n": 2.5}, TypeError, "n must be a whole number of at least 0, got 2.5"),
        ({"n": -1}, ValueError, "n must be a whole number of at least 0"),
        ({"chunk": 0}, ValueError, "chunk must be a whole number of at least 1"),
        ({"seed": None}, TypeError, "seed must be a whole number"),
        ({"executor": 3}, TypeError, "executor must be a concurrent.futures.Executor or a Dask"),
    ]:
        with pytest.raises(error, match=words):
            monte_carlo(**{"model": shoot, "distributions": DISPERSED, "n": 3, **change})


def test_progress_bar_and_callback(capsys):
    seen = []
    monte_carlo(shoot, DISPERSED, 25, chunk=10, progress=lambda *args: seen.append(args))
    assert seen == [(10, 25), (20, 25), (25, 25)]
    monte_carlo(shoot, DISPERSED, 25, progress=True)
    assert "25/25" in capsys.readouterr().err


def test_disperse_names_leaves_and_skips_checks():
    from archimedes.spatial import RigidBody

    nominal = RigidBody.Input(np.zeros(3), np.zeros(3), 10.0, np.eye(3))
    params = disperse(nominal, {"m": Normal(10.0, 0.1), "F_B": Normal(np.zeros(3), 1.0)})
    found = monte_carlo(lambda u: u.F_B / u.m, params, 5)
    expected = found.params.F_B / found.params.m[:, None]
    np.testing.assert_allclose(found.results, expected, rtol=1e-15)
    with pytest.raises(arc.StructError, match=r"no leaf 'mass'; there are \['F_B', 'M_B', 'm'"):
        disperse(nominal, {"mass": 1.0})


def test_statistics_against_numpy(whole):
    got = whole.statistics(quantiles=(0.1, 0.5))
    x = whole.results.path
    np.testing.assert_allclose(got.mean.path, x.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(got.std.path, x.std(axis=0, ddof=1), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(got.quantiles[0.1].path, np.quantile(x, 0.1, axis=0), rtol=1e-13)
    assert np.all(got.min.path == x.min(axis=0)) and np.all(got.max.path == x.max(axis=0))
    assert np.all(got.count.range == N)
    assert "range (m)" in repr(got) and "path[7,2] (m)" in got.report()


def test_statistics_leave_nan_out_quietly():
    x = np.array([[1.0, np.nan, 3.0], [np.nan] * 3, [2.0, 2.0, 2.0]]).T
    got = summarize(x)
    assert got.count.tolist() == [2, 0, 3]
    np.testing.assert_allclose(got.mean, [2.0, np.nan, 2.0])
    np.testing.assert_allclose(got.quantiles[0.5], [2.0, np.nan, 2.0])
    np.testing.assert_allclose(got.min, [1.0, np.nan, 2.0])
    assert summarize(np.array([True, False, False, False])).mean == 0.25
    assert "nan" in repr(summarize(np.zeros((0, 2))))


def test_table_of_runs(whole):
    frame = whole.to_pandas()
    assert frame.index.name == "run" and len(frame) == N
    assert frame["result.path[7,2]"].to_numpy().tobytes() == whole.results.path[:, 7, 2].tobytes()


@pytest.mark.parametrize("size", [1, 3, 100])
def test_missing_ranges_cover_what_is_missing_once(size):
    rng = np.random.default_rng(3)
    for _ in range(50):
        cuts = np.unique(rng.integers(0, 40, size=6))
        done = [Chunk(int(a), int(b), Path()) for a, b in zip(cuts[::2], cuts[1::2])]
        total = int(rng.integers(0, 45))
        have = {k for c in done for k in range(c.start, c.stop)}
        found = [k for a, b in missing_ranges(done, total, size) for k in range(a, b)]
        assert found == sorted(set(range(total)) - have)
        assert all(0 < b - a <= size for a, b in missing_ranges(done, total, size))
