"""What a function reads is part of it: when it is looked at, what that costs, what is kept."""

from __future__ import annotations

import array
import copyreg
import functools
import gc
import threading
import timeit
import types
import weakref

import numpy as np
import pytest

import archimedes as arc
from archimedes.function import recorded_function
from archimedes.function.dependencies import introspection
from archimedes.function.dependencies.states import Dependencies, fingerprint
from archimedes.function.dependencies.walk import Walk
from tests.entries import is_supported, needs_entries

X = np.array([1.0, 2.0])


class Gain:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * x


def native(function, *args, **options):
    """Compile and call until calls go straight to the native entry."""
    f = arc.compile(function, backend="llvm", **options)
    for _ in range(6):
        f(*(args or (X,)))
    assert bool(f._shortcuts) is is_supported()
    return f


def recordings(f):
    return len(f.explain().splitlines())


# ---- the check of a call ------------------------------------------------------------------


@needs_entries
def test_a_call_asks_only_the_generated_check(monkeypatch):
    g = Gain(2.0)
    f = native(g)
    looked = []
    monkeypatch.setattr(Dependencies, "current", lambda *a: looked.append(a))
    assert f(X).tolist() == [2.0, 4.0] and not looked


@needs_entries
def test_unrelated_changes_leave_native_calls_alone(monkeypatch):
    """A loop at the top of a script writes globals and attributes that the function ignores."""
    g = Gain(2.0)
    g.t = 0.0
    f = native(lambda x: g.k * x * UNRELATED_READ)
    monkeypatch.setattr(Dependencies, "current", lambda *a: pytest.fail("looked at again"))
    for k in range(50):
        globals()["UNRELATED"] = k
        g.t = float(k)
        assert f(X)[0] == 2.0


UNRELATED, UNRELATED_READ = 0, 1.0


@needs_entries
def test_memory_that_moves_is_looked_at_once(monkeypatch):
    table = {"k": 2.0}
    space = types.SimpleNamespace(k=2.0)
    f = native(lambda x: table["k"] * space.k * x)
    for k in range(100):  # the dict of attributes grows and moves
        setattr(space, f"other{k}", k)
    assert f(X)[0] == 4.0 and recordings(f) == 1
    monkeypatch.setattr(Dependencies, "current", lambda *a: pytest.fail("looked at again"))
    assert f(X)[0] == 4.0


def test_without_native_entries_everything_is_noticed_all_the_same(monkeypatch):
    monkeypatch.setattr(
        "archimedes.backends.llvm.runtime.kernel.NativeKernel.direct_entry", lambda *a: None
    )
    g = Gain(2.0)
    f = arc.compile(g, backend="llvm")
    for _ in range(8):
        assert f(X)[0] == 2.0
    g.k = 5.0
    assert f(X)[0] == 5.0


@needs_entries
def test_a_frozen_function_of_arrays_is_its_native_entry():
    """There is nothing to check, so there is no Python between the call and the entry."""

    def rate(x):
        return SCALE * helper(x) + OFFSET[0]

    watched, frozen = native(rate), native(rate, freeze=True)
    assert isinstance(watched._shortcuts[0], types.FunctionType)
    assert isinstance(frozen._shortcuts[0], types.BuiltinFunctionType)


SCALE, OFFSET = 2.0, [1.0]


def helper(x):
    return SCALE * x


# ---- who shares the rule ---------------------------------------------------------------


def after(f, change):
    return lambda x: change(f(x))


def with_direction(f):
    return lambda x: f(x, X)


