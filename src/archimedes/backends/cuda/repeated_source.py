"""Kernels that repeat a program: each thread takes an instance, repeats, and takes the next one.

The state stays in registers from round to round. A round may put out a row of numbers (a step of a
solve), in which sorted items (times of outputs) are evaluated by a second program and written to
where they stay. A thread whose instance is done takes another from a queue, so that slow instances
hold up nobody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.c.source import Argument
from archimedes.backends.c.spelling import CTYPES
from archimedes.backends.cuda.cuda_c import device_function
from archimedes.backends.cuda.kernel_source import KernelText
from archimedes.backends.protocol import Program

__all__ = ["REPEATED", "THREADS", "RepeatedProgram", "repeated_text"]

#: The name of the kernel.
REPEATED = "archimedes_repeated"
#: Threads of a block: with all the registers that a thread may have, two blocks fit. That one
#: block is enough must be said: otherwise the compiler sometimes gives a thread 32 registers.
THREADS = 128
BOUNDS = f"__launch_bounds__({THREADS}, 1)"
#: Programs are not cut: what one round hands on to the next stays in registers.
WHOLE = 1 << 30


class RepeatedProgram(NamedTuple):
    """``step``: (state, given, item) to (state, row, made, going); ``at``: (row, item) to numbers.

    ``carry`` leaves are the state, ``batched`` says which given ones have a row per instance, and
    items up to column ``key`` of a row belong to it; a step is told the next one.
    """

    step: Program
    at: Program
    carry: int
    batched: tuple[bool, ...]
    key: int

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return math.prod(self.step.outputs[self.carry].shape)

    @property
    def size(self) -> int:
        """Numbers that an item gives."""
        return math.prod(self.at.outputs[0].shape)


class _Leaf(NamedTuple):
    name: str
    kind: str
    code: int
    size: int


def _leaves(prefix: str, arrays: Sequence[tuple[int, tuple[int, ...]]]) -> list[_Leaf]:
    return [
        _Leaf(f"{prefix}{k}", CTYPES[code], code, math.prod(shape))
        for k, (code, shape) in enumerate(arrays)
    ]


def _arguments(leaves: Sequence[_Leaf]) -> list[Argument]:
    return [Argument(leaf.name, leaf.code, (leaf.size,)) for leaf in leaves]


def repeated_text(program: RepeatedProgram, name: str = REPEATED) -> KernelText:
    """Write the kernel.

    It takes pointers to the state's leaves, which are moved on, to what is given, to the items
    (the sign of their order first), their number, the places of instances among the results, the
    items that each has behind it, the results and the queue; and the number of instances.
    """
    step, carry = program.step, program.carry
    state, given = _leaves("s", step.inputs[:carry]), _leaves("g", step.inputs[carry:-1])
    after = _leaves("t", step.outputs[:carry])
    row, x = _Leaf("row", "double", 0, program.width), _Leaf("x", "double", 0, program.size)
    flags = _leaves("flag", step.outputs[carry + 1 :])
    item = _Leaf("item", "double", 0, 1)
    one = device_function(
        step.graph,
        f"{name}_step",
        _arguments([*state, *given, item]),
        _arguments([*after, row, *flags]),
        WHOLE,
    )
    two = device_function(
        program.at.graph, f"{name}_at", _arguments([row, item]), _arguments([x]), WHOLE
    )
    heads = [f"{leaf.kind} *__restrict__ p{leaf.name}" for leaf in state if leaf.size]
    heads += [f"const {leaf.kind} *__restrict__ p{leaf.name}" for leaf in given if leaf.size]
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
    stepped = [*(f.name for f in filled), *_given(given, program.batched), "items + 1 + next"]
    stepped += [f"t{leaf.name[1:]}" for leaf in filled] + [row.name, *(f.name for f in flags)]
    body = _body(name, filled, [*_locals(filled, row, x), *_flags(flags)], stepped, program)
    text = "\n".join([one.text, two.text, head, "{", *(f"    {line}" for line in body), "}\n"])
    return KernelText(text, {**one.helpers, **two.helpers})


def _given(leaves: Sequence[_Leaf], batched: Sequence[bool]) -> list[str]:
    """Where the step finds what is given."""
    return [
        f"p{leaf.name} + k * {leaf.size}" if many else f"p{leaf.name}"
        for leaf, many in zip(leaves, batched, strict=True)
        if leaf.size
    ]


def _locals(state: Sequence[_Leaf], row: _Leaf, x: _Leaf) -> list[str]:
    here = [f"{leaf.kind} {leaf.name}[{leaf.size}];" for leaf in state]
    there = [f"{leaf.kind} t{leaf.name[1:]}[{leaf.size}];" for leaf in state]
    return [*here, *there, f"double row[{row.size}];", f"double x[{x.size}];"]


def _flags(flags: Sequence[_Leaf]) -> list[str]:
    return [f"bool {flag.name}[1];" for flag in flags]


def _moved(leaf: _Leaf, to: str, origin: str) -> str:
    return f"for (int i = 0; i < {leaf.size}; ++i) {to} = {origin};"


def _body(
    name: str,
    state: Sequence[_Leaf],
    declared: Sequence[str],
    stepped: Sequence[str],
    program: RepeatedProgram,
) -> list[str]:
    """Write the statements: one loop over rounds, in which instances come and go."""

    def each(to: str, origin: str) -> list[str]:
        lines = []
        for leaf in state:
            names = {
                "here": f"{leaf.name}[i]",
                "next": f"t{leaf.name[1:]}[i]",
                "far": f"p{leaf.name}[k * {leaf.size} + i]",
            }
            lines += ["#pragma unroll", _moved(leaf, names[to], names[origin])]
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
