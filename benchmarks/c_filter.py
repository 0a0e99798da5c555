"""A 15-state navigation filter as C for a Cortex-M4: loops, written out, and CasADi's.

An extended Kalman filter of position, velocity, Euler angles and the biases of accelerometers and
gyros, corrected by measured position and velocity (Groves, "Principles of GNSS, inertial, and
multisensor integrated navigation systems", 2013, ch. 14; a flat Earth). Flash is everything that
is linked, instructions are those of one step on the emulated board; a second table says where the
flash goes. Needs what ``c_code.py`` does.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import archimedes as arc
from benchmarks.c_code import Code, casadi_code, flash_parts, instructions, our_code
from benchmarks.c_code_cases import Case
from benchmarks.report import Table

__all__ = ["example", "filter_step", "tables"]

BOARD = "cortex-m4"
FLAGS = ("-Os", "-O2")
STEP, GRAVITY, STATES, MEASURED = 0.01, 9.81, 15, 6
REALS = {"double": np.float64, "float": np.float32}
_H = np.eye(STATES)[:MEASURED]


def _turned(e: Any, a: Any, xp: Any) -> list[Any]:
    """Body axes to north, east, down, by Euler angles (3-2-1)."""
    sr, cr, sp, cp, sy, cy = (f(e[k]) for k in range(3) for f in (xp.sin, xp.cos))
    return [
        cp * cy * a[0] + (sr * sp * cy - cr * sy) * a[1] + (cr * sp * cy + sr * sy) * a[2],
        cp * sy * a[0] + (sr * sp * sy + cr * cy) * a[1] + (cr * sp * sy - sr * cy) * a[2],
        -sp * a[0] + sr * cp * a[1] + cr * cp * a[2],
    ]


def _rates(e: Any, w: Any, xp: Any) -> list[Any]:
    """Rates of the Euler angles."""
    sr, cr, sp, cp = xp.sin(e[0]), xp.cos(e[0]), xp.sin(e[1]), xp.cos(e[1])
    turn = (sr * w[1] + cr * w[2]) / cp
    return [w[0] + sp * turn, cr * w[1] - sr * w[2], turn]


def _ahead(x: Any, u: Any, xp: Any) -> list[Any]:
    """Return the state after a step; ``xp`` has sin and cos."""
    p, v, e, ba, bg = (x[3 * k : 3 * k + 3] for k in range(5))
    a = _turned(e, [u[k] - ba[k] for k in range(3)], xp)
    r = _rates(e, [u[3 + k] - bg[k] for k in range(3)], xp)
    g = (0.0, 0.0, GRAVITY)
    moved = [p[k] + STEP * v[k] for k in range(3)]
    moved += [v[k] + STEP * (a[k] + g[k]) for k in range(3)]
    moved += [e[k] + STEP * r[k] for k in range(3)]
    return moved + [b[k] for b in (ba, bg) for k in range(3)]


def filter_step(x, P, u, y, Q, R):
    """Predict and correct: state (15,), covariance (15, 15), inputs (6,), measurements (6,)."""

    def ahead(x):
        return np.array(_ahead(x, u, np))

    F, x = arc.jac(ahead)(x), ahead(x)
    P = F @ P @ F.T + Q
    S = _H @ P @ _H.T + R
    K = np.linalg.solve(S, _H @ P).T
    return x + K @ (y - _H @ x), P - K @ (_H @ P)


def example() -> tuple[Any, ...]:
    """Arguments of ``filter_step``."""
    rng = np.random.default_rng(0)
    root = 0.1 * rng.normal(size=(STATES, STATES))
    x, P = 0.1 * rng.normal(size=STATES), root @ root.T + np.eye(STATES)
    u, y = rng.normal(size=MEASURED), rng.normal(size=MEASURED)
    return x, P, u, y, 0.01 * np.eye(STATES), np.eye(MEASURED)


def _casadi(graph: str) -> Any:
    """Return the same filter as one graph of scalars (SX), or of matrices (MX)."""
    import casadi as ca

    kind = getattr(ca, graph)
    x, u, y = (kind.sym(n, size) for n, size in (("x", STATES), ("u", MEASURED), ("y", MEASURED)))
    P0, Q, R = kind.sym("P", STATES, STATES), kind.sym("Q", STATES, STATES), kind.sym("R", 6, 6)
    xs, us = ca.SX.sym("x", STATES), ca.SX.sym("u", MEASURED)
    next_state = ca.vertcat(*_ahead(xs, us, ca))
    step = ca.Function("ahead", [xs, us], [next_state, ca.jacobian(next_state, xs)])
    moved, F = step(x, u)
    H = ca.sparsify(ca.DM(_H))
    P = F @ P0 @ F.T + Q
    S = H @ P @ H.T + R
    K = (ca.solve(S, H @ P) if graph == "SX" else ca.solve(S, H @ P, "qr")).T
    return ca.Function("model", [x, P0, u, y, Q, R], [moved + K @ (y - H @ moved), P - K @ (H @ P)])


def _codes(real: str) -> dict[str, Code]:
    case = Case(filter_step, example(), {}, 0)
    written_out = Case(arc.compile(filter_step, loops_from=10**6), case.args, {}, 0)
    kind = {"float_type": REALS[real]}
    return {
        'ours, optimize="smallest"': our_code(case, optimize="smallest", **kind),
        'ours, optimize="size"': our_code(case, optimize="size", **kind),
        'ours, optimize="speed"': our_code(case, **kind),
        "ours, written out": our_code(written_out, **kind),
        "CasADi, SX": casadi_code(_casadi("SX"), real),
        "CasADi, MX": casadi_code(_casadi("MX"), real),
    }


def _figures(code: Code, flags: str, dtype: Any) -> tuple[dict[str, int], int, np.ndarray]:
    """Bytes of flash by part, instructions, result."""
    return flash_parts(code, BOARD, flags), *instructions(code, example(), BOARD, flags, dtype)


def tables() -> list[Table]:
    """Flash and instructions of each version, in all and by what it is spent on."""
    rows, parts = [], []
    for real, dtype in REALS.items():
        codes = _codes(real)
        cases = [(name, flags) for name in codes for flags in FLAGS]
        # Compilers take the time, two at a time.
        with ThreadPoolExecutor(2) as pool:
            figures = [pool.submit(_figures, codes[name], flags, dtype) for name, flags in cases]
            found = {case: figure.result() for case, figure in zip(cases, figures)}
        first = next(iter(codes))
        tolerance = 1e-9 if real == "double" else 1e-3
        for name in codes:
            cells = []
            for flags in FLAGS:
                sizes, count, result = found[name, flags]
                best = found[first, flags]
                np.testing.assert_allclose(result, best[2], rtol=tolerance, atol=tolerance)
                size, least = (sum(x.values()) for x in (sizes, best[0]))
                cells += [f"{size} ({size / least:.2f})", f"{count} ({count / best[1]:.2f})"]
            rows.append((real, name, *cells))
            sizes, least = found[name, FLAGS[0]][0], found[first, FLAGS[0]][0]
            cells = [
                f"{x} ({x / least[what]:.2f})" if least[what] else str(x)
                for what, x in sizes.items()
            ]
            parts.append((real, name, *cells, str(sum(sizes.values()))))
    columns = [x for flags in FLAGS for x in (f"flash, {flags}", f"instructions, {flags}")]
    note = (
        "Bytes, and instructions of one step; in brackets how many times those of the first row. "
        "Contraction off. A Cortex-M4 has no arithmetic of doubles: the compiler's is linked and "
        "counted. SX is one graph of scalars, MX one of matrices, with sparse products and QR. "
        'optimize="smallest" puts the arithmetic of doubles into tables; "written out" is every '
        "element as a statement of its own."
    )
    title = "15-state navigation filter as C for a Cortex-M4"
    where = (
        f"Bytes, {FLAGS[0]}; in brackets how many times those of the first row. Model: what is "
        "generated for this filter, with its tables, loops and solves. Functions: sine and cosine "
        "(CasADi's: newlib's, with square root and its own errors), memcpy. Arithmetic: the "
        "compiler's of doubles, the part that all have to have; for floats ours needs none, since "
        "sine and cosine of a float are integer arithmetic there."
    )
    return [
        Table(title, ["type", "code", *columns], rows, note),
        Table(
            "Where its flash goes",
            ["type", "code", "model", "functions", "arithmetic", "all"],
            parts,
            where,
        ),
    ]
