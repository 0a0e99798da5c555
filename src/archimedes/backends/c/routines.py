"""Bodies that are functions of their own: how they are called.

Up to eight arguments are passed by value. Where there are more, those that lie one after the other
in an array at the first call are passed by a pointer to them, and the others as one array per
dtype. One result is returned, more are written to one array per dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archimedes.backends.c.memory import Array, Frame, address, are_neighbours
from archimedes.backends.c.spelling import CTYPES, LETTERS
from archimedes.backends.c.writer import Function
from archimedes.backends.lowering import FEW, Binding, Lowering, Place, Store
from archimedes.backends.lowering.copies import copy_all
from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.backends.c.c99 import C99

__all__ = ["Routine", "write_call", "write_routine"]

#: Arguments up to this number are passed by value.
BY_VALUE = 8

Groups = dict[int, list[int]]


@dataclass(frozen=True)
class Routine:
    """A static function for a body.

    ``inputs`` are dtypes and numbers of the body's inputs (those in use), an array each;
    ``outputs`` are numbers of its outputs by dtype. Both are in the order of the parameters.
    ``result`` is the dtype of what it returns, if anything.
    """

    name: str
    inputs: list[tuple[int, list[int]]]
    outputs: Groups
    by_value: bool
    result: int | None
    frame: Frame


def _grouped(numbers: Sequence[int], dtypes: Sequence[int]) -> Groups:
    return {d: [k for k in numbers if dtypes[k] == d] for d in sorted({dtypes[k] for k in numbers})}


def _arrays_of(
    used: Sequence[int], dtypes: Sequence[int], given: Sequence[Binding]
) -> list[tuple[int, list[int]]]:
    """Cut inputs into arrays: neighbours in memory at a call, and of each dtype all the others."""
    runs: list[list[int]] = []
    for k in used:
        if runs and are_neighbours([given[runs[-1][-1]], given[k]]):
            runs[-1].append(k)
        else:
            runs.append([k])
    alone = [run[0] for run in runs if len(run) == 1]
    long = [(dtypes[run[0]], run) for run in runs if len(run) > 1]
    return [*_grouped(alone, dtypes).items(), *long]


def write_routine(
    c: C99, low: Lowering, name: str, body: Graph, given: Sequence[Binding]
) -> Routine:
    """Write the function of a body, whose inputs are ``given`` at its first call."""
    live = set(body.live())
    used = [k for k, i in enumerate(body.inputs) if i in live]
    inputs = _arrays_of(used, body.input_dtypes, given)
    outputs = _grouped(range(len(body.outputs)), body.output_dtypes)
    returns = len(body.outputs) == 1 and low.sizes.size(body) <= low.part
    routine = Routine(
        name=name,
        inputs=inputs,
        outputs=outputs,
        by_value=len(used) <= BY_VALUE,
        result=body.output_dtypes[0] if returns else None,
        frame=c.frame(name, low.sizes.size(body) > low.part),
    )
    f = Function(name, routine.frame)
    inside = [Binding()] * len(body.inputs)
    for number, (d, numbers) in enumerate(inputs):
        for at, k in enumerate(numbers):
            if routine.by_value:
                operand = f"a{k + 1}"
                f.parameters[operand] = f"{CTYPES[d]} {operand}"
                inside[k] = Binding(operand=operand)
            else:
                base = f"in{number + 1}"
                f.parameters[base] = f"const {CTYPES[d]} *{base}"
                inside[k] = Binding(place=Place(Array(base), at, d))
    stores: list[Store] = []
    if not returns:
        for d, numbers in outputs.items():
            base = f"out_{LETTERS[d]}"
            f.parameters[base] = f"{CTYPES[d]} *{base}"
            stores += [(k, Place(Array(base), at, d)) for at, k in enumerate(numbers)]
    if routine.frame.in_struct:
        f.parameters[routine.frame.pointer] = f"{routine.frame.type} *{routine.frame.pointer}"
    if returns:
        (value,) = low.lower(f, body, inside, [0])
        f.line(f"return {c.operand(f, value)};")
    else:
        low.lower(f, body, inside, stores=stores)
    if not _gets_frame(c, routine):
        f.parameters.pop(routine.frame.pointer, None)
    kind = CTYPES[routine.result] if routine.result is not None else "void"
    f.head = f"static {kind} {name}({', '.join(f.parameters.values()) or 'void'})"
    c.add(f)
    return routine


def _gets_frame(c: C99, routine: Routine) -> bool:
    return c.workspace and not routine.frame.is_empty


def write_call(
    c: C99, f: Function, routine: Routine, given: Sequence[Binding], wanted: Sequence[int]
) -> list[Binding]:
    """Call the function of a body and return outputs by number."""
    name, arguments = routine.name, list[str]()
    for number, (d, numbers) in enumerate(routine.inputs):
        values = [given[k] for k in numbers]
        if routine.by_value:
            arguments += [c.operand(f, b) for b in values]
        elif are_neighbours(values) and values[0].place is not None:
            arguments.append(address(values[0].place))
        else:
            start = f.frame.buffer(f"{name} in{number}", d, len(values))
            copy_all(c, f, [(start.at(k), b) for k, b in enumerate(values)])
            arguments.append(address(start))
    if routine.result is not None:
        value = c.value(f, routine.result, f"{name}({', '.join(arguments)})")
        return [Binding(operand=value)] * len(wanted)
    # The next call overwrites a buffer: few results are taken out of it at once.
    few = len(set(wanted)) <= FEW
    results: dict[int, Binding] = {}
    for d, numbers in routine.outputs.items():
        if few:
            start = f.frame.buffer(f"{name} out", d, len(numbers))
        else:
            start = f.frame.array(d, len(numbers))
        arguments.append(address(start))
        results |= {k: Binding(place=start.at(at)) for at, k in enumerate(numbers)}
    if _gets_frame(c, routine):
        f.frame.calls[name] = routine.frame
        arguments.append(f"&{f.frame.pointer}->calls.{name}")
    f.line(f"{name}({', '.join(arguments)});")
    if few:
        dtypes = {k: d for d, numbers in routine.outputs.items() for k in numbers}
        results |= {k: c.taken(f, results[k], dtypes[k]) for k in sorted(set(wanted))}
    return [results[k] for k in wanted]
