"""Random numbers in recorded functions are refused, and nothing else is changed by that."""

# ruff: noqa: NPY002 (the legacy functions are what is tested)

from __future__ import annotations

import functools
import logging
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from random import gauss
from random import random as draw
from uuid import uuid4

import numpy as np
import pytest
from numpy.random import default_rng, normal
from numpy.random import rand as any_number
from scipy import stats

import archimedes as arc

RNG = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)
PYTHON = random.Random(0)
SYSTEM = random.SystemRandom()


class Sensor:
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __call__(self, x):
        return x + self.rng.normal()


@functools.cache
def cached():
    return np.random.default_rng(2)


@functools.lru_cache(maxsize=4)
def lately(seed):
    return np.random.default_rng(seed)


#: Functions that draw, each with what the error begins with.
FROZEN = [
    ("np.random (RandomState)", lambda x: x + np.random.normal()),
    ("np.random (RandomState)", lambda x: x * np.random.rand(2)),
    ("np.random (RandomState)", lambda x: np.random.seed(0) or x),
    ("np.random (RandomState)", lambda x: np.random.shuffle([1, 2]) or x),
    ("RNG (Generator)", lambda x: x + RNG.normal()),
    ("RNG (Generator)", lambda x: x[RNG.integers(2)]),
    ("RNG (Generator)", lambda x: x + RNG.choice(3)),
    ("np.random.default_rng", lambda x: x + np.random.default_rng().random()),
    ("np.random.default_rng", lambda x: x + np.random.default_rng(None).random()),
    ("np.random.RandomState", lambda x: x + np.random.RandomState().uniform()),
    ("np.random.PCG64", lambda x: x + np.random.PCG64().random_raw() % 7),
    ("np.random.SeedSequence", lambda x: x + np.random.SeedSequence().entropy % 7),
    ("cached() (Generator)", lambda x: x + cached().permutation(2)),
    ("lately() is a Generator", lambda x: x + lately(3).normal()),
    ("LEGACY (RandomState)", lambda x: x + LEGACY.randn()),
    ("np.random (RandomState)", lambda x: x + stats.norm.rvs()),
    ("RNG (Generator)", lambda x: x + RNG.bit_generator.random_raw()),
    ("random (Random)", lambda x: x + random.random()),
    ("random (Random)", lambda x: x + random.gauss(0.0, 1.0)),
    ("random (Random)", lambda x: x + random.choice([1.0, 2.0])),
    ("random (Random)", lambda x: random.seed(4) or x),
    ("PYTHON (Random)", lambda x: x + PYTHON.uniform(0.0, 1.0)),
    ("PYTHON (Random)", lambda x: x + PYTHON.randint(0, 1)),
    ("random.Random", lambda x: x + random.Random().random()),
    ("random.SystemRandom().random", lambda x: x + random.SystemRandom().random()),
    ("SYSTEM.random", lambda x: x + SYSTEM.random()),
    ("secrets.randbelow", lambda x: x + secrets.randbelow(3)),
    ("uuid.uuid1", lambda x: x + uuid.uuid1().int % 7),
    ("uuid.uuid4", lambda x: x + uuid.uuid4().int % 7),
    ("os.urandom", lambda x: x + os.urandom(1)[0]),
    ("normal (RandomState)", lambda x: x + normal()),
    ("any_number (RandomState)", lambda x: x + any_number()),
    ("default_rng", lambda x: x + default_rng().normal()),
    ("draw (Random)", lambda x: x + draw()),
    ("gauss (Random)", lambda x: x + gauss(0.0, 1.0)),
    ("uuid4", lambda x: x + uuid4().int % 7),
    ("PYTHON (Random)", lambda x: x + sorted([1.0, 2.0], key=lambda _: PYTHON.random())[0]),
]


@pytest.mark.parametrize(
    "start, model", FROZEN, ids=[f"{k}: {s}" for k, (s, _) in enumerate(FROZEN)]
)
def test_refused(start, model):
    cached()
    states = [g.__getstate__() for g in (RNG, LEGACY)], PYTHON.getstate(), random.getstate()
    shared = np.random.get_state(legacy=False)["state"]["key"].tolist()
    with pytest.raises(arc.TraceError) as caught:
        arc.compile(model)(np.ones(2))
    message = str(caught.value)
    assert message.startswith(start)
    assert "test_randomness.py" in message
    assert "arc.random" in message
    after = [g.__getstate__() for g in (RNG, LEGACY)], PYTHON.getstate(), random.getstate()
    assert repr(after) == repr(states)
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == shared


