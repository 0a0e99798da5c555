"""Functions of PyTorch's tensors: derivatives against PyTorch's checks, memory, maps, mistakes."""

from __future__ import annotations

import threading
import tracemalloc
import weakref
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import DeviceError, ShapeDtypeError
from archimedes.interchange import to_torch
from archimedes.interchange.torch_functions import DeviceExchange
from archimedes.spatial import Quaternion

from ..cuda import fake_cupy
from ..optional_packages import import_or_skip
from .differentiable import CASES, Pendulum

torch = import_or_skip("torch")


def tensors(arrays):
    return [torch.tensor(np.array(x)).requires_grad_() for x in arrays]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.long_cases("arithmetic", "drone", "solve", "arm", "table")
def test_gradcheck(name):
    case = CASES[name]
    f, at = to_torch(case.function), tensors(case.args)
    assert torch.autograd.gradcheck(f, at, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, at, check_fwd_over_rev=True)


@pytest.fixture(scope="module")
def mapped():
    """A function of an instance and what all share, and its map."""

    def f(x, w):
        return np.tanh(x @ w["a"]) * w["b"], np.sum(x) > 0.0

    return to_torch(f), to_torch(arc.vmap(f, in_axes=(0, None)))


SHARED = {"a": torch.tensor([[0.4], [-1.0], [0.2]]).double(), "b": torch.tensor(1.5).double()}
ROWS = torch.linspace(-1.0, 1.0, 12).double().reshape(4, 3)


def test_maps_and_their_derivatives(mapped):
    one, many = mapped
    of = lambda x, a, b: many(x, {"a": a, "b": b})[0]
    at = [x.clone().requires_grad_() for x in (ROWS, SHARED["a"], SHARED["b"])]
    assert torch.autograd.gradcheck(of, at, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(of, at, check_fwd_over_rev=True)
    # torch.vmap of the function is the map; a loop over the instances is the oracle.
    value, positive = torch.func.vmap(one, in_dims=(0, None))(ROWS, SHARED)
    assert positive.dtype == torch.bool and not positive.requires_grad
    for k, row in enumerate(ROWS):
        expected = torch.tanh(row @ SHARED["a"]) * SHARED["b"]
        torch.testing.assert_close(value[k], expected, rtol=1e-14, atol=0.0)
    assert torch.equal(value, many(ROWS, SHARED)[0])
    nested = torch.func.vmap(torch.func.vmap(one, (0, None)), (0, None))
    assert torch.equal(nested(ROWS.reshape(2, 2, 3), SHARED)[0].reshape(4, 1), value)


def test_transformations_agree(mapped):
    f = lambda x: mapped[0](x, SHARED)[0][0]
    reference = torch.func.hessian(lambda x: (torch.tanh(x @ SHARED["a"]) * SHARED["b"])[0])
    fwd, rev = torch.func.jacfwd, torch.func.jacrev
    for outer, inner in ((fwd, rev), (rev, fwd), (fwd, fwd), (rev, rev)):
        got = torch.func.vmap(outer(inner(f)))(ROWS)
        want = torch.stack([reference(x) for x in ROWS])
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)


def test_results_without_derivatives_between_others():
    f = to_torch(lambda x: (np.sum(x > 0.0), x**2, x > 0.5, np.sum(x**3)))
    x = torch.tensor([0.3, -1.2, 0.8], dtype=torch.float64, requires_grad=True)
    _, square, _, cube = f(x)
    (slope,) = torch.autograd.grad(2.0 * square.sum() + cube, x)
    torch.testing.assert_close(slope, 4.0 * x + 3.0 * x**2, rtol=1e-14, atol=0.0)
    out, push = torch.func.jvp(lambda x: f(x)[1::2], (x,), (torch.ones(3).double(),))
    torch.testing.assert_close(push[1], torch.sum(3.0 * x**2), rtol=1e-14, atol=0.0)
    torch.testing.assert_close(out[1], torch.sum(x**3), rtol=1e-14, atol=0.0)


def test_shared_arguments_get_the_sum_over_the_batch(mapped):
    a, b = SHARED["a"].clone().requires_grad_(), SHARED["b"].clone().requires_grad_()
    (ga, gb) = torch.autograd.grad(mapped[1](ROWS, {"a": a, "b": b})[0].sum(), (a, b))
    (wa, wb) = torch.autograd.grad((torch.tanh(ROWS @ a) * b).sum(), (a, b))
    torch.testing.assert_close((ga, gb), (wa, wb), rtol=1e-13, atol=0.0)


def test_other_axes_and_empty_batches():
    f = to_torch(arc.vmap(lambda x, y: x * y, in_axes=(1, None)))
    x, y = torch.arange(6.0).reshape(2, 3), torch.tensor([2.0, 3.0])
    assert torch.equal(f(x, y), x.T * y)
    leading = to_torch(arc.vmap(lambda x, y: x * y, in_axes=(0, None)))
    y.requires_grad_()
    result = leading(torch.zeros(0, 2), y)
    assert result.shape == (0, 2)
    result.sum().backward()
    assert torch.equal(y.grad, torch.zeros(2))


def test_memory_is_shared():
    """NumPy allocates the results and nothing else, and tensors keep its memory."""
    f = to_torch(arc.vmap(lambda x: 2.0 * x))
    x = torch.ones(50_000, 3, dtype=torch.float64)
    for _ in range(8):
        f(x)
    tracemalloc.start()
    y = f(x)
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert torch.equal(y, 2.0 * x)
    assert x.nbytes <= now <= peak < 1.1 * x.nbytes


