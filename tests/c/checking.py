"""Compile generated C and compare it with the interpreter, bit for bit."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from archimedes.backends.c import FLAGS, Argument, CSource, assemble, render
from archimedes.graph import DTYPES, F32, F64
from archimedes.graph.dtypes import item_type
from archimedes.graph.retype import retype

from ..programs.program import Program
from ..programs.values import assert_bits, leaves_of, packed, reference

__all__ = [
    "COMPILERS",
    "FLOATS",
    "LEVELS",
    "STRICT",
    "Bundle",
    "Rendered",
    "compile_c",
    "needs",
    "needs_sanitizers",
]

COMPILERS = ("gcc", "clang")
LEVELS = ("-O0", "-O2", "-O3")
STRICT = ("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
FLOATS = ("double", "float")
C_NAMES = {"f8": "double", "f4": "float", "i8": "int64_t", "b1": "bool"}


def needs(program: str) -> str:
    """The path of a program; skips the test where it is missing, or fails where it must not be."""
    found = shutil.which(program)
    if found is None:
        _give_up(program)
    return found


def needs_sanitizers(compiler: str) -> None:
    """As :func:`needs`, for a compiler and its sanitizers: clang's are a package of their own."""
    program = needs(compiler)
    if compiler == "clang":
        command = [program, "-print-runtime-dir"]
        folder = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        if not list(Path(folder).glob("libclang_rt.asan*")):
            _give_up("the library of clang's sanitizers")


