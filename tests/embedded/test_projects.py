"""The projects build with their own build files, and print the numbers of Python."""

from __future__ import annotations

import os
import re
import subprocess

import numpy as np
import pytest

import archimedes as arc

from .algorithms import CASES
from .running import leaves_of
from .toolchain import needs

ARDUINO = """\
#ifndef ARDUINO_H
#define ARDUINO_H
struct SerialStub { void begin(long) {} };
static SerialStub Serial;
inline unsigned long micros() { return 0; }
#endif
"""


def generate(name: str, folder, **more):
    case = CASES[name]
    return arc.codegen(case.function, case.args, output_dir=folder, **{**case.keywords, **more})


def run(*command, cwd) -> str:
    env = {key: value for key, value in os.environ.items() if key not in ("CFLAGS", "MAKEFLAGS")}
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed(text: str) -> list[float]:
    return [float(value) for value in re.findall(r"= (\S+)$", text, re.MULTILINE)]


def expected(name: str) -> list[float]:
    case = CASES[name]
    result = arc.compile(case.function, backend="interpreter")(*case.args)
    return [float(x) for leaf in leaves_of(result) for x in leaf.ravel()]


@needs("gcc", "make")
@pytest.mark.parametrize("name", ["ekf", "mixed"])
def test_make(name, tmp_path):
    project = generate(name, tmp_path)
    out = run("make", "run", "CFLAGS_WARN=-Wall -Wextra -pedantic -Werror", cwd=tmp_path)
    assert printed(out) == expected(name)
    assert (tmp_path / f"lib{project.name}.a").exists() is False
    run("make", "all", cwd=tmp_path)
    assert (tmp_path / f"lib{project.name}.a").exists()
    run("make", "clean", cwd=tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == set(project.files)


@needs("gcc", "cmake")
def test_cmake(tmp_path):
    generate("biquad", tmp_path)
    run("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    assert printed(run("build/biquad_example", cwd=tmp_path)) == expected("biquad")


@needs("gcc", "make")
def test_user_code_runs_in_the_example(tmp_path):
    """A hundred steps with the state carried over, from lines in the user's regions."""
    generate("regulator", tmp_path)
    main = tmp_path / "main.c"
    main.write_text(main.read_text().replace("STEPS = 1 ", "STEPS = 3 "))
    generate("regulator", tmp_path)
    assert "STEPS = 3 " in main.read_text()
    out = run("make", "run", cwd=tmp_path)
    assert re.findall(r"state\.steps = (\d+)", out) == ["1", "2", "3"]


@needs("g++")
def test_arduino_sketch(tmp_path):
    project = generate("biquad", tmp_path, target="arduino", float_type=np.float32)
    assert set(project.files) == {"biquad/biquad.h", "biquad/biquad.c", "biquad/biquad.ino"}
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    # The Arduino tools compile a sketch as C++ after an #include of Arduino.h.
    (tmp_path / "sketch.cpp").write_text(
        '#include "Arduino.h"\n#include "biquad/biquad.ino"\nint main() { setup(); loop(); }\n'
    )
    flags = ["-Wall", "-Wextra", "-Werror", "-I", tmp_path]
    run("gcc", "-std=gnu11", *flags, "-c", "-o", "biquad.o", "biquad/biquad.c", cwd=tmp_path)
    run("g++", "-std=gnu++17", *flags, "-o", "sketch", "sketch.cpp", "biquad.o", cwd=tmp_path)
    run("./sketch", cwd=tmp_path)


@needs("arm-none-eabi-gcc", "qemu-system-arm", "make")
def test_cortex_m_project(tmp_path):
    project = generate("ekf", tmp_path, target="cortex-m")
    assert "board/cortex_m.ld" in project.files
    run("make", cwd=tmp_path)
    assert (tmp_path / "ekf_step.bin").stat().st_size > 1000
    done = subprocess.run(
        ["make", "-s", "run"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0 and "ekf_step: done" in done.stdout + done.stderr


@needs("g++")
def test_cpp_wrapper(tmp_path):
    project = generate("regulator", tmp_path, options={"cpp": True})
    assert "regulator.hpp" in project.files
    (tmp_path / "use.cpp").write_text(
        '#include "regulator.hpp"\n#include <cstdio>\n'
        "int main()\n{\n    archimedes_generated::Regulator a, b;\n"
        "    a.in.r[0] = 0.25;\n    a.step();\n    a.step();\n    b = a;\n    b.step();\n"
        '    std::printf("a = %lld\\nb = %lld\\nu = %.17g\\n",\n'
        "                static_cast<long long>(a.in.state.steps),\n"
        "                static_cast<long long>(b.in.state.steps), a.out.u[0]);\n}\n"
    )
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    run("gcc", "-std=c99", "-c", "regulator.c", cwd=tmp_path)
    run("g++", "-std=c++11", *warnings, "use.cpp", "regulator.o", "-o", "use", cwd=tmp_path)
    # Second step: 2 * 0.25 + 0.5 * (0.01 * 0.25).
    assert printed(run("./use", cwd=tmp_path)) == [2.0, 3.0, 0.5 + 0.5 * (0.01 * 0.25)]


# ---- compilers and their warnings --------------------------------------------------------------

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
COMPILERS = {
    "gcc c99": ["gcc", "-std=c99"],
    "gcc c11": ["gcc", "-std=c11"],
    "clang c99": ["clang", "-std=c99"],
    "clang c11": ["clang", "-std=c11"],
    "gcc c++17": ["g++", "-x", "c++", "-std=c++17"],
    "clang c++17": ["clang++", "-x", "c++", "-std=c++17"],
}


@pytest.mark.long_cases("*clang c++17", "*clang c11", "*gcc c11", "double stack-clang c99")
@pytest.mark.parametrize(
    "compiler", [pytest.param(c, marks=needs(c[0]), id=name) for name, c in COMPILERS.items()]
)
@pytest.mark.parametrize("settings", ["double stack", "float workspace"])
def test_no_warnings(compiler, settings, tmp_path):
    kind, scratch = settings.split()
    sources = []
    for name in CASES:
        folder = tmp_path / name
        generate(
            name,
            folder,
            float_type={"double": float, "float": np.float32}[kind],
            int_type={"double": int, "float": np.int32}[kind],
            options={"scratch": scratch},
        )
        sources += sorted(folder.glob("*.c"))
    # Some warnings need optimisation to be found; one compiler of all is enough for those.
    action = (
        ["-O2", "-c", "-o", os.devnull]
        if compiler[:2] == ["gcc", "-std=c11"]
        else ["-fsyntax-only"]
    )
    flags = ["-ffp-contract=off", *action]
    for source in sources:
        run(*compiler, *STRICT, *flags, "-I", source.parent, source, cwd=tmp_path)


@needs("gcc")
@pytest.mark.parametrize("name", ["ekf", "mixed", "lift"])
def test_sanitizers(name, tmp_path):
    project = generate(name, tmp_path)
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    flags = ["-std=c99", "-ffp-contract=off", *sanitize]
    run("gcc", *flags, f"{project.name}.c", "main.c", "-o", "checked", cwd=tmp_path)
    assert printed(run("./checked", cwd=tmp_path)) == expected(name)


@needs("cppcheck")
def test_cppcheck(tmp_path):
    generate("mixed", tmp_path)
    checks = "--enable=warning,performance,portability"
    options = [checks, "--std=c99", "--error-exitcode=1", "--inline-suppr", "-q"]
    run("cppcheck", *options, *sorted(tmp_path.glob("*.c")), cwd=tmp_path)


@needs("arm-none-eabi-gcc")
def test_nothing_is_fused_without_flags(tmp_path):
    """A Cortex-M7 has fused multiply-adds; tools that take no flags must not use them."""
    project = generate("ekf", tmp_path)
    cpu = ["-O2", "-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"]
    out = run("arm-none-eabi-gcc", *cpu, "-S", "-o", "-", f"{project.name}.c", cwd=tmp_path)
    assert "vmul.f64" in out and "vfma" not in out and "vfms" not in out


def test_the_layout_of_the_original(tmp_path):
    """A main.c with the original's names builds and runs, without a warning."""

    def gain(x, k):
        return k * x + 1.0

    arc.codegen(
        gain,
        (np.array([1.0, 2.0]), 3.0),
        return_names=("y",),
        output_dir=tmp_path,
        options={"layout": "original"},
        verify=True,
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("gain.c", "gain.h", "gain_kernel.c", "gain_kernel.h")
    ]
    (tmp_path / "main.c").write_text(
        """#include <stdio.h>
#include "gain.h"
int main(void)
{
    gain_arg_t arg;
    gain_res_t res;
    gain_work_t work;
    if (gain_init(&arg, &res, &work) != 0)
        return 1;
    arg.k = 0.5;
    if (gain_step(&arg, &res, &work) != 0)
        return 1;
    printf("%.17g %.17g\\n", res.y[0], res.y[1]);
    return 0;
}
"""
    )
    sources = ["main.c", "gain.c", "gain_kernel.c"]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "program"]
    subprocess.run(["gcc", *flags, *sources], cwd=tmp_path, check=True)
    out = subprocess.run(["./program"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert out.stdout.split() == ["1.5", "2"]
    with pytest.raises(arc.CodegenError, match="layout='other' is not one of"):
        arc.codegen(gain, (np.ones(2), 1.0), options={"layout": "other"})
