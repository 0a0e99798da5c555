"""The elementary functions as static C functions, written from their graph programs.

They are written once, all together, so that what they share (the reduction of huge angles) is one
function with one name, whichever of them a file uses.
"""

from __future__ import annotations

from functools import cache

from archimedes.backends.c.c99 import C99, PART
from archimedes.backends.c.helpers.huge_angles import HUGE_ANGLES
from archimedes.backends.c.helpers.single_angles import SINGLE_ANGLES
from archimedes.backends.c.memory import Array, Frame
from archimedes.backends.c.routines import Routine
from archimedes.backends.c.steps import STEPS
from archimedes.backends.c.support import HELPERS
from archimedes.backends.c.writer import Function
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

__all__ = ["library"]


def _programs() -> dict[str, Graph]:
    """Return the programs by name, and that of sine and cosine of one angle together."""
    made = {name: program(name, F64) for name in PROGRAMS}
    both = Graph()
    x = both.input(F64)
    both.outputs = [inline(both, made[name], [x])[0] for name in ("sin", "cos")]
    return {name: remove_dead_code(g).graph for name, g in {**made, "sincos": both}.items()}


def _huge_branch(g: Graph) -> Graph | None:
    """Return the branch of an elementary function that reduces huge angles, if it has one."""
    for region in g.regions.values():
        if isinstance(region, Switch) and ORDINARY in g.value.values():
            return max(region.branches, key=lambda body: len(body.op))
    return None


def _huge_routine() -> Routine:
    """Return how ``arc_huge_angle`` is called, which is written by hand in that branch's place."""
    name = "arc_huge_angle"
    return Routine(
        name=name,
        inputs=[(F64, [0])],
        outputs={F64: [0, 1], I64: [2]},
        given=[],
        made=[],
        by_value=True,
        result=None,
        frame=Frame(name, in_struct=False),
    )


@cache
def library(steps: bool = False) -> dict[str, str]:
    """Return every helper by name: elementary functions, their tables, and what they stand on.

    ``steps``: their arithmetic as tables (``steps.py``).

    >>> "static double arc_exp(double x)" in library()["arc_exp"]
    True
    """
    programs = _programs()
    huge = {body.digest() for body in map(_huge_branch, programs.values()) if body is not None}
    routines: dict[object, Routine] = {(digest, None): _huge_routine() for digest in huge}
    found = {**HELPERS, **STEPS, **HUGE_ANGLES, **SINGLE_ANGLES}
    for name, g in programs.items():
        prefix = f"arc_{name}"
        c = C99(prefix, steps=steps)
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
    return found | _angle_of_turns(steps)


def _angle_of_turns(steps: bool) -> dict[str, str]:
    """Return what the reduction of huge angles calculates in doubles."""
    name, names = "arc_angle_of_turns", ("top", "middle", "last")
    c = C99(name, steps=steps)
    f = Function(name, c.frame(name, large=False))
    primitives = GraphPrimitives()
    g = trace_program(lambda *given: angle_of_turns(primitives, *given), [F64] * 3)
    stores = [(k, Location(Array("angle"), k, F64)) for k in range(2)]
    low = Lowering(c, [g], PART)
    low.lower(f, g, [Binding(operand=x) for x in names], stores=stores)
    f.head = f"static void {name}({', '.join(f'double {x}' for x in names)}, double *angle)"
    c.add(f)
    return {**c.tables.pieces, **c.pieces}
