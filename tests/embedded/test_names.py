"""Names in C: from the user's, ASCII, never reserved, each change reported, clashes refused."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import archimedes as arc
from archimedes.embedded.c_text import RESERVED, Renames, c_identifier

from .running import Steps
from .toolchain import needs


@given(st.text(max_size=20))
def test_every_text_becomes_an_identifier(text):
    name = c_identifier(text)
    assert name.isascii() and name.isidentifier()
    assert name not in RESERVED and "__" not in name and not name.startswith("_")
    assert c_identifier(name) == name, "a name that C can keep is kept"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("x", "x"),
        ("w_B", "w_B"),
        ("lambda_", "lambda_"),
        ("α", "alpha"),
        ("Δv", "Deltav"),
        ("λ", "lambda"),
        ("größe", "grosse"),
        ("v₁", "v1"),
        ("速度", "u901fu5ea6"),
        ("new", "new_"),
        ("double", "double_"),
        ("class", "class_"),
        ("PI", "PI_"),
        ("B1", "B1_"),
        ("__x", "x"),
        ("a  b", "a_b"),
        ("3d", "n3d"),
        ("", "value"),
        ("args[0]", "args_0"),
    ],
)
def test_spelling(name, wanted):
    assert c_identifier(name) == wanted


@arc.struct
class State:
    ω: float
    double: np.ndarray


class Pair(NamedTuple):
    first: float
    second: float


def step(x, int, pair, items):
    return {"ω": x.ω + int, "next": (x.double * pair.first, items[1]), 3: pair.second}


EXAMPLE = (State(1.0, np.arange(3.0)), 2.0, Pair(3.0, 4.0), [5.0, np.array([[6.0, 7.0]])])


@needs("gcc")
def test_names_that_c_cannot_keep_are_mapped_and_reported():
    project = arc.codegen(step, EXAMPLE, name="größer")
    assert project.renamed["x.ω"] == "omega"
    assert project.renamed["x.double"] == "double_"
    assert project.renamed["int"] == "int_"
    assert "x.ω is called omega in C" in repr(project)
    header = project.files[f"{project.name}.h"]
    assert header.isascii()
    assert "omega is x." in header
    assert "    double double_[3];" in header
    outputs = dict(zip([p.access for p in project.model.outputs.members], Steps(project).run()))
    assert outputs["omega"] == 3.0 and outputs["item_3"] == 4.0
    assert outputs["next.item_1"].tolist() == [[6.0, 7.0]]


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (lambda ω, omega: ω + omega, (1.0, 2.0), "ω and omega are both 'omega' in C"),
        (lambda x: x["a b"], ({"a b": 1.0, "a_b": 2.0},), r"x\['a b'\] and x\['a_b'\] are both"),
        (lambda x: {"a": x, "á": x}, (1.0,), "a and á are both 'a' in C"),
    ],
)
def test_clashes(function, args, message):
    with pytest.raises(arc.CodegenError, match=message):
        arc.codegen(function, args, name="f")


def test_names_of_results_may_be_those_of_arguments():
    project = arc.codegen(lambda x, y: (x + y, y), (1.0, 2.0), return_names=("x", "y"), name="f")
    assert [f.name for f in project.model.outputs.struct.fields] == ["x", "y"]


def test_two_results_of_one_name_clash():
    with pytest.raises(arc.CodegenError, match="x and x are both 'x' in C: rename one"):
        arc.codegen(lambda x: (x, x), (1.0,), return_names=("x", "x"), name="f")


@needs("gcc")
@pytest.mark.parametrize("name", ["math", "string", "main", "while", "arc_step", "Arduino"])
def test_names_of_projects_hide_nothing(name):
    project = arc.codegen(lambda x: np.sin(x), (0.5,), name=name, verify=True)
    assert f"{project.name}.h" in project.files
    assert f"{project.name}.h" not in ("math.h", "string.h")
    assert list(project.files).count("main.c") == 1


@needs("gcc")
@pytest.mark.parametrize(
    "names", ["a b c", "t work i", "y0 out_y in_", "arc_sin f_kernel_x memory"]
)
def test_names_of_arguments_never_meet_those_of_the_code(names):
    first, second, third = names.split()
    space: dict = {"np": np}
    exec(f"def f({names.replace(' ', ', ')}): return np.sin({first}) + {second}, {third}", space)
    arc.codegen(space["f"], (0.5, np.ones(3), 2.0), verify=True)


class Outer:
    @arc.struct
    class In:
        a: float
        b: float


def test_types_are_named_after_classes_and_shared():
    def f(x, y, d):
        return Outer.In(x.a + y.b, x.b), {"k": d["k"]}

    args = (Outer.In(1.0, 2.0), Outer.In(3.0, 4.0), {"k": np.ones(2)})
    header = arc.codegen(f, args).files["f.h"]
    assert header.count("} f_outer_in_t;") == 1
    assert "    f_outer_in_t x;\n    f_outer_in_t y;\n    f_d_t d;" in header
    assert "    f_outer_in_t y0;\n    f_d_t y1;" in header

    def g(x):
        return x

    header = arc.codegen(g, (Outer.In(1.0, np.zeros(2)),)).files["g.h"]
    assert "double b[2];" in header

    def h(x, y):
        return x.a + y.a

    two_shapes = (Outer.In(1.0, 2.0), Outer.In(1.0, np.zeros(3)))
    header = arc.codegen(h, two_shapes).files["h.h"]
    assert "} h_outer_in_t;" in header and "} h_y_t;" in header


def test_a_class_cannot_take_the_name_of_the_inputs():
    @arc.struct
    class Out:
        a: float

    header = arc.codegen(lambda x: x.a, (Out(1.0),), name="f").files["f.h"]
    assert "} f_x_t;" in header and header.count("} f_out_t;") == 1


def test_renames_lists_only_changes():
    renames = Renames()
    assert renames.members(["x", "int"], ["p.x", "p.int"], "p") == ["x", "int_"]
    assert renames.changed == {"p.int": "int_"}


@needs("gcc", "g++")
def test_every_reserved_word_as_a_field(tmp_path):
    """All of them in one struct, compiled as C and as C++ after the headers they come from."""
    words = sorted(RESERVED)
    project = arc.codegen(lambda d: sum(d.values()), (dict.fromkeys(words, 1.0),), name="words")
    project.write(tmp_path)
    includes = ["-include", "complex.h", "-include", "math.h", "-include", "stdio.h"]
    commands = (["gcc", "-std=gnu11", *includes], ["g++", "-x", "c++", "-std=c++17"])
    for command in commands:
        done = subprocess.run(
            [*command, "-fsyntax-only", str(tmp_path / "words.c")], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
