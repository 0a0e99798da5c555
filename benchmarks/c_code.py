"""Generated C against CasADi's generated C: bytes of flash, time on this machine, instructions.

Every peer computes the same expressions: the recorded graph, translated node by node. Flash is what
the function needs on a board: its code and constants with everything it calls, linked statically
(newlib's libm for CasADi, nothing for ours, and on a Cortex-M4, which has no double arithmetic, the
compiler's for both: some 2 kB that a Cortex-M7 does not need). Needs the tools that
``.ci/install-tools`` installs, and ``libnewlib-arm-none-eabi`` for CasADi's libm.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.embedded import CProject, codegen
from archimedes.embedded.boards import FOLDER, Harness, Slot, board_named, build, execute
from archimedes.embedded.c_files import source_files
from archimedes.embedded.qemu import make_harness
from benchmarks.c_code_cases import INNER, Case, cases
from benchmarks.report import Table, in_processes, medians

OPTIMIZE = "-O2"
#: What takes a compiler minutes is measured once, by its size.
SLOW = ("unrolled",)
FLASH_BOARDS, TIME_BOARD = ("cortex-m4", "cortex-m7"), "cortex-m7"


# ---- C sources -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Code:
    """C of one peer: files, the function that is the root, and its harness on a board."""

    files: dict[str, str]
    root: str
    harness: Harness
    libraries: tuple[str, ...]
    batch: str


def our_code(case: Case, **options: Any) -> Code:
    project: CProject = codegen(case.function, case.args, name="model", **options)
    batch = """
#include "model.h"
void batch(const model_in_t *in, model_out_t *out, long n);
void batch(const model_in_t *in, model_out_t *out, long n)
{
    model_work_t work;
    for (long i = 0; i < n; i++) model_step(&in[i], &out[i], &work);
}
"""
    model = project.model
    return Code(source_files(model), "model_step", make_harness(model), ("-lgcc",), batch)


_CASADI_HEADER = """
#ifndef MODEL_H
#define MODEL_H
#include <stdint.h>
int model(const REAL **arg, REAL **res, long long *iw, REAL *w, int mem);
#endif
"""


def casadi_code(function: Any, real: str = "double") -> Code:
    """CasADi's C of a function, whose arguments and results lie one behind the other."""
    import casadi as ca

    generator = ca.CodeGenerator("model.c", {"with_header": False, "casadi_real": real})
    generator.add(function)
    text = generator.dump()
    inputs = [function.nnz_in(k) for k in range(function.n_in())]
    each = [function.nnz_out(k) for k in range(function.n_out())]
    outputs = sum(each)
    pointers = "\n".join(f"    arg[{k}] = x + {sum(inputs[:k])};" for k in range(len(inputs)))
    results = "\n".join(f"    res[{k}] = y + {sum(each[:k])};" for k in range(len(each)))
    call = f"""
static void call(const {real} *x, {real} *y)
{{
    const {real} *arg[{function.sz_arg()}];
    {real} *res[{function.sz_res()}], w[{max(function.sz_w(), 1)}];
    long long iw[{max(function.sz_iw(), 1)}];
{pointers}
{results}
    model(arg, res, iw, w, 0);
}}
"""
    batch = f"""
#include "model.h"
{call}
void batch(const {real} *in, {real} *out, long n);
void batch(const {real} *in, {real} *out, long n)
{{
    for (long i = 0; i < n; i++) call(in + i * {sum(inputs)}, out + i * {outputs});
}}
"""
    size = {"double": 8, "float": 4}[real]
    harness = Harness(
        header="model.h",
        variables=f"static {real} x[{sum(inputs)}], y[{outputs}];\n{call}",
        call="call(x, y);",
        inputs=[Slot("x", size * sum(inputs))],
        outputs=[Slot("y", size * outputs)],
    )
    files = {"model.c": text, "model.h": _CASADI_HEADER.replace("REAL", real)}
    return Code(files, "model", harness, ("-lm", "-lc", "-lgcc"), batch)


# ---- measurements --------------------------------------------------------------------------------


