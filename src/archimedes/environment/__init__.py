"""Earth and air: shape, rotation, gravity, atmosphere, winds, magnetic field and Sun.

Plain NumPy functions and structs, in SI units and rad: they run eagerly, recorded, on batches, with
derivatives and in C.
"""

from archimedes.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__)
