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
from archimedes.symbolic.recorded import randomness

RNG = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)
PYTHON = random.Random(0)


class Sensor:
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __call__(self, x):
        return x + self.rng.normal()


@functools.cache
def cached():
    return np.random.default_rng(2)


FROZEN = {
    "np.random.normal": lambda x: x + np.random.normal(),
    "np.random.rand": lambda x: x * np.random.rand(2),
    "np.random.seed": lambda x: np.random.seed(0) or x,
    "np.random.shuffle": lambda x: np.random.shuffle([1, 2]) or x,
    "Generator.normal": lambda x: x + RNG.normal(),
    "Generator.integers": lambda x: x[RNG.integers(2)],
    "Generator.choice": lambda x: x + RNG.choice(3),
    "Generator.standard_normal": lambda x: x + Sensor().rng.standard_normal(),
    "Generator.random": lambda x: x + np.random.default_rng().random(),
    "Generator.uniform": lambda x: x + np.random.default_rng(0).uniform(),
    "Generator.permutation": lambda x: x + cached().permutation(2),
    "RandomState.randn": lambda x: x + LEGACY.randn(),
    "RandomState.uniform": lambda x: x + np.random.RandomState(3).uniform(),
    "RandomState.standard_normal": lambda x: x + stats.norm.rvs(),
    "BitGenerator.random_raw": lambda x: x + RNG.bit_generator.random_raw(),
    "random.random": lambda x: x + random.random(),
    "random.gauss": lambda x: x + random.gauss(0.0, 1.0),
    "random.choice": lambda x: x + random.choice([1.0, 2.0]),
    "Random.random": lambda x: x + PYTHON.uniform(0.0, 1.0),
    "Random.getrandbits": lambda x: x + PYTHON.randint(0, 1),
    "secrets.randbelow": lambda x: x + secrets.randbelow(3),
    "uuid.uuid4": lambda x: x + uuid.uuid4().int % 7,
    "os.urandom": lambda x: x + os.urandom(1)[0],
    "np.random.normal by name": lambda x: x + normal(),
    "np.random.rand by another name": lambda x: x + any_number(),
    "Generator.normal of default_rng by name": lambda x: x + default_rng(0).normal(),
    "random.random by another name": lambda x: x + draw(),
    "random.gauss by name": lambda x: x + gauss(0.0, 1.0),
    "uuid.uuid4 by name": lambda x: x + uuid4().int % 7,
}


@pytest.mark.parametrize("name", FROZEN)
def test_refused(name):
    with pytest.raises(arc.TraceError) as caught:
        arc.compile(FROZEN[name])(np.ones(2))
    message = str(caught.value)
    assert message.startswith(name.split()[0])
    assert "test_randomness.py" in message
    assert "arc.random" in message


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
    """They are called past the type: the state tells."""
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


def test_everything_is_restored():
    names = [(np.random, "normal"), (random, "gauss"), (os, "urandom"), (time, "time")]
    before = [getattr(owner, name) for owner, name in names]
    types = [np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random]
    members = [dict(vars(owner)) for owner in types]
    with pytest.raises(arc.TraceError):
        arc.compile(FROZEN["np.random.normal"])(1.0)
    assert [getattr(owner, name) for owner, name in names] == before
    assert [dict(vars(owner)) for owner in types] == members
    assert [type(owner) for owner, _ in names] == [type(sys)] * 4
    assert np.isfinite(np.random.normal() + RNG.normal() + random.random())


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


def test_functions_exchanged_by_others(monkeypatch):
    """A test that fakes the clock or a generator, before or while something is recorded."""
    monkeypatch.setattr(np.random, "normal", lambda: 0.5)
    with pytest.raises(arc.TraceError, match=r"np\.random\.normal"):
        arc.compile(lambda x: x + np.random.normal())(1.0)
    assert np.random.normal() == 0.5

    randomness.install()  # as a recording in another thread does
    monkeypatch.setattr(random, "gauss", lambda a, b: 2.0)
    assert random.gauss(0.0, 1.0) == 2.0
    randomness.uninstall()
    assert random.gauss(0.0, 1.0) == 2.0
    monkeypatch.undo()
    assert random.gauss(0.0, 1.0) != 2.0


@pytest.mark.parametrize(
    "body",
    [
        "return x + np.random.normal()",
        "from numpy.random import default_rng; return x + default_rng(0).normal()",
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
