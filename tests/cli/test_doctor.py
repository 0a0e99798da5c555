"""The doctor, where something is missing: right and helpful each time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from archimedes.cli import doctor as look
from archimedes.cli import main
from archimedes.installation import install_command
from archimedes.system.programs import install_hint

ROOT = Path(__file__).resolve().parents[2]


def findings(section):
    return {f.name: f for f in look.examine()[section]}


def doctor(**environment):
    """Run the doctor in a process of its own; return exit status and what it said."""
    command = [sys.executable, "-m", "archimedes", "doctor", "--json"]
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=given, timeout=120)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_here_everything_that_is_needed_is_there(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "Everything that is needed is installed." in out and "native code" in out
    assert all(len(line) < 140 for line in out.splitlines())


def test_what_it_asks_for_is_what_the_project_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dict(d.split(">=") for d in project["dependencies"]) == look.REQUIRED
    extras = project["optional-dependencies"]
    for _, modules, extra in look.OPTIONAL:
        for module in modules:
            name = look.DISTRIBUTIONS.get(module, module)
            assert any(d.startswith(name) for d in extras[extra]), (name, extra)


def test_an_old_numpy(monkeypatch, capsys):
    real = look.metadata.version
    monkeypatch.setattr(
        look.metadata, "version", lambda name: "1.26.4" if name == "numpy" else real(name)
    )
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "!!  numpy" in out and "1.26.4, but 2.0 or newer is needed" in out
    assert 'pip install "numpy>=2.0" --upgrade' in out and "1 thing(s) to repair" in out


@pytest.mark.long
def test_a_numpy_so_old_that_nothing_can_be_imported(tmp_path):
    fake = tmp_path / "numpy"
    fake.mkdir()
    (fake / "__init__.py").write_text("__version__ = '1.13.0'\n")
    info = tmp_path / "numpy-1.13.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.13.0\n")
    status, told = doctor(PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}")
    sections = told["sections"]
    numpy = next(f for f in sections["Packages that are needed"] if f["name"] == "numpy")
    assert status == 1 and not told["healthy"]
    assert numpy["state"] == "problem" and 'pip install "numpy>=2.0"' in numpy["advice"]
    assert sections["Compiling"][0]["state"] == "problem"
    assert "see the packages above" in sections["Compiling"][0]["advice"]


def test_without_compilers_and_emulators(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for title in look.PROGRAMS:
        for name in look.PROGRAMS[title]:
            found = findings(title)[name]
            assert found.state == "missing" and found.advice == install_hint(name)
    assert install_hint("riscv64-unknown-elf-gcc", "linux") == "apt install gcc-riscv64-unknown-elf"
    assert findings("Compiling")["native code"].state == "ok"
    assert "everything runs on the processor" in findings("GPU")["device"].value


def test_with_a_gpu_but_without_cupy(monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 580.10'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(
        look.importlib.util, "find_spec", lambda name: None if name == "cupy" else object()
    )
    found = findings("GPU")
    assert found["device"].value == "NVIDIA H200, 580.10"
    assert install_command("cuda") in found["CuPy"].advice
    program.write_text("#!/bin/sh\necho 'no driver' >&2; exit 9\n")
    assert findings("GPU")["device"].state == "missing"


def test_a_home_for_reading_only(monkeypatch):
    monkeypatch.setenv("HOME", "/proc/1/nowhere")
    for name in ("ARCHIMEDES_CACHE", "ARCHIMEDES_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(look.os, "access", lambda path, mode: False)
    found = findings("Cache of compiled code")
    assert found["writing to it"].state == "missing"
    assert "ARCHIMEDES_CACHE_DIR=$PWD/archimedes-cache" in found["writing to it"].advice
    monkeypatch.setenv("ARCHIMEDES_CACHE", "0")
    assert "turned off" in findings("Cache of compiled code")["folder"].value


@pytest.mark.long
def test_a_home_for_reading_only_in_a_process(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    blank = dict.fromkeys(("ARCHIMEDES_CACHE", "ARCHIMEDES_CACHE_DIR", "XDG_CACHE_HOME"), "")
    status, told = doctor(HOME=str(home), **blank)
    cache = {f["name"]: f for f in told["sections"]["Cache of compiled code"]}
    assert status == 0 and cache["folder"]["value"].startswith(str(home))
    if os.geteuid() != 0:  # root may write anywhere
        assert cache["writing to it"]["state"] == "missing"
        assert list(home.iterdir()) == []


def test_an_examination_that_fails_is_a_finding(monkeypatch):
    def broken():
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(look, "packages", broken)
    (found,) = look.examine()["Packages that are needed"]
    assert found.state == "problem" and "the disk is on fire" in found.value


def test_programs_that_do_not_start(tmp_path):
    broken = tmp_path / "gcc"
    broken.write_text("not a program")
    broken.chmod(0o755)
    assert "does not start" in look.first_line(str(broken))


@pytest.mark.parametrize(
    "text, numbers",
    [("2.0.1rc1", (2, 0, 1)), ("1.26", (1, 26)), ("x", ()), ("2.4.6+cu", (2, 4, 6))],
)
def test_versions(text, numbers):
    assert look.version_numbers(text) == numbers
