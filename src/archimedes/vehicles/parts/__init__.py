"""Parts that vehicles are made of: each a struct, used alone or in a whole."""

from archimedes.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__)
