"""Recording takes part in NumPy's creation functions, and leaves NumPy as it was."""

from __future__ import annotations

import inspect
import pickle
import random
import sys
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from numpy import r_ as bound_r
from numpy import sum as bound_sum
from numpy import zeros as bound_zeros
from scipy.spatial.transform import Rotation

import archimedes as arc
from archimedes.checks import is_traced
from archimedes.symbolic import RecordedArray
from archimedes.symbolic.recorded import numpy_patching

NAMES_TEXT = (
    "zeros ones empty eye identity full array asarray asanyarray asfortranarray ascontiguousarray "
    "asarray_chkfinite"
)
NAMES = NAMES_TEXT.split()
ORIGINALS = {name: getattr(np, name) for name in NAMES}


def untouched() -> bool:
    return all(getattr(np, name) is ORIGINALS[name] for name in NAMES)


def test_creation_functions_are_replaced_only_while_recording() -> None:
    seen = []

    def f(x):
        seen.append(untouched())
        return x + np.ones(3)

    arc.compile(f, freeze=True)(np.ones(3))
    assert seen == [False]
    assert untouched()


def test_numpy_is_restored_after_errors_and_nested_recordings() -> None:
    def fails(x):
        arc.compile(lambda y: y * 2.0)(x)
        assert not untouched()
        raise KeyError

    with pytest.raises(KeyError):
        arc.compile(fails)(np.ones(3))
    with pytest.raises(arc.TraceError):
        arc.compile(lambda x: float(x[0]))(np.ones(3))
    assert untouched()


def test_other_threads_see_plain_numpy() -> None:
    recording, checked = threading.Event(), threading.Event()
    seen: list = []

    def other() -> None:
        recording.wait(30)
        made = [np.zeros(3), np.array([1.0, 2.0]), np.eye(2), np.full(2, 1.5), np.asarray([1.0])]
        seen.extend(type(m) for m in made)
        checked.set()

    def f(x):
        recording.set()
        assert checked.wait(30)
        return x + np.zeros(3)

    thread = threading.Thread(target=other)
    thread.start()
    arc.compile(f, freeze=True)(np.ones(3))
    thread.join()
    assert seen == [np.ndarray] * 5
    assert untouched()


def test_many_threads_record_at_once() -> None:
    def work(k: int) -> None:
        def f(x):
            y = np.zeros(4)
            y[k % 4] = x[0] * k
            return y + np.array([x[1], 1.0, 2.0, 3.0])

        x = np.array([2.0, 3.0])
        for _ in range(5):
            np.testing.assert_array_equal(arc.compile(f)(x), f(x))
        done.append(k)

    done: list[int] = []
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(8))
    assert untouched()


def test_compiled_extensions_get_plain_arrays_while_recording() -> None:
    # Extensions have no frame of their own: they seem to be called from the user's line.
    rotation = Rotation.from_euler("xyz", [0.1, 0.2, 0.3])

    def f(x):
        return Rotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix() @ x

    x = np.array([1.0, 2.0, 3.0])
    want = rotation.as_matrix() @ x
    np.testing.assert_allclose(arc.compile(f)(x), want, rtol=1e-15)


def test_arrays_made_in_the_function_hold_traced_values() -> None:
    kinds = {}

    def f(x):
        kinds["zeros"] = is_traced(np.zeros(2))
        kinds["like"] = is_traced(np.zeros(2, like=x))
        kinds["list"] = is_traced(np.array([x[0], 1.0]))
        filled = np.zeros(2)
        filled[0] = x[0]
        kinds["filled"] = is_traced(filled)
        return x

    arc.compile(f)(np.ones(2))
    assert kinds == {"zeros": False, "like": False, "list": True, "filled": True}


def test_functions_that_someone_else_replaced_stay(monkeypatch):
    """A test or another library may have put its own function into NumPy: before, and meanwhile."""
    mine, other = (lambda *args, **kwargs: "mine"), (lambda *args, **kwargs: "other")
    monkeypatch.setattr(np, "savez", mine)
    monkeypatch.setattr(np, "zeros", mine)

    def f(x):
        assert np.zeros(3) == "mine"
        np.save = other
        return x + 1.0

    before = np.save
    try:
        arc.compile(f, freeze=True)(1.0)
        assert np.savez is mine and np.zeros is mine and np.save is other
    finally:
        np.save = before
    assert arc.compile(lambda x: np.ones(2) * x)(2.0).tolist() == [2.0, 2.0]


@contextmanager
def held_recording():
    """Keep a recording open in another thread; what is inside runs meanwhile, in this one."""
    recording, done = threading.Event(), threading.Event()

    def model(x):
        recording.set()
        assert done.wait(30)
        y = np.zeros(3)
        y[0] = x
        return y

    thread = threading.Thread(target=lambda: arc.compile(model, freeze=True)(1.0))
    thread.start()
    assert recording.wait(30)
    try:
        assert not untouched()
        yield
    finally:
        done.set()
        thread.join()
    assert untouched()


