"""Robots against other packages: MuJoCo, MJX, C of CasADi, JAX; 10,000 arms simulated.

All in float64 and, but for the simulation, in one thread; times are processor times, of theirs and
ours in turn, the least of several. "forward" is forward dynamics with damping, springs and
armature, contacts and limits off; MuJoCo's is `mj_forward`, less what it takes for a model without
bodies. C and JAX compute the dynamics of an arm by the book's 6x6 matrices
(`multibody_formulas.py`): CasADi's C is compiled by gcc -O3 -march=native and looped in C; JAX's is
`jit(vmap(...))`. MJX is measured where it is installed (`MULTIBODY_MJX` may name a folder with it
and the MuJoCo that it is made for), with XLA's fusion switched off, which makes it thousands of
times slower on a CPU; it takes half a minute to compile. MuJoCo's rollout and ours both make all
steps of the same arms; `MULTIBODY_THEIR_ARMS` says of how many, by default of a tenth.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.multibody_formulas import FORMULAS, in_casadi, in_jax, looped_c
from benchmarks.multibody_timing import PROCESSES, alone, conditions, least
from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "mjx", "peer_tables", "simulated"]

COUNT, ARMS, STEPS = 1000, int(os.environ.get("MULTIBODY_ARMS", "10000")), 1000
#: Arms of which MuJoCo's rollout makes all steps; its time for all of them is in proportion.
THEIR_ARMS = min(ARMS, int(os.environ.get("MULTIBODY_THEIR_ARMS", "1000")))


def measure() -> dict[str, float]:
    """Times in s of one evaluation."""
    alone()
    found: dict[str, float] = {}
    for name in ("pusher", "humanoid"):
        found |= {f"{name} {k}": x for k, x in _forward(name).items()}
    for name in FORMULAS:
        found |= {f"{name} {k}": x for k, x in _arm(name).items()}
    return found


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
    """Times in s of MJX's forward dynamics of the arm in a batch; none where it is not installed.

    Contacts have to be switched off by themselves: without constraints MuJoCo looks for none, MJX
    does.
    """
    alone()
    os.environ["XLA_FLAGS"] += " --xla_disable_hlo_passes=fusion"
    if os.environ.get("MULTIBODY_MJX"):
        sys.path.insert(0, os.environ["MULTIBODY_MJX"])
    try:
        import jax
        import mujoco
        from mujoco import mjx
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    model = mujoco.MjModel.from_xml_path(_assets("pusher"))
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT
    placed = mjx.put_model(model)
    data = jax.vmap(lambda _: mjx.make_data(placed))(np.arange(COUNT))
    step = jax.jit(jax.vmap(lambda d: mjx.forward(placed, d).qacc))
    begin = time.process_time()
    ready = step.lower(data).compile()
    compiling = time.process_time() - begin
    spent = least({"MJX": lambda: ready(data).block_until_ready()}, rounds=3)["MJX"]
    return {"pusher MJX": spent / COUNT, "pusher MJX first": compiling}


def _arm(name: str) -> dict[str, float]:
    """One of the book's algorithms of the arm: ours, CasADi's C, JAX."""
    import casadi
    import jax
    from tests.multibody.robots import path_of

    import archimedes as arc
    from archimedes import multibody as mb

    jax.config.update("jax_enable_x64", True)
    model = mb.load(path_of("xarm7"))
    formula, arguments = FORMULAS[name]
    x = np.random.default_rng(0).normal(size=(3, COUNT, model.nv))
    used, function = x[:arguments], getattr(mb, name)
    three = lambda q, v, a: function(model, q, v, a)
    compiled = arc.compile(
        (lambda q: function(model, q)) if arguments == 1 else three, backend="llvm"
    )
    ours = arc.vmap(compiled, threads=1)
    made = ours(*used)
    symbols = [casadi.SX.sym(key, model.nv) for key in "qva"[:arguments]]
    written = casadi.densify(casadi.vertcat(*formula(in_casadi(), model, *symbols)))
    looped = looped_c(casadi.Function("f", symbols, [written]), written.numel())
    jnp = jax.numpy
    traced = jax.jit(
        jax.vmap(lambda *v: jnp.concatenate([e.ravel() for e in formula(in_jax(), model, *v)]))
    )
    flat = np.reshape(made, (COUNT, -1))
    for theirs in (traced(*used), looped(x)):
        np.testing.assert_allclose(theirs, flat, rtol=1e-8, atol=1e-8 * np.abs(flat).max())
    calls = {
        "ours": lambda: ours(*used, out=made),
        "CasADi C": lambda: looped(x),
        "JAX": lambda: traced(*used).block_until_ready(),
    }
    return {k: t / COUNT for k, t in least(calls).items()}


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
    some = slice(0, THEIR_ARMS)
    state = np.concatenate([np.zeros((THEIR_ARMS, 1)), q[some], v[some]], axis=1)
    data = [mujoco.MjData(theirs) for _ in range(cores)]
    ours(q[:8], v[:8])
    rollout.rollout(theirs, data, state[:8], nstep=1)
    ends: dict[str, Any] = {}
    spent = {
        "arms ours": _spent(lambda: ours(q, v)),
        "some ours": _spent(lambda: ends.update(ours=ours(q[some], v[some])[0])),
        "some MuJoCo": _spent(
            lambda: ends.update(MuJoCo=rollout.rollout(theirs, data, state, nstep=STEPS)[0])
        ),
    }
    # Both make semi-implicit steps; MuJoCo's are implicit in the damping, ours are not.
    np.testing.assert_allclose(ends["ours"], ends["MuJoCo"][:, -1, 1 : model.nq + 1], atol=0.05)
    return spent


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
        rows.append(_row(what, "MuJoCo", ours, x[f"{name} MuJoCo"]))
        if name == "pusher":
            rows.append(_row(what, "MJX", ours, x.get("pusher MJX")))
    for name, what in (("rnea", "inverse"), ("crba", "mass matrix"), ("aba", "forward")):
        for peer in ("CasADi C", "JAX"):
            rows.append(_row(f"{what}, xarm7 (7)", peer, x[f"{name} ours"], x[f"{name} {peer}"]))
    for arms, ours, part in ((THEIR_ARMS, x["some ours"], 1.0),
                             (ARMS, x["arms ours"], ARMS / THEIR_ARMS)):  # fmt: skip
        theirs = x["some MuJoCo"] * part
        rows.append(
            (f"{arms:,} arms, 1 s at 1 kHz", "MuJoCo rollout", f"{ours:.2f} s", f"{theirs:.1f} s",
             f"{theirs / ours:.0f}")
        )  # fmt: skip
    columns = ("task", "against", "ours", "theirs", "ratio")
    first = x.get("pusher MJX first")
    compiled = f" MJX took {first:.0f} s to compile." if first else ""
    note = (
        f"{(__doc__ or '').strip()}\n\n{where} MuJoCo's rollout made all {STEPS:,} steps of "
        f"{THEIR_ARMS:,} arms, its time for {ARMS:,} is in proportion; processor times of all "
        f"threads.{compiled}"
    )
    return [Table("Robots against other packages", columns, rows, note)]


def _row(what: str, peer: str, ours: float, theirs: float | None) -> tuple[str, ...]:
    if theirs is None:
        return what, peer, f"{ours * 1e9:.0f} ns", "not installed", ""
    return what, peer, f"{ours * 1e9:.0f} ns", f"{theirs * 1e9:.0f} ns", f"{theirs / ours:.1f}"
