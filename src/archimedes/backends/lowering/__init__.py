"""Graph to code, whatever the language: control flow, regions, order, cutting and storage.

``graph_lowering.py`` writes the nodes of a graph in order, ``loops.py`` and ``regions.py`` the
regions, ``copies.py`` moves values, ``parts.py`` cuts what is long. They speak to a target through
``dialect.py``: how an op, a constant, a loop, a branch, a copy, a table and a function are spelled.
Languages with variables and blocks start from ``statements.py``.
"""

from archimedes.backends.lowering.dialect import FEW, Dialect, Join, Loop, Reach
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.schedule import Schedule
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Instances, Place, Store

__all__ = [
    "FEW",
    "Binding",
    "Dialect",
    "Instances",
    "Join",
    "Loop",
    "Lowering",
    "Place",
    "Reach",
    "Schedule",
    "Scope",
    "Store",
]
