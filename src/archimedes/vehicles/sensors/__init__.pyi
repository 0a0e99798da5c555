from archimedes.vehicles.sensors.sensor_models import AirData as AirData
from archimedes.vehicles.sensors.sensor_models import Gnss as Gnss
from archimedes.vehicles.sensors.sensor_models import Imu as Imu
from archimedes.vehicles.sensors.sensor_models import Magnetometer as Magnetometer
from archimedes.vehicles.sensors.sensor_models import StarTracker as StarTracker
from archimedes.vehicles.sensors.sensor_models import TriadErrors as TriadErrors
