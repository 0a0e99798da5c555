"""Generated C on Windows and on Linux with ARM64: built by cross compilers, run in emulators."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..long_parameters import long_but
from ..other_systems import EMULATED, LINUX_ARM, WINDOWS, System
from ..programs.catalogue import programs
from ..programs.models import models
from ..programs.program import Program
from .checking import STRICT, Bundle
from .test_ops import cases

#: What takes the C library along where the emulator has none.
LINKING = {"windows": (), "linux_arm": ("-static",)}


def check(made: Bundle, system: System, folder: Path, level: str) -> None:
    flags = (*STRICT, "-std=c99", level, *LINKING[system.name])
    assert made.run(folder, system.compiler, *flags, execute=system.run) == ""


def every_program() -> list[Program]:
    """Every op, elementary function and region, the F-16 and a robot."""
    return [*cases(False), *cases(True), *programs(), *models()]


@pytest.mark.parametrize("system", long_but([WINDOWS], EMULATED), ids=lambda system: system.name)
def test_ops(system: System, tmp_path: Path):
    """Integers among them: those of 64 bits are no ``long`` on Windows."""
    check(Bundle(cases(False)), system, tmp_path, "-O1")


WAYS = [(WINDOWS, "double"), (WINDOWS, "float"), (LINUX_ARM, "double")]


@pytest.mark.long
@pytest.mark.parametrize(("system", "float_type"), WAYS, ids=lambda x: getattr(x, "name", x))
def test_all_programs(system: System, float_type: str, tmp_path: Path):
    check(Bundle(every_program(), float_type), system, tmp_path, "-O2")


@pytest.mark.long
def test_a_compiler_that_is_not_gnu(tmp_path: Path):
    """Clang in the place of Microsoft's compiler: its extensions, and none of GNU's."""
    apart = ("clang", "--target=x86_64-pc-windows-msvc", "-ffreestanding", "-O1", *STRICT)
    made = Bundle(every_program())
    assert made.run(tmp_path, WINDOWS.compiler, apart=apart, execute=WINDOWS.run) == ""
