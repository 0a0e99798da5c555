"""The text: names, layout, constants, determinism, comments, workspace, errors."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.c import Argument, assemble, render
from archimedes.backends.c.spelling import literal, table_item
from archimedes.errors import ArchimedesError, CodegenError
from archimedes.graph import B8, CODES, F32, F64, I64, Graph, Scan

from ..programs.branches import calls
from ..programs.loops import many_carried, nested
from .checking import STRICT, compile_c

ONE_IN, ONE_OUT = [Argument("x", F64)], [Argument("y", F64)]


def square() -> Graph:
    g = Graph()
    x = g.input(F64)
    g.outputs = [g.emit(CODES["mul"], x, x)]
    return g


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, F64, "0.1"),
        (-2.0, F64, "(-2.0)"),
        (-0.0, F64, "(-0.0)"),
        (1e22, F64, "1e+22"),
        (math.inf, F64, "ARC_INF"),
        (-math.inf, F32, "(-ARC_INFF)"),
        (math.nan, F64, "ARC_NAN"),
        (0.1, F32, "0.1f"),
        (16777216.0, F32, "1.6777216e+07f"),
        (1e20, F32, "1e+20f"),
        (5e-324, F64, "0x0.0000000000001p-1022"),
        (3, I64, "INT64_C(3)"),
        (-3, I64, "(-INT64_C(3))"),
        (-(2**63), I64, "INT64_MIN"),
        (True, B8, "true"),
    ],
)
def test_constants(value, dtype, text):
    assert literal(value, dtype) == text


def test_constants_keep_their_bits(tmp_path: Path):
    """Every constant comes back from two compilers with the bits it had."""
    rng = np.random.default_rng(1)
    doubles = np.concatenate([rng.integers(0, 2**63, 400).view(np.float64), [5e-324, -0.0, 1e308]])
    singles = np.concatenate(
        [rng.integers(0, 2**31, 400).astype(np.uint32).view(np.float32), np.float32([1e-45, -0.0])]
    )
    doubles, singles = doubles[doubles == doubles], singles[singles == singles]
    text = assemble([])
    for name, kind, values, dtype in [("d", "double", doubles, F64), ("f", "float", singles, F32)]:
        items = ", ".join(table_item(x, dtype) for x in values.tolist())
        text += f"const {kind} {name}[{len(values)}] = {{{items}}};\n"
    compile_c(text, tmp_path, *STRICT, "-std=c99", "-shared", "-fPIC", "-o", "unit.so")
    library = ctypes.CDLL(str(tmp_path / "unit.so"))
    for name, kind, values in [("d", ctypes.c_double, doubles), ("f", ctypes.c_float, singles)]:
        found = (kind * len(values)).in_dll(library, name)
        assert bytes(found) == values.tobytes()


def test_layout_of_a_function():
    g = Graph()
    ids = [g.input(d) for d in (F64, F64, F64, I64, B8, F32)]
    total = g.emit(CODES["add"], ids[0], g.emit(CODES["mul"], ids[1], ids[2]))
    g.outputs = [total, ids[3]]
    inputs = [Argument("t", F64), Argument("x", F64, (2,)), Argument("k", I64)]
    inputs += [Argument("none", F64, (0, 3)), Argument("on", B8), Argument("single", F32)]
    outputs = [Argument("sum", F64), Argument("count", I64)]
    source = render(g, "f", inputs=inputs, outputs=outputs)
    assert source.prototype == (
        "void f(double t, const double *x, int64_t k, bool on, float single, "
        "double *sum, int64_t *count)"
    )
    assert source.text.splitlines()[2:] == [
        "    (void)on;",
        "    (void)single;",
        "    const double t1 = x[0] * x[1];",
        "    sum[0] = t + t1;",
        "    count[0] = k;",
        "}",
    ]
    assert source.helpers == {} and source.types == "" and source.workspace_bytes == 0
    assert dict(source.stats.operations) == {"mul": 1, "add": 1}


def test_narrow_integers_and_floats(tmp_path: Path):
    """int32_t outside, int64_t inside; results wrap."""
    g = Graph()
    k = g.input(I64)
    array = g.add_inputs(I64, 3)
    big = g.emit(CODES["mul"], k, g.const(2**20, I64))
    g.outputs = [big, g.emit(CODES["quotient"], big, g.const(2**20, I64)), int(array[1])]
    inputs = [Argument("k", I64), Argument("a", I64, (3,))]
    source = render(g, "f", inputs=inputs, outputs=[Argument("y", I64, (3,))], int_type="int32_t")
    assert source.prototype == "void f(int32_t k, const int32_t *a, int32_t *y)"
    compile_c(str(source), tmp_path, *STRICT, "-std=c99", "-shared", "-fPIC", "-o", "unit.so")
    library = ctypes.CDLL(str(tmp_path / "unit.so"))
    out, given = (ctypes.c_int32 * 3)(), (ctypes.c_int32 * 3)(7, -8, 9)
    library.f(ctypes.c_int32(5000), given, out)
    assert list(out) == [(5000 * 2**20 + 2**31) % 2**32 - 2**31, 5000, -8]


@pytest.mark.long
def test_the_same_bytes_in_every_process():
    code = (
        "from tests.programs.catalogue import programs\n"
        "from tests.c.checking import Rendered\n"
        "import hashlib\n"
        "texts = [str(Rendered(c, 'double', part=40).source) for c in programs()]\n"
        "print(hashlib.sha256(''.join(texts).encode()).hexdigest())"
    )
    run = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert run[0] == run[1] and len(run[0]) == 65


def test_functions_of_one_file_share_helpers(tmp_path: Path):
    g = Graph()
    x = g.input(F64)
    g.outputs = [g.emit(CODES["cos"], x)]
    h = Graph()
    h.outputs = [h.emit(CODES["tan"], h.input(F64))]
    sources = [render(a, n, inputs=ONE_IN, outputs=ONE_OUT) for a, n in ((g, "f"), (h, "g"))]
    text = assemble(sources)
    assert text.count("arc_huge_angle(double") == 1
    assert "arc_exp" not in text
    compile_c(text, tmp_path, *STRICT, "-std=c99", "-c")


def test_sine_and_cosine_of_one_angle_are_one_call():
    def turn(a):
        return np.array([np.cos(a), np.sin(a), np.cos(2.0 * a)])

    graph = arc.compile(turn).graph(0.1)
    source = render(graph, "turn", inputs=ONE_IN, outputs=[Argument("y", F64, (3,))])
    assert source.text.count("arc_sincos(") == 1
    assert source.text.count("arc_cos(") == 1
    assert "arc_sin(" not in source.text


def test_workspace_holds_all_arrays(tmp_path: Path):
    g = many_carried(70)
    inputs = [Argument("x", F64, (70,))]
    outputs = [Argument("y", F64, (140,))]
    source = render(g, "f", inputs=inputs, outputs=outputs, scratch="workspace", part=20)
    assert source.workspace_type == "f_work"
    assert source.prototype.endswith("double *y, f_work *work)")
    assert "[" not in "".join(x for x in source.text.splitlines() if x.startswith("    double"))
    text = str(source) + f'_Static_assert(sizeof(f_work) == {source.workspace_bytes}, "size");'
    compile_c(text, tmp_path, *STRICT, "-std=c11", "-c")
    plain = render(square(), "f", inputs=ONE_IN, outputs=ONE_OUT, scratch="workspace")
    assert plain.workspace_type == "" and "work" not in plain.prototype


def test_results_of_a_scan_go_straight_to_the_caller():
    g = Graph()
    body = Graph()
    c = body.input(F64)
    new = body.emit(CODES["mul"], c, body.const(0.5))
    body.outputs = [new, new]
    g.outputs = g.region(Scan([g.input(F64)], body, 50, 1, 0)).tolist()[1:]
    outputs = [Argument("y", F64, (50,))]
    source = render(g, "f", inputs=ONE_IN, outputs=outputs)
    assert "y[i1] = t1;" in source.text
    assert source.stats.operations == {"mul": 50}
    assert " s1[" not in source.text


def test_arguments_may_have_the_names_that_functions_use(tmp_path: Path):
    g = nested()
    names = ["t1", "v1", "i1", "s1", "work", "memory", "a1"]
    inputs = [Argument(n, F64) for n in names]
    inputs.append(Argument("rest", F64, (len(g.inputs) - len(names),)))
    outputs = [Argument("t_1", F64, (len(g.outputs),))]
    for options in ({}, {"scratch": "workspace"}, {"part": 3}):
        source = render(g, "f", inputs=inputs, outputs=outputs, **options)
        compile_c(str(source), tmp_path, *STRICT, "-std=c99", "-c")


def test_comments_say_where_lines_come_from():
    g = calls()
    marked = {id(g): "model.py:3"}

    def lines(graph: Graph, node: int) -> str:
        return marked.get(id(graph), "step.py:7 */" if graph.op[node] == CODES["cos"] else "")

    for float_type in ("double", "float"):
        inputs = [Argument("x", F64), Argument("y", F64)]
        outputs = [Argument("p", F64), Argument("q", F64)]
        source = render(g, "f", inputs=inputs, outputs=outputs, lines=lines, float_type=float_type)
        text = source.text.splitlines()
        assert source.trace
        for number, note in source.trace:
            assert text[number - 1].strip() == f"/* {note.replace('*/', '* /')} */"
        assert {note for _, note in source.trace} == {"model.py:3", "step.py:7 */"}
        plain = render(g, "f", inputs=inputs, outputs=outputs, float_type=float_type).text
        assert [x for x in text if "/*" not in x] == plain.splitlines()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"float_type": "half"}, "float_type='half': choose from double, float"),
        ({"int_type": "int"}, "choose from int64_t, int32_t"),
        ({"scratch": "heap"}, "choose from stack, workspace"),
        ({"name": "2f"}, "'2f' is not a name in C"),
        ({"inputs": [Argument("größe", F64)]}, "use ASCII letters"),
        ({"inputs": [Argument("arc_sin", F64)]}, "may clash .*rename"),
        ({"inputs": [Argument("f_table1", F64)]}, "may clash"),
        ({"inputs": [Argument("y", F64)]}, "y: used for two things"),
        ({"inputs": [Argument("x", F64, (2,))]}, "describe 2 scalars, which are not the 1"),
        ({"outputs": [Argument("y", F32)]}, "in number and dtypes"),
    ],
)
def test_misuse(options: dict, message: str):
    settings = {"name": "f", "inputs": ONE_IN, "outputs": ONE_OUT, **options}
    with pytest.raises(CodegenError, match=message) as caught:
        render(square(), settings.pop("name"), **settings)
    assert isinstance(caught.value, ArchimedesError)
