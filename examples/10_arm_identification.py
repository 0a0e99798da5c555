"""Masses and inertias of an arm from measured motion and noisy torques: a linear regression.

Torques are linear in ten parameters per body. Not all of them matter: what a motion shows are the
base parameters, combinations of them that depend on the joints alone.
"""

import numpy as np

import archimedes as arc
from archimedes import multibody as mb

rng = np.random.default_rng(1)
NOISE = 0.05  # N m


def arm():
    """Return an arm of four joints with bodies of some shape."""
    b = mb.Builder("arm")
    parent = "world"
    for k, axis in enumerate(([0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0])):
        points, masses = 0.15 * rng.normal(size=(6, 3)), rng.uniform(0.2, 0.5, 6)
        com = masses @ points / masses.sum()
        arms = points - com
        J = sum(m * ((r @ r) * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms))
        b.add_body(f"link{k}", mass=masses.sum(), com=com, inertia=J)
        b.attach(f"link{k}", parent, joint=f"joint{k}", axis=axis, position=[0.05, 0, 0.3])
        parent = f"link{k}"
    return b.build()


model = arm()
n = model.nv
# Each joint moves by a sum of three sines: positions, speeds and accelerations are known exactly.
amplitude, phase = rng.uniform(0.3, 0.7, (3, n)), rng.uniform(0, 6, (3, n))
rate = np.array([1.3, 2.9, 4.7])[:, None]


def angles(t):
    """Return the angles (n,) at a time."""
    return np.sum(amplitude * np.sin(rate * t + phase), axis=0)


speeds = arc.jac(angles)
accelerations = arc.jac(speeds)
sample = arc.vmap(lambda t: (angles(t), speeds(t), accelerations(t)))


def measured(times):
    """Return regressors (samples n, 10 bodies) and noisy torques (samples n,)."""
    q, v, a = sample(times)
    Y = mb.torque_regressor(model, q, v, a).reshape(-1, 10 * n)
    torque = mb.rnea(model, q, v, a).ravel()
    return Y, torque + NOISE * rng.normal(size=torque.shape), torque


base = mb.base_parameters(model)
print(f"{10 * n} parameters, of which torques show {len(base.columns)} combinations, such as")
print("\n".join(f"  {name}" for name in base.names if len(name) < 60))

# Least squares for the base parameters, with what the noise leaves of them.
Y, noisy, _ = measured(np.linspace(0.0, 20.0, 2001))
W = Y[:, base.columns]
found = np.linalg.lstsq(W, noisy, rcond=None)[0]
deviations = NOISE * np.sqrt(np.diag(np.linalg.inv(W.T @ W)))

# What they predict for another motion, against the truth without noise.
amplitude, phase = rng.uniform(0.3, 0.7, (3, n)), rng.uniform(0, 6, (3, n))
fresh, _, truth = measured(np.linspace(0.0, 5.0, 501))
error = np.sqrt(np.mean((fresh[:, base.columns] @ found - truth) ** 2))
scale = np.sqrt(np.mean(truth**2))
print(f"torques of a new motion: {scale:.2f} N m, predicted to {1e3 * error:.1f} mN m")
assert error < 0.2 * NOISE
# The parameters themselves are as near to the true ones as the noise allows.
wrong = found - base.combinations @ mb.inertial_parameters(model)
print(f"largest error of a base parameter: {np.abs(wrong).max():.4f} (kg, kg m, kg m^2)")
assert np.abs(wrong / deviations).max() < 4.0
