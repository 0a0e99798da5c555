"""Robots against other packages: MuJoCo, C of CasADi, JAX; 10,000 arms simulated.

All in float64 and, but for the simulation, in one thread; times are processor times, of theirs and
ours in turn, the least of several. "forward" is forward dynamics with damping, springs and
armature, contacts and limits off; MuJoCo's is `mj_forward`, less what it takes for a model without
bodies. C and JAX compute inverse dynamics of an arm by the book's 6x6 matrices
(`tests/multibody/dense_dynamics.py`): CasADi's C is compiled by gcc -O3 -march=native and looped
in C; JAX's is `jit(vmap(...))`. MJX is measured where it is installed (`MULTIBODY_MJX` may name a
folder with it and the MuJoCo that it is made for).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.multibody_timing import PROCESSES, alone, conditions, least
from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "mjx", "peer_tables", "simulated"]

COUNT, ARMS, STEPS = 1000, int(os.environ.get("MULTIBODY_ARMS", "10000")), 1000
#: Steps that MuJoCo's rollout makes; its time for all of them is in proportion.
THEIR_STEPS = int(os.environ.get("MULTIBODY_THEIR_STEPS", "100"))


def measure() -> dict[str, float]:
    """Times in s of one evaluation."""
    alone()
    found: dict[str, float] = {}
    for name in ("pusher", "humanoid"):
        found |= {f"{name} {k}": x for k, x in _forward(name).items()}
    return found | {f"rnea {k}": x for k, x in _inverse().items()}


def _assets(name: str) -> str:
    from tests.multibody.test_mujoco import GYM

    return str(GYM / f"{name}.xml")


def _forward(name: str) -> dict[str, float]:
    import mujoco

    import archimedes as arc
    from archimedes import multibody as mb

    model = mb.load(_assets(name))
    rng = np.random.default_rng(0)
    q = np.stack([mb.random_configuration(model, rng) for _ in range(COUNT)])
    v, tau = rng.normal(size=(2, COUNT, model.nv))
    ours = arc.vmap(
        arc.compile(lambda q, v, tau: mb.aba(model, q, v, tau, passive=True), backend="llvm"),
        threads=1,
    )
    theirs = mujoco.MjModel.from_xml_path(_assets(name))
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    made = ours(q, v, tau)
    empty = mujoco.MjModel.from_xml_string("<mujoco/>")
    data, nothing = mujoco.MjData(theirs), mujoco.MjData(empty)
    calls = {
        "ours": lambda: ours(q, v, tau, out=made),
        "MuJoCo": lambda: [mujoco.mj_forward(theirs, data) for _ in range(COUNT)],
        "overhead": lambda: [mujoco.mj_forward(empty, nothing) for _ in range(COUNT)],
    }
    times = {k: x / COUNT for k, x in least(calls).items()}
    times["MuJoCo"] -= times.pop("overhead")
    return times


def mjx() -> dict[str, float]:
    """Times in s of MJX's forward dynamics in a batch; none where it is not installed."""
    alone()
    if os.environ.get("MULTIBODY_MJX"):
        sys.path.insert(0, os.environ["MULTIBODY_MJX"])
    try:
        import jax
        import mujoco
        from mujoco import mjx
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    found = {}
    for name in ("pusher", "humanoid"):
        model = mujoco.MjModel.from_xml_path(_assets(name))
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        placed = mjx.put_model(model)
        data = jax.vmap(lambda _, placed=placed: mjx.make_data(placed))(np.arange(COUNT))
        step = jax.jit(jax.vmap(lambda d, placed=placed: mjx.forward(placed, d).qacc))
        call = lambda step=step, data=data: step(data).block_until_ready()
        found[f"{name} MJX"] = least({"MJX": call}, rounds=3)["MJX"] / COUNT
    return found


