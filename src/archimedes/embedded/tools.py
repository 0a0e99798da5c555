"""Compilers and emulators: finding them, running them, saying how to get one that is missing."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from archimedes.errors import ArchimedesError
from archimedes.system.programs import find_program, install_hint, run_program

__all__ = ["ToolError", "find_tool", "missing_tools", "run_tool"]


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
    return [name for name in programs if find_program(name) is None]


def find_tool(name: str, purpose: str) -> str:
    """Return the path of a program, or raise a ToolError that says how to install it."""
    path = find_program(name)
    if path is None:
        raise ToolError(
            f"{purpose} needs the program {name}, which is not installed: {install_hint(name)}"
        )
    return path


def run_tool(
    command: Sequence[str], purpose: str, *, cwd: Path | None = None, timeout: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; raise a ToolError with its output if it fails or takes too long."""
    full = [find_tool(command[0], purpose), *command[1:]]
    try:
        done = run_program(full, cwd=cwd, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{purpose}: {command[0]} was stopped after {timeout:g} s") from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip() or "it printed nothing"
        raise ToolError(f"{purpose}: {command[0]} ended with status {done.returncode}:\n{said}")
    return done
