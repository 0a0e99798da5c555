"""Plots on the screen: windows, notebooks, and a word where there are neither."""

from __future__ import annotations

import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

import archimedes as arc
from archimedes.viz import windows


@pytest.fixture(autouse=True)
def closed():
    windows._unseen.clear()
    yield
    pyplot.close("all")
    windows._unseen.clear()


def figure(**options):
    return arc.plot(arc.Trajectory(np.arange(3.0), {"height": np.zeros(3)}), **options)


def test_show_opens_windows(monkeypatch):
    shown = []
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "tkagg")
    monkeypatch.setattr(pyplot, "show", lambda block: shown.append(block))
    figure()
    arc.show()
    arc.show(block=False)
    assert shown == [True, False]


def test_show_without_a_display_says_how(capsys):
    figure()
    arc.show()
    assert capsys.readouterr().err == (
        "archimedes: no window can be opened here, since matplotlib uses 'Agg': save it with "
        'arc.plot(..., file="plot.png")\n'
    ).replace("'Agg'", repr(matplotlib.get_backend()))
    assert windows.open_unseen() == 0  # it has been said


def test_show_without_plots(capsys, tmp_path):
    figure(file=tmp_path / "plot.png")
    arc.show()
    assert "no plot is open (those saved by file= are closed)" in capsys.readouterr().err


def test_plots_that_nobody_saw_are_counted(tmp_path, monkeypatch, capsys):
    one, _ = figure(), figure()
    figure(file=tmp_path / "three.png")
    assert windows.open_unseen() == 2
    one.savefig(tmp_path / "one.svg")
    assert windows.open_unseen() == 1
    windows.say_unseen()
    assert capsys.readouterr().err == ""  # pytest knows what becomes of plots
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setattr(windows, "TOOLS", frozenset())
    windows.say_unseen()
    assert "a plot was made but not shown: save it with arc.plot" in capsys.readouterr().err
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "tkagg")
    windows.say_unseen()
    assert "call arc.show() at the end of the script, or save it" in capsys.readouterr().err
    monkeypatch.setenv("MPLBACKEND", "agg")
    windows.say_unseen()
    assert capsys.readouterr().err == ""


def test_notebooks_show_a_plot_once(monkeypatch, tmp_path):
    """A figure stays open until the notebook draws it, so that none is lost or shown twice."""
    backend = matplotlib.get_backend()
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "module://matplotlib_inline")
    first, second = figure(), figure()
    monkeypatch.setattr(matplotlib, "get_backend", lambda: backend)
    assert pyplot.get_fignums() == [first.number, second.number]
    number = first.number
    first.savefig(tmp_path / "cell.png")  # as the display hook does with what a cell returns
    assert number not in pyplot.get_fignums() and len(pyplot.get_fignums()) == 1


@pytest.mark.long
def test_a_script_that_plots_and_forgets_to_show(tmp_path):
    """Issue 29: arc.plot in a script left no trace."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, archimedes as arc\n"
        "arc.plot(arc.Trajectory(np.arange(3.0), {'height': np.zeros(3)}))\n"
    )
    kept = {k: v for k, v in os.environ.items() if k not in ("MPLBACKEND", "DISPLAY")}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=kept, check=True
    )
    assert done.stdout == "" and "a plot was made but not shown" in done.stderr
    quiet = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env=kept | {"MPLBACKEND": "agg"},
        check=True,
    )
    assert quiet.stderr == ""
