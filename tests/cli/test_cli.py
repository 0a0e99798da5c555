"""The command line: the demonstration runs, checks itself and writes what it says."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.cli import demonstration, main, tumbling
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        status = main(["demo", "--output", str(folder), "--runs", "20"])
    return status, text.getvalue(), folder


def test_the_demonstration_passes_its_own_checks(shown):
    status, text, _ = shown
    assert status == 0 and text.rstrip().endswith("All checks passed.")
    for words in ("energy", "angular momentum", "against SciPy", "against real time", "same bits"):
        assert words in text
    assert all(len(row) <= 100 for row in text.splitlines() if not row.startswith("Written"))


def test_it_writes_the_trajectory_and_a_plot(shown):
    _, text, folder = shown
    assert (folder / "tumbling.png").read_bytes().startswith(b"\x89PNG")
    x, _ = tumbling.body()
    back = Trajectory.from_csv(folder / "tumbling.csv", like=x)
    assert back.t[0] == 0.0 and back.t[-1] == tumbling.DURATION
    assert isinstance(back.x.att, Quaternion)
    assert str(folder / "tumbling.csv") in text


def test_the_csv_holds_the_motion(shown):
    back = Trajectory.from_csv(shown[2] / "tumbling.csv", like=tumbling.body()[0])
    np.testing.assert_allclose(arc.tree.ravel(back[0])[0], arc.tree.ravel(tumbling.body()[0])[0])
    reference = tumbling.scipy_solution()
    rows = np.concatenate([back.x.pos, back.x.att.array, back.x.v_B, back.x.w_B], axis=1)
    np.testing.assert_allclose(rows, reference, atol=1e-7)


def test_what_is_written_for_scipy_is_the_same_physics():
    _, u = tumbling.body()
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = rng.normal(size=4)
        x = RigidBody.State(
            rng.normal(size=3),
            Quaternion(q / np.linalg.norm(q)),
            rng.normal(size=3),
            rng.normal(size=3),
        )
        flat = arc.tree.ravel(x)[0]
        expected = arc.tree.ravel(tumbling.dynamics(0.0, x, u))[0]
        np.testing.assert_allclose(tumbling.scipy_rates(0.0, flat), expected, atol=1e-14)


def test_flip_interval_against_scipys_zero_crossings():
    rate = tumbling.scipy_solution(rtol=1e-12, atol=1e-13)[:, 11]
    t = np.linspace(0.0, tumbling.DURATION, len(rate))
    k = np.flatnonzero(np.diff(np.sign(rate)))
    crossings = t[k] - rate[k] * (t[k + 1] - t[k]) / (rate[k + 1] - rate[k])
    np.testing.assert_allclose(np.diff(crossings), tumbling.flip_interval(), rtol=1e-4)


def test_a_failed_check_is_told(monkeypatch, capsys):
    monkeypatch.setattr(demonstration, "ALLOWED", 0.0)
    monkeypatch.setattr(demonstration, "show_batch", lambda runs: True)
    monkeypatch.setattr(demonstration, "show_speed", lambda traj: True)
    monkeypatch.setattr(demonstration, "write_files", lambda traj, folder: None)
    assert main(["demo", "--runs", "4"]) == 1
    assert "SOME CHECKS FAILED" in capsys.readouterr().out


def test_without_matplotlib_the_rest_is_written(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    demonstration.write_files(Trajectory([0.0], tumbling.dispersed(1)), tmp_path)
    said = capsys.readouterr()
    assert "No plot: plot needs matplotlib: pip install matplotlib" in said.err
    assert [p.name for p in tmp_path.iterdir()] == ["tumbling.csv"]


def test_commands(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0 and arc.__version__ in capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0 and "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["dance"])
    assert done.value.code == 2
    with pytest.raises(SystemExit, match="--runs must be at least 1"):
        main(["demo", "--runs", "0"])


def test_the_folder_has_a_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for part in ("show_batch", "show_speed", "show_model", "show_physics"):
        monkeypatch.setattr(demonstration, part, lambda *args: True)
    monkeypatch.setattr(demonstration.tumbling, "simulate", lambda *args: None)
    monkeypatch.setattr(
        demonstration, "write_files", lambda traj, folder: (folder / "x.csv").write_text("")
    )
    assert main([]) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["archimedes_demo"]
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match=r"file cannot be made .*name another folder"):
        main(["--output", "file"])


def test_as_a_module():
    command = [sys.executable, "-m", "archimedes", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "src", timeout=60)
    assert done.returncode == 0 and done.stdout.strip() == arc.__version__
