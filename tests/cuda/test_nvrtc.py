"""NVIDIA's compiler takes what is written; it needs no GPU."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import numpy as np
import pytest
from benchmarks.models import rigid_body, rigid_body_point

import archimedes as arc
from archimedes.backends.cuda import nvrtc as nvrtc_module
from archimedes.backends.cuda.cuda_c import OPTIONS
from archimedes.backends.cuda.kernel_text import assemble_file, kernel_text, layout, program_text
from archimedes.backends.cuda.nvrtc import compile_cubin, compile_text, find_nvrtc
from archimedes.backends.interpreter import InterpretedProgram, Interpreter
from archimedes.errors import DeviceError
from archimedes.graph import CODES, F64, Graph

from ..long_parameters import long_but
from ..programs.catalogue import programs
from ..programs.ops import OPS, op_program
from ..programs.program import program
from ..programs.random_graphs import random_graph
from .cases import Case, cases


@pytest.fixture(autouse=True, scope="module")
def nvrtc():
    if find_nvrtc() is None:
        reason = "NVRTC is not installed: pip install nvidia-cuda-nvrtc"
        if os.environ.get("ARCHIMEDES_REQUIRE_TOOLS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


class Resources(NamedTuple):
    """What a thread of a kernel takes: registers, bytes of its stack, bytes that it spills."""

    registers: int
    stack: int
    spilled: int


def resources(text: str, architecture: str) -> Resources:
    """Compile a file with one kernel and return what it takes."""
    log = compile_text(text, architecture, None, (*OPTIONS, "--ptxas-options=-v"))[1]

    def most(pattern: str) -> int:
        return max((int(x) for x in re.findall(pattern, log)), default=0)

    return Resources(
        most(r"Used (\d+) registers"),
        most(r"(\d+) bytes (?:stack frame|cumulative stack size)"),
        most(r"(\d+) bytes spill stores"),
    )


def architectures() -> list[str]:
    """This year's, and the oldest that both CUDA 12 and 13 know."""
    return ["sm_90", "sm_75"]


def compiled(found: list[Case], architecture: str, part: int = 2000) -> None:
    cubin = compile_cubin(assemble_file([case.kernel(part) for case in found]), architecture)
    assert cubin[:4] == b"\x7fELF"
    for case in found:
        assert case.name.encode() in cubin


ARCHITECTURES = long_but(["sm_90"], architectures())


@pytest.mark.long
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_op(architecture: str):
    compiled(cases([op_program(*op) for op in OPS]), architecture)


@pytest.mark.long
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_region(architecture: str):
    compiled(cases(programs(), shared=True), architecture)


@pytest.mark.long
def test_every_region_in_float():
    compiled(cases(programs(), single=True), "sm_90")


@pytest.mark.long
@pytest.mark.parametrize("single", [False, True])
def test_random_programs(single: bool):
    made = [program(f"random{seed}", random_graph(seed)) for seed in range(60)]
    compiled(cases(made, single=single), "sm_90", part=50)


def test_a_rigid_body_stays_in_registers(monkeypatch):
    """Rates of 13 states: no memory but the arrays, and enough threads to keep that busy."""
    x, *rest = rigid_body_point(np.random.default_rng(0))
    made: list = []
    build = lambda self, program: made.append(program) or InterpretedProgram(program)
    monkeypatch.setattr(Interpreter, "build", build)
    arc.compile(rigid_body, backend="interpreter")(x, *rest)
    (taken,) = made
    plan = layout(taken, [True] + [False] * 4)
    found = resources(assemble_file([kernel_text(taken, plan)]), "sm_90")
    assert found.registers <= 64 and found.stack == found.spilled == 0
    assert plan.threads == 128 and plan.shared == 128 * 26 * 8


@pytest.mark.long
def test_long_programs_are_kernels_that_spill_nothing():
    rng, g = np.random.default_rng(0), Graph()
    ids = [g.input(F64) for _ in range(20)]
    for _ in range(5100):
        a, b = rng.integers(max(0, len(ids) - 40), len(ids), 2)
        ids.append(g.emit(CODES["mul" if rng.integers(2) else "add"], ids[a], ids[b]))
    g.outputs = ids[-20:]
    made = Case(program("long", g)).program
    plan = layout(made, [True])
    # Not all of them are live, and no such test should take long.
    cut = program_text(made, plan._replace(parts=3))
    assert len(cut.kernels) == 3 and cut.far % (8 * plan.threads) == 0
    found = resources(assemble_file([cut]), "sm_90")
    assert found.spilled == 0 and found.registers <= 128


def test_errors_show_the_compilers_words():
    with pytest.raises(DeviceError, match=r"(?s)could not compile the kernel for sm_90:.*nonsense"):
        compile_cubin("nonsense;", "sm_90")


def test_a_missing_library_says_what_to_install(monkeypatch):
    monkeypatch.setattr(nvrtc_module, "find_nvrtc", lambda major: None)
    with pytest.raises(DeviceError, match=r'NVRTC of CUDA 12,.*\[cuda12\]" \(CUDA 12\)'):
        compile_cubin("", "sm_90", 12)


@pytest.mark.long
def test_steps_of_a_solve_have_all_registers():
    """Where nothing is said of blocks the compiler gives it 32: five times slower."""
    from benchmarks.gpu_simulation import PROBLEM, dispersed

    from archimedes.backends.cuda.repeated_kernel import RepeatedProgram, write_repeated_kernel
    from archimedes.simulate.solves.initial_value_problem import Options, prepare
    from archimedes.simulate.stepping.dense_output import END

    x0 = dispersed(1)
    problem = prepare(PROBLEM.function, (0.0, 1.0), x0, (), Options(), in_axes=(0,))
    kernels, setup = problem.kernels, problem.setup
    run = kernels.begin(False)(setup, 0.0, x0[0], ())
    steps = kernels.to_outputs(carried=False)
    step = steps.step.lookup((run, setup, (), np.float64(0.0)), {})[2].program
    at = steps.at.lookup((np.zeros(steps.width), np.float64(0.0)), {})[2].program
    carry, given = len(arc.tree.leaves(run)), len(arc.tree.leaves(setup))
    program = RepeatedProgram(step, at, carry, (False,) * given, END)
    assert resources(assemble_file([write_repeated_kernel(program)]), "sm_90").registers > 128
