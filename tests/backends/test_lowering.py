"""What the shared lowering decides: functions, cuts, storage; and what dialects are spared."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
import archimedes.backends
from archimedes.backends.c import Argument, render
from archimedes.backends.c.c99 import C99
from archimedes.backends.llvm.lowering.llvm_dialect import Llvm
from archimedes.backends.llvm.runtime.kernel import build as build_native
from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.graph_lowering import AROUND, Sizes, crossing_nodes
from archimedes.backends.lowering.regions import REGIONS
from archimedes.backends.lowering.schedule import depth_first_schedule, locality_schedule
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.backends.lowering.statements import StatementDialect
from archimedes.graph import CODES, F64, I64, Call, Graph, Switch
from archimedes.graph.ops import OUT, REGION

from ..programs.branches import branch, calls_in_calls
from ..programs.catalogue import programs
from ..programs.loops import results_in_place
from ..programs.random_graphs import random_graph
from .toy import Toy, build

BACKENDS = Path(archimedes.backends.__file__).parent
SHARED = {Call: 24, Switch: 24}


def methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction)}


def missing(kind: type) -> set[str]:
    """Methods that a dialect has to spell."""
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name for name, f in found if "NotImplementedError" in inspect.getsource(f)}


@pytest.mark.parametrize("dialect", [Llvm, C99, Toy])
def test_dialects_spell_everything(dialect: type):
    assert missing(dialect) == set()


def test_the_interface_is_small():
    assert len(missing(Dialect)) == 22
    assert len(missing(StatementDialect)) == 15


def test_dialects_lower_no_region_by_themselves():
    """Loops, calls and branches are in ``lowering/`` only; dialects spell their pieces."""
    folders = [BACKENDS / "c", BACKENDS / "llvm" / "lowering"]
    text = "\n".join(p.read_text() for folder in folders for p in folder.glob("*.py"))
    assert not re.findall(r"\b(Scan|While|REGIONS)\b", text)
    assert {region.__name__ for region in REGIONS} >= {"Scan", "While", "Switch", "Call"}


# ---- functions and cuts --------------------------------------------------------------------------


def test_bodies_in_a_function_are_no_functions_unless_others_call_them():
    g = calls_in_calls()
    sizes = Sizes([g], 1500, {Call: 1})
    inner, long = branch(5), branch(9)
    call = Call([0, 1], inner)
    assert sizes.is_shared(call, inner)
    assert not sizes.is_shared(call, long)


def test_sizes_leave_out_what_is_written_elsewhere():
    body = branch(9)
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    for _ in range(3):
        x, y = g.region(Call([x, y], body)).tolist()
    g.outputs = [x, y]
    sizes = Sizes([g], 1500, SHARED)
    assert sizes.cost(g) == 3 * (1 + sizes.cost(body))
    assert sizes.size(g) == 3


@pytest.mark.parametrize("seed", range(10))
def test_cuts_keep_regions_and_their_outputs_together(seed: int):
    g = random_graph(seed, ops=120)
    order = [i for i in g.live() if g.op[i] not in (CODES["const"], CODES["input"], OUT)]
    outs = {i: [j for j in g.live() if g.op[j] == OUT and g.a[j] == i] for i in order}
    order = [j for i in order for j in [i, *outs[i]]]
    sizes = Sizes([g], 10, SHARED)
    chunks = sizes.cut_schedule(g, order)
    assert [i for chunk in chunks for i in chunk] == order
    home = {i: k for k, chunk in enumerate(chunks) for i in chunk}
    assert all(home[i] == home[g.a[i]] for i in order if g.op[i] == OUT)
    for chunk in chunks:
        nodes = [i for i in chunk if g.op[i] != OUT]
        assert len(nodes) <= 10 * (1 + 2 * AROUND)
    crossing = set(crossing_nodes(g, chunks))
    read = {(i, j) for i in order if g.op[i] != OUT for j in g.operands(i) if j in home}
    assert crossing == {j for i, j in read if home[i] != home[j]}
    assert all(g.op[j] != REGION for j in crossing)


# ---- storage -------------------------------------------------------------------------------------


def chains(count: int, length: int, interleaved: bool) -> Graph:
    """Chains of operations on one input each, written one after the other or in turn."""
    g = Graph()
    ends = [g.input(F64) for _ in range(count)]
    pairs = [(k, n) for k in range(count) for n in range(length)]
    for k, _ in sorted(pairs, key=lambda x: x[1]) if interleaved else pairs:
        ends[k] = g.emit(CODES["sin"], ends[k])
    g.outputs = ends
    return g


def test_the_order_as_written_is_kept_where_operands_are_near():
    """Chains in turn use what was made ``count`` nodes before: near for a few chains only."""
    for count, written in ((8, True), (40, False)):
        g = chains(count, 5, interleaved=True)
        first = depth_first_schedule(g, g.outputs)
        found = locality_schedule(g, first, g.outputs, registers=16)
        assert (found.order == sorted(first.order)) == written
        assert found.order == first.order or written


def test_parts_have_about_the_same_length():
    g = chains(1, 2300, interleaved=False)
    chunks = Sizes([g], 1500, SHARED).cut_schedule(g, depth_first_schedule(g, g.outputs).order)
    assert list(map(len, chunks)) == [1150, 1150]


@pytest.mark.parametrize(("length", "part"), [(5, 2), (7, 1), (10, 3)])
def test_short_parts_are_cut_too(length: int, part: int):
    g = chains(1, length, interleaved=False)
    chunks = Sizes([g], part, SHARED).cut_schedule(g, depth_first_schedule(g, g.outputs).order)
    assert len(chunks) == -(-length // part)
    assert max(map(len, chunks)) - min(map(len, chunks)) <= 1


def test_parts_are_cut_where_few_values_cross():
    # Ten chains side by side, of which only their sum goes on, then one chain.
    def function(x: np.ndarray) -> np.ndarray:
        for _ in range(100):
            x = np.sqrt(x)
        total = np.prod(x)
        for _ in range(900):
            total = np.sqrt(total)
        return total

    g = arc.compile(function).graph(np.ones(10))
    order = [i for i in g.live() if g.op[i] not in (CODES["const"], CODES["input"])]
    chunks = Sizes([g], 1500, SHARED).cut_schedule(g, order)
    assert len(chunks) == 2
    assert len(crossing_nodes(g, chunks)) == 1
    assert abs(len(chunks[0]) - len(chunks[1])) <= 2 * AROUND * len(order) / 2


def test_values_are_told_apart_by_their_bits():
    zero, minus = Binding(constant=(0.0, F64)), Binding(constant=(-0.0, F64))
    nan = float("nan")
    assert not zero.is_like(minus)
    assert Binding(constant=(nan, F64)).is_like(Binding(constant=(float("nan"), F64)))
    assert not Binding(constant=(1, I64)).is_like(Binding(constant=(1.0, F64)))
    assert Binding(location=Location("s", 1, F64)).is_like(
        Binding(location=Location("s", 0, F64).at(1))
    )


def test_columns_go_straight_to_where_they_are_wanted():
    """Twenty results of ten steps: no language copies them."""
    g = results_in_place().graph
    g.outputs = g.outputs[:20]
    native = build_native(g, [(11, F64)], [(20, F64)]).source("llvm")
    assert native.count("store double") == 2
    text = render(
        g, "f", inputs=[Argument("x", F64, (11,))], outputs=[Argument("y", F64, (20,))]
    ).text
    assert sorted(re.findall(r"y\[.*?\]", text)) == ["y[2 * i1 + 1]", "y[2 * i1]"]


def test_programs_are_cut_in_every_language():
    made = next(made for made in programs() if made.name == "mixed")
    assert "main_part2" in build(made.graph, 5).__wrapped__.source
    native = build_native(made.graph, [(41, F64)], [(25, F64)], part=5).source("llvm")
    assert native.count("define internal void @part") > 2
