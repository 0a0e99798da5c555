"""C projects for microcontrollers, and proof that they compute what Python computes.

Names are imported when they are first used.
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
