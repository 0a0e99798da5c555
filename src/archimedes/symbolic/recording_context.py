"""What surrounds a recording: filled tables, and NumPy's names replaced.

Imported when the first recording begins. The modules of ``numpy_functions/`` and ``linalg/`` are
imported for the rows they add to the tables of ``core/registry.py``; they must see NumPy's own
functions, so they come before anything is replaced.
"""

from archimedes.symbolic.linalg import (  # noqa: F401
    factors,
    functions,
    general_eigenvalues,
    norms,
    spectral,
)
from archimedes.symbolic.numpy_functions import (  # noqa: F401
    calculus,
    construction,
    fourier,
    inspection,
    polynomials,
    products,
    quantiles,
    reductions,
    rounding,
    selection,
    sorting,
    special_functions,
    statistics,
    structural,
)
from archimedes.symbolic.recorded import creation, randomness

__all__ = ["begin", "end"]


def begin() -> None:
    """Let NumPy take traced values, and refuse random numbers, from now on (counted)."""
    randomness.install()
    creation.install()


def end() -> None:
    """Undo one ``begin``."""
    creation.uninstall()
    randomness.uninstall()
