"""Trees: structs and containers of arrays, flattened into leaves and rebuilt from them."""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
