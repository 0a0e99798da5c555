"""Models from data: parameters with their confidence, and tests of what is left.

>>> import numpy as np
>>> from archimedes.sysid import Timeseries, output_error
>>> ts = np.linspace(0.0, 2.0, 41)
>>> data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
>>> lag = lambda t, x, u, p: p["rate"] * (p["gain"] * u - x)
>>> found = output_error(lag, lambda t, x, u, p: x, data, {"gain": 1.0, "rate": 1.0}, np.zeros(1))
>>> {name: round(float(value), 4) for name, value in found.p.items()}
{'gain': 2.0, 'rate': 3.0}
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
