"""The elementary functions as static C functions, written from their graph programs.

They are written once, all together, so that what they share (the reduction of huge angles) is one
function with one name, whichever of them a file uses.
"""

from __future__ import annotations

from functools import cache

from archimedes.backends.c.c99 import C99, PART
from archimedes.backends.c.huge_angles import HUGE_ANGLES, huge_branch, huge_routine
from archimedes.backends.c.routines import Routine
from archimedes.backends.c.single_angles import SINGLE_ANGLES
from archimedes.backends.c.support import HELPERS
from archimedes.backends.c.writer import Function
from archimedes.backends.lowering import Binding, Lowering
from archimedes.graph.dtypes import F64
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.expand import program
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.trimming import trim

__all__ = ["library"]


def _programs() -> dict[str, Graph]:
    """Return the programs by name, and that of sine and cosine of one angle together."""
    made = {name: program(name, F64) for name in PROGRAMS}
    both = Graph()
    x = both.input(F64)
    both.outputs = [inline(both, made[name], [x])[0] for name in ("sin", "cos")]
    return {name: trim(g).graph for name, g in {**made, "sincos": both}.items()}


@cache
def library() -> dict[str, str]:
    """Return every helper by name: elementary functions, their tables, and what they stand on.

    >>> "static double arc_exp(double x)" in library()["arc_exp"]
    True
    """
    programs = _programs()
    huge = {body.digest() for body in map(huge_branch, programs.values()) if body is not None}
    routines: dict[object, Routine] = {(digest, None): huge_routine() for digest in huge}
    found = {**HELPERS, **HUGE_ANGLES, **SINGLE_ANGLES}
    for name, g in programs.items():
        prefix = f"arc_{name}"
        c = C99(prefix)
        low = Lowering(c, list(programs.values()), PART, routines)
        f = Function(prefix, c.frame(prefix, large=False))
        names = ["x", "y"][: len(g.inputs)]
        values = low.lower(f, g, [Binding(operand=x) for x in names], range(len(g.outputs)))
        arguments = [f"double {x}" for x in names]
        comment = "Sine and cosine of an angle" if name == "sincos" else PROGRAMS[name].doc
        if name == "sincos":
            arguments.append("double *cosine")
            f.line(f"*cosine = {c.operand(f, values[1])};")
        f.line(f"return {c.operand(f, values[0])};")
        # Functions of float may do without those of double.
        unused = "ARC_UNUSED " if f"{prefix}f" in SINGLE_ANGLES else ""
        f.head = f"/* {comment}. */\n{unused}static double {prefix}({', '.join(arguments)})"
        c.add(f)
        found |= {**c.tables.pieces, **c.pieces}
    return found
