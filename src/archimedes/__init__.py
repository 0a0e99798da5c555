"""Write the physics once, in plain NumPy; run it, differentiate it, batch it, deploy it.

>>> import numpy as np
>>> import archimedes as arc
>>> arc.jac(lambda x: np.sin(x) * x[::-1])(np.array([0.0, 1.0])).round(3)
array([[1.   , 0.   ],
       [0.841, 0.   ]])
"""

from archimedes.late_binding import provide as _provide
from archimedes.lazy_names import lazy_names as _lazy_names
from archimedes.version import __version__ as __version__

# The last are packages that are not for users, and modules with names of the original.
__getattr__, __dir__, __all__ = _lazy_names(
    __name__, "graph symbolic backends function error theme typing"
)
# Methods of compiled functions that stand above them.
_provide(
    bounds="archimedes.analysis.ranges.bounds",
    precision="archimedes.analysis.precision.analysis",
)
