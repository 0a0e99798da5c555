"""The book's algorithms for revolute joints (and a free base), on matrices of CasADi or JAX.

Angular part first, 6x6 matrices and columns (6, 1), as in Featherstone 2008, tables 5.1, 6.2 and
7.1; an `Algebra` says how matrices are made. Numbers that are zero are left out where the package
knows such (CasADi's sparsity).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FORMULAS", "Algebra", "in_casadi", "in_jax", "looped_c"]


@dataclass(frozen=True)
class Algebra:
    """How a package makes matrices."""

    matrix: Callable[[Any], Any]
    block: Callable[[Any], Any]
    column: Callable[[Any], Any]
    sin: Callable[[Any], Any]
    cos: Callable[[Any], Any]

    def skew(self, v: Any) -> Any:
        """The matrix of a cross product with a column (3, 1) or (6, 1)'s first three."""
        x, y, z = v[0:1, :], v[1:2, :], v[2:3, :]
        zero = self.matrix([[0.0]])
        return self.block([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def in_casadi() -> Algebra:
    """Matrices of scalars, whose zeros are known."""
    import casadi

    return Algebra(
        lambda x: casadi.sparsify(casadi.SX(np.array(x, dtype=float))),
        lambda rows: casadi.vertcat(*(casadi.horzcat(*row) for row in rows)),
        lambda x: x,
        casadi.sin,
        casadi.cos,
    )


def in_jax() -> Algebra:
    """Arrays."""
    import jax.numpy as jnp

    matrix = lambda x: jnp.array(x, dtype=float)
    return Algebra(matrix, jnp.block, lambda x: x[:, None], jnp.sin, jnp.cos)


def transform(n: Algebra, model: Any, i: int, q: Any) -> Any:
    """X (6, 6), from the parent's coordinates to those of link i; `q` (nq, 1) are its own."""
    place = n.matrix(model.positions[i].reshape(3, 1))
    if model.links[i].kind.name == "free":
        place, (w, K) = place + q[0:3, :], (q[3:4, :], n.skew(q[4:7, :]))
        R = n.matrix(np.eye(3)) + 2.0 * (w * K + K @ K) / (q[3:7, :].T @ q[3:7, :])
    else:
        K = n.skew(n.matrix(np.reshape(model.links[i].screw.axis, (3, 1))))
        R = n.matrix(np.eye(3)) + n.sin(q) * K + (1.0 - n.cos(q)) * (K @ K)
    E = (n.matrix(model.rotations[i]) @ R).T
    r = n.skew(place)
    return n.block([[E, n.matrix(np.zeros((3, 3)))], [-(E @ r), E]])


def inertia(n: Algebra, model: Any, i: int) -> Any:
    """I (6, 6) of a link."""
    m, (x, y, z) = model.masses[i], model.centers[i]
    c = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    J = model.inertias[i] - m * (c @ c)
    return n.matrix(np.block([[J, m * c], [-m * c, m * np.eye(3)]]))


def axis(n: Algebra, model: Any, i: int) -> Any:
    """S (6, 1) of a revolute joint, (6, 6) of a free one, whose linear velocity is first."""
    if model.links[i].kind.name == "free":
        return n.matrix(np.roll(np.eye(6), 3, axis=0))
    return n.matrix(np.concatenate([model.links[i].screw.axis, np.zeros(3)]).reshape(6, 1))


def parts(n: Algebra, model: Any, x: Any, what: str = "v") -> list[Any]:
    """Return what links have of velocities (nv,), or coordinates (nq,), as columns."""
    return [
        n.column(x[getattr(k, what) : getattr(k, what) + getattr(k.kind, f"n{what}")])
        for k in model.links
    ]


def crossed(n: Algebra, v: Any) -> Any:
    """v x (6, 6), of motions."""
    w, zero = n.skew(v), n.matrix(np.zeros((3, 3)))
    return n.block([[w, zero], [n.skew(v[3:6, :]), w]])


def lifted(n: Algebra, model: Any) -> Any:
    """The acceleration of the world that stands for gravity."""
    return n.matrix(np.array([0.0, 0.0, 0.0, *-np.asarray(model.gravity)]).reshape(6, 1))


def swept(n: Algebra, model: Any, q: Any, v: Any) -> list[tuple[Any, ...]]:
    """Return, per link, X, S, its velocity and what it accelerates by at rest of its joint."""
    found: list[tuple[Any, ...]] = []
    coordinates, speeds = parts(n, model, q, "q"), parts(n, model, v)
    for i, link in enumerate(model.links):
        X, S = transform(n, model, i, coordinates[i]), axis(n, model, i)
        own = S @ speeds[i]
        speed = own if link.parent < 0 else X @ found[link.parent][2] + own
        found.append((X, S, speed, crossed(n, speed) @ own))
    return found


def rnea(n: Algebra, model: Any, q: Any, v: Any, a: Any) -> list[Any]:
    """Torques, a column per joint."""
    links, forces, accelerations = swept(n, model, q, v), [], []
    rates, count = parts(n, model, a), len(model.links)
    for i, (X, S, speed, c) in enumerate(links):
        up = model.links[i].parent
        above = lifted(n, model) if up < 0 else accelerations[up]
        accelerations.append(X @ above + S @ rates[i] + c)
        own = inertia(n, model, i)
        forces.append(own @ accelerations[i] - crossed(n, speed).T @ (own @ speed))
    tau = [None] * count
    for i in reversed(range(count)):
        X, S = links[i][:2]
        tau[i] = S.T @ forces[i] + float(model.armature[model.links[i].v]) * rates[i]
        if model.links[i].parent >= 0:
            forces[model.links[i].parent] = forces[model.links[i].parent] + X.T @ forces[i]
    return tau


def crba(n: Algebra, model: Any, q: Any) -> list[Any]:
    """The mass matrix, row by row."""
    count = model.nv
    X = [transform(n, model, i, x) for i, x in enumerate(parts(n, model, q, "q"))]
    S = [axis(n, model, i) for i in range(count)]
    heavy = [inertia(n, model, i) for i in range(count)]
    M = [[n.matrix([[0.0]])] * count for _ in range(count)]
    for i in reversed(range(count)):
        up = model.links[i].parent
        if up >= 0:
            heavy[up] = heavy[up] + X[i].T @ heavy[i] @ X[i]
        F, j = heavy[i] @ S[i], i
        M[i][i] = S[i].T @ F + float(model.armature[i])
        while model.links[j].parent >= 0:
            F, j = X[j].T @ F, model.links[j].parent
            M[i][j] = M[j][i] = F.T @ S[j]
    return [entry for row in M for entry in row]


def aba(n: Algebra, model: Any, q: Any, v: Any, tau: Any) -> list[Any]:
    """Accelerations, one number each."""
    links, heavy, p = swept(n, model, q, v), [], []
    for i, (_, _, speed, _) in enumerate(links):
        heavy.append(inertia(n, model, i))
        p.append(-(crossed(n, speed).T @ (heavy[i] @ speed)))
    kept = []
    for i in reversed(range(model.nv)):
        X, S, _, c = links[i]
        U = heavy[i] @ S
        D = S.T @ U + float(model.armature[i])
        u = tau[i] - S.T @ p[i]
        kept.append((U, D, u))
        up = model.links[i].parent
        if up >= 0:
            Ia = heavy[i] - (U @ U.T) / D
            heavy[up] = heavy[up] + X.T @ Ia @ X
            p[up] = p[up] + X.T @ (p[i] + Ia @ c + U * (u / D))
    found: list[Any] = []
    moved: list[Any] = []
    for i, (U, D, u) in enumerate(reversed(kept)):
        X, S, _, c = links[i]
        up = model.links[i].parent
        a = X @ (lifted(n, model) if up < 0 else moved[up]) + c
        found.append((u - U.T @ a) / D)
        moved.append(a + S * found[i])
    return found


#: Functions by the name they have in the package; how many vectors they take.
FORMULAS: dict[str, tuple[Callable[..., list[Any]], int]] = {
    "rnea": (rnea, 3),
    "crba": (crba, 1),
    "aba": (aba, 3),
}

LOOP = """
void looped(const double *x, double *out, long count, long n, long outputs) {
    double w[100000];
    long long iw[16];
    for (long i = 0; i < count; i++) {
        const double *arg[] = {x + i * n, x + (count + i) * n, x + (2 * count + i) * n};
        double *res[] = {out + i * outputs};
        f(arg, res, iw, w, 0);
    }
}
"""


def looped_c(function: Any, outputs: int) -> Callable[[Any], Any]:
    """Return a call of CasADi's C for many rows of up to three arguments (k, count, n)."""
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
        out = np.empty((count, outputs))
        call(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
             ctypes.c_long(count), ctypes.c_long(n), ctypes.c_long(outputs))  # fmt: skip
        return out

    return looped
