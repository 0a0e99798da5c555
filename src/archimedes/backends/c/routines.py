"""Bodies that are functions of their own: how they are called.

Up to eight arguments are passed by value. Where there are more, those that lie one after the other
in an array at the first call are passed by a pointer to them, and the others as one array per
dtype. One result is returned, more are written to one array per dtype.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archimedes.backends.c.memory import Array, Frame, address, are_neighbours
from archimedes.backends.c.spelling import CTYPES, LETTERS
from archimedes.backends.c.writer import Function
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import FEW
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location, Store
from archimedes.graph.dtypes import item_type, length_of
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
    ``given`` and ``made`` are the numbers of inputs and outputs that are blocks, each a pointer
    behind the others. ``result`` is the dtype of what it returns, if anything.
    """

    name: str
    inputs: list[tuple[int, list[int]]]
    outputs: Groups
    given: list[int]
    made: list[int]
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
    kinds, results = body.input_dtypes, body.output_dtypes
    every = [k for k, i in enumerate(body.inputs) if i in live]
    used = [k for k in every if not length_of(kinds[k])]
    inputs = _arrays_of(used, kinds, given)
    scalars = [k for k, kind in enumerate(results) if not length_of(kind)]
    outputs = _grouped(scalars, results)
    returns = len(results) == len(scalars) == 1 and low.sizes.size(body) <= low.part
    routine = Routine(
        name=name,
        inputs=inputs,
        outputs=outputs,
        given=[k for k in every if length_of(kinds[k])],
        made=[k for k, kind in enumerate(results) if length_of(kind)],
        by_value=len(used) <= BY_VALUE,
        result=results[0] if returns else None,
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
                inside[k] = Binding(location=Location(Array(base), at, d))
    for k in routine.given:
        base, d = f"block{k + 1}", item_type(kinds[k])
        f.parameters[base] = f"const {CTYPES[d]} *{base}"
        inside[k] = Binding(location=Location(Array(base), 0, d))
    stores: list[Store] = []
    if not returns:
        for d, numbers in outputs.items():
            base = f"out_{LETTERS[d]}"
            f.parameters[base] = f"{CTYPES[d]} *{base}"
            stores += [(k, Location(Array(base), at, d)) for at, k in enumerate(numbers)]
    for k in routine.made:
        base, d = f"made{k + 1}", item_type(results[k])
        f.parameters[base] = f"{CTYPES[d]} *{base}"
        stores.append((k, Location(Array(base), 0, d)))
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
    c: C99,
    f: Function,
    routine: Routine,
    given: Sequence[Binding],
    wanted: Sequence[int],
    to: Mapping[int, Location],
) -> list[Binding]:
    """Call the function of a body and return outputs by number; blocks are put into ``to``."""
    name, arguments = routine.name, list[str]()
    for number, (d, numbers) in enumerate(routine.inputs):
        values = [given[k] for k in numbers]
        if routine.by_value:
            arguments += [c.operand(f, b) for b in values]
        elif are_neighbours(values) and values[0].location is not None:
            arguments.append(address(values[0].location))
        else:
            start = f.frame.buffer(f"{name} in{number}", d, len(values))
            copy_all(c, f, [(start.at(k), b) for k, b in enumerate(values)])
            arguments.append(address(start))
    arguments += [address(_place(given[k])) for k in routine.given]
    if routine.result is not None:
        value = c.value(f, routine.result, f"{name}({', '.join(arguments)})")
        return [Binding(operand=value)] * len(wanted)
    # The next call overwrites a buffer: few results are taken out of it at once.
    scalars = {k for k in wanted if k not in to}
    few = len(scalars) <= FEW
    results: dict[int, Binding] = {}
    for d, numbers in routine.outputs.items():
        if few:
            start = f.frame.buffer(f"{name} out", d, len(numbers))
        else:
            start = f.frame.array(d, len(numbers))
        arguments.append(address(start))
        results |= {k: Binding(location=start.at(at)) for at, k in enumerate(numbers)}
    arguments += [address(to[k]) for k in routine.made]
    if _gets_frame(c, routine):
        f.frame.calls[name] = routine.frame
        arguments.append(f"&{f.frame.pointer}->calls.{name}")
    f.line(f"{name}({', '.join(arguments)});")
    if few:
        dtypes = {k: d for d, numbers in routine.outputs.items() for k in numbers}
        results |= {k: c.taken(f, results[k], dtypes[k]) for k in sorted(scalars)}
    results |= {k: Binding(location=place) for k, place in to.items()}
    return [results[k] for k in wanted]


def _place(binding: Binding) -> Location:
    assert binding.location is not None
    return binding.location
