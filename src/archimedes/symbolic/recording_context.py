"""The tables of NumPy's functions, filled.

Imported when the first recording begins. The modules of ``numpy_functions/`` and ``linalg/`` are
imported for the rows they add to the tables of ``core/registry.py``: those of the latter, which
take as long as all others together, when a function of ``np.linalg`` is first recorded, and
those of ``np.fft`` likewise.
"""

from typing import Any

from archimedes.symbolic.core.registry import FUNCTION_ADOPTERS
from archimedes.symbolic.numpy_functions import (  # noqa: F401
    calculus,
    elementwise_functions,
    products,
    reductions,
    sorting,
    structural,
)


def _linear_algebra(function: Any) -> bool:
    if getattr(function, "__module__", "") != "numpy.linalg":
        return False
    from archimedes.symbolic.linalg import (  # noqa: F401
        factorizations,
        general_eigenvalues,
        least_squares,
        solving,
        spectral,
    )

    return True


def _transforms(function: Any) -> bool:
    if getattr(function, "__module__", "") != "numpy.fft":
        return False
    from archimedes.symbolic.numpy_functions import fourier  # noqa: F401

    return True


FUNCTION_ADOPTERS += [_linear_algebra, _transforms]
