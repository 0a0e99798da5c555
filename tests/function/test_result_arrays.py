"""Result arrays of native entries are NumPy's in every respect."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.runtime.machine import Target, common_code
from archimedes.function.execution import tiers
from tests.entries import needs_entries

pytestmark = needs_entries
SHAPES = [(1,), (7,), (0,), (7, 7), (1, 5), (0, 3), (3, 0, 2), (2, 3, 4), (1, 1, 1, 1), (40, 40)]
FORMS = [(s, np.float64) for s in SHAPES] + [((5, 3), x) for x in (np.float32, np.int64, np.bool_)]


@pytest.fixture(autouse=True)
def entries_at_once(monkeypatch):
    """Make native entries at the first call, not after a few."""
    monkeypatch.setattr(tiers, "FIRST_CALLS", 0)


def made(shape=(7, 7), dtype=np.float64):
    """Return a result of a native entry, and what it should equal."""
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    f = arc.compile(lambda x: x[::-1], backend="llvm")
    f(x)
    assert f._shortcuts
    return f(x), np.ascontiguousarray(x[::-1])


@pytest.mark.parametrize(("shape", "dtype"), FORMS)
def test_results_are_as_numpy_makes_them(shape, dtype):
    got, want = made(shape, dtype)
    np.testing.assert_array_equal(got, want)
    fresh = np.empty(shape, dtype)
    assert type(got) is np.ndarray and got.dtype is fresh.dtype
    assert got.flags.num == fresh.flags.num and got.strides == fresh.strides
    assert got.base is None and sys.getrefcount(got) == sys.getrefcount(fresh)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_what_users_do_with_arrays():
    got, want = made((4, 6))
    got.shape = want.shape = (8, 3)
    view, seen = got[::2, 1:], memoryview(got)
    gone = weakref.ref(got)
    got.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        got[0, 0] = 1.0
    for other in (copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got))):
        np.testing.assert_array_equal(other, want)
    del got
    gc.collect()
    np.testing.assert_array_equal(view, want[::2, 1:])
    np.testing.assert_array_equal(np.asarray(seen), want)
    assert gone() is not None
    del view, seen
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("size", [1, 30, 64, 1000, 200_000])
def test_resized_in_place(size):
    got, want = made((6, 5))
    got.resize((size,), refcheck=False)
    want.resize((size,), refcheck=False)
    np.testing.assert_array_equal(got, want)
    got.__setstate__(np.arange(70.0).__reduce__()[2])
    np.testing.assert_array_equal(got, np.arange(70.0))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_memory_is_never_shared():
    """Arrays made, resized, reshaped and dropped in any order keep their own numbers."""
    rng = np.random.default_rng(0)
    makers = [arc.compile(lambda x: x + 0.0, backend="llvm") for _ in range(7)]
    given = [np.zeros(n) for n in (1, 6, 7, 49, 500, 2046, 3000)]
    for f, x in zip(makers, given, strict=True):
        f(x)
    held = {}
    for k in range(6000):
        which = rng.integers(len(makers))
        array = makers[which](given[which] + k)
        if k % 5 == 0:
            array.resize(int(rng.choice([0, 1, 40, 3999])), refcheck=False)
        if array.size == 0:
            array.shape = (0, 4000)  # which says more bytes than there are
        array[...] = k
        held[k] = array
        for other in rng.choice(list(held), min(len(held), rng.integers(3)), replace=False):
            assert (held.pop(other) == other).all()
    for k, array in held.items():
        assert (array == k).all()


COMMON = """
@number = external global i32
define i32 @arc_answer() {
  %found = load i32, ptr @number, align 4
  ret i32 %found
}
"""


def test_code_that_all_processes_need_is_read_from_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARCHIMEDES_CACHE", raising=False)
    for value in (42, 43):
        number = np.array([value], np.int32)
        code = common_code(COMMON, "arc_answer", {"number": number.ctypes.data})
        assert code.function()() == value
        monkeypatch.setattr(Target, "compile", None)  # not a second time


def test_arrays_of_one_thread_freed_by_others():
    f = arc.compile(lambda x: x + 1.0, backend="llvm")
    x = np.zeros((7, 7))
    f(x)
    held = [[f(x * k) for _ in range(300)] for k in range(4)]
    wrong = []

    def work(k):
        for _ in range(20):
            before = held[k]
            held[k] = [f(np.full((7, 7), float(k))) for _ in range(300)]
            wrong.extend(a for a in held[k] if not (a == k + 1.0).all())
            del before

    threads = [threading.Thread(target=work, args=(k % 4,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_given_back_and_accounted_for():
    f = arc.compile(lambda x: x + 1.0, backend="llvm")
    x = np.zeros((7, 7))
    early = f(x)
    tracemalloc.start()
    try:
        begin = tracemalloc.get_traced_memory()[0]
        held = [f(x) for _ in range(1000)]
        used = tracemalloc.get_traced_memory()[0] - begin
        assert used > 1000 * x.nbytes
        del early
        late = held.pop()
        del held
        assert tracemalloc.get_traced_memory()[0] - begin < used // 10
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(late, x + 1.0)


PLACES = """
import sys, builtins, threading, atexit
import numpy as np
import archimedes as arc
f = arc.compile(lambda x: x + 1.0, backend="llvm")
x = np.zeros((7, 7))
for _ in range(8):
    f(x)
kept = [f(x) for _ in range(100)]
builtins.kept = sys.kept = arc.kept = np.kept = f(x)
class Late:
    def __init__(self): self.array = f(x)
    def __del__(self): self.array.resize((1000,), refcheck=False)
late = Late(); late.itself = late
np.late = sys.late = Late()
local = threading.local(); local.array = f(x)
atexit.register(lambda: f(x)[0, 0])
print("done")
"""
NO_MEMORY = """
import resource
import numpy as np
import archimedes as arc
f = arc.compile(lambda x: (x + 1.0, 2.0 * x), backend="llvm")
x = np.zeros((300, 300))
for _ in range(8):
    f(x)
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 50_000_000, -1))
held = []
try:
    while True:
        held.append(f(x))
except MemoryError:
    count = len(held)
    del held
    assert 10 < count < 200 and f(x)[0][0, 0] == 1.0
    print("done")
"""


@pytest.mark.long_cases("no memory")
@pytest.mark.parametrize("program", [PLACES, NO_MEMORY], ids=["end of the process", "no memory"])
def test_to_the_end(program):
    if program is NO_MEMORY and not sys.platform.startswith("linux"):
        pytest.skip("needs a limit of memory")
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout.split(), ran.stderr) == (0, ["done"], "")
