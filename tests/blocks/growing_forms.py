"""NumPy forms whose programs grow with their arrays, and why: patterns of their names."""

from __future__ import annotations

__all__ = ["GROWING"]

_PYTHON = "Python itself takes the elements one by one"
_SPECTRAL = "eigenvalues and singular values of at most 16 columns are recorded"

GROWING: dict[str, str] = {
    "x.tolist()": _PYTHON,
    "flat_iteration": _PYTHON,
    "unpack_rest": _PYTHON,
    "iterate_*": _PYTHON,
    "np.vectorize(*": _PYTHON,
    "np.unstack(*": _PYTHON,
    "write_through_row_loop": _PYTHON,
    "inplace_zeros_accumulate": _PYTHON,
    "np.polynomial.polynomial.polyval(s, x)": _PYTHON,
    "np.linalg.eig*": _SPECTRAL,
    "np.linalg.svd*": _SPECTRAL,
    "np.linalg.pinv(*": _SPECTRAL,
    "np.linalg.cond(S)": _SPECTRAL,
    "np.linalg.norm(A, *2)": _SPECTRAL,
    'np.linalg.norm(A, "nuc")': _SPECTRAL,
    "eigh_*": _SPECTRAL,
    "svd_*": _SPECTRAL,
}
