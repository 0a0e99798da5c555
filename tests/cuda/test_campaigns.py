"""Campaigns on a device, which is emulated: parameters are drawn there, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.cuda.cuda_kernel import CudaProgram
from archimedes.errors import DeviceError
from archimedes.simulate import (
    Choice,
    Integers,
    LogNormal,
    MultivariateNormal,
    Normal,
    RunKey,
    Truncated,
    Uniform,
)

from . import fake_cupy
from .test_runtime import INSTALL, no_cupy

__all__ = ["no_cupy"]

DISPERSED = {
    "angle": Normal(1.0, 0.2),
    "stiffness": Uniform(1.0, 3.0),
    "key": RunKey(),
    "offset": MultivariateNormal(np.zeros(2), np.array([[1.0, 0.2], [0.2, 2.0]])),
    "choice": Choice([1.0, 2.0]),
    "scale": LogNormal(0.0, 0.1),
    "number": Integers(0, 5),
    "bounded": Truncated(Normal(), -1.0, 1.0),
    "fixed": 3.0,
}


def swing(params):
    f = lambda t, x, k: np.array([x[1], -k * np.sin(x[0])])
    x0 = np.stack([params["angle"], 0.0])
    end = arc.odeint(f, (0.0, 1.0), x0, method="bs3", rtol=1e-3, args=(params["stiffness"],))
    noise = arc.random.normal(params["key"])
    return {"end": end, "noise": noise, "sum": np.sum(params["offset"]) * params["fixed"]}


def test_the_numbers_of_the_cpu(monkeypatch):
    want = arc.monte_carlo(swing, DISPERSED, 40, seed=3)
    given, launch = [], CudaProgram.call_batch_from_host

    def watched(self, inputs, *rest, **more):
        given.append([(x.dtype.name, x.shape) for x in inputs])
        return launch(self, inputs, *rest, **more)

    monkeypatch.setattr(CudaProgram, "call_batch_from_host", watched)
    with fake_cupy.installed():
        got = arc.monte_carlo(swing, DISPERSED, 40, seed=3, backend="cuda", chunk=32)
    numbers = [[("int64", (count,))] for count in (32, 8, 40)]
    assert given == numbers, "only numbers of runs go there, and all once more for the parameters"
    for name in ("params", "results"):
        pairs = zip(arc.tree.leaves(getattr(got, name)), arc.tree.leaves(getattr(want, name)))
        for a, b in pairs:
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes()
    assert repr(got) == repr(want)


def test_what_is_the_same_in_all_runs():
    with fake_cupy.installed():
        got = arc.monte_carlo(lambda p: p["a"] * 2.0, {"a": 4.0}, 3, backend="cuda")
    assert got.results.tolist() == [8.0, 8.0, 8.0]


def test_without_cupy_the_error_names_the_extra(no_cupy):
    with pytest.raises(DeviceError, match=INSTALL):
        arc.monte_carlo(swing, DISPERSED, 4, backend="cuda")
    options = {"t_eval": [1.0], "in_axes": 0}
    with pytest.raises(DeviceError, match=INSTALL):
        arc.solve_ode(lambda t, x: -x, (0.0, 1.0), np.ones((2, 1)), **options, backend="cuda")
    assert arc.solve_ode(lambda t, x: -x, (0.0, 1.0), np.ones((2, 1)), **options).success.all()
    with pytest.raises(ValueError, match="monte_carlo: backend='gpu' is not one of"):
        arc.monte_carlo(swing, DISPERSED, 4, backend="gpu")
