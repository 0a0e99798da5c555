"""What codegen takes and returns: structs, values, comments, macros, templates, verification."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archimedes as arc
from archimedes.embedded.c_structs import scalars
from archimedes.embedded.c_text import ascii_text, block_comment
from archimedes.embedded.verification import same_bits
from archimedes.graph.dtypes import F64, I64

from .algorithms import CASES
from .running import Steps, assert_same_bits
from .toolchain import needs


@arc.struct
class Vehicle:
    mass: float = arc.field(units="kg")
    inertia: np.ndarray = arc.field(units="kg·m²")
    name: str = arc.field(static=True, default="glider")


def momentum(vehicle, w):
    return vehicle.inertia @ w, vehicle.mass


MATRIX = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ARGS = (Vehicle(2.5, MATRIX), np.array([1.0, 10.0, 100.0]))


def test_the_header_says_shapes_units_and_descriptions():
    header = arc.codegen(
        momentum,
        ARGS,
        return_names=("h", "m"),
        input_descriptions={
            "vehicle": "the glider */",
            "vehicle.mass": "without pilot",
            "w": "rate",
        },
        output_descriptions={"h": "angular momentum"},
    ).files["momentum.h"]
    assert "double mass;          /* [kg] without pilot */" in header
    assert "double inertia[2][3]; /* (2 x 3) [kg*m^2] */" in header
    assert "momentum_vehicle_t vehicle; /* the glider * / */" in header
    assert "double w[3];                /* (3) rate */" in header
    assert "double h[2]; /* (2) angular momentum */" in header
    assert '#define MOMENTUM_FIXED_vehicle_name "glider"' in header
    assert "#define MOMENTUM_SIZE_IN_vehicle 7" in header
    assert "#define MOMENTUM_SIZE_OUT_h 2" in header
    assert header.isascii() and max(map(len, header.splitlines())) <= 100


@needs("gcc")
def test_matrices_are_row_major():
    """C's element [i][j] is Python's [i, j]: init and step."""
    steps = Steps(arc.codegen(momentum, ARGS))
    assert steps.library.inputs.data["vehicle"]["inertia"][0, 1, 0] == 4.0
    assert steps.library.inputs.data["vehicle"]["inertia"][0, 0, 2] == 3.0
    assert steps.run()[0].tolist() == [321.0, 654.0]


@needs("gcc")
@pytest.mark.parametrize(
    "result",
    [
        lambda x: x,
        lambda x: (x,),
        lambda x: [x, x[0]],
        lambda x: {"b": x, "a": {"c": x[0]}},
        lambda x: (x, None, ()),
        lambda x: (x, 3.0, np.arange(2), True),
        lambda x: (x[:0], x),
        lambda x: Vehicle(x[0], np.stack([x, x])),
    ],
)
def test_results_of_every_structure(result):
    project = arc.codegen(result, (np.array([1.0, -2.0, 3.5]),), name="f", verify=True)
    leaves = [np.asarray(x) for x in arc.tree.leaves(result(np.array([1.0, -2.0, 3.5])))]
    for ours, theirs in zip(Steps(project).run(), [x for x in leaves if x.size], strict=True):
        assert_same_bits(ours, theirs)


@needs("gcc")
@pytest.mark.parametrize("scratch", ["stack", "workspace"])
def test_no_inputs_and_no_outputs(scratch):
    keywords = {"options": {"scratch": scratch}, "verify": True}
    assert (
        "unsigned char unused;" in arc.codegen(lambda: 3.0, (), name="f", **keywords).files["f.h"]
    )
    arc.codegen(lambda x: (), (1.0,), name="f", **keywords)
    arc.codegen(lambda x: x, (np.zeros((2, 0)),), name="f", **keywords)


@needs("gcc")
def test_every_way_to_give_a_function():
    class Model:
        gain = 3.0

        @arc.compile
        def compiled(self, x):
            return self.gain * x

        def plain(self, x):
            return self.gain * x

    def scaled(x, k=2.0, *, offset=0.0):
        return k * x + offset

    model = Model()
    cases = [
        (model.plain, (1.5,), {}, "plain", 4.5),
        (scaled, (1.5,), {}, "scaled", 3.0),
        (scaled, (1.5, 4.0), {"kwargs": {"offset": 1.0}}, "scaled", 7.0),
        (functools.partial(scaled, k=5.0), (1.5,), {}, "scaled", 7.5),
        (arc.compile(scaled), (1.5,), {}, "scaled", 3.0),
        (arc.compile(scaled, name="other", static_argnames="k"), (1.5, 4.0), {}, "other", 6.0),
        (scaled, (1.5, 4.0), {"static_argnums": 1}, "scaled", 6.0),
        (arc.grad(lambda x: x**2), (1.5,), {"name": "slope"}, "slope", 3.0),
    ]
    for function, args, keywords, name, wanted in cases:
        project = arc.codegen(function, args, verify=True, **keywords)
        assert project.name == name
        assert Steps(project).run()[0] == wanted


def test_return_names_of_a_compiled_function_are_used():
    f = arc.compile(lambda x: (x, -x), return_names=("up", "down"), name="f")
    assert [p.access for p in arc.codegen(f, (1.0,)).model.outputs.members] == ["up", "down"]
    named = arc.codegen(f, (1.0,), return_names=("a", "b"))
    assert [p.access for p in named.model.outputs.members] == ["a", "b"]


@needs("gcc")
def test_parameters_are_constants_of_the_c_file():
    project = arc.codegen(momentum, ARGS, parameters="vehicle", verify=True)
    assert "static const momentum_params_t momentum_params = {" in project.files["momentum.c"]
    assert [f.name for f in project.model.inputs.struct.fields] == ["w"]
    assert Steps(project).run()[0].tolist() == [321.0, 654.0]


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = arc.codegen(momentum, ARGS)
    assert project.paths == () and list(tmp_path.iterdir()) == []
    assert "not written" in repr(project)
    written = arc.codegen(momentum, ARGS, output_dir="out")
    assert {p.name for p in written.paths} == set(written.files)
    assert all(p.read_text() == written.files[p.name] for p in written.paths)


@needs("gcc")
def test_inf_and_nan_in_the_code_are_no_problem():
    def guarded(x):
        return np.where(x > 0.0, x, np.inf), np.where(x > 0.0, np.nan, -np.inf)

    for float_type in (np.float64, np.float32):
        project = arc.codegen(guarded, (1.0,), float_type=float_type, verify=True)
        steps = Steps(project)
        steps.set("x", -1.0)
        assert [float(x) for x in steps.run()] == [np.inf, -np.inf]


LEAVES = st.sampled_from(
    [1.5, 2, np.bool_(True), np.arange(3.0), np.arange(6.0).reshape(3, 2), np.arange(4)]
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(["a", "b", "for", "β"]), inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@needs("gcc")
@settings(max_examples=15)
@given(TREES, TREES)
def test_any_tree_goes_in_and_out(first, second):
    """Structs lie in memory as ctypes says they do, whatever is in them."""
    project = arc.codegen(lambda x, y: (y, x), (first, second), name="f", verify=True)
    leaves = [np.asarray(leaf) for leaf in arc.tree.leaves((second, first))]
    for ours, theirs in zip(Steps(project).run(), leaves, strict=True):
        assert_same_bits(ours, theirs)


# ---- values -------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_literals_of_doubles_read_back(value):
    assert float(_hex(scalars(float, int).literal(value, F64))) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_literals_of_floats_read_back(value):
    text = scalars(np.float32, int).literal(value, F64)
    assert text.endswith("f")
    assert np.float32(_hex(text[:-1])) == np.float32(value)


def _hex(text: str) -> float:
    return float.fromhex(text) if "0x" in text else float(text)


@needs("gcc")
def test_extreme_values_go_through_init():
    """The compiler reads every literal back as the same bits."""
    numbers = [0.0, -0.0, 5e-324, -2.5e-310, 1.7976931348623157e308, 0.1, 1 / 3, 2.0**53 + 1, 1e22]
    ints = [0, -1, 2**63 - 1, -(2**63), 2**31, -(2**31) - 1]
    args = (np.array(numbers), np.array(ints), np.array([True, False]))
    project = arc.codegen(lambda x, n, b: (x, n, b), args, name="f", verify=True)
    for ours, given_ in zip(Steps(project).run(), args):
        assert_same_bits(ours, given_)
    single = np.array([1e-45, -1e-40, 3.4028235e38, 0.1, 16777217.0, -0.0])
    project = arc.codegen(lambda x: x, (single,), name="f", float_type=np.float32, verify=True)
    assert_same_bits(Steps(project).run()[0], single.astype(np.float32))
    narrow = np.array([2**31 - 1, -(2**31), 0])
    project = arc.codegen(lambda x: x, (narrow,), name="f", int_type=np.int32, verify=True)
    assert_same_bits(Steps(project).run()[0], narrow.astype(np.int32))


def test_literals_of_integers():
    types = scalars(float, np.int32)
    assert types.literal(-(2**31), I64) == "(-INT32_C(2147483647) - 1)"
    with pytest.raises(arc.CodegenError, match="does not fit in int32_t"):
        types.literal(2**31, I64)


@pytest.mark.long
@given(st.text())
def test_comments_end_where_they_should(text):
    comment = block_comment([text])
    assert comment.isascii()
    assert comment.count("*/") == 1 and comment.endswith("*/") and comment.count("/*") == 1
    assert "??" not in ascii_text(text)


# ---- verification -------------------------------------------------------------------------------


@needs("gcc")
def test_verification_finds_a_wrong_line():
    project = arc.codegen(lambda x: x * 2.0 + 1.0, (1.0,), name="f")
    model = project.model
    wrong = dataclasses.replace(model.source, text=model.source.text.replace("2.0", "2.5"))
    broken = dataclasses.replace(project, model=dataclasses.replace(model, source=wrong))
    with pytest.raises(arc.CodegenError, match=r"y is 3\.5 in C but 3\.0 in Python, for x=1\.0"):
        broken.verify()


@needs("gcc")
def test_verification_finds_code_that_does_not_compile():
    project = arc.codegen(lambda x: x * 2.0, (1.0,), name="f")
    model = project.model
    wrong = dataclasses.replace(model.source, text=model.source.text + "#error nonsense\n")
    broken = dataclasses.replace(project, model=dataclasses.replace(model, source=wrong))
    with pytest.raises(arc.CodegenError, match=r"does not compile f\.c:\n.*nonsense"):
        broken.verify()


@needs("gcc")
def test_verification_finds_contraction():
    """The one flag that matters: with fused multiply-adds the bits differ."""
    project = arc.codegen(lambda a, b, c: a * b + c, (0.1, 0.2, 0.3), name="f", verify=True)
    assert project.verification.samples == 48
    assert project.verify(samples=5, seed=3).samples == 5


def test_same_bits():
    a = np.array([0.0, np.nan, 1.0, np.inf])
    b = np.array([-0.0, -np.nan, 1.0, -np.inf])
    assert same_bits(a, b).tolist() == [False, True, True, False]
    assert same_bits(np.array([1, 2]), np.array([1, 3])).tolist() == [True, False]


# ---- templates ----------------------------------------------------------------------------------


def test_templates_of_a_user(tmp_path):
    folder = tmp_path / "mine"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md.in").write_text("@{name} @{version}: hash @{hash}, costs $5, a@b.c\n")
    (folder / "src" / "@{name}_task.c.in").write_text('#include "../@{name}.h" /* @@{kept} */\n')
    (folder / "ignored.txt").write_text("@{unknown}")
    project = arc.codegen(momentum, ARGS, template=folder)
    wanted = f"momentum 1.0.0: hash {project.model.digest}, costs $5, a@b.c\n"
    assert project.files["README.md"] == wanted
    assert project.files["src/momentum_task.c"] == '#include "../momentum.h" /* @{kept} */\n'
    assert "Makefile" in project.files and "ignored.txt" not in project.files
    (folder / "Makefile.in").write_text("# mine\n")
    assert arc.codegen(momentum, ARGS, template=folder).files["Makefile"] == "# mine\n"


def test_mistakes_in_templates(tmp_path):
    (tmp_path / "x.txt.in").write_text("one\n@{nmae}\n")
    with pytest.raises(arc.CodegenError, match=r"x\.txt\.in:2: the template asks for @\{nmae\}"):
        arc.codegen(momentum, ARGS, template=tmp_path)
    (tmp_path / "x.txt.in").rename(tmp_path / "x.txt")
    with pytest.raises(arc.CodegenError, match=r"holds no \*\.in files"):
        arc.codegen(momentum, ARGS, template=tmp_path)
    (tmp_path / "@{name}.c.in").write_text("")
    with pytest.raises(arc.CodegenError, match=r"makes momentum\.c, which is the name of a gener"):
        arc.codegen(momentum, ARGS, template=tmp_path)


@pytest.mark.parametrize("target", ["c", "arduino", "cortex-m"])
def test_every_file_is_signed_and_complete(target):
    case = CASES["ekf"]
    project = arc.codegen(case.function, case.args, target=target, **case.keywords)
    for name, text in project.files.items():
        assert "Generated by Archimedes" in "".join(text.splitlines()[:3]), name
        assert "@{" not in text and text.endswith("\n"), name
        assert text.isascii(), name


def test_debug_prints_what_was_generated(capsys):
    project = arc.codegen(lambda x, k: k * x, (np.zeros(2), 3.0), name="gain", debug=True)
    assert capsys.readouterr().out == f"{project}\n"
    arc.codegen(lambda x, k: k * x, (np.zeros(2), 3.0), name="gain")
    assert capsys.readouterr().out == ""
