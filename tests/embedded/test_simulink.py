"""S-functions: built against a stand-in for Simulink's headers, run in its order, bits compared."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import CodegenError

from .toolchain import needs

STUB = Path(__file__).parent / "simulink_stub"


@arc.struct
class Body:
    mass: float = arc.field(units="kg")
    inertia: np.ndarray = arc.field(units="kg m^2")


def spin(body, w, M, k, on):
    """Turn a body for one step."""
    dw = np.linalg.inv(body.inertia) @ (M - np.cross(w, body.inertia @ w))
    rate = np.where(on, w + k[0] * dw / body.mass, w * k[1])
    return rate, np.outer(rate, M[:2]), on, np.sum(rate > 0)


NAMES = ("rate", "product", "on", "count")
INERTIA = np.array([[2.0, 0.1, 0.3], [0.1, 3.0, 0.2], [0.3, 0.2, 4.0]])
ARGS = (Body(2.0, INERTIA), np.array([0.1, 0.2, 0.3]), np.ones(3), np.array([0.01, 0.5]), True)


def project(**options):
    args = (*ARGS[:4], np.bool_(True))
    settings = {"parameters": "k", "state": {"w": "rate"}, "int_type": np.int32, **options}
    return arc.codegen(spin, args, return_names=NAMES, target="simulink", **settings)


def numbers(*values):
    """Numbers as Simulink has them: matrices by columns."""
    return " ".join(float(x).hex() for v in values for x in np.ravel(v, order="F"))


def run(folder, dialog, steps):
    """Run the S-function with values of its dialog over steps of inputs; return its lines."""
    given = [str(len(dialog)), *(f"{np.size(p)} {numbers(p)}" for p in dialog), str(len(steps))]
    text = "\n".join([*given, *(numbers(*inputs) for inputs in steps)])
    command = [folder / "simulate"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulink")
    project().write(folder)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O1"]
    flags += ["-ffp-contract=off", "-DMATLAB_MEX_FILE", f"-I{STUB}", f"-I{folder}"]
    sources = [folder / "sfun_spin.c", folder / "spin.c"]
    subprocess.run(["gcc", *flags, *sources, "-o", folder / "simulate"], check=True)
    return folder


@needs("gcc")
def test_steps_have_the_bits_of_python(folder):
    rng = np.random.default_rng(1)
    k, w = np.array([0.02, 0.7]), ARGS[1]
    steps = [
        (rng.uniform(1, 3), INERTIA + np.diag(rng.uniform(size=3)), rng.normal(size=3), n != 2)
        for n in range(4)
    ]
    head, *lines = run(folder, [k, 0.05], steps)
    assert head == "step 0.050000000000000003 7"  # which refuses to save what it could not restore
    ports = [line for line in lines if line.startswith(("in", "out"))]
    assert ports == [
        *("in 1 1 1 0 2", "in 2 3 3 0 2", "in 1 3 1 0 2", "in 1 1 1 8 2"),
        *("out 1 3 1 0 0", "out 2 3 2 0 0", "out 1 1 1 8 0", "out 1 1 1 6 0"),
    ]
    for (mass, inertia, M, on), line in zip(steps, lines[len(ports) :], strict=True):
        results = arc.compile(spin)(Body(mass, inertia), w, M, k, np.bool_(on))
        w = results[0]
        expected = [float(x).hex() for r in results for x in np.ravel(r, order="F")]
        assert [float.fromhex(x).hex() for x in line.split()] == expected


@needs("gcc")
def test_wrong_dialogs_are_named(folder):
    assert run(folder, [np.ones(3), -1.0], []) == [
        "error k must be real, of the class double, with 2 elements"
    ]
    assert run(folder, [np.ones(2), 0.0], []) == ["error the sample time must be positive, or -1"]
    assert run(folder, [np.ones(2)], []) == ["error number of parameters"]
    assert run(folder, [np.ones(2), -1.0], [])[0] == "step -1 7"


def test_the_files():
    files = project().files
    assert set(files) == {"spin.h", "spin.c", "sfun_spin.c", "build_spin.m", "spin_bus.m"}
    build, bus = files["build_spin.m"], files["spin_bus.m"]
    assert "-ffp-contract=off" in build
    assert "inputs = {'body_mass', 'body_inertia', 'M', 'on'};" in build
    assert "values = {'[0.01 0.5]', '-1'};" in build
    assert "%     2  body_inertia [kg m^2], 3 x 3" in build
    assert re.search(r"elements\(2\)\.Dimensions = \[3 3\];\nelements\(2\)\.Unit = 'kg m\^2';", bus)
    assert "elements(1).DataType = 'Bus: spin_body_t';" in bus
    assert "assignin('base', 'spin_in_t', bus);" in bus
    assert "defaults.body.inertia = [2.0 0.1 0.3; 0.1 3.0 0.2; 0.3 0.2 4.0];" in bus
    # What a struct contains is defined before it.
    assert bus.index("'spin_body_t', bus") < bus.index("'spin_in_t', bus")
    assert all(text.isascii() for text in files.values())


def test_what_simulink_has_not():
    with pytest.raises(CodegenError, match=r"count has the type int64_t.*int_type=np\.int32"):
        project(int_type=int)
    with pytest.raises(CodegenError, match=r"parameters names 'gain', which is not an argument"):
        project(parameters="gain")
    with pytest.raises(CodegenError, match="'w' is both a parameter and a state"):
        project(parameters=("k", "w"))
    with pytest.raises(CodegenError, match=r"x has the shape \(2, 2, 2\), and ports are"):
        arc.codegen(lambda x: x, (np.ones((2, 2, 2)),), target="simulink", name="f")
    with pytest.raises(CodegenError, match="'end' cannot be a name in MATLAB"):
        arc.codegen(lambda end: end, (1.0,), target="simulink", name="f")


@needs("gcc")
def test_a_function_without_inputs_or_parameters_compiles(tmp_path):
    arc.codegen(lambda: np.float64(2.0), (), target="simulink", name="two", output_dir=tmp_path)
    flags = ["-std=c99", "-Wall", "-Werror", "-Wno-unused-function", "-DMATLAB_MEX_FILE"]
    sources = [tmp_path / "sfun_two.c", tmp_path / "two.c", f"-I{STUB}", f"-I{tmp_path}"]
    subprocess.run(["gcc", *flags, *sources, "-o", tmp_path / "simulate"], check=True)
    assert float.fromhex(run(tmp_path, [-1.0], [()])[-1]) == 2.0
