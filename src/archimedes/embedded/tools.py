"""Compilers and emulators: finding them, running them, saying how to get one that is missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from archimedes.errors import ArchimedesError

__all__ = ["PACKAGES", "ToolError", "find_tool", "missing_tools", "run_tool"]

#: Debian and Ubuntu package of each program.
PACKAGES = {
    "gcc": "gcc",
    "clang": "clang",
    "cppcheck": "cppcheck",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi",
    "arm-none-eabi-size": "binutils-arm-none-eabi",
    "arm-none-eabi-nm": "binutils-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf",
    "riscv64-unknown-elf-size": "binutils-riscv64-unknown-elf",
    "riscv64-unknown-elf-nm": "binutils-riscv64-unknown-elf",
    "qemu-system-riscv32": "qemu-system-misc",
    "qemu-system-riscv64": "qemu-system-misc",
}


class ToolError(ArchimedesError, RuntimeError):
    """A compiler or emulator is missing, or it failed; the text says which and what it printed.

    >>> from archimedes.embedded import ToolError
    >>> issubclass(ToolError, Exception)
    True
    """


def missing_tools(programs: Sequence[str]) -> list[str]:
    """Return those of the programs that are not installed.

    >>> missing_tools(["no-such-compiler"])
    ['no-such-compiler']
    """
    return [name for name in programs if shutil.which(name) is None]


def find_tool(name: str, purpose: str) -> str:
    """Return the path of a program, or raise a ToolError that says how to install it."""
    path = shutil.which(name)
    if path is None:
        package = PACKAGES.get(name, name)
        raise ToolError(
            f"{purpose} needs the program {name}, which is not installed: on Debian or Ubuntu run "
            f"'apt-get install --no-install-recommends {package}'; elsewhere install it so that "
            "it is on the PATH"
        )
    return path


def run_tool(
    command: Sequence[str], purpose: str, *, cwd: Path | None = None, timeout: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; raise a ToolError with its output if it fails or takes too long."""
    full = [find_tool(command[0], purpose), *command[1:]]
    try:
        done = subprocess.run(
            full, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{purpose}: {command[0]} was stopped after {timeout:g} s") from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip() or "it printed nothing"
        raise ToolError(f"{purpose}: {command[0]} ended with status {done.returncode}:\n{said}")
    return done
