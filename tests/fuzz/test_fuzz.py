"""Random programs give NumPy's results; the fuzzer itself can tell when they do not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from archimedes.graph import F64
from tests.embedded.toolchain import needs
from tests.llvm import bundling
from tests.long_parameters import long_after, long_but

from . import bundles
from .__main__ import run_chunk
from .bundles import BUNDLE, check_bundle
from .programs import Expected, generate
from .runner import EXECUTORS, check, mismatch
from .webassembly import check_in_wasm
from .wide import WIDEST, check_wide_in_bundles

#: Of small arrays, all compiled; of arrays of no element to thousands.
PROGRAMS, OF_ANY_SIZE = 2_500, 10_000
SIZE = 250
#: Seeds looked at, and programs compiled of a bundle at least, to come to PROGRAMS native ones.
SEEDS = 4_000
LEAST = PROGRAMS * BUNDLE // SEEDS


def failures(executor: str, first: int, count: int) -> str:
    reports = (check(seed, executor) for seed in range(first, first + count))
    return "\n".join(text for text in reports if text)


# The first bundle compiles long programs too.
@pytest.mark.long_cases("???*")
@pytest.mark.parametrize(
    "first", long_but(range(BUNDLE, 6 * BUNDLE, BUNDLE), range(0, SEEDS, BUNDLE))
)
def test_scalar_lanes_and_threads_give_the_bits_of_the_interpreter(first: int) -> None:
    """And the interpreter gives NumPy's results."""
    compiled, reports = check_bundle(range(first, first + BUNDLE))
    assert not "\n".join(reports)
    # So that together (with those marked long) they are PROGRAMS at least.
    assert compiled >= LEAST


@pytest.mark.long
@pytest.mark.parametrize("first", long_after(1, range(SEEDS, SEEDS + 250, 125)))
def test_so_they_do_in_fast_numerics(first: int) -> None:
    assert not "\n".join(check_bundle(range(first, first + 125), "fast")[1])


# The way of users, by seeds that the bundles (below SEEDS) have not seen.
@pytest.mark.parametrize("chunk", long_after(1, range(3)))
def test_compiled_programs_equal_numpy(chunk: int) -> None:
    assert not failures("compiled", 2 * SEEDS + chunk * SIZE, SIZE)


@pytest.mark.parametrize("chunk", long_after(0, range(2)))
def test_programs_compiled_by_themselves(chunk: int) -> None:
    assert not failures("alone", 3 * SEEDS + chunk * 25, 25)


@needs("node")
@pytest.mark.parametrize("first", long_after(1, range(0, 500, 50)))
def test_so_they_do_as_webassembly(first: int) -> None:
    assert check_in_wasm(range(first, first + 50)) == (50, [])


def test_a_wrong_kernel_is_seen_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    expand = bundling.expand
    cases = [bundles.interpreted(generate(k), 1).case for k in (0, 1)]
    before, own = (case.graph.output_dtypes.count(F64) for case in cases)
    assert own > 0

    def spoiled(graph, **options):
        """Spoil a result of the second program."""
        graph = expand(graph, **options)
        graph.outputs[before] = graph.const(123.25)
        return graph

    monkeypatch.setattr(bundling, "expand", spoiled)
    _, (report,) = check_bundle(range(3))
    assert "seed 1, executor native" in report
    assert "differs from interpreted" in report


def test_an_error_in_a_bundle_is_traced_to_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    run = bundles.run_bundle
    culprit = bundles.interpreted(generate(2), 1).case.graph.digest()

    def failing(cases, turn):
        if any(case.graph.digest() == culprit for case in cases):
            raise RuntimeError("no code for this")
        return run(cases, turn)

    monkeypatch.setattr(bundles, "run_bundle", failing)
    _, (report,) = check_bundle(range(4))
    assert "seed 2, executor native" in report
    assert "no code for this" in report


@pytest.mark.parametrize("seed", [1542998])
def test_programs_that_were_wrong_once(seed: int) -> None:
    assert not failures("compiled", seed, 1)


@pytest.mark.parametrize("chunk", range(2))
def test_eager_regions_equal_python_loops(chunk: int) -> None:
    assert not failures("eager", chunk * SIZE, SIZE)


def test_source_text_alone_reproduces_the_generated_values() -> None:
    assert not failures("plain", 0, SIZE)


