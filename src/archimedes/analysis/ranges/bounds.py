"""``f.bounds(ranges)``: certified ranges of a function's results, and what is proven of it."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from os.path import basename
from types import MethodType
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.analysis.findings import Finding, Report
from archimedes.analysis.ranges.arguments import read_arguments
from archimedes.analysis.ranges.subdivision import UNROLL, Ranges, bound_graph
from archimedes.analysis.ranges.sweep import Problem
from archimedes.checks import check_whole
from archimedes.function.compiled import Compiled, CompiledMethod
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.passes import Origin
from archimedes.graph.retype import retype

__all__ = ["Bounds", "bounds"]

Array = np.ndarray

#: What is proven where there is no problem of a kind, and what a finding is called.
PROOFS = {
    "overflow": ("no overflow", "overflow"),
    "division": ("no division by zero", "division by zero"),
    "domain": ("no root or logarithm of a negative number", "domain"),
    "table": ("no table end is met", "table end"),
    "integer": ("no integer overflow", "integer overflow"),
    "unknown": ("everything is known", "not known"),
}
#: Results that are printed.
_SHOWN = 40
#: How many roundoffs more a division may be off that has become a product with a reciprocal.
_FAST_DIVISION = 2.0


@dataclass(frozen=True)
class Bounds:
    """Certified ranges of a function's results.

    What the function computes, to the last bit, for any arguments in the ranges lies between
    `lower` and `upper`, or is nan where `nan` is true.

    Parameters
    ----------
    name : str
        Name of the function.
    lower : tree
        Least values, in the structure of the result.
    upper : tree
        Largest values.
    nan : tree
        Whether a result may be nan (bools).
    findings : Report
        What could not be proven, each with the user's line.
    names : tuple of str
        Names of the numbers in the result.
    boxes : int
        Number of boxes that were computed.
    inputs : tuple
        Name, lower and upper end of each number in the arguments.

    Examples
    --------
    >>> import archimedes as arc
    >>> f = arc.compile(lambda x, y: x / y)
    >>> print(f.bounds({"x": (1.0, 2.0), "y": (4.0, 8.0)}))
    bounds of <lambda>, 1 box
      result  0.125 to 0.5
    proven: no overflow, no division by zero, no root or logarithm of a negative number, \
no table end is met, no integer overflow, everything is known
    """

    name: str
    lower: Any
    upper: Any
    nan: Any
    findings: Report
    names: tuple[str, ...]
    boxes: int
    inputs: tuple[tuple[str, float, float], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything is proven: there are no findings, and no result may be nan."""
        return self.findings.ok and not any(np.any(x) for x in tree.leaves(self.nan))

    @property
    def proofs(self) -> dict[str, bool]:
        """What is proven, by statement."""
        found = {finding.kind for finding in self.findings}
        return {statement: kind not in found for statement, kind in PROOFS.values()}

    def rows(self) -> list[tuple[str, float, float, bool]]:
        """Return name, lower and upper end, and whether it may be nan, of each number."""
        parts = zip(*(tree.leaves(part) for part in (self.lower, self.upper, self.nan)))
        numbers = [leaf for leaf in parts if _is_number(leaf[0])]
        columns = [np.concatenate([np.ravel(x) for x in c]) for c in zip(*numbers)]
        return [
            (name, low.item(), high.item(), bool(nan))
            for name, low, high, nan in zip(self.names, *columns)
        ]

    def contains(self, result: Any) -> bool:
        """Return whether all numbers of a result lie in the bounds.

        Parameters
        ----------
        result : tree
            What a call of the function returned, or many calls at once: with further axes in front.
        """
        parts = (tree.leaves(x) for x in (result, self.lower, self.upper, self.nan))
        return all(
            bool(np.all(((low <= x) & (x <= high)) | (np.isnan(x) & nan)))
            for x, low, high, nan in zip(*parts)
            if _is_number(low)
        )

    def __str__(self) -> str:
        rows = self.rows()
        width = max((len(row[0]) for row in rows[:_SHOWN]), default=0)
        lines = [f"bounds of {self.name}, {self.boxes} box{'es' if self.boxes != 1 else ''}"]
        for name, low, high, nan in rows[:_SHOWN]:
            least, most = format_outward(low, -1), format_outward(high, 1)
            lines.append(f"  {name:{width}}  {least} to {most}" + (" or nan" if nan else ""))
        if len(rows) > _SHOWN:
            lines.append(f"  and {len(rows) - _SHOWN} more")
        proven = [statement for statement, holds in self.proofs.items() if holds]
        lines.append("proven: " + (", ".join(proven) or "nothing"))
        if not self.findings.ok:
            lines += ["not proven:", *(str(finding) for finding in self.findings)]
        return "\n".join(lines)

    __repr__ = __str__