def _inverse() -> dict[str, float]:
    """Inverse dynamics of the arm: ours, CasADi's C, JAX."""
    import casadi
    import jax
    from tests.multibody.dense_dynamics import Numbers, torques
    from tests.multibody.robots import path_of

    import archimedes as arc
    from archimedes import multibody as mb

    jax.config.update("jax_enable_x64", True)
    model = mb.load(path_of("xarm7"))
    x = np.random.default_rng(0).normal(size=(3, COUNT, model.nv))
    rnea = arc.compile(lambda q, v, a: mb.rnea(model, q, v, a), backend="llvm")
    ours = arc.vmap(rnea, threads=1)
    made = ours(*x)
    symbols = [casadi.SX.sym(name, model.nv) for name in "qva"]
    numbers = Numbers(casadi.SX, casadi, object)
    parts = [np.array([s[k] for k in range(model.nv)], dtype=object) for s in symbols]
    formula = casadi.vertcat(*torques(numbers, model, *parts))
    looped = _looped_c(casadi.Function("f", symbols, [formula]))
    traced = jax.jit(jax.vmap(lambda q, v, a: _in_jax(model, q, v, a)))
    np.testing.assert_allclose(traced(*x), ours(*x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(looped(x), ours(*x), rtol=1e-9, atol=1e-9)
    calls = {
        "ours": lambda: ours(*x, out=made),
        "CasADi C": lambda: looped(x),
        "JAX": lambda: traced(*x).block_until_ready(),
    }
    return {k: t / COUNT for k, t in least(calls).items()}


def _in_jax(model: Any, q: Any, v: Any, a: Any) -> Any:
    """The same formulas on JAX's arrays, for revolute joints."""
    import jax.numpy as jnp

    zero = jnp.zeros((3, 3))
    skew = lambda x: jnp.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
    above = (jnp.zeros(6), jnp.concatenate([jnp.zeros(3), -jnp.asarray(model.gravity)]))
    motions, tau = [], [0.0] * model.nv
    for i, link in enumerate(model.links):
        axis = np.array(link.screw.axis)
        K = skew(axis)
        R = jnp.eye(3) + jnp.sin(q[i]) * K + (1.0 - jnp.cos(q[i])) * (K @ K)
        E = (model.rotations[i] @ R).T
        X = jnp.block([[E, zero], [-E @ skew(model.positions[i]), E]])
        v_up, a_up = above if link.parent < 0 else motions[link.parent][1:3]
        S = jnp.concatenate([axis, jnp.zeros(3)])
        v_i = X @ v_up + S * v[i]
        cross = jnp.block([[skew(v_i[:3]), zero], [skew(v_i[3:]), skew(v_i[:3])]])
        a_i = X @ a_up + S * a[i] + cross @ S * v[i]
        m, c = model.masses[i], skew(model.centers[i])
        inertia = jnp.block([[model.inertias[i] - m * (c @ c), m * c], [-m * c, m * jnp.eye(3)]])
        motions.append([X, v_i, a_i, inertia @ a_i - cross.T @ (inertia @ v_i), S])
    for i in reversed(range(len(model.links))):
        X, _, _, f, S = motions[i]
        tau[i] = S @ f + model.armature[i] * a[i]
        if model.links[i].parent >= 0:
            motions[model.links[i].parent][3] += X.T @ f
    return jnp.stack(tau)


LOOP = """
void looped(const double *x, double *out, long count, long n) {
    double w[100000];
    long long iw[16];
    for (long i = 0; i < count; i++) {
        const double *arg[] = {x + i * n, x + (count + i) * n, x + (2 * count + i) * n};
        double *res[] = {out + i * n};
        f(arg, res, iw, w, 0);
    }
}
"""


def _looped_c(function: Any) -> Callable[[Any], Any]:
    """Return a call of CasADi's C for many rows."""
    folder = Path(tempfile.mkdtemp())
    made = folder / "f.c"
    here = os.getcwd()
    os.chdir(folder)
    function.generate("f.c")
    os.chdir(here)
    made.write_text(made.read_text() + LOOP)
    library = folder / "f.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(made), "-o", str(library)], check=True)
    call = ctypes.CDLL(str(library)).looped

    def looped(x: np.ndarray) -> np.ndarray:
        _, count, n = x.shape
        out = np.empty((count, n))
        call(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
             ctypes.c_long(count), ctypes.c_long(n))  # fmt: skip
        return out

    return looped


def simulated() -> dict[str, float]:
    """10,000 arms at 1 kHz, all threads: MuJoCo's rollout against one map over a scan.

    Times are processor times of all threads, which other programs disturb least.
    """
    import mujoco
    from mujoco import rollout

    import archimedes as arc
    from archimedes import multibody as mb

    cores = len(os.sched_getaffinity(0))
    model = mb.load(_assets("pusher"))
    h = 1.0 / STEPS

    def step(x: Any, _: Any) -> tuple[Any, Any]:
        q, v = x
        v = v + h * mb.aba(model, q, v, np.zeros(model.nv), passive=True)
        return (q + h * v, v), None

    ours = arc.vmap(
        arc.compile(lambda q, v: arc.scan(step, (q, v), None, length=STEPS)[0], backend="llvm")
    )
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, ARMS, model.nv)) * 0.1
    theirs = mujoco.MjModel.from_xml_path(_assets("pusher"))
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    theirs.opt.timestep = h
    state = np.concatenate([np.zeros((ARMS, 1)), q, v], axis=1)
    data = [mujoco.MjData(theirs) for _ in range(cores)]
    ours(q[:8], v[:8])
    rollout.rollout(theirs, data, state[:8], nstep=1)
    return {
        "arms ours": _spent(lambda: ours(q, v)),
        "arms half": _spent(lambda: rollout.rollout(theirs, data, state, nstep=THEIR_STEPS // 2)),
        "arms MuJoCo": _spent(lambda: rollout.rollout(theirs, data, state, nstep=THEIR_STEPS)),
    }


def _spent(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def peer_tables() -> list[Table]:
    """Ratios to the others."""
    where = conditions()
    x = medians(in_processes("benchmarks.multibody_peers", "measure", PROCESSES))
    for function in ("simulated", "mjx"):
        x |= medians(in_processes("benchmarks.multibody_peers", function, 1))
    rows = []
    for name, what in (("pusher", "forward, arm on a table (11)"), ("humanoid", "forward, (23)")):
        ours = x[f"{name} ours"]
        for peer in ("MuJoCo", "MJX"):
            rows.append(_row(what, peer, ours, x.get(f"{name} {peer}")))
    for peer in ("CasADi C", "JAX"):
        rows.append(_row("inverse, xarm7 (7)", peer, x["rnea ours"], x[f"rnea {peer}"]))
    ours, theirs = x["arms ours"], x["arms MuJoCo"] * STEPS / THEIR_STEPS
    rows.append(
        (f"{ARMS:,} arms, 1 s at 1 kHz", "MuJoCo rollout", f"{ours:.1f} s", f"{theirs:.0f} s",
         f"{theirs / ours:.0f}")
    )  # fmt: skip
    columns = ("task", "against", "ours", "theirs", "ratio")
    growth = x["arms MuJoCo"] / x["arms half"]
    note = (
        f"{(__doc__ or '').strip()}\n\n{where} MuJoCo's rollout was measured over {THEIR_STEPS} "
        f"steps of all arms ({growth:.2f} times as long as over half as many), ours over {STEPS}; "
        "processor times of all threads."
    )
    return [Table("Robots against other packages", columns, rows, note)]


def _row(what: str, peer: str, ours: float, theirs: float | None) -> tuple[str, ...]:
    if theirs is None:
        return what, peer, f"{ours * 1e9:.0f} ns", "not installed", ""
    return what, peer, f"{ours * 1e9:.0f} ns", f"{theirs * 1e9:.0f} ns", f"{theirs / ours:.1f}"
