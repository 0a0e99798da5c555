"""Calls with arrays of a device, on one that is emulated; and what happens where there is none."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends import code_cache
from archimedes.backends.cuda import cuda_kernel, kernel_text, nvrtc
from archimedes.backends.cuda.cuda_kernel import CudaProgram
from archimedes.backends.cuda.device import CupyArrays
from archimedes.errors import CodegenError, DeviceError

from . import fake_cupy
from .fake_cupy import Tensor
from .test_text import scaled


@pytest.fixture(scope="module")
def cupy():
    with fake_cupy.installed() as module:
        yield module


def spin(state, gain):
    return {"w": gain * np.cross(state["w"], state["v"]), "n": np.sum(state["v"]) > 0.0}


STATE = {"w": np.arange(12.0).reshape(4, 3), "v": np.linspace(-1.0, 1.0, 12).reshape(4, 3)}


def test_arrays_decide(cupy):
    there = arc.tree.map(cupy.asarray, STATE)
    f = arc.vmap(spin, in_axes=(0, None))
    want = f(STATE, 2.0)
    got = f(there, 2.0)
    assert isinstance(got["w"], cupy.ndarray) and isinstance(want["w"], np.ndarray)
    for name in ("w", "n"):
        assert got[name].get().tobytes() == want[name].tobytes()
        assert got[name].get().dtype == want[name].dtype
    one = arc.compile(lambda x: np.sum(x))(cupy.asarray(np.arange(3.0)))
    assert isinstance(one, cupy.ndarray) and one.get() == 3.0


def test_tensors_of_others_are_read_where_they_lie(cupy):
    f = arc.vmap(lambda x: np.sin(x[0]) * x[1])
    x = np.linspace(0.0, 1.0, 300).reshape(150, 2)
    assert f(Tensor(x)).get().tobytes() == f(x).tobytes()
    out = Tensor(np.zeros(150))
    assert f(Tensor(x), out=out) is out and out.held.tobytes() == f(x).tobytes()
    with pytest.raises((TypeError, ValueError), match="out"):
        f(Tensor(x), out=Tensor(np.zeros(150), read_only=True))


def test_axes_out_derivatives_and_empty_batches(cupy):
    f = lambda x: np.sum(np.sin(x) * x[0])
    x = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    got = arc.vmap(arc.grad(f), in_axes=1, out_axes=1)(cupy.asarray(x))
    assert got.get().tobytes() == arc.vmap(arc.grad(f), in_axes=1, out_axes=1)(x).tobytes()
    out = cupy.empty((3,), np.float64)
    assert arc.vmap(f, in_axes=1)(cupy.asarray(x), out=out) is out
    assert out.get().tobytes() == arc.vmap(f, in_axes=1)(x).tobytes()
    assert arc.vmap(f)(cupy.empty((0, 3), np.float64)).shape == (0,)


def test_results_may_go_where_arguments_lie(cupy):
    """Overlap is seen by addresses; each row is read before any is written."""
    f = arc.vmap(lambda x: x[::-1] * 2.0)
    x = np.arange(6.0).reshape(2, 3)
    there = cupy.asarray(x)
    assert f(there, out=there) is there and there.get().tolist() == f(x).tolist()
    long = cupy.asarray(np.arange(9.0).reshape(3, 3))
    f(long[:2], out=long[1:])
    assert long.get()[1:].tolist() == f(np.arange(6.0).reshape(2, 3)).tolist()
    arrays = CupyArrays()
    assert arrays.may_overlap(long[:2], long[1:]) and not arrays.may_overlap(long[:1], long[1:])
    assert arrays.may_overlap(long[:, 1], long) and not arrays.may_overlap(long, there)


def test_repeated_calls_take_the_short_way(cupy, monkeypatch):
    """Arguments are looked at once; what is new goes the long way and gives the same."""
    gain = {"a": 2.0}

    def f(x, y):
        return {"s": x["v"] * y * gain["a"], "t": (x["v"][0], np.sum(y))}

    run = arc.vmap(f, in_axes=(0, None))
    x = {"v": np.linspace(0.0, 1.0, 15).reshape(5, 3)}
    y = np.arange(3.0)
    there, shared = {"v": cupy.asarray(x["v"])}, cupy.asarray(y)
    want = run(x, y)

    def same(got, want):
        assert [a.get().tobytes() for a in arc.tree.leaves(got)] == [
            b.tobytes() for b in arc.tree.leaves(want)
        ]

    for _ in range(8):
        same(run(there, shared), want)
    plain = arc.vmap(lambda a, b: a * b[0], in_axes=(0, None))
    a = cupy.asarray(x["v"])
    for _ in range(8):
        same(plain(a, shared), plain(x["v"], y))
    long, launches = CudaProgram.call_batch, []
    monkeypatch.setattr(
        CudaProgram, "call_batch", lambda *given: launches.append(1) or long(*given)
    )
    out = plain(a, shared)
    assert not launches, "the short way"
    same(plain(cupy.asarray(x["v"][:2]), shared), plain(x["v"][:2], y))
    assert not launches, "for any number of instances"
    for _ in range(8):
        assert plain(a, shared, out=out) is out
    launches.clear()
    assert plain(a, shared, out=out) is out and not launches
    same(out, plain(x["v"], y))
    assert plain(a, shared, out=a) is a and launches, "overlapping results are copied"
    launches.clear()
    same(plain(Tensor(x["v"]), shared), plain(x["v"], y))
    assert launches, "arrays of others"
    with pytest.raises(ValueError, match=r"different lengths|shape"):
        plain(a, cupy.asarray(np.ones((2, 2, 2))))


def test_the_short_way_sees_what_a_function_read_change(cupy):
    gain = np.array([2.0])
    run = arc.vmap(lambda x: x * gain[0])
    x = cupy.asarray(np.arange(4.0))
    for _ in range(8):
        assert run(x).get().tolist() == [0.0, 2.0, 4.0, 6.0]
    gain[0] = 3.0
    assert run(x).get().tolist() == [0.0, 3.0, 6.0, 9.0]


def test_long_programs_are_several_kernels(cupy, monkeypatch):
    """Values between them lie in device memory, through which a batch goes in pieces."""
    monkeypatch.setattr(kernel_text, "LONG", 20)
    monkeypatch.setattr(kernel_text, "PART_OF_LONG", 300)

    def f(x, n, a):
        y, odd = x, n % 3
        for k in range(12):
            y = np.sin(y[::-1]) * a + x * y + odd - k / 7.0
        flag = y[0] > x[1]
        return y, np.where(flag, n * 2, n - odd), flag, x[0], np.float32(2.0) * (y[1] > 0.0), 3.5

    x = np.random.default_rng(0).normal(size=(300, 3))
    n = np.arange(300)
    run = arc.vmap(arc.compile(f), in_axes=(0, 0, None))
    want = run(x, n, 0.7)
    for far in (2**30, 1):
        monkeypatch.setattr(cuda_kernel, "FAR_BYTES", far)
        got = run(cupy.asarray(x), cupy.asarray(n), cupy.asarray(np.array(0.7)))
        for a, b in zip(got, want):
            assert a.get().dtype == b.dtype and a.get().tobytes() == b.tobytes()


def test_figures_of_parts(cupy, monkeypatch):
    monkeypatch.setattr(kernel_text, "LONG", 2)
    monkeypatch.setattr(kernel_text, "PART_OF_LONG", 2)
    program = CudaProgram(scaled(5))
    x = cupy.asarray(np.ones((3, 5)))
    out = cupy.empty((3, 5), np.float64)
    program.call_batch([x, cupy.asarray(np.array(2.0))], [True, False], [out], 3)
    assert out.get().tolist() == [[2.0] * 5] * 3
    *notes, last = program.figures().notes
    assert [note[:13] for note in notes] == [f"kernel {k} of 3" for k in (1, 2, 3)]
    assert "1024 of 2048 threads on a multiprocessor" in notes[0]
    assert last == "0 bytes per instance between kernels"


def test_mixing_says_how_to_move(cupy):
    f = arc.vmap(lambda x, y: x + y)
    message = (
        r"argument x is a GPU array and y is a NumPy array: .*"
        r"move them with cupy.asarray\(x\) or cupy.asnumpy\(x\)"
    )
    with pytest.raises(ValueError, match=message):
        f(cupy.asarray(np.ones(3)), np.ones(3))


def test_arrays_of_another_gpu_are_refused(cupy):
    x = cupy.asarray(np.ones((3, 2)))
    x.device.id = 1
    match = r"is on GPU 1, but the current one is 0: .*with cupy.cuda.Device\(1\)"
    with pytest.raises(DeviceError, match=match):
        CudaProgram(scaled(2)).call_batch([x, x[0, 0:1]], [True, False], [x], 3)


def test_too_little_memory_says_what_helps(cupy):
    f = arc.vmap(lambda x: np.ones(1000) * x)
    x = cupy.asarray(np.ones(20_000))
    with pytest.raises(DeviceError, match=r'memory of the GPU.*fewer instances.*backend="cuda"'):
        f(x)
    assert f(x[:2]).shape == (2, 1000)


def test_named_it_moves_numpy_arrays_in_pieces(cupy, monkeypatch):
    monkeypatch.setattr(cuda_kernel, "CHUNK_BYTES", 1000)
    f = lambda x, a: (a * x[0] + x[1], x[0] > 0.3)
    x = np.linspace(0.0, 1.0, 400).reshape(200, 2)
    got = arc.vmap(f, in_axes=(0, None), backend="cuda")(x, 3.0)
    for a, b in zip(got, arc.vmap(f, in_axes=(0, None))(x, 3.0)):
        assert isinstance(a, np.ndarray) and a.tobytes() == b.tobytes()


def test_solves_run_there(cupy, monkeypatch):
    launches, launch = [], CudaProgram.call_batch
    count = lambda *given: launches.append(given[4]) or launch(*given)
    monkeypatch.setattr(CudaProgram, "call_batch", count)
    options = {"t_eval": np.linspace(0.0, 1.0, 3), "dt": 0.25, "in_axes": 0}
    fall = lambda t, x: np.array([x[1], -9.81])
    x0 = np.array([[1.0, 0.0], [2.0, 1.0]])
    found = arc.solve_ode(fall, (0.0, 1.0), x0, **options, backend="cuda")
    assert set(launches) == {2}, "all instances together"
    assert found.x.tobytes() == arc.solve_ode(fall, (0.0, 1.0), x0, **options).x.tobytes()


def test_machine_code_is_kept_on_disk(cupy, monkeypatch, tmp_path):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "1")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "cache"))
    x = np.ones((3, 2))
    make = lambda: arc.compile(lambda x: x[0] * x[1], backend="cuda")
    arc.vmap(make())(x)
    assert len(list((tmp_path / "cache").rglob("*.o"))) == 1

    def never(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvrtc, "compile_cubin", never)
    assert arc.vmap(make())(x).tolist() == [1.0, 1.0, 1.0]
    assert code_cache.cache_folder() == tmp_path / "cache"


def test_report_and_source(cupy, monkeypatch):
    monkeypatch.setattr(cuda_kernel, "TIMED_INSTANCES", 300)
    monkeypatch.setattr(cuda_kernel, "TIMED_BYTES", 2**16)
    f = arc.compile(lambda x: np.sin(x) * 2.0)
    text = str(f.report(1.0, backend="cuda"))
    assert "62 registers" in text and "1024 of 2048 threads on a multiprocessor" in text
    assert re.search(r"300 instances at a time: .* per second, .* GB/s, .* % of a copy's", text)
    assert "registers" not in str(f.report(1.0))
    assert "__global__ void" in arc.compile(f.function, backend="cuda").source("cuda", 1.0)
    with pytest.raises(ValueError, match="report: backend='nothing'"):
        f.report(1.0, backend="nothing")
    g = arc.compile(lambda x, backend: x * backend)
    assert g.report(2.0, backend=3.0).operations == 1, "its own parameter"


def test_a_kernel_that_does_not_start_says_what_may_help(cupy, monkeypatch):
    program = CudaProgram(scaled(2))
    x = cupy.asarray(np.ones((3, 2)))
    given = ([x, x[0, 0:1]], [True, False], [cupy.empty((3, 2), np.float64)], 3)
    program.call_batch(*given)
    (compiled,) = program._compiled.values()
    (kernel,) = compiled.kernels

    def fails(*arguments):
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(kernel, "function", fails)
    match = r"did not start a kernel of 1 blocks of 128 threads: CUDA_ERROR.*needs a new process"
    with pytest.raises(DeviceError, match=match):
        program.call_batch(*given)


def test_callbacks_are_refused(cupy):
    f = arc.compile(lambda x: arc.callback(lambda v: v * 2.0, np.float64(0.0), x), backend="cuda")
    with pytest.raises(CodegenError, match=r"(?s)calls back into Python.*A GPU has no Python"):
        f(1.0)


# ---- without ----------------------------------------------------------------------------------

INSTALL = r'pip install .*\[cuda\]" \(CUDA 13\) or pip install .*\[cuda12\]" \(CUDA 12\)'


@pytest.fixture
def no_cupy(monkeypatch):
    from archimedes.backends.cuda import device

    monkeypatch.setitem(sys.modules, "cupy", None)
    device._working.cache_clear()
    yield
    device._working.cache_clear()


def test_without_cupy_the_error_names_the_extra(no_cupy):
    f = arc.compile(lambda x: x * 2.0)
    with pytest.raises(DeviceError, match=INSTALL):
        arc.compile(lambda x: x * 2.0, backend="cuda")(1.0)
    with pytest.raises(DeviceError, match=f"NVIDIA GPU and CuPy.*{INSTALL}"):
        f(Tensor(np.ones(2)))
    assert f(3.0) == 6.0 and f(np.ones(2)).tolist() == [2.0, 2.0]


def test_without_a_gpu_the_error_says_so(monkeypatch):
    with fake_cupy.installed() as module:

        def none():
            raise module.cuda.runtime.CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device")

        module.cuda.runtime.getDeviceCount = none
        with pytest.raises(DeviceError, match=f"no NVIDIA GPU that works.*no CUDA.*{INSTALL}"):
            arc.compile(lambda x: x * 2.0, backend="cuda")(1.0)
