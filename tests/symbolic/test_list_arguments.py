"""Lists of traced numbers given to NumPy's functions mean what ``np.array`` makes of them."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from numpy import median as bound_median

import archimedes as arc
from archimedes.errors import TraceError
from tests.symbolic.list_forms import FORMS, KINDS, UFUNC_FORMS

#: NumPy's BLAS, LAPACK and pairwise sums round in an order of their own, ours in a fixed one.
_ULPS = 4


def _same(got, wanted):
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    if wanted.dtype.kind != "f":
        return np.array_equal(got, wanted)
    tolerance = _ULPS * np.finfo(wanted.dtype).eps
    return np.allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_eager_and_recorded_agree(kind):
    numbers = KINDS[kind]

    def every(x, y):
        return [form(x, y) for form in FORMS.values()]

    eager = every(*numbers)
    runs = [arc.compile(every, backend=b)(*numbers) for b in ("interpreter", "llvm")]
    wrong = [name for name, a, b in zip(FORMS, runs[0], eager) if not _same(a, b)]
    assert not wrong
    for name, a, b in zip(FORMS, *runs):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), name


def test_the_sum_of_a_list_of_python_floats_widens_float32():
    f = lambda x: np.sum([x, 1.0]) * np.float32([1.0, 2.0])
    assert arc.compile(f)(0.1).dtype == f(0.1).dtype == np.float64


def test_derivatives_pass_through_lists():
    assert arc.grad(lambda x: np.max([x**2, 1.0]))(3.0) == 6.0
    assert arc.grad(lambda x: np.linalg.norm([x, 4.0]))(3.0) == pytest.approx(0.6, rel=1e-15)


def test_masks_of_piecewise_select_along_leading_axes():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    f = lambda x: np.piecewise(x, [np.array([True, False])], [1.0, 2.0])
    np.testing.assert_array_equal(arc.compile(f)(x), f(x))


def test_ragged_lists_are_refused_as_by_numpy():
    with pytest.raises(ValueError, match="different shapes"):
        arc.compile(lambda x: np.sum([x, [x, x]]))(1.0)


def test_names_bound_by_from_import():
    assert arc.compile(lambda x: bound_median([x, 1.0]))(0.5) == 0.75


@pytest.mark.parametrize("name", UFUNC_FORMS)
def test_ufuncs_say_what_to_write(name):
    with pytest.raises(TraceError, match=r"np\.array\(") as caught:
        arc.compile(UFUNC_FORMS[name])(0.7, 1.3)
    assert "list_forms.py" in str(caught.value)


def test_ufuncs_are_numpys_own_while_recording():
    sine = np.sin

    def f(x):
        assert np.sin is sine and type(np.sin) is np.ufunc
        return np.sin(np.array([x, 1.0]))

    np.testing.assert_array_equal(arc.compile(f)(0.5), f(0.5))


def test_what_stands_for_a_function_looks_like_it():
    originals = (np.zeros, np.max, np.linalg.norm)

    @arc.compile
    def look(x):
        seen = []
        for original, name in zip(originals, ("zeros", "max", "norm")):
            now = getattr(np.linalg if name == "norm" else np, name)
            seen.append(now == original and original == now and hash(now) == hash(original))
            seen.append({original: 1}[now] == 1 and isinstance(now, type(original)))
            seen.append(now.__name__ == original.__name__ and now.__doc__ == original.__doc__)
            seen.append(repr(now) == repr(original) and pickle.loads(pickle.dumps(now)) == now)
        assert seen == [True] * 12
        assert inspect.signature(np.max) == inspect.signature(originals[1])
        assert np.max._implementation is originals[1]._implementation
        return x

    look(1.0)
    assert (np.zeros, np.max, np.linalg.norm) == originals
    assert all(type(f).__module__ in ("numpy", "builtins") for f in originals)


@pytest.mark.parametrize("kept", [np.sum, np.max, np.diff, np.linalg.norm, np.mean])
def test_a_function_kept_before_the_recording_says_what_to_write(kept):
    with pytest.raises(TraceError, match=r"np\.array\(\[") as caught:
        arc.compile(lambda x: kept([x, 1.0]) * np.float32([1.0, 2.0]))(0.3)
    assert "test_list_arguments.py" in str(caught.value)
    assert arc.compile(lambda x: kept(np.array([x, 1.0])))(0.3) is not None
