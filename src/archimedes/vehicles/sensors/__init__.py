"""Sensors with seeded errors: noise comes from keys of `archimedes.random`, so runs repeat."""

from archimedes.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__)
