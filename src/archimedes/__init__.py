"""Write the physics once, in plain NumPy; run it, differentiate it, batch it, deploy it.

>>> import numpy as np
>>> import archimedes as arc
>>> arc.jac(lambda x: np.sin(x) * x[::-1])(np.array([0.0, 1.0])).round(3)
array([[1.   , 0.   ],
       [0.841, 0.   ]])
"""

from importlib import import_module as _import_module

from archimedes.lazy_names import lazy_names as _lazy_names
from archimedes.version import __version__ as __version__

_get, __dir__, __all__ = _lazy_names(__name__)
#: Packages and modules that are not for users, or are names of the original for them.
_UNLISTED = ("graph", "symbolic", "backends", "function", "error", "theme", "typing")


def __getattr__(name: str) -> object:
    return _import_module(f"archimedes.{name}") if name in _UNLISTED else _get(name)