def test_another_thread_gets_the_same_results_and_kinds():
    table, index = np.arange(6.0).reshape(2, 3), np.array([1, 0])
    calls = {
        "index": lambda: table[index, 1],
        "zeros": lambda: np.zeros((2, 3), dtype=int),
        "array": lambda: np.array([[1, 2.5]]),
        "asarray": lambda: np.asarray(table),
        "sin": lambda: np.sin(table),
        "dot": lambda: np.dot(table, [1.0, 2.0, 3.0]),
        "max": lambda: np.max([1, 5, 3]),
        "norm": lambda: np.linalg.norm([3.0, 4.0]),
        "fft": lambda: np.fft.fft([1.0, 2.0]),
        "r_": lambda: np.r_[1:3, [7.0]],
        "c_": lambda: np.c_[[1, 2], [3, 4]],
        "vectorize": lambda: np.vectorize(lambda a: a + 1)([1, 2]),
        "ndenumerate": lambda: np.array([v for _, v in np.ndenumerate(table)]),
        "nditer": lambda: np.array([float(v) for v in np.nditer(table)]),
        "generator": lambda: np.random.default_rng(3).normal(size=2),
        "legacy": lambda: np.random.RandomState(3).normal(size=2),
        "random": lambda: np.array(random.Random(3).random()),
        "copy": lambda: table.copy(),
    }
    before = {name: call() for name, call in calls.items()}
    with held_recording():
        for name, call in calls.items():
            now = call()
            assert type(now) is type(before[name]), name
            assert now.dtype == before[name].dtype, name
            np.testing.assert_array_equal(now, before[name], err_msg=name)
        with pytest.raises(TypeError, match="shape"):
            np.zeros()
        with pytest.raises(IndexError, match="out of bounds"):
            table[7]


def test_another_thread_finds_the_same_classes_and_functions():
    kept = np.vectorize(abs), np.ndenumerate(np.zeros(2)), np.nditer(np.zeros(2))
    kinds = {name: getattr(np, name) for name in ("ndarray", "ufunc", "nditer", "sin", "add", "r_")}
    originals = [np.zeros, np.sum, np.linalg.solve]
    members = dict(vars(np.ndarray)), dict(vars(np.vectorize)), dict(vars(type(np.r_)))
    with held_recording():
        for name in ("ndarray", "ufunc", "nditer", "sin", "add"):
            assert getattr(np, name) is kinds[name]
        assert isinstance(np.r_, type(kinds["r_"]))
        assert isinstance(kept[0], np.vectorize) and isinstance(kept[1], np.ndenumerate)
        assert (
            isinstance(kept[2], np.nditer) and issubclass(np.vectorize, kinds["ndarray"]) is False
        )
        made = np.vectorize(abs), np.ndenumerate(np.zeros(2))
        now = [np.zeros, np.sum, np.linalg.solve]
        assert now == originals and list(map(hash, now)) == list(map(hash, originals))
        assert [f.__name__ for f in now] == ["zeros", "sum", "solve"]
        assert [f.__doc__ for f in now] == [f.__doc__ for f in originals]
        assert inspect.signature(np.sum) == inspect.signature(originals[1])
        assert inspect.isbuiltin(np.zeros)
        pickled = pickle.dumps(now)
        assert np.add.reduce([1, 2]) == 3 and np.sin.nin == 1
        assert (dict(vars(np.ndarray)), dict(vars(type(made[0]).__mro__[-2]))) == members[:2]
    assert pickle.loads(pickled) == originals
    assert isinstance(made[0], np.vectorize) and isinstance(made[1], np.ndenumerate)
    assert made[0]([-1, 2]).tolist() == [1, 2]
    assert dict(vars(type(np.r_))) == members[2]


def test_functions_recorded_before_are_called_and_not_recorded_again():
    f = arc.compile(lambda x: bound_sum(bound_zeros(2)) + x * len(bound_r[1, 2]))
    assert f(1.0) == 2.0
    with held_recording():
        assert f(2.0) == 4.0 and f(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert f(3.0) == 6.0 and f(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert f.explain().count("\n") == 1  # one recording for a number, one for an array


def test_a_module_that_another_thread_imports_meanwhile_gets_the_originals(tmp_path, monkeypatch):
    text = (
        "from numpy import zeros, sum as total, sin\nfrom numpy import vectorize\nMADE = zeros(2)\n"
    )
    (tmp_path / "imported_meanwhile.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_meanwhile", raising=False)
    with held_recording():
        import imported_meanwhile as module

        assert type(module.MADE) is np.ndarray and module.total([1, 2]) == 3
    names = (module.zeros, module.total, module.sin, module.vectorize)
    for function, original in zip(names, (np.zeros, np.sum, np.sin, np.vectorize)):
        assert function is original


def test_recordings_begin_and_end_in_any_order():
    """Two threads, in both orders of ending, one of which raises: each gets what it should."""
    for first_to_end in (0, 1):
        begun = [threading.Event(), threading.Event()]
        end = [threading.Event(), threading.Event()]
        kinds: list[object] = [None, None]

        def model(x, k, begun=begun, end=end, kinds=kinds):
            begun[k].set()
            assert end[k].wait(30)
            kinds[k] = type(np.zeros(2))
            if k:
                raise KeyError("on purpose")
            return x

        def record(k, model=model):
            with suppress(KeyError):
                arc.compile(lambda x: model(x, k), freeze=True)(1.0)

        threads = [threading.Thread(target=record, args=(k,)) for k in (0, 1)]
        for k in (0, 1):
            threads[k].start()
            assert begun[k].wait(30)
        for k in (first_to_end, 1 - first_to_end):
            assert type(np.zeros(2)) is np.ndarray and not untouched()
            end[k].set()
            threads[k].join()
        assert kinds == [RecordedArray, RecordedArray]
        assert untouched()


def test_the_same_without_native_code(monkeypatch):
    monkeypatch.setattr(numpy_patching, "_native", None)
    kept = np.zeros

    def f(x):
        assert np.zeros == kept and np.zeros.__name__ == "zeros"
        y = np.zeros(3)
        y[0] = x
        return y + np.max([x, 1.0])

    np.testing.assert_array_equal(arc.compile(f)(2.0), f(2.0))
    with held_recording():
        assert type(np.zeros(2)) is np.ndarray and np.zeros == kept
        assert np.max([1, 5]) == 5
    assert np.zeros is kept
