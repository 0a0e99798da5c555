"""C source: freestanding C99 with the interpreter's bits.

``render`` writes one graph as one function; ``assemble`` puts functions into a file.
"""

from archimedes.backends.c.helpers import FLAGS
from archimedes.backends.c.render import Argument, CSource, Stats, assemble, render

__all__ = ["FLAGS", "Argument", "CSource", "Stats", "assemble", "render"]
