"""Random numbers as functions of keys: the same bits eagerly, recorded, in lanes, threads and C.

>>> from archimedes import random
>>> key = random.key(2024)
>>> noise, start = random.split(key)
>>> random.normal(noise, 2).round(4)
array([-1.5091, -1.4106])

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.lazy_names import lazy_names

if TYPE_CHECKING:
    from archimedes.random.continuous import exponential, multivariate_normal, normal, uniform
    from archimedes.random.discrete import bernoulli, bits, choice, integers, permutation
    from archimedes.random.keys import fold_in, key, split

_HOMES = {
    "archimedes.random.continuous": "exponential multivariate_normal normal uniform",
    "archimedes.random.discrete": "bernoulli bits choice integers permutation",
    "archimedes.random.keys": "fold_in key split",
}

__all__ = [
    "bernoulli",
    "bits",
    "choice",
    "exponential",
    "fold_in",
    "integers",
    "key",
    "multivariate_normal",
    "normal",
    "permutation",
    "split",
    "uniform",
]

__getattr__ = lazy_names(__name__, _HOMES)
