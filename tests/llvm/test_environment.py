"""Flush-to-zero and other rounding modes, set by whoever came before, change no bit."""

from __future__ import annotations

import ctypes
import platform
import threading
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.calling_convention import Leaf
from archimedes.backends.llvm.lowering.assembler import Module
from archimedes.backends.llvm.lowering.entries import Source, scalar_program
from archimedes.backends.llvm.lowering.memory import Spelling
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target
from archimedes.graph import CODES, F64, Graph
from archimedes.system.floating_point import DefaultEnvironment, is_default


class Register(NamedTuple):
    """A thread's control register: a function that swaps it, and settings that others may leave."""

    text: str
    mask: int
    default: int
    settings: dict[str, int]


#: Intel SDM volume 1, 10.2.3. The flags of what happened are left out.
MXCSR = Register(
    """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i32 @swap(i32 %new) {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %old = load i32, ptr %place
  store i32 %new, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret i32 %old
}
""",
    0xFFC0,
    0x1F80,
    {
        "flush": 0x9F80,
        "denormals": 0x1FC0,
        "both": 0x9FC0,
        "down": 0x3F80,
        "up": 0x5F80,
        "to zero": 0x7F80,
        "up and flush": 0xDFC0,
    },
)
#: Arm Architecture Reference Manual, C5.2.8: one bit flushes results and operands.
FPCR = Register(
    """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define i32 @swap(i32 %new) {
  %old = call i64 @llvm.aarch64.get.fpcr()
  %wide = zext i32 %new to i64
  call void @llvm.aarch64.set.fpcr(i64 %wide)
  %result = trunc i64 %old to i32
  ret i32 %result
}
""",
    0x7FF_FF07,
    0,
    {
        "both": 1 << 24,
        "down": 2 << 22,
        "up": 1 << 22,
        "to zero": 3 << 22,
        "up and flush": 1 << 24 | 1 << 22,
    },
)
REGISTER = {"x86_64": MXCSR, "AMD64": MXCSR, "aarch64": FPCR, "arm64": FPCR}.get(platform.machine())
SETTINGS = REGISTER.settings if REGISTER else {}

needs_register = pytest.mark.skipif(
    REGISTER is None, reason="sets the control register of x86-64 or ARM64"
)


@lru_cache(maxsize=1)
def swap():
    code = NativeCode(host_target().compile(REGISTER.text), "swap")
    return code, ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(code.address)


def set_register(value: int) -> int:
    """Set the control register and return what it was, without the flags."""
    return swap()[1](value) & REGISTER.mask


@contextmanager
def setting(value: int):
    assert set_register(value) == REGISTER.default
    try:
        yield
    finally:
        assert set_register(REGISTER.default) == value  # the library put it back


def delicate(x):
    """Results that every setting changes: subnormal numbers, and roundings of all kinds."""
    small = x * 1e-308
    return np.stack([small * 0.37, small - small * 0.999999, x / 3.0, -x / 7.0, np.exp(x) * 1e-310])


POINT = np.float64(0.9)
ROWS = np.linspace(0.1, 0.9, 203)


@needs_register
def test_the_settings_do_change_arithmetic():
    expected = delicate(ROWS)
    for name, value in SETTINGS.items():
        with setting(value):
            eager = delicate(ROWS)
            known = is_default()
        assert not known, name
        assert eager.tobytes() != expected.tobytes(), name


@needs_register
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("name", SETTINGS)
def test_single_calls_keep_their_bits(name, backend):
    f = arc.compile(delicate, backend=backend)
    expected = [f(POINT) for _ in range(6)][-1]  # by then the native entry is in use
    with setting(SETTINGS[name]):
        found = f(POINT)
    assert found.tobytes() == expected.tobytes()


@needs_register
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("name", SETTINGS)
def test_recorded_and_compiled_under_the_setting(name, backend):
    def model(x):
        return delicate(x) + (np.float64(1e-300) * 1e-10) * x + np.float64(1.0) / 3.0

    expected = arc.compile(model, backend=backend)(POINT)
    with setting(SETTINGS[name]):
        found = arc.compile(model, backend=backend)(POINT)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.long_cases("1*", "2*", "5*")
@needs_register
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_of_a_batch_are_alike_in_all_threads(threads):
    f = arc.vmap(delicate, threads=threads)
    expected = np.stack([arc.compile(delicate, backend="llvm")(x) for x in ROWS])
    for name, value in SETTINGS.items():
        with setting(value):  # threads that are started now inherit it
            found = f(ROWS)
        assert found.tobytes() == expected.tobytes(), name


@needs_register
def test_threads_of_the_user():
    f = arc.compile(delicate, backend="llvm")
    expected = f(POINT)
    found = {}

    def work(name):
        with setting(SETTINGS[name]):
            found[name] = f(POINT)

    workers = [threading.Thread(target=work, args=(name,)) for name in SETTINGS]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {name: value.tobytes() for name, value in found.items()} == dict.fromkeys(
        SETTINGS, expected.tobytes()
    )


@needs_register
@pytest.mark.parametrize("name", ["both", "up", "to zero"])
def test_solves_and_derivatives(name):
    def decay(t, x, k):
        return -k * x * (1.0 + 0.1 * np.sin(t))

    times = np.linspace(0.0, 3.0, 40)
    slope = arc.grad(lambda x: np.sin(x) * np.exp(-(x**2)) * 1e-308)

    def all_of_it():
        one = arc.odeint(decay, (0.0, 3.0), 1e-305, t_eval=times, args=(9.0,), atol=1e-320)
        return one, slope(0.3), arc.hess(slope)(0.3)

    expected = all_of_it()
    with setting(SETTINGS[name]):
        found = all_of_it()
    for a, b in zip(found, expected):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@needs_register
def test_callbacks_run_in_the_default_environment_too():
    seen = []

    def outside(x):
        seen.append(is_default())
        return x

    f = arc.compile(lambda x: arc.callback(outside, 0.0, x) * 1e-308, backend="llvm")
    with setting(SETTINGS["both"]):
        f(0.3)
    assert seen and all(seen)


def test_the_context_is_free_of_effect_by_default():
    with DefaultEnvironment():
        assert is_default()
    assert is_default()


def test_arm_code_sets_and_restores_its_register():
    """FPCR by text: the code of this test's machine cannot run it."""
    g = Graph()
    x = g.input(F64)
    g.outputs = [g.emit(CODES["add"], x, x)]
    arm = Target("generic", "+neon", triple="aarch64-unknown-linux-gnu")
    text = scalar_program(Source(g, [Leaf(1, F64)], [Leaf(1, F64)], arm)).text
    code = arm.assembly(text).lower()
    guard = code[code.index("arc_scalar:") :]
    assert (guard.count("mrs"), guard.count("msr")) == (1, 2)
    assert "fadd" not in guard  # arithmetic stays in the function behind the call


def test_other_machines_run_in_the_environment_of_the_caller():
    from archimedes.backends.llvm.lowering.prologue import add_guarded

    module = Module(Spelling(1), Target("", "", triple="riscv64-unknown-linux-gnu"))
    add_guarded(module, "arc_scalar", "ptr %in", "run")
    assert module.functions == [
        "define i32 @arc_scalar(ptr %in) nounwind {\nentry:\n  %status = tail call i32 "
        "@run(ptr %in)\n  ret i32 %status\n}"
    ]
