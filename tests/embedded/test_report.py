"""Resource reports: sizes against the compiler's own tools, counts against counting by hand."""

from __future__ import annotations

import inspect
import subprocess

import numpy as np
import pytest

import archimedes as arc
from archimedes.embedded import CodegenError, ToolError, codegen, report
from archimedes.embedded.boards import BOARDS, build
from archimedes.embedded.c_files import source_files
from archimedes.embedded.qemu import make_harness
from archimedes.embedded.resource_report import deepest_chain

from .models import kalman_inputs, kalman_step, lift, lift_inputs
from .toolchain import needs

M4 = needs(*BOARDS["cortex-m4"].programs)
M7 = needs(*BOARDS["cortex-m7"].programs)
HOST = needs("gcc")


def counted(function, *args):
    figures = codegen(function, args, name="f").model.source.stats
    return dict(figures.operations), dict(figures.primitives)


# ---- operations ----------------------------------------------------------------------------------


def test_products_are_counted_exactly():
    operations, _ = counted(lambda A, B: A @ B, np.ones((2, 3)), np.ones((3, 4)))
    assert operations == {"mul": 2 * 4 * 3, "add": 2 * 4 * 2}


def test_elements_of_wide_arrays_are_no_operations():
    assert counted(lambda x: np.sum(x * x) * x[3], np.ones(80))[0] == {"mul": 81, "add": 79}


def test_loops_count_every_step():
    def f(x):
        return arc.scan(lambda c, _: (c * c + 1.0, None), x, length=100)[0]

    assert counted(f, 0.5)[0] == {"mul": 100, "add": 100}


def test_nested_loops_multiply():
    def inner(x):
        return arc.fori_loop(0, 7, lambda k, c: c + 0.25, x)

    def f(x):
        return arc.scan(lambda c, _: (inner(c) * 2.0, None), x, length=10)[0]

    operations, _ = counted(f, 0.5)
    assert operations["mul"] == 10
    # One addition of the model; the loop may add to a counter of its own.
    assert operations["add"] in (70, 140)


def test_bounded_loops_count_their_bound():
    def f(x):
        return arc.while_loop(lambda v: v < 100.0, lambda v: v * 3.0, x, max_steps=9)

    operations, _ = counted(f, 0.5)
    assert operations["mul"] == 9
    assert operations["lt"] == 9


def test_of_branches_the_longest_counts():
    def long(x):
        return x * x * x * x + x

    f = lambda k, x: arc.switch(k, [lambda x: x + 1.0, long, lambda x: x - 1.0], x)
    operations, _ = counted(f, 1, 0.5)
    assert operations["mul"] in (2, 3)
    assert operations["add"] == 1
    assert "sub" not in operations


def test_solves_count_their_elimination():
    """The elimination of ``n`` rows and one right-hand side, run with counting numbers."""
    n = 12
    counts = {"mul": 0, "sub": 0, "div": 0, "abs": 0, "lt": 0}

    def count(name, times=1):
        counts[name] += times

    for k in range(n):
        count("abs")
        for _ in range(k + 1, n):
            count("abs")
            count("lt")
        for _ in range(k + 1, n):
            count("div")
            for _ in range(k + 1, n + 1):
                count("mul")
                count("sub")
    for k in range(n):
        for _ in range(k + 1, n):
            count("mul")
            count("sub")
        count("div")
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=n)
    operations, _ = counted(np.linalg.solve, A, b)
    assert {name: operations[name] for name in counts} == counts


def test_elementary_functions_are_taken_apart():
    operations, primitives = counted(lambda x: np.sin(x) + 1.0, 0.3)
    assert operations == {"sin": 1, "add": 1}
    assert "sin" not in primitives
    assert sum(primitives.values()) > 20


# ---- memory --------------------------------------------------------------------------------------


