from archimedes.observers.consistency import nees as nees
from archimedes.observers.corrections import Estimate as Estimate
from archimedes.observers.corrections import Prediction as Prediction
from archimedes.observers.extended import ExtendedKalmanFilter as ExtendedKalmanFilter
from archimedes.observers.linear import KalmanFilter as KalmanFilter
from archimedes.observers.series import filter_series as filter_series
from archimedes.observers.smoothing import rts_smoother as rts_smoother
from archimedes.observers.unscented import UnscentedKalmanFilter as UnscentedKalmanFilter
