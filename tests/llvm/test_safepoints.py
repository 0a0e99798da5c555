"""Long native loops hear Ctrl-C, end in order, and compute what they compute without it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from types import SimpleNamespace

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends import interrupts
from archimedes.backends.llvm.runtime.calls_to_python import HostCall, Hosting
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target
from archimedes.backends.lowering.analysis import BUDGET, safepoint_of
from archimedes.graph.dtypes import F64
from archimedes.system.c_library import function_address
from tests.interrupting import handled_by, interrupted

#: Rounds of loops that take some ten seconds, and few of them.
LONG, SHORT = 10**8, 1000
INSTANCES = np.linspace(0.0, 1.0, 64)


def repeat(count, x):
    """Return x after so many rounds, which nobody knows before it runs."""

    def going(state):
        return state[0] < count

    return arc.while_loop(going, lambda s: (s[0] + 1, np.cos(s[1])), (0, x), max_steps=2**40)[1]


def nested(count, x):
    """Return x after loops in a loop, each of which is short."""

    def round_of(carry, _):
        return repeat(SHORT, carry), None

    def going(state):
        return state[0] * SHORT < count

    def body(state):
        return state[0] + 1, arc.scan(round_of, state[1], length=1)[0]

    return arc.while_loop(going, body, (0, x), max_steps=2**40)[1]


def stacked(count, x):
    """Return the last of values that a counted loop of counted loops puts out."""

    def inner(carry, _):
        return np.cos(carry), carry

    def outer(carry, _):
        last, values = arc.scan(inner, carry, length=SHORT)
        return last, values[-1]

    length = LONG // SHORT
    _, values = arc.scan(
        lambda c, k: arc.cond(k < count // SHORT, lambda: outer(c, k), lambda: (c, c)),
        x,
        np.arange(length),
    )
    return values[-1]


def mapped(count, x):
    """Return the sum over instances that are computed in lanes."""
    return np.sum(arc.vmap(lambda y: repeat(count, y))(x + np.linspace(0.0, 1.0, 16)))


PROGRAMS = {"while": repeat, "nested": nested, "stacked": stacked, "map": mapped}


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("calls", [1, 6])
def test_ctrl_c_ends_a_long_loop(name, calls):
    # The first calls go through ctypes, later ones through an entry of their own.
    function = arc.compile(PROGRAMS[name], backend="llvm")
    expected = [function(SHORT, 0.5) for _ in range(calls)][-1]
    assert isinstance(interrupted(lambda: function(LONG, 0.5)), KeyboardInterrupt)
    assert not interrupts.KEPT
    assert function(SHORT, 0.5) == expected


@pytest.mark.parametrize("threads", [1, 2, None])
@pytest.mark.parametrize("calls", [1, 6])
def test_ctrl_c_ends_a_batch(threads, calls):
    many = arc.vmap(arc.compile(repeat, backend="llvm"), in_axes=(None, 0), threads=threads)
    expected = [many(SHORT, INSTANCES) for _ in range(calls)][-1]
    running = threading.active_count()
    assert isinstance(interrupted(lambda: many(LONG, INSTANCES)), KeyboardInterrupt)
    assert not interrupts.KEPT and threading.active_count() <= running + 1
    assert np.array_equal(many(SHORT, INSTANCES), expected)


def test_ctrl_c_ends_a_batch_of_short_instances():
    many = arc.vmap(arc.compile(lambda x: repeat(SHORT, x), backend="llvm"), threads=1)
    x = np.zeros(1_000_000)
    many(x[:4])
    assert isinstance(interrupted(lambda: many(x)), KeyboardInterrupt)


def test_instances_that_other_threads_still_compute_are_stopped():
    # The caller's own instances are done at once: Ctrl-C comes while it waits for the others.
    many = arc.vmap(arc.compile(repeat, backend="llvm"), threads=2)
    counts = np.array([SHORT] * 24 + [LONG] * 8)
    many(np.full(32, SHORT), np.zeros(32))
    assert isinstance(interrupted(lambda: many(counts, np.zeros(32))), KeyboardInterrupt)
    assert not interrupts.KEPT


class Alarm(Exception):
    pass


def test_what_a_handler_raises_goes_through():
    def ring(number, frame):
        raise Alarm("wake up")

    function = arc.compile(repeat, backend="llvm")
    function(SHORT, 0.5)
    found = interrupted(lambda: function(LONG, 0.5), ring)
    assert isinstance(found, Alarm) and str(found) == "wake up"
    assert [entry.name for entry in traceback.extract_tb(found.__traceback__)][-1] == "ring"


def test_a_handler_that_returns_changes_nothing():
    heard = []
    function = arc.compile(repeat, backend="llvm")
    count = LONG // 20
    expected = function(count, 0.5)
    with handled_by(lambda number, frame: heard.append(number)):
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        assert function(count, 0.5) == expected
        timer.join()
    assert heard == [signal.SIGINT]


def test_other_threads_run_meanwhile_and_are_not_interrupted():
    function = arc.compile(repeat, backend="llvm")
    expected, found = function(LONG // 20, 0.5), []
    worker = threading.Thread(target=lambda: found.append(function(LONG // 20, 0.5)))
    worker.start()
    assert isinstance(interrupted(lambda: function(LONG, 0.25)), KeyboardInterrupt)
    worker.join()
    assert found == [expected]


@pytest.mark.parametrize("length", [1, 2, 3, 1000, 100_000])
def test_runs_between_safepoints_are_counted_right(length):
    # Sums of counters say whether a step was left out or made twice.
    def total(n):
        _, values = arc.scan(lambda c, k: (c + k, c), 0, np.arange(100_000))
        end = arc.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + s[0]), (0, 0), max_steps=2**40
        )
        return values[-1], *end

    found = arc.compile(total, backend="llvm")(length)
    last = 99_999 * 99_998 // 2
    assert [int(v) for v in found] == [last, length, length * (length - 1) // 2]


def test_only_loops_that_may_take_long_have_safepoints():
    def body_of(length):
        program = arc.compile(lambda x: arc.scan(lambda c, _: (np.cos(c), None), x, length=length))
        graph = program.recording(0.5).graph
        (region,) = graph.regions.values()
        return safepoint_of(region.length, region.body)

    assert body_of(100) is None
    safepoint = body_of(BUDGET)
    assert safepoint is not None and 1 < safepoint.steps * safepoint.work <= BUDGET


#: A kernel that gets Ctrl-C right before it calls Python.
INTERRUPTED = """
declare i32 @raise(i32)
declare void @arc_host(i64, ptr, ptr)
define i32 @arc_interrupted(ptr %slots, i32 %signal) {
  %to = getelementptr i8, ptr %slots, i64 8
  %sent = call i32 @raise(i32 %signal)
  call void @arc_host(i64 0, ptr %slots, ptr %to)
  ret i32 0
}
"""


@pytest.mark.parametrize("number", [0, signal.SIGINT])
def test_ctrl_c_just_before_python_is_called_is_no_result(number, monkeypatch):
    """The handler raises before the callback has begun, which ctypes only reports."""
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_type))
    region = SimpleNamespace(dtypes=[F64], function=lambda values: [2.0 * values[0]])
    hosting = Hosting([HostCall(region, [F64])])
    imports = {"arc_host": hosting.address}
    imports["raise"] = function_address("", "raise")
    code = NativeCode(host_target(None).compile(INTERRUPTED), "arc_interrupted", imports)
    slots = np.array([3.0, 0.0, 0.0])
    with handled_by():
        code.function(ctypes.c_void_p, ctypes.c_int)(slots.ctypes.data, number)
    done = slots.view(np.int64)[2]
    assert (slots[1], done) == ((0.0, 0) if number else (6.0, 1))
    assert reported == ([KeyboardInterrupt] if number else [])
    if number:
        with pytest.raises(KeyboardInterrupt):
            interrupts.raise_kept()
