"""NASA's check case 6: a ball dropped from 30,000 ft over the turning ellipsoid, with drag.

Rows of simulation 04, NASA/TM-2015-218675: time in s, altitude in ft, velocity east and down, ft/s.
"""

import numpy as np

from archimedes.vehicles import FlightCase, FlightState, Projectile, fly

FOOT, SLUG = 0.3048, 14.593902937206364
PUBLISHED = np.array(
    [
        [5.0, 29600.5267443, 0.05815802, 159.60233368],
        [10.0, 28407.7830323, 0.23054872, 316.91199514],
        [15.0, 26439.4582756, 0.5106028, 469.37398993],
        [20.0, 23727.1674789, 0.8863667, 613.93933441],
        [25.0, 20319.3397772, 1.33925035, 746.91824352],
        [30.0, 16284.443772, 1.84293086, 864.01090557],
    ]
)

ball = Projectile(
    mass=SLUG,
    inertia=3.6 * SLUG * FOOT**2 * np.eye(3),
    area=0.1963495 * FOOT**2,
    drag=0.1,
)
start = FlightState(
    lat=np.array(0.0),
    lon=np.array(0.0),
    alt=np.array(30000.0 * FOOT),
    v_NED=np.zeros(3),
    rpy=np.zeros(3),
    w_B=np.zeros(3),
)
record = fly(
    FlightCase(ball, start, 30.0), t_eval=PUBLISHED[:, 0], method="dop853", rtol=1e-11, atol=1e-11
)
alt, v = record.flight.alt / FOOT, record.flight.v_NED / FOOT
for k, row in enumerate(PUBLISHED):
    print(f"{row[0]:4.0f} s  altitude {alt[k]:14.6f} ft (NASA {row[1]:14.6f})")
assert np.abs(alt - PUBLISHED[:, 1]).max() < 1e-3
assert np.abs(v[:, 1:] - PUBLISHED[:, 2:]).max() < 5e-4
