"""The command line: commands, exit statuses, and the demonstration of a tumbling body."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.cli import main
from archimedes.cli.commands import COMMANDS, examples_of, import_command
from archimedes.demos import DEMOS, t_handle, tumbling
from archimedes.demos.reporting import Report
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        status = main(["demo", "t-handle", "--output", str(folder), "--runs", "20"])
    return status, text.getvalue(), folder


@pytest.mark.long
def test_the_demonstration_passes_its_own_checks(shown):
    status, text, folder = shown
    assert status == 0 and "All checks passed" in text.splitlines()[-1]
    for words in ("energy", "angular momentum", "against SciPy", "against real time", "same bits"):
        assert words in text
    assert all(len(row) <= 100 for row in text.splitlines() if not row.startswith("Written"))
    assert f"Written to {folder}" in text


@pytest.mark.long
def test_it_writes_table_plot_page_and_figures(shown):
    _, _, folder = shown
    assert (folder / "tumbling.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "t-handle.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    told = json.loads((folder / "summary.json").read_text())
    assert told["good"] and all(told["checks"].values())
    back = Trajectory.from_csv(folder / "tumbling.csv", like=tumbling.body()[0])
    assert back.t[0] == 0.0 and back.t[-1] == tumbling.DURATION
    assert isinstance(back.x.att, Quaternion)
    rows = np.concatenate([back.x.pos, back.x.att.array, back.x.v_B, back.x.w_B], axis=1)
    np.testing.assert_allclose(rows, tumbling.scipy_solution(), atol=1e-7)


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


def test_a_failed_check_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(t_handle, "run", lambda report: report.check("two is three", 2 == 3))
    assert main(["demo", "t-handle", "--output", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "CHECK FAILED: two is three" in out and "FAILED: two is three" in out
    assert main(["demo", "t-handle", "--output", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["good"] is False and told["checks"] == {"two is three": False}


def test_without_matplotlib_the_rest_is_written(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = Report("t-handle", tmp_path)
    report.figure("a", tumbling.simulate())
    said = capsys.readouterr()
    assert "No plot a.png: plot needs matplotlib: pip install matplotlib" in said.err
    assert report.files == []


def test_commands(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0 and arc.__version__ in capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    out = capsys.readouterr().out
    assert done.value.code == 0 and all(name in out for name in COMMANDS) and "examples:" in out
    with pytest.raises(SystemExit) as done:
        main(["dance"])
    assert done.value.code == 2 and "invalid choice: 'dance'" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    with pytest.raises(SystemExit) as done:
        main([name, "--help"])
    out = capsys.readouterr().out
    assert done.value.code == 0 and examples_of(import_command(name))[0] in out and "--json" in out


def test_the_list_of_demonstrations(capsys):
    assert main(["demo", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(DEMOS)
    assert main(["demo", "--list", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == list(DEMOS)


def test_mistakes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--runs", "0"]) == 1
    assert "archimedes demo: --runs must be at least 1" in capsys.readouterr().err
    Path("file").write_text("")
    assert main(["--output", "file"]) == 1
    assert "file cannot be created (File exists): give another" in capsys.readouterr().err
    assert main(["run"]) == 1 and "--template f16" in capsys.readouterr().err
    assert main(["run", "none.yaml", "--json"]) == 1
    said = capsys.readouterr()
    assert "none.yaml: no such file" in json.loads(said.out)["error"]
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_without_a_command_it_is_the_demonstration(monkeypatch, tmp_path):
    from archimedes.demos import f16_flight

    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(f16_flight, "run", lambda report: asked.append(report.name))
    assert main([]) == 0 and asked == ["f16"]
    assert [p.name for p in tmp_path.iterdir()] == ["archimedes_demo"]


@pytest.mark.long
def test_ctrl_c_and_a_reader_that_leaves(monkeypatch, tmp_path, capsys):
    def interrupted(report):
        raise KeyboardInterrupt

    monkeypatch.setattr(t_handle, "run", interrupted)
    assert main(["demo", "t-handle", "--output", str(tmp_path)]) == 130
    command = f"{sys.executable} -m archimedes doctor --json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=ROOT / "src"
    )
    assert done.stdout == "{" and "Traceback" not in done.stderr


def test_as_a_module_and_without_importing_numpy():
    command = [sys.executable, "-X", "importtime", "-m", "archimedes", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "src", timeout=60)
    assert done.returncode == 0 and "doctor" in done.stdout
    assert "numpy" not in done.stderr


def test_a_live_page_alone(tmp_path, capsys):
    assert main(["demo", "cartpole", "--live", "--output", str(tmp_path)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cartpole_live.html", "summary.json"]
    assert "the model runs in it" in capsys.readouterr().out
    assert main(["demo", "t-handle", "--live", "--output", str(tmp_path)]) == 1
    assert "'t-handle' has no live page" in capsys.readouterr().err
