"""NumPy forms whose programs grow with their arrays, and why: patterns of their names."""

from __future__ import annotations

__all__ = ["GROWING"]

_PYTHON = "Python itself takes the elements one by one"
_SORT = "sorting networks are recorded exchange by exchange"
_STEPS = "a step is recorded for each element"
_MATRIX = "factorisations are recorded element by element"
_SPECTRAL = "eigenvalues and singular values of at most 16 columns are recorded"
_PARTS = "an array is put together of so many parts"

GROWING: dict[str, str] = {
    "x.tolist()": _PYTHON,
    "flat_iteration": _PYTHON,
    "unpack_rest": _PYTHON,
    "iterate_*": _PYTHON,
    "np.vectorize(*": _PYTHON,
    "np.unstack(T, axis=1)": _PYTHON,
    "*sort*": _SORT,
    "*partition(*": _SORT,
    "*median(*": _SORT,
    "np.percentile(*": _SORT,
    "np.quantile(*": _SORT,
    "*.argm*": _STEPS,
    "*cum*": _STEPS,
    "*accumulate*": _STEPS,
    "*prod(*": _STEPS,
    "np.unwrap(x)": _STEPS,
    "np.nanmax(*": _STEPS,
    "np.nanmin(*": _STEPS,
    "*polyval(*": _STEPS,
    "*.reduce(x)": _STEPS,
    "np.polymul(*": _PARTS,
    "np.convolve(*": _PARTS,
    "np.correlate(*": _PARTS,
    "np.diag(*": _PARTS,
    "np.diagflat(*": _PARTS,
    "np.fliplr(np.diag(a))": _PARTS,
    "np.tril(A, -1)": _PARTS,
    "*argm*": _STEPS,
    "*nanargm*": _STEPS,
    "np.linalg.*solve(*": _MATRIX,
    "np.linalg.inv(*": _MATRIX,
    "np.linalg.*det(*": _MATRIX,
    "np.linalg.cholesky(*": _MATRIX,
    "np.linalg.lstsq(*": _MATRIX,
    "np.linalg.cond(A, 1)": _MATRIX,
    "qr_*": _MATRIX,
    "np.linalg.eig*": _SPECTRAL,
    "np.linalg.svd*": _SPECTRAL,
    "np.linalg.pinv(*": _SPECTRAL,
    "np.linalg.cond(S)": _SPECTRAL,
    "np.linalg.norm(A, *2)": _SPECTRAL,
    'np.linalg.norm(A, "nuc")': _SPECTRAL,
    "eigh_*": _SPECTRAL,
    "svd_*": _SPECTRAL,
}
