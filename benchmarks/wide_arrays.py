"""Wide arrays: first calls (record, compile, run; nothing from the disk), and then each call.

Peers do the same work on one thread in the same process: NumPy (its BLAS in matrix products), and
JAX where it is installed. Each call is the least of several, in turn with the peer's.
"""

from __future__ import annotations

import os
import tempfile
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 3
FIRST_CALLS = 20
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARCHIMEDES_THREADS")


def _energy(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def _least(*functions: Callable[[], Any]) -> list[float]:
    """Seconds of each function, called in turn."""
    best = [np.inf] * len(functions)
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        for k, run in enumerate(functions):
            start = time.perf_counter()
            run()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def _first(run: Callable[[], Any]) -> float:
    """CPU seconds of the first twenty calls: an interpreted one hides no compilation."""
    start = time.process_time()
    for _ in range(FIRST_CALLS):
        run()
    return time.process_time() - start


def measure() -> dict[str, float]:
    """Measure in this process."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARCHIMEDES_CACHE_DIR"] = folder
        return {**_sums(), **_products(), **_policy()}


def _readonly(*arrays: np.ndarray) -> None:
    for array in arrays:
        array.flags.writeable = False  # what is not writable need not be compared at each call


def _sums() -> dict[str, float]:
    import archimedes as arc

    found = {}
    arc.compile(_energy)(np.ones(4))
    for n in (10_000, 100_000, 1_000_000):
        x = np.random.default_rng(0).standard_normal(n)
        f, slope = arc.compile(_energy), arc.grad(_energy)
        found[f"sum(sin(x) x) of {n:,} first"] = _first(lambda f=f, x=x: f(x))
        found[f"its gradient of {n:,} first"] = _first(lambda f=slope, x=x: f(x))
        ours, theirs, back = _least(
            lambda f=f, x=x: f(x), lambda x=x: _energy(x), lambda f=slope, x=x: f(x)
        )
        found[f"sum(sin(x) x) of {n:,} ratio"] = theirs / ours
        found[f"its gradient of {n:,} ratio"] = 2.0 * theirs / back
    return found


def _products() -> dict[str, float]:
    import archimedes as arc

    found = {}
    rng = np.random.default_rng(1)
    for n in (100, 400, 1000, 2000):
        a, x = rng.standard_normal((n, n)), rng.standard_normal(n)
        _readonly(a)
        f, product = arc.compile(lambda x, a=a: np.tanh(a @ x)), arc.compile(lambda a, x: a @ x)
        found[f"tanh(A @ x) of {n} first"] = _first(lambda f=f, x=x: f(x))
        ours, theirs = _least(lambda f=f, x=x: f(x), lambda a=a, x=x: np.tanh(a @ x))
        found[f"tanh(A @ x) of {n} ratio"] = theirs / ours
        found[f"A @ x of {n} first"] = _first(lambda f=product, a=a, x=x: f(a, x))
        ours, theirs = _least(lambda f=product, a=a, x=x: f(a, x), lambda a=a, x=x: a @ x)
        found[f"A @ x of {n} ratio"] = theirs / ours
    a, b = rng.standard_normal((200, 200)), rng.standard_normal((200, 200))
    f = arc.compile(lambda a, b: a @ b)
    found["A @ B of 200 first"] = _first(lambda: f(a, b))
    ours, theirs = _least(lambda: f(a, b), lambda: a @ b)
    found["A @ B of 200 ratio"] = theirs / ours
    return found


def _policy() -> dict[str, float]:
    import archimedes as arc

    rng = np.random.default_rng(2)
    w1, w2, w3 = (0.1 * rng.standard_normal(s) for s in ((256, 8), (256, 256), (2, 256)))
    _readonly(w1, w2, w3)
    x = rng.standard_normal(8)

    def policy(x: Any) -> Any:
        return w3 @ np.tanh(w2 @ np.tanh(w1 @ x))

    def loss(w: Any) -> Any:
        return np.sum((w[2] @ np.tanh(w[1] @ np.tanh(w[0] @ x))) ** 2)

    f, slope, cost = arc.compile(policy), arc.grad(loss), arc.compile(loss)
    found = {"policy 2 x 256 first": _first(lambda: f(x))}
    ours, theirs = _least(lambda: f(x), lambda: policy(x))
    found["policy 2 x 256 ratio"] = theirs / ours
    weights = (w1, w2, w3)
    found["gradient in its weights first"] = _first(lambda: slope(weights))
    back, forward = _least(lambda: slope(weights), lambda: cost(weights))
    found["gradient in its weights ratio"] = forward / back
    return found


#: Elementwise programs of x and y, by text; ``np`` is NumPy or JAX's.
FUSED = {
    "x*y + x": lambda np, x, y: x * y + x,
    "sqrt(x*x + y*y)": lambda np, x, y: np.sqrt(x * x + y * y),
    "sin(x)*y": lambda np, x, y: np.sin(x) * y,
    "exp(-x*x) + y": lambda np, x, y: np.exp(-x * x) + y,
    "tanh(x + y)": lambda np, x, y: np.tanh(x + y),
    "sqrt(exp(x) + sin(y)**2) * tanh(x*y)": lambda np, x, y: (
        np.sqrt(np.exp(x) + np.sin(y) ** 2) * np.tanh(x * y)
    ),
}
FUSED_SIZES = (1_000, 10_000, 100_000, 1_000_000)
#: Seconds of calls at a reading of the clock, at least, and of all readings of a program.
READING, SECONDS = 1e-4, 1.0
#: Who computes, in the order of the columns.
COLUMNS = ("strict", "fast", "NumPy", "JAX", "copy")


def _least_cpu(*functions: Callable[[], Any]) -> list[float]:
    """CPU seconds of each function, called in turn: others on the machine count less.

    Short ones are called several times at a reading of the clock, which takes most of a
    microsecond itself.
    """
    counts = [max(1, int(READING / min(timeit.repeat(run, number=1)))) for run in functions]
    best = [np.inf] * len(functions)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for k, (run, count) in enumerate(zip(functions, counts)):
            start = time.process_time()
            for _ in range(count):
                run()
            best[k] = min(best[k], (time.process_time() - start) / count)
    return best


def measure_fused() -> dict[str, float]:
    """Elementwise programs and JAX's on one core: microseconds, and how many times ours."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import jax
    import jax.numpy as jnp

    import archimedes as arc

    jax.config.update("jax_enable_x64", True)
    found = {}
    for text, program in FUSED.items():
        for n in FUSED_SIZES:
            x, y = np.random.default_rng(0).standard_normal((2, n))
            given = jnp.asarray(x), jnp.asarray(y)
            ours, fast = (
                arc.compile(lambda x, y, program=program: program(np, x, y), numerics=mode)
                for mode in ("strict", "fast")
            )
            theirs = jax.jit(lambda x, y, program=program: program(jnp, x, y))
            for _ in range(FIRST_CALLS):
                ours(x, y), fast(x, y)
            theirs(*given).block_until_ready()
            times = _least_cpu(
                lambda f=ours, x=x, y=y: f(x, y),
                lambda f=fast, x=x, y=y: f(x, y),
                lambda f=program, x=x, y=y: f(np, x, y),
                lambda f=theirs, given=given: f(*given).block_until_ready(),
                lambda x=x: x.copy(),
            )
            found |= _named(text, n, times)
    return found | _policies(10_000)


def _named(text: str, n: int, times: list[float]) -> dict[str, float]:
    return {f"{text}|{n}|{k}": t for k, t in zip(COLUMNS, times)}


def _policies(n: int) -> dict[str, float]:
    """Many policies at once: with weights that are constant, or an argument, and gradients."""
    import jax
    import jax.numpy as jnp

    import archimedes as arc

    rng = np.random.default_rng(2)
    w1, w2, w3 = w = tuple(0.1 * rng.standard_normal(s) for s in ((256, 8), (256, 256), (2, 256)))
    _readonly(*w)
    x = rng.standard_normal((n, 8))

    def policy(np: Any, w: Any, x: Any) -> Any:
        return w[2] @ np.tanh(w[1] @ np.tanh(w[0] @ x))

    def constant(np: Any) -> Callable[..., Any]:
        return lambda x: policy(np, w, x)

    def cost(np: Any) -> Callable[..., Any]:
        return lambda x: np.sum(policy(np, w, x) ** 2)

    def given(np: Any) -> Callable[..., Any]:
        return lambda w, x: policy(np, w, x)

    by_matrices = _least_cpu(lambda: np.tanh(np.tanh(x @ w1.T) @ w2.T) @ w3.T)[0]
    same = _batch_times(constant(np), constant(jnp), (x,), by_matrices)
    free = _batch_times(given(np), given(jnp), (w, x), by_matrices)
    back = _batch_times(arc.grad(cost(np)), jax.grad(cost(jnp)), (x,), np.nan)
    return {
        **_named("2 x 256 tanh policies", n, same),
        **_named("weights an argument", n, free),
        **_named("gradients of policies", n, back),
    }


def _batch_times(ours: Any, theirs: Any, given: tuple[Any, ...], plain: float) -> list[float]:
    """Seconds of a batch in both modes, of NumPy as given, of JAX and of a copy."""
    import jax
    import jax.numpy as jnp

    import archimedes as arc

    axes = (*[None] * (len(given) - 1), 0)
    strict, fast = (
        arc.vmap(arc.compile(ours, numerics=mode), in_axes=axes, threads=1)
        for mode in ("strict", "fast")
    )
    other, arrays = jax.jit(jax.vmap(theirs, in_axes=axes)), jax.tree.map(jnp.asarray, given)
    for _ in range(4):
        strict(*given), fast(*given)
    other(*arrays).block_until_ready()
    times = _least_cpu(
        lambda: strict(*given),
        lambda: fast(*given),
        lambda: other(*arrays).block_until_ready(),
        lambda: given[-1].copy(),
    )
    return [*times[:2], plain, *times[2:]]


#: Programs of one call that is cut into pieces for threads, with NumPy's BLAS on as many.
CUT = {
    "A @ x": (lambda a, x: a @ x, lambda n: ((n, n), (n,)), (1_000, 2_000)),
    "A @ B": (lambda a, b: a @ b, lambda n: ((n, n), (n, n)), (200, 1_000)),
}
CUT_FUSED = ("x*y + x", "sqrt(x*x + y*y)", "tanh(x + y)")
CUT_SIZES = (100_000, 1_000_000, 10_000_000)


def measure_threads() -> dict[str, float]:
    """Programs over all cores: seconds of wall clock, ours and NumPy's."""
    import archimedes as arc

    tasks = [
        (text, n, lambda x, y, program=program: program(np, x, y), ((n,), (n,)))
        for text, program in FUSED.items()
        if text in CUT_FUSED
        for n in CUT_SIZES
    ]
    tasks += [(text, n, f, shapes(n)) for text, (f, shapes, sizes) in CUT.items() for n in sizes]
    found = {}
    for text, n, program, shapes in tasks:
        given = [np.random.default_rng(0).standard_normal(shape) for shape in shapes]
        f = arc.compile(program)
        for _ in range(FIRST_CALLS if n < CUT_SIZES[-1] else 4):
            f(*given)
        ours, plain = _least(
            lambda f=f, given=given: f(*given),
            lambda f=program, given=given: f(*given),
        )
        found |= {f"{text}|{n}|ours": ours, f"{text}|{n}|NumPy": plain}
    return found


def _threads_table() -> Table:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    os.environ.update(dict.fromkeys(THREADS, str(cores)))
    found = medians(in_processes("benchmarks.wide_arrays", "measure_threads", PROCESSES))
    rows = []
    for text, n in dict.fromkeys(tuple(key.split("|")[:2]) for key in found):
        ours, plain = (found[f"{text}|{n}|{who}"] for who in ("ours", "NumPy"))
        rows.append([text, f"{int(n):,}", f"{1e6 * ours:.1f} us", f"{plain / ours:.2f}"])
    note = (
        f"Wall clock on {cores} cores, least of many, medians of {PROCESSES} processes; NumPy's "
        "time over ours. Loops from about 70 us on are cut into pieces for threads; NumPy's "
        "elementwise functions have one thread, its BLAS as many as ours."
    )
    return Table("One call over threads", ["program", "size", "ours", "NumPy"], rows, note)


def _fused_table() -> Table:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    found = medians(in_processes("benchmarks.wide_arrays", "measure_fused", PROCESSES))
    rows = []
    for text, n in dict.fromkeys(tuple(key.split("|")[:2]) for key in found):
        ours, fast, plain, other, copy = (found[f"{text}|{n}|{k}"] for k in COLUMNS)
        ratios = ["" if np.isnan(x) else f"{x / ours:.2f}" for x in (plain, other, copy)]
        fused = [f"{1e6 * fast:.1f} us", f"{other / fast:.2f}"]
        rows.append([text, f"{int(n):,}", f"{1e6 * ours:.1f} us", *ratios, *fused])
    note = (
        "One core, CPU time, least of many, medians of "
        f"{PROCESSES} processes; NumPy's, JAX's and a copy's time over ours. A copy of x moves two "
        "arrays, these programs at least three: 0.67 is the speed of memory. NumPy's x*y + x "
        "moves six, so that no more than twice its speed is there to be had where arrays do not "
        "stay in the first caches; sqrt(x*x + y*y) of 10,000 to 100,000 elements is as fast as "
        "the CPU's square root. Our functions are accurate to an ulp, and the same bits "
        "everywhere; XLA's tanh, a quotient of two polynomials, is off by up to 3. JAX's code has "
        'fused multiply-adds, ours with `numerics="fast"` too: the last two columns.'
    )
    columns = ["program", "elements", "ours", "NumPy", "JAX", "copy", "ours, fast", "JAX"]
    return Table("Fused elementwise programs", columns, rows, note)


def tables() -> list[Table]:
    """Return the tables of all programs."""
    # Libraries look at these as they are loaded: in the processes to come.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    found = medians(in_processes("benchmarks.wide_arrays", "measure", PROCESSES))
    names = [key.removesuffix(" first") for key in found if key.endswith(" first")]
    rows = [
        [name, f"{found[f'{name} first']:.2f} s", f"{found[f'{name} ratio']:.2f}"] for name in names
    ]
    note = (
        f"First: CPU time of the first {FIRST_CALLS} calls, nothing from the disk. Ratio: NumPy's "
        "time over ours, one thread, then each call; of gradients, twice the function's in NumPy "
        "over ours; of the gradient in weights, our own function over its gradient."
    )
    first = Table("Wide arrays", ["program", "first", "ratio"], rows, note)
    return [first, _fused_table(), _threads_table()]
