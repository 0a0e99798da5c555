"""``archimedes.error``: the package's errors under the name that users of the original know."""

from __future__ import annotations

from archimedes.errors import *  # noqa: F403  (all of them)
from archimedes.errors import __all__ as __all__
