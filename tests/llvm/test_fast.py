"""``numerics="fast"``: other bits than strict, and the same ones wherever the program runs."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from benchmarks.models import arm, articulated_body, rigid_body, rigid_body_point

import archimedes as arc
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.graph import CODES, F32, F64, Graph
from archimedes.graph.fast import fast
from tests.graph.spec import validate

from ..programs.random_graphs import random_graph
from ..programs.values import SPECIAL_FLOATS, assert_bits, samples
from .checking import check, check_shared


def polynomial(x):
    return x[0] * x[1] + np.sin(x[2]) / x[0] - x[1] / x[0] * x[2]


@pytest.mark.parametrize("seed", range(1000, 1024))
def test_random_programs(seed):
    g = fast(random_graph(seed))
    validate(g)
    rng = np.random.default_rng(seed)
    columns = [samples(d, 21, rng) for d in g.input_dtypes]
    kernel = check(g, columns, lanes=[(8, 4, 2)[seed % 3]], note=f"seed {seed}", scalars=4)
    check_shared(kernel, g, columns, seed)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="features of x86-64")
@pytest.mark.parametrize("features", ["-fma,-avx512f", "-avx,-avx2,-avx512f,-fma,-fma4"])
def test_cpus_without_the_instruction_give_the_same_bits(features):
    g = Graph()
    x, y, z = g.add_inputs(F64, 3).tolist()
    singles = [g.emit(CODES["f32"], i) for i in (x, y, z)]
    g.outputs = [g.emit(CODES["fma"], *ids) for ids in ((x, y, z), singles, (x, x, y))]
    rng = np.random.default_rng(0)
    columns = [
        np.concatenate([rng.permutation(SPECIAL_FLOATS), samples(F64, 70, rng)]) for _ in "xyz"
    ]
    kernel = check(g, columns, target_features=features)
    called = [line.split()[0] for line in kernel.source("asm").splitlines() if "fma" in line]
    assert called and "vfmadd" not in kernel.source("asm")


def test_instructions_where_the_cpu_has_them():
    g = Graph()
    x, y, z = g.add_inputs(F64, 3).tolist()
    g.outputs = [g.emit(CODES["sub"], z, g.emit(CODES["mul"], x, y))]
    kernel = build(fast(g), [(3, F64)], [(1, F64)], target_features="+fma,+avx2,-avx512f")
    if platform.machine() in ("x86_64", "AMD64"):
        assert "vfnmadd" in kernel.source("asm")
        assert "vfnmadd" in kernel.batch_source(asm=True)


def in_each_backend(function, *args, **options):
    return [arc.compile(function, backend=b, **options)(*args) for b in ("llvm", "interpreter")]


def test_backends_lanes_and_threads_agree():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(23, 3))
    native, interpreted = (
        arc.compile(polynomial, backend=b, numerics="fast") for b in ("llvm", "interpreter")
    )
    wanted = np.array([interpreted(row) for row in x])
    assert_bits(np.array([native(row) for row in x]), wanted)
    for compiled in (native, interpreted):
        for threads in (1, 2):
            assert_bits(arc.vmap(compiled, threads=threads)(x), wanted)
    strict = np.array([arc.compile(polynomial)(row) for row in x])
    assert not np.array_equal(strict, wanted)
    np.testing.assert_allclose(strict, wanted, rtol=1e-14)


def test_derivatives_keep_the_mode():
    x = np.array([0.3, 0.7, 1.1])
    f = arc.compile(polynomial, numerics="fast")
    derivatives = [arc.grad(f), arc.jac(f), arc.hess(f), arc.jac(arc.jac(f))]
    assert [d.numerics for d in derivatives] == ["fast"] * 4
    assert "fma" in derivatives[1].source("llvm", x)
    assert "fma" not in arc.jac(arc.compile(polynomial)).source("llvm", x)
    np.testing.assert_allclose(arc.jac(f)(x), arc.jac(polynomial)(x), rtol=1e-13)
    sparse = arc.jac(arc.compile(lambda x: x * x[0] + x, numerics="fast"), sparse=True)
    assert sparse(x).shape == (3, 3)
    assert sparse._compiled.numerics == "fast"


def test_the_outermost_function_decides():
    inner = arc.compile(lambda x: x[0] * x[1] + x[2], numerics="fast")
    outer = arc.compile(lambda x: inner(x) * 2)
    assert "fma" not in outer.source("llvm", np.ones(3))
    outer = arc.compile(lambda x: inner(x) * 2, numerics="fast")
    assert "fma" in outer.source("llvm", np.ones(3))


def test_options_are_checked():
    with pytest.raises(ValueError, match=r"numerics='quick' is not one of 'strict', 'fast'"):
        arc.compile(polynomial, numerics="quick")
    assert arc.compile(numerics="fast")(polynomial).numerics == "fast"
    assert arc.compile(polynomial).numerics == "strict"


def test_modes_are_apart_in_the_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "1")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    x = np.array([1.0 + 2.0**-30, 1.0 + 2.0**-30, -1.0 - 2.0**-29])

    def residual(x):
        return x[0] * x[1] + x[2]

    values = []
    for numerics in ("strict", "fast", "strict", "fast"):
        f = arc.compile(residual, backend="llvm", numerics=numerics)
        values.append(float(f(x)))
        cached = f._tiers((x,), {}).kernel().cached
        assert cached == (1 if len(values) > 2 else 0)
    assert values == [0.0, 2.0**-60] * 2
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 2


def test_float32():
    x = np.linspace(0.1, 2.0, 3, dtype=np.float32)
    native, interpreted = in_each_backend(polynomial, x, numerics="fast")
    assert native.dtype == np.float32
    assert_bits(np.asarray(native), np.asarray(interpreted))
    assert F32 in fast(arc.compile(polynomial).graph(x)).dtype


def test_models_within_rounding_of_strict():
    point = rigid_body_point(np.random.default_rng(0))
    model = arm()
    q, qd, tau = np.random.default_rng(1).normal(size=(3, 7))
    cases = [(rigid_body, point), (lambda *a: articulated_body(model, *a), (q, qd, tau))]
    for function, args in cases:
        native, interpreted = in_each_backend(function, *args, numerics="fast")
        assert_bits(np.asarray(native), np.asarray(interpreted))
        np.testing.assert_allclose(native, function(*args), rtol=1e-12, atol=1e-12)
        jacobian = arc.jac(arc.compile(function, numerics="fast"))(*args)
        np.testing.assert_allclose(jacobian, arc.jac(function)(*args), rtol=1e-10, atol=1e-10)