def _is_number(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind in "fib"


def format_outward(number: float, sign: int, digits: int = 8) -> str:
    """Return a number with few digits, rounded up (sign 1) or down (sign -1): still a bound.

    >>> format_outward(1 / 3, -1), format_outward(1 / 3, 1), format_outward(2.0, 1)
    ('0.33333333', '0.33333334', '2')
    """
    if not np.isfinite(number) or isinstance(number, (bool, int)):
        return str(number)
    towards = ROUND_CEILING if sign > 0 else ROUND_FLOOR
    return f"{float(Context(digits, towards).create_decimal_from_float(float(number))):.{digits}g}"


def bounds(
    func: Callable[..., Any],
    ranges: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] = {},
    *,
    boxes: int = 256,
) -> Bounds:
    """Return certified ranges of what a function computes for arguments in given ranges.

    This is what ``arc.compile(func).bounds(ranges)`` does.

    Parameters
    ----------
    func : callable
        The function, compiled or not.
    ranges : dict, or tree
        Ranges of the arguments, see :meth:`archimedes.Compiled.bounds`.
    args : sequence, optional
        Values of the arguments, of which `ranges` then names parts.
    kwargs : mapping, optional
        The same for arguments that are passed by name.
    boxes : int, optional
        How many boxes the ranges may be divided into. 256 by default.

    Examples
    --------
    >>> import numpy as np
    >>> result = bounds(lambda x: np.exp(-x) * np.sin(x), {"x": (0.0, 1.0)})
    >>> bool(result.lower <= 0.0), bool(0.309 < result.upper < 0.33)
    (True, True)
    """
    check_whole(boxes, "bounds: boxes", 1)
    if isinstance(func, CompiledMethod):
        method: Any = func
        func = MethodType(method.func.function, method.args[0])
    compiled = func if isinstance(func, Compiled) else Compiled(func)
    arguments = read_arguments(compiled, ranges, args, kwargs)
    return bound_recording(
        compiled.name,
        arguments.recording,
        arguments.ends,
        arguments.names,
        boxes=boxes,
        numerics=compiled.numerics,
        return_names=compiled.return_names,
    )


def bound_recording(
    name: str,
    recording: Recording,
    ends: Array,
    input_names: Sequence[str] = (),
    *,
    boxes: int = 256,
    numerics: str = "strict",
    float32: bool = False,
    return_names: Sequence[str] | None = None,
) -> Bounds:
    """Return the bounds of a recording whose inputs have the ends (2, inputs).

    ``input_names`` are those of the argument leaves. ``float32``: of the program with float32 in
    place of float64, as C code may have it.
    """
    graph, origin = recording.graph, dict[int, Origin]()
    if float32:
        graph = retype(graph, origin)
        ends = ends.astype(np.float32).astype(float)
    error = _FAST_DIVISION if numerics == "fast" else 0.0
    ranges = bound_graph(graph, ends, boxes, UNROLL, error)
    findings = Report(find_problems(ranges.problems, origin), about=name)
    lower, upper, nan = (_result(recording, ranges, part, float32) for part in range(3))
    names = _names(recording, return_names)
    inputs = zip(_numbers(input_names, recording.leaves), *ends.tolist())
    return Bounds(name, lower, upper, nan, findings, names, ranges.boxes, tuple(inputs))


def _numbers(names: Sequence[str], leaves: Sequence[Any]) -> list[str]:
    """Return names of all numbers of leaves."""
    return [
        name + "".join(f"[{k}]" for k in at)
        for name, leaf in zip(names, leaves)
        if getattr(leaf, "traced", True)
        for at in np.ndindex(*leaf.shape)
    ]


def _result(recording: Recording, ranges: Ranges, part: int, float32: bool) -> Any:
    """Return lower ends (0), upper ends (1) or whether it may be nan (2) as a result's tree."""
    numbers = ranges.nan if part == 2 else ranges.ends[part]
    leaves = []
    for out in recording.outs:
        if not out.spec.traced:
            static = out.spec.value
            leaves.append(np.zeros(np.shape(static), dtype=bool) if part == 2 else static)
            continue
        dtype = np.dtype(bool) if part == 2 else DTYPES[out.spec.code]
        values = numbers[out.start : out.stop].reshape(out.spec.shape)
        if dtype.kind == "i":
            limits = np.iinfo(np.int64)
            largest = np.nextafter(2.0**63, 0.0)
            exact = np.clip(values, -(2.0**63), largest).astype(np.int64)
            values = np.where(values > largest, limits.max, exact)
        if dtype == np.float64 and float32:
            dtype = np.dtype(np.float32)
        # Without the sign of a zero, which says more than a reader wants to know.
        leaves.append((values + 0.0 if dtype.kind == "f" else values).astype(dtype)[()])
    return recording.out_tree.unflatten(leaves)


def _names(recording: Recording, return_names: Sequence[str] | None) -> tuple[str, ...]:
    paths, outs = [], []
    for path, out in zip(recording.out_tree.paths("result"), recording.outs):
        if not out.spec.traced and not _is_number(out.spec.value):
            continue
        for k, own in enumerate(return_names or ()):
            head = f"result[{k}]"
            if path == head or path.startswith((f"{head}.", f"{head}[")):
                path = own + path[len(head) :]
                break
        paths.append(path)
        outs.append(out)
    return tuple(_numbers(paths, outs))


def find_problems(
    problems: Sequence[Problem], origin: Mapping[int, Origin] | None = None
) -> list[Finding]:
    """Return what could not be excluded as findings, one for each line and kind.

    ``origin``: where graphs come from that have no lines of their own.
    """
    ends: dict[tuple[str, str, Any], tuple[float, float]] = {}
    for problem in problems:
        lines = problem.lines
        if not lines and origin and id(problem.graph) in origin:
            source, node_of = origin[id(problem.graph)]
            node = node_of.get(problem.node)
            if source.lines is not None and node is not None:
                lines = source.lines[node] or ()
        key = problem.kind, problem.text, lines
        low, high = ends.get(key, (np.nan, np.nan))
        ends[key] = float(np.fmin(low, problem.low)), float(np.fmax(high, problem.high))
    found = []
    for (kind, text, lines), (low, high) in ends.items():
        message = text.format(f"{low:.6g}", f"{high:.6g}")
        if not lines:
            found.append(Finding("<unknown>", 0, message, "", PROOFS[kind][1]))
            continue
        inner, outer = lines[0], lines[-1]
        if (outer.file, outer.number) != (inner.file, inner.number):
            message += f", for {basename(outer.file)}:{outer.number}"
        expression = linecache.getline(inner.file, inner.number).strip()
        found.append(Finding(inner.file, inner.number, message, expression, PROOFS[kind][1]))
    return found
