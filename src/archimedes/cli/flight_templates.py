"""Files that ``archimedes run --template`` prints to start from."""

from __future__ import annotations

__all__ = ["TEMPLATES"]

TEMPLATES = {
    "f16": """\
# A flight for `archimedes run`. Angles in deg, lengths in m, velocities in m/s, time in s.
title: An F-16 in level flight
vehicle: f16          # a name, or the file of parameters of your own beside this one
start:
  alt: 3000.0
  v_NED: [170.0, 0.0, 0.0]
  lat: 36.0
  lon: -75.7
  rpy: [0.0, 2.0, 0.0]
trim: true            # search the controls that hold this; false: use them as they are
controls: {throttle: 0.15, elevator: -0.03}
inner: {power: 10.0}  # other parts of the state
duration: 60.0
samples: 601
""",
    "multirotor": """\
# A flight for `archimedes run`. Angles in deg, lengths in m, velocities in m/s, time in s.
title: A quadrotor with a little more thrust than it needs
vehicle: multirotor
start:
  alt: 10.0
  v_NED: [0.0, 0.0, 0.0]
  rpy: [0.0, 2.0, 0.0]
controls: {speeds: [590.0, 590.0, 590.0, 590.0]} # rad/s
duration: 8.0
samples: 401
""",
    "rocket": """\
# A flight for `archimedes run`. Angles in deg, lengths in m, velocities in m/s, time in s.
title: A rocket flies to orbit
vehicle: rocket
start:
  alt: 10.0
  v_NED: [0.0, 0.0, 0.0]
  lat: 28.5
  lon: -80.6
  rpy: [0.0, 89.9999, 90.0]
guidance: {kick: 0.08, tangent: 0.55, radius: 6778137.0} # rad, 1, m; steers instead of controls
ground: 0.0           # altitude at which a flight ends; null: there is none
duration: 700.0
samples: 701
""",
    "car": """\
# A drive for `archimedes run`. Angles in deg, lengths in m, velocities in m/s, time in s.
title: A car turns to the right
vehicle: car
start:
  alt: 0.0
  v_NED: [20.0, 0.0, 0.0]
controls: {steer: 0.02, drive: 0.05} # rad, parts of the largest
duration: 8.0
samples: 401
""",
}
