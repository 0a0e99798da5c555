"""Batches of solves on a device, which is emulated: whole in kernels, with the CPU's bits."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.cuda import device
from archimedes.backends.cuda.repeated_kernel import CudaRepeated
from archimedes.errors import DeviceError
from archimedes.simulate.solves import driver

from . import fake_cupy
from .fake_cupy import Tensor


@pytest.fixture(scope="module")
def cupy():
    with fake_cupy.installed() as module:
        yield module


@pytest.fixture
def launches(monkeypatch):
    return counted_launches(monkeypatch)


def counted_launches(monkeypatch):
    """Return a list that gets how many instances each repeated kernel was started for."""
    made, launch = [], CudaRepeated.__call__

    def count(self, state, given, items, sign, places, done, results):
        made.append(len(places))
        launch(self, state, given, items, sign, places, done, results)

    monkeypatch.setattr(CudaRepeated, "__call__", count)
    return made


def pendulum(t, x, k):
    return np.array([x[1], -k * np.sin(x[0]) - 0.1 * x[1]])


X0 = np.stack([np.linspace(-2.0, 2.5, 6), np.zeros(6)], axis=1)
K = np.linspace(0.5, 20.0, 6)
SPAN, TIMES = (0.0, 3.0), np.linspace(0.0, 3.0, 40)


def same(there, here):
    get = lambda leaf: leaf.get() if hasattr(leaf, "get") else np.asarray(leaf)
    for name in ("t", "x"):
        for a, b in zip(
            arc.tree.leaves(getattr(there, name)), arc.tree.leaves(getattr(here, name))
        ):
            assert np.array_equal(get(a), b, equal_nan=True), name
    assert there.status.tolist() == here.status.tolist() and there.message == here.message
    for name in ("steps", "rejected"):
        assert there.stats[name].tolist() == here.stats[name].tolist()


def test_arrays_decide_and_states_stay_there(cupy, launches):
    """Slow instances hold up nobody: all are done in one launch, each with its own steps."""
    options = {"t_eval": TIMES, "in_axes": 0, "rtol": 1e-4, "method": "bs3"}
    want = arc.solve_ode(pendulum, SPAN, X0, args=(K,), **options)
    got = arc.solve_ode(pendulum, SPAN, cupy.asarray(X0), args=(cupy.asarray(K),), **options)
    assert isinstance(got.x, cupy.ndarray) and isinstance(got.t, cupy.ndarray)
    assert isinstance(got.status, np.ndarray) and len(set(got.stats["steps"].tolist())) > 3
    assert launches == [6]
    same(got, want)
    tensor = arc.solve_ode(pendulum, SPAN, Tensor(X0), args=(Tensor(K),), **options)
    same(tensor, want)


def test_named_it_moves_numpy_arrays_in_groups(cupy, launches, monkeypatch):
    from archimedes.backends.cuda.backend import Cuda

    sizes = Cuda.sizes._replace(group=2, keeping=2, least=2)
    monkeypatch.setattr(Cuda, "sizes", sizes)
    monkeypatch.setattr(device, "PIECE_BYTES", 256)
    options = {"t_eval": TIMES, "in_axes": (0, 0), "rtol": 1e-4, "args": (K,), "method": "bs3"}
    seen = []
    got = arc.solve_ode(
        pendulum, SPAN, X0, **options, backend="cuda", progress=lambda *x: seen.append(x)
    )
    assert isinstance(got.x, np.ndarray) and launches == [2, 2, 2] and seen[-1][0] == 1.0
    same(got, arc.solve_ode(pendulum, SPAN, X0, **options))


@pytest.mark.long
def test_runs_are_resumed_and_those_done_drop_out(cupy, launches, monkeypatch):
    monkeypatch.setattr(driver, "FIRST_THERE", 5)
    monkeypatch.setattr(driver, "SECONDS", 1e-9)
    options = {"t_eval": TIMES[1:], "in_axes": 0, "rtol": 1e-6, "args": (K,), "method": "bs3"}
    got = arc.solve_ode(pendulum, SPAN, X0, **options, backend="cuda")
    assert launches[0] == 6 and launches[-1] < 6 and len(launches) > 1
    same(got, arc.solve_ode(pendulum, SPAN, X0, **options))


@pytest.mark.long
def test_back_in_time_fixed_steps_and_one_output(cupy):
    for options in (
        {"t_eval": TIMES[::-1], "t_span": (3.0, 0.0)},
        {"t_eval": TIMES, "t_span": SPAN, "dt": 0.25},
        {"t_eval": [3.0], "t_span": SPAN},
    ):
        more = {"in_axes": (0, None), "args": (2.0,), **options}
        got = arc.solve_ode(pendulum, x0=X0, **more, backend="cuda")
        same(got, arc.solve_ode(pendulum, x0=X0, **more))


@pytest.mark.long
def test_failures_are_a_status_each(cupy):
    f = lambda t, x: x**2
    x0 = np.array([0.1, 2.0, 0.2])[:, None]
    options = {"t_eval": np.linspace(0.0, 2.0, 33), "in_axes": 0}
    got = arc.solve_ode(f, (0.0, 2.0), cupy.asarray(x0), **options)
    want = arc.solve_ode(f, (0.0, 2.0), x0, **options)
    assert got.status.tolist() == [0, -1, 0] and np.isnan(got.x.get()[1, -1, 0])
    same(got, want)
    few = {"t_eval": [2.0], "in_axes": 0, "max_steps": 3}
    same(
        arc.solve_ode(f, (0.0, 2.0), x0[:1], **few, backend="cuda"),
        arc.solve_ode(f, (0.0, 2.0), x0[:1], **few),
    )


def bounce():
    return arc.Event(
        lambda t, x: x[0], direction=-1, reset=lambda t, x: np.array([0.0, -0.8 * x[1]])
    )


@pytest.mark.long
def test_events_and_resets(cupy, launches):
    fall = lambda t, x: np.array([x[1], -9.81])
    x0 = np.array([[1.0, 0.0], [2.0, 1.0], [5.0, 0.0]])
    options = {"t_eval": np.linspace(0.0, 2.0, 41), "in_axes": 0, "events": bounce()}
    want = arc.solve_ode(fall, (0.0, 2.0), x0, **options)
    for given, more in ((x0, {"backend": "cuda"}), (cupy.asarray(x0), {})):
        got = arc.solve_ode(fall, (0.0, 2.0), given, **options, **more)
        same(got, want)
        assert got.events.keys() == want.events.keys()
        for name, value in want.events.items():
            assert np.array_equal(got.events[name], value, equal_nan=True), name
    assert want.events["count"].sum() > 3 and min(launches) < 3


@pytest.mark.long
def test_sampled_controllers(cupy):
    part = arc.Sampled(lambda t, x, u: -2.0 * x[0] - x[1], 0.0, dt=0.1)
    f = lambda t, x, u: np.stack([x[1], u])
    options = {"t_eval": np.linspace(0.0, 1.0, 35), "in_axes": 0, "sampled": part}
    want = arc.solve_ode(f, (0.0, 1.0), X0, **options)
    got = arc.solve_ode(f, (0.0, 1.0), X0, **options, backend="cuda")
    same(got, want)
    assert got.u.tobytes() == want.u.tobytes()
    there = arc.solve_ode(f, (0.0, 1.0), cupy.asarray(X0), **options)
    same(there, want)


@pytest.mark.long
def test_every_step_and_dense_output(cupy):
    options = {"in_axes": 0, "args": (K,), "rtol": 1e-4}
    want = arc.solve_ode(pendulum, SPAN, X0, **options)
    same(arc.solve_ode(pendulum, SPAN, X0, **options, backend="cuda"), want)
    there = arc.tree.map(cupy.asarray, (X0, K))
    got = arc.solve_ode(pendulum, SPAN, there[0], in_axes=0, args=(there[1],), rtol=1e-4)
    assert isinstance(got.x, cupy.ndarray)
    same(got, want)
    dense = {**options, "t_eval": TIMES, "dense": True}
    a = arc.solve_ode(pendulum, SPAN, X0, **dense, backend="cuda")
    b = arc.solve_ode(pendulum, SPAN, X0, **dense)
    same(a, b)
    assert np.array_equal(a(1.5), b(1.5))


@pytest.mark.long
def test_trees_and_projections(cupy):
    from archimedes.spatial import Quaternion

    def tumble(t, x):
        return {"q": x["q"].kinematics(x["w"]), "w": np.cross(x["w"], np.array([1.0, 2.0, 3.0]))}

    q = Quaternion(np.resize([1.0, 0.0, 0.0, 0.0], (3, 4)))
    x0 = {"q": q, "w": np.arange(9.0).reshape(3, 3) / 4.0}
    options = {"t_eval": np.linspace(0.0, 1.0, 5), "in_axes": 0}
    want = arc.solve_ode(tumble, (0.0, 1.0), x0, **options)
    got = arc.solve_ode(tumble, (0.0, 1.0), arc.tree.map(cupy.asarray, x0), **options)
    assert isinstance(got.x["w"], cupy.ndarray)
    same(got, want)


# ---- errors ------------------------------------------------------------------------------------


def test_mixing_and_single_solves_say_what_helps(cupy):
    there = cupy.asarray(X0)
    with pytest.raises(ValueError, match=r"args\[0\] is a NumPy array and x0 is a GPU array"):
        arc.solve_ode(pendulum, SPAN, there, args=(K,), in_axes=0)
    with pytest.raises(ValueError, match=r"single solve takes NumPy's.*in_axes=0"):
        arc.solve_ode(pendulum, SPAN, there[0], args=(1.0,))
    with pytest.raises(ValueError, match=r"backend='llvm', but the batch lies in GPU arrays"):
        arc.solve_ode(pendulum, SPAN, there, args=(1.0,), in_axes=(0, None), backend="llvm")
    with pytest.raises(ValueError, match="x0 is nan or infinite"):
        arc.solve_ode(pendulum, SPAN, there * np.nan, args=(1.0,), in_axes=(0, None))


def test_too_little_memory_loses_nothing(cupy):
    there, options = cupy.asarray(X0), {"args": (1.0,), "in_axes": (0, None), "method": "bs3"}
    with pytest.raises(DeviceError, match=r'memory of the GPU.*backend="cuda"'):
        arc.solve_ode(pendulum, SPAN, there, t_eval=np.linspace(0.0, 3.0, 10**6), **options)
    assert arc.solve_ode(pendulum, SPAN, there, t_eval=[3.0], **options).success.all()


def test_an_interrupt_returns_what_is_there(cupy, monkeypatch):
    monkeypatch.setattr(driver, "FIRST_THERE", 12)

    def stop(*reached):
        raise KeyboardInterrupt

    got = arc.solve_ode(
        *(pendulum, SPAN, X0),
        args=(K,),
        in_axes=0,
        t_eval=TIMES,
        method="bs3",
        rtol=1e-4,
        backend="cuda",
        progress=stop,
    )
    assert (got.status == -4).all() and np.isnan(got.x[:, -1]).all()
    assert not np.isnan(got.x[:, 1]).any()
    assert driver.AT_ONCE > 1
