"""Functions of PyTorch's tensors and JAX's arrays on the device: a batch of a million, in place.

``python -m tests.cuda.device_learning`` runs this alone, in a minute. It needs the package's own
dependencies (NumPy, SciPy, llvmlite, PyYAML, tqdm, Matplotlib), CuPy, and PyTorch or JAX or both.
``--cpu`` tries the script where there is no GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

import archimedes as arc

__all__ = ["check_all"]

COUNT = 1_000_000
#: Calls that are timed.
CALLS = 20


def _model(x: Any, gain: Any) -> Any:
    """Return a step of a pendulum with a drive."""
    rate = x[1] + 0.01 * (gain[0] * np.sin(x[0]) - gain[1] * x[1])
    return np.stack([x[0] + 0.01 * rate, rate])


BATCH = arc.vmap(_model, in_axes=(0, None))


def _case(count: int) -> tuple[np.ndarray, np.ndarray, bytes, np.ndarray]:
    """Return states, gains, the bits of the results on the CPU, and the gradient of their sum."""
    x, gain = np.random.default_rng(5).normal(size=(count, 2)), np.array([-9.81, 0.1])
    slope = np.stack([0.0101 * np.sin(x[:, 0]), -0.0101 * x[:, 1]], axis=1)
    return x, gain, BATCH(x, gain).tobytes(), slope.sum(axis=0)


def check_all(say: Callable[[str], None], count: int = COUNT, on_gpu: bool = True) -> bool:
    """Compare results, derivatives and memory of both packages; return whether all is as it should.

    A package that is not installed is named, and is no failure.
    """
    good = True
    for check in (_torch, _jax):
        try:
            good &= check(say, count, on_gpu)
        except ImportError as error:
            say(f"{check.__name__[1:]}: {error.name or error} is not installed")
        except Exception:  # the other package shall be tried too
            good = False
            say(f"{check.__name__[1:]} FAILED: {traceback.format_exc(limit=-4)}")
    return good


def _torch(say: Callable[[str], None], count: int, on_gpu: bool) -> bool:
    import torch

    device = "cuda" if on_gpu else "cpu"
    synchronize = torch.cuda.synchronize if on_gpu else lambda: None
    x, gain, expected, slope = _case(count)
    f = arc.to_torch(BATCH)
    states = torch.from_numpy(x).to(device)
    gains = torch.from_numpy(gain).to(device).requires_grad_()
    own = _taken_by_torch if on_gpu else lambda call: (call(), 0)
    facts = _in_place(lambda: f(states, gains), own, lambda y: y.data_ptr(), on_gpu)
    y = facts.pop("results")
    y.sum().backward()
    facts["results have the bits of the CPU"] = y.detach().cpu().numpy().tobytes() == expected
    facts["gradient is right"] = np.allclose(gains.grad.cpu().numpy(), slope, rtol=1e-9)
    fixed = gains.detach()
    facts["ms per call"] = _milliseconds(lambda: f(states, fixed), synchronize)
    few, some = states[:3].clone().requires_grad_(), gains.detach().requires_grad_()
    facts["gradcheck"] = torch.autograd.gradcheck(f, (few, some))
    facts["gradgradcheck"] = torch.autograd.gradgradcheck(f, (few, some))
    return _report(say, f"PyTorch {torch.__version__} on {states.device}", count, x, facts)


def _jax(say: Callable[[str], None], count: int, on_gpu: bool) -> bool:
    import jax
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    x, gain, expected, slope = _case(count)
    f = arc.to_jax(BATCH)
    states, gains = jax.numpy.asarray(x), jax.numpy.asarray(gain)
    own = _taken_by_jax if on_gpu else lambda call: (call(), 0)
    facts = _in_place(lambda: f(states, gains), own, lambda y: y.unsafe_buffer_pointer(), on_gpu)
    y = facts.pop("results")
    facts["results are where the arguments are"] = y.devices() == states.devices()
    facts["results have the bits of the CPU"] = np.asarray(y).tobytes() == expected
    gradient = jax.grad(lambda g: f(states, g).sum())(gains)
    facts["gradient is right"] = np.allclose(np.asarray(gradient), slope, rtol=1e-9)
    call = lambda: f(states, gains).block_until_ready()
    facts["ms per call"] = _milliseconds(call, call)
    check_grads(f, (states[:3], gains), order=2)
    facts["check_grads to second order"] = True
    (where,) = states.devices()
    return _report(say, f"JAX {jax.__version__} on {where}", count, x, facts)


# ---- memory and time -----------------------------------------------------------------------------


def _in_place(
    call: Callable[[], Any],
    own: Callable[[Callable[[], Any]], tuple[Any, int]],
    address: Callable[[Any], int],
    on_gpu: bool,
) -> dict[str, Any]:
    """Call a few times; return the results of the last call, and what says that nothing was copied.

    A call without copies takes the memory of its results, once, and nothing else. ``own`` calls and
    returns the bytes that the package itself has taken for it.
    """
    for _ in range(3):
        call()
    taken = _allocations() if on_gpu else nullcontext()
    with taken:
        results, by_package = own(call)
    if not on_gpu:
        return {"results": results}
    blocks = taken.blocks
    size = sum(size for _, size in blocks)
    # CuPy's blocks are multiples of 512 bytes.
    return {
        "results": results,
        "bytes of the results": f"{results.nbytes:,}",
        "bytes taken from CuPy": f"{size:,} in {len(blocks)} blocks",
        "bytes taken from the package": f"{by_package:,}",
        "nothing is taken but the results": size < results.nbytes + 4096 and by_package == 0,
        "results are where the kernel wrote them": address(results) in {at for at, _ in blocks},
    }


def _allocations() -> Any:
    """Return a context that lists the blocks of memory that CuPy gives."""
    import cupy

    class Allocations(cupy.cuda.MemoryHook):
        name = "Allocations"

        def __init__(self) -> None:
            self.blocks: list[tuple[int, int]] = []

        def malloc_postprocess(self, **facts: Any) -> None:
            self.blocks.append((facts["mem_ptr"], facts["mem_size"]))

    return Allocations()


def _taken_by_torch(call: Callable[[], Any]) -> tuple[Any, int]:
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    results = call()
    torch.cuda.synchronize()
    return results, torch.cuda.max_memory_allocated() - before


def _taken_by_jax(call: Callable[[], Any]) -> tuple[Any, int]:
    import jax

    (device,) = jax.devices()[:1]
    before = (device.memory_stats() or {}).get("bytes_in_use", 0)
    results = call().block_until_ready()
    return results, (device.memory_stats() or {}).get("bytes_in_use", 0) - before


def _milliseconds(call: Callable[[], Any], synchronize: Callable[[], Any]) -> str:
    """Return how long a call takes when many follow each other."""
    call()
    synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    synchronize()
    return f"{1e3 * (time.perf_counter() - begin) / CALLS:.3f}"


def _report(
    say: Callable[[str], None], name: str, count: int, x: np.ndarray, facts: dict[str, Any]
) -> bool:
    say(f"{name}: {count:,} instances, {x.nbytes:,} bytes of states")
    for what, value in facts.items():
        say(f"  {what}: {value}")
    return all(value is not False for value in facts.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cuda.device_learning")
    parser.add_argument("--count", type=int, default=COUNT, help="instances in the batch")
    parser.add_argument("--cpu", action="store_true", help="on the CPU, to try the script")
    given = parser.parse_args()
    # JAX would take most of the memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if not given.cpu:
        from .__main__ import device_facts

        device_facts()
    good = check_all(lambda text: print(text, flush=True), given.count, on_gpu=not given.cpu)
    print("all as it should be" if good else "NOT as it should be")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
