"""Ctrl-C during simulations: heard soon, whatever is running natively."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import Normal
from tests.interrupting import interrupted

#: Ends of spans: far more steps than fit into a few seconds, and few.
FAR, NEAR = 1e7, 1.0
ENOUGH = 10**9


def swing(t, x):
    return np.array([x[1], -x[0]])


def final(end, x):
    return arc.odeint(swing, (0.0, end), x, rtol=1e-9, max_steps=ENOUGH)


START = np.array([1.0, 0.0])
STARTS = START + 0.01 * np.arange(16)[:, None]


def test_ctrl_c_ends_a_compiled_odeint():
    solve = arc.compile(final, backend="llvm")
    expected = solve(NEAR, START)
    assert isinstance(interrupted(lambda: solve(FAR, START)), KeyboardInterrupt)
    assert np.array_equal(solve(NEAR, START), expected)


def test_ctrl_c_ends_a_batch_of_compiled_solves():
    solve = arc.vmap(arc.compile(final, backend="llvm"), in_axes=(None, 0))
    expected = solve(NEAR, STARTS)
    assert isinstance(interrupted(lambda: solve(FAR, STARTS)), KeyboardInterrupt)
    assert np.array_equal(solve(NEAR, STARTS), expected)


def test_ctrl_c_returns_what_a_campaign_has():
    def model(params):
        return final(params["end"], params["scale"] * START)

    def campaign(end):
        return arc.monte_carlo(model, {"scale": Normal(1.0, 0.1), "end": end}, n=16, chunk=8)

    assert campaign(NEAR).complete
    found = interrupted(lambda: campaign(FAR))
    assert not found.complete and len(found) == 0


def test_ctrl_c_ends_solves_that_are_driven_from_python():
    def solve(end, x0, **batch):
        return arc.solve_ode(swing, (0.0, end), x0, t_eval=[end], **options, **batch)

    options = {"rtol": 1e-9, "max_steps": ENOUGH}
    # What is compiled is compiled before: Ctrl-C that comes while LLVM's objects are freed is lost.
    solve(NEAR, START)
    solve(NEAR, STARTS, in_axes=0)
    arc.odeint(swing, (0.0, NEAR), START, **options)
    found = interrupted(lambda: solve(FAR, START))
    assert found.status == -4 and "interrupted at t = " in found.message
    found = interrupted(lambda: solve(FAR, STARTS, in_axes=0))
    assert (found.status == -4).all()
    raised = interrupted(lambda: arc.odeint(swing, (0.0, FAR), START, **options))
    assert isinstance(raised, KeyboardInterrupt) and "odeint: interrupted at t" in str(raised)


#: What a shell starts in the background ignores Ctrl-C, and so do its children.
HEARS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
SCRIPT = f"""{HEARS}
import numpy as np
import archimedes as arc
from archimedes.simulate import Normal
from tests.simulate.test_interrupts import FAR, NEAR, START, STARTS, final

one = arc.compile(final, backend="llvm")
many = arc.vmap(one, in_axes=(None, 0))
def model(params):
    return final(params["end"], params["scale"] * START)
def campaign(end):
    return arc.monte_carlo(model, {{"scale": Normal(1.0, 0.1), "end": end}}, n=16)
CASES = [lambda end: one(end, START), lambda end: many(end, STARTS), campaign]
for case in CASES:
    # Until the last tier is compiled: Python drops what is raised while LLVM's objects are freed.
    for _ in range(5):
        case(NEAR)
    try:
        print("ready", flush=True)
        found = case(FAR)
        print("returned", found.complete, flush=True)
    except KeyboardInterrupt:
        print("KeyboardInterrupt", flush=True)
    case(NEAR)
one(FAR, START)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals of other processes are POSIX's")
def test_a_process_that_is_interrupted_from_outside():
    command = [sys.executable, "-c", SCRIPT]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for expected in ("KeyboardInterrupt", "KeyboardInterrupt", "returned False"):
            assert process.stdout.readline().strip() == "ready"
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            begin = time.perf_counter()
            said = process.stdout.readline().strip()
            assert said == expected, said or process.communicate()[1]
            assert time.perf_counter() - begin < 2.0
        # The last call is not caught: the process ends by the signal, as Python's do.
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=5.0)
        assert process.returncode == -signal.SIGINT and errors.strip().endswith("KeyboardInterrupt")
    finally:
        process.kill()
        process.communicate()


COUNTING = f"""{HEARS}
import numpy as np
import archimedes as arc

@arc.compile(backend="llvm")
def count(n, x):
    return arc.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) + 0.1), (0, x))

count(3, 0.1)
print("ready", flush=True)
count(10**9, 0.1)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals of other processes are POSIX's")
@pytest.mark.parametrize("milliseconds", range(0, 10, 2))
def test_ctrl_c_at_the_first_safepoint_of_a_process(milliseconds):
    """What safepoints call is there before the loop, not compiled in the midst of it."""
    command = [sys.executable, "-c", COUNTING]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline().strip() == "ready"
        time.sleep(1e-3 * milliseconds)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=5.0)
        assert process.returncode == -signal.SIGINT and errors.strip().endswith("KeyboardInterrupt")
    finally:
        process.kill()
        process.communicate()