TRANSFORMS = {
    "compile": (arc.compile, lambda k: k * X**2),
    "grad": (lambda f: arc.grad(lambda x: np.sum(f(x))), lambda k: 2.0 * k * X),
    "jac": (arc.jac, lambda k: np.diag(2.0 * k * X)),
    "jac of compiled": (lambda f: arc.jac(arc.compile(f)), lambda k: np.diag(2.0 * k * X)),
    "sparse jac": (
        lambda f: after(arc.jac(f, sparse=True), lambda m: m.toarray()),
        lambda k: np.diag(2.0 * k * X),
    ),
    "hess": (lambda f: arc.hess(lambda x: np.sum(f(x))), lambda k: 2.0 * k * np.eye(2)),
    "jvp": (lambda f: with_direction(arc.jvp(f)), lambda k: 2.0 * k * X * X),
    "vjp": (lambda f: with_direction(arc.vjp(f)), lambda k: 2.0 * k * X * X),
    "vmap": (arc.vmap, lambda k: k * X**2),
    "vmap of jac": (lambda f: arc.vmap(arc.grad(f)), lambda k: 2.0 * k * X),
    "compile of compiled": (lambda f: arc.compile(arc.compile(f)), lambda k: k * X**2),
    "partial": (lambda f: arc.compile(functools.partial(f)), lambda k: k * X**2),
    "custom rule": (lambda f: arc.compile(arc.custom_jvp(f).compiled), lambda k: k * X**2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_all_transforms_notice(name):
    transform, exact = TRANSFORMS[name]
    g = types.SimpleNamespace(k=2.0)
    f = transform(lambda x: g.k * x**2)
    for k in (2.0, 7.0, 2.0, 3.0):
        g.k = k
        for _ in range(5):
            assert np.array_equal(f(X), exact(k))


def test_implicit_functions_and_steps_notice():
    p = types.SimpleNamespace(k=2.0)
    root = arc.implicit(lambda x, a: p.k * x - a)
    step = arc.discretize(lambda t, x: -p.k * x, dt=0.1)
    first = root(1.0, 4.0), step(0.0, 1.0)
    p.k = 4.0
    second = root(1.0, 4.0), step(0.0, 1.0)
    assert first[0] == 2.0 and second[0] == 1.0
    assert abs(first[1] - np.exp(-0.2)) < 1e-5 and abs(second[1] - np.exp(-0.4)) < 1e-4


def test_the_example_of_the_issue_does_not_depend_on_the_number_of_calls():
    class D:
        k = 1.0

    def check(calls):
        d = D()
        f, g = arc.compile(lambda x: d.k * x, backend="llvm"), arc.compile(lambda d, x: d.k * x)
        for _ in range(calls):
            assert f(2.0) == g(d, 2.0) == 2.0
        d.k = 7.0
        assert f(2.0) == g(d, 2.0) == 14.0

    for calls in (1, 2, 5, 50):
        check(calls)


def test_static_fields_of_structs_by_content():
    @arc.struct
    class Model:
        x: float
        options: object = arc.field(static=True)

    options = Gain(2.0)
    f = arc.compile(lambda m: m.options.k * m.x)
    assert f(Model(3.0, options)) == 6.0
    options.k = 5.0
    assert f(Model(3.0, options)) == 15.0


def test_callbacks_read_and_write_what_they_like():
    log, scale = [], [2.0]

    def f(x):
        return arc.callback(lambda v: (log.append(v), scale[0] * v)[1], 0.0, x)

    compiled_f = arc.compile(f)
    for k in range(5):
        assert compiled_f(float(k)) == scale[0] * k
        scale[0] += 1.0
    assert len(log) == 5 and recordings(compiled_f) == 1


# ---- what is noticed, what is not ------------------------------------------------------


def test_names_are_told_apart_as_the_compiler_did():
    import dis

    for function in (np.interp.__wrapped__, Walk._run, arc.compile, test_all_transforms_notice):
        code = function.__code__
        names = introspection.names_of(code)
        steps = [i for i in dis.get_instructions(code) if i.opcode in dis.hasname]
        own = {i.argval for i in steps if i.opname == "LOAD_GLOBAL"}
        read = {i.argval for i in steps if "ATTR" in i.opname or i.opname == "LOAD_METHOD"}
        assert own <= names.globals and read <= names.attributes


def test_a_new_recording_says_why():
    g = Gain(2.0)
    f = arc.compile(lambda x: g.k * x)
    f(X)
    g.k = 3.0
    f(X)
    assert f.explain().splitlines()[1].endswith("the attribute g.k has changed")


def test_frozen():
    g = Gain(2.0)
    f = arc.compile(g, freeze=True)
    derivative, mapped = arc.jac(f), arc.vmap(f)
    outer = arc.compile(lambda x: f(x) + 1.0)
    results = [f(3.0), derivative(3.0), mapped(X).tolist(), outer(3.0)]
    g.k = 7.0
    assert [f(3.0), derivative(3.0), mapped(X).tolist(), outer(3.0)] == results
    f.clear_cache()
    assert f(3.0) == 21.0


def test_frozen_functions_take_static_arguments_by_content():
    g = Gain(2.0)
    f = arc.compile(lambda gain, x: gain.k * x, freeze=True)
    assert f(g, 3.0) == 6.0
    g.k = 7.0
    assert f(g, 3.0) == 21.0


def test_an_array_that_nobody_can_write_is_not_compared():
    big = np.ones(1_000_000)
    big.flags.writeable = False
    f = native(lambda x: big[0] * x)
    assert min(timeit.repeat(lambda: f(X), number=20, repeat=5)) / 20 < 400e-6


def test_objects_written_in_c():
    buffer = array.array("d", [2.0, 3.0])
    f = arc.compile(lambda x: buffer[0] * x)
    assert f(2.0) == 4.0
    buffer[0] = 5.0
    assert f(2.0) == 10.0


def test_too_much_to_watch(monkeypatch):
    monkeypatch.setattr("archimedes.function.dependencies.walk.LIMIT", 50)
    many = [Gain(1.0) for _ in range(100)]
    with pytest.raises(arc.TraceError, match=r"more than 50 objects.*freeze=True"):
        arc.compile(lambda x: sum(g.k for g in many) * x)(1.0)
    assert arc.compile(lambda x: sum(g.k for g in many) * x, freeze=True)(1.0) == 100.0


def test_an_object_changed_and_a_new_one_like_the_old_one():
    """A kernel found by content must not be completed from the object it was first made of."""
    from archimedes.simulate import odeint, solve_ode

    class Model:
        def __init__(self, k):
            self.k = k

        def rate(self, t, x):
            return -self.k * x

    one = Model(1.0)
    odeint(one.rate, (0.0, 1.0), 1.0)
    one.k = 5.0
    other = Model(1.0)
    for times in (None, [0.5, 1.0], np.linspace(0.0, 1.0, 50)):
        traj = solve_ode(other.rate, (0.0, 1.0), 1.0, t_eval=times)
        assert abs(traj.x[-1] - np.exp(-1.0)) < 1e-5


# ---- threads, memory -------------------------------------------------------------------


def test_a_value_changed_from_another_thread():
    g = Gain(1.0)
    f = native(g)
    seen, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            seen.append(float(f(X)[0]))

    reader = threading.Thread(target=look)
    reader.start()
    for k in range(1, 6):
        g.k = float(k)
        while not seen or seen[-1] != float(k):
            if not reader.is_alive():
                break
    stop.set()
    reader.join()
    assert sorted(set(seen)) == [1.0, 2.0, 3.0, 4.0, 5.0] and seen == sorted(seen)


def test_recordings_are_limited_and_given_back(monkeypatch):
    monkeypatch.setattr(recorded_function, "RECORDINGS", 4)
    f = arc.compile(lambda x, n: x * n, static_argnames="n", backend="llvm")
    kept = []
    for n in range(12):
        assert f(X, n)[1] == 2.0 * n
        kept.append(weakref.ref(next(reversed(f._cache.values()))[1]))
    gc.collect()
    assert len(f._cache) == 4
    assert [ref() is not None for ref in kept] == [False] * 8 + [True] * 4
    assert f(X, 0)[1] == 0.0, "recorded again"


@needs_entries
def test_call_paths_of_forgotten_recordings_go(monkeypatch):
    monkeypatch.setattr(recorded_function, "RECORDINGS", 2)
    f = arc.compile(lambda x: 2.0 * x, backend="llvm")
    for n in range(1, 6):
        for _ in range(6):
            f(np.ones(n))
    assert len(f._cache) == 2 and len(f._shortcuts) == 2


def test_states_are_limited():
    g = Gain(0.0)
    f = arc.compile(g)
    for k in range(100):
        g.k = float(k)
        f(X)
    assert len(f.dependencies.states) <= 16 and len(f._cache) <= recorded_function.RECORDINGS


def test_fingerprints_of_objects_that_hold_much():
    space = types.SimpleNamespace(items=[{"a": np.ones(3), "b": (1, 2.0, "c")} for _ in range(50)])
    f = lambda x: sum(item["a"][0] for item in space.items) * x
    first = fingerprint(f)
    space.items[49]["a"][2] = 5.0
    assert fingerprint(f) != first


def test_functions_of_extensions_are_fixed():
    """Their class may have no name of a module."""
    make = np.random.default_rng
    assert arc.compile(lambda x: x if make else -x)(2.0) == 2.0
    draw = np.random.uniform
    assert arc.compile(lambda x: x if draw else -x)(2.0) == 2.0


def test_objects_that_answer_to_every_name():
    class Wide:
        __slots__ = ("data",)

        def __init__(self):
            self.data = {"k": 2.0}

        def __getattr__(self, name):
            return self.data[name]  # KeyError, where others raise AttributeError

    class Deep(Wide):
        pass

    for cls in (Wide, Deep):
        w = cls()
        f = arc.compile(lambda x, w=w: w.k * x)
        assert f(3.0) == 6.0
        w.data["k"] = 5.0
        assert f(3.0) == 15.0


def test_a_walk_opens_each_name_of_each_object_once():
    def chain(length):
        head = None
        for _ in range(length):
            head = types.SimpleNamespace(k=1.0, next=head)
        return head

    def steps(length, head=None):
        head, counted = chain(length), 0
        f = lambda x: (head.k + head.next.k) * x

        class Counting(Walk):
            def token(self, value, path):
                nonlocal counted
                counted += 1
                assert len(path) < 1000
                return super().token(value, path)

        Counting((f,))
        return counted

    assert steps(2000) < 11 * steps(200)


def test_the_walk_over_all_globals_leaves_out_how_python_imports():
    def f(x):
        return globals()["NAME" + "LESS"] * x

    kinds = {type(o).__name__ for o in Walk((f,)).objects}
    assert kinds.isdisjoint({"AssertionRewritingHook", "Config", "ModuleSpec", "SourceFileLoader"})


@pytest.mark.parametrize("base", [object, list, dict, float])
def test_a_first_attribute_is_noticed(base):
    class Holder(base):
        scale = 2.0

    holder = Holder()
    f = arc.compile(lambda x: holder.scale * x)
    assert [float(f(3.0)) for _ in range(7)] == [6.0] * 7
    holder.scale = 5.0
    assert [float(f(3.0)) for _ in range(7)] == [15.0] * 7
    del holder.scale
    assert float(f(3.0)) == 6.0


def test_pickling_an_object_changes_nothing():
    """Python notes on a class what its objects are pickled by."""

    model = lambda x: Parameters(2.0).k * x
    before = Walk((model,)).key
    copyreg._slotnames(Parameters)
    assert "__slotnames__" in vars(Parameters)
    assert Walk((model,)).key == before


@arc.struct
class Parameters:
    k: float


def test_another_frozen_function_is_another_one() -> None:
    inner = arc.compile(lambda x: 2.0 * x, freeze=True)
    outer = arc.compile(lambda x: inner(x))
    assert outer(1.0) == 2.0
    inner = arc.compile(lambda x: 3.0 * x, freeze=True)
    assert outer(1.0) == 3.0


class Slotted:
    __slots__ = ("gain", "offset")


def test_arrays_in_slots_are_watched() -> None:
    model = Slotted()
    model.gain, model.offset = 2.0, np.ones(3)
    f = arc.compile(lambda x: model.gain * x + model.offset)
    for _ in range(6):
        assert f(1.0)[0] == 3.0
    model.gain = 3.0
    assert f(1.0)[0] == 4.0
    model.offset[:] = 2.0
    assert f(1.0)[0] == 5.0