@M4
def test_sizes_agree_with_the_symbols(tmp_path):
    project = codegen(kalman_step, kalman_inputs(1)[0])
    figures = report(project)
    # track: 4 + 16 doubles, y 2, Q 16, R 4; the result is a track.
    assert figures.structs["in"] == 8 * (4 + 16 + 2 + 16 + 4)
    assert figures.structs["out"] == 8 * (4 + 16)
    assert figures.ram == sum(figures.structs.values())
    model = project.model
    build(source_files(model), make_harness(model), BOARDS["cortex-m4"], tmp_path)
    command = ["arm-none-eabi-nm", "-S", "kalman_step.o"]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    code = sum(int(row[1], 16) for row in rows if len(row) == 4 and row[2] in "tT")
    tables = sum(int(row[1], 16) for row in rows if len(row) == 4 and row[2] in "rR")
    # Sections are padded to the alignment of each function.
    assert code <= figures.code <= code + 64
    assert tables <= figures.constants <= tables + 512
    assert figures.code + figures.constants < figures.flash < 40_000
    assert "__aeabi_dmul" in figures.library_calls


@M7
def test_stack_agrees_with_what_is_measured():
    """With hardware doubles and one path, the call needs what the compiler says."""
    n = 12
    system = np.eye(n) + np.arange(n * n).reshape(n, n) / 1000.0
    figures = report(np.linalg.solve, (system, np.ones(n)), board="cortex-m7", emulate=True)
    assert figures.run is not None
    assert 8 * n * n <= figures.stack == pytest.approx(figures.run.stack_bytes, abs=64)
    assert figures.stack_chain[0] == "solve_step"
    assert figures.run.instructions[0] > n**3 // 3


@M7
def test_no_path_uses_more_stack_than_said():
    figures = report(kalman_step, kalman_inputs(1)[0], board="cortex-m7", emulate=True)
    assert figures.run is not None
    # The library's conversions of integers are what the static figure leaves out.
    assert figures.run.stack_bytes <= figures.stack + 64


@M4
def test_a_workspace_moves_arrays_off_the_stack():
    n = 12
    arguments = (np.eye(n), np.ones(n))
    stack = report(np.linalg.solve, arguments)
    work = report(np.linalg.solve, arguments, options={"scratch": "workspace"})
    assert work.structs["work"] >= 8 * n * n > stack.structs["work"]
    assert work.stack <= stack.stack - 8 * n * n
    assert work.operations == stack.operations


@HOST
def test_the_host_is_a_target():
    figures = report(lift, lift_inputs(5)[0], board="host")
    assert 500 < figures.flash < 20_000
    assert figures.target == "host"
    with pytest.raises(CodegenError, match="emulate=True needs a board"):
        report(lift, lift_inputs(5)[0], board="host", emulate=True)


GRAPH = """
graph: { title: "m.c"
node: { title: "m_step" label: "m_step\\nm.c:1:6\\n40 bytes (static)\\n0 dynamic objects" }
node: { title: "m.c:left" label: "left\\nm.c:2:6\\n100 bytes (static)\\n0 dynamic objects" }
node: { title: "m.c:right" label: "right\\nm.c:3:6\\n16 bytes (static)\\n0 dynamic objects" }
node: { title: "m.c:deep" label: "deep\\nm.c:4:6\\n90 bytes (static)\\n0 dynamic objects" }
node: { title: "__aeabi_dmul" label: "__aeabi_dmul\\n<built-in>" shape : ellipse }
edge: { sourcename: "m_step" targetname: "m.c:left" label: "m.c:9:1" }
edge: { sourcename: "m_step" targetname: "m.c:right" label: "m.c:9:2" }
edge: { sourcename: "m.c:right" targetname: "m.c:deep" label: "m.c:9:3" }
edge: { sourcename: "m.c:left" targetname: "__aeabi_dmul" label: "m.c:9:4" }
}
"""


def test_deepest_chain():
    assert deepest_chain(GRAPH, "m_step") == (146, ("m_step", "right", "deep"), ("__aeabi_dmul",))
    with pytest.raises(ToolError, match=r"how much stack m\.c:deep uses"):
        deepest_chain(GRAPH.replace("90 bytes (static)", "90 bytes (dynamic)"), "m_step")


