"""Every misuse is a CodegenError that says what to do."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import discretize, odeint

from .running import Steps
from .toolchain import needs


@arc.struct
class Gains:
    kp: np.ndarray
    ki: float


def scale(x, k):
    return k * x


X = np.ones(3)


def calls_python(x):
    return arc.callback(lambda v: np.sort(v), np.zeros(3), x)  # the line that is named


def loops_long(x):
    return arc.while_loop(lambda v: v < 1e9, lambda v: v * 1.0001, x, max_steps=1_000_000)


def in_a_scan(x):
    return arc.scan(lambda c, _: (calls_python(c), None), x, length=3)[0]


def solves_adaptively(x):
    return odeint(lambda t, x: -x, (0.0, 1.0), x)  # the line that is named


def returns_text(x):
    return x, "ok"


#: What is wrong, how codegen is called, and what the error says.
MISUSES = {
    "a callback": (calls_python, (X,), {}, "calls the Python function '<lambda>' through"),
    "a callback in a loop": (in_a_scan, (X,), {}, "which does not exist on the target: write it"),
    "a loop without a useful bound": (loops_long, (1.0,), {}, "up to 1,000,000 iterations"),
    "an adaptive solver": (solves_adaptively, (X,), {}, "with steps of adaptive length"),
    "no function": (X, (X,), {}, "codegen needs a function, got ndarray"),
    "no tuple": (scale, X, {}, r"args is a ndarray: give a tuple .* one argument is args=\(x,\)"),
    "too few arguments": (scale, (X,), {}, "the example arguments do not fit: scale.*missing"),
    "a type for an array": (scale, (np.ndarray, 1.0), {}, "shape of argument x is unknown"),
    "an object for an array": (scale, (object(), 1.0), {}, "its example is a object: give an arr"),
    "a missing field": (
        lambda g: g.ki,
        (Gains(object, 1.0),),
        {"name": "f"},
        r"shape of argument g\.kp is unknown",
    ),
    "narrow integers": (scale, (X.astype(np.int32), 1.0), {}, "x has dtype int32, which cannot"),
    "complex numbers": (scale, (X, 1j), {}, "k is complex|shape of argument k"),
    "a branch on values": (lambda x: x if x > 0 else -x, (1.0,), {"name": "f"}, "np.where"),
    "a text in the result": (returns_text, (X,), {}, r"result\[1\] is a str, which has no form"),
    "a lambda without name": (lambda x: x, (X,), {}, "a lambda has no name .* give name="),
    "a wrong float type": (scale, (X, 1.0), {"float_type": np.float16}, "float_type=.*use float"),
    "a text as float type": (scale, (X, 1.0), {"float_type": "quad"}, "float_type='quad' has no C"),
    "a wrong int type": (scale, (X, 1.0), {"int_type": np.int8}, "int_type=.*use int, np.int64"),
    "an unknown target": (scale, (X, 1.0), {"target": "avr"}, "target='avr' is not one of 'c'"),
    "an unknown option": (
        scale,
        (X, 1.0),
        {"options": {"scrach": "stack"}},
        "unknown key 'scrach'; did you mean 'scratch'?",
    ),
    "a wrong scratch": (scale, (X, 1.0), {"options": {"scratch": "heap"}}, "'stack', 'workspace'"),
    "a wrong version": (
        scale,
        (X, 1.0),
        {"options": {"version": 'a"b'}},
        "must be letters",
    ),
    "a nan default": (scale, (np.array([1.0, np.nan, 2.0]), 1.0), {}, r"x\[1\] = nan is not a fin"),
    "an inf parameter": (
        scale,
        (X, np.inf),
        {"parameters": "k"},
        "k = inf is not a finite default",
    ),
    "a default beyond float": (
        scale,
        (X, 1e60),
        {"float_type": np.float32},
        "k = 1e.60 is not a f",
    ),
    "an int beyond int32": (
        scale,
        (X, np.int64(2**40)),
        {"int_type": np.int32},
        "k = 1099511627776 does not fit in int32_t: leave int_type=int",
    ),
    "an unknown parameter": (scale, (X, 1.0), {"parameters": ("q",)}, r"there are \['x', 'k'\]"),
    "a static parameter": (
        scale,
        (X, 1.0),
        {"parameters": "k", "static_argnames": "k"},
        r"'k', which is not a traced argument of scale\(\): there are \['x'\]",
    ),
    "an unknown static argument": (scale, (X, 1.0), {"static_argnames": "q"}, "'q', which is not"),
    "an unknown state": (scale, (X, 1.0), {"state": "v"}, "state names 'v', which is not an input"),
    "a state without result": (scale, (X, 1.0), {"state": "x"}, "'x', which is not a result"),
    "a state of another shape": (
        lambda x: np.concatenate([x, x]),
        (X,),
        {"name": "f", "state": {"x": "y"}},
        r"state x is float64\[3\] but the result y is float64\[6\]",
    ),
    "a state of another dtype": (
        lambda x: x + 0.5,
        (np.arange(3),),
        {"name": "f", "state": {"x": "y"}},
        r"state x is int64\[3\] but the result y is float64\[3\]: give an example of the dtype",
    ),
    "too many return names": (
        scale,
        (X, 1.0),
        {"return_names": ("a", "b")},
        "returns 1 values but",
    ),
    "a description of nothing": (
        scale,
        (X, 1.0),
        {"input_descriptions": {"z": "?"}},
        r"input_descriptions names 'z', which is not part of the inputs: there are \['k', 'x'\]",
    ),
    "descriptions in a list": (
        scale,
        (X, 1.0),
        {"output_descriptions": ["y"]},
        "output_descriptions is a list: give a dict",
    ),
    "no such template": (
        scale,
        (X, 1.0),
        {"template": "no/such"},
        "is not a folder, with",
    ),
}


@pytest.mark.parametrize("what", MISUSES)
def test_misuse(what):
    function, args, keywords, message = MISUSES[what]
    with pytest.raises(arc.CodegenError, match=message):
        arc.codegen(function, args, **keywords)


@pytest.mark.parametrize("function", [calls_python, in_a_scan, loops_long, solves_adaptively])
def test_the_line_is_named(function):
    """The user's file, line number and text, however deep it is."""
    with pytest.raises(arc.CodegenError) as caught:
        arc.codegen(function, (X if function is not loops_long else 1.0,))
    place = re.search(rf"{re.escape(__file__)}:(\d+), in (\w+)\n    (.*)", str(caught.value))
    assert place is not None, caught.value
    line = Path(__file__).read_text().splitlines()[int(place[1]) - 1]
    assert line.strip() == place[3]
    assert any(name in line for name in ("arc.callback(", "arc.while_loop(", "odeint("))


