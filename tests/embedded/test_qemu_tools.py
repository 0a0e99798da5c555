"""The script that installs what these tests need, and the marks that skip them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from archimedes.embedded.boards import BOARDS
from archimedes.system.programs import PACKAGES, install_hint
from tests.embedded import toolchain

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "install-tools"
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def install_tools(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script where only these commands exist."""
    for name in ("bash", "env", "sort", "id", "sleep"):
        found = shutil.which(name)
        assert found is not None
        os.symlink(found, path / name)
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_says_why_nothing_can_be_installed(tmp_path):
    done = install_tools(tmp_path)
    assert done.returncode == 3
    assert "apt-get is not available on this system" in done.stderr
    packages = re.findall(r"^  [\w+-]+:([\w+-]+)$", SCRIPT.read_text(), re.MULTILINE)
    for package in packages:
        assert re.search(rf"still missing: .*(?<!\S){re.escape(package)}(?!\S)", done.stderr)


def test_check_installs_nothing(tmp_path):
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 99\n")
    (tmp_path / "apt-get").chmod(0o755)
    done = install_tools(tmp_path, "--check")
    assert done.returncode == 3
    assert "run .ci/install-tools to install what is missing" in done.stderr


@pytest.mark.parametrize("has_sanitizers", [True, False])
def test_is_content_when_everything_is_there(tmp_path, has_sanitizers):
    """Clang's sanitizers are a library, in the folder that clang names."""
    for name in re.findall(r"^  ([\w+-]+):", SCRIPT.read_text(), re.MULTILINE):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {tmp_path}\n")
        (tmp_path / name).chmod(0o755)
    if has_sanitizers:
        (tmp_path / "libclang_rt.asan.a").touch()
    done = install_tools(tmp_path, "--check")
    if has_sanitizers:
        assert (done.returncode, done.stdout) == (0, "install-tools: everything is installed\n")
    else:
        assert done.returncode == 3
        assert "still missing: libclang-rt-dev\n" in done.stderr


def test_installs_what_the_boards_need():
    listed = dict(re.findall(r"^  ([\w+-]+):([\w+-]+)$", SCRIPT.read_text(), re.MULTILINE))
    for name, package in listed.items():
        assert PACKAGES.get(name, (package,))[0] == package
    compilers = {program for board in BOARDS.values() for program in board.programs}
    needed = {PACKAGES[name][0] for name in compilers if not name.endswith("size")}
    assert needed <= set(listed.values())


def test_what_needs_a_missing_tool_is_skipped(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "REQUIRED", False)
    mark = toolchain.needs("qemu-system-arm", "no-such-program")
    assert mark.args == (True,)
    start = "needs qemu-system-arm and no-such-program: .ci/install-tools, or "
    assert mark.kwargs["reason"].startswith(start + install_hint("qemu-system-arm"))
