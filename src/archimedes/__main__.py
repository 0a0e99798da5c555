"""``python -m archimedes``: run the 6-dof rigid body every way the library can run it."""

from __future__ import annotations

import platform
import sys
import time

import numpy as np

import archimedes as arc
from archimedes.spatial import Quaternion, RigidBody


def _environment() -> None:
    print(f"Archimedes {arc.__version__}")
    print(f"  Python {sys.version.split()[0]}, NumPy {np.__version__}, {platform.machine()}")


def _example() -> tuple[RigidBody.State, RigidBody.Input]:
    """A body of 10 kg at rest, pushed along its z axis and turned about its y axis."""
    x = RigidBody.State(
        pos=np.array([0.0, 0.0, 10.0]),
        att=Quaternion.identity(),
        v_B=np.zeros(3),
        w_B=np.zeros(3),
    )
    u = RigidBody.Input(
        F_B=np.array([0.0, 0.0, 9.8]), M_B=np.array([0.0, 0.1, 0.0]), m=10.0, J_B=np.eye(3)
    )
    return x, u


def _timed(title: str, work):
    start = time.perf_counter()
    result = work()
    print(f"\n{title}  ({1e3 * (time.perf_counter() - start):.1f} ms)")
    return result


def main() -> int:
    """Print the environment and the example, eager, recorded and differentiated."""
    _environment()
    x, u = _example()

    def dynamics(x: RigidBody.State, u: RigidBody.Input) -> RigidBody.State:
        return RigidBody.dynamics(0.0, x, u)

    eager = _timed("Plain NumPy: RigidBody.dynamics(0.0, x, u)", lambda: dynamics(x, u))
    print(f"  {eager}")
    compiled = arc.compile(dynamics)
    _timed("Recorded into one graph", lambda: compiled.graph(x, u))
    print(f"  {compiled.statistics(x, u)}")
    result = _timed("The same, run from the graph", lambda: compiled(x, u))
    print(f"  {result}")
    jacobian = _timed(
        "Its Jacobian, 13 x 13, from the graph's own derivative",
        lambda: arc.jac(dynamics, flat=True)(x, u),
    )
    print("  non-zero entries per row:", np.count_nonzero(jacobian, axis=1).tolist())
    print("  d(attitude rate)/d(body rate):")
    print("    " + str(jacobian[3:7, 10:13]).replace("\n", "\n    "))

    def leaves(tree) -> np.ndarray:
        return arc.tree.ravel(tree)[0]

    difference = float(np.max(np.abs(leaves(eager) - leaves(result))))
    print(f"\nLargest difference between NumPy and the graph: {difference:.1e}")
    return 0 if difference < 1e-12 else 1


if __name__ == "__main__":
    raise SystemExit(main())
