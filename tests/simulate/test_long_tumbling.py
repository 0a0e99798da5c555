"""A thousand seconds of tumbling with all defaults: what is conserved stays so.

Nothing here asks the solver what it thinks: the checks are the conserved quantities of a free
rigid body, and its rates in closed form.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

from archimedes.simulate import odeint, solve_ode
from archimedes.spatial import Quaternion, RigidBody

DURATION = 1000.0
MOMENTS = np.array([1.0, 2.0, 3.0])
#: Near the separatrix (flipping about the intermediate axis), and well away from it.
RATES = {"flipping": (0.01, 3.0, 0.02), "precessing": (0.3, 0.4, 2.0)}


def free(J_B):
    return RigidBody.Input(F_B=np.zeros(3), M_B=np.zeros(3), m=4.0, J_B=J_B)


def start(w_B):
    return RigidBody.State(
        pos=np.array([1.0, -2.0, 3.0]),
        att=Quaternion([0.5, -0.5, 0.5, 0.5]),
        v_B=np.array([0.3, 0.1, -0.2]),
        w_B=np.asarray(w_B, dtype=float),
    )


def drifts(x, u):
    """Largest drift of each conserved quantity, relative to its first value."""
    norms = np.linalg.norm(x.att.array, axis=-1)
    turn = np.swapaxes(x.att.as_matrix(), -1, -2)
    spin = (turn @ (u.J_B @ x.w_B[..., None]))[..., 0]
    push = (turn @ x.v_B[..., None])[..., 0]
    energy = 0.5 * np.einsum("ti,ij,tj->t", x.w_B, u.J_B, x.w_B)
    relative = lambda v: np.abs(v - v[0]).max() / np.abs(v[0]).max()
    return {
        "norm": np.abs(norms - 1.0).max(),
        "energy": relative(energy),
        "angular momentum": relative(spin),
        "linear momentum": relative(push),
    }


@pytest.mark.parametrize("case", RATES)
@pytest.mark.parametrize("baumgarte", [1.0, 0.0])
def test_conserved_quantities(case, baumgarte):
    u = free(np.diag(MOMENTS))
    body = RigidBody(baumgarte=baumgarte)
    traj = solve_ode(body.dynamics, (0.0, DURATION), start(RATES[case]), args=(u,))
    assert traj.success
    found = drifts(traj.x, u)
    assert found["norm"] <= 1e-9
    assert found["energy"] <= 1e-6
    assert found["angular momentum"] <= 1e-5
    assert found["linear momentum"] <= 1e-4


def test_dense_outputs_and_a_full_inertia_matrix():
    Q = Quaternion([0.9, 0.1, -0.3, 0.2]).normalize().as_matrix()
    u = free(Q @ np.diag(MOMENTS) @ Q.T)
    t = np.linspace(0.0, DURATION, 5001)
    x = odeint(
        RigidBody().dynamics, (0.0, DURATION), start(Q @ [0.01, 3.0, 0.02]), t_eval=t, args=(u,)
    )
    found = drifts(x, u)
    assert found["norm"] <= 1e-9
    assert found["energy"] <= 1e-6


def test_rates_in_closed_form():
    """Euler's equations solved by Jacobi's elliptic functions (Landau, Lifshitz, Mechanics, 37).

    For H^2 > 2 E B the rates are (a cn, b sn, c dn) of the phase; it is 0 at the start, as the
    intermediate rate is. T2 is twice the energy, H2 the square of the angular momentum.
    """
    A, B, C = MOMENTS
    w0 = np.array([0.4, 0.0, 1.5])
    T2, H2 = np.sum(MOMENTS * w0**2), np.sum((MOMENTS * w0) ** 2)
    assert T2 * B < H2
    rate = np.sqrt((C - B) * (H2 - T2 * A) / (A * B * C))
    m = (B - A) * (T2 * C - H2) / ((C - B) * (H2 - T2 * A))
    t = np.linspace(0.0, DURATION, 2001)
    sn, cn, dn, _ = ellipj(np.mod(rate * t, 4.0 * ellipk(m)), m)
    b = np.sqrt((T2 * C - H2) / (B * (C - B)))
    exact = np.stack([w0[0] * cn, b * sn, w0[2] * dn], axis=1)
    traj = solve_ode(
        RigidBody.dynamics, (0.0, DURATION), start(w0), t_eval=t, args=(free(np.diag(MOMENTS)),)
    )
    assert np.abs(traj.x.w_B - exact).max() < 1e-5
