"""Random numbers as functions of keys: the same bits eagerly, recorded, in lanes, threads and C.

>>> from archimedes import random
>>> key = random.key(2024)
>>> noise, start = random.split(key)
>>> random.normal(noise, 2).round(4)
array([-1.5091, -1.4106])

Names are imported when they are first used.
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
