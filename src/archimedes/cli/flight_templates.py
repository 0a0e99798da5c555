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
}
