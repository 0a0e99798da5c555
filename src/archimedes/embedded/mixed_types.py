"""Programs in float32 of which some values stay double: ``codegen(float_type=..., double=...)``.

What is in double are arguments and results by their names, and lines of source. An operation of any
other line is done in float32 on operands that are rounded to it, as a program with casts does; the
rounded program (``analysis/precision/rounding.py``) says what that is, and here its roundings
become types. Values between the bodies of loops stay double, so that nothing is lost that a line in
double has computed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from archimedes.analysis.precision.rounding import EXACT, round_some
from archimedes.analysis.precision.sources import Sources
from archimedes.embedded.c_structs import result_branches
from archimedes.embedded.preparation import Prepared
from archimedes.errors import CodegenError
from archimedes.function.recording import Recording, lay_out
from archimedes.graph.blocks.building import each
from archimedes.graph.dtypes import F32, F64
from archimedes.graph.ops import CODES, CONST, LOOKUP, OPERANDS
from archimedes.graph.passes import DeepTransformer, Rewriter, inline, prune
from archimedes.graph.program import Graph

_TO_SINGLE, _TO_DOUBLE = CODES["f32"], CODES["f64"]
_COMPARISONS = frozenset(CODES[name] for name in ("lt", "le", "eq", "ne", "truncate"))
#: Ops whose float32 result is not the rounded float64 one.
_ROUNDED_TWICE = frozenset(CODES[name] for name in ("fma", "f64", "f32", "from_bits"))
#: ``file.py:12``, with what a report adds to it: the name that the line assigns to.
_LINE = re.compile(r"(.+):(\d+)(?: \(.*\))?")


def pair_states(
    double: Sequence[str], state: str | Sequence[str] | Mapping[str, str] | None
) -> list[str]:
    """Return what is to be double, and the results that become such arguments in the next step.

    >>> pair_states(["x.P"], {"x": "x_next"})
    ['x.P', 'x_next.P']
    """
    if isinstance(double, str):
        double = [double]
    pairs = state if isinstance(state, Mapping) else {}
    found = list(double)
    for text in double:
        for argument, result in pairs.items():
            name = str(text).removeprefix("argument ")
            if _is_named(name, [argument]):
                found.append(result + name[len(argument) :])
    return found


def with_double(
    prepared: Prepared, double: Sequence[str], return_names: Sequence[str] | None
) -> Prepared:
    """Return what was prepared in float32, but for the values that are named.

    The recording must know its lines.
    """
    recording = prepared.recording
    branches, _ = result_branches(prepared, return_names)
    results = [path for branch in branches for path in branch.treedef.paths(branch.name)]
    graph, names = recording.blocks, list(recording.names)
    widths = [form.width for form in recording.forms()]
    sources = Sources(graph, [name for name, n in zip(names, widths) for _ in range(n)])
    lines, values = _read(double, sources, names, results)
    kept = {k for k, s in enumerate(sources.listed) if (PurePath(s.file).name, s.number) in lines}
    # Arguments have their own types; nothing else reads them but by operations.
    kept |= {k for k, s in enumerate(sources.listed) if s.argument}
    rounded = round_some(graph, lambda g, node: sources.of(g, node) not in kept | {-1})
    leaves = [
        dataclasses.replace(spec, code=F32)
        if spec.code == F64 and not _is_named(name, values)
        else spec
        for spec, name in zip(recording.leaves, names)
    ]
    specs = [
        dataclasses.replace(out.spec, code=F32)
        if out.spec.code == F64 and not _is_named(path, values)
        else out.spec
        for out, path in zip(recording.outs, results)
    ]
    program = _typed(rounded, recording, [s.code for s in leaves], [s.code for s in specs])
    mixed = Recording(
        program, tuple(leaves), recording.out_tree, lay_out(specs), [], names=recording.names
    )
    return dataclasses.replace(prepared, recording=mixed, reference=recording)


def _is_named(path: str, names: Sequence[str]) -> bool:
    return any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in names)


def _read(
    double: Sequence[str], sources: Sources, names: Sequence[str], results: Sequence[str]
) -> tuple[set[tuple[str, int]], list[str]]:
    """Return the lines and the values that are to be double."""
    if not all(isinstance(name, str) for name in double):
        raise CodegenError(
            f"codegen: double={double!r}: give a list of arguments, results and lines, such as "
            "['x.P', 'filter.py:12']"
        )
    lines: set[tuple[str, int]] = set()
    values: list[str] = []
    known = {(PurePath(s.file).name, s.number) for s in sources.listed if s.file}
    for text in double:
        match = _LINE.fullmatch(text)
        if match:
            line = PurePath(match[1]).name, int(match[2])
            if line not in known:
                listed = sorted({f"{file}:{number}" for file, number in known})
                raise CodegenError(
                    f"codegen: double names {text!r}, where nothing is computed: there are {listed}"
                )
            lines.add(line)
            continue
        name = text.removeprefix("argument ")
        if not any(_is_named(path, [name]) for path in (*names, *results)):
            raise CodegenError(
                f"codegen: double names {text!r}, which is no argument, result or line: there are "
                f"{list(dict.fromkeys([*names, *results]))}, and lines as 'filter.py:12'"
            )
        values.append(name)
    return lines, values


def _typed(
    rounded: Graph, recording: Recording, inputs: Sequence[int], outputs: Sequence[int]
) -> Graph:
    """Return the rounded program with these types at its inputs and outputs."""
    g = Graph()
    g.lines = []
    ids: list[int] = []
    for form, code in zip(recording.forms(), inputs):
        for _ in range(form.width if form.size else 0):
            kind = rounded.input_dtypes[len(ids)]
            own = kind | F32 if code == F32 else kind
            ids.append(_cast(g, g.input(own), _TO_DOUBLE, kind))
    outs = iter(inline(g, rounded, ids))
    for form, code in zip(recording.out_forms(), outputs):
        for _ in range(form.width if form.size else 0):
            out = next(outs)
            kind = g.dtype[out] | F32 if code == F32 else g.dtype[out]
            g.outputs.append(_cast(g, out, _TO_SINGLE, kind))
    return prune(Rewriter(_Narrowing, key=id)(prune(g)))


def _cast(g: Graph, i: int, code: int, kind: int) -> int:
    """Return a number or block as another type."""
    return i if g.dtype[i] == kind else each(g, code, i)


class _Narrowing(DeepTransformer):
    """Computes in float32 what is rounded to float32, where the bits are the same."""

    def __init__(self, src: Graph, rewriter: Rewriter) -> None:
        super().__init__(src, rewriter)
        #: The float32 node that a float64 node is the value of.
        self.single: dict[int, int] = {}

    def program(self) -> Graph:
        dst = super().program()
        self.copy_lines()
        return dst

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        dst, code = self.dst, self.src.op[i]
        if code == _TO_SINGLE and dst.dtype[operands[0]] == F64:
            return self._round(self.src.a[i], operands[0])
        if code in EXACT | _COMPARISONS:
            narrow = self._all_single(operands)
            if narrow is not None:
                node = dst.emit(code, *narrow)
                return self._widen(node) if dst.dtype[node] == F32 else node
        node = dst.emit(code, *operands)
        if code == _TO_DOUBLE and dst.dtype[operands[0]] == F32:
            self.single[node] = operands[0]
        return node

    def _widen(self, node: int) -> int:
        wide = self.dst.emit(_TO_DOUBLE, node)
        self.single[wide] = node
        return wide

    def _round(self, j: int, new: int) -> int:
        """Return node ``j`` of ``src``, which is ``new``, in float32."""
        if new in self.single:
            return self.single[new]
        src, dst, code = self.src, self.dst, self.src.op[j]
        if code == LOOKUP:
            table = src.tables[src.b[j]]
            with np.errstate(over="ignore"):
                return dst.lookup(table.astype(np.float32), self.to[src.a[j]])
        if OPERANDS[code] and code not in _ROUNDED_TWICE:
            narrow = self._all_single([self.to[k] for k in src.operands(j)])
            if narrow is not None:
                return dst.emit(code, *narrow)
        return dst.emit(_TO_SINGLE, new)

    def _all_single(self, operands: Sequence[int]) -> list[int] | None:
        """Return operands in float32, None if one of them has more digits, or none is a float."""
        dst, found = self.dst, []
        wide = False
        for j in operands:
            if dst.dtype[j] != F64:
                found.append(j)
                continue
            wide = True
            if dst.op[j] == CONST and _fits(dst.value[j]):
                found.append(dst.const(dst.value[j], F32))
            elif j in self.single:
                found.append(self.single[j])
            else:
                return None
        return found if wide else None


def _fits(value: Any) -> bool:
    """Return whether a constant is a float32 number."""
    with np.errstate(over="ignore"):
        return bool(np.float64(np.float32(value)) == value) or value != value