def test_the_line_that_draws_is_named():
    def noise(scale):
        quiet = 2.0 * scale
        return quiet * RNG.normal()  # here

    def model(x):
        if RNG is None:
            return x
        y = np.sin(x)
        return y + noise(x)

    with pytest.raises(
        arc.TraceError, match=r"in noise\n    return quiet \* RNG.normal\(\)  # here"
    ):
        arc.compile(model)(1.0)


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x + np.random.default_rng(0).uniform(),
        lambda x: x + default_rng(7).normal(),
        lambda x: x + np.random.RandomState(3).uniform(),
        lambda x: x + np.random.Generator(np.random.Philox(3)).normal(),
        lambda x: x + random.Random(5).gauss(0.0, 1.0),
        lambda x: x + Sensor().rng.standard_normal(),
        lambda x: Sensor()(x),
    ],
)
def test_a_generator_with_a_fixed_seed_made_inside_gives_constants(model):
    """The same numbers at each call, recorded or not."""
    f = arc.compile(model)
    assert f(1.0) == model(1.0) == f(1.0)


drawn_before = RNG.normal
python_before = PYTHON.random
partly = functools.partial(LEGACY.uniform, 0.0)


class Held:
    def __init__(self):
        self.rng = np.random.default_rng(3)
        self.draw = self.rng.standard_normal

    def __call__(self, x):
        return x + self.draw()


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x + drawn_before(),
        lambda x: x + python_before(),
        lambda x: x + partly(),
        Held(),
        lambda x: x + np.vectorize(drawn_before)(1.0),
    ],
    ids=["Generator", "Random", "partial", "attribute", "vectorize"],
)
def test_methods_taken_from_generators_before(model):
    states = [RNG.bit_generator.state, PYTHON.getstate()]
    for f in (arc.compile(model), arc.vmap(model), arc.grad(model)):
        with pytest.raises(arc.TraceError) as caught:
            f(np.float64(1.0) if not isinstance(f, type(arc.vmap(model))) else np.ones(2))
        assert "arc.random" in str(caught.value) and "test_randomness.py" in str(caught.value)
    assert [RNG.bit_generator.state, PYTHON.getstate()] == states


def test_generators_may_move_between_recordings():
    rng = np.random.default_rng(0)
    draw = rng.normal
    f = arc.compile(lambda x: x if draw is None else x + 1.0)
    assert f(1.0) == 2.0
    draw()
    assert f(2.0) == 3.0
    assert (f(np.ones(2)) == 2.0).all()
    draw()
    assert (f(np.ones(3)) == 2.0).all()
    assert f.explain().count("\n") == 2  # one recording for each kind of argument


@pytest.mark.parametrize(
    "use",
    [
        lambda f: arc.grad(f)(1.0),
        lambda f: arc.vmap(f)(np.ones(3)),
        lambda f: arc.hess(f)(1.0),
        lambda f: arc.compile(lambda x: arc.scan(lambda c, _: (f(c), c), x, length=3))(1.0),
        lambda f: arc.odeint(lambda t, x: f(x), (0.0, 1.0), 1.0),
        lambda f: arc.solve_ode(lambda t, x: f(x), (0.0, 1.0), 1.0),
        lambda f: arc.codegen(f, (1.0,)),
    ],
    ids=["grad", "vmap", "hess", "scan", "odeint", "solve_ode", "codegen"],
)
def test_everything_that_records_refuses(use):
    refused = (arc.TraceError, arc.CodegenError)
    with pytest.raises(refused, match=r"arc\.random"):
        use(lambda x: x * RNG.normal())
    with pytest.raises(refused, match=r"arc\.random"):
        use(Sensor())


def test_what_libraries_do_for_themselves_is_left_alone(tmp_path):
    def model(x):
        logging.getLogger("archimedes.test").debug("reads the clock")
        with tempfile.TemporaryDirectory(dir=tmp_path):
            return x + 1.0

    assert arc.compile(model)(1.0) == 2.0


def test_a_kernel_compiled_while_recording_may_name_its_files():
    inner = arc.compile(lambda x: np.sin(x) * 1.2345, backend="llvm")
    assert arc.compile(lambda x: x + inner(2.0))(1.0) == 1.0 + inner(2.0)


def test_generators_that_are_only_there_do_no_harm():
    sensor = Sensor()
    before = sensor.rng.bit_generator.state
    assert arc.compile(lambda x: x + isinstance(sensor.rng, np.random.Generator))(1.0) == 2.0
    assert sensor.rng.bit_generator.state == before


def test_callbacks_draw_at_each_call():
    sensor = Sensor()
    f = arc.compile(lambda x: arc.callback(sensor, x, x))
    assert f(1.0) != f(1.0)


def test_nothing_is_replaced_while_recording():
    names = [(np.random, "normal"), (random, "gauss"), (os, "urandom"), (time, "time")]
    types = [np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random]

    def members():
        found = [getattr(owner, name) for owner, name in names]
        return found, [dict(vars(owner)) for owner in types], [type(owner) for owner, _ in names]

    seen = []

    def model(x):
        seen.append(members())
        return x

    before = members()
    arc.compile(model, freeze=True)(1.0)
    assert seen == [before] and members() == before


