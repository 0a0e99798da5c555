"""Graph in, C source out: ``render`` writes a function, ``assemble`` puts functions into a file."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from archimedes.backends.c.c99 import C99, PART
from archimedes.backends.c.c_functions import Function, names_used
from archimedes.backends.c.helpers import PRELUDE, library, with_dependencies
from archimedes.backends.c.spelling import CTYPES, Array
from archimedes.backends.leaves import leaf_values, types_of_arrays
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location, Store, stays_in_place
from archimedes.errors import CodegenError
from archimedes.graph.blocks.fusion import fuse_loops
from archimedes.graph.blocks.loop_dedup import dedup_loops
from archimedes.graph.dead_code import Origin, remove_dead_code
from archimedes.graph.dtypes import F32, F64, I64, length_of
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.expand import program
from archimedes.graph.ops import BLOCK, CONST, INPUT, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import multiply_counts
from archimedes.graph.retype import retype

__all__ = ["Argument", "CSource", "Stats", "assemble", "render"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: Names that functions make for themselves.
_OWN = re.compile(r"(work|memory)_*\Z|[a-z]_*\d+\Z")
_CHOICES = {
    "float_type": ("double", "float"),
    "int_type": ("int64_t", "int32_t"),
    "scratch": ("stack", "workspace"),
    "optimize": ("speed", "size", "smallest"),
}


@dataclass(frozen=True)
class Argument:
    """One argument or result of a C function: a block of neighbouring inputs or outputs.

    ``name`` is a C identifier, ``dtype`` a code of ``graph/dtypes.py`` (as in the user's
    graph: in float mode F64 stands for ``float``), ``shape`` the shape of the row-major array.
    An input of shape ``()`` is passed by value, everything else by pointer; an array without
    elements has no parameter.

    >>> Argument("P", 0, (3, 3)).size
    9
    """

    name: str
    dtype: int
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of scalars in the argument."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Stats:
    """Counts of a rendered function.

    ``operations``: worst case of one call, by op of the graph (elementary functions by name);
    ``primitives``: the same with elementary functions replaced by what they consist of.
    ``statements``, ``functions``, ``tables`` and ``table_bytes`` are of the source text, helpers
    not counted.
    """

    operations: Mapping[str, int]
    primitives: Mapping[str, int]
    statements: int
    functions: int
    tables: int
    table_bytes: int


@dataclass(frozen=True)
class CSource:
    """A rendered function, in the pieces that a translation unit is put together from.

    ``prototype``: the head of the function, without semicolon. ``types``: typedef of its
    workspace, which a header shows with the prototype (empty where there is none). ``text``:
    tables, static functions and the function itself. ``helpers``: static functions by name that
    the text needs, callee before caller; several sources in one file share them, see
    :func:`assemble`. ``workspace_type`` names the typedef of the last parameter (or is empty),
    ``workspace_bytes`` its size where types are aligned to their size. ``trace`` pairs lines of
    ``text`` (from 1) with the annotation that applies from there on.
    """

    name: str
    prototype: str
    types: str
    text: str
    helpers: Mapping[str, str]
    workspace_type: str
    workspace_bytes: int
    stats: Stats
    trace: tuple[tuple[int, str], ...] = field(default=())

    def __str__(self) -> str:
        return assemble([self])


def assemble(sources: Sequence[CSource], *, types: bool = True, include: str = "") -> str:
    """Put functions into one translation unit: prelude, helpers (once each), then the functions.

    ``types=False`` leaves the typedefs to a header, whose ``include`` lines come after the
    prelude. The result compiles as C99, C11 and C++17, freestanding.

    >>> assemble([]) == PRELUDE
    True
    """
    helpers: dict[str, str] = {}
    for source in sources:
        helpers.update(source.helpers)
    parts = [PRELUDE, *([include] if include else []), *helpers.values()]
    for source in sources:
        parts += [source.types] if types and source.types else []
        parts.append(source.text)
    return "\n".join(parts)


def render(
    graph: Graph,
    name: str,
    *,
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    float_type: str = "double",
    int_type: str = "int64_t",
    scratch: str = "stack",
    lines: Callable[[Graph, int], str] | None = None,
    part: int = PART,
    optimize: str = "speed",
    dialect: Callable[..., C99] = C99,
) -> CSource:
    """Write a graph as a C function ``void name(inputs..., outputs..., workspace)``.

    ``inputs`` and ``outputs`` cut the graph's inputs and outputs, in order, into row-major arrays;
    inputs of shape ``()`` are passed by value. Outputs must not overlap inputs.
    ``float_type="float"`` computes in float throughout (see ``graph/retype.py``).
    ``int_type="int32_t"`` is the type of integer arguments and results; inside they are int64_t,
    so that results are those of the interpreter, wrapped to 32 bits. ``scratch="workspace"``
    takes all arrays from a struct that the caller passes last (none where none is needed),
    ``"stack"`` declares them. ``lines(graph, node)`` says where a node of the graph, or of a
    body in it, comes from; each change becomes a comment. ``part`` is the number of statements at
    which functions are split. ``optimize="size"`` writes equal loops once. ``dialect`` is C, or a
    language that derives from it. The same arguments give the same bytes.

    >>> from archimedes.graph.ops import CODES
    >>> g = Graph()
    >>> x = g.input(F64)
    >>> g.outputs = [g.emit(CODES["mul"], x, x)]
    >>> print(render(g, "square", inputs=[Argument("x", 0)], outputs=[Argument("y", 0)]).text)
    void square(double x, double *y)
    {
        y[0] = x * x;
    }
    <BLANKLINE>
    """
    chosen = zip(_CHOICES, (float_type, int_type, scratch, optimize))
    for option, value in chosen:
        if value not in _CHOICES[option]:
            raise CodegenError(f"{option}={value!r}: choose from {', '.join(_CHOICES[option])}")
    _check_names(name, [*inputs, *outputs])
    _check_layout("inputs", inputs, graph.input_dtypes)
    _check_layout("outputs", outputs, graph.output_dtypes)
    origin: dict[int, Origin] = {}
    if float_type == "float":
        graph = retype(graph, origin)
    if optimize != "speed":
        graph = dedup_loops(fuse_loops(graph, origin, again=0), origin)
    else:
        graph = fuse_loops(graph, origin)
    trimmed = remove_dead_code(graph)
    origin |= trimmed.origin
    options = {"steps": True} if optimize == "smallest" else {}
    annotate = _annotation(origin, lines)
    c = dialect(name, workspace=scratch == "workspace", annotate=annotate, **options)
    low = Lowering(c, [trimmed.graph], part)

    def start_of(argument: Argument) -> Location:
        """Return the first element of an argument, of the type that it has in C."""
        d = F32 if float_type == "float" and argument.dtype == F64 else argument.dtype
        return Location(Array(argument.name, narrow=int_type == "int32_t" and d == I64), 0, d)

    f = _write_entry(c, low, name, trimmed.graph, inputs, outputs, start_of)
    return _source(c, f, trimmed.graph)


def _write_entry(
    c: C99,
    low: Lowering,
    name: str,
    graph: Graph,
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    start_of: Callable[[Argument], Location],
) -> Function:
    """Write the function that is called from outside, and all that it calls."""
    gap, taken = "", {a.name for a in (*inputs, *outputs)}
    while any(_OWN.match(x) and x.count("_") == len(gap) for x in taken):
        gap += "_"
    f = Function(name, c.frame(name, low.sizes.size(graph) > low.part, f"work{gap}", gap), gap)
    bindings: list[Binding] = []
    kinds = graph.input_dtypes
    for argument, count in zip(inputs, leaf_values(kinds, [a.size for a in inputs])):
        start = start_of(argument)
        if argument.shape == ():
            f.parameters[argument.name] = f"{_ctype(start)} {argument.name}"
            value = f"((int64_t){argument.name})" if start.array.narrow else argument.name
            bindings.append(Binding(operand=value))
        elif argument.size:
            f.parameters[argument.name] = f"const {_ctype(start)} *{argument.name}"
            if length_of(kinds[len(bindings)]) and start.array.narrow:
                # Inside, integers of a block have their full type.
                narrow, start = start, c.array(f, start.dtype, argument.size)
                c.copy_run(f, start, narrow, argument.size)
            bindings += [Binding(location=start.at(k)) for k in range(count)]
    stores: list[Store] = []
    counts = leaf_values(graph.output_dtypes, [a.size for a in outputs])
    for argument, count in zip(outputs, counts):
        start = start_of(argument)
        if argument.size:
            f.parameters[argument.name] = f"{_ctype(start)} *{argument.name}"
        stores += [(len(stores) + k, start.at(k)) for k in range(count)]
    own = list(f.parameters)
    with c.frame_parameter(f):
        low.lower(f, graph, bindings, stores=stores)
    f.write_head("void")
    used = names_used(f.lines)
    c.add(f, [f"(void){x};" for x in own if x not in used])
    return f


def _ctype(start: Location) -> str:
    return "int32_t" if start.array.narrow else CTYPES[start.dtype]


def _source(c: C99, f: Function, graph: Graph) -> CSource:
    """Put the pieces of a function together."""
    pieces = {**c.tables.pieces, **c.pieces}
    trace: list[tuple[int, str]] = []
    at = 0
    for name, text in pieces.items():
        trace += [(at + line, note) for line, note in c.traces.get(name, ())]
        at += text.count("\n") + 1
    text = "\n".join(pieces.values())
    has_workspace = c.passes(f.frame)
    counts = count_operations(graph)
    return CSource(
        name=f.name,
        prototype=f.head,
        types="\n".join(c.types.values()),
        text=text,
        helpers=with_dependencies(text, library(c.steps)),
        workspace_type=f.frame.type if has_workspace else "",
        workspace_bytes=f.frame.size[0] if has_workspace else 0,
        stats=Stats(
            operations=counts,
            primitives=count_primitives(counts),
            statements=text.count(";\n"),
            functions=sum(")\n{" in piece for piece in c.pieces.values()),
            tables=len(c.tables.pieces),
            table_bytes=c.tables.bytes,
        ),
        trace=tuple(trace),
    )


def _check_names(name: str, arguments: Sequence[Argument]) -> None:
    names = [name, *(a.name for a in arguments)]
    for x in names:
        if not _IDENTIFIER.match(x):
            raise CodegenError(f"{x!r} is not a name in C: use ASCII letters, digits and _")
        if x.startswith("arc_") or (x != name and x.startswith(f"{name}_")):
            raise CodegenError(f"{x!r} may clash with names that generated code uses: rename it")
    twice = sorted(x for x, count in Counter(names).items() if count > 1)
    if twice:
        raise CodegenError(f"{', '.join(twice)}: used for two things; give each its own name")


def _check_layout(what: str, arguments: Sequence[Argument], dtypes: Sequence[int]) -> None:
    described = types_of_arrays(dtypes, [(a.size, a.dtype) for a in arguments])
    if described != list(dtypes):
        raise CodegenError(
            f"the {what} describe {len(described)} scalars, which are not the {len(dtypes)} of the "
            "graph in number and dtypes"
        )


def _annotation(
    origin: Mapping[int, Origin], lines: Callable[[Graph, int], str] | None
) -> Callable[[Graph, int], str] | None:
    """Return the user's annotation for nodes of the graph that is written."""
    if lines is None:
        return None

    def annotate(g: Graph, i: int) -> str:
        while id(g) in origin:
            g, source = origin[id(g)]
            if i not in source:
                return ""
            i = source[i]
        return lines(g, i)

    return annotate


