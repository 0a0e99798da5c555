"""Longer tables are data beside the code: other data, same code, right results."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.runtime import kernel
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.graph.elementary.coefficients import logarithm_table
from archimedes.graph.table_data import data_form

GRID = np.linspace(0.0, 1.0, 40)
POINTS = np.linspace(-0.2, 1.2, 57)


@pytest.fixture
def compilations(monkeypatch):
    """How many modules were compiled."""
    kernel._recent_code.clear()
    made = []
    compile_text = Target.compile

    def counted(self, text, fused=False):
        made.append(text)
        return compile_text(self, text, fused)

    monkeypatch.setattr(Target, "compile", counted)
    return made


def reads(table, other):
    """A function that reads two tables, one inside a loop and one outside, and takes a power."""
    first = arc.interpolant([GRID], table)
    second = arc.interpolant([GRID], other)

    def model(x):
        total, _ = arc.scan(lambda c, k: (c + second(x + 0.1 * k), c), 0.0, np.arange(3.0))
        return first(x) * total + np.abs(x) ** 0.3

    return model


def check(table, other):
    native = arc.compile(reads(table, other), backend="llvm")
    wanted = arc.compile(reads(table, other), backend="interpreter")
    alone = np.array([native(x) for x in POINTS])
    assert alone.tobytes() == np.array([wanted(x) for x in POINTS]).tobytes()
    assert arc.vmap(native)(POINTS).tobytes() == alone.tobytes()
    total = sum(np.interp(POINTS + 0.1 * k, GRID, other) for k in range(3))
    expected = np.interp(POINTS, GRID, table) * total + np.abs(POINTS) ** 0.3
    np.testing.assert_allclose(alone, expected, rtol=1e-13, atol=1e-14)


def test_other_data_needs_no_other_code(compilations):
    for k in range(4):
        if k == 1:
            before = len(compilations)
        check(np.sin((k + 1) * GRID), np.cos((k + 1) * GRID))
    # What is compiled for each are the entries that Python calls, never the programs.
    assert not [text for text in compilations[before:] if "arc_scalar" in text or "@run" in text]
    assert any("arc_data0 = external" in text for text in compilations[:before])


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_tables_that_happen_to_be_equal(compilations, order):
    """Code made where two tables are one must not be used where they differ."""
    for equal in order:
        table = np.sin(3.0 * GRID)
        check(table, table if equal else np.cos(3.0 * GRID))


def test_tables_that_equal_one_of_an_elementary_function(compilations):
    own = np.asarray(logarithm_table().high)
    grid = np.linspace(0.0, 1.0, len(own))
    for table in (own, own[::-1].copy(), own):
        f = arc.interpolant([grid], table)
        model = lambda x, f=f: f(x) + np.abs(x) ** 0.7
        found = arc.compile(model, backend="llvm")(0.4)
        assert found == arc.compile(model, backend="interpreter")(0.4)
    assert data_form([own])[0][1] is not None and data_form([own[::-1].copy()])[0][1] is None


def test_constants_that_equal_a_table(compilations):
    """Arrays of constants in the code are not data, also where they hold the same numbers."""
    values = np.sin(np.arange(32.0))
    for table in (values, values + 1.0):
        read = arc.interpolant([np.arange(32.0)], table)

        def model(x, read=read):
            _, out = arc.scan(lambda c, row: (c, row * read(c)), x, values)
            return out

        found = arc.compile(model, backend="llvm")(3.25)
        np.testing.assert_allclose(found, values * np.interp(3.25, np.arange(32.0), table))


def test_short_tables_are_part_of_the_code(compilations):
    for k in range(2):
        f = arc.interpolant([[0.0, 1.0, 2.0]], [1.0, 3.0 + k, 2.0])
        assert arc.compile(lambda x, f=f: f(x), backend="llvm")(0.5) == 2.0 + k / 2.0


def test_data_outlive_what_they_came_from():
    import gc

    functions = []
    for k in range(20):
        table = np.full(64, float(k))
        read = arc.interpolant([np.arange(64.0)], table)
        f = arc.compile(lambda x, read=read: read(x), backend="llvm")
        f(1.0)
        functions.append(f)
        del table, read
    gc.collect()
    np.random.default_rng(0).normal(size=(64, 64))  # other things in the memory
    assert [float(f(30.5)) for f in functions] == [float(k) for k in range(20)]


def test_integer_float32_and_truth_tables(compilations):
    for dtype in (np.int64, np.float32, np.bool_):
        for shift in (0, 1):
            table = ((np.arange(50) + shift) % 3).astype(dtype)
            f = arc.compile(lambda i, table=table: np.take(table, i), backend="llvm")
            found = np.array([f(k) for k in range(50)])
            assert found.dtype == dtype and np.array_equal(found, table)


def test_a_new_input_series_needs_no_new_code(compilations):
    def model(t, x, u):
        return np.stack([x[1], -x[0] - 0.1 * x[1] + u])

    for k in range(4):
        if k == 1:
            before = len(compilations)
        t = np.linspace(0.0, 5.0 + 0.5 * k, 41)
        series = arc.InputSeries(t, np.cos((1.0 + k) * t), hold="foh")
        found = arc.solve_ode(model, (0.0, 5.0), np.array([1.0, 0.0]), inputs=series)
        plain = arc.solve_ode(
            lambda t, x, c: model(t, x, np.interp(t, *c)),
            (0.0, 5.0),
            np.array([1.0, 0.0]),
            args=((t, np.cos((1.0 + k) * t)),),
            max_step=0.05,
        )
        np.testing.assert_allclose(found.x[-1], plain.x[-1], rtol=2e-6)
    text = [x for x in compilations[before:] if "arc_data" in x]
    assert not text
