"""C text that generated code stands on: the prelude of a file and small static functions.

Everything is C99, C11 and C++17 without undefined behaviour, and needs nothing of a C library.
Where C leaves a case undefined (overflow of signed integers, shifts by 64, division by zero,
conversion of values out of range) the function spells out what the interpreter gives.

Functions written by hand are in the folder ``text``. The elementary functions are written from
their graph programs, once and all together, so that what they share (the reduction of huge angles)
is one function with one name, whichever of them a file uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from archimedes.backends.c.c99 import C99, PART
from archimedes.backends.c.c_functions import Function, Routine
from archimedes.backends.c.spelling import Array, Frame
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.dtypes import F64, I64
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.elementary.trigonometric import ORDINARY, angle_of_turns
from archimedes.graph.expand import GraphPrimitives, program, trace_program
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch

__all__ = ["FLAGS"]

#: What every compiler must be told: no fused multiply-add, no excess precision.
FLAGS = ("-ffp-contract=off",)

_TEXT = Path(__file__).parent / "text"
PRELUDE = (_TEXT / "prelude.h").read_text("utf-8")

#: What stands for the placeholders in functions of double and of float.
_PLACEHOLDERS = ("T", "@", "$", "BIG", "READ", "WRITE", "REST")
_DOUBLE = ("double", "", "", "4503599627370496.0", "arc_from_bits", "arc_bits", "INT64_MAX")
_FLOAT = ("float", "f", "f", "8388608.0f", "arc_from_word", "arc_word", "UINT32_C(0x7FFFFFFF)")
_FLOAT_TYPES = [dict(zip(_PLACEHOLDERS, values)) for values in (_DOUBLE, _FLOAT)]
_SECTION = re.compile(r"((?:^//: .*\n)+)((?:(?!//: ).*\n)*)", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\b[A-Z]+\b|[@$]")
_NAME = re.compile(r"\barc_\w+")


def read_helpers(path: Path) -> dict[str, str]:
    """Return the functions in a file of C by name; each stands behind its name, ``//: arc_add``.

    Words behind a name fill in placeholders of the text, ``//: arc_bits FROM=double TO=int64_t``,
    and several such lines make several functions of one text. A name that ends in @ makes those of
    double and float. Other lines that begin with // are for the readers of the file.
    """
    helpers: dict[str, str] = {}
    text = re.sub(r"^//(?!:).*\n", "", path.read_text("utf-8"), flags=re.MULTILINE)
    for heads, body in _SECTION.findall(text):
        for head in heads.splitlines():
            name, *words = head.removeprefix("//: ").split()
            for kind in _FLOAT_TYPES if "@" in name else ({},):
                values = {"NAME": name, **dict(word.split("=") for word in words), **kind}
                helpers[_fill(name, values)] = _fill(body.strip(), values) + "\n"
    return helpers


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda word: values.get(word[0], word[0]), text)


def with_dependencies(text: str, helpers: Mapping[str, str]) -> dict[str, str]:
    """Return, callee before caller, the helpers that a text calls, and those that they call.

    >>> list(with_dependencies("y = arc_abs(x);", library()))
    ['arc_neg', 'arc_abs']
    """
    needed: dict[str, str] = {}

    def visit(names: Iterable[str]) -> None:
        for name in names:
            if name in helpers and name not in needed:
                visit(n for n in _NAME.findall(helpers[name]) if n != name)
                needed[name] = helpers[name]

    visit(_NAME.findall(text))
    return needed


@cache
def library(steps: bool = False) -> dict[str, str]:
    """Return every helper by name: elementary functions, their tables, and what they stand on.

    ``steps``: their arithmetic as tables (``bytecode.py``).

    >>> "static double arc_exp(double x)" in library()["arc_exp"]
    True
    """
    helpers: dict[str, str] = {}
    for path in sorted(_TEXT.glob("*.c")):
        helpers |= read_helpers(path)
    programs = _elementary_programs()
    shared: dict[object, Routine] = {
        (branch.digest(), None): _huge_angle_routine()
        for branch in map(_huge_angle_branch, programs.values())
        if branch is not None
    }
    for name, g in programs.items():
        c = C99(f"arc_{name}", steps=steps)
        low = Lowering(c, list(programs.values()), PART, shared)
        # Functions of float may do without those of double.
        unused = "ARC_UNUSED " if f"arc_{name}f" in helpers else ""
        helpers |= _write_elementary(c, low, name, g, unused)
    return helpers | _write_angle_of_turns(steps)


def _elementary_programs() -> dict[str, Graph]:
    """Return the programs by name, and that of sine and cosine of one angle together."""
    programs = {name: program(name, F64) for name in PROGRAMS}
    both = Graph()
    x = both.input(F64)
    both.outputs = [inline(both, programs[name], [x])[0] for name in ("sin", "cos")]
    return {name: remove_dead_code(g).graph for name, g in {**programs, "sincos": both}.items()}


def _huge_angle_branch(g: Graph) -> Graph | None:
    """Return the branch of an elementary function that reduces huge angles, if it has one."""
    for region in g.regions.values():
        if isinstance(region, Switch) and ORDINARY in g.value.values():
            return max(region.branches, key=lambda body: len(body.op))
    return None


def _huge_angle_routine() -> Routine:
    """Return how ``arc_huge_angle`` is called, which replaces that branch (``text/angles.c``)."""
    name = "arc_huge_angle"
    return Routine(
        name=name,
        inputs=[(F64, [0])],
        outputs={F64: [0, 1], I64: [2]},
        block_inputs=[],
        block_outputs=[],
        by_value=True,
        result=None,
        frame=Frame(name, in_struct=False),
    )


def _parameters(names: Sequence[str]) -> list[str]:
    return [f"double {name}" for name in names]


def _write_elementary(
    c: C99, low: Lowering, name: str, g: Graph, unused: str = ""
) -> dict[str, str]:
    """Write an elementary function, and the tables and functions of its own."""
    f = Function(c.prefix, c.frame(c.prefix, large=False))
    names = ["x", "y"][: len(g.inputs)]
    values = low.lower(f, g, [Binding(operand=x) for x in names], range(len(g.outputs)))
    parameters = _parameters(names)
    comment = "Sine and cosine of an angle" if name == "sincos" else PROGRAMS[name].doc
    if name == "sincos":
        parameters.append("double *cosine")
        f.line(f"*cosine = {c.operand(f, values[1])};")
    f.line(f"return {c.operand(f, values[0])};")
    f.head = f"/* {comment}. */\n{unused}static double {f.name}({', '.join(parameters)})"
    c.add(f)
    return {**c.tables.pieces, **c.pieces}


def _write_angle_of_turns(steps: bool) -> dict[str, str]:
    """Write what the reduction of huge angles calculates in doubles."""
    name, names = "arc_angle_of_turns", ("top", "middle", "last")
    c = C99(name, steps=steps)
    f = Function(name, c.frame(name, large=False))
    primitives = GraphPrimitives()
    g = trace_program(lambda *turns: angle_of_turns(primitives, *turns), [F64] * 3)
    stores = [(k, Location(Array("angle"), k, F64)) for k in range(2)]
    Lowering(c, [g], PART).lower(f, g, [Binding(operand=x) for x in names], stores=stores)
    f.head = f"static void {name}({', '.join([*_parameters(names), 'double *angle'])})"
    c.add(f)
    return {**c.tables.pieces, **c.pieces}
