"""The unoptimized tier: the same bits, and optimized code where a kernel runs for long."""

from __future__ import annotations

import re

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.runtime import kernel as kernels
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.function.batching.repeated_calls import FEW, Repeated
from archimedes.graph.dtypes import code_of

from ..programs.values import assert_bits


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "1")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "kernels"))


def body(x):
    for _ in range(4):
        x = np.sin(x) * x[::-1] + np.exp(-(x**2)) / (1.0 + x @ x)
    return x


def program(n):
    recording = arc.compile(body).lookup((np.ones(n),), {})[1]
    return recording.blocks, [(n, 0)], [(n, 0)]


def called(kernel, x):
    out = np.empty_like(x)
    kernel.call([x], [out])
    return out


@pytest.mark.long_cases("100")
@pytest.mark.parametrize("n", [5, 100])
def test_both_tiers_have_the_same_bits(n, folder):
    x = np.linspace(-2.0, 2.0, n)
    kernel = build(*program(n), unoptimized=True)
    assert kernel.unoptimized
    quick, first = called(kernel, x), kernel.address
    kernel.optimize()
    assert not kernel.unoptimized
    assert kernel.address != first
    whole = build(*program(n))
    assert_bits(quick, called(whole, x))
    assert_bits(called(kernel, x), quick)
    assert_bits(quick, arc.compile(body, backend="interpreter")(x))


def test_code_on_disk_is_taken_where_it_is_better(folder):
    x = np.linspace(-2.0, 2.0, 7)
    kernel = build(*program(7), unoptimized=True)
    again = build(*program(7), unoptimized=True)
    assert again.unoptimized
    assert again.cached == 1
    kernel.optimize()
    better = build(*program(7), unoptimized=True)
    assert not better.unoptimized
    assert better.cached == 1
    assert_bits(called(again, x), called(better, x))


def test_a_loop_that_runs_often_is_made_well(folder, monkeypatch):
    made = []
    compiled = kernels.Target.compile

    def noted(self, *args):
        made.append(self.effort)
        return compiled(self, *args)

    monkeypatch.setattr(kernels.Target, "compile", noted)

    def halve(x, least):
        return x / 2.0, np.sin(x), x < 4.0, np.all(x / 2.0 > least)

    function = arc.compile(halve, backend="llvm")
    function.drafts = True
    repeated, rows = Repeated(function), np.empty((8, 3))
    results = [repeated(np.full(3, 8.0), (1.0,), rows)[0] for _ in range(FEW + 1)]
    assert made.count(0) == 1
    assert made.index(0) == 0
    assert len(made) > 1
    assert all(np.array_equal(x, results[0]) for x in results)


def edges(x, y, k):
    """Operations that are intrinsics in other code."""
    floats = (np.abs(x), np.copysign(x, y), np.floor(x), np.ceil(x), np.trunc(x), np.rint(x))
    half = x.astype(np.float32)
    halves = (np.abs(half), np.copysign(half, y.astype(np.float32)), np.floor(half), np.rint(half))
    table = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    return *floats, *halves, np.minimum(k, 3), np.maximum(k, -2), table[np.clip(k, 0, 4)]


def test_unoptimized_code_has_no_intrinsics(folder, monkeypatch):
    """LLVM's quick way knows none; one took as long as fifty instructions."""
    texts = []
    compiled = kernels.Target.compile

    def noted(self, text, *args):
        texts.append(text)
        return compiled(self, text, *args)

    monkeypatch.setattr(kernels.Target, "compile", noted)
    values = [0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 2.0**52 + 1.0, -(2.0**51) - 0.5, 1e300, 5e-324]
    x = np.array([*values, np.inf, -np.inf, np.nan, -np.nan, 2.0**23 - 0.5, -3.999])
    y, k = -x[::-1].copy(), np.arange(-8, 8)
    recording = arc.compile(edges).lookup((x, y, k), {})[1]
    outs = arc.compile(edges, backend="interpreter")(x, y, k)
    given, made = (
        [(leaf.size, code_of(leaf.dtype)) for leaf in some] for some in ((x, y, k), outs)
    )
    kernel = build(recording.blocks, given, made, unoptimized=True)
    found = [np.empty_like(out) for out in outs]
    kernel.call([x, y, k], found)
    for ours, theirs in zip(found, outs):
        assert_bits(ours, theirs)
    (text,) = texts
    called = re.findall(r"call \S+ (@llvm\.[a-z]+)", text)
    assert not {*called} & {"@llvm.fabs", "@llvm.copysign", "@llvm.smin", "@llvm.floor"}