# ---- operations: worst case, exact since loops are bounded -------------------------------------


def count_operations(g: Graph) -> Counter[str]:
    """Count, by op, the most operations that one evaluation of a graph takes.

    An element of a block at a known index is a value in memory and not an operation.

    >>> from archimedes.graph.ops import CODES
    >>> g = Graph()
    >>> x = g.input(F64)
    >>> g.outputs = [g.emit(CODES["sin"], g.emit(CODES["add"], x, x))]
    >>> dict(count_operations(g))
    {'add': 1, 'sin': 1}
    """
    counts: Counter[str] = Counter()
    for i in g.live():
        code = g.op[i]
        if code == REGION:
            counts += g.regions[i].count(count_operations, lambda x: count_primitives(x).total())
        elif code not in (BLOCK, CONST, INPUT, OUT) and not stays_in_place(g, i):
            counts[TABLE[code].name] += 1
    return counts


@cache
def _inside(name: str) -> Counter[str]:
    return count_operations(program(name, F64))


def count_primitives(counts: Mapping[str, int]) -> Counter[str]:
    """Replace the elementary functions in a count by the operations they consist of."""
    total: Counter[str] = Counter()
    for name, count in counts.items():
        total += (
            multiply_counts(_inside(name), count) if name in PROGRAMS else Counter({name: count})
        )
    return total
