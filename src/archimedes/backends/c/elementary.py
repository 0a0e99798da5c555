"""The elementary functions as static C functions, written from their graph programs.

They are written once, all together, so that what they share (the reduction of huge angles) is one
function with one name, whichever of them a file uses.
"""

from __future__ import annotations

from functools import cache

from archimedes.backends.c.lowering import Lowering
from archimedes.backends.c.memory import Binding
from archimedes.backends.c.routines import Routine
from archimedes.backends.c.support import HELPERS
from archimedes.backends.c.writer import Function
from archimedes.graph.dtypes import F64
from archimedes.graph.elementary.table import ELEMENTARY
from archimedes.graph.expand import program
from archimedes.graph.trimming import trim

__all__ = ["library"]


@cache
def library() -> dict[str, str]:
    """Return every helper by name: elementary functions, their tables, and what they stand on.

    >>> "static double arc_sin(double x)" in library()["arc_sin"]
    True
    """
    programs = {name: trim(program(name, F64)).graph for name in ELEMENTARY}
    routines: dict[str, Routine] = {}
    found = dict(HELPERS)
    for name, g in programs.items():
        prefix = f"arc_{name}"
        low = Lowering(prefix, list(programs.values()), routines=routines)
        f = Function(prefix, low.frame(prefix, g))
        names = ["x", "y"][: len(g.inputs)]
        (value,) = low.inline(f, g, [Binding(operand=x) for x in names], [0])
        f.line(f"return {value.text()};")
        arguments = ", ".join(f"double {x}" for x in names)
        comment = f"/* {ELEMENTARY[name].doc}. */\n"
        f.head = f"{comment}static double {prefix}({arguments})"
        low.add(f)
        found |= {**low.tables.pieces, **low.pieces}
    return found
