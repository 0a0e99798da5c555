"""The catalogue as C, and what the text of regions looks like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archimedes.backends.c import Argument, render
from archimedes.errors import CodegenError
from archimedes.graph import CODES, F64, Call, Graph, Host, Scan

from ..programs.branches import calls
from ..programs.catalogue import programs
from ..programs.loops import maps, unused_parts
from ..programs.program import Program
from .checking import COMPILERS, FLOATS, LEVELS, Bundle, needs

OPTIONS = [
    {},
    {"scratch": "workspace"},
    {"part": 5},
    {"part": 5, "scratch": "workspace"},
    {"optimize": "size"},
    {"optimize": "smallest"},
    {"optimize": "smallest", "part": 5, "scratch": "workspace"},
]


@pytest.mark.long_cases("double-{'*", "float*")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("float_type", FLOATS)
def test_regions(float_type: str, options: dict, tmp_path: Path):
    made = Bundle(programs(), float_type, **options)
    if options:
        made.check(tmp_path, "gcc", "-O1")
        return
    for compiler in COMPILERS:
        needs(compiler)
        for level in LEVELS:
            made.check(tmp_path, compiler, level)


def test_backwards_where_nothing_depends_on_the_step(tmp_path: Path):
    """No counter is declared that nothing reads."""
    body = Graph()
    carry, slice_, times = body.input(F64), body.input(F64), CODES["mul"]
    body.outputs = [body.emit(times, carry, slice_)]
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    g.outputs = [int(g.region(Scan([x, y, y, y], body, 3, 1, 1, reverse=True))[0])]
    made = Bundle([Program("backwards", g, [np.array([2.0]), np.array([3.0])])])
    made.check(tmp_path, "gcc", "-O2")


def text_of(g: Graph, **options) -> str:
    inputs = [Argument(f"x{k}", d) for k, d in enumerate(g.input_dtypes)]
    outputs = [Argument(f"y{k}", d) for k, d in enumerate(g.output_dtypes)]
    return render(g, "f", inputs=inputs, outputs=outputs, **options).text


def test_calls_share_a_function():
    text = text_of(calls())
    assert text.count("static void f_call1(") == 1
    assert text.count("    f_call1(") == 10
    assert "f_call2" not in text


def called(times: int, loops: int) -> Graph:
    """Loops, each with the same body, that call one function some times a step."""
    inner = Graph()
    x = inner.input(F64)
    inner.outputs = [inner.emit(CODES["sin"], x)]
    body = Graph()
    x = body.input(F64)
    for _ in range(times):
        x = int(body.region(Call([x], inner))[0])
    body.outputs = [x]
    g = Graph()
    given = [g.input(F64) for _ in range(loops)]
    g.outputs = [int(g.region(Scan([x], body, 5, 1, 0))[0]) for x in given]
    return g


@pytest.mark.parametrize(("times", "loops"), [(1, 1), (2, 1), (1, 2)])
def test_a_function_called_in_one_place_is_written_there(times: int, loops: int):
    text = text_of(called(times, loops))
    assert text.count("arc_sin(") == 1
    assert ("f_call1(" in text) == (times * loops > 1)


def test_loops_are_loops():
    long, short = text_of(maps(300)), text_of(maps(3))
    assert long.count("arc_sin(") == short.count("arc_sin(") == 1


def test_what_nothing_needs_is_not_computed():
    text = text_of(unused_parts())
    assert text.count("arc_exp(") == 4  # one of two slices a step
    assert "x9" in text and "(void)x9;" in text


def test_a_host_callback_is_refused_with_the_line():
    g = Graph()
    x = g.input(F64)
    host = Host([x], lambda values: values, (F64,), "read_sensor", line="model.py:12")
    g.outputs = g.region(host).tolist()
    with pytest.raises(CodegenError, match=r"read_sensor \(model.py:12\).*write the callback"):
        text_of(g)
