"""Dead reckoning around a circle: accelerometers and gyroscopes with seeded errors.

Inertial readings alone drift away; 200 runs at once show by how much.
"""

import numpy as np

import archimedes as arc
from archimedes.vehicles.sensors import Imu, TriadErrors

DT, SECONDS, RADIUS, RATE = 0.02, 30.0, 20.0, 0.3
STEPS = round(SECONDS / DT)
DOWN = np.array([0.0, 0.0, 9.80665])
imu = Imu(
    accelerometer=TriadErrors(bias=np.array([0.01, -0.02, 0.0]), noise=2e-3, walk=1e-4),
    gyroscope=TriadErrors(noise=1e-4, walk=1e-5),
)


def truth(t):
    """Return place, velocity and acceleration in NED axes; the nose stays north."""
    c, s = np.cos(RATE * t), np.sin(RATE * t)
    p = RADIUS * np.stack([c, s, 0.0 * t])
    v = RADIUS * RATE * np.stack([-s, c, 0.0 * t])
    return p, v, -(RATE**2) * p


def reckon(key):
    """Return where an observer believes to be after the flight, from inertial readings alone."""

    def step(carry, k):
        sensor, p, v, turned = carry
        felt = truth((k + 0.5) * DT)[2] - DOWN
        sensor, reading = imu.step(
            sensor, felt, np.zeros(3), np.zeros(3), arc.random.fold_in(key, k), DT
        )
        turned = turned + DT * reading.rate  # small angles
        a = reading.force + np.cross(turned, reading.force) + DOWN
        return (sensor, p + DT * v + 0.5 * DT**2 * a, v + DT * a, turned), None

    p, v, _ = truth(0.0)
    carry, _ = arc.scan(step, (imu.initial(), p, v, np.zeros(3)), np.arange(STEPS))
    return carry[1]


ends = arc.vmap(reckon)(arc.random.split(arc.random.key(1), 200))
off = ends - truth(SECONDS)[0]
expected = 0.5 * imu.accelerometer.bias * SECONDS**2
print(f"mean error after {SECONDS:.0f} s: {off.mean(0).round(2)} m")
print(f"of which the biases make {expected.round(2)} m")
print(f"spread by noise: {off.std(0).round(2)} m")
assert np.abs(off.mean(0) - expected).max() < 0.4
again = arc.vmap(reckon)(arc.random.split(arc.random.key(1), 200))
assert np.array_equal(ends, again)  # the same keys give the same noise
