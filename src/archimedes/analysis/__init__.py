"""What a model says of itself before it runs: units, frames, digits.

Every checker returns findings that name the user's line (``findings.py``). Names are imported when
they are first used.
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