def test_other_threads_draw_meanwhile():
    recording, drawn = threading.Event(), threading.Event()
    numbers: list[float] = []

    def other():
        recording.wait(10)
        numbers.extend([np.random.rand(), RNG.normal(), random.random(), PYTHON.random()])
        drawn.set()

    def model(x):
        recording.set()
        assert drawn.wait(10)
        return x + 1.0

    thread = threading.Thread(target=other)
    thread.start()
    assert arc.compile(model)(1.0) == 2.0
    thread.join()
    assert len(numbers) == 4


def test_other_threads_draw_from_generators_that_the_function_mentions():
    """What they draw is theirs: the function is not refused, and no number is drawn twice."""
    recording, drawn = threading.Event(), threading.Event()
    numbers: list[float] = []

    def other():
        recording.wait(10)
        numbers.extend([np.random.rand(), random.random(), RNG.random()])
        drawn.set()

    def model(x):
        recording.set()
        assert drawn.wait(10)
        if x is None:
            return np.random.rand() + random.random() + RNG.random()
        return x + 1.0

    np.random.seed(3)
    random.seed(3)
    RNG.bit_generator.state = np.random.PCG64(3).state
    thread = threading.Thread(target=other)
    thread.start()
    assert arc.compile(model, freeze=True)(1.0) == 2.0
    thread.join()
    numbers.extend([np.random.rand(), random.random(), RNG.random()])
    legacy, python = np.random.RandomState(3), random.Random(3)
    new = np.random.Generator(np.random.PCG64(3))
    assert numbers == [f() for _ in range(2) for f in (legacy.rand, python.random, new.random)]


def test_debuggers_go_on():
    """A trace function, and a profiling one, that are there already."""
    lines, calls = [], []

    def trace(frame, event, argument):
        lines.append(event)
        return trace

    def profile(frame, event, argument):
        calls.append(event)

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        with pytest.raises(arc.TraceError, match="RNG"):
            arc.compile(lambda x: x + RNG.normal())(1.0)
        with pytest.raises(arc.TraceError, match="urandom"):
            arc.compile(lambda x: x + os.urandom(1)[0])(1.0)
        assert sys.gettrace() is trace and sys.getprofile() is profile
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert "line" in lines and "c_call" in calls


def test_only_functions_that_reach_random_numbers_are_watched():
    watched = []

    def model(x, key):
        watched.append(sys.getprofile())
        return x + arc.random.normal(key)

    before = sys.getprofile()
    arc.compile(model, freeze=True)(1.0, arc.random.key(1))
    assert watched == [before]


@pytest.mark.parametrize(
    "body",
    [
        "return x + np.random.normal()",
        "from numpy.random import default_rng; return x + default_rng().normal()",
        "import random; return x + random.random()",
    ],
)
def test_modules_imported_by_the_function(body):
    """In a process that has not used them before."""
    script = f"""
import numpy as np, archimedes as arc
def f(x):
    {body}
try:
    arc.compile(f)(1.0)
except arc.TraceError as error:
    print("arc.random" in str(error))
import random
print(type(np.random) is type(arc), random.random() + np.random.rand() > 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "True\nTrue True\n", done.stdout + done.stderr


def test_a_module_imported_by_the_function_may_draw(tmp_path, monkeypatch):
    (tmp_path / "drawing_module.py").write_text(
        "import numpy as np\nTABLE = np.random.default_rng(0).normal(size=3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def model(x):
        import drawing_module

        return x + drawing_module.TABLE

    expected = 1.0 + np.random.default_rng(0).normal(size=3)
    np.testing.assert_array_equal(arc.compile(model)(1.0), expected)


def test_a_recording_while_another_thread_imports_numpys_generators():
    """In a process that has not used them before: it waits, and refuses them from then on."""
    script = """
import sys, threading
import archimedes as arc, numpy as np
arc.compile(lambda x: x - 1.0)(1.0)  # imports what recordings need
assert "numpy.random" not in sys.modules
begun, go_on = threading.Event(), threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.random.mtrand":
            begun.set()
            go_on.wait(0.5)
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: __import__("numpy.random"))
thread.start()
begun.wait()
print(arc.compile(lambda x: x + 1.0)(1.0))
thread.join()
for _ in range(2):
    try:
        arc.compile(lambda x: x + np.random.normal())(1.0)
    except arc.TraceError as error:
        print("arc.random" in str(error))
print(type(np.random) is type(arc), np.random.rand() > 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "2.0\nTrue\nTrue\nTrue True\n", done.stdout + done.stderr