def test_long_loops_on_request():
    arc.codegen(loops_long, (1.0,), options={"max_iterations": 2_000_000})


@needs("gcc")
def test_adaptive_solvers_on_request_and_fixed_steps_always():
    arc.codegen(solves_adaptively, (X,), options={"adaptive": True}, verify=True)
    step = discretize(lambda t, x, u: u - x, dt=0.1, method="rk4")
    project = arc.codegen(step, (0.0, X, 0.5 * X), name="step", verify=True)
    # Four terms of the exponential series: the fixed step is Runge and Kutta's.
    gain = 1 - 0.1 + 0.1**2 / 2 - 0.1**3 / 6 + 0.1**4 / 24
    np.testing.assert_allclose(Steps(project).run()[0], 0.5 + 0.5 * gain * X, rtol=1e-14)


def test_infinite_defaults_on_request():
    project = arc.codegen(scale, (X, -np.inf), options={"nonfinite": True}, verify=True)
    assert "-ARC_INF" in project.files["scale.c"]


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(arc.CodegenError, match=r"cannot write to output_dir=.*Permission denied"):
        arc.codegen(scale, (X, 1.0), output_dir=tmp_path / "new")


def test_a_file_for_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(arc.CodegenError, match=r"cannot write to output_dir=.*choose a folder"):
        arc.codegen(scale, (X, 1.0), output_dir=tmp_path / "file")


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(arc.CodegenError, match=r"verify=True compiles .* no C compiler .* install"):
        arc.codegen(scale, (X, 1.0), verify=True)
    arc.codegen(scale, (X, 1.0))


def test_inside_a_recording():
    @arc.compile
    def outer(x):
        arc.codegen(lambda y: x * y, (2.0,), name="inner")
        return x

    with pytest.raises(arc.CodegenError, match="call codegen outside compiled functions"):
        outer(1.0)


def test_python_bools_are_reported_as_fixed():
    project = arc.codegen(lambda x, up: x if up else -x, (X, True), name="f")
    assert "up = True is fixed in the code; pass np.bool_ to make it an input" in repr(project)
    assert "#define F_FIXED_up true" in project.files["f.h"]


def test_an_integer_example_of_a_float_is_reported(tmp_path):
    """The issue's own: C would take whole numbers only."""

    def scaled(x, k, n, s):
        return x * k * 1.5 + s["rate"] / 2 + np.ones(3)[n & 1]

    args = (1, 2.0, 3, {"rate": 7})
    with pytest.warns(UserWarning, match="is a Python int") as found:
        arc.codegen(scaled, args, output_dir=tmp_path)
    assert [str(w.message).split("argument ")[1].split(" is")[0] for w in found] == [
        "x",
        "s['rate']",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        args = (1.0, 2.0, 3, {"rate": np.int64(7)})
        arc.codegen(scaled, args, output_dir=tmp_path)
