"""Random programs: C by two compilers at three levels, in double and in float."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.graph import DTYPES, Graph

from ..fuzz.programs import generate
from ..fuzz.runner import copies, load
from ..programs.program import Program
from ..programs.random_graphs import random_graph
from ..programs.values import samples
from .checking import FLOATS, Bundle, needs

PROGRAMS = 200
#: Programs with more nodes are compiled once only: compilers spend most of the time on them.
LONG = 120
#: Points at which each program runs: the one it was made with, and random ones.
POINTS = 6


def fuzz_case(seed: int) -> Program:
    """A random NumPy program, recorded."""
    program = generate(seed)
    graph = arc.compile(load(program.source, arc)).graph(*copies(program.inputs))
    first = [x for value in program.inputs.values() for x in np.ravel(value)]
    rng = np.random.default_rng(seed)
    columns = []
    for value, d in zip(first, graph.input_dtypes):
        more = samples(d, POINTS - 1, rng)
        if DTYPES[d].kind == "f":
            more = rng.normal(0.0, 2.0, POINTS - 1)
        elif DTYPES[d].kind == "i":
            more = rng.integers(-6, 7, POINTS - 1)
        columns.append(np.concatenate([[value], more]).astype(DTYPES[d]))
    return Program(f"fuzz_{seed}", graph, columns)


def graph_case(seed: int) -> Program:
    """A random graph over all ops, dtypes and regions, on special values too."""
    graph: Graph = random_graph(seed)
    rng = np.random.default_rng(seed)
    columns = [samples(d, 21, rng) for d in graph.input_dtypes]
    return Program(f"graph_{seed}", graph, columns)


@cache
def drawn() -> tuple[list[Program], list[Program]]:
    """200 programs of ordinary length, and the longer ones drawn with them."""
    ordinary: list[Program] = []
    long: list[Program] = []
    for seed in itertools.count():
        made = fuzz_case(seed)
        (long if len(made.graph) > LONG else ordinary).append(made)
        if len(ordinary) == PROGRAMS:
            return ordinary, long


@cache
def bundle(float_type: str) -> Bundle:
    return Bundle(drawn()[0], float_type)


#: Every level, compiler and type, and each compiler with each type.
WAYS = [
    ("double", "-O2", "gcc"),
    ("double", "-O3", "clang"),
    ("float", "-O3", "gcc"),
    ("float", "-O2", "clang"),
    ("double", "-O0", "clang"),
]


@pytest.mark.long
@pytest.mark.parametrize(("float_type", "level", "compiler"), WAYS)
def test_fuzz_programs(float_type: str, level: str, compiler: str, tmp_path: Path):
    needs(compiler)
    bundle(float_type).check(tmp_path, compiler, level)


@pytest.mark.long
@pytest.mark.parametrize(("float_type", "level"), [("double", "-O1"), ("float", "-O0")])
def test_long_fuzz_programs(float_type: str, level: str, tmp_path: Path):
    Bundle(drawn()[1], float_type).check(tmp_path, "gcc", level)


@pytest.mark.parametrize("scratch", ["stack", "workspace"])
@pytest.mark.parametrize("part", [2000, 7])
@pytest.mark.parametrize("float_type", FLOATS)
def test_random_graphs(float_type: str, part: int, scratch: str, tmp_path: Path):
    """Functions whole and cut into many parts, arrays on the stack and in a workspace."""
    cases = [graph_case(seed) for seed in range(16)]
    made = Bundle(cases, float_type, part=part, scratch=scratch)
    made.check(tmp_path, "gcc", "-O1")
