"""Generated C is clean: two compilers, two standards, C++17, sanitizers, cppcheck, freestanding."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from .checking import COMPILERS, FLOATS, STRICT, Bundle, compile_c, needs
from .test_ops import cases
from .test_programs import fuzz_case, graph_case
from .test_regions import every_case


@cache
def bundle(float_type: str, scratch: str = "stack", part: int = 2000) -> Bundle:
    """Every op, elementary function and region, and some random programs."""
    made = [*cases(False), *cases(True), *every_case()]
    made += [fuzz_case(seed) for seed in range(20)] + [graph_case(seed) for seed in range(20)]
    for c in made:
        c.columns = [x[:40] for x in c.columns]
    return Bundle(made, float_type, scratch=scratch, part=part)


@pytest.mark.parametrize("options", [("-std=c99", "-O2"), ("-std=c11", "-O0")], ids=str)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("float_type", FLOATS)
def test_no_warnings_in_c(float_type: str, compiler: str, options: tuple, tmp_path: Path):
    needs(compiler)
    flags = (*STRICT, *options, "-ffreestanding", "-c")
    compile_c(bundle(float_type).text, tmp_path, *flags, compiler=compiler)


@pytest.mark.parametrize("scratch", ["stack", "workspace"])
@pytest.mark.parametrize("float_type", FLOATS)
def test_no_warnings_when_cut_into_parts(float_type: str, scratch: str, tmp_path: Path):
    text = bundle(float_type, scratch, 7).text
    compile_c(text, tmp_path, *STRICT, "-std=c99", "-O1", "-c")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("float_type", FLOATS)
def test_no_warnings_in_cpp(float_type: str, compiler: str, tmp_path: Path):
    needs(compiler)
    flags = (*STRICT, "-std=c++17", "-x", "c++", "-O1", "-c")
    compile_c(bundle(float_type).text, tmp_path, *flags, compiler=compiler)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("float_type", FLOATS)
def test_sanitizers_have_nothing_to_say(float_type: str, compiler: str, tmp_path: Path):
    needs(compiler)
    checks = "-fsanitize=address,undefined,float-cast-overflow"
    options = (checks, "-fno-sanitize-recover=all", "-std=c99", "-O1")
    assert bundle(float_type).run(tmp_path, compiler, *options) == ""


@pytest.mark.parametrize("float_type", FLOATS)
def test_cppcheck_has_nothing_to_say(float_type: str, tmp_path: Path):
    program = needs("cppcheck")
    (tmp_path / "unit.c").write_text(bundle(float_type).text)
    options = ["-q", "--std=c99", "--enable=warning,performance,portability", "--max-configs=1"]
    target = ["-D__GNUC__=12", "-D__SSE2__=1"]
    command = [program, *options, *target, "--error-exitcode=1", "unit.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    assert done.stderr == ""


def test_another_compilers_branches_compile(tmp_path: Path):
    """What a compiler without GNU extensions would see: bits by integers, square roots too."""
    made = bundle("double")
    made.check(tmp_path, "gcc", "-O1", "-U__GNUC__", "-include", "stdint.h")
