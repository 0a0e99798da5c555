"""Recording takes part in NumPy's creation functions, and leaves NumPy as it was."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import archimedes as arc
from archimedes.symbolic import is_traced

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
