"""Earth and air: shape, rotation, gravity, atmosphere, winds, magnetic field and Sun.

Plain NumPy functions and structs, in SI units and rad: they run eagerly, recorded, on batches, with
derivatives and in C.
"""

from __future__ import annotations

from archimedes.environment.air import Air
from archimedes.environment.earth_rotation import (
    earth_attitude,
    earth_rotation_angle,
    ecef_to_eci,
    eci_to_ecef,
)
from archimedes.environment.ellipsoid import SPHERICAL_EARTH, WGS84, Ellipsoid
from archimedes.environment.exponential_atmosphere import ExponentialAtmosphere
from archimedes.environment.frames import air_path_angles, flight_frames
from archimedes.environment.geodesy import ecef_to_geodetic, geodetic_rates, geodetic_to_ecef
from archimedes.environment.gravity import (
    J2Gravity,
    PointMassGravity,
    ThirdBodyGravity,
    UniformGravity,
    gravity_gradient_torque,
)
from archimedes.environment.local_frames import enu, local_tangent_plane, ned
from archimedes.environment.magnetic_field import (
    MagneticDipole,
    MagneticField,
    read_magnetic_coefficients,
)
from archimedes.environment.normal_gravity import NormalGravity
from archimedes.environment.spherical_harmonics import SphericalHarmonicGravity
from archimedes.environment.standard_atmosphere import SmoothAtmosphere, StandardAtmosphere1976
from archimedes.environment.sun import sun_position, sunlit_fraction
from archimedes.environment.turbulence import DrydenTurbulence, Gust, VonKarmanTurbulence
from archimedes.environment.winds import (
    ConstantWind,
    LinearShear,
    LogarithmicShear,
    OneCosineGust,
    TableWind,
    Winds,
)

__all__ = [
    "SPHERICAL_EARTH",
    "WGS84",
    "Air",
    "ConstantWind",
    "DrydenTurbulence",
    "Ellipsoid",
    "ExponentialAtmosphere",
    "Gust",
    "J2Gravity",
    "LinearShear",
    "LogarithmicShear",
    "MagneticDipole",
    "MagneticField",
    "NormalGravity",
    "OneCosineGust",
    "PointMassGravity",
    "SmoothAtmosphere",
    "SphericalHarmonicGravity",
    "StandardAtmosphere1976",
    "TableWind",
    "ThirdBodyGravity",
    "UniformGravity",
    "VonKarmanTurbulence",
    "Winds",
    "air_path_angles",
    "earth_attitude",
    "earth_rotation_angle",
    "ecef_to_eci",
    "ecef_to_geodetic",
    "eci_to_ecef",
    "enu",
    "flight_frames",
    "geodetic_rates",
    "geodetic_to_ecef",
    "gravity_gradient_torque",
    "local_tangent_plane",
    "ned",
    "read_magnetic_coefficients",
    "sun_position",
    "sunlit_fraction",
]
