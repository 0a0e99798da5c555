"""Kernels compiled for another system, linked with a C program that stands in for Python, and run.

The program reads the inputs of all kernels from a file and writes their results to another: first
those of the scalar entry, instance by instance, then those of the batch entry, all at once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from archimedes.backends.llvm.calling_convention import BATCH, PART, SCALAR, Leaf
from archimedes.backends.llvm.runtime.kernel import NativeKernel
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.graph.digests import table_digest
from archimedes.graph.table_data import data_tables
from archimedes.system.c_library import functions_to_import

from ..c.checking import needs
from ..other_systems import System
from ..programs.program import Program
from ..programs.values import assert_bits, leaves_of, packed, reference

__all__ = ["compile_kernels", "run_kernels", "tables_of"]

#: What kernels find in a process with Python: memory, threads (none, so that a loop runs in the
#: thread of its caller), turns for Python (none is wanted).
_RUNTIME = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *arc_malloc(size_t size) { return malloc(size); }
void arc_free(void *memory) { free(memory); }
static void no_threads(void) {}
void (*arc_loop_threads[64])(void) = {no_threads};
static int look(int64_t *budget) { *budget = INT64_MAX; return 0; }
int (*arc_safepoint)(int64_t *) = look;
int _fltused;

enum { MOST = 1000 };
typedef int scalar(void **in, void **out);
typedef int batch(void **in, void **out, int64_t begin, int64_t end);

static int run(scalar *one, batch *many, int64_t count, int inputs, const size_t *in_bytes,
               int outputs, const size_t *out_bytes, FILE *from, FILE *to)
{
    if (inputs > MOST || outputs > MOST) return 4;
    void *given[MOST], *found[MOST], *in[MOST], *out[MOST];
    for (int k = 0; k < inputs; ++k) {
        given[k] = malloc(count * in_bytes[k] + 1);
        if (fread(given[k], in_bytes[k], count, from) != (size_t)count) return 1;
    }
    for (int k = 0; k < outputs; ++k) found[k] = malloc(count * out_bytes[k] + 1);
    for (int way = 0; way < 2; ++way) {
        if (way == 1 && many(given, found, 0, count)) return 2;
        for (int64_t i = 0; way == 0 && i < count; ++i) {
            for (int k = 0; k < inputs; ++k) in[k] = (char *)given[k] + i * in_bytes[k];
            for (int k = 0; k < outputs; ++k) out[k] = (char *)found[k] + i * out_bytes[k];
            if (one(in, out)) return 3;
        }
        for (int k = 0; k < outputs; ++k) fwrite(found[k], out_bytes[k], count, to);
    }
    return 0;
}
"""


def _kernel(made: Program, target: Target, part: int = PART) -> NativeKernel:
    """Return the kernel of a program of the catalogue, for a target."""
    g = made.graph
    ins, outs = ([Leaf(*x) for x in leaves_of(d)] for d in (g.input_dtypes, g.output_dtypes))
    return NativeKernel(g, ins, outs, target, None, part, made.name)


def compile_kernels(made: Program, target: Target) -> dict[str, bytes]:
    """Return the object files of both entries; what they define and read is named after it."""
    kernel = _kernel(made, target)
    found = {}
    for entry, batched in ((SCALAR, ()), (BATCH, (True,) * len(kernel.inputs))):
        program = kernel.program(entry, batched, target)
        text = program.text.replace(f"@{entry}(", f"@{made.name}_{entry}(")
        text = text.replace("@arc_data", f"@{made.name}_arc_data")
        found[entry] = target.compile(text, program.fused)
    return found


def tables_of(made: Program) -> dict[str, np.ndarray]:
    """Return the tables that a program reads, by name."""
    different = {table_digest(table): table for table in data_tables(made.graph)}
    return {f"{made.name}_arc_data{k}": table for k, table in enumerate(different.values())}


def _tables(made: Program) -> list[str]:
    """Return the tables of a program as C."""
    return [
        f"const unsigned char {name}[] __attribute__((aligned(64))) = "
        f"{{{', '.join(map(str, table.tobytes()))}}};"
        for name, table in tables_of(made).items()
    ]


def _call(made: Program, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[str]:
    """Return the C that declares and runs a program's entries."""
    sizes = [", ".join(str(x[0].nbytes) for x in arrays) for arrays in (inputs, outputs)]
    entries = [f"{made.name}_{entry}" for entry in (SCALAR, BATCH)]
    return [
        f"{{ extern scalar {entries[0]}; extern batch {entries[1]};",
        f"static const size_t in[] = {{{sizes[0]}}}, out[] = {{{sizes[1]}}};",
        f"int failed = run({entries[0]}, {entries[1]}, {made.count}, {len(inputs)}, in, "
        f"{len(outputs)}, out, from, to);",
        f'if (failed) {{ fprintf(stderr, "{made.name}: %d", failed); return failed; }} }}',
    ]


def _execute(folder: Path, program: str, *arguments: str) -> None:
    done = subprocess.run([needs(program), *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


def _import_libraries(target: Target, folder: Path) -> list[str]:
    """Make libraries that take what kernels import from where the runtime takes it."""
    if not target.is_windows:
        return ["-static"]
    functions: dict[str, list[str]] = {}
    for name, (library, function) in functions_to_import(target.triple).items():
        if name == function:  # others are in the program
            functions.setdefault(library, []).append(name)
    for library, names in functions.items():
        text = "\n".join([f"LIBRARY {library}.dll", "EXPORTS", *names, ""])
        (folder / f"{library}.def").write_text(text)
        made = ("-d", f"{library}.def", "-l", f"{library}.a")
        _execute(folder, "x86_64-w64-mingw32-dlltool", *made)
    return [f"{library}.a" for library in functions]


def run_kernels(
    cases: Sequence[Program],
    compiled: Mapping[str, Mapping[str, bytes]],
    system: System,
    folder: Path,
) -> None:
    """Link and run programs, compiled for a system; compare their results with the interpreter's.

    ``compiled``: by program what ``compile_kernels`` returns.
    """
    target = system.executable or system.targets[0]
    files, lines, given, wanted = [], [_RUNTIME], [], []
    body = ['FILE *from = fopen("in.bin", "rb"), *to = fopen("out.bin", "wb");']
    for made in cases:
        for entry, code in compiled[made.name].items():
            files.append(f"{made.name}_{entry}.o")
            (folder / files[-1]).write_bytes(code)
        g = made.graph
        inputs = packed(made.columns, leaves_of(g.input_dtypes))
        expected = packed(reference(g, made.columns, made.count), leaves_of(g.output_dtypes))
        lines += _tables(made)
        body += _call(made, inputs, expected)
        given += inputs
        wanted += [(made.name, entry, x) for entry in (SCALAR, BATCH) for x in expected]
    lines += ["int main(void) {", *body, "return fclose(from) + fclose(to); }", ""]
    (folder / "main.c").write_text("\n".join(lines))
    (folder / "in.bin").write_bytes(b"".join(x.tobytes() for x in given))
    libraries = _import_libraries(target, folder)
    _execute(folder, system.compiler, "-O1", "-o", "kernels.exe", "main.c", *files, *libraries)
    ended = system.run("kernels.exe", folder)
    assert ended.returncode == 0, (ended.returncode, ended.stderr[-4000:])
    data, at = (folder / "out.bin").read_bytes(), 0
    for name, entry, want in wanted:
        got = np.frombuffer(data, want.dtype, want.size, at).reshape(want.shape)
        at += want.nbytes
        assert_bits(got, want, f"{system.name} {name} {entry}")
    assert at == len(data)