def _write(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [name for name in files if name.endswith(".c")]


def flash_bytes(code: Code, board_name: str, optimize: str = OPTIMIZE) -> int:
    """Code and constants on a board, all that the function calls included."""
    with tempfile.TemporaryDirectory() as name:
        return _linked(code, board_name, optimize, Path(name))


def flash_parts(code: Code, board_name: str, optimize: str = OPTIMIZE) -> dict[str, int]:
    """The same by where it comes from.

    "model": what was generated for it, tables included; "functions": sine, cosine, square root
    and the like, generated (``arc_``) or of the C library; "arithmetic": the compiler's.
    """
    board = board_named(board_name)
    with tempfile.TemporaryDirectory() as name:
        total = _linked(code, board_name, optimize, Path(name))
        command = [f"{board.tools}nm", "-S", "linked.elf"]
        listed = subprocess.run(command, cwd=name, check=True, capture_output=True, text=True)
        own = [f"{board.tools}nm", "--defined-only", "model.o"]
        made = subprocess.run(own, cwd=name, check=True, capture_output=True, text=True)
    of_model = {line.split()[-1] for line in made.stdout.splitlines()}
    # Several names may stand for one place; the longest says how much is there.
    sizes: dict[int, tuple[int, str]] = {}
    for row in (line.split() for line in listed.stdout.splitlines()):
        if len(row) == 4 and row[2] in "tTrRwW":
            at = int(row[0], 16)
            sizes[at] = max(sizes.get(at, (0, "")), (int(row[1], 16), row[3]))
    parts = {"model": 0, "functions": 0, "arithmetic": 0}
    end = 0
    for at, (size, symbol) in sorted(sizes.items()):
        size, end = at + size - max(at, end), max(end, at + size)
        model = symbol in of_model and (symbol in _OWN_PARTS or not symbol.startswith("arc_"))
        arithmetic = symbol.startswith("__") and not symbol.startswith(("__kernel", "__ieee754"))
        parts["model" if model else "arithmetic" if arithmetic else "functions"] += max(size, 0)
    # What lies between symbols (constants behind code, alignment) is the model's.
    parts["model"] += total - sum(parts.values())
    return parts


#: Functions of ours that stand for text of the model, not for a function of the C library.
_OWN_PARTS = ("arc_solve", "arc_solvef", "arc_steps")


def _linked(code: Code, board_name: str, optimize: str, folder: Path) -> int:
    """Link the function and all that it calls; return the size of code and constants."""
    board = board_named(board_name)
    sources = _write(folder, code.files)
    compiler = [f"{board.tools}gcc", *board.flags, optimize]
    flags = ["-ffp-contract=off", "-w", "-ffunction-sections", "-fdata-sections"]
    memory = str(FOLDER / "memory.c")  # GCC makes calls of memcpy out of loops that copy
    subprocess.run([*compiler, *flags, "-c", *sources, memory], cwd=folder, check=True)
    objects = [f"{Path(source).stem}.o" for source in (*sources, memory)]
    link = ["-nostdlib", "-nostartfiles", "-Wl,--gc-sections", f"-Wl,-e,{code.root}"]
    command = [*compiler, *link, *objects, *code.libraries, "-o", "linked.elf"]
    subprocess.run(command, cwd=folder, check=True)
    text = subprocess.run(
        [f"{board.tools}size", "-A", "linked.elf"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rows = [line.split() for line in text.splitlines()]
    return sum(int(r[1]) for r in rows if r and r[0].split(".")[1:2] in (["text"], ["rodata"]))


def instructions(
    code: Code,
    args: Sequence[Any],
    board_name: str = TIME_BOARD,
    optimize: str = OPTIMIZE,
    dtype: Any = float,
) -> tuple[int, np.ndarray]:
    """Instructions of one call on the emulated board, and the result."""
    data = np.concatenate([np.ravel(a) for a in args]).astype(dtype).tobytes()
    with tempfile.TemporaryDirectory() as name:
        board = board_named(board_name)
        firmware = build(
            code.files, code.harness, board, Path(name), optimize, libraries=code.libraries
        )
        run = execute(firmware, [data, data])
    return run.instructions[1], np.frombuffer(run.outputs[1], dtype)


def _on_host(code: Code, inputs: np.ndarray) -> Callable[[], None]:
    """A call of the function at all points, compiled for this machine: a loop in C."""
    outputs = np.zeros((len(inputs), sum(slot.size for slot in code.harness.outputs) // 8))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = _write(folder, {**code.files, "batch.c": code.batch})
        flags = [OPTIMIZE, "-ffp-contract=off", "-w", "-fPIC", "-shared", "-o", "model.so"]
        subprocess.run(["gcc", *flags, *sources, "-lm"], cwd=folder, check=True)
        library = ctypes.CDLL(str(folder / "model.so"))
    given = [ctypes.c_void_p(a.ctypes.data) for a in (inputs, outputs)]
    return lambda: library.batch(*given, ctypes.c_long(len(outputs)))


def host_seconds(codes: dict[str, Code], args: Sequence[Any], batch: int) -> dict[str, float]:
    """Seconds a call on this machine: the best of many, all peers in turn."""
    rng = np.random.default_rng(1)
    point = np.concatenate([np.ravel(a) for a in args]).astype(float)
    inputs = point * (1.0 + 0.01 * rng.normal(size=(batch, point.size)))
    calls = {kind: _on_host(code, inputs) for kind, code in codes.items()}
    best = dict.fromkeys(calls, np.inf)
    for _ in range(300):
        for kind, call in calls.items():
            start = time.perf_counter()
            call()
            best[kind] = min(best[kind], time.perf_counter() - start)
    return {kind: seconds / batch for kind, seconds in best.items()}


def _codes(case: Case, skip: Sequence[str] = ()) -> dict[str, Code]:
    chosen = {kind: make for kind, make in case.casadi.items() if kind not in skip}
    made = {kind: casadi_code(make(case.args)) for kind, make in chosen.items()}
    return {"ours": our_code(case), **made}


def measure() -> dict[str, float]:
    """Times in one process."""
    return {
        f"{name}|{kind}": seconds
        for name, case in cases().items()
        for kind, seconds in host_seconds(_codes(case, SLOW), case.args, case.batch).items()
    }


def tables(processes: int = 3) -> list[Table]:
    """Flash, instructions and time of each case."""
    times = medians(in_processes("benchmarks.c_code", "measure", processes))
    rows = []
    for name, case in cases().items():
        codes = _codes(case)
        flash = {
            (kind, board): flash_bytes(code, board)
            for kind, code in codes.items()
            for board in FLASH_BOARDS
        }
        counts: dict[str, int] = {}
        results = {}
        for kind, code in codes.items():
            if kind not in SLOW:
                counts[kind], results[kind] = instructions(code, case.args)
                np.testing.assert_allclose(results[kind], results["ours"], rtol=1e-9, atol=1e-9)
        for kind in case.casadi:
            seconds = [times.get(f"{name}|{peer}") for peer in ("ours", kind)]
            sizes = [
                _compared(flash["ours", board], flash[kind, board], "{:.0f}")
                for board in FLASH_BOARDS
            ]
            rows.append(
                (
                    name,
                    kind,
                    *(text for size in sizes for text in size),
                    *_compared(counts["ours"], counts.get(kind), "{:.0f}"),
                    *_compared(*(None if s is None else 1e9 * s for s in seconds), "{:.1f}"),
                )
            )
    note = (
        f"Ours / CasADi's, and the ratio (above 1: ours is better), `gcc {OPTIMIZE}`, contraction "
        "off. Flash: everything that is linked, on a Cortex-M4 with the compiler's arithmetic of "
        "doubles. Instructions: one call on an emulated Cortex-M7 (hardware doubles). ns: this "
        f"machine, a loop in C, medians of {processes} processes. CasADi simplifies beyond what "
        "IEEE arithmetic allows (x*y/y is x), ours keeps every "
        "rounding. Loops in CasADi: unrolled into one graph, calls of the step's function, or "
        f"calls of a function that calls it {INNER} times."
    )
    sizes_of = [x for board in FLASH_BOARDS for x in (f"flash, {board}", "ratio")]
    columns = ("function", "CasADi as", *sizes_of, "instructions", "ratio", "ns", "ratio")
    return [Table("Generated C against CasADi's", columns, rows, note)]


def _compared(ours: float | None, theirs: float | None, form: str) -> tuple[str, str]:
    if ours is None or theirs is None:
        return "-", "-"
    return f"{form.format(ours)} / {form.format(theirs)}", f"{theirs / ours:.2f}"
