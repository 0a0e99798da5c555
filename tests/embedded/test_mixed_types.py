"""C projects in float32 of which some values are double, and their digits in the report."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.analysis.precision.mixed import Programs
from archimedes.analysis.precision.rounding import round_some
from archimedes.analysis.precision.sources import Sources
from archimedes.embedded import report
from archimedes.embedded.mixed_types import with_double
from archimedes.embedded.preparation import Options, prepare
from archimedes.embedded.resource_report import traceability_table
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import DTYPES

from ..fuzz.programs import generate
from .toolchain import needs

requires_compiler = needs("gcc")

STEP = {"return_names": ("x", "t"), "state": ("x", "t")}
#: Position, time, command, step, gain.
EXAMPLE = (0.0, 3600.0, 1.0, 1e-3, 1e-6)


def step(x, t, u, dt, alpha):
    t = t + dt
    x = x + alpha * (u - x)
    return x, t


def update(P, q, r):
    P = P + q
    K = P / (P + r)
    P = P - K * P
    return P


def line_of(function, text):
    """The name of a line of this file that a function has."""
    code = function.__code__
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    number = next(k for k in range(code.co_firstlineno, len(lines)) if text in lines[k]) + 1
    return f"test_mixed_types.py:{number}"


def kernel_of(project):
    return project.files[project.c_file].split(f"{project.name}_kernel(", 1)[1].split("}")[0]


def test_fields_and_lines_are_double():
    names = ["t", line_of(step, "t = t + dt")]
    project = arc.codegen(step, EXAMPLE, float_type=np.float32, double=names, **STEP)
    header = project.files["step.h"]
    assert header.count("double t;") == 2 and header.count("float x;") == 2
    text = kernel_of(project)
    assert "out_t[0] = t + t" in text and "const float" in text
    assert text.count("double") == 4  # t in and out, and dt where it is added


@requires_compiler
@pytest.mark.parametrize(
    "names",
    [
        ["t"],
        ["t", "x"],
        [line_of(step, "alpha *")],
        ["argument t", f"{line_of(step, 't = t + dt')} (t)"],
    ],
)
def test_the_c_code_has_the_bits_of_the_mixed_program(names):
    project = arc.codegen(step, EXAMPLE, float_type=np.float32, double=names, **STEP)
    assert project.verify(24).samples == 24


@requires_compiler
def test_loops_tables_and_arrays_are_mixed():
    def model(x, P, table):
        def body(k, P):
            K = P / (P + 0.01)
            return P - K * P

        P = arc.fori_loop(0, 20, body, P)
        y = np.interp(x, np.linspace(0.0, 1.0, 5), table)
        z = np.sum(np.sin(np.arange(80.0) * x)) + np.max(table)
        return P, np.where(y > 1.0, y, z), arc.vmap(np.cos)(table)

    args = (0.3, 1e8, np.arange(5.0) ** 2)
    names = [
        line_of(test_loops_tables_and_arrays_are_mixed, text) for text in ("K = P", "return P")
    ]
    for double in (names, [*names, "P", "y0"], ["table", "x"]):
        project = arc.codegen(model, args, float_type=np.float32, double=double)
        assert project.verify(12).samples == 12


@requires_compiler
def test_it_computes_what_numpy_computes_with_casts():
    names = [line_of(update, "K = P /"), line_of(update, "P = P - K")]
    args = (1e8, 1e-9, 1e-2)
    project = arc.codegen(update, args, float_type=np.float32, double=names, return_names=("P",))
    library = project.load()
    library.init()
    library.step()
    P, r = np.float64(np.float32(1e8) + np.float32(1e-9)), np.float64(np.float32(1e-2))
    assert library.outputs["P"][()] == np.float32(P - P / (P + r) * P)
    single = arc.codegen(update, args, float_type=np.float32, return_names=("P",)).load()
    single.init()
    single.step()
    assert single.outputs["P"][()] == 0.0  # the covariance is lost without double


@requires_compiler
def test_the_report_counts_digits_over_steps_and_its_proposal_mends_them():
    figures = report(step, EXAMPLE, board="host", float_type=np.float32, steps=20_000, **STEP)
    digits = figures.precision
    assert not digits.ok and "after 20,000 steps" in str(digits)
    (time,) = [f for f in digits if "t = t + dt" in f.expression]
    assert "in an integer and multiply" in time.message
    assert "argument t" in digits.double and digits.double_error < digits.rtol
    assert (
        "float32" in str(figures) and "## Digits of step after 20,000 steps" in figures.markdown()
    )
    project = arc.codegen(step, EXAMPLE, float_type=np.float32, double=digits.double, **STEP)
    for code, few in (
        (project, 1e-6),
        (arc.codegen(step, EXAMPLE, float_type=np.float32, **STEP), 1),
    ):
        library = code.load()
        library.init()
        for _ in range(20_000):
            library.step()
            library.carry()
        error = abs(float(library.outputs["t"][()]) - 3620.0) / 3620.0
        assert error < few
    mixed = report(project, board="host", steps=20_000).precision
    assert mixed.dtype == "mixed" and mixed.digits > digits.digits + 0.8
    # What the report said of float32 is what its C code computes.
    (wanted,) = [r for r in digits.results if r.name == "t"]
    assert float(library.outputs["t"][()]) == wanted.computed


@requires_compiler
def test_projects_without_state_are_examined_at_their_example():
    figures = report(update, (1.0, 1e-3, 1e-2), board="host", float_type=np.float32)
    assert figures.precision.ok and "digits of y are right" in str(figures)
    assert report(update, (1.0, 1e-3, 1e-2), board="host").precision is None


def _mixed_and_rounded(seed):
    """Results of a random program with every other line in double: typed, and with roundings."""
    program = generate(seed)
    names = {"np": np, "arc": arc}
    exec(compile(program.source, f"<program {seed}>", "exec"), names)
    compiled, args = arc.compile(names["program"]), tuple(program.inputs.values())
    prepared = prepare(compiled, args, None, "program", Options(), "speed", lines=True)
    recording = prepared.recording
    forms = recording.forms()
    widths = [form.width for form in forms]
    sources = Sources(recording.blocks, [str(k) for k, n in enumerate(widths) for _ in range(n)])
    lines = [s.number for s in sources.listed if s.file][::2]
    mixed = with_double(prepared, [f"<program {seed}>:{n}" for n in lines], None).recording
    samples = [
        np.asarray(x, dtype=DTYPES[spec.code]).reshape(1, *spec.shape)
        for x, spec in zip(args, recording.leaves)
    ]
    kept = {k for k, s in enumerate(sources.listed) if s.number in lines and s.file} | {-1}
    rounded = round_some(recording.blocks, lambda g, node: sources.of(g, node) not in kept)
    typed = Programs(mixed, samples, 1)(mixed.blocks)
    return typed, Programs(recording, samples, 1)(rounded)


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.long) for k in range(6, 60))]
)
def test_types_and_roundings_are_the_same_program(seed):
    """What is examined with roundings is what C computes with types, but for subnormal numbers."""
    with np.errstate(all="ignore"):
        for typed, rounded in zip(*_mixed_and_rounded(seed)):
            if typed.dtype.kind == "f":
                rounded = rounded.astype(typed.dtype)
                small = np.abs(rounded) < 1e-37
                typed, rounded = np.where(small, 0, typed), np.where(small, 0, rounded)
            np.testing.assert_array_equal(typed, rounded)


def test_lines_of_c_are_traced():
    names = ["t", line_of(step, "t = t + dt")]
    options = {"traceability": True}
    project = arc.codegen(
        step, EXAMPLE, float_type=np.float32, double=names, options=options, **STEP
    )
    traced = {line.text for line in traceability_table(project)}
    assert traced == {"t = t + dt", "x = x + alpha * (u - x)"}


def test_what_does_not_fit_is_refused():
    with pytest.raises(CodegenError, match=r"give float_type=np\.float32 too"):
        arc.codegen(step, EXAMPLE, double=["t"], **STEP)
    with pytest.raises(CodegenError, match=r"double names 'v', which is no argument, result or"):
        arc.codegen(step, EXAMPLE, float_type=np.float32, double=["v"], **STEP)
    with pytest.raises(CodegenError, match=r"double names 'model.py:3', where nothing is computed"):
        arc.codegen(step, EXAMPLE, float_type=np.float32, double=["model.py:3"], **STEP)
    with pytest.raises(CodegenError, match="give a list of arguments, results and lines"):
        arc.codegen(step, EXAMPLE, float_type=np.float32, double=[3], **STEP)
    with pytest.raises(CodegenError, match="double"):
        arc.codegen(step, EXAMPLE, float_type=np.float32, double=["t"], target="wasm")
