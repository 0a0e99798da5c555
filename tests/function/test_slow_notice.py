"""Recording and compiling that takes long says so, and nothing else does."""

import logging
import time

import numpy as np
import pytest

import archimedes as arc
from archimedes import slow_notice


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(slow_notice, "TIMES", (0.05, 0.2))
    monkeypatch.setattr(slow_notice, "EVERY", 0.02)
    monkeypatch.setattr(slow_notice, "_watcher", slow_notice._Watcher())
    monkeypatch.setenv("ARCHIMEDES_PROGRESS", "1")


def slow(x):
    time.sleep(0.3)
    return np.sin(x)


def test_recording_says_what_it_does_and_what_helps(soon, capfd):
    arc.compile(slow)(np.ones(3))
    lines = capfd.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 2
    assert "recording slow(), 0 s so far" in lines[0]
    assert "operations on whole arrays, arc.vmap or arc.scan" in lines[0]
    assert lines[0].endswith("[ARCHIMEDES_PROGRESS=0 hides this]")


def test_compiling_says_what_it_does_and_what_helps(soon, capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    from archimedes.backends.llvm.runtime.machine import Target

    plain = Target.compile

    def compiled(self, *args):
        time.sleep(0.15)
        return plain(self, *args)

    monkeypatch.setattr(Target, "compile", compiled)

    def brief(x):
        return np.cos(x) + 1.25

    arc.compile(brief, backend="llvm")(np.ones(3))
    line = capfd.readouterr().err.splitlines()[-1]
    assert "compiling brief" in line
    assert "operations, and LLVM compiles" in line
    assert "backend='interpreter' starts at once" in line


def test_setting_up_a_large_stiff_solve_says_what_it_does(soon, capfd, monkeypatch):
    from archimedes.simulate.sparse import sparse_jacobians

    plain = sparse_jacobians.column_colors

    def column_colors(*args):
        time.sleep(0.15)
        return plain(*args)

    monkeypatch.setattr(sparse_jacobians, "column_colors", column_colors)
    arc.solve_ode(lambda t, x: -2.0 * x + np.roll(x, 1), (0.0, 0.1), np.ones(70), method="bdf")
    said = capfd.readouterr().err
    assert "finding the pattern of a Jacobian and the order of elimination" in said
    assert "the state has 70 numbers" in said


def test_inner_tasks_are_named_with_the_outer_one(soon, capfd):
    inner = arc.compile(slow)
    arc.compile(lambda x: inner(x) + 1.0, name="outer")(np.ones(2))
    assert "recording slow() (part of recording <lambda>())" in capfd.readouterr().err


def test_it_can_be_turned_off_and_is_off_where_nobody_looks(soon, capfd, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="archimedes")
    for value in ("0", ""):
        monkeypatch.setenv("ARCHIMEDES_PROGRESS", value)
        caplog.clear()
        arc.compile(lambda x: slow(x))(np.ones(2))
        assert capfd.readouterr().err == ""
        assert "recording <lambda>()" in caplog.text


def test_quick_cases_say_nothing(capfd, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_PROGRESS", "1")
    arc.compile(lambda x: np.sin(x), backend="llvm")(np.ones(2))
    assert capfd.readouterr().err == ""


def test_the_thread_ends_when_there_is_nothing_to_look_at(soon, monkeypatch):
    monkeypatch.setattr(slow_notice, "PATIENCE", 0.05)
    arc.compile(lambda x: np.cos(x))(np.ones(2))
    watcher = slow_notice._watcher
    deadline = time.monotonic() + 5.0
    while watcher.alive and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not watcher.alive
    assert not watcher.active
    arc.compile(lambda x: np.tan(x))(np.ones(2))
    assert watcher.alive
