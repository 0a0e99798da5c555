"""Native code for Windows, macOS and Linux on ARM64: what it needs of the system, and its results.

All of it is made by the functions that make this machine's, for another ``Target``.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from archimedes.backends import llvm as llvm_backend
from archimedes.backends.llvm.calling_convention import BATCH, LOOP_THREADS, PART, SAFEPOINT, SCALAR
from archimedes.backends.llvm.calling_convention import Leaf as KernelLeaf
from archimedes.backends.llvm.python_api.entry import Batch, entry_text
from archimedes.backends.llvm.python_api.thread_dispatch import dispatch_text
from archimedes.backends.llvm.runtime import block_lu, calls_to_python, repeated_kernels
from archimedes.backends.llvm.runtime.array_functions import array_text
from archimedes.backends.llvm.runtime.kernel import NativeKernel
from archimedes.backends.llvm.runtime.loop_threads import module_text
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target, read_ir
from archimedes.backends.llvm.runtime.pointers import reader_text
from archimedes.backends.protocol import Argument, ArrayType, EntryRequest, Leaf, Tuple
from archimedes.graph import CODES, F64, I64, Graph
from archimedes.optimize.solvers.interior_point.loop_descriptions import FUNCTIONS
from archimedes.system.c_library import clock_function, functions_to_import

from ..long_parameters import long_but
from ..other_systems import EMULATED, MACOS, SYSTEMS, WINDOWS, System
from ..programs.catalogue import callback_programs, programs, regions_of
from ..programs.models import models
from ..programs.program import Program
from .bundling import every_op
from .emulated_kernels import compile_kernels, run_kernels
from .object_files import missing_symbols, section_names
from .windows_calls import run_windows_kernels

#: What kernels read of the process besides; for the last one Microsoft's linker looks, and nobody
#: reads it.
OF_KERNELS = {LOOP_THREADS, SAFEPOINT, "arc_host", "_fltused"}
#: Tables for those who walk along the stack: nobody does through native code, and what they would
#: be registered with differs from system to system.
UNWINDING = {".pdata", ".xdata", ".eh_frame", "__eh_frame", "__compact_unwind"}
#: Far from where code is loaded.
FAR = 0x1000
TARGETS = [target for system in SYSTEMS for target in system.targets]
#: For these all is tried by default.
QUICK = [WINDOWS.targets[0], *MACOS.targets]


def named(target: Target) -> str:
    return f"{target.triple} {target.cpu}"


def smallest() -> list[Program]:
    """The shortest programs that have all kinds of regions."""
    found: dict[type, Program] = {}
    every = [*programs(), *callback_programs()]
    for made in sorted(every, key=lambda made: len(made.graph.dtype), reverse=True):
        found |= dict.fromkeys(regions_of(made.graph), made)
    return list({made.name: made for made in found.values()}.values())


def alone(cases: list[Program]) -> list[Program]:
    """Those that do not call Python."""
    return [made for made in cases if made not in callback_programs()]


def check_object(code: bytes, target: Target, names: set[str], symbol: str) -> None:
    """Assert that code needs no more than is there, and link it where our linker can."""
    missing = missing_symbols(code)
    of_python = {x for x in missing if x.startswith("Py") and hasattr(ctypes.pythonapi, x)}
    provided = {*functions_to_import(target.triple), *names, *of_python}
    assert missing <= provided, symbol
    assert not section_names(code) & UNWINDING, symbol
    if llvm.get_object_format(target.triple) != "ELF":
        return  # linkers for Windows' files abort, and those for macOS need functions of macOS
    assert NativeCode(code, symbol, dict.fromkeys(provided, FAR), target.triple).address


def check_kernels(cases: list[Program], target: Target) -> dict[str, dict[str, bytes]]:
    """Check both entries of programs and return them, by program."""
    found = {made.name: compile_kernels(made, target) for made in cases}
    for name, entries in found.items():
        for entry, code in entries.items():
            tables = {x for x in missing_symbols(code) if x.startswith(f"{name}_arc_data")}
            check_object(code, target, OF_KERNELS | tables, f"{name}_{entry}")
    return found


def run_here(cases: list[Program], compiled: dict[str, dict[str, bytes]], target: Target) -> None:
    """Run code for Windows in this process, where this processor has the instructions."""
    host = host_target(None)
    needed = {word for word in target.features.split(",") if word}
    if target.is_windows and host.is_x86 and needed <= set(host.features.split(",")):
        for made in cases:
            run_windows_kernels(made, compiled[made.name], target)


def check_system(
    cases: list[Program], system: System, folder: Path, sample: list[Program] | None = None
) -> None:
    """Check programs compiled for a system; run them, where that can be done here.

    ``sample``: those to compile anew where executables need object files of another kind.
    """
    compiled = check_kernels(cases, system.targets[0])
    run_here(alone(cases), compiled, system.targets[0])
    if system.executable:
        cases = sample or cases
        compiled = check_kernels(cases, system.executable)
    if system in EMULATED:
        run_kernels(alone(cases), compiled, system, folder)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_kernels(system: System, tmp_path: Path):
    """They need only what the runtime provides, and give the bits of the interpreter."""
    check_system(smallest(), system, tmp_path, smallest()[:3])


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_all_kernels(system: System, tmp_path: Path):
    long = [*models(), every_op()]
    every = [*programs(), *callback_programs(), *long]
    check_system(every, system, tmp_path, [*programs()[::4], *long])


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS, ids=named)
def test_kernels_compiled_in_a_hurry(target: Target):
    check_kernels([*smallest(), *models()], replace(target, effort=0))


@pytest.mark.long
@pytest.mark.parametrize("target", WINDOWS.targets[1:], ids=named)
def test_kernels_for_newer_processors(target: Target):
    cases = [*alone(smallest()), *models(), every_op()]
    run_here(cases, check_kernels(cases, target), target)


ARRAY, NUMBER = Argument(F64, (3,)), Argument(F64, weak=True)
SINGLE = EntryRequest(
    (ARRAY, NUMBER, Argument(I64, weak=True), Argument(F64)),
    (ArrayType(F64, (2, 2)), ArrayType(F64)),
    Tuple((Leaf(0), Leaf(1))),
)
MANY = EntryRequest(
    (ARRAY._replace(batched=True), NUMBER), (ArrayType(F64, (3,)),), Leaf(0), batch=True
)


def runtime_modules(target: Target) -> dict[str, tuple[str, str, set[str]]]:
    """Return every module besides kernels, by file: symbol, text, and names it may refer to."""
    found = {
        "loop_threads.py": ("arc_loop_entries", module_text(), set()),
        "pointers.py": ("arc_data_pointer", reader_text(), set()),
        "thread_dispatch.py": ("arc_fill", dispatch_text(), {"arc.key"}),
        "entry.py": ("arc_python", entry_text(SINGLE, 4096, None, True), set()),
        "entry.py of a batch": ("arc_python", entry_text(MANY, 4096, Batch(9, 8192, (64,))), set()),
    }
    clock = clock_function(target.triple)[1]
    turns = {
        "through ctypes": (read_ir("callback_turn"), {"arc_callback"}),
        "by Python's functions": (calls_to_python.turn_text(target), {"arc.turn", "arc.kept"}),
    }
    for way, (turn, names) in turns.items():
        text = calls_to_python.safepoint_text(target, turn)
        found[f"calls_to_python.py {way}"] = ("arc_look", text, {clock, *names})
    functions = {"interior point": FUNCTIONS, "native loops": repeated_kernels.FUNCTIONS}
    functions |= {f"blocks of {letter}": block_lu.functions(letter) for letter in "FS"}
    for name, described in functions.items():
        text = array_text(described, target, ("factorise",))
        found[f"array_functions.py of {name}"] = ("arc_entries", text, set())
    return found


@pytest.mark.parametrize("target", long_but(QUICK, TARGETS), ids=named)
def test_the_runtime_needs_only_what_it_provides(target: Target):
    for name, (symbol, text, names) in runtime_modules(target).items():
        code = target.compile(text, fused=name.startswith("array_functions.py"))
        check_object(code, target, names | {"_fltused"}, symbol)


def test_every_module_of_the_runtime_is_tested():
    loading = re.compile(r"\b(?:NativeCode|common_code)\(")
    files = [
        path.name
        for path in Path(llvm_backend.__file__).parent.rglob("*.py")
        if any(loading.search(line) for line in path.read_text().splitlines() if "def " not in line)
    ]
    tested = {name.split()[0] for name in runtime_modules(TARGETS[0])}
    # These load what they are given, and the kernels above.
    assert set(files) - {"machine.py", "kernel.py"} == tested


def product_and_sum(fused: bool) -> Graph:
    g = Graph()
    x, y, z = (g.input(F64) for _ in range(3))
    if fused:
        g.outputs = [g.emit(CODES["fma"], x, y, z)]
    else:
        g.outputs = [g.emit(CODES["add"], g.emit(CODES["mul"], x, y), z)]
    return g


#: Instructions that round a product and a sum once, of x86 and of ARM.
FUSED = re.compile(r"\b(?:vfn?m(?:add|sub)\w*|fn?m(?:add|sub)|fml[as])\b")


@pytest.mark.parametrize("target", TARGETS, ids=named)
@pytest.mark.parametrize("fused", [False, True])
def test_products_and_sums_are_rounded_one_by_one(target: Target, fused: bool):
    """Even where one instruction could do both; unless the program says so."""
    leaf = [KernelLeaf(3, F64)], [KernelLeaf(1, F64)]
    kernel = NativeKernel(product_and_sum(fused), *leaf, target, None, PART)
    for entry, batched in ((SCALAR, ()), (BATCH, (True,))):
        program = kernel.program(entry, batched, target)
        code = target.assembly(program.text, program.fused)
        assert bool(FUSED.search(code)) == (fused and target.fuses)


def test_numbers_of_threads_are_long():
    """That is 32 bits on Windows, whose upper half of a register is anything."""
    for target in TARGETS:
        long = "i32" if target in WINDOWS.targets else "i64"
        text = calls_to_python.turn_text(target)
        assert f"declare {long} @PyThread_get_thread_ident()" in text
        assert f"call ptr @PyLong_FromUnsignedLong({long} %thread)" in text


@pytest.mark.parametrize("target", TARGETS, ids=named)
def test_modules_are_laid_out_as_the_target_has_it(target: Target):
    layout = target._machine.target_data
    context = llvm.create_context()
    pointer = llvm.parse_assembly("@p = global ptr null", context).get_global_variable("p")
    assert layout.get_abi_size(pointer.global_value_type) == 8
    assert str(layout).startswith("e-")  # little-endian
    module = target.parse("@p = global ptr null", fused=False)
    assert (module.triple, module.data_layout) == (target.triple, str(layout))
