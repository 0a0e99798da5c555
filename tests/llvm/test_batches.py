"""Batch sizes, shared inputs, layouts, threads, long operands, large programs."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from archimedes.backends.llvm.runtime import thread_pool
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.backends.llvm.runtime.thread_pool import over_chunks
from archimedes.graph import B8, CODES, DTYPES, F32, F64, I64, Graph, Scan

from ..programs.values import assert_bits, reference, samples
from .checking import check


def emit(g: Graph, name: str, *ids: int) -> int:
    return g.emit(CODES[name], *(int(i) for i in ids))


def mixed_graph(counts: tuple[int, ...]) -> tuple[Graph, list[tuple[int, int]]]:
    """Every input passed through, doubled or negated: catches any column in the wrong place."""
    g = Graph()
    leaves = list(zip(counts, (F64, F32, I64, B8)))
    outputs = []
    for count, dtype in leaves:
        for i in g.add_inputs(dtype, count).tolist():
            outputs.append(emit(g, "not", i) if dtype == B8 else emit(g, "add", i, i))
    g.outputs = outputs
    return g, leaves


COUNTS = [(1, 1, 1, 1), (2, 3, 4, 5), (13, 2, 1, 3), (49, 50, 51, 52), (0, 3, 0, 1)]


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("counts", COUNTS)
def test_remainders_and_layouts(counts, lanes):
    g, leaves = mixed_graph(counts)
    kernel = build(g, leaves, leaves, lanes=lanes)
    rng = np.random.default_rng(0)
    for n in (0, 1, lanes - 1, lanes, lanes + 1, 3 * lanes - 1, 1000):
        ins = [samples(d, n * c, rng).reshape(n, c) for c, d in leaves]
        # Guards behind the arrays show writes past the end.
        stores = [np.full(n * c + 8, 1, DTYPES[d]) for c, d in leaves]
        outs = [s[: n * c].reshape(n, c) for s, (c, _) in zip(stores, leaves)]
        kernel.call_batch(ins, [True] * 4, outs, n)
        for x, y, store, (c, d) in zip(ins, outs, stores, leaves):
            with np.errstate(all="ignore"):
                assert_bits(y, ~x if d == B8 else x + x)
            assert (store[n * c :] == 1).all()


def crossing_graph(inputs: int, depth: int) -> Graph:
    """Every value is read soon and once more much later: many cross the cuts between parts."""
    g = Graph()
    values = g.add_inputs(F64, inputs).tolist()
    for k in range(depth):
        values.append(emit(g, "add" if k % 3 else "mul", values[-1], values[k % inputs]))
    g.outputs = [emit(g, "sub", values[k], values[-1 - k]) for k in range(inputs, inputs + 9)]
    return g


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_tiles_that_go_through_parts_together(lanes):
    from archimedes.backends.llvm.lowering.batch_loop import TOGETHER

    g = crossing_graph(5, 300)
    kernel = build(g, [(5, F64)], [(9, F64)], lanes=lanes, part=40)
    block = lanes * TOGETHER
    rows = np.random.default_rng(3).uniform(-1, 1, (2 * block + 1, 5))
    alone = np.empty((len(rows), 9))
    for row, out in zip(rows, alone):
        kernel.call([row], [out])
    for n in (1, lanes, lanes + 1, block - 1, block, block + 1, 2 * block + 1):
        store = np.full((n + 1, 9), 7.0)
        kernel.call_batch([rows[:n].copy()], [True], [store[:n]], n)
        assert_bits(store[:n], alone[:n])
        assert (store[n] == 7.0).all()


def test_places_between_parts_are_used_again():
    from archimedes.backends.lowering.graph_lowering import Sizes, crossing_nodes, shared_slots

    g = crossing_graph(5, 300)
    order = [i for i in g.live() if i not in g.inputs]
    chunks = Sizes([g], 40, {}).cut_schedule(g, order)
    crossing = crossing_nodes(g, chunks)
    slots = shared_slots(g, chunks, crossing)
    assert len(set(slots)) < len(crossing)
    home = {i: k for k, chunk in enumerate(chunks) for i in chunk}
    last = {j: home[i] for i in order for j in g.operands(i)}
    users: dict[int, list[tuple[int, int]]] = {}
    for i, slot in zip(crossing, slots):
        users.setdefault(slot, []).append((home[i], last[i]))
    for spans in users.values():
        spans.sort()
        assert all(a[1] < b[0] for a, b in itertools.pairwise(spans))


def test_shared_inputs_are_read_once_for_all():
    g, leaves = mixed_graph((5, 4, 3, 2))
    kernel = build(g, leaves, leaves)
    rng = np.random.default_rng(1)
    n = 21
    for batched in ([True, False, True, False], [False] * 4, [False, True, False, True]):
        ins = [samples(d, (n if f else 1) * c, rng) for (c, d), f in zip(leaves, batched)]
        outs = [np.zeros((n, c), DTYPES[d]) for c, d in leaves]
        kernel.call_batch(ins, batched, outs, n)
        for x, y, (c, d), flag in zip(ins, outs, leaves, batched):
            wide = np.broadcast_to(x.reshape(-1, c) if flag else x, (n, c))
            with np.errstate(all="ignore"):
                assert_bits(y, np.ascontiguousarray(~wide if d == B8 else wide + wide))


def test_what_instances_share_is_computed_once():
    g = Graph()
    x, mass = g.input(F64), g.input(F64)
    shared = emit(g, "exp", emit(g, "sin", mass))
    g.outputs = [emit(g, "mul", x, shared), shared, emit(g, "mul", shared, shared)]
    kernel = build(g, [(1, F64), (1, F64)], [(3, F64)])
    together, apart = kernel.batch_source([True, False]), kernel.batch_source([True, True])
    assert len(together) < 0.5 * len(apart)
    xs, masses = np.linspace(-1, 1, 11), np.full(11, 0.7)
    expected = np.stack(reference(g, [xs, masses], 11), -1)
    for given, flags in (([xs, masses[:1]], [True, False]), ([xs, masses], [True, True])):
        out = np.empty((11, 3))
        kernel.call_batch(given, flags, [out], 11)
        assert_bits(out, expected)


def test_unused_inputs_and_constant_outputs():
    g = Graph()
    g.add_inputs(F64, 30)
    x = g.inputs[17]
    g.outputs = [g.const(2.0), x, g.inputs[3], emit(g, "mul", x, x), g.inputs[3]]
    rng = np.random.default_rng(2)
    check(g, [rng.normal(size=19) for _ in range(30)], lanes=[2, 4, 8])


def test_no_inputs_and_no_outputs():
    g = Graph()
    g.outputs = [g.const(3.0), g.const(4, I64)]
    kernel = build(g, [], [(1, F64), (1, I64)])
    outs = [np.zeros(9), np.zeros(9, int)]
    kernel.call_batch([], [], outs, 9)
    assert outs[0].tolist() == [3.0] * 9 and outs[1].tolist() == [4] * 9
    nothing = Graph()
    nothing.input(F64)
    build(nothing, [(1, F64)], []).call([np.zeros(1)], [])


def test_threads_write_every_instance_once():
    g, leaves = mixed_graph((3, 1, 1, 1))
    kernel = build(g, leaves, leaves)
    rng = np.random.default_rng(3)
    n = 4096 + 5
    ins = [samples(d, n * c, rng).reshape(n, c) for c, d in leaves]
    results = []
    for threads in (1, 2, 3, 7):
        outs = [np.zeros((n, c), DTYPES[d]) for c, d in leaves]
        kernel.call_batch(ins, [True] * 4, outs, n, threads=threads)
        results.append(outs)
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert_bits(a, b)


def test_kernels_are_safe_from_many_threads():
    g = Graph()
    xs = g.add_inputs(F64, 50).tolist()
    total = xs[0]
    for x in xs[1:]:
        total = emit(g, "add", emit(g, "mul", total, g.const(0.9)), emit(g, "sin", x))
    g.outputs = [total]
    kernel = build(g, [(50, F64)], [(1, F64)], part=40)
    rng = np.random.default_rng(4)
    data = rng.normal(size=(4, 100, 50))
    expected = [reference(g, list(block.T), 100)[0] for block in data]
    wrong: list[int] = []

    def work(k: int) -> None:
        out = np.empty(1)
        for i, row in enumerate(data[k]):
            kernel.call([row], [out])
            if out[0] != expected[k][i]:
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_chunks_cover_the_range_and_errors_wait_for_all():
    seen: list[tuple[int, int]] = []
    over_chunks(lambda begin, end: seen.append((begin, end)), 103, 2, 8)
    seen.sort()
    assert seen[0][0] == 0 and seen[-1][1] == 103
    assert all(a[1] == b[0] and a[1] % 8 == 0 for a, b in itertools.pairwise(seen))

    def fail(begin: int, end: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        over_chunks(fail, 100, 2, 8)


def long_scan(length: int, width: int) -> Graph:
    body = Graph()
    c = body.input(F64)
    xs = body.add_inputs(F64, width).tolist()
    for x in xs:
        c = emit(body, "add", emit(body, "mul", c, body.const(0.5)), x)
    body.outputs = [c, *(emit(body, "mul", c, x) for x in xs)]
    g = Graph()
    start = g.input(F64)
    rows = g.add_inputs(F64, length * width).tolist()
    g.outputs = g.region(Scan([start, *rows], body, length, 1, width)).tolist()
    return g


@pytest.mark.long
def test_long_operands_are_walked_by_loops():
    g = long_scan(1000, 13)
    rng = np.random.default_rng(5)
    kernel = check(g, [rng.normal(size=9) for _ in g.inputs], scalars=2)
    for text in (kernel.source("llvm"), kernel.batch_source()):
        assert text.count("\n") < 1500
    shared = np.empty((9, 13001))
    values = rng.normal(size=13001)
    split = build(g, [(1, F64), (13000, F64)], [(13001, F64)])
    split.call_batch([np.arange(9.0), values[1:]], [True, False], [shared], 9)
    for i in range(9):
        one = np.empty(13001)
        split.call([np.array([float(i)]), values[1:]], [one])
        assert_bits(shared[i], one)


def large_graph(nodes: int) -> Graph:
    rng = np.random.default_rng(6)
    g = Graph()
    pool = g.add_inputs(F64, 40).tolist()
    names = ("add", "sub", "mul", "sub", "min", "max")
    while len(g) < nodes:
        a, b = (pool[-int(k)] for k in rng.integers(1, 40, 2))
        pool.append(emit(g, names[int(rng.integers(6))], a, b))
    g.outputs = pool[-40:]
    return g


def test_large_programs_are_cut_into_functions():
    g = large_graph(6000)
    rng = np.random.default_rng(7)
    columns = [rng.normal(size=17) for _ in range(40)]
    kernel = check(g, columns, part=500)
    assert kernel.source("llvm").count("define internal void @part") >= 8


@pytest.mark.long
def test_frames_too_large_for_the_stack():
    g = long_scan(3000, 4)
    # Backwards, results cannot go straight to where they are wanted.
    g.outputs.reverse()
    kernel = check(g, [np.linspace(-1, 1, 5) for _ in g.inputs], scalars=1)
    assert "arc_malloc" in kernel.source("llvm")


@pytest.mark.long
def test_threads_of_the_pool_are_used_again():
    code = (
        "import threading\n"
        "import archimedes as arc, numpy as np\n"
        "f = arc.vmap(arc.compile(lambda x: np.sin(x) * x, backend='llvm'), threads=2)\n"
        "for _ in range(20):\n"
        "    f(np.ones((1000, 3)))\n"
        "ours = [t.name for t in threading.enumerate() if t.name.startswith('archimedes_')]\n"
        "assert ours == ['archimedes_0'], ours\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_helper_that_ctrl_c_kept_out_of_the_list_is_waited_for(monkeypatch):
    """Ctrl-C between the start of a thread and the note that it was started."""
    start, ended, begun = thread_pool._start, [], threading.Event()

    def start_and_be_interrupted(work):
        start(work)
        assert begun.wait(10.0)
        raise KeyboardInterrupt

    def run(begin, end):
        begun.set()
        time.sleep(0.3)  # still writing to its arrays
        ended.append(begin)

    monkeypatch.setattr(thread_pool, "_start", start_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread_pool.over_chunks(run, 8, 2, 1)
    assert ended == [0]
