"""Environments for reinforcement learning: NumPy functions, Gymnasium's interface, ready tasks."""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
