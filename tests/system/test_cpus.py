"""How many threads: bound CPUs, control groups, the variable; the same for everything."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.system import cpus
from archimedes.system.cpus import cpu_count


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Control groups in a folder, this process in the group /a/b."""
    if sys.platform != "linux":
        pytest.skip("control groups are Linux's")
    monkeypatch.delenv(cpus.VARIABLE, raising=False)
    monkeypatch.setattr(cpus, "_GROUPS", tmp_path)
    monkeypatch.setattr(cpus, "_OWN", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    (tmp_path / "own").write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    cpus._cgroup_quota.cache_clear()
    yield tmp_path
    cpus._cgroup_quota.cache_clear()


def test_the_cpus_it_is_bound_to(group, monkeypatch):
    assert cpu_count() == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3}, raising=False)
    assert cpu_count() == 1


@pytest.mark.parametrize(
    "where, text, expected",
    [
        ("a/b/cpu.max", "200000 100000\n", 2),
        ("a/cpu.max", "250000 100000\n", 3),
        ("cpu.max", "50000 100000\n", 1),
        ("a/b/cpu.max", "max 100000\n", 8),
        ("a/b/cpu.max", "6400000 100000\n", 8),
        ("a/b/cpu.max", "nonsense\n", 8),
        ("a/b/cpu.max", "1 0\n", 8),
    ],
)
def test_quotas_of_control_groups(group, where, text, expected):
    (group / where).write_text(text)
    assert cpu_count() == expected


def test_the_least_of_all_groups_counts_and_version_1_too(group):
    (group / "a" / "b" / "cpu.max").write_text("500000 100000\n")
    (group / "a" / "cpu.max").write_text("400000 100000\n")
    assert cpu_count() == 4
    cpus._cgroup_quota.cache_clear()
    (group / "own").write_text("5:cpuacct,cpu:/c\n")
    (group / "cpu" / "c").mkdir(parents=True)
    (group / "cpu" / "c" / "cpu.cfs_quota_us").write_text("150000\n")
    (group / "cpu" / "c" / "cpu.cfs_period_us").write_text("100000\n")
    assert cpu_count() == 2
    cpus._cgroup_quota.cache_clear()
    (group / "cpu" / "c" / "cpu.cfs_quota_us").write_text("-1\n")
    assert cpu_count() == 8


def test_the_variable_decides(group, monkeypatch):
    (group / "a" / "b" / "cpu.max").write_text("100000 100000\n")
    monkeypatch.setenv(cpus.VARIABLE, "5")
    assert cpu_count() == 5
    for wrong in ("0", "-2", "two", "1.5"):
        monkeypatch.setenv(cpus.VARIABLE, wrong)
        with pytest.raises(ValueError, match=r"ARCHIMEDES_THREADS=.* must be a whole number"):
            cpu_count()


def test_names_of_the_machine():
    """Every system gives its processor, its architecture and itself a name."""
    assert all((cpus.cpu_name(), cpus.architecture(), cpus.operating_system()))
    if sys.platform == "linux" and "model name" in Path("/proc/cpuinfo").read_text():
        assert f": {cpus.cpu_name()}\n" in Path("/proc/cpuinfo").read_text()


def test_batches_of_solves_ask_the_same_function(monkeypatch):
    from archimedes.simulate.solves import driver

    asked = []
    monkeypatch.setattr(driver, "cpu_count", lambda: asked.append(1) or 3)
    x0 = np.linspace(1.0, 2.0, 300)
    found = arc.solve_ode(lambda t, x: -x, (0.0, 1.0), x0, in_axes=0, t_eval=[1.0])
    np.testing.assert_allclose(found.x[:, 0], x0 / np.e, rtol=1e-7)
    assert asked


def test_one_cpu_takes_on_batches_of_any_size(monkeypatch):
    """Nobody helps: batches go the short way in, however much work they are."""
    from archimedes.backends.llvm import backend
    from archimedes.backends.llvm.runtime import kernel
    from archimedes.backends.protocol import EVERYTHING

    f = arc.compile(lambda x: np.sum(np.sin(x) * x), backend="llvm")
    x = np.ones(300)
    f(x)
    built = backend.BACKEND.build(f.lookup((x,), {})[2].program)
    monkeypatch.setattr(kernel, "cpu_count", lambda: 1)
    assert built._alone(None) == built._alone(1) == EVERYTHING
    monkeypatch.setattr(kernel, "cpu_count", lambda: 2)
    assert built._alone(None) < EVERYTHING and built._alone(2) == 0
