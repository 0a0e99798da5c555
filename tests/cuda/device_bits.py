"""Bits of the device against the interpreter's: every op, region, and random programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import archimedes
from archimedes.graph import CODES, Graph
from archimedes.graph.regions.base import has_blocks
from archimedes.symbolic.core.loop_nests import loops_from

from ..fuzz.programs import generate
from ..fuzz.runner import copies, load
from ..programs.catalogue import programs
from ..programs.ops import OPS, op_program
from ..programs.program import Program, program
from ..programs.random_blocks import random_blocks
from ..programs.random_graphs import READS_SIGN, random_graph
from ..programs.values import bits_equal, samples
from .cases import Case

__all__ = ["Job", "Part", "check_all", "jobs", "make"]

#: Programs in one file.
TOGETHER = 20
ROWS = 301


class Job(NamedTuple):
    """Programs ``begin`` to ``end`` of a group, as one file."""

    group: str
    begin: int
    end: int
    single: bool = False
    shared: bool = False


class Part(NamedTuple):
    """What a worker made of a job: machine code, or an error."""

    job: Job
    cubin: bytes
    cases: list[tuple[str, int, int, list[np.ndarray], list[np.ndarray]]]
    error: str = ""


def written(seed: int) -> Graph:
    """A random function in NumPy, recorded with its arrays as loops.

    Functions that read signs are left out: the sign of a nan is outside the contract.
    """
    while True:
        made = generate(seed)
        with loops_from(2, 1):
            found = archimedes.compile(load(made.source, archimedes))
            graph = found.recording(*copies(made.inputs)).graph
        if not _ops_of(graph) & {CODES[name] for name in READS_SIGN}:
            return graph
        seed += 10**7


def _ops_of(graph: Graph) -> set[int]:
    """The operations of a graph, bodies included."""
    found = {graph.op[i] for i in graph.live()}
    for region in graph.regions.values():
        for body in region.bodies:
            found |= _ops_of(body)
    return found


#: Random programs by group, and their part of all.
MAKERS = {"random": random_graph, "blocks": random_blocks, "written": written}
PARTS = {"random": 0.5, "blocks": 0.4, "written": 0.1}


def _random(group: str, seed: int) -> Program:
    graph, rng = MAKERS[group](seed), np.random.default_rng(seed)
    # The interpreter takes blocks one instance at a time.
    rows = 37 if has_blocks(graph) else ROWS
    return program(
        f"{group}{seed}", graph, None, [samples(d, rows, rng) for d in graph.input_dtypes]
    )


def _members(job: Job) -> list[Program]:
    numbers = range(job.begin, job.end)
    if job.group in MAKERS:
        return [_random(job.group, seed) for seed in numbers]
    every = programs() if job.group == "regions" else [op_program(*op) for op in OPS]
    return list(every[job.begin : job.end])


def make(job: Job, architecture: str, emulated: bool) -> Part:
    """Write, compile and interpret the programs of a job."""
    from archimedes.backends.cuda.device import compiler_major
    from archimedes.backends.cuda.kernel_text import assemble_file
    from archimedes.backends.cuda.nvrtc import compile_cubin

    try:
        found = [Case(made, job.single, job.shared) for made in _members(job)]
        text = assemble_file([case.kernel() for case in found])
        if emulated:
            cubin = text.encode()
        else:
            cubin = compile_cubin(text, architecture, compiler_major())
    except Exception as error:
        return Part(job, b"", [], f"{type(error).__name__}: {str(error)[:600]}")
    cases = [(c.name, c.count, c.plan.threads, c.inputs, c.expected) for c in found]
    return Part(job, cubin, cases)


def jobs(count: int) -> list[Job]:
    """All ops and regions, in double and float, with shared arguments; and random programs."""

    def cut(group: str, end: int, **options: bool) -> list[Job]:
        starts = range(0, end, TOGETHER)
        return [Job(group, k, min(k + TOGETHER, end), **options) for k in starts]

    fixed = [
        *cut("ops", len(OPS)),
        *cut("regions", len(programs())),
        *cut("regions", len(programs()), shared=True),
        *cut("regions", len(programs()), single=True),
    ]
    kinds = [
        cut(group, round(part * count), single=single)
        for group, part in PARTS.items()
        for single in (False, True)
    ]
    # In turn, so that a run that ends early has some of each.
    return fixed + sorted(
        (job for kind in kinds for job in kind), key=lambda job: job.end / PARTS[job.group]
    )


def check(part: Part) -> list[str]:
    """Run the kernels of a part and say what differs."""
    import cupy
    from cupy.cuda import function

    from archimedes.backends.cuda.kernel_text import SHARED

    if part.error:
        return [f"{part.job}: {part.error}"]
    module = function.Module()
    module.load(part.cubin)
    wrong = []
    for name, count, threads, inputs, expected in part.cases:
        given = [cupy.asarray(x) for x in inputs]
        # Not zeros, so that what is not written shows.
        results = [cupy.asarray(np.full(x.shape, 1, x.dtype)) for x in expected]
        arrays = [x for x in (*given, *results) if x.size]
        blocks = -(-count // threads)
        kernel = module.get_function(name)
        kernel((blocks,), (threads,), (*arrays, np.uint64(count)), SHARED)
        for k, (got, want) in enumerate(zip(results, expected)):
            same = bits_equal(got.get(), want)
            if not same.all():
                at = tuple(np.argwhere(~same)[0])
                wrong.append(
                    f"{name} (shared={part.job.shared}) output {k}: {(~same).sum()} of "
                    f"{same.size} differ, first at {at}: {got.get()[at]!r}, not {want[at]!r}"
                )
    return wrong


def _made(
    todo: list[Job], architecture: str, emulated: bool, workers: int, until: float
) -> Iterator[Part]:
    if workers < 2:
        yield from (make(job, architecture, emulated) for job in todo)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(make, job, architecture, emulated) for job in todo}
        try:
            for done in as_completed(waiting, timeout=max(until - time.perf_counter(), 1.0)):
                yield done.result()
        except TimeoutError:
            pass
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def check_all(
    count: int, architecture: str, *, emulated: bool, workers: int, seconds: float, say: Any
) -> None:
    """Check as much as there is time for and say how much that was."""
    begin, done, wrong = time.perf_counter(), dict[str, list[int]](), list[str]()
    for part in _made(jobs(count), architecture, emulated, workers, begin + seconds):
        try:
            found = check(part)
        except Exception as error:
            found = [f"{part.job}: {type(error).__name__}: {str(error)[:300]}"]
        kind = f"{part.job.group}{', float' * part.job.single}{', shared' * part.job.shared}"
        counted = done.setdefault(kind, [0, 0, 0])
        counted[0] += len(part.cases)
        counted[1] += sum(want.size for case in part.cases for want in case[4])
        counted[2] += len(found)
        wrong += found
    for kind, (number, values, bad) in sorted(done.items()):
        say(f"{kind}: {number} programs, {values} numbers, {bad} outputs wrong")
    say(f"{time.perf_counter() - begin:.1f} s with {workers} workers")
    for line in wrong[:12]:
        say(f"WRONG {line}")
