"""C functions: how they are written, and how bodies that are functions of their own are called.

Up to eight arguments are passed by value. Where there are more, those that lie one after the other
in an array at the first call are passed by a pointer to them, and the others as one array per
dtype. One result is returned, more are written to one array per dtype.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from archimedes.backends.c.spelling import CTYPES, LETTERS, Array, Frame, address, are_neighbours
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import FEW, Results
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location, Store
from archimedes.backends.lowering.statements import FunctionText, StatementDialect, names_in
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Region

COMMENT = "/* "
#: Arguments up to this number are passed by value.
BY_VALUE = 8

Groups = dict[int, list[int]]


def names_used(lines: Iterable[str]) -> set[str]:
    """Return the variables and functions that code uses; comments do not count.

    >>> sorted(names_used(["    x = work->s1[k];", "    /* y */"]))
    ['k', 'work', 'x']
    """
    return names_in(line for line in lines if not line.lstrip().startswith(COMMENT))


class Function(FunctionText):
    """The body of a function."""

    def __init__(self, name: str, frame: Frame, gap: str = "") -> None:
        super().__init__(name, gap)
        self.head = ""
        #: Declarations of the parameters by name, for parts of the function.
        self.parameters: dict[str, str] = {}
        self.parts: list[Function] = []
        self.frame = frame
        #: Integers that are made of a condition, and the condition.
        self.conditions: dict[str, str] = {}
        self._trace: list[tuple[int, str]] = []
        self._note = ""

    def point_to(self, name: str, dtype: int, qualifier: str = "") -> Location:
        """Declare a parameter that points to an array, and return the array's first element."""
        self.parameters[name] = f"{qualifier}{CTYPES[dtype]} *{name}"
        return Location(Array(name), 0, dtype)

    def write_head(self, kind: str) -> None:
        """Write the head of a function that returns a value of this kind."""
        self.head = f"{kind} {self.name}({', '.join(self.parameters.values()) or 'void'})"

    def note(self, text: str) -> None:
        """Write a comment on where the next lines come from, unless it repeats the last one."""
        if text != self._note:
            self._note = text
            self.line(f"{COMMENT}{text.replace('*/', '* /')} */")
            self._trace.append((len(self.lines), text))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block in braces; the next line after it gets a comment again."""
        with super().block(head):
            yield
        self._note = ""

    def text(self, first: Sequence[str] = ()) -> str:
        """Write the whole function; ``first`` are lines in front of the others."""
        return "\n".join([self.head, "{", *(f"    {x}" for x in first), *self.lines, "}\n"])

    def places(self, first: int) -> list[tuple[int, str]]:
        """Return the lines of the text that notes are on, ``first`` lines in front of them."""
        return [(line + first + 2, text) for line, text in self._trace]


@dataclass(frozen=True)
class Routine:
    """A static function for a body.

    ``inputs`` are dtypes and numbers of the body's inputs (those in use), an array each;
    ``outputs`` are numbers of its outputs by dtype. Both are in the order of the parameters.
    ``block_inputs`` and ``block_outputs`` are the numbers of inputs and outputs that are blocks,
    each a pointer behind the others. ``result`` is the dtype of what it returns, if anything.
    """

    name: str
    inputs: list[tuple[int, list[int]]]
    outputs: Groups
    block_inputs: list[int]
    block_outputs: list[int]
    by_value: bool
    result: int | None
    frame: Frame


def _group_by_dtype(numbers: Sequence[int], dtypes: Sequence[int]) -> Groups:
    return {d: [k for k in numbers if dtypes[k] == d] for d in sorted({dtypes[k] for k in numbers})}


def _arrays_of(
    used: Sequence[int], dtypes: Sequence[int], bindings: Sequence[Binding]
) -> list[tuple[int, list[int]]]:
    """Group inputs into arrays: those that are neighbours in memory, and the rest by dtype."""
    runs: list[list[int]] = []
    for k in used:
        if runs and are_neighbours([bindings[runs[-1][-1]], bindings[k]]):
            runs[-1].append(k)
        else:
            runs.append([k])
    alone = [run[0] for run in runs if len(run) == 1]
    long = [(dtypes[run[0]], run) for run in runs if len(run) > 1]
    return [*_group_by_dtype(alone, dtypes).items(), *long]


class FunctionDialect(StatementDialect):
    """The functions of one file: their texts in order, and how they are called.

    ``workspace`` puts the arrays of all functions in a struct that the caller passes. ``pieces``
    are the texts by name, ``types`` the structs that a header shows, ``traces`` the lines of each
    function that come from a line of the user's.
    """

    def __init__(self, prefix: str, workspace: bool) -> None:
        self.prefix = prefix
        self.workspace = workspace
        self.pieces: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.traces: dict[str, list[tuple[int, str]]] = {}
        self._numbers: Counter[str] = Counter()

    @contextmanager
    def part(self, f: Function, number: int) -> Iterator[Function]:
        """Write a part as a static function with the parameters that it uses."""
        part = Function(f"{f.name}_part{number}", f.frame, f.gap)
        yield part
        names = names_used(part.lines)
        used = {x: head for x, head in f.parameters.items() if x in names}
        part.head = f"static void {part.name}({', '.join(used.values()) or 'void'})"
        f.parts.append(part)
        f.line(f"{part.name}({', '.join(used)});")

    def function(
        self, low: Lowering, f: Function, region: Region, body: Graph, bindings: Sequence[Binding]
    ) -> Routine:
        """Write a body as a static function, whose inputs have these ``bindings`` at first."""
        # Numbers are assigned before functions inside get theirs.
        self._numbers[region.kind] += 1
        name = f"{self.prefix}_{region.kind}{self._numbers[region.kind]}"
        live = set(body.live())
        kinds, results = body.input_dtypes, body.output_dtypes
        every = [k for k, i in enumerate(body.inputs) if i in live]
        used = [k for k in every if not length_of(kinds[k])]
        inputs = _arrays_of(used, kinds, bindings)
        scalars = [k for k, kind in enumerate(results) if not length_of(kind)]
        outputs = _group_by_dtype(scalars, results)
        returns = len(results) == len(scalars) == 1 and low.sizes.size(body) <= low.part
        routine = Routine(
            name=name,
            inputs=inputs,
            outputs=outputs,
            block_inputs=[k for k in every if length_of(kinds[k])],
            block_outputs=[k for k, kind in enumerate(results) if length_of(kind)],
            by_value=len(used) <= BY_VALUE,
            result=results[0] if returns else None,
            frame=self.frame(name, low.sizes.size(body) > low.part),
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
                    start = f.point_to(f"in{number + 1}", d, "const ")
                    inside[k] = Binding(location=start.at(at))
        for k in routine.block_inputs:
            start = f.point_to(f"block{k + 1}", item_type(kinds[k]), "const ")
            inside[k] = Binding(location=start)
        stores: list[Store] = []
        for d, numbers in outputs.items() if not returns else ():
            start = f.point_to(f"out_{LETTERS[d]}", d)
            stores += [(k, start.at(at)) for at, k in enumerate(numbers)]
        for k in routine.block_outputs:
            stores.append((k, f.point_to(f"made{k + 1}", item_type(results[k]))))
        with self.frame_parameter(f):
            values = low.lower(f, body, inside, [0] if returns else (), stores)
            for value in values:
                f.line(f"return {self.operand(f, value)};")
        f.write_head(f"static {CTYPES[results[0]] if returns else 'void'}")
        self.add(f)
        return routine

    @contextmanager
    def frame_parameter(self, f: Function) -> Iterator[None]:
        """Let what is written reach the frame of a function, by a parameter where it is passed."""
        frame = f.frame
        if frame.in_struct:
            f.parameters[frame.pointer] = f"{frame.type} *{frame.pointer}"
        yield
        if not self.passes(frame):
            f.parameters.pop(frame.pointer, None)

    def passes(self, frame: Frame) -> bool:
        """Return whether callers pass a frame."""
        return self.workspace and not frame.is_empty

    def call(
        self, f: Function, routine: Routine, bindings: Sequence[Binding], results: Results
    ) -> list[Binding]:
        """Call a static function and return the wanted outputs; blocks are written to ``to``."""
        name, arguments = routine.name, list[str]()
        wanted, to = results
        for number, (d, numbers) in enumerate(routine.inputs):
            values = [bindings[k] for k in numbers]
            if routine.by_value:
                arguments += [self.operand(f, b) for b in values]
            elif are_neighbours(values) and values[0].location is not None:
                arguments.append(address(values[0].location))
            else:
                start = f.frame.buffer(f"{name} in{number}", d, len(values))
                copy_all(self, f, [(start.at(k), b) for k, b in enumerate(values)])
                arguments.append(address(start))
        arguments += [address(bindings[k].memory) for k in routine.block_inputs]
        if routine.result is not None:
            value = self.value(f, routine.result, f"{name}({', '.join(arguments)})")
            return [Binding(operand=value)] * len(wanted)
        # The next call overwrites a buffer: few results are taken out of it at once.
        scalars = {k for k in wanted if k not in to}
        few = len(scalars) <= FEW
        outputs: dict[int, Binding] = {}
        for d, numbers in routine.outputs.items():
            count = len(numbers)
            start = f.frame.buffer(f"{name} out", d, count) if few else f.frame.array(d, count)
            arguments.append(address(start))
            outputs |= {k: Binding(location=start.at(at)) for at, k in enumerate(numbers)}
        arguments += [address(to[k]) for k in routine.block_outputs]
        if self.passes(routine.frame):
            f.frame.calls[name] = routine.frame
            arguments.append(f"&{f.frame.pointer}->calls.{name}")
        f.line(f"{name}({', '.join(arguments)});")
        if few:
            dtypes = {k: d for d, numbers in routine.outputs.items() for k in numbers}
            outputs |= {k: self.preserve(f, outputs[k], dtypes[k]) for k in sorted(scalars)}
        outputs |= {k: Binding(location=location) for k, location in to.items()}
        return [outputs[k] for k in wanted]

    def frame(self, name: str, large: bool, pointer: str = "work", gap: str = "") -> Frame:
        """Return the frame of a function, ``large`` if it is cut into parts."""
        return Frame(name, self.workspace or large, pointer, gap)

    def add(self, f: Function, first: Sequence[str] = ()) -> None:
        """Add a finished function with its parts, and declare its arrays."""
        frame = f.frame
        lines = list(first)
        if frame.in_struct and not frame.is_empty:
            if self.workspace:
                self.types[frame.type] = frame.typedef()
            else:
                self.pieces[frame.type] = frame.typedef()
                lines += [f"{frame.type} memory{f.gap};"]
                lines += [f"{frame.type} *const {frame.pointer} = &memory{f.gap};"]
        elif not frame.in_struct:
            lines += frame.declarations()
        for part in f.parts:
            self.pieces[part.name] = part.text()
            self.traces[part.name] = part.places(0)
        self.pieces[f.name] = f.text(lines)
        self.traces[f.name] = f.places(len(lines))
