"""Emulated boards, programs for them, and the compilers and emulators that this takes.

A board is a processor with compiler flags, startup code and a linker script. A program is generated
C with a driver that feeds it, and what both link with.

The C files beside this one are what a program needs besides itself: vectors and reset
(``cortex_m.c``, ``riscv.c``), files of the host by semihosting, the memory functions that GCC
calls, and a count of instructions.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from archimedes.backends.c import FLAGS as CONTRACT
from archimedes.checks import check_choice
from archimedes.embedded.c_text import fill_template
from archimedes.errors import ArchimedesError
from archimedes.system.programs import find_program, install_hint, run_program

FOLDER = Path(__file__).resolve().parent
#: Code that relies on nothing but itself, in sections that the linker may leave out.
FLAGS = ("-std=c99", "-ffreestanding", *CONTRACT, "-ffunction-sections", "-fdata-sections")
LINK = ("-nostdlib", "-nostartfiles", "-Wl,--gc-sections")
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
    description = f"Arm MPS2 with FPGA image {image.upper()}, {name.title()}"
    options = ("-mthumb", f"-mcpu={name}", *flags.split())
    machine = ("qemu-system-arm", "-machine", f"mps2-{image}")
    tools = "arm-none-eabi-"
    return Board(name, description, tools, options, "cortex_m", machine, doubles, clock=6)


def _virt(name: str, bits: int, architecture: str, abi: str, doubles: bool) -> Board:
    description = f"QEMU's virt machine, {architecture}"
    options = (f"-march={architecture}", f"-mabi={abi}", "-mcmodel=medany")
    machine = (f"qemu-system-riscv{bits}", "-machine", "virt", "-bios", "none")
    tools = "riscv64-unknown-elf-"
    return Board(name, description, tools, options, "riscv", machine, doubles, clock=0)


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
    """Return a board by its name; an unknown name is an error that lists all of them.

    >>> board_named("cortex-m4").emulator
    ('qemu-system-arm', '-machine', 'mps2-an386')
    """
    check_choice(name, "board", BOARDS)
    return BOARDS[name]


# ---- tools ------------------------------------------------------------------------------


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
        raise ToolError(f"{purpose} needs {name}, which is not installed: {install_hint(name)}")
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


# ---- programs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """A variable of the program that the driver fills or sends back: an lvalue and its bytes."""

    lvalue: str
    size: int


@dataclass(frozen=True)
class Harness:
    """How a driver calls the code: header, variables, and a statement for one call.

    ``inputs`` are filled before each call and ``outputs`` sent back after it; ``setup`` runs once.
    """

    header: str
    variables: str
    call: str
    inputs: Sequence[Slot]
    outputs: Sequence[Slot]
    setup: str = ""


@dataclass(frozen=True)
class Firmware:
    """A linked program, ``firmware.elf`` in ``folder``."""

    board: Board
    harness: Harness
    folder: Path


@dataclass(frozen=True)
class Run:
    """What a program sent back: bytes of outputs and instructions of each call, stack, text."""

    outputs: list[bytes]
    instructions: list[int]
    stack_bytes: int
    text: str


def _moves(function: str, file: str, slots: Sequence[Slot]) -> str:
    return "\n        ".join(
        f"driver_failed |= {function}({file}, &{slot.lvalue}, sizeof {slot.lvalue}) != 0;"
        for slot in slots
    )


def _checks(slots: Sequence[Slot]) -> str:
    """Write declarations that do not compile if a variable has an unexpected size."""
    return "\n".join(
        f"typedef char size_{k}[sizeof {slot.lvalue} == {slot.size}u ? 1 : -1];"
        for k, slot in enumerate(slots)
    )


def driver_text(harness: Harness) -> str:
    """Write the C program that reads inputs from the host, calls the code and sends results."""
    return fill_template(
        "driver.c.in",
        header=harness.header,
        variables=harness.variables,
        checks=_checks((*harness.inputs, *harness.outputs)),
        setup=harness.setup,
        call=harness.call,
        reads=_moves("board_read", "driver_from", harness.inputs),
        writes=_moves("board_write", "driver_to", harness.outputs),
    )


def build(
    sources: Mapping[str, str],
    harness: Harness,
    board: Board,
    folder: Path,
    optimize: str = "-O2",
    libraries: Sequence[str] = ("-lgcc",),
) -> Firmware:
    """Compile C sources (file name: text; headers too) and a driver for a board, and link them.

    Everything is written to ``folder``, which stays the caller's. Generated code needs no library
    but the compiler's own; ``libraries`` is for code that does.
    """
    for name, text in {**sources, "driver.c": driver_text(harness)}.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    units = [name for name in (*sources, "driver.c") if name.endswith(".c")]
    own = [str(FOLDER / name) for name in (f"{board.startup}.c", *SUPPORT)]
    purpose = f"building for {board.name}"
    compiler = f"{board.tools}gcc"
    flags = [*board.flags, *FLAGS, optimize, "-I.", f"-I{FOLDER}"]
    run_tool([compiler, *flags, "-c", *units, *own], purpose, cwd=folder)
    objects = [Path(name).stem + ".o" for name in (*units, *own)]
    script = ["-T", str(FOLDER / f"{board.startup}.ld")]
    link = [*board.flags, *LINK, *script, *objects, *libraries, "-o", "firmware.elf"]
    run_tool([compiler, *link], purpose, cwd=folder)
    return Firmware(board, harness, folder)


def execute(firmware: Firmware, inputs: Sequence[bytes], timeout: float = 60.0) -> Run:
    """Run a program in the emulator, one call for each block of input bytes."""
    board, folder = firmware.board, firmware.folder
    (folder / "inputs.bin").write_bytes(struct.pack("<I", len(inputs)) + b"".join(inputs))
    command = [
        *board.emulator,
        *("-nographic", "-monitor", "none", "-serial", "none", "-no-reboot"),
        *("-semihosting-config", "enable=on,target=native"),
        *("-icount", f"shift={board.clock}"),
        *("-kernel", "firmware.elf"),
    ]
    done = run_tool(command, f"running on {board.name}", cwd=folder, timeout=timeout)
    data = (folder / "outputs.bin").read_bytes()
    size = sum(slot.size for slot in firmware.harness.outputs)
    if len(data) != len(inputs) * (size + 4) + 4:
        raise ToolError(
            f"running on {board.name}: the program sent {len(data)} bytes for {len(inputs)} calls "
            f"of {size} bytes each:\n{done.stderr.strip()}"
        )
    blocks = [data[k * (size + 4) : (k + 1) * (size + 4)] for k in range(len(inputs))]
    return Run(
        outputs=[block[:size] for block in blocks],
        instructions=[int.from_bytes(block[size:], "little") for block in blocks],
        stack_bytes=int.from_bytes(data[-4:], "little"),
        text=done.stdout + done.stderr,
    )
