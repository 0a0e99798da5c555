"""``precision``: run a compiled function in two arithmetics and say where digits are lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from archimedes.analysis.precision.arithmetics import DOUBLE, SINGLE, Arithmetic
from archimedes.analysis.precision.diagnosis import diagnose, line_errors
from archimedes.analysis.precision.execution import Execution
from archimedes.analysis.precision.mixed import MixedPrograms, Programs, find_double
from archimedes.analysis.precision.report import PrecisionReport
from archimedes.analysis.precision.results import (
    Comparison,
    describe_results,
    find_floors,
    relative_errors,
)
from archimedes.analysis.precision.sampling import sample
from archimedes.analysis.precision.sources import Sources
from archimedes.analysis.precision.statistics import Statistics, split
from archimedes.analysis.ranges.arguments import read_arguments
from archimedes.analysis.ranges.bounds import PROOFS, bound_recording
from archimedes.backends.protocol import estimate_work
from archimedes.errors import TraceError
from archimedes.function.compiled import Compiled
from archimedes.function.recording import Recording
from archimedes.graph.blocks.interfaces import Form
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import has_blocks
from archimedes.slow_notice import notify_if_slow
from archimedes.symbolic import is_tracing
from archimedes.symbolic.core.user_frames import recording_lines

#: Relative errors that results may have unless the caller says otherwise, by the dtype.
RTOL = {"float32": 1e-4, "float64": 1e-10}
#: Samples of arguments out of ranges, and operations that they may take together.
SAMPLES = 256
#: Boxes that ranges are divided into for proofs.
BOXES = 64
_MUCH_WORK = 4_000_000
#: Sources that are examined one by one; those with smaller errors are examined together.
_SOURCES = 24


def precision(
    function: Compiled[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    dtype: DTypeLike = np.float32,
    ranges: Mapping[str, Any] | None = None,
    rtol: float | None = None,
    atol: float = 0.0,
    digits: float | None = None,
) -> PrecisionReport:
    """Return where a compiled function loses digits: see ``Compiled.precision``."""
    if is_tracing():
        raise TraceError(
            f"{function.name}.precision: call it outside of functions that are being recorded, "
            "with plain numbers"
        )
    ends = None
    if ranges is None:
        with recording_lines():
            leaves, recording, _ = function.lookup(args, kwargs)
        samples = [
            np.asarray(x, dtype=DTYPES[spec.code]).reshape(1, *spec.shape)
            for x, spec in zip(leaves, recording.leaves)
            if spec.traced
        ]
    else:
        recording, ends, names = read_arguments(function, ranges, args, kwargs)
        samples = sample_ranges(recording, ends, names)
    code = getattr(function.function, "__code__", None)
    definition = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    return examine(
        function.name,
        recording,
        samples,
        ends=ends,
        definition=definition,
        result_names=_result_paths(recording, function.return_names),
        dtype=dtype,
        rtol=rtol,
        atol=atol,
        digits=digits,
    )


def examine(
    name: str,
    recording: Recording,
    samples: Sequence[np.ndarray],
    *,
    ends: np.ndarray | None = None,
    definition: tuple[str, int] = ("", 0),
    result_names: Sequence[str] | None = None,
    dtype: DTypeLike = np.float32,
    rtol: float | None = None,
    atol: float = 0.0,
    digits: float | None = None,
) -> PrecisionReport:
    """Examine a recording, made with the lines of its nodes, on samples of its traced arguments.

    ``samples`` have an axis of them in front. ``ends`` (2, numbers) are the ranges they are from,
    for which proofs are tried. ``result_names`` name the leaves of the result.
    """
    low, high = _arithmetics(dtype)
    rtol = _tolerance(low, rtol, digits)
    graph, count = recording.blocks, len(samples[0]) if samples else 1
    traced = [k for k, spec in enumerate(recording.leaves) if spec.traced]
    names, forms = recording.names, recording.forms()
    sources = Sources(graph, [names[k] for k in traced for _ in range(forms[k].width)])
    forms = [forms[k] for k in traced]
    short, long = (Execution(a, compiled=high is DOUBLE) for a in (low, high))
    with notify_if_slow(
        f"counting the digits of {name}()", lambda: _explain_slowness(graph, count)
    ):
        outs = [_run(e, graph, forms, samples, count) for e in (short, long)]
        statistics = Statistics(short, long, sources)
    programs = Programs(recording, samples, count)
    compared = _compare(recording, outs, count, atol)
    if low is SINGLE and np.any(compared.worst > rtol):
        compared = _without_zeros(compared, programs, statistics, atol)
    failing = bool(np.any(compared.worst > rtol))
    effects: dict[int, np.ndarray] | None = None
    double: list[int] = []
    double_error = 0.0
    if failing and low is SINGLE:
        mixed = MixedPrograms(programs, sources, lambda x: _worst(x, compared, atol))
        effects, double, double_error = _search(mixed, _groups(statistics), rtol)
    if not definition[0]:
        lines = [(s.file, s.number) for s in sources.listed if s.file]
        definition = lines[0] if lines else definition
    diagnosis = diagnose(statistics, effects, rtol, compared.worst, definition)
    paths = recording.out_tree.paths("result") if result_names is None else result_names
    shown = [path for path, out in zip(paths, recording.outs) if out.spec.traced]
    zeros = [
        f"{path} cannot be told from zero in float64: its error is compared with that of its terms"
        for path, floor in zip(shown, compared.floors)
        if np.any(floor > 0.0)
    ]
    about = name if ends is None else f"{name} at {count} samples of its ranges"
    proven, sampled = _prove(recording, ends, low is SINGLE, statistics, count)
    return PrecisionReport(
        diagnosis.findings,
        about,
        dtype=low.name,
        against=high.name,
        results=describe_results(shown, compared, np.dtype(low.name), low.digits),
        lines=line_errors(statistics, effects),
        rtol=rtol,
        double=[_describe_source(sources, n) for n in double],
        double_error=double_error,
        proven=proven,
        sampled=sampled,
        notes=[*diagnosis.notes, *zeros],
    )


def sample_ranges(recording: Recording, ends: np.ndarray, names: Sequence[str]) -> list[np.ndarray]:
    """Return samples of the traced arguments, as many as there is time for."""
    traced = [k for k, spec in enumerate(recording.leaves) if spec.traced]
    most = int(np.clip(_MUCH_WORK // max(1, estimate_work(recording.blocks)), 9, SAMPLES))
    specs = [recording.leaves[k] for k in traced]
    return sample(ends, [names[k] for k in traced], specs, most)


def _prove(
    recording: Recording,
    ends: np.ndarray | None,
    float32: bool,
    statistics: Statistics,
    count: int,
) -> tuple[list[str], list[str]]:
    """Return what intervals prove for all arguments in the ranges, and what they do not."""
    if ends is None:
        return [], []
    boxes = int(np.clip(_MUCH_WORK // max(1, 100 * estimate_work(recording.blocks)), 1, BOXES))
    bounds = bound_recording("", recording, ends, boxes=boxes, float32=float32)
    proven, sampled = [], []
    overflows = sum(node.overflows for node in statistics.nodes)
    for statement, kind in PROOFS.values():
        open_lines = [f for f in bounds.findings if f.kind == kind]
        if not open_lines:
            if kind != PROOFS["unknown"][1]:
                proven.append(statement)
            continue
        shown = "; ".join(f"{PurePath(f.file).name}:{f.line}: {f.message}" for f in open_lines[:3])
        more = f"; and {len(open_lines) - 3} more lines" if len(open_lines) > 3 else ""
        seen = f" (at {count} samples: {overflows})" if kind == "overflow" else ""
        sampled.append(f"{statement}{seen}: not proven for {shown}{more}")
    return proven, sampled


def _worst(results: list[np.ndarray], compared: Comparison, atol: float) -> np.ndarray:
    """Return the largest relative error of each result."""
    with np.errstate(all="ignore"):
        errors = [a.astype(float) - b.astype(float) for a, b in zip(results, compared.high)]
    found = relative_errors(results, compared.high, errors, compared.floors, atol)
    return np.array([float(x.max(initial=0.0)) for x in found])


def _search(
    mixed: MixedPrograms, groups: list[frozenset[int]], rtol: float
) -> tuple[dict[int, np.ndarray], list[int], float]:
    """Return the effect of each source on the results, those that need double, the error then."""
    effects = {n: mixed.errors(group) for group in groups if len(group) == 1 for n in group}
    double = find_double(groups, [mixed.error(group) for group in groups], mixed, rtol)
    single = frozenset[int]().union(*groups).difference(*double)
    return effects, [n for group in double for n in sorted(group)], mixed.error(single)


def _explain_slowness(graph: Graph, count: int) -> str:
    work = estimate_work(graph) * count
    return f"some {work:,} operations run in two arithmetics; shorter loops take less time"


def compare(
    about: str,
    recording: Recording,
    reference: Recording,
    samples: Sequence[np.ndarray],
    result_names: Sequence[str],
) -> PrecisionReport:
    """Return the errors of the results of a program against those of another one in float64."""
    count = len(samples[0]) if samples else 1
    low = Programs(recording, samples, count)(recording.blocks)
    high = Programs(reference, samples, count)(reference.blocks)
    with np.errstate(all="ignore"):
        errors = [a.astype(float) - b.astype(float) for a, b in zip(low, high)]
    floors = [np.zeros(x.shape) for x in high]
    relative = relative_errors(low, high, errors, floors, 0.0)
    compared = Comparison(low, high, errors, floors, relative)
    results = describe_results(result_names, compared, np.dtype(np.float32), SINGLE.digits)
    return PrecisionReport([], about, dtype="mixed", results=results, rtol=RTOL["float32"])


def _arithmetics(dtype: DTypeLike) -> tuple[Arithmetic, Arithmetic]:
    kind = np.dtype(dtype)
    if kind == np.float32:
        return SINGLE, DOUBLE
    if kind == np.float64:
        from archimedes.analysis.precision.double_double import DOUBLE_DOUBLE

        return DOUBLE, DOUBLE_DOUBLE
    raise ValueError(f"precision: dtype={dtype!r}: choose np.float32 or np.float64")


def _tolerance(low: Arithmetic, rtol: float | None, digits: float | None) -> float:
    if rtol is not None and digits is not None:
        raise ValueError("precision: give rtol or digits, not both")
    if digits is not None:
        rtol = 10.0 ** -float(digits)
    if rtol is None:
        return RTOL[low.name]
    if not 0.0 < rtol < np.inf:
        raise ValueError(f"precision: rtol={rtol!r} must be positive, such as 1e-4 for four digits")
    if rtol < low.eps:
        raise ValueError(
            f"precision: {low.name} has {low.digits:.1f} digits: rtol={rtol:.1e} cannot be reached"
        )
    return float(rtol)


def _run(
    execution: Execution,
    graph: Graph,
    forms: Sequence[Form],
    samples: Sequence[np.ndarray],
    count: int,
) -> list[list[Any]]:
    """Return the outputs of all samples: all at once, or one by one."""
    apart = count == 1 or has_blocks(graph) or estimate_work(graph) > 10_000
    rows = []
    for number in range(count if apart else 1):
        k: Any = number if apart else slice(None)
        inputs: list[Any] = []
        for form, leaf in zip(forms, samples):
            value = leaf[k]
            if form.block:
                inputs.append(value.ravel())
            elif apart:
                inputs.extend(value.ravel())
            else:
                inputs.extend(value.reshape(count, -1).T)
        rows.append(execution.run(graph, inputs, number))
    return rows


def _compare(
    recording: Recording,
    outs: Sequence[list[list[Any]]],
    count: int,
    atol: float,
) -> Comparison:
    """Put the outputs of both executions together to results, (samples, *shape), and compare."""
    low, high, errors = [], [], []
    at = 0
    forms = recording.out_forms()
    for out, form in zip(recording.outs, forms):
        if not out.spec.traced:
            continue
        arrays = []
        for rows in outs:
            parts = []
            for row in rows:
                many = count if len(rows) < count else 1
                parts.append(_gather(row[at : at + form.width], form, many, out.spec.shape))
            arrays.append(parts)
        at += form.width
        dtype = DTYPES[out.spec.code]
        a = np.concatenate([x for x, _ in arrays[0]]).astype(dtype)
        b = np.concatenate([x for x, _ in arrays[1]]).astype(dtype)
        rest = np.concatenate([np.broadcast_to(r, x.shape) for x, r in arrays[1]])
        with np.errstate(all="ignore"):
            errors.append((a.astype(float) - b.astype(float)) - rest)
        low.append(a)
        high.append(b)
    floors = [np.zeros(x.shape) for x in high]
    relative = relative_errors(low, high, errors, floors, atol)
    return Comparison(low, high, errors, floors, relative)


def _without_zeros(
    compared: Comparison, programs: Programs, statistics: Statistics, atol: float
) -> Comparison:
    """Compare results that float64 itself cannot tell from zero with the terms they are made of."""
    largest = max((node.size for node in statistics.nodes), default=0.0)
    floors = find_floors(compared.high, programs.noise(), largest)
    low, high, errors = compared.low, compared.high, compared.errors
    return Comparison(low, high, errors, floors, relative_errors(low, high, errors, floors, atol))


def _gather(
    numbers: list[Any], form: Form, count: int, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of a result as an array (count, *shape), and what is left of them."""
    parts = []
    for k in range(2):
        columns = [np.asarray(split(x)[k]) for x in numbers]
        if form.block:
            parts.append(np.broadcast_to(columns[0], (form.size,)).reshape(1, *shape))
            continue
        rows = [np.broadcast_to(x, (count,)) for x in columns]
        array = np.stack(rows, axis=-1) if rows else np.zeros((count, 0))
        parts.append(array.reshape(count, *shape))
    return parts[0], parts[1]


def _groups(statistics: Statistics) -> list[frozenset[int]]:
    """Return the sources that are examined one by one, and the others together."""
    sources = statistics.sources
    worst: dict[int, float] = {n: np.inf for n, s in enumerate(sources.listed) if s.argument}
    for node in statistics.nodes:
        if node.source >= 0:
            worst[node.source] = max(node.error, worst.get(node.source, 0.0))
    order = sorted(worst, key=lambda n: -worst[n])
    groups = [frozenset({n}) for n in order[:_SOURCES]]
    rest = frozenset(order[_SOURCES:])
    return [*groups, rest] if rest else groups


def _result_paths(recording: Recording, names: Sequence[str] | None) -> Sequence[str]:
    """Return the results as messages name them."""
    tree = recording.out_tree
    if names is None:
        return tree.paths("result")
    if len(names) == 1:
        return tree.paths(names[0])
    return [path for name, child in zip(names, tree.children) for path in child.paths(name)]


def _describe_source(sources: Sources, number: int) -> str:
    source = sources.listed[number]
    return f"{source.where} ({source.target})" if source.target else source.where
