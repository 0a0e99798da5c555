"""Kernels that repeat a program: each thread takes an instance, repeats, and takes the next one.

The state stays in registers from round to round. A round may put out a row of numbers (a step of a
solve), in which sorted items (times of outputs) are evaluated by a second program and written to
where they stay. A thread whose instance is done takes another from a queue, so that slow instances
hold up nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from string import Template
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.c.render import Argument
from archimedes.backends.c.spelling import CTYPES
from archimedes.backends.cuda.cuda_c import TEXT, device_function
from archimedes.backends.cuda.device import LoadedKernel, as_cupy, cupy, load_module
from archimedes.backends.cuda.kernel_text import KernelText
from archimedes.backends.cuda.nvrtc import compile_kernels
from archimedes.backends.protocol import ArrayType, Program
from archimedes.graph.dtypes import F64

#: The name of the kernel.
REPEATED = "archimedes_repeated"
#: Threads of a block: with all the registers that a thread may have, two blocks fit. That one
#: block is enough must be said: otherwise the compiler sometimes gives a thread 32 registers.
THREADS = 128
BOUNDS = f"__launch_bounds__({THREADS}, 1)"
#: Blocks that are started at most: more than any device has at work, since each goes on with
#: further instances.
BLOCKS = 4096
#: Parameters behind those of the state and of the step.
HEADS = (
    *("const double *__restrict__ items", "const int64_t *__restrict__ many"),
    *("const int64_t *__restrict__ places", "int64_t *__restrict__ done"),
    *("double *__restrict__ results", "unsigned long long *__restrict__ queue"),
    "uint64_t count",
)
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


def _leaves(prefix: str, arrays: Sequence[ArrayType]) -> list[Argument]:
    return [Argument(f"{prefix}{k}", x.code, (x.size,)) for k, x in enumerate(arrays)]


def write_repeated_kernel(program: RepeatedProgram) -> KernelText:
    """Write the kernel: one loop, in which a thread takes one instance after another.

    It takes pointers to the leaves of the state, which it advances, to the parameters, to the items
    (preceded by the sign of their order), to their number, to the row of each instance among the
    results, to the number of items that each instance has passed, to the results and to the queue;
    and the number of instances.
    """
    name, step, carry = REPEATED, program.step, program.carry
    state, after = _leaves("s", step.inputs[:carry]), _leaves("t", step.outputs[:carry])
    parameters = _leaves("g", step.inputs[carry:-1])
    row, x = Argument("row", F64, (program.width,)), Argument("x", F64, (program.size,))
    flags, item = _leaves("flag", step.outputs[carry + 1 :]), Argument("item", F64, (1,))
    inputs, outputs = [*state, *parameters, item], [*after, row, *flags]
    functions = [
        device_function(step.graph, f"{name}_step", inputs, outputs, WHOLE),
        device_function(program.at.graph, f"{name}_at", [row, item], [x], WHOLE),
    ]
    filled = [leaf for leaf in state if leaf.size]
    pointers = [f"{CTYPES[leaf.dtype]} *__restrict__ p{leaf.name}" for leaf in filled]
    rows = []
    for leaf, many in zip(parameters, program.batched, strict=True):
        if leaf.size:
            pointers.append(f"const {CTYPES[leaf.dtype]} *__restrict__ p{leaf.name}")
            rows.append(f"p{leaf.name} + k * {leaf.size}" if many else f"p{leaf.name}")
    next_state = [f"t{leaf.name[1:]}" for leaf in filled]
    own = [leaf.name for leaf in filled]
    results = [*next_state, row.name, *(flag.name for flag in flags)]
    kernel = Template((TEXT / "repeated.cu").read_text("utf-8")).substitute(
        bounds=BOUNDS,
        name=name,
        heads=", ".join([*pointers, *HEADS]),
        locals="\n    ".join(
            [f"{CTYPES[leaf.dtype]} {leaf.name}[{leaf.size}];" for leaf in filled]
            + [f"{CTYPES[s.dtype]} {t}[{s.size}];" for s, t in zip(filled, next_state)]
            + [f"double row[{row.size}];", f"double x[{x.size}];"]
            + [f"bool {flag.name}[1];" for flag in flags]
        ),
        step=", ".join([*own, *rows, "items + 1 + next", *results]),
        size=program.size,
        key=program.key,
        load=_copies(filled, "{name}[i]", "p{name}[k * {size} + i]", 12),
        advance=_copies(filled, "{name}[i]", "t{number}[i]", 8),
        store=_copies(filled, "p{name}[k * {size} + i]", "{name}[i]", 12),
    )
    text = "\n".join([*(function.text for function in functions), kernel])
    helpers = {name: text for f in functions for name, text in f.helpers.items()}
    return KernelText(text, helpers, ((name, 0),))


def _copies(leaves: Sequence[Argument], target: str, source: str, indent: int) -> str:
    """Write a loop for each leaf that copies its numbers, all lines indented but the first."""
    lines = []
    for leaf in leaves:
        words = {"name": leaf.name, "number": leaf.name[1:], "size": leaf.size}
        assignment = f"{target.format(**words)} = {source.format(**words)};"
        lines += ["#pragma unroll", f"for (int i = 0; i < {leaf.size}; ++i) {assignment}"]
    return f"\n{' ' * indent}".join(lines)


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
        (part.graph.digest(lasting=True), part.inputs, part.outputs)
        for part in (program.step, program.at)
    ]
    options = (program.carry, program.batched, program.key)
    code, _ = compile_kernels(
        ("cuda repeated", *programs, *options), lambda: write_repeated_kernel(program)
    )
    return LoadedKernel(load_module(code.cubin), REPEATED)
