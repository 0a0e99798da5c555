"""Emulated boards: processor, compiler flags, startup code and linker script of each.

The C files beside this one are what a program needs besides itself: vectors and reset
(``cortex_m.c``, ``riscv.c``), files of the host by semihosting, the memory functions that GCC
calls, and a count of instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["BOARDS", "FOLDER", "SUPPORT", "Board", "board_named"]

FOLDER = Path(__file__).resolve().parent
#: Sources that every board is linked with.
SUPPORT = ("semihosting.c", "memory.c", "counting.c")


@dataclass(frozen=True)
class Board:
    """A machine that QEMU emulates and how programs are compiled for it.

    ``tools`` is the prefix of the cross compiler; ``startup`` names the C file and the linker
    script in this folder; ``doubles`` says whether the processor computes them in hardware. An
    instruction takes ``2**clock`` ns of the emulated time, by which ``counting.c`` counts them.
    """

    name: str
    description: str
    tools: str
    flags: tuple[str, ...]
    startup: str
    emulator: tuple[str, ...]
    doubles: bool
    clock: int

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs it needs installed."""
        return (f"{self.tools}gcc", f"{self.tools}size", self.emulator[0])


def _mps2(name: str, image: str, flags: str, doubles: bool) -> Board:
    return Board(
        name=name,
        description=f"Arm MPS2 with FPGA image {image.upper()}, {name.title()}",
        tools="arm-none-eabi-",
        flags=("-mthumb", f"-mcpu={name}", *flags.split()),
        startup="cortex_m",
        emulator=("qemu-system-arm", "-machine", f"mps2-{image}"),
        doubles=doubles,
        clock=6,
    )


def _virt(name: str, bits: int, architecture: str, abi: str, doubles: bool) -> Board:
    return Board(
        name=name,
        description=f"QEMU's virt machine, {architecture}",
        tools="riscv64-unknown-elf-",
        flags=(f"-march={architecture}", f"-mabi={abi}", "-mcmodel=medany"),
        startup="riscv",
        emulator=(f"qemu-system-riscv{bits}", "-machine", "virt", "-bios", "none"),
        doubles=doubles,
        clock=0,
    )


#: Boards by the name that ``run_in_qemu`` takes.
BOARDS = {
    board.name: board
    for board in (
        _mps2("cortex-m3", "an385", "-mfloat-abi=soft", doubles=False),
        _mps2("cortex-m4", "an386", "-mfloat-abi=hard -mfpu=fpv4-sp-d16", doubles=False),
        _mps2("cortex-m7", "an500", "-mfloat-abi=hard -mfpu=fpv5-d16", doubles=True),
        _virt("riscv32", 32, "rv32imac", "ilp32", doubles=False),
        _virt("riscv64", 64, "rv64imafdc", "lp64d", doubles=True),
    )
}


def board_named(name: str) -> Board:
    """Return a board, or say which there are.

    >>> board_named("cortex-m4").emulator
    ('qemu-system-arm', '-machine', 'mps2-an386')
    """
    if name not in BOARDS:
        raise ValueError(f"board={name!r} is not one of {', '.join(map(repr, BOARDS))}")
    return BOARDS[name]