# ---- where lines come from -----------------------------------------------------------------------


def helper(a):
    return a / 7.0


def traced(x, y):
    ratio = x[0] / y
    third = helper(ratio)

    def body(c, _):
        return np.sqrt(c + third), None

    last, _ = arc.scan(body, x[1], length=4)
    return last - ratio


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return start + next(k for k, line in enumerate(lines) if text in line)


@HOST
def test_c_lines_name_their_python_lines():
    project = codegen(traced, (np.ones(2), 2.0), options={"traceability": True})
    table = report(project, board="host").traceability
    c_lines = project.files["traced.c"].split("\n")
    found = {}
    for group in table:
        assert all(line.file == __file__ for line in group.python)
        text = "\n".join(c_lines[group.first - 1 : group.last])
        key = (group.python[0].number, group.python[-1].number)
        found[key] = found.get(key, "") + text
    step = line_of(traced, "np.sqrt")
    loop = line_of(traced, "arc.scan")
    ratio, use = line_of(traced, "x[0] / y"), line_of(traced, "helper(ratio)")
    assert "/ y" in found[ratio, ratio]
    assert "/ 7.0" in found[line_of(helper, "a / 7.0"), use]
    assert "arc_sqrt" in found[step, loop]
    assert "for (" in found[loop, loop]
    last = line_of(traced, "last - ratio")
    assert " - " in found[last, last]


@HOST
def test_every_statement_of_the_kernel_is_traced():
    project = codegen(kalman_step, kalman_inputs(1)[0], options={"traceability": True})
    table = report(project, board="host").traceability
    covered = {k for group in table for k in range(group.first, group.last + 1)}
    c_file = project.files["kalman_step.c"]
    kernel = project.model.source.text
    start = c_file[: c_file.index(kernel)].count("\n") + 1
    statements = [
        start + k
        for k, line in enumerate(kernel.split("\n"))
        if line.startswith("    const double t")
    ]
    assert len(statements) > 100
    assert [k for k in statements if k not in covered] == []


@HOST
def test_comments_change_nothing_else():
    arguments = (np.ones(2), 2.0)
    plain = codegen(traced, arguments)
    noted = codegen(traced, arguments, options={"traceability": True})
    assert plain.files["traced.h"] == noted.files["traced.h"]
    kept = [x for x in noted.files["traced.c"].split("\n") if "test_report.py:" not in x]
    assert kept == plain.files["traced.c"].split("\n")
    assert report(plain, board="host").traceability == ()


def test_recorded_lines_are_not_kept():
    """A function generated with its lines is recorded as ever when it is called."""
    compiled = arc.compile(traced)
    codegen(compiled, (np.ones(2), 2.0), options={"traceability": True})
    assert compiled.graph(np.ones(2), 2.0).lines is None


# ---- the page ------------------------------------------------------------------------------------


@HOST
def test_text_and_page():
    figures = report(traced, (np.ones(2), 2.0), board="host")
    text = str(figures)
    assert "traced on host, -O2" in text
    assert "sqrt 4" in text
    page = figures.markdown()
    assert "| flash | " in page
    assert f"test_report.py:{line_of(traced, 'x[0] / y')} traced | `ratio = x[0] / y` |" in page


def test_misuse_is_explained():
    with pytest.raises(CodegenError, match=r"needs example arguments: report\(f, \(x, u\)\)"):
        report(traced)
    project = codegen(traced, (np.ones(2), 2.0))
    with pytest.raises(CodegenError, match=r"write report\(project\)"):
        report(project, (np.ones(2), 2.0))
    with pytest.raises(ValueError, match="board='esp32' is not one of"):
        report(project, board="esp32")


def test_missing_compiler_is_named(monkeypatch):
    project = codegen(traced, (np.ones(2), 2.0))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"measuring traced on cortex-m4 needs .*gcc-arm-none-eabi"):
        report(project)
