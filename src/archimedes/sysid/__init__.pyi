from archimedes.sysid.fit_results import Fit as Fit
from archimedes.sysid.fit_results import ResidualTests as ResidualTests
from archimedes.sysid.fit_results import residual_tests as residual_tests
from archimedes.sysid.output_errors import multiple_shooting as multiple_shooting
from archimedes.sysid.output_errors import output_error as output_error
from archimedes.sysid.prediction_errors import pem as pem
from archimedes.sysid.timeseries import Timeseries as Timeseries
