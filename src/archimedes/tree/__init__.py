"""Trees: structs and containers of arrays, taken apart into leaves and put together again."""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
