"""Two versions of this package, measured in turn: ``python -m benchmarks.versions OLD_TREE``.

Every row is timed in fresh processes that alternate between the two source trees, so that what
else the machine does meets both alike. Models and measurements are those of this tree; they use
public names alone.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import ROOT, Table, medians

__all__ = ["MEASUREMENTS", "compare"]

SECONDS = 0.25


def _best(run: Callable[[], Any], number: int = 1) -> float:
    """Seconds of one call, the best of as many as fit into the time there is."""
    run()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(number):
            run()
        best = min(best, (time.perf_counter() - start) / number)
    return best


def _once(run: Callable[[], Any]) -> float:
    """Seconds of one call, without Python's garbage collector, as ``timeit`` measures."""
    gc.disable()
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    gc.enable()
    return seconds


def imports() -> dict[str, float]:
    """Importing the package, after NumPy."""

    def load() -> None:
        import archimedes as arc

        assert arc.compile and arc.struct

    return {"import archimedes, first use of compile and struct": _once(load)}


def calls() -> dict[str, float]:
    """One call from Python."""
    import archimedes as arc
    from benchmarks.calls import _struct_model
    from benchmarks.models import rigid_body, rigid_body_point

    args = rigid_body_point(np.random.default_rng(0))
    model, structs = _struct_model()
    flat, jacobian, compiled = arc.compile(rigid_body), arc.jac(rigid_body), arc.compile(model)
    batch = arc.vmap(rigid_body, in_axes=(0, None, None, None, None))
    rows, out = np.stack([args[0]] * 4), np.empty(13)
    cases = {
        "structs": lambda: compiled(*structs),
        "flat": lambda: flat(*args),
        "flat, out=": lambda: flat(*args, out=out),
        "Jacobian": lambda: jacobian(*args),
        "vmap of 4": lambda: batch(rows, *args[1:]),
    }
    for run in cases.values():
        for _ in range(500):  # past the interpreter
            run()
    return {f"one call, {name}": _best(run, 5000) for name, run in cases.items()}


def recordings() -> dict[str, float]:
    """Recording a model, and its derivative graph."""
    from benchmarks.tracing import measure

    return {f"record {k}": v for k, v in measure().items() if not k.endswith("nodes")}


def first_calls() -> dict[str, float]:
    """Record, compile and run, with an empty disk cache."""
    from benchmarks.calls import first

    gc.disable()
    return {f"first call, {name}": seconds for name, seconds in first().items()}


def first_solves() -> dict[str, float]:
    """The first solve of a model in a process, with an empty disk cache."""
    import archimedes as arc
    from benchmarks.simulations_problems import PROBLEMS

    found = {}
    for name, p in PROBLEMS.items():
        span = (0.0, float(p.times[-1]))
        method = {"method": "rodas5p"} if p.stiff else {}
        found[f"first solve, {name}"] = _once(
            lambda p=p, span=span, method=method: arc.solve_ode(
                p.function, span, np.array(p.x0), **method
            )
        )
    return found


def batches() -> dict[str, float]:
    """Kernels over batches on one thread, per instance."""
    import archimedes as arc
    from benchmarks.kernels_batches import MODELS, _batch, _model

    found = {}
    for name in MODELS:
        f = arc.vmap(_model(name).function)
        for n in (256, 10_000):
            args = _batch(name, n)
            for _ in range(3):
                f(*args)
            found[f"batch of {n:,}, {name}"] = _best(lambda f=f, a=args: f(*a)) / n
    return found


def solves() -> dict[str, float]:
    """Solves once prepared: alone with outputs, many at once, stiff, with events."""
    import archimedes as arc

    moments = np.array([1.0, 2.0, 3.0])

    def spin(t, w):
        return -np.cross(w, moments * w) / moments

    def stiff(t, x):
        r1, r2, r3 = 0.04 * x[0], 3e7 * x[1] ** 2, 1e4 * x[1] * x[2]
        return np.stack([r3 - r1, r1 - r2 - r3, r2])

    def fall(t, x):
        return np.stack([x[1], -9.81])

    w0, many = np.array([0.1, 2.0, 0.1]), np.random.default_rng(0).normal(size=(2000, 3))
    bounce = arc.Event(lambda t, x: x[0], reset=lambda t, x: np.stack([0.0 * x[0], -0.8 * x[1]]))
    times = np.linspace(0.0, 20.0, 1000)
    cases = {
        "1,000 outputs": lambda: arc.solve_ode(spin, (0.0, 20.0), w0, t_eval=times),
        "dense": lambda: arc.solve_ode(spin, (0.0, 20.0), w0),
        "Robertson": lambda: arc.solve_ode(
            stiff, (0.0, 1e5), np.array([1.0, 0.0, 0.0]), method="rodas5p"
        ),
        "6 bounces": lambda: arc.solve_ode(fall, (0.0, 3.0), np.array([1.0, 0.0]), events=[bounce]),
        "odeint": lambda: arc.odeint(spin, (0.0, 20.0), w0, t_eval=times),
        "2,000 at once": lambda: arc.solve_ode(spin, (0.0, 20.0), many, t_eval=times[::100]),
    }
    return {f"solve, {name}": _best(run) for name, run in cases.items()}