def test_tensors_on_a_gpu_are_used_on_the_stream_of_pytorch(monkeypatch):
    """On an emulated device: PyTorch here has none, so that only the exchange is tested."""
    streams = []
    current = lambda device: SimpleNamespace(cuda_stream=17)
    monkeypatch.setattr(torch.cuda, "current_stream", current)
    monkeypatch.setattr(torch, "from_dlpack", lambda array: array)
    rows = np.linspace(0.0, 1.0, 12).reshape(4, 3)
    with fake_cupy.installed() as cupy:
        cupy.cuda.ExternalStream = lambda pointer: streams.append(pointer) or nullcontext()
        exchange = DeviceExchange(torch.device("cuda", 0))
        f = arc.vmap(lambda x: np.sin(x) * x[0])
        tensor = fake_cupy.Tensor(rows)
        with exchange.working():
            array = exchange.array(tensor)
            assert array.held is tensor.held
            result = exchange.tensor(f(array))
        assert isinstance(result, cupy.ndarray) and streams == [17]
        assert result.get().tobytes() == f(rows).tobytes()


def test_arguments_are_not_kept():
    f = to_torch(lambda x: x * 2.0)
    x = torch.ones(3)
    alive = weakref.ref(x)
    f(x)
    del x
    assert alive() is None


def test_dtypes_are_those_of_the_function():
    f = to_torch(lambda x, n, b: (x * 2.0, x * np.ones(2), n + 1, b & True, 3.0, "text"))
    x32 = torch.tensor([1.0, 2.0], requires_grad=True)
    n, b = torch.tensor(4), torch.tensor(True)
    got = f(x32, n, b)
    assert [y.dtype for y in got[:4]] == [torch.float32, torch.float64, torch.int64, torch.bool]
    assert got[2].item() == 5 and got[4] == 3.0 and got[5] == "text"
    assert [y.requires_grad for y in got[:4]] == [True, True, False, False]
    (got[0].sum() + got[1].sum()).backward()
    assert x32.grad.dtype == torch.float32 and x32.grad.tolist() == [3.0, 3.0]


def test_trees_python_numbers_arrays_and_statics():
    f = to_torch(
        lambda s, t, gain=2.0, *, mode="a": {"r": s.dynamics(t, np.ones(2)) * gain, 1: mode}
    )
    length = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    model = Pendulum(length, damping=np.float64(0.3))
    for t in (0.0, 1.0):
        got = f(model, t, mode="b")
    want = 2.0 * Pendulum(0.5, 0.3).dynamics(0.0, np.ones(2))
    assert got[1] == "b" and np.array_equal(got["r"].detach().numpy(), want)
    assert len(f._tree._programs) == 1, "Python numbers are arguments, not parts of the program"
    got["r"][1].backward()
    np.testing.assert_allclose(length.grad, 2.0 * 9.81 / 0.25 * np.sin(1.0), rtol=1e-14)
    turned = to_torch(lambda q, v: q.rotate(v))
    attitude = arc.tree.map(torch.from_numpy, Quaternion(np.array([0.0, 1.0, 0.0, 0.0])))
    assert turned(attitude, torch.tensor([1.0, 2.0, 3.0]).double()).tolist() == [1.0, -2.0, -3.0]


def test_static_arguments_and_options_of_a_compiled_function():
    power = arc.compile(lambda x, n: x**n, static_argnames="n", numerics="fast")
    x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    to_torch(power)(x, 3).backward()
    assert x.grad.item() == 27.0


def test_other_threads():
    f = to_torch(lambda x: np.sum(np.sin(x) * x))
    grads: dict[int, torch.Tensor] = {}

    def work(k):
        for _ in range(5):
            x = torch.full((3,), float(k), dtype=torch.float64, requires_grad=True)
            f(x).backward()
            grads[k] = x.grad

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(8):
        expected = np.sin(k) + k * np.cos(k)
        np.testing.assert_allclose(grads[k].numpy(), expected, rtol=1e-14)


def test_only_what_is_needed_is_differentiated():
    """There is a callback in the function, of an argument that needs no derivative."""
    f = to_torch(lambda x, n: x * arc.callback(lambda n: 2 * n, n, n))
    x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    f(x, 4).backward()
    assert x.grad.item() == 8.0
    g = to_torch(lambda x: arc.callback(lambda x: 2.0 * x, x, x))
    with pytest.raises(arc.TraceError, match="callback"):
        g(x).backward()


def test_mistakes():
    f = to_torch(lambda x, y: x * y)
    one = torch.ones(3)
    with pytest.raises(ShapeDtypeError, match=r"y is a tensor of torch.float16.*\.float\(\)"):
        f(one, one.half())
    with pytest.raises(ShapeDtypeError, match=r"x is a tensor of torch.int32.*\.long\(\)"):
        f(one.int(), one)
    with pytest.raises(ShapeDtypeError, match="real and imaginary"):
        f(one.to(torch.complex64), one)
    with pytest.raises(ShapeDtypeError, match=r"layout torch.sparse_coo.*to_dense"):
        f(one.to_sparse(), one)
    with pytest.raises(DeviceError, match=r"x is on meta.*\.to\('cpu'\)"):
        f(one.to("meta"), one)
    with pytest.raises(ShapeDtypeError, match=r"different lengths: .*x: 3, .*y: 4"):
        to_torch(arc.vmap(lambda x, y: x * y))(one, torch.ones(4))
    with pytest.raises(ShapeDtypeError, match="no argument has an axis to map over"):
        to_torch(arc.vmap(lambda x: x, in_axes=None))(one)
    with pytest.raises(ValueError, match="leave out_axes=0"):
        to_torch(arc.vmap(lambda x: x, out_axes=1))
    with pytest.raises(TypeError, match=r"write arc.to_torch\(f\)\(x\)"):
        to_torch(3.0)
    x = torch.ones(3, requires_grad=True)
    z = x * 1.0
    y = f(z, z)
    z += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
