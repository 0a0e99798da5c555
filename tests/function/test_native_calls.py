"""The native call path takes exactly what it was made for and leaves the rest to the slow path."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.python_api import entry as calling
from archimedes.function.execution import shortcuts, tiers
from tests.entries import is_supported, needs_entries

pytestmark = pytest.mark.usefixtures("compiled_once")


@pytest.fixture(autouse=True)
def entries_at_once(monkeypatch):
    """Make native entries at the first call, not after a few."""
    monkeypatch.setattr(tiers, "FIRST_CALLS", 0)


@arc.struct
class Inner:
    a: Any
    kind: str = arc.field(static=True, default="p")


@arc.struct
class Outer:
    inner: Inner
    b: Any
    flag: bool = arc.field(static=True, default=False)


def model(t, x):
    scale = 2.0 if x.flag else 1.0
    power = 1 if x.inner.kind == "p" else 2
    return Outer(Inner(scale * x.inner.a**power, kind=x.inner.kind), x.b + t, x.flag)


def native(function):
    return arc.compile(function, backend="llvm")


def expected_path(compiled, *args):
    """Call twice, so that the second call finds the generated path, and return that result."""
    compiled(*args)
    assert bool(compiled._shortcuts) is is_supported()
    return compiled(*args)


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("kind", ["p", "q"])
def test_structs_with_static_fields(flag, kind):
    f = native(model)
    for _ in range(3):
        x = Outer(Inner(np.array([1.0, 3.0]), kind=kind), 2.0, flag)
        got, want = expected_path(f, 0.5, x), model(0.5, x)
        assert got == want
        # Another value of a static field must not take the path of this one.
        other = Outer(Inner(np.array([1.0, 3.0]), kind="q" if kind == "p" else "p"), 2.0, not flag)
        assert f(0.5, other) == model(0.5, other)


FORMS = {
    "float64": np.array([1.0, 2.0, 3.0]),
    "float32": np.array([1.0, 2.0, 3.0], dtype=np.float32),
    "int64": np.array([1, 2, 3]),
    "bool": np.array([True, False, True]),
    "reversed": np.array([3.0, 2.0, 1.0])[::-1],
    "strided": np.arange(6.0)[::2],
    "big endian": np.array([1.0, 2.0, 3.0], dtype=">f8"),
    "read only": np.broadcast_to(2.0, 3),
    "other shape": np.ones((3, 1)),
    "longer": np.ones(4),
    "unaligned": np.frombuffer(b"\0" + np.arange(3.0).tobytes(), dtype=np.float64, offset=1),
    "python float": 2.0,
    "python int": 2,
    "numpy scalar": np.float64(2.0),
    "0-d": np.array(2.0),
    "float32 scalar": np.float32(2.0),
    "memory of a file": np.ones(3).view(np.memmap),
}


@pytest.mark.parametrize("last", FORMS)
@pytest.mark.parametrize("first", FORMS)
def test_every_form_after_every_other(first, last):
    f = native(lambda x: (x * 3, x + x))
    reference = arc.compile(lambda x: (x * 3, x + x), backend="interpreter")
    for name in (first, first, last, first):
        got, want = f(FORMS[name]), reference(FORMS[name])
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype and np.shape(a) == np.shape(b) and type(a) is type(b)
            np.testing.assert_array_equal(a, b)


def test_wide_ints_and_their_overflow():
    f = native(lambda n: n + 1)
    assert expected_path(f, 2**62) == 2**62 + 1
    with pytest.raises((OverflowError, arc.TraceError)):
        f(2**70)


def test_results_are_new_arrays_each_time():
    f = native(lambda x: x + 1.0)
    x = np.zeros(3)
    first, second = expected_path(f, x), f(x)
    second[...] = 7.0
    assert first.tolist() == [1.0] * 3 and x.tolist() == [0.0] * 3


def test_no_reference_is_lost_or_kept():
    f = native(lambda x, s: (x * s, np.sum(x)))
    x, s = np.ones(3), 2.5
    expected_path(f, x, s)
    gc.collect()  # cycles of other tests hold references too
    before = [sys.getrefcount(v) for v in (x, s, np.ndarray, x.dtype, NotImplemented, None)]
    for _ in range(1000):
        f(x, s)
        f(x[::2], s)
    after = [sys.getrefcount(v) for v in (x, s, np.ndarray, x.dtype, NotImplemented, None)]
    assert max(abs(a - b) for a, b in zip(after, before)) < 50
    plain = (x * s, np.float64(x[0] + s))
    result = f(x, s)
    assert [sys.getrefcount(r) for r in result] == [sys.getrefcount(r) for r in plain]


def test_structs_are_built_as_if_by_hand():
    f = native(model)
    x = Outer(Inner(np.array([1.0, 3.0]), kind="q"), 2.0, True)
    got = expected_path(f, 0.5, x)
    want = model(0.5, x)
    assert type(got) is Outer and type(got.inner) is Inner and gc.is_tracked(got)
    assert vars(got).keys() == vars(want).keys() and got.inner.kind == "q" and got.flag is True
    held = (Outer, Inner, "q", True, "inner", "a", np.ndarray, ())
    gc.collect()
    before, objects = [sys.getrefcount(v) for v in held], len(gc.get_objects())
    for _ in range(1000):
        got = f(0.5, x)
    gc.collect()
    after = [sys.getrefcount(v) for v in held]
    # Other threads of the process come and go; what leaked here would have leaked a thousand times.
    assert max(abs(a - b) for a, b in zip(after, before)) < 500
    assert abs(len(gc.get_objects()) - objects) < 500
    assert sys.getrefcount(got.inner.a) == sys.getrefcount(model(0.5, x).inner.a)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x, None, (x * 2.0, (), Inner(x))),
        lambda x: Outer(Inner((x, None)), (np.sum(x), x)),
        lambda x: (np.sum(x),),
    ],
    ids=["tuples", "tuples in structs", "one item"],
)
def test_nested_results(function):
    f = native(function)
    x = np.array([1.0, 3.0])
    for _ in range(3):
        np.testing.assert_equal(arc.tree.leaves(f(x)), arc.tree.leaves(function(x)))
        assert arc.tree.structure(f(x)) == arc.tree.structure(function(x))
    assert bool(f._shortcuts) is is_supported()


def test_arguments_left_out_or_too_many():
    f = native(lambda x, y=None: x.a if y is None else x.a + y)
    x, y = Inner(np.ones(2)), np.ones(2)
    for _ in range(3):
        assert f(x, y).tolist() == [2.0, 2.0] and f(x).tolist() == [1.0, 1.0]
        with pytest.raises(TypeError, match="too many"):
            f(x, y, y)


@needs_entries
def test_only_brief_kernels_keep_the_gil(monkeypatch):
    flags = []
    make = calling.make_entry
    monkeypatch.setattr(calling, "make_entry", lambda *a: flags.append(a[4]) or make(*a))
    step = lambda x, _: (x * 1.5, None)
    more = lambda x: x < 1e9
    for function, brief in (
        (lambda x: x + 1.0, True),
        (lambda x: arc.scan(step, x, length=20)[0], True),
        (lambda x: arc.scan(step, x, length=2000)[0], False),
        (lambda x: arc.while_loop(more, lambda x: x * 1.5, x, max_steps=100_000), False),
    ):
        native(function)(1.0)
        assert flags.pop() is brief and not flags


def test_functions_are_collected_in_any_order():
    for k in range(60):
        f = native(lambda x, k=k: x * k)
        f.loop = f  # a cycle, so that the collector takes it apart
        f.other = [f]
        expected_path(f, np.ones(2))
    gc.collect()


def test_many_threads_on_one_path():
    f = native(lambda x, s: (np.sin(x) * s, np.sum(x)))
    x = np.linspace(0.0, 1.0, 7)
    want = expected_path(f, x, 2.0)
    wrong = []

    def work():
        for _ in range(2000):
            got = f(x, 2.0)
            if not np.array_equal(got[0], want[0]) or got[1] != want[1]:
                wrong.append(got)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "function",
    [
        lambda x: {"a": x, "b": [x, x]},
        lambda x: (x, "text", 3),
        lambda x: None,
        lambda x: 4.0,
        lambda x: [x],
    ],
    ids=["dict", "static parts", "none", "constant", "list"],
)
def test_results_that_are_not_structs(function):
    f = native(function)
    for _ in range(3):
        got = f(np.ones(2))
        np.testing.assert_equal(got, function(np.ones(2)))


def test_slots_and_properties_use_the_ordinary_path():
    @arc.struct(slots=True)
    class Slotted:
        a: Any

    f = native(lambda x: Slotted(x.a * 2.0))
    for _ in range(3):
        assert f(Slotted(np.ones(2))).a.tolist() == [2.0, 2.0]
    leaves, treedef = arc.tree.flatten((Slotted(np.ones(2)),))
    assert leaves and not shortcuts.Shortcut(None, treedef.children, None).is_complete


def test_callbacks_run_once_and_raise_through_native_code():
    calls = []

    def fail(v):
        calls.append(float(v))
        if v > 2.0:
            raise RuntimeError("too large")
        return v + 1.0

    f = native(lambda x: arc.callback(fail, 0.0, x))
    assert f(1.0) == 2.0
    with pytest.raises(RuntimeError, match="too large"):
        f(3.0)
    assert f(2.0) == 3.0
    assert calls == [1.0, 3.0, 2.0]


@pytest.mark.parametrize("into", [False, True])
def test_a_batch_with_a_shared_array_of_another_memory_order_is_another_recording(into):
    f = arc.vmap(arc.compile(lambda x, m: x + np.ravel(m, "K")[1], backend="llvm"), (0, None))
    m, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2)
    options = {"out": np.empty(2)} if into else {}
    for _ in range(5):
        assert f(x, np.asfortranarray(m), **options).tolist() == [3.0, 3.0]
    for _ in range(5):
        assert f(x, m, **options).tolist() == [2.0, 2.0]
    assert f(x, np.asfortranarray(m), **options).tolist() == [3.0, 3.0]


# ---- the call itself ---------------------------------------------------------------------


def often(f, *args, calls=40):
    for _ in range(calls):
        result = f(*args)
    return result


def test_native_calls_take_what_others_take():
    f = arc.compile(lambda x, k=2.0: k * np.sin(np.asarray(x)), backend="llvm")
    x = np.linspace(0.0, 1.0, 5)
    expected = often(f, x)
    assert np.array_equal(f(x, k=2.0), expected) and np.array_equal(f(k=2.0, x=x), expected)
    assert np.array_equal(f(list(x)), expected) and np.array_equal(f(x.astype("f4")).shape, (5,))
    out = np.empty(5)
    assert f(x, out=out) is out and np.array_equal(out, expected)
    with pytest.raises(TypeError, match="argument"):
        f()
    with pytest.raises(TypeError, match="argument"):
        f(x, 1.0, 2.0)
    with pytest.raises(TypeError, match="nonsense"):
        f(x, nonsense=1.0)
    many = arc.compile(lambda *xs: sum(xs), backend="llvm")
    assert often(many, *range(200), calls=5) == sum(range(200))


def test_native_calls_keep_no_reference():
    f = arc.compile(lambda x: 2.0 * x, backend="llvm")
    x = np.ones(3)
    often(f, x)
    before = sys.getrefcount(x), sys.getrefcount(f), sys.getrefcount(f._shortcuts)
    for _ in range(100):
        f(x)
        f(x=x)
        with pytest.raises(TypeError):
            f()
    assert (sys.getrefcount(x), sys.getrefcount(f), sys.getrefcount(f._shortcuts)) == before


def test_classes_may_have_a_call_of_their_own():
    class Counted(type(arc.compile(np.sin))):
        count = 0

        def __call__(self, *args):
            Counted.count += 1
            return super().__call__(*args)

    f = Counted(lambda x: 2.0 * x, backend="llvm")
    assert often(f, 3.0) == 6.0 and Counted.count == 40


GAIN = np.array([2.0, 3.0])


@needs_entries
def test_an_equal_value_elsewhere_gets_a_path_of_its_own(monkeypatch):
    """A path compares objects: it is written anew for another one of equal content."""
    f = native(lambda x: GAIN * x)
    x = np.ones(2)
    often(f, x)
    first = f.__call__
    monkeypatch.setitem(globals(), "GAIN", GAIN.copy())
    assert first.__globals__["native"](x) is not NotImplemented, "the entry itself takes the call"
    assert f._shortcuts[0](x) is NotImplemented, "but what the function reads is another object"
    assert f(x).tolist() == [2.0, 3.0] and len(f._cache) == 1
    assert f._shortcuts[0](x).tolist() == [2.0, 3.0] and len(f._shortcuts) == 1
    assert f.__call__ is not first and f(x).tolist() == [2.0, 3.0]


@needs_entries
def test_kinds_of_calls_in_turns():
    f = native(lambda x, k=2.0: k * x)
    kinds = [(np.ones(2),), (np.ones(3),), (np.ones(2), 3.0), (1.0,), (1.0, np.ones(2))]
    for _ in range(8):
        for args in kinds:
            expected = (args[1] if len(args) > 1 else 2.0) * args[0]
            np.testing.assert_array_equal(f(*args), expected)
            np.testing.assert_array_equal(f(x=args[0], **dict(zip(["k"], args[1:]))), expected)


def test_a_function_is_freed_at_once():
    f = native(lambda x: 2.0 * x)
    often(f, np.ones(2))
    ref, call = weakref.ref(f), f.__call__
    gc.disable()
    try:
        del f
        assert ref() is None, "nothing that it made refers back to it"
    finally:
        gc.enable()
    with pytest.raises(ReferenceError, match="keep the function"):
        call("of another kind")


def test_other_kinds_of_calls_keep_their_paths_when_the_newest_goes():
    # Paths of two kinds of calls; a read that changes withdraws the newest of them.
    scale = [2.0]
    f = arc.compile(lambda x: scale[0] * x)
    small, large = np.ones(2), np.ones(3)
    for x in (small, large):
        for _ in range(300):
            f(x)
    scale[0] = 3.0
    for _ in range(300):
        np.testing.assert_array_equal(f(large), 3.0 * large)
    for _ in range(300):
        np.testing.assert_array_equal(f(small), 3.0 * small)
    out = np.empty(2)
    for _ in range(300):
        assert f(small, out=out) is out
    np.testing.assert_array_equal(out, 3.0 * small)
    with pytest.raises(TypeError, match="missing"):
        f(out=out)
