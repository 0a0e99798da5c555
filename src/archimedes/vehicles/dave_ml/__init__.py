"""Models in DAVE-ML (ANSI/AIAA S-119-2011), the XML exchange format of flight simulation."""

from archimedes.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__)
