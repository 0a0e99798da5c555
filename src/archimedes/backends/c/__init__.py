"""C source: freestanding C99 with the interpreter's bits.

``render`` writes one graph as one function; ``assemble`` puts functions into a file.
"""

from archimedes.backends.c.rendering import render
from archimedes.backends.c.source import Argument, CSource, Stats, assemble
from archimedes.backends.c.support import FLAGS

__all__ = ["FLAGS", "Argument", "CSource", "Stats", "assemble", "render"]
