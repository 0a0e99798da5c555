"""What a first solve does not have to wait for."""

import gc
import json
import subprocess
import sys

import numpy as np
import pytest

import archimedes as arc
from archimedes.collecting import PACE, rarely

SOLVE = """
import sys, json
import numpy as np
import archimedes as arc
before = {*sys.modules}
arc.solve_ode(lambda t, x: -x, (0.0, 1.0), np.ones(3))
print(json.dumps([*{*sys.modules} - before]))
"""


def test_a_plain_solve_imports_neither_events_nor_derivatives():
    found = subprocess.run(
        [sys.executable, "-c", SOLVE], capture_output=True, text=True, check=True
    )
    loaded = json.loads(found.stdout)
    unwanted = (
        "archimedes.graph.derivatives",
        "archimedes.simulate.events",
        "archimedes.simulate.sparse",
        "archimedes.simulate.solves.hybrid",
        "archimedes.random",
        "archimedes.backends.llvm.lowering.batches",
        "archimedes.backends.llvm.lowering.maps",
        "archimedes.backends.llvm.lowering.nests",
        *("decimal", "fractions", "hashlib", "sysconfig", "traceback"),
    )
    assert [name for name in loaded if name.startswith(unwanted)] == []


def test_the_collector_rests_while_much_is_made_and_then_goes_on():
    before = gc.get_threshold()

    def model(t, x):
        assert gc.get_threshold()[0] == PACE
        return -x

    arc.solve_ode(model, (0.0, 1.0), np.ones(3))
    assert gc.get_threshold() == before


GROWING = """
import gc
import archimedes
from archimedes.collecting import rarely

class Loop:
    pass

looked, pace = [], gc.get_threshold()[0]
gc.collect()
gc.callbacks.append(lambda phase, info: looked.append(phase))
with rarely:
    kept = [Loop() for _ in range(3000)]
    for one in kept:
        one.me = one
more = [[] for _ in range(100)]
assert not looked, "new objects that stay are looked through at once"
del kept, one
assert gc.collect() >= 3000, "cycles among them are found later"
gc.freeze()
frozen = gc.get_freeze_count()
with rarely:
    kept = [[] for _ in range(3000)]
assert gc.get_freeze_count() == frozen, "what a user keeps from the collector stays so"
gc.unfreeze()
del kept, more
looked.clear()
for _ in range(50):  # functions that are made all the time
    with rarely:
        for _ in range(pace + 300):
            one = Loop()
            one.me = one
assert looked.count("start") >= 40, "what goes again is looked through as ever"
"""


@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="it keeps some objects itself")
def test_what_was_made_meanwhile_is_not_looked_through_at_once():
    # The collector of this process is that of the tests.
    done = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_pace_that_users_set_stays():
    before = gc.get_threshold()
    try:
        gc.set_threshold(0)
        with rarely, rarely:
            assert gc.get_threshold()[0] == 0
        assert gc.get_threshold()[0] == 0
        gc.set_threshold(500)
        with rarely:
            gc.set_threshold(300)
        assert gc.get_threshold()[0] == 300
        with pytest.raises(KeyError), rarely:
            raise KeyError
        assert gc.get_threshold()[0] == 300
    finally:
        gc.set_threshold(*before)


def test_drafts_and_finished_kernels_have_the_same_bits():
    def model(t, x):
        return np.roll(x, 1) * np.cos(t) - np.sin(x)

    x0 = np.linspace(0.0, 1.0, 13)
    solves = [arc.solve_ode(model, (0.0, 3.0), x0) for _ in range(12)]
    first, last = solves[0], solves[-1]
    assert first.x.tobytes() == last.x.tobytes()
    times = np.linspace(0.0, 3.0, 7)
    assert first(times).tobytes() == last(times).tobytes()