def _give_up(what: str) -> NoReturn:
    reason = f"{what} is not installed: .ci/install-tools installs it"
    if os.environ.get("ARCHIMEDES_REQUIRE_TOOLS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def compile_c(text: str, folder: Path, *options: str, compiler: str = "gcc", last=()) -> None:
    """Run a compiler on a text and fail with its messages."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.c").write_text(text)
    command = [needs(compiler), *FLAGS, *options, "unit.c", *last]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:4000]}"


def execute_here(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder."""
    return subprocess.run([program], cwd=folder, capture_output=True, text=True)


class Rendered:
    """A case rendered for one type of float: source, packed inputs, expected outputs."""

    def __init__(self, case: Program, float_type: str, **options) -> None:
        g = case.graph
        ins, outs = leaves_of(g.input_dtypes), leaves_of(g.output_dtypes)
        self.name, self.count = case.name, case.count
        self.source: CSource = render(
            g,
            case.name,
            inputs=[Argument(f"in{k}", d, (n,)) for k, (n, d) in enumerate(ins)],
            outputs=[Argument(f"out{k}", d, (n,)) for k, (n, d) in enumerate(outs)],
            float_type=float_type,
            **options,
        )
        made = retype(g) if float_type == "float" else g
        with np.errstate(all="ignore"):
            columns = [
                x.astype(DTYPES[item_type(d)]) for x, d in zip(case.columns, made.input_dtypes)
            ]
        expected = reference(made, columns, self.count)
        self.inputs = packed(columns, [(n, _in_mode(d, float_type)) for n, d in ins])
        self.expected = packed(expected, [(n, _in_mode(d, float_type)) for n, d in outs])

    def check(self, library: ctypes.CDLL, note: str) -> None:
        """Call the function of a shared library on every sample."""
        function = getattr(library, self.name)
        function.restype = None
        results = [np.zeros_like(x) for x in self.expected]
        work = np.zeros(self.source.workspace_bytes // 8 + 1)
        extra = [work] if self.source.workspace_type else []
        arrays = [*self.inputs, *results]
        for i in range(self.count):
            pointers = [x.ctypes.data + i * x.strides[0] for x in arrays]
            function(*map(ctypes.c_void_p, [*pointers, *(w.ctypes.data for w in extra)]))
        for k, (got, want) in enumerate(zip(results, self.expected)):
            assert_bits(got, want, f"{note} {self.name} out{k}")


def _in_mode(dtype: int, float_type: str) -> int:
    return F32 if float_type == "float" and dtype == F64 else dtype


class Bundle:
    """Many cases in one translation unit."""

    def __init__(self, cases: Sequence[Program], float_type: str = "double", **options) -> None:
        self.float_type = float_type
        self.members = [Rendered(case, float_type, **options) for case in cases]

    @cached_property
    def text(self) -> str:
        return assemble([m.source for m in self.members])

    def check(self, folder: Path, compiler: str, *options: str) -> None:
        """Compile without a warning as a library that needs no other, and compare every case.

        Compilers make calls of memcpy and memset, freestanding ones too: these are in libc.
        """
        tag = "_".join([compiler, self.float_type, *options]).replace("/", "")
        where = folder / tag
        standard = "-std=c99" if "-O2" in options else "-std=c11"
        library = ("-shared", "-fPIC", "-nostdlib", "-Wl,-z,defs", "-o", "unit.so")
        flags = (*STRICT, standard, *library, *options)
        compile_c(self.text, where, *flags, compiler=compiler, last=("-lc",))
        loaded = ctypes.CDLL(str(where / "unit.so"))
        for member in self.members:
            member.check(loaded, tag)

    def run(
        self,
        folder: Path,
        compiler: str,
        *options: str,
        apart: Sequence[str] = (),
        execute: Callable[[str, Path], subprocess.CompletedProcess[str]] = execute_here,
    ) -> str:
        """Compile as a program, with sanitizers say, and compare what it writes to a file.

        Returns what the program printed. ``apart``: another compiler, with its options, of the
        generated code alone. ``execute(program, folder)`` runs the program.
        """
        where = folder / "_".join([compiler, self.float_type])
        flags = (*options, "-o", "unit.exe")
        if apart:
            compile_c(self.text, where / "apart", *apart[1:], "-c", compiler=apart[0])
            lines = [f"{m.source.types}\nextern {m.source.prototype};\n" for m in self.members]
            text = "#include <stdbool.h>\n#include <stdint.h>\n" + "".join(lines)
            compile_c(text + self._main(), where, *flags, compiler=compiler, last=("apart/unit.o",))
        else:
            compile_c(self.text + self._main(), where, *flags, compiler=compiler)
        every = [x[i] for m in self.members for i in range(m.count) for x in m.inputs]
        (where / "in.bin").write_bytes(b"".join(x.tobytes() for x in every))
        done = execute("./unit.exe", where)
        assert done.returncode == 0, f"status {done.returncode}: {done.stderr[:4000]}"
        data, at = (where / "out.bin").read_bytes(), 0
        for m in self.members:
            for i in range(m.count):
                for k, want in enumerate(m.expected):
                    got = np.frombuffer(data, want.dtype, want[i].size, at)
                    at += want[i].nbytes
                    assert_bits(got, want[i], f"{compiler} {m.name} out{k}")
        return done.stderr

    def _main(self) -> str:
        """A main function that takes every case from one file to another."""
        lines = ["#include <stdio.h>", "int main(void)", "{"]
        lines += ['FILE *from = fopen("in.bin", "rb");', 'FILE *to = fopen("out.bin", "wb");']
        for m in self.members:
            lines.append(f"for (int i = 0; i < {m.count}; ++i) {{")
            given, names = [("x", x) for x in m.inputs], []
            for k, (letter, x) in enumerate([*given, *(("y", y) for y in m.expected)]):
                names.append(f"{letter}{k}")
                lines.append(f"{C_NAMES[x.dtype.str[1:]]} {names[-1]}[{x[0].size}];")
            for name in names[: len(m.inputs)]:
                lines.append(f"if (fread({name}, sizeof {name}, 1, from) != 1) return 1;")
            arguments = list(names)
            if m.source.workspace_type:
                lines.append(f"{m.source.workspace_type} work;")
                arguments.append("&work")
            lines.append(f"{m.name}({', '.join(arguments)});")
            lines += [f"fwrite({n}, sizeof {n}, 1, to);" for n in names[len(m.inputs) :]]
            lines.append("}")
        return "\n".join([*lines, "return fclose(from) + fclose(to);", "}", ""])
