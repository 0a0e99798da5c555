"""Requirements on trajectories in temporal logic, and the search for runs that violate them.

Names are imported when they are first used.
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
