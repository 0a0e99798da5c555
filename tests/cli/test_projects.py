"""`new`, `codegen` and `completion`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from archimedes.cli import main
from archimedes.cli.commands import COMMANDS, make_parser
from archimedes.cli.completion import bash

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*command, cwd):
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=cwd, env=given, timeout=300
    )


def test_a_new_project(folder, capsys):
    assert main(["new", "swing", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {p.name for p in (folder / "swing").iterdir()} == set(told["files"])
    notebook = json.loads((folder / "swing" / "swing.ipynb").read_text())
    assert notebook["nbformat"] == 4 and "from swing import" in "".join(
        notebook["cells"][1]["source"]
    )
    assert "$" not in (folder / "swing" / "swing.py").read_text()


@pytest.mark.long
def test_what_a_new_project_promises(folder):
    assert main(["new", "swing"]) == 0
    tests = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder / "swing")
    assert tests.returncode == 0 and "4 passed" in tests.stdout, tests.stdout
    model = run("swing.py", cwd=folder / "swing")
    assert model.returncode == 0 and "2.0 rad" in model.stdout, model.stderr
    made = run("make_c.py", cwd=folder / "swing")
    assert made.returncode == 0 and (folder / "swing" / "c" / "control.c").is_file()
    if shutil.which("gcc"):
        assert "same bits as Python" in made.stdout
    notebook = json.loads((folder / "swing" / "swing.ipynb").read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    (folder / "swing" / "cells.py").write_text("\n".join(cells))
    done = run("cells.py", cwd=folder / "swing")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["Swing", "my-model", "../evil", "class", "numpy", ""])
def test_names_that_projects_cannot_have(folder, capsys, name):
    assert main(["new", name]) == 1
    assert "archimedes new" in capsys.readouterr().err and list(folder.iterdir()) == []


def test_nothing_is_overwritten(folder, capsys):
    (folder / "swing").mkdir()
    (folder / "swing" / "swing.py").write_text("mine")
    assert main(["new", "swing"]) == 1
    assert "not empty" in capsys.readouterr().err
    assert (folder / "swing" / "swing.py").read_text() == "mine"


CODE = """
import numpy as np
example_args = (0.0, np.zeros(3))
number = 3
def step(y, u):
    return y + 0.1 * np.sum(u)
"""


def test_codegen(folder, capsys, monkeypatch):
    (folder / "filter_for_c.py").write_text(CODE)
    assert main(["codegen", "filter_for_c:step", "--output", "out", "--json"]) == 0
    assert "step.c" in json.loads(capsys.readouterr().out)["files"]
    assert main(["codegen", "filter_for_c:step", "--args", "[0.0, [1, 2, 3]]", "--float32"]) == 0
    assert "float" in (folder / "c" / "step.h").read_text()
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["step"], "must be written module:function"),
        (["no_such_module:step"], "cannot be imported"),
        (["filter_for_c:none"], "has no 'none'"),
        (["filter_for_c:number"], "is not a function"),
        (["filter_for_c:step", "--args", "[1,"], "is not JSON"),
        (["filter_for_c:step", "--args", '{"a": 1}'], "must be a list"),
        (["filter_for_c:step", "--target", "toaster"], "toaster"),
    ],
)
def test_mistakes_of_codegen(folder, capsys, arguments, message):
    (folder / "filter_for_c.py").write_text(CODE)
    assert main(["codegen", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "c").exists()


def test_bash_completes(tmp_path):
    script = tmp_path / "completion.sh"
    script.write_text(
        bash(make_parser())
        + "COMP_WORDS=(archimedes d); COMP_CWORD=1; _archimedes; echo ${COMPREPLY[@]}\n"
        + "COMP_WORDS=(archimedes demo or); COMP_CWORD=2; _archimedes; echo ${COMPREPLY[@]}\n"
        + "COMP_WORDS=(archimedes view --ve); COMP_CWORD=2; _archimedes; echo ${COMPREPLY[@]}\n"
    )
    done = subprocess.run(["bash", script], capture_output=True, text=True, timeout=20)
    assert done.stdout.split("\n")[:3] == ["demo doctor", "orbit", "--vehicle"], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS) and "--template" in out
