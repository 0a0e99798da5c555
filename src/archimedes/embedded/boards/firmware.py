"""Programs for emulated boards: generated C, a driver that feeds it, and what they link with."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from archimedes.backends.c import FLAGS as CONTRACT
from archimedes.embedded.boards import FOLDER, SUPPORT, Board
from archimedes.embedded.tools import ToolError, run_tool

__all__ = ["Firmware", "Harness", "Run", "Slot", "build", "driver_text", "execute"]

#: Code that relies on nothing but itself, in sections that the linker may leave out.
FLAGS = ("-std=c99", "-ffreestanding", *CONTRACT, "-ffunction-sections", "-fdata-sections")
LINK = ("-nostdlib", "-nostartfiles", "-Wl,--gc-sections")


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


_DRIVER = """\
#include "{header}"
#include "counting.h"
#include "semihosting.h"

{variables}
{checks}

int main(void)
{{
    uint32_t driver_calls = 0, driver_figures[2] = {{0u, 0u}};
    const int driver_from = board_open("inputs.bin", 0);
    const int driver_to = board_open("outputs.bin", 1);
    const uintptr_t driver_stack = board_stack_pointer();
    int driver_failed = driver_from < 0 || driver_to < 0;
    driver_failed |= board_read(driver_from, &driver_calls, sizeof driver_calls) != 0;
    {setup}
    board_count_start();
    board_stack_paint(driver_stack);
    for (uint32_t driver_k = 0; driver_k < driver_calls && !driver_failed; driver_k++) {{
        {reads}
        const uint32_t driver_before = board_count();
        const uint32_t driver_start = board_count();
        {call}
        const uint32_t driver_stop = board_count();
        driver_figures[0] = (driver_stop - driver_start) - (driver_start - driver_before);
        {writes}
        driver_failed |= board_write(driver_to, &driver_figures[0], sizeof driver_figures[0]) != 0;
    }}
    driver_figures[1] = board_stack_used(driver_stack);
    driver_failed |= board_write(driver_to, &driver_figures[1], sizeof driver_figures[1]) != 0;
    board_close(driver_from);
    board_close(driver_to);
    if (driver_failed) {{
        board_print("the driver could not move data between the board and the host\\n");
    }}
    return driver_failed;
}}
"""


def _moves(function: str, file: str, slots: Sequence[Slot]) -> str:
    return "\n        ".join(
        f"driver_failed |= {function}({file}, &{slot.lvalue}, sizeof {slot.lvalue}) != 0;"
        for slot in slots
    )


def _checks(slots: Sequence[Slot]) -> str:
    """Refuse to compile where a variable has not the size that the host sends or expects."""
    return "\n".join(
        f"typedef char size_{k}[sizeof {slot.lvalue} == {slot.size}u ? 1 : -1];"
        for k, slot in enumerate(slots)
    )


def driver_text(harness: Harness) -> str:
    """Write the C program that reads inputs from the host, calls the code and sends results."""
    return _DRIVER.format(
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
