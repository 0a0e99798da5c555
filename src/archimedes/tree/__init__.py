"""Trees: structs and containers of arrays, taken apart into leaves and put together again."""

from archimedes.lazy_names import lazy_names
from archimedes.tree import containers as _containers  # noqa: F401  registers Python's containers

__getattr__, __dir__, __all__ = lazy_names(__name__)
