"""Programs give the same bits whoever provides the primitives, in batches and one by one."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.ulp import EDGES, count_primitives, interesting, samples

from archimedes.graph.elementary import NUMPY, PROGRAMS, evaluate, in_float32
from tests.elementary.python_primitives import PYTHON, Scalar


def operands(name: str, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    drawn = samples(name, n, rng, "float64")
    pick = [rng.choice(EDGES, n // 2) for _ in drawn]
    return [np.concatenate([x, e]) for x, e in zip(drawn, pick, strict=True)]


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("name", PROGRAMS)
def test_python_and_numpy_provide_the_same_bits(name):
    row = PROGRAMS[name]
    xs = operands(name, 400)
    expected = evaluate(name, *xs)
    found = [row.program(PYTHON, *map(Scalar, map(float, x))).value for x in zip(*xs, strict=True)]
    wrong = ~same_bits(expected, np.array(found))
    assert not wrong.any(), [tuple(x[wrong][:3]) for x in xs]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_batch_equals_scalar(name, dtype):
    with np.errstate(over="ignore"):
        xs = [x.astype(dtype) for x in operands(name, 300)]
    batch = evaluate(name, *xs)
    single = np.array([evaluate(name, *x) for x in zip(*xs, strict=True)], dtype)
    assert batch.dtype == dtype
    assert same_bits(batch, single).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_shape_and_blocks_do_not_matter(name):
    xs = interesting(name, 30_000, np.random.default_rng(3))
    whole = evaluate(name, *xs)
    cube = evaluate(name, *(x.reshape(20, 50, 30) for x in xs))
    strided = evaluate(name, *(x[::7] for x in xs))
    assert cube.shape == (20, 50, 30)
    assert same_bits(whole, cube.ravel()).all()
    assert same_bits(whole[::7], strided).all()


def test_operands_broadcast():
    y, x = np.linspace(-1, 1, 4)[:, None], np.linspace(-2, 2, 5)
    found = evaluate("arctan2", y, x)
    assert found.shape == (4, 5)
    assert found[1, 3] == evaluate("arctan2", y[1, 0], x[3])


def test_empty_arrays_and_scalars_keep_their_kind():
    assert evaluate("sin", np.zeros((0, 3))).shape == (0, 3)
    assert type(evaluate("exp", 1.0)) is np.float64
    assert type(evaluate("pow", np.float32(2), np.float32(3))) is np.float32


def test_float32_is_float64_rounded_once():
    x = np.linspace(-3, 3, 1001, dtype=np.float32)
    expected = evaluate("sinh", x.astype(np.float64)).astype(np.float32)
    assert (evaluate("sinh", x) == expected).all()
    assert (NUMPY.run(in_float32(PROGRAMS["sinh"].program), x) == expected).all()


def test_sin_and_cos_share_their_reduction():
    both = count_primitives("sin", "cos")
    assert both <= count_primitives("sin") + 6
    assert both <= 60


@pytest.mark.parametrize(
    ("name", "limit"), [("exp", 42), ("log", 46), ("arctan2", 90), ("hypot", 60), ("fmod", 40)]
)
def test_programs_stay_short(name, limit):
    assert count_primitives(name) <= limit


def test_unknown_name_lists_the_choices():
    with pytest.raises(ValueError, match=r"no elementary function 'sine'; choose from sin, cos"):
        evaluate("sine", 1.0)


def test_wrong_number_of_operands_is_named():
    with pytest.raises(TypeError, match=r"arctan2 takes 2 operand\(s\), got 1"):
        evaluate("arctan2", 1.0)


def test_other_dtypes_say_what_to_write():
    with pytest.raises(TypeError, match=r"sin works on .* got int64; convert with .astype"):
        evaluate("sin", np.arange(3))
