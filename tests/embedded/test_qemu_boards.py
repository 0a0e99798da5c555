"""The emulated boards themselves, with C written by hand: data, arithmetic, counts, failures."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from archimedes.embedded.boards import (
    BOARDS,
    FOLDER,
    Harness,
    Slot,
    ToolError,
    board_named,
    build,
    execute,
    find_tool,
    run_tool,
)

from .toolchain import needs

HEADER = """
#include <stdint.h>
typedef struct { double x[3]; float s; int64_t n; } model_in;
typedef struct { double y[4]; float z[2]; int64_t n; } model_out;
void model(const model_in *in, model_out *out);
"""
SOURCE = """
#include "model.h"
void model(const model_in *in, model_out *out)
{
    const double *x = in->x;
    out->y[0] = x[0] * x[1] + x[2];
    out->y[1] = x[0] / x[1];
    out->y[2] = x[0] - x[1];
    out->y[3] = (double)in->s;
    out->z[0] = in->s * in->s + in->s;
    out->z[1] = (float)x[0];
    out->n = in->n * 3 - 1;
}
"""
HARNESS = Harness(
    header="model.h",
    variables="static model_in in; static model_out out;",
    call="model(&in, &out);",
    inputs=[Slot("in.x", 24), Slot("in.s", 4), Slot("in.n", 8)],
    outputs=[Slot("out.y", 32), Slot("out.z", 8), Slot("out.n", 8)],
)
FILES = {"model.h": HEADER, "model.c": SOURCE}
boards = pytest.mark.parametrize(
    "board", [pytest.param(b, marks=needs(*b.programs), id=b.name) for b in BOARDS.values()]
)


def awkward_numbers() -> np.ndarray:
    """Triples of doubles where software arithmetic goes wrong first."""
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 5e-324, 2.2250738585072014e-308]
    special += [1.7976931348623157e308, 1 / 3, -1e-310, 4503599627370497.5]
    rng = np.random.default_rng(5)
    pairs = [(a, b) for a in special for b in special]
    bits = rng.integers(0, 2**64, size=(200, 3), dtype=np.uint64).view(np.float64)
    triples = np.array([(a, b, rng.choice(special)) for a, b in pairs])
    return np.concatenate([triples, bits])


def expected(x: np.ndarray, s: np.float32, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The same in NumPy."""
    with np.errstate(all="ignore"):
        y = np.array([x[0] * x[1] + x[2], x[0] / x[1], x[0] - x[1], np.float64(s)])
        return y, np.array([s * s + s, x[0].astype(np.float32)], dtype=np.float32), n * 3 - 1


@boards
def test_arithmetic_has_the_bits_of_the_host(board, tmp_path):
    triples = awkward_numbers()
    singles = triples[:, 1].astype(np.float64)
    with np.errstate(all="ignore"):
        singles = singles.astype(np.float32)
    counts = np.arange(len(triples)) - 7
    data = [
        x.tobytes() + s.tobytes() + struct.pack("<q", n)
        for x, s, n in zip(triples, singles, counts)
    ]
    run = execute(build(FILES, HARNESS, board, tmp_path), data)
    for block, x, s, n in zip(run.outputs, triples, singles, counts):
        y, z, m = expected(x, s, int(n))
        got_y, got_z = np.frombuffer(block, "<f8", 4), np.frombuffer(block[32:], "<f4", 2)
        # A nan is a nan: its sign and payload are outside the contract.
        np.testing.assert_array_equal(got_y, y)
        np.testing.assert_array_equal(got_z, z)
        numbers = ~np.isnan(y)
        assert np.array_equal(np.signbit(got_y[numbers]), np.signbit(y[numbers]))
        assert struct.unpack("<q", block[40:])[0] == m


@boards
def test_instructions_and_stack_are_counted(board, tmp_path):
    loop = """
    #include "loop.h"
    void loop(uint32_t n, volatile uint32_t *to)
    {
        volatile unsigned char room[1000];
        room[0] = 1;
        room[n % 1000u] = 1;
        for (uint32_t k = 0; k < n; k++) { *to = k; }
    }
    """
    header = "#include <stdint.h>\nvoid loop(uint32_t n, volatile uint32_t *to);\n"
    harness = Harness(
        header="loop.h",
        variables="static uint32_t n; static uint32_t to;",
        call="loop(n, &to);",
        inputs=[Slot("n", 4)],
        outputs=[Slot("to", 4)],
    )
    firmware = build({"loop.h": header, "loop.c": loop}, harness, board, tmp_path)
    steps = [1000, 2000, 3000, 1000]
    run = execute(firmware, [struct.pack("<I", n) for n in steps])
    a, b, c, again = run.instructions
    # The loop takes the same few instructions a step; the count is exact to one or two.
    assert abs((c - b) - (b - a)) <= 2
    assert abs(again - a) <= 2
    assert 2000 <= b - a <= 10_000
    assert 1000 <= run.stack_bytes <= 1200


@boards
def test_a_fault_is_reported(board, tmp_path):
    harness = Harness(
        header="model.h",
        variables="static model_in in; static model_out out;",
        call="__builtin_trap();",
        inputs=[],
        outputs=[],
    )
    with pytest.raises(ToolError, match=r"(?s)running on .* status 70.*took an exception"):
        execute(build(FILES, harness, board, tmp_path), [b""])


@needs("arm-none-eabi-gcc")
def test_errors_of_the_compiler_are_shown(tmp_path):
    with pytest.raises(ToolError, match=r"(?s)building for cortex-m4: .*nonsense"):
        build({**FILES, "model.c": "nonsense"}, HARNESS, board_named("cortex-m4"), tmp_path)


@needs("arm-none-eabi-gcc")
def test_a_variable_of_another_size_does_not_compile(tmp_path):
    wrong = Harness(**{**vars(HARNESS), "inputs": [Slot("in.x", 12)]})
    with pytest.raises(ToolError, match="size"):
        build(FILES, wrong, board_named("cortex-m4"), tmp_path)


@needs("arm-none-eabi-gcc", "qemu-system-arm")
def test_a_program_that_never_ends_is_stopped(tmp_path):
    endless = Harness(**{**vars(HARNESS), "call": "for (;;) { in.n++; }"})
    firmware = build(FILES, endless, board_named("cortex-m3"), tmp_path, "-O0")
    with pytest.raises(ToolError, match="qemu-system-arm was stopped after 1 s"):
        execute(firmware, [bytes(36)], timeout=1.0)


@boards
def test_support_code_is_clean(board, tmp_path):
    flags = [
        "-ffreestanding",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wpedantic",
        "-Werror",
        "-std=c99",
        "-c",
    ]
    sources = [str(FOLDER / name) for name in (f"{board.startup}.c", "semihosting.c", "memory.c")]
    sources.append(str(FOLDER / "counting.c"))
    command = [f"{board.tools}gcc", *board.flags, *flags, *sources]
    run_tool(command, "checking the support code", cwd=tmp_path)


def test_unknown_board():
    with pytest.raises(ValueError, match="board='z80' is not one of 'cortex-m3', 'cortex-m4'"):
        board_named("z80")


def test_missing_tool_names_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"needs qemu-system-arm.*install .*qemu-system-"):
        find_tool("qemu-system-arm", "running on cortex-m4")
