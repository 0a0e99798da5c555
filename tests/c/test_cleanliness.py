"""Generated C is clean: two compilers, two standards, C++17, sanitizers, cppcheck, freestanding."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from archimedes.graph import F32

from ..programs.catalogue import programs
from .checking import FLOATS, STRICT, Bundle, compile_c, needs, needs_sanitizers
from .test_ops import cases
from .test_programs import fuzz_case, graph_case


@cache
def bundle(float_type: str) -> Bundle:
    """Every op, elementary function and region, and some random programs."""
    made = [*cases(False), *cases(True), *programs()]
    made += [fuzz_case(seed) for seed in range(6)] + [graph_case(seed) for seed in range(6)]
    return Bundle(made, float_type)


@pytest.mark.parametrize("standard", ["-std=c99", "-std=c11"])
@pytest.mark.parametrize("float_type", FLOATS)
def test_freestanding_c(float_type: str, standard: str, tmp_path: Path):
    """Headers that a compiler without a library has; warnings are errors in all other tests too."""
    flags = (*STRICT, standard, "-ffreestanding", "-fsyntax-only", "-nostdinc")
    found = subprocess.run(
        ["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True
    )
    compile_c(bundle(float_type).text, tmp_path, *flags, f"-I{found.stdout.strip()}")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("float_type", FLOATS)
def test_no_warnings_in_cpp(float_type: str, compiler: str, tmp_path: Path):
    needs(compiler)
    flags = (*STRICT, "-std=c++17", "-x", "c++", "-fsyntax-only")
    compile_c(bundle(float_type).text, tmp_path, *flags, compiler=compiler)


SANITIZE = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")


@pytest.mark.long
@pytest.mark.parametrize(("float_type", "compiler"), [("double", "gcc"), ("float", "clang")])
def test_sanitizers_have_nothing_to_say(float_type: str, compiler: str, tmp_path: Path):
    needs_sanitizers(compiler)
    assert bundle(float_type).run(tmp_path, compiler, *SANITIZE, "-std=c99", "-O1") == ""


#: Cppcheck's time goes up faster than the square of the statements in a function.
LONG = 150


@pytest.mark.long
def test_cppcheck_has_nothing_to_say(tmp_path: Path):
    program = needs("cppcheck")
    made = [*cases(True), *programs(), *(fuzz_case(seed) for seed in range(12))]
    files = []
    for c in made:
        if c.graph.dtype[c.graph.outputs[0]] != F32:
            one = Bundle([c])
            if one.members[0].source.stats.statements < LONG:
                files.append(f"{c.name}.c")
                (tmp_path / files[-1]).write_text(one.text)
    options = ["-q", "--std=c99", "--enable=warning,performance,portability", "--max-configs=1"]
    target = ["-D__GNUC__=12", "-D__SSE2__=1"]
    command = [program, *options, *target, "--error-exitcode=1", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_another_compilers_branches_compile(tmp_path: Path):
    """What a compiler without GNU extensions would see: bits by integers, square roots too."""
    made = bundle("double")
    made.check(tmp_path, "gcc", "-O1", "-U__GNUC__", "-include", "stdint.h")
