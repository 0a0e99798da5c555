from archimedes.environment.atmosphere import Air as Air
from archimedes.environment.atmosphere import ExponentialAtmosphere as ExponentialAtmosphere
from archimedes.environment.atmosphere import SmoothAtmosphere as SmoothAtmosphere
from archimedes.environment.atmosphere import StandardAtmosphere1976 as StandardAtmosphere1976
from archimedes.environment.earth_frames import air_path_angles as air_path_angles
from archimedes.environment.earth_frames import earth_attitude as earth_attitude
from archimedes.environment.earth_frames import earth_rotation_angle as earth_rotation_angle
from archimedes.environment.earth_frames import ecef_to_eci as ecef_to_eci
from archimedes.environment.earth_frames import eci_to_ecef as eci_to_ecef
from archimedes.environment.earth_frames import flight_frames as flight_frames
from archimedes.environment.geodesy import SPHERICAL_EARTH as SPHERICAL_EARTH
from archimedes.environment.geodesy import WGS84 as WGS84
from archimedes.environment.geodesy import Ellipsoid as Ellipsoid
from archimedes.environment.geodesy import ecef_to_geodetic as ecef_to_geodetic
from archimedes.environment.geodesy import enu as enu
from archimedes.environment.geodesy import geodetic_rates as geodetic_rates
from archimedes.environment.geodesy import geodetic_to_ecef as geodetic_to_ecef
from archimedes.environment.geodesy import local_tangent_plane as local_tangent_plane
from archimedes.environment.geodesy import ned as ned
from archimedes.environment.gravity import J2Gravity as J2Gravity
from archimedes.environment.gravity import NormalGravity as NormalGravity
from archimedes.environment.gravity import PointMassGravity as PointMassGravity
from archimedes.environment.gravity import ThirdBodyGravity as ThirdBodyGravity
from archimedes.environment.gravity import UniformGravity as UniformGravity
from archimedes.environment.gravity import gravity_gradient_torque as gravity_gradient_torque
from archimedes.environment.orbits import KeplerElements as KeplerElements
from archimedes.environment.orbits import eccentric_to_mean as eccentric_to_mean
from archimedes.environment.orbits import eccentric_to_true as eccentric_to_true
from archimedes.environment.orbits import kepler_propagate as kepler_propagate
from archimedes.environment.orbits import mean_to_eccentric as mean_to_eccentric
from archimedes.environment.orbits import mean_to_true as mean_to_true
from archimedes.environment.orbits import true_to_eccentric as true_to_eccentric
from archimedes.environment.orbits import true_to_mean as true_to_mean
from archimedes.environment.spherical_harmonics import MagneticDipole as MagneticDipole
from archimedes.environment.spherical_harmonics import MagneticField as MagneticField
from archimedes.environment.spherical_harmonics import (
    SphericalHarmonicGravity as SphericalHarmonicGravity,
)
from archimedes.environment.spherical_harmonics import (
    read_magnetic_coefficients as read_magnetic_coefficients,
)
from archimedes.environment.sun import sun_position as sun_position
from archimedes.environment.sun import sunlit_fraction as sunlit_fraction
from archimedes.environment.turbulence import DrydenTurbulence as DrydenTurbulence
from archimedes.environment.turbulence import Gust as Gust
from archimedes.environment.turbulence import VonKarmanTurbulence as VonKarmanTurbulence
from archimedes.environment.winds import ConstantWind as ConstantWind
from archimedes.environment.winds import LinearShear as LinearShear
from archimedes.environment.winds import LogarithmicShear as LogarithmicShear
from archimedes.environment.winds import OneCosineGust as OneCosineGust
from archimedes.environment.winds import TableWind as TableWind
from archimedes.environment.winds import Winds as Winds