def generated_code() -> dict[str, float]:
    """Generating C, and how many bytes of it."""
    import archimedes as arc
    from benchmarks.models import rigid_body, rigid_body_point

    args = rigid_body_point(np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        seconds = _once(lambda: arc.codegen(rigid_body, args, output_dir=folder))
        size = sum(p.stat().st_size for p in Path(folder).rglob("*.[ch]"))
    return {"codegen of the 6-dof body": seconds, "its C, MB": size * 1e-6}


def attitudes() -> dict[str, float]:
    """Attitudes: one of plain numbers, and a million by native kernels."""
    from benchmarks.attitudes import _batches, _single

    found = {f"attitude, {name}": _best(run, 200) for name, (run, _) in _single().items()}
    many = {f"10^6 attitudes, {name}": _best(run) for name, (run, _) in _batches().items()}
    return {**found, **many}


def loops() -> dict[str, float]:
    """RK4 of many bodies over many steps in one kernel, on one thread."""
    from benchmarks.kernels_loops import BODIES, STEPS, _initial, _ours

    x0, parameters = _initial()
    found = {}
    for numerics in ("strict", "fast"):
        f = _ours(parameters, numerics)
        f(x0[:8])
        found[f"RK4, {numerics}, a body-step"] = _once(lambda f=f: f(x0)) / (BODIES * STEPS)
    return found


def flights() -> dict[str, float]:
    """An F-16 flown for a minute: the first time, again, and many at once."""
    from benchmarks.flights import RTOL, _f16, _Flight

    flight = _Flight(_f16, 60.0)
    first = _once(lambda: flight.solve(RTOL))
    again = _best(lambda: flight.solve(RTOL))
    many = min(flight.each(1000) for _ in range(3))
    return {"F-16, first flight": first, "F-16, again": again, "F-16, 1,000": many}


def _arm(joints: int) -> str:
    """URDF of an arm whose axes turn by a quarter from joint to joint."""
    links = [
        f'<link name="l{k}"><inertial><origin xyz="0 0.02 0.1"/><mass value="{1 + 0.1 * k}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for k in range(joints + 1)
    ]
    hinges = [
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/>'
        '<origin xyz="0 0 0.3" rpy="1.5708 0 0"/><axis xyz="0 0 1"/></joint>'
        for k in range(joints)
    ]
    return f'<robot name="arm">{"".join(links + hinges)}</robot>'


def robots() -> dict[str, float]:
    """Algorithms for an arm with seven joints: in plain NumPy, the first call, and compiled."""
    import archimedes as arc
    from archimedes import multibody as mb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.urdf"
        path.write_text(_arm(7))
        model = mb.load(str(path), "fixed")
    q, v, u = np.random.default_rng(0).normal(size=(3, 7))
    cases = {"aba": (q, v, u), "rnea": (q, v, u), "crba": (q,), "aba_derivatives": (q, v, u)}
    found = {}
    for name, args in cases.items():
        algorithm = getattr(mb, name)
        plain = partial(algorithm, model)
        f = arc.compile(plain)
        found[f"{name} of 7 joints, NumPy"] = _best(lambda p=plain, a=args: p(*a))
        found[f"{name} of 7 joints, first call"] = _once(lambda f=f, a=args: f(*a))
        for _ in range(500):
            f(*args)
        found[f"{name} of 7 joints, compiled"] = _best(lambda f=f, a=args: f(*a), 200)
    return found


def minima() -> dict[str, float]:
    """Nonlinear programs: the first solve and the ones after it."""
    import archimedes as arc

    def cost(x):
        return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]

    def constr(x):
        return np.stack([x[0] * x[1] * x[2] * x[3], x @ x])

    def hs71():
        return arc.minimize(
            cost,
            np.array([1.0, 5.0, 5.0, 1.0]),
            constr=constr,
            bounds=(np.ones(4), 5 * np.ones(4)),
            constr_bounds=(np.array([25.0, 40.0]), np.array([np.inf, 40.0])),
            method="ipm",
        )

    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def valley():
        return arc.minimize(rosenbrock, np.full(10, -1.0), method="BFGS")

    def zeros():
        return arc.root(lambda x: np.stack([x[0] ** 2 + x[1] - 3, x[1] ** 2 - x[0]]), np.ones(2))

    cases = {"HS71 by ipm": hs71, "Rosenbrock in 10 variables by BFGS": valley, "root": zeros}
    return {
        **{f"first solve, {name}": _once(run) for name, run in cases.items()},
        **{f"again, {name}": _best(run) for name, run in cases.items()},
    }


MEASUREMENTS = {
    f.__name__: f
    for f in (
        imports,
        calls,
        recordings,
        first_calls,
        first_solves,
        batches,
        solves,
        generated_code,
        attitudes,
        loops,
        flights,
        robots,
        minima,
    )
}


def _measure(tree: Path, name: str) -> dict[str, float]:
    """Run one measurement on a source tree in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        paths = [str(tree / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "ARCHIMEDES_CACHE_DIR": cache,
            "ARCHIMEDES_THREADS": "1",
        }
        code = (
            "import json; from benchmarks.versions import MEASUREMENTS as m; "
            f"print(json.dumps(m[{name!r}]()))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=cache, env=env, capture_output=True, text=True
        )
    if done.returncode:
        raise RuntimeError(f"{name} failed on {tree}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(old: Path, names: list[str], processes: int = 5) -> Table:
    """Measure both trees in turn, and return medians and ratios."""
    rows = []
    for name in names or list(MEASUREMENTS):
        runs: dict[Path, list[dict[str, float]]] = {old: [], ROOT: []}
        for tree in (old, ROOT):
            _measure(tree, name)  # writes .pyc files
        for _ in range(processes):
            for tree, found in runs.items():
                found.append(_measure(tree, name))
        before, after = medians(runs[old]), medians(runs[ROOT])
        for key in before:
            ratio = after[key] / before[key]
            rows.append((key, f"{before[key]:.3g}", f"{after[key]:.3g}", f"{ratio:.2f}"))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return Table("Old and new", ("what", "old, s", "new, s", "new / old"), rows)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    count = int(os.environ.get("PROCESSES", "5"))
    print(compare(Path(arguments[0]).resolve(), arguments[1:], count).markdown())
