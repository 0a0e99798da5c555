"""Dynamics of robots as C: the same bits on a microcontroller, no warnings, less than CasADi's."""

from __future__ import annotations

import contextlib
import subprocess

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.embedded import run_in_qemu
from archimedes.embedded.boards import BOARDS, board_named
from tests.optional_packages import import_or_skip

from ..embedded.toolchain import needs
from .robots import path_of

STRICT = (
    "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wdouble-promotion",
    "-Wfloat-conversion", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wundef", "-Wcast-qual",
    "-Werror",
)  # fmt: skip
ROBOTS = [("xarm7", "fixed", mb.aba), ("go1", "floating", mb.rnea)]
#: What newlib's sin and cos take on a Cortex-M7, in bytes, linked at -O2: CasADi's code calls them,
#: ours has its own.
NEWLIB = 3800


def robot(name, base, function):
    model = mb.load(path_of(name), base)

    def torque_or_acceleration(q, v, a):
        return function(model, q, v, a)

    rng = np.random.default_rng(0)
    states = [
        (mb.random_configuration(model, rng), *rng.normal(size=(2, model.nv))) for _ in range(5)
    ]
    return torque_or_acceleration, states


def test_forward_dynamics_of_a_finger():
    function, states = robot("finger_edu", "fixed", mb.aba)
    made = arc.codegen(function, states[0], verify=True)
    text = "".join(str(content) for content in made.files.values())
    assert "malloc" not in text and "#include <math.h>" not in text


@pytest.mark.long
@pytest.mark.parametrize(("name", "base", "function"), ROBOTS)
def test_no_warnings(name, base, function, tmp_path):
    step, states = robot(name, base, function)
    made = arc.codegen(step, states[0], verify=True)
    for file, content in made.files.items():
        place = tmp_path / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(content))
    sources = [file for file in map(str, made.files) if file.endswith(".c")]
    checked = [file for file in sources if "main" not in file and "example" not in file]
    assert checked
    for compiler in ("gcc", "clang"):
        for source in checked:
            subprocess.run(
                [compiler, *STRICT, "-fsyntax-only", "-I.", source], cwd=tmp_path, check=True
            )


@pytest.mark.long
@needs(*BOARDS["cortex-m7"].programs)
@pytest.mark.parametrize(("name", "base", "function"), ROBOTS)
def test_the_same_bits_on_a_microcontroller(name, base, function):
    step, states = robot(name, base, function)
    run = run_in_qemu(step, states, board="cortex-m7")
    reference = arc.compile(step, backend="interpreter")
    for got, state in zip(run, states, strict=True):
        assert np.array_equal(got, reference(*state))


@pytest.mark.long
@needs(*BOARDS["cortex-m7"].programs)
@pytest.mark.parametrize(("name", "base", "function"), ROBOTS)
def test_smaller_than_casadi(name, base, function, tmp_path):
    """The same program, node by node, as CasADi writes it: flash on a Cortex-M7."""
    from benchmarks.c_code import casadi_code, our_code
    from benchmarks.c_code_cases import Case, _straight

    step, states = robot(name, base, function)
    case = Case(step, states[0], _straight(step), 1)
    ours = flash(our_code(case).files, tmp_path / "ours")
    theirs = flash(casadi_code(case.casadi["straight line"](states[0])).files, tmp_path / "theirs")
    assert ours < theirs + NEWLIB


@pytest.mark.long
@needs(*BOARDS["cortex-m7"].programs)
@pytest.mark.parametrize(("name", "base", "function"), ROBOTS)
def test_much_smaller_than_what_casadi_makes_of_the_book(name, base, function, tmp_path):
    """The same algorithm as one would write it for CasADi, by the book's 6x6 matrices."""
    casadi = import_or_skip("casadi")
    from benchmarks.c_code import our_code
    from benchmarks.c_code_cases import Case, _straight
    from benchmarks.multibody_formulas import FORMULAS, in_casadi

    step, states = robot(name, base, function)
    symbols = [casadi.SX.sym(key, len(x)) for key, x in zip("qva", states[0], strict=True)]
    formula = FORMULAS[function.__name__][0](in_casadi(), mb.load(path_of(name), base), *symbols)
    written = casadi.Function("f", symbols, [casadi.densify(casadi.vertcat(*formula))])
    for state in states:
        theirs = written(*state).full().ravel()
        np.testing.assert_allclose(theirs, step(*state), rtol=1e-9, atol=1e-9)
    with contextlib.chdir(tmp_path):
        written.generate("f.c")
    theirs = flash({"f.c": (tmp_path / "f.c").read_text()}, tmp_path / "theirs")
    ours = flash(our_code(Case(step, states[0], _straight(step), 1)).files, tmp_path / "ours")
    assert 1.5 * ours < theirs, (ours, theirs)


def flash(files, folder):
    """Return the bytes of code and constants of C files, without what they call."""
    folder.mkdir()
    functions = ("sin", "cos", "sqrt", "fabs")
    heads = "".join(f"double {name}(double);\n" for name in functions)
    for file, text in {"math.h": heads, **files}.items():
        (folder / file).write_text(text)
    board, total = board_named("cortex-m7"), 0
    for source in (file for file in files if file.endswith(".c")):
        flags = [*board.flags, "-O2", "-ffp-contract=off", "-w", "-I.", "-c", source]
        subprocess.run([f"{board.tools}gcc", *flags, "-o", "a.o"], cwd=folder, check=True)
        sizes = subprocess.run(
            [f"{board.tools}size", "-A", "a.o"], cwd=folder, check=True, capture_output=True,
            text=True,
        ).stdout  # fmt: skip
        rows = [line.split() for line in sizes.splitlines()]
        total += sum(int(r[1]) for r in rows if r and r[0].startswith((".text", ".rodata")))
    return total
