"""A pendulum with a motor: estimate its motion from a noisy encoder, identify its parameters.

A Kalman filter finds angle and rate, a fit length and damping; a second experiment checks them.
"""

import numpy as np
from matplotlib import pyplot as plt

import archimedes as arc
from archimedes.observers import ExtendedKalmanFilter, consistency_bounds, filter_series
from archimedes.sysid import Timeseries, output_error, pem

DT, NOISE = 0.05, 0.02  # sampling period in s, noise of the encoder in rad


@arc.struct
class State:
    """Angle from hanging down, and its rate."""

    angle: float = arc.field(units="rad")
    rate: float = arc.field(units="rad/s")


def pendulum(t, x, u, p):
    """Return dx/dt. The input is the torque over the inertia, in rad/s^2."""
    pull = -9.81 / p["length"] * np.sin(x.angle) - p["damping"] * x.rate
    return State(angle=x.rate, rate=pull + u[0])


def encoder(t, x, u, p):
    """Return what is measured."""
    return x.angle


TRUE = {"length": 0.7, "damping": 0.4}
START = State(angle=0.5, rate=0.0)


def experiment(seed):
    """Simulate 10 s with random torques; return the truth and what is measured of it."""
    rng = np.random.default_rng(seed)
    times = DT * np.arange(201)
    torques = 8.0 * rng.choice([-1.0, 1.0], size=(201, 1))  # (times, inputs)
    motor = arc.InputSeries(times, torques)  # held between samples: hold="zoh" is the default
    truth = arc.solve_ode(pendulum, (0, 10), START, args=(TRUE,), inputs=motor, t_eval=times)
    data = Timeseries.from_trajectory(truth, outputs="angle")  # knows the hold, too
    return truth, data.replace(ys=data.ys + NOISE * rng.normal(size=data.ys.shape))


# 1. Estimate the motion with the true parameters. The rate is not measured at all.
truth, data = experiment(seed=4)
step = arc.discretize(pendulum, DT)  # Runge-Kutta steps, the input held
ekf = ExtendedKalmanFilter(step, encoder, Q=np.diag([1e-8, 1e-6]), R=NOISE**2)
guess, P0 = State(angle=0.0, rate=0.0), 0.1 * np.eye(2)  # at the first sample
found = filter_series(ekf, data.ts, data.ys, guess, P0, (TRUE,), us=data.us, predict_first=False)
error = np.sqrt(np.mean((found.x.rate - truth.x.rate)[20:] ** 2))
low, high = consistency_bounds(ekf.ny, len(data), level=0.999)  # where the mean NIS should be
print(f"rate wrong by {error:.3f} rad/s; NIS {found.nis.mean():.2f} in {low:.2f} to {high:.2f}")
assert error < 0.05 and low < found.nis.mean() < high

# 2. Identify the parameters from a guess that is far off: by simulation, then by prediction.
p_guess = {"length": 1.0, "damping": 0.1}
fit = output_error(pendulum, encoder, data, p_guess, START)
print(fit, fit.tests(), sep="\n")
for result in (fit, pem(ekf, data, p_guess, START)):
    low, high = result.confidence(0.999)
    assert all(low[name] < value < high[name] for name, value in TRUE.items())

# 3. A model is worth what it says about data that it has not seen.
_, fresh = experiment(seed=2)
print(f"explained of a second experiment: {fit.validate(fresh)[0]:.1f} %")
assert fit.validate(fresh)[0] > 90.0

figure, (upper, lower) = plt.subplots(2, 1, sharex=True)
upper.plot(data.ts, np.rad2deg(data.ys[0]), ".", data.ts, np.rad2deg(fit.predicted[0]))
upper.set(ylabel="angle (deg)"), upper.legend(["measured", "identified model"])
lower.plot(data.ts, np.rad2deg(truth.x.rate), data.ts, np.rad2deg(found.x.rate), "--")
lower.set(xlabel="time (s)", ylabel="rate (deg/s)"), lower.legend(["truth", "estimated"])
arc.show()
