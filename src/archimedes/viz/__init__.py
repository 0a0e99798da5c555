"""Pictures of trajectories, campaigns, modes and structures."""

from archimedes.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__)
