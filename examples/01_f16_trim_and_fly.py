"""The F-16: parameters from its file, level flight, its modes, a minute with fixed controls."""

import numpy as np

from archimedes.control import modes
from archimedes.vehicles import F16, FlightCase, FlightState, fly, linearize, load, trim

plane = load("f16")  # a path to a copy with other numbers works the same way

# Level flight to the north at 170 m/s and 3,000 m: attitude and controls are searched for.
wanted = FlightState(
    lat=np.deg2rad(36.0),
    lon=np.deg2rad(-75.7),
    alt=3000.0,
    v_NED=np.array([170.0, 0.0, 0.0]),
    rpy=np.array([0.0, 0.05, 0.0]),
    w_B=np.zeros(3),
)
steady = trim(plane, wanted, F16.Input(throttle=0.15, elevator=-0.03), {"power": 10.0})
out = plane.outputs(0.0, steady.state, steady.input)
print(
    f"{steady.message}: throttle {float(steady.input.throttle):.3f}, elevator "
    f"{np.rad2deg(steady.input.elevator):.2f} deg, angle of attack {np.rad2deg(out.alpha):.2f} deg"
)
assert steady.success

# Small motions about it.
small = linearize(plane, steady.flight, steady.input, {"power": steady.state.power})
print(modes(small))

# Fixed controls hold it for a minute: turning Earth and all.
case = FlightCase(plane, steady.flight, 60.0, steady.input, inner={"power": steady.state.power})
record = fly(case, t_eval=np.linspace(0.0, 60.0, 7))
for t, alt, speed in zip(record.t, record.flight.alt, record.flight.v_NED[:, 0]):
    print(f"  {t:4.0f} s  altitude {alt:9.3f} m  to the north {speed:8.3f} m/s")
assert np.abs(record.flight.alt - 3000.0).max() < 0.1
