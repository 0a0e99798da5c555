"""The parts of CI: each is run by ``.ci/run``, and described where contributors look."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.checkout import ROOT

CI = ROOT / ".ci"
#: What runs the parts, and what is run by people.
OTHERS = {"run", "part", "release", "windows", "fmus"}
PARTS = sorted({p.name for p in CI.iterdir() if os.access(p, os.X_OK)} - OTHERS)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_run_and_described(part):
    lines = (CI / "run").read_text("utf-8").splitlines()
    code = "\n".join(line for line in lines if not line.startswith("#"))
    assert re.search(rf"(^|\.ci/part |echo \"){re.escape(part)}\b", code, re.MULTILINE)
    table = re.findall(r"^\| `\.ci/([\w-]+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    assert part in table


@pytest.mark.parametrize(
    ("required", "status", "word"), [("0", 0, "skipped"), ("1", 1, "FAILED")], ids=["", "in CI"]
)
def test_a_part_that_lacks_a_tool(tmp_path, required, status, word):
    """No Python 2.0 is installed here: ``.ci/python`` ends with 3."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ARCHIMEDES_CI_FOLDER": str(tmp_path),
        "ARCHIMEDES_REQUIRE_TOOLS": required,
    }
    command = [CI / "part", "python", "2.0"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert "python 2.0: python: no Python 2.0 here" in done.stdout
    assert done.returncode == status
    assert (tmp_path / "times").read_text("utf-8").split()[-3:] == [word, "python", "2.0"]
