"""Special functions with SciPy's names: the same bits eagerly, recorded, in batches and in C.

``scipy.special.erf`` and the others work on traced arrays too, and record the same programs; the
functions here give those bits eagerly as well. Their accuracy is in ``docs/recording.md``.

>>> from archimedes import special
>>> special.erf([0.0, 0.5])
array([0.        , 0.52049988])
"""

from __future__ import annotations

from archimedes.special.functions import (
    betaln,
    digamma,
    erf,
    erfc,
    exp10,
    gamma,
    gammaln,
    polygamma,
    psi,
)

__all__ = ["betaln", "digamma", "erf", "erfc", "exp10", "gamma", "gammaln", "polygamma", "psi"]
