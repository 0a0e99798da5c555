"""Systems that users have and tests do not run on: how code for them is made, linked and run here.

Programs for Windows run in Wine, those for Linux on ARM64 in QEMU; code for macOS is only made.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from archimedes.backends.llvm.runtime.machine import Target

from .c.checking import needs

__all__ = ["EMULATED", "LINUX_ARM", "MACOS", "SYSTEMS", "WINDOWS", "System"]


@dataclass(frozen=True)
class System:
    """The processors it is compiled for, the C compiler, and what runs its programs here."""

    name: str
    targets: tuple[Target, ...]
    #: The target of object files that become programs, where it is not the first of those.
    executable: Target | None = None
    compiler: str = ""
    runner: str = ""

    def run(self, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a program in a folder."""
        command = [needs(self.runner), program]
        environment = dict(os.environ)
        if self.runner == "wine":
            environment |= _wine(folder)
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def _wine(folder: Path) -> dict[str, str]:
    """Return the variables of a Wine that takes its own libraries where they are installed.

    Otherwise it copies all of them first, 700 MB in ten seconds.
    """
    prefix = folder / "wine"
    prefix.mkdir(exist_ok=True)
    (prefix / ".update-timestamp").write_text("disable\n")
    return {"WINEPREFIX": str(prefix), "WINEBOOTSTRAPMODE": "1", "WINEDEBUG": "-all"}


def _windows(cpu: str, features: str, files: str = "-elf") -> Target:
    return Target(cpu, features, triple=f"x86_64-pc-windows-msvc{files}")


_AVX2 = "+avx2,+avx,+fma,+sse4.1"
#: Any 64-bit processor, those of the last ten years, and those with vectors of 512 bits. Programs
#: are of the first kind, and run anywhere; they are made of Windows' own object files.
WINDOWS = System(
    "windows",
    (
        _windows("x86-64", ""),
        _windows("x86-64-v3", _AVX2),
        _windows("x86-64-v4", f"{_AVX2},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"),
    ),
    _windows("x86-64", "", files=""),
    "x86_64-w64-mingw32-gcc",
    "wine",
)
MACOS = System("macos", (Target("apple-m1", "", triple="arm64-apple-macosx"),))
LINUX_ARM = System(
    "linux_arm",
    (Target("generic", "", triple="aarch64-linux-gnu"),),
    compiler="aarch64-linux-gnu-gcc",
    runner="qemu-aarch64-static",
)
SYSTEMS = (WINDOWS, MACOS, LINUX_ARM)
#: Those whose programs run here.
EMULATED = (WINDOWS, LINUX_ARM)
