"""Kernels that repeat a program: each thread takes an instance, repeats, and takes the next one.

The state stays in registers from round to round. A round may put out a row of numbers (a step of a
solve), in which sorted items (times of outputs) are evaluated by a second program and written to
where they stay. A thread whose instance is done takes another from a queue, so that slow instances
hold up nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.c.render import Argument
from archimedes.backends.c.spelling import CTYPES
from archimedes.backends.cuda.cuda_c import device_function
from archimedes.backends.cuda.device import LoadedKernel, as_cupy, cupy, load_module
from archimedes.backends.cuda.kernel_text import KernelText
from archimedes.backends.cuda.nvrtc import compile_kernels
from archimedes.backends.protocol import ArrayType, Program

__all__ = ["CudaRepeated", "RepeatedProgram", "write_repeated_kernel"]

#: The name of the kernel.
REPEATED = "archimedes_repeated"
#: Threads of a block: with all the registers that a thread may have, two blocks fit. That one
#: block is enough must be said: otherwise the compiler sometimes gives a thread 32 registers.
THREADS = 128
BOUNDS = f"__launch_bounds__({THREADS}, 1)"
#: Blocks that are started at most: more than any device has at work, since each goes on with
#: further instances.
BLOCKS = 4096
#: Programs are not cut: what one round hands on to the next stays in registers.
WHOLE = 1 << 30


class RepeatedProgram(NamedTuple):
    """A program to repeat, and what is evaluated in its rows.

    ``step`` maps (state, parameters, item) to (state, row, whether the row counts, whether to go
    on), ``at`` maps (row, item) to numbers. ``carry`` leaves are the state, ``batched`` says which
    parameters have a row per instance, and items up to column ``key`` of a row belong to it; a step
    is told the next one.
    """

    step: Program
    at: Program
    carry: int
    batched: tuple[bool, ...]
    key: int

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return self.step.outputs[self.carry].size

    @property
    def size(self) -> int:
        """Numbers that an item gives."""
        return self.at.outputs[0].size


class _Leaf(NamedTuple):
    name: str
    kind: str
    code: int
    size: int


def _leaves(prefix: str, arrays: Sequence[ArrayType]) -> list[_Leaf]:
    return [_Leaf(f"{prefix}{k}", CTYPES[x.code], x.code, x.size) for k, x in enumerate(arrays)]


def _arguments(leaves: Sequence[_Leaf]) -> list[Argument]:
    return [Argument(leaf.name, leaf.code, (leaf.size,)) for leaf in leaves]


def write_repeated_kernel(program: RepeatedProgram) -> KernelText:
    """Write the kernel.

    It takes pointers to the leaves of the state, which it advances, to the parameters, to the items
    (preceded by the sign of their order), to their number, to the row of each instance among the
    results, to the number of items that each instance has passed, to the results and to the queue;
    and the number of instances.
    """
    name, step, carry = REPEATED, program.step, program.carry
    state, parameters = _leaves("s", step.inputs[:carry]), _leaves("g", step.inputs[carry:-1])
    after = _leaves("t", step.outputs[:carry])
    row, x = _Leaf("row", "double", 0, program.width), _Leaf("x", "double", 0, program.size)
    flags = _leaves("flag", step.outputs[carry + 1 :])
    item = _Leaf("item", "double", 0, 1)
    one = device_function(
        step.graph,
        f"{name}_step",
        _arguments([*state, *parameters, item]),
        _arguments([*after, row, *flags]),
        WHOLE,
    )
    two = device_function(
        program.at.graph, f"{name}_at", _arguments([row, item]), _arguments([x]), WHOLE
    )
    heads = [f"{leaf.kind} *__restrict__ p{leaf.name}" for leaf in state if leaf.size]
    heads += [f"const {leaf.kind} *__restrict__ p{leaf.name}" for leaf in parameters if leaf.size]
    heads += [
        "const double *__restrict__ items",
        "const int64_t *__restrict__ many",
        "const int64_t *__restrict__ places",
        "int64_t *__restrict__ done",
        "double *__restrict__ results",
        "unsigned long long *__restrict__ queue",
        "uint64_t count",
    ]
    head = f'extern "C" __global__ void {BOUNDS} {name}({", ".join(heads)})'
    filled = [leaf for leaf in state if leaf.size]
    stepped = [
        *(f.name for f in filled),
        *_parameter_rows(parameters, program.batched),
        "items + 1 + next",
    ]
    stepped += [f"t{leaf.name[1:]}" for leaf in filled] + [row.name, *(f.name for f in flags)]
    body = _body(name, filled, _locals(filled, row, x, flags), stepped, program)
    text = "\n".join([one.text, two.text, head, "{", *(f"    {line}" for line in body), "}\n"])
    return KernelText(text, {**one.helpers, **two.helpers}, ((name, 0),))


def _parameter_rows(leaves: Sequence[_Leaf], batched: Sequence[bool]) -> list[str]:
    """Return where the step finds its parameters."""
    return [
        f"p{leaf.name} + k * {leaf.size}" if many else f"p{leaf.name}"
        for leaf, many in zip(leaves, batched, strict=True)
        if leaf.size
    ]


def _locals(state: Sequence[_Leaf], row: _Leaf, x: _Leaf, flags: Sequence[_Leaf]) -> list[str]:
    here = [f"{leaf.kind} {leaf.name}[{leaf.size}];" for leaf in state]
    there = [f"{leaf.kind} t{leaf.name[1:]}[{leaf.size}];" for leaf in state]
    booleans = [f"bool {flag.name}[1];" for flag in flags]
    return [*here, *there, f"double row[{row.size}];", f"double x[{x.size}];", *booleans]


def _body(
    name: str,
    state: Sequence[_Leaf],
    declared: Sequence[str],
    stepped: Sequence[str],
    program: RepeatedProgram,
) -> list[str]:
    """Write the statements: one loop, in which a thread takes one instance after another."""

    def each(to: str, origin: str) -> list[str]:
        lines = []
        for leaf in state:
            names = {
                "here": f"{leaf.name}[i]",
                "next": f"t{leaf.name[1:]}[i]",
                "far": f"p{leaf.name}[k * {leaf.size} + i]",
            }
            copy = f"for (int i = 0; i < {leaf.size}; ++i) {names[to]} = {names[origin]};"
            lines += ["#pragma unroll", copy]
        return lines

    size = program.size
    return [
        *declared,
        "const int64_t total = many[0];",
        "const double sign = items[0];",
        "bool busy = false;",
        "uint64_t k = 0;",
        "int64_t next = 0;",
        "double *into = results;",
        "for (;;) {",
        "    if (!busy) {",
        "        k = atomicAdd(queue, 1ULL);",
        "        if (k >= count) break;",
        *(f"        {line}" for line in each("here", "far")),
        "        next = done[k];",
        f"        into = results + places[k] * total * {size};",
        "        busy = true;",
        "    }",
        f"    {name}_step({', '.join(stepped)});",
        *(f"    {line}" for line in each("here", "next")),
        f"    const double end = sign * row[{program.key}];",
        "    while (next < total && sign * items[1 + next] <= end) {",
        f"        {name}_at(row, items + 1 + next, x);",
        "#pragma unroll",
        f"        for (int i = 0; i < {size}; ++i) into[next * {size} + i] = x[i];",
        "        ++next;",
        "    }",
        "    if (!flag1[0] || next >= total) {",
        *(f"        {line}" for line in each("far", "here")),
        "        done[k] = next;",
        "        busy = false;",
        "    }",
        "}",
    ]


class CudaRepeated:
    """A program repeated on the current device; see ``Kernel.repeating_batch``."""

    def __init__(self, program: RepeatedProgram) -> None:
        self.program = program
        self._kernels: dict[int, LoadedKernel] = {}
        self._lock = threading.Lock()

    def _kernel(self) -> LoadedKernel:
        device = int(cupy().cuda.Device().id)
        with self._lock:
            if device not in self._kernels:
                self._kernels[device] = _compile(self.program)
        return self._kernels[device]

    def __call__(
        self,
        state: Sequence[Any],
        parameters: Sequence[Any],
        items: np.ndarray,
        sign: float,
        rows: Any,
        done: Any,
        results: Any,
    ) -> None:
        """Start it on the current stream for all instances, whose results go to ``rows``."""
        count = len(rows)
        if not count:
            return
        module = cupy()
        inputs = self.program.step.inputs
        leaves = [
            as_cupy(x) for x, kind in zip((*state, *parameters), inputs) if 0 not in kind.shape
        ]
        along = module.asarray(np.concatenate([[sign], items]))
        many = module.asarray(np.array([len(items)], dtype=np.int64))
        queue = module.asarray(np.zeros(1, dtype=np.uint64))
        blocks = min(BLOCKS, -(-count // THREADS))
        arrays = [*leaves, along, many, rows, done, results, queue]
        self._kernel().launch(blocks, THREADS, (*arrays, np.uint64(count)))


def _compile(program: RepeatedProgram) -> LoadedKernel:
    """Return the kernel on the current device."""
    programs = [
        (part.graph.lasting_digest(), part.inputs, part.outputs)
        for part in (program.step, program.at)
    ]
    options = (program.carry, program.batched, program.key)
    code, _ = compile_kernels(
        ("cuda repeated", *programs, *options), lambda: write_repeated_kernel(program)
    )
    return LoadedKernel(load_module(code.cubin), REPEATED)
