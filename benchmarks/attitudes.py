"""Attitudes against SciPy's Rotation: single calls in plain NumPy, batches as native kernels.

Results are compared before anything is timed (SciPy's matrices are the transposes of ours).
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 5
BATCH = 1_000_000

Pair = tuple[Callable[[], Any], Callable[[], Any]]


def _single() -> dict[str, Pair]:
    """One attitude, eager: (ours, SciPy's)."""
    from scipy.spatial.transform import Rotation

    from archimedes.spatial import Quaternion

    rng = np.random.default_rng(0)
    a, b = (v / np.linalg.norm(v) for v in rng.normal(size=(2, 4)))
    angles, vector = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    q, p = Quaternion(a), Quaternion(b)
    r, s = (Rotation.from_quat(v, scalar_first=True) for v in (a, b))
    return {
        "from_euler": (
            lambda: Quaternion.from_euler(angles, "xyz"),
            lambda: Rotation.from_euler("xyz", angles),
        ),
        "as_matrix": (q.as_matrix, r.as_matrix),
        "rotate": (lambda: q.rotate(vector, inverse=True), lambda: r.apply(vector)),
        "compose": (lambda: q * p, lambda: r * s),
        "inv": (q.inv, r.inv),
        "as_euler": (lambda: q.as_euler("xyz"), lambda: r.as_euler("xyz")),
    }


def _batches() -> dict[str, Pair]:
    """A million attitudes: native kernels on all cores, and SciPy."""
    from scipy.spatial.transform import Rotation

    import archimedes as arc
    from archimedes import spatial

    rng = np.random.default_rng(0)
    a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.normal(size=(2, BATCH, 4)))
    vectors, s = rng.normal(size=(BATCH, 3)), rng.random(BATCH)
    r, t = (Rotation.from_quat(v, scalar_first=True) for v in (a, b))
    multiply = arc.vmap(spatial.quaternion_multiply)
    rotate = arc.vmap(lambda q, v: spatial.quaternion_to_dcm(q).T @ v)
    matrix = arc.vmap(spatial.quaternion_to_dcm)
    between = arc.vmap(spatial.slerp)

    def scipy_slerp() -> Any:
        # Rotation has no slerp of pairs: the same by exp and log, vectorised.
        return r * Rotation.from_rotvec(s[:, None] * (r.inv() * t).as_rotvec())

    return {
        "compose": (lambda: multiply(a, b), lambda: r * t),
        "rotate": (lambda: rotate(a, vectors), lambda: r.apply(vectors)),
        "as_matrix": (lambda: matrix(a), r.as_matrix),
        "slerp": (lambda: between(a, b, s), scipy_slerp),
    }


def _array(x: Any) -> np.ndarray:
    """Numbers of a result of either library, quaternions scalar first and with w >= 0."""
    if hasattr(x, "as_quat") and not hasattr(x, "array"):
        x = x.as_quat(scalar_first=True)
    x = np.asarray(getattr(x, "array", x))
    return np.where(x[..., :1] < 0, -x, x) if x.shape[-1] == 4 else x


def _check(name: str, ours: Any, theirs: Any) -> None:
    a, b = _array(ours), _array(theirs)
    if a.shape[-2:] == (3, 3):
        b = np.swapaxes(b, -1, -2)
    np.testing.assert_allclose(a, b, atol=1e-13, err_msg=name)


def measure() -> dict[str, float]:
    """Seconds a call (best of several) by case and library."""
    found: dict[str, float] = {}
    for kind, cases, number, repeats in (
        ("single", _single(), 500, 60),
        ("batch", _batches(), 1, 5),
    ):
        for name, (ours, theirs) in cases.items():
            _check(name, ours(), theirs())
            tools = {f"{kind}|{name}|ours": ours, f"{kind}|{name}|SciPy": theirs}
            # In turn, so that both see the same moods of the machine.
            for _ in range(repeats):
                for key, run in tools.items():
                    seconds = timeit.timeit(run, number=number) / number
                    found[key] = min(seconds, found.get(key, seconds))
    return found


def tables() -> list[Table]:
    """Two tables: microseconds a single call, milliseconds a million."""
    found = medians(in_processes("benchmarks.attitudes", "measure", PROCESSES))
    made = []
    for kind, title, unit, scale in (
        ("single", "Attitudes, one eager call", "us", 1e6),
        ("batch", f"Attitudes, {BATCH:,} at once, native", "ms", 1e3),
    ):
        names = dict.fromkeys(key.split("|")[1] for key in found if key.startswith(kind))
        rows = []
        for name in names:
            ours, theirs = (found[f"{kind}|{name}|{tool}"] for tool in ("ours", "SciPy"))
            cells = (f"{scale * ours:.2f} {unit}", f"{scale * theirs:.2f} {unit}")
            rows.append((name, *cells, f"{theirs / ours:.2f}x"))
        note = f"Medians over {PROCESSES} processes of the best time."
        made.append(Table(title, ("operation", "Archimedes", "SciPy", "ratio"), rows, note))
    return made
