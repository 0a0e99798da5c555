"""Each kind of misuse raises one error: what happened, on which line, what to write instead."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import archimedes as arc
from archimedes import symbolic
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import trace_leaf
from archimedes.graph import program
from archimedes.graph.dtypes import F64

OUTSIDE = np.zeros(3)
KEPT: list = []


def branch(x):
    return 1.0 if x[0] > 0 else 2.0  # here


def branch_on_array(x):
    return 1.0 if x > 0 else 2.0  # here


def chained_comparison(x):
    return 0.0 < x[0] < 1.0  # here


def python_and(x):
    return x[0] > 0 and x[1] > 0  # here


def python_max(x):
    return max(x[0], x[1])  # here


def membership(x):
    return 1.0 in x  # here


def convert_to_float(x):
    return float(x[0])  # here


def convert_to_int(x):
    return int(x[0])  # here


def convert_to_complex(x):
    return complex(x[0])  # here


def math_sin(x):
    return math.sin(x[0])  # here


def loop_count(x):
    return [0.0 for _ in range(x.astype(int)[0])]  # here


def list_index(x):
    return [1.0, 2.0][x.astype(int)[0]]  # here


def slice_end(x):
    return x[: x.astype(int)[0]]  # here


def array_size(x):
    return np.zeros(x.astype(int)[0])  # here


def repeat_count(x):
    return np.repeat(x, x.astype(int))  # here


def new_shape(x):
    return x.reshape(x.astype(int)[0], -1)  # here


def select_by_mask(x):
    return x[x > 0]  # here


def compress_by_mask(x):
    return np.compress(x > 0, x)  # here


def assign_many_by_mask(x):
    x[x > 0] = x[:2]  # here
    return x


def where_alone(x):
    return np.where(x > 0)  # here


def unique(x):
    return np.unique(x)  # here


def histogram(x):
    return np.histogram(x)  # here


def unsupported_function(x):
    return np.fft.fftn(x)  # here


def unsupported_ufunc(x):
    return np.nextafter(x, 0.0)  # here


def complex_number(x):
    return x * 1j  # here


def complex_array(x):
    return x + np.array([1j, 2.0, 3.0])  # here


def string_array(x):
    return x + np.array(["a", "b", "c"])  # here


def none_in_array(x):
    return x + np.array([None, 1.0, 2.0])  # here


def half_precision(x):
    return x.astype(np.float16)  # here


def half_precision_result(x):
    return np.sin(x > 0)  # here


def format_spec(x):
    return f"{x[0]:.3f}"  # here


def fill_outside_array(x):
    OUTSIDE[0] = x[0]  # here
    return x


def add_to_outside_array(x):
    total = OUTSIDE
    total += x  # here
    return total


def out_outside_array(x):
    return np.add(x, x, out=OUTSIDE)  # here


def copyto_outside_array(x):
    np.copyto(OUTSIDE, x)  # here
    return x


def put_outside_array(x):
    np.put(OUTSIDE, [0], x[0])  # here
    return x


def where_without_out(x):
    return np.add(x, x, where=x > 0)  # here


def dictionary_key(x):
    return {x[0]: 1.0}  # here


def add_text(x):
    return x + "a"  # here


def missing_attribute(x):
    return x.tobytes()  # here


def kept_from_before(x):
    return x + KEPT[0]  # here


def write_to_outer_function(x):
    def inner(y):
        x[0] = y  # here
        return y

    return arc.vmap(inner)(x)


def quantile_by_other_method(x):
    return np.quantile(x, x[0], method="hazen")  # here


CASES = [
    # function, what happened, remedy
    (branch, "bool(x) needs the value of a traced bool", "np.where(test, a, b)"),
    (branch_on_array, "truth value of a traced array", "np.all(x) or np.any(x)"),
    (chained_comparison, "bool(x)", "np.logical_and/or"),
    (python_and, "bool(x)", "arc.cond(test, f, g, *args)"),
    (python_max, "bool(x)", "np.where"),
    (membership, "bool(x)", "np.where"),
    (convert_to_float, "float(x) needs the value of a traced float64", "arc.callback"),
    (convert_to_int, "int(x) needs the value of a traced float64", "x.astype(...)"),
    (convert_to_complex, "complex(x)", "arc.callback"),
    (math_sin, "float(x)", "np.sin(x) instead of math.sin(x)"),
    (loop_count, "use as an index or a count", "arc.fori_loop"),
    (list_index, "read at a traced index", "np.take([1.0, 2.0], x.astype(int)[0])"),
    (slice_end, "use as an index or a count", "static_argnames"),
    (array_size, "np.zeros was given a traced size", "x.shape"),
    (repeat_count, "np.repeat was given a traced count", "static_argnames"),
    (new_shape, "use as an index or a count", "static_argnames"),
    (select_by_mask, "x[mask] with a traced mask has a shape that", "np.where(mask, x, 0.0)"),
    (compress_by_mask, "np.compress with a traced condition", "np.sum(x, where=condition)"),
    (assign_many_by_mask, "needs one value", "np.where(mask, values_everywhere, x)"),
    (where_alone, "np.where with a condition alone", "np.where(condition, x, y)"),
    (unique, "np.unique gives a result whose shape", "np.sort"),
    (histogram, "chooses its bins from the values", "np.linspace(low, high, n + 1)"),
    (unsupported_function, "np.fft.fftn is not available", "arc.callback"),
    (unsupported_ufunc, "np.nextafter cannot be traced", "arc.callback"),
    (complex_number, "complex128 cannot be traced", "float64, float32, int64 or bool"),
    (complex_array, "complex128 cannot be traced", "float64, float32, int64 or bool"),
    (string_array, "dtype <U1 cannot be traced", "float64, float32, int64 or bool"),
    (none_in_array, "an array holds a NoneType", "numbers only"),
    (half_precision, "float16 cannot be traced", "float64, float32, int64 or bool"),
    (half_precision_result, "np.sin of (bool) gives a dtype", "x.astype(float)"),
    (format_spec, "format(x, '.3f')", "arc.callback to print"),
    (fill_outside_array, "a traced value cannot be written into a plain", "a = np.array(a)"),
    (add_to_outside_array, "plain NumPy array made outside the trace", "a = a + x"),
    (out_outside_array, "plain NumPy array made outside the trace", "a = np.array(a)"),
    (copyto_outside_array, "made outside the trace (np.copyto)", "inside the function"),
    (put_outside_array, "made outside the trace (np.put)", "a = np.array(a)"),
    (where_without_out, "leaves values undefined", "np.where(mask, f(x), other)"),
    (dictionary_key, "hash(x)", "np.where"),
    (add_text, "unsupported operand type", "arc.callback"),
    (missing_attribute, "'tobytes'", "arc.callback"),
    (write_to_outer_function, "writes to the outer one's array", "y = x.copy()"),
    (quantile_by_other_method, "method='hazen' need static positions", "method='linear'"),
]


def keep() -> None:
    """Keep a value of a trace that ends."""
    with symbolic.Trace() as trace:
        KEPT[:] = [trace_leaf(trace, LeafSpec(F64, (3,)))]


def test_a_value_kept_from_before_is_named() -> None:
    keep()
    with pytest.raises(arc.TraceError, match=r"KEPT\[0\] holds a value of a recording that has en"):
        arc.compile(kept_from_before)(np.ones(3))


@pytest.mark.parametrize(
    ("function", "happened", "remedy"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_message_names_cause_line_and_remedy(function, happened, remedy) -> None:
    keep()
    with pytest.raises(arc.TraceError) as caught:
        arc.compile(function)(np.array([1.5, -0.5, 2.0]))
    first, place, line, *rest = str(caught.value).split("\n")
    assert happened in first
    lines, start = inspect.getsourcelines(function)
    number = start + next(k for k, text in enumerate(lines) if text.rstrip().endswith("# here"))
    assert place.strip().startswith(f"{__file__}:{number}, in ")
    assert line.strip() == lines[number - start].strip()
    assert remedy in " ".join(rest)


def test_outside_array_is_untouched() -> None:
    for function in (fill_outside_array, add_to_outside_array, out_outside_array):
        with pytest.raises(arc.TraceError):
            arc.compile(function)(np.ones(3))
    assert OUTSIDE.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("use", [lambda x: x + 1, np.sin, lambda x: x[0], lambda x: float(x[0])])
def test_leaked_value_says_so(use) -> None:
    keep()
    with pytest.raises(arc.TraceError, match=r"used outside any trace[\s\S]*return what you need"):
        use(KEPT[0])


def test_leaked_value_can_be_printed() -> None:
    keep()
    assert repr(KEPT[0]) == "Traced(float64, shape=(3,))"


@pytest.mark.parametrize("bad", [np.array([1j]), np.array(["a"]), np.array([1.0], dtype="f2")])
def test_argument_of_another_dtype_is_named(bad) -> None:
    with pytest.raises(arc.TraceError, match=r"argument speed has dtype .*static_argnames"):
        arc.compile(lambda speed: speed)(bad)


def test_long_trace_says_where_and_what_instead(monkeypatch) -> None:
    monkeypatch.setattr(program, "MAX_NODES", 500)

    def too_long(x):
        for k in range(len(x)):
            x = np.sin(x) * x[k]  # here
        return x

    with pytest.raises(arc.TraceError) as caught:
        arc.compile(too_long)(np.linspace(0.0, 1.0, 60))
    message = str(caught.value)
    assert "passed 500 operations" in message
    assert "arc.vmap" in message
    assert "arc.scan" in message
    assert f"{__file__}:" in message
    assert "x = np.sin(x) * x[k]  # here" in message


def test_errors_of_the_user_are_not_touched() -> None:
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        arc.compile(fails)(np.ones(2))


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x[7], IndexError, "out of bounds"),
        (lambda x: x[0, 0], IndexError, "too many indices"),
        (lambda x: x + np.ones(4), ValueError, "broadcast"),
        (lambda x: x @ np.ones(4), ValueError, "mismatch"),
        (lambda x: x.reshape(2, 2), ValueError, "reshape"),
        (lambda x: np.sort(x, axis=3), np.exceptions.AxisError, "out of bounds"),
        (lambda x: np.max(x[:0]), ValueError, "zero-size array"),
        (lambda x: np.argmax(x[:0]), ValueError, "empty sequence"),
        (lambda x: np.percentile(x, 120), ValueError, "range"),
        (lambda x: np.digitize(x, [0.0, 2.0, 1.0]), ValueError, "monotonically"),
        (lambda x: np.gradient(x[:1]), ValueError, "too small"),
        (lambda x: np.interp(x, [0.0, 1.0], [1.0]), ValueError, "same length"),
        (lambda x: np.concatenate([x, np.ones((2, 2))]), ValueError, "dimension"),
        (lambda x: x.astype(int) ** -1, ValueError, "negative integer powers"),
        (lambda x: x.item(), ValueError, "size 1"),
        (lambda x: len(x[0]), TypeError, "no len"),
        (lambda x: list(x[0]), TypeError, "not iterable"),
        (lambda x: np.broadcast_to(x, (2, 3)).__setitem__(0, 1.0), ValueError, "read-only"),
    ],
)
def test_mistakes_raise_what_numpy_raises(function, error, message) -> None:
    x = np.array([0.5, 1.5, 2.5])
    with pytest.raises(error):
        function(x)
    with pytest.raises(error, match=message):
        arc.compile(function)(x)
