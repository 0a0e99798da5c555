"""Writing of regions: a table keyed by region class.

``write(low, scope, region, outs)`` computes a region and binds its used outputs ``outs`` (ids of
``out`` nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archimedes.backends.c.copies import arrays, copy_all
from archimedes.backends.c.loops import write_map, write_scan, write_while
from archimedes.backends.c.lowering import AS_INT, Lowering
from archimedes.backends.c.memory import Binding
from archimedes.backends.c.routines import FEW
from archimedes.backends.c.scope import Scope
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import F64
from archimedes.graph.ops import CODES
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Solve, Switch, While

__all__ = ["REGIONS"]


def _call(low: Lowering, scope: Scope, region: Call, outs: Sequence[int]) -> None:
    given = scope.bindings(region.inputs.tolist())
    for i, binding in zip(
        outs, low.block(scope.f, region, region.body, given, scope.numbers(outs))
    ):
        scope.bind(i, binding)


def _switch(low: Lowering, scope: Scope, region: Switch, outs: Sequence[int]) -> None:
    """Write an if for the branches; only the one that is taken runs."""
    f = scope.f
    index, *rest = region.inputs.tolist()
    given, wanted = scope.bindings(rest), scope.numbers(outs)
    dtypes = [region.out_dtypes[k] for k in wanted]
    places = arrays(f, dtypes) if len(wanted) > FEW else []
    names = [] if places else [f.variable(d) for d in dtypes]
    last = len(region.branches) - 1
    for k, body in enumerate(region.branches):
        with f.block(_test(scope, index, k, last)):
            values = low.block(f, region, body, given, wanted)
            if places:
                copy_all(f, low.tables, list(zip(places, values)))
            for name, value in zip(names, values):
                f.line(f"{name} = {value.text()};")
    for k, i in enumerate(outs):
        scope.bind(i, Binding(place=places[k]) if places else Binding(operand=names[k]))


def _test(scope: Scope, index: int, k: int, last: int) -> str:
    """Write the head of branch ``k``, for an index that is clamped to the branches."""
    g, lead = scope.graph, "else " if k else ""
    if k == last:
        return lead.strip()
    text = scope.operand(index)
    if last == 1 and g.op[index] == CODES["i64"] and text.startswith(AS_INT):
        return f"if (!{text.removeprefix(AS_INT)[:-1]})"
    relation = "<=" if k == 0 else "=="
    return f"{lead}if ({text} {relation} {k})"


def _solve(low: Lowering, scope: Scope, region: Solve, outs: Sequence[int]) -> None:
    f, n, m = scope.f, region.size, region.columns
    width = n + m
    few = len(outs) <= FEW
    count = n * width
    if few:
        work = f.frame.buffer(f"solve {n} {m}", region.dtype, count)
    else:
        work = f.frame.array(region.dtype, count)
    given = scope.bindings(region.inputs.tolist())
    rows = [
        given[r * n : (r + 1) * n] + given[n * n + r * m : n * n + (r + 1) * m] for r in range(n)
    ]
    values = [b for row in rows for b in row]
    copy_all(f, low.tables, [(work.at(k), b) for k, b in enumerate(values)])
    f.line(f"arc_solve{'' if region.dtype == F64 else 'f'}({work.address}, {n}, {m});")
    for i in outs:
        r, c = divmod(scope.graph.b[i], m)
        found = Binding(place=work.at(r * width + n + c))
        scope.bind(i, f.load(found, region.dtype) if few else found)


def _host(low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
    where = f" ({region.line})" if region.line else ""
    raise CodegenError(
        f"the function calls back into Python: {region.label}{where}. A microcontroller has no "
        "Python, so C cannot be generated for it: write the callback in NumPy, or pass its result "
        "as an argument."
    )


#: Writing of every region.
REGIONS: dict[type[Region], Callable[..., None]] = {
    Call: _call,
    Scan: write_scan,
    While: write_while,
    Switch: _switch,
    Map: write_map,
    Solve: _solve,
    Host: _host,
}
