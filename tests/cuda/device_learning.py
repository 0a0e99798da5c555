"""Functions of PyTorch's tensors and JAX's arrays on the device: a batch of a million, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc

__all__ = ["check_all"]

COUNT = 1_000_000


def _model(x: Any, gain: Any) -> Any:
    """Return a step of a pendulum with a drive."""
    rate = x[1] + 0.01 * (gain[0] * np.sin(x[0]) - gain[1] * x[1])
    return np.stack([x[0] + 0.01 * rate, rate])


def _case(count: int) -> tuple[np.ndarray, np.ndarray, bytes, np.ndarray]:
    """Return states, gains, the bits of the results on the CPU, and the gradient of their sum."""
    x, gain = np.random.default_rng(5).normal(size=(count, 2)), np.array([-9.81, 0.1])
    batch = arc.vmap(_model, in_axes=(0, None))
    slope = np.stack([0.0101 * np.sin(x[:, 0]), -0.0101 * x[:, 1]], axis=1)
    return x, gain, batch(x, gain).tobytes(), slope.sum(axis=0)


def check_all(say: Any, count: int = COUNT) -> None:
    """Compare results and gradients, and the memory that they take, of both packages."""
    for check in (_torch, _jax):
        try:
            check(say, count)
        except ImportError as error:
            say(f"{error.name}: not installed")


def _torch(say: Any, count: int) -> None:
    import torch

    x, gain, want, slope = _case(count)
    f = arc.to_torch(arc.vmap(_model, in_axes=(0, None)))
    states = torch.from_numpy(x).cuda()
    gains = torch.from_numpy(gain).cuda().requires_grad_()
    for _ in range(3):
        y = f(states, gains)
    pool = _pool()
    begin, before = pool.total_bytes(), torch.cuda.memory_allocated()
    y = f(states, gains)
    torch.cuda.synchronize()
    grown = pool.total_bytes() - begin, torch.cuda.memory_allocated() - before
    y.sum().backward()
    close = np.allclose(gains.grad.cpu().numpy(), slope, rtol=1e-9)
    say(
        f"to_torch, {count:,} instances: bits equal {y.detach().cpu().numpy().tobytes() == want}, "
        f"gradient right {close}; pools grew by {grown} bytes, results have {y.nbytes}"
    )
    few = states[:3].clone().requires_grad_()
    own = gains.detach().requires_grad_()
    first = torch.autograd.gradcheck(f, (few, own))
    second = torch.autograd.gradgradcheck(f, (few, own))
    say(f"gradcheck {first}, gradgradcheck {second}")


def _jax(say: Any, count: int) -> None:
    import jax
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    x, gain, want, slope = _case(count)
    f = arc.to_jax(arc.vmap(_model, in_axes=(0, None)))
    states, gains = jax.numpy.asarray(x), jax.numpy.asarray(gain)
    for _ in range(3):
        y = f(states, gains)
    pool = _pool()
    y = f(states, gains)
    here = pool.used_bytes()
    same = np.asarray(y).tobytes() == want
    grad = jax.grad(lambda g: f(states, g).sum())(gains)
    close = np.allclose(np.asarray(grad), slope, rtol=1e-9)
    say(
        f"to_jax on {y.device.platform}, {count:,} instances: bits equal {same}, gradient right "
        f"{close}; {here:,} bytes are CuPy's, results have {y.nbytes:,}"
    )
    check_grads(f, (states[:3], gains), order=2)
    say("check_grads to second order: passed")


def _pool() -> Any:
    import cupy

    return cupy.get_default_memory_pool()