def test_generation_is_deterministic_and_varied() -> None:
    programs = [generate(seed) for seed in range(300)]
    assert [p.source for p in programs] == [generate(seed).source for seed in range(300)]
    text = "\n".join(p.source for p in programs)
    counts = Counter({name: text.count(name) for name in REGIONS + FUNCTIONS})
    assert not [name for name, count in counts.items() if count == 0]
    values = [value for p in programs for value in p.inputs.values()]
    assert {value.dtype.name for value in values} == {"float64", "float32", "int64", "bool"}
    assert {value.ndim for value in values} == {0, 1, 2, 3, 4}
    assert any(value.size == 0 for value in values)
    assert any(np.isnan(value).any() for value in values if value.dtype.kind == "f")
    results = [want for p in programs for want in p.expected]
    assert 0.3 < np.mean([want.err == 0.0 for want in results]) < 0.9
    tight = [want.err < 1e-9 for want in results if want.value.dtype == np.float64]
    assert np.mean(tight) > 0.9


REGIONS = [f"arc.{n}" for n in ("scan", "cond", "switch", "while_loop", "fori_loop", "vmap")]
FUNCTIONS = ["np.einsum", " @ ", "np.sort", "np.where", "np.cumsum", " % ", " // ", "] += ", "out="]


@pytest.mark.parametrize(
    ("want", "got", "reason"),
    [
        (Expected("v", np.ones(2), 0.0, True), np.ones(2), None),
        (Expected("v", np.ones(2), 0.0, True), np.nextafter(np.ones(2), 2), "exact"),
        (Expected("v", np.ones(2), 1e-15, True), np.nextafter(np.ones(2), 2), None),
        (Expected("v", np.ones(2), 1e-15, True), np.ones(2) + 1e-12, "off by"),
        (Expected("v", np.zeros(2), 0.0, True), -np.zeros(2), "signs"),
        (Expected("v", np.zeros(2), 0.0, False), -np.zeros(2), None),
        (Expected("v", np.ones(2), 0.0, True), np.ones(2, np.float32), "in place of"),
        (Expected("v", np.ones(2), 0.0, True), np.ones((2, 1)), "in place of"),
        (Expected("v", np.array([np.nan]), 0.0, True), np.ones(1), "nan"),
        (Expected("v", np.array([3]), 0.0, True), np.array([4]), "values"),
    ],
)
def test_mismatches_are_seen(want: Expected, got: np.ndarray, reason: str | None) -> None:
    why = mismatch(want, got)
    assert (why is None) if reason is None else (reason in why)


def test_report_is_a_readable_repro(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(source, inputs):
        results = EXECUTORS["plain"](source, inputs)
        return (np.asarray(results[0]) + 1, *results[1:])

    monkeypatch.setitem(EXECUTORS, "spoiled", spoiled)
    report = check(3, "spoiled")
    assert "seed 3" in report
    assert "def program(x0" in report
    assert "x0 = np.array" in report
    assert "NumPy" in report


@pytest.mark.long
@pytest.mark.parametrize("executor", ["compiled", "native"])
def test_programs_as_loops(executor: str) -> None:
    """Arrays of two elements and more are recorded as loops."""
    count, reports = run_chunk(40_000, 64, executor, "strict", elements=2)
    assert count > 30
    assert not reports, "\n".join(reports)


@pytest.mark.parametrize("first", long_after(0, range(0, OF_ANY_SIZE, SIZE)))
def test_programs_of_wide_arrays(first: int) -> None:
    """Of no element to thousands, on the interpreter and on NumPy; one in forty in native code."""
    assert not "\n".join(check_wide_in_bundles(range(first, first + SIZE), every=40))


def test_a_few_programs_of_wide_arrays() -> None:
    assert not "\n".join(check_wide_in_bundles(range(OF_ANY_SIZE, OF_ANY_SIZE + 16)))


def test_wide_arrays_are_of_every_size() -> None:
    programs = [generate(seed, WIDEST) for seed in range(200)]
    sizes = {value.size for p in programs for value in p.inputs.values()}
    assert min(sizes) == 0
    assert max(sizes) > WIDEST // 2
    assert 0.3 < np.mean([size >= 64 for size in sizes]) < 0.9
