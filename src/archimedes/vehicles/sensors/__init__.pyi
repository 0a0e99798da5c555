from archimedes.vehicles.sensors.air_data import AirData as AirData
from archimedes.vehicles.sensors.navigation_sensors import Gnss as Gnss
from archimedes.vehicles.sensors.navigation_sensors import StarTracker as StarTracker
from archimedes.vehicles.sensors.triad_sensors import Imu as Imu
from archimedes.vehicles.sensors.triad_sensors import Magnetometer as Magnetometer
from archimedes.vehicles.sensors.triad_sensors import TriadErrors as TriadErrors
