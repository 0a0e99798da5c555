"""Other programs: finding, running and installing compilers, emulators and browsers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path

_ARM, _QEMU = "Arm.GnuArmEmbeddedToolchain", "SoftwareFreedomConservancy.QEMU"
#: The packages of each program: Debian's and Ubuntu's, Homebrew's, winget's; "" if there is none.
PACKAGES = {
    "gcc": ("gcc", "gcc", "BrechtSanders.WinLibs.POSIX.UCRT"),
    "clang": ("clang", "llvm", "LLVM.LLVM"),
    "cppcheck": ("cppcheck", "cppcheck", "Cppcheck.Cppcheck"),
    "arm-none-eabi-gcc": ("gcc-arm-none-eabi", "arm-none-eabi-gcc", _ARM),
    "arm-none-eabi-size": ("binutils-arm-none-eabi", "", ""),
    "arm-none-eabi-nm": ("binutils-arm-none-eabi", "", ""),
    "qemu-system-arm": ("qemu-system-arm", "qemu", _QEMU),
    "riscv64-unknown-elf-gcc": ("gcc-riscv64-unknown-elf", "", ""),
    "riscv64-unknown-elf-size": ("binutils-riscv64-unknown-elf", "", ""),
    "riscv64-unknown-elf-nm": ("binutils-riscv64-unknown-elf", "", ""),
    "qemu-system-riscv32": ("qemu-system-misc", "qemu", _QEMU),
    "qemu-system-riscv64": ("qemu-system-misc", "qemu", _QEMU),
    "chromium": ("chromium", "--cask google-chrome", "Google.Chrome"),
    "ffmpeg": ("ffmpeg", "ffmpeg", "Gyan.FFmpeg"),
    "node": ("nodejs", "node", "OpenJS.NodeJS"),
}


def install_hint(program: str, platform: str = sys.platform) -> str:
    """Return the command that installs a program, or what to do where none is known.

    >>> install_hint("ffmpeg", "linux"), install_hint("ffmpeg", "darwin")
    ('apt install ffmpeg', 'brew install ffmpeg')
    >>> install_hint("no-such-program", "win32")
    'install it so that it is on the PATH'
    """
    commands = {"darwin": (1, "brew install"), "win32": (2, "winget install")}
    column, command = commands.get(platform, (0, "apt install"))
    package = PACKAGES.get(program, ("", "", ""))[column]
    return f"{command} {package}" if package else "install it so that it is on the PATH"


def find_program(*names: str) -> str | None:
    """Return the path of the first of these programs that is installed, or None."""
    return next(filter(None, map(shutil.which, names)), None)


def browser_paths(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> tuple[str, ...]:
    """Return names and paths under which browsers of the Chromium family are installed."""
    if platform == "darwin":
        names = ("Google Chrome", "Chromium", "Microsoft Edge")
        return tuple(f"/Applications/{name}.app/Contents/MacOS/{name}" for name in names)
    if platform == "win32":
        variables = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        folders = [environment[name] for name in variables if environment.get(name)]
        programs = (r"Google\Chrome\Application\chrome", r"Microsoft\Edge\Application\msedge")
        return tuple(rf"{folder}\{name}.exe" for name in programs for folder in folders)
    return ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """Return the path of a browser of the Chromium family, or None.

    The environment variable ``ARCHIMEDES_BROWSER`` may name it.
    """
    named = os.environ.get("ARCHIMEDES_BROWSER")
    return find_program(named) if named else find_program(*browser_paths())


def run_program(
    command: Sequence[str], *, cwd: Path | None = None, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without input, and return its status and what it printed.

    What it prints is read as UTF-8 on every system. Bytes that are not, as compilers on Windows
    may print with names of files, are replaced by a mark.

    Raises
    ------
    OSError
        The program does not start.
    subprocess.TimeoutExpired
        It took longer than ``timeout`` seconds and was ended.
    """
    return subprocess.run(
        command, cwd=cwd, timeout=timeout, check=False, stdin=subprocess.DEVNULL,
        capture_output=True, encoding="utf-8", errors="replace",
    )  # fmt: skip


def open_page(path: Path) -> None:
    """Show a page in the user's browser."""
    webbrowser.open(path.absolute().as_uri())
