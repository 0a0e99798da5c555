"""Regions: nodes with bodies, for what a straight line of scalars should not spell out.

One file per region, which describes it wholly (see ``base.py``). Two regions of the plan are
something simpler: a lookup (a constant table read at a computed index) is a plain node, see
``Graph.lookup``; an implicit function is a ``Call`` with a derivative of its own.
"""

from archimedes.graph.regions.accumulate import Accumulate
from archimedes.graph.regions.base import DerivativeRule, OneBody, Region
from archimedes.graph.regions.call import Call
from archimedes.graph.regions.host import Host
from archimedes.graph.regions.map import Map
from archimedes.graph.regions.nest import Nest
from archimedes.graph.regions.pack import Move, Pack
from archimedes.graph.regions.reads import Affine, Gather
from archimedes.graph.regions.scan import Scan
from archimedes.graph.regions.solve import Solve
from archimedes.graph.regions.sort import Sort
from archimedes.graph.regions.switch import Switch
from archimedes.graph.regions.while_loop import While

__all__ = [
    "Accumulate",
    "Affine",
    "Call",
    "DerivativeRule",
    "Gather",
    "Host",
    "Map",
    "Move",
    "Nest",
    "OneBody",
    "Pack",
    "Region",
    "Scan",
    "Solve",
    "Sort",
    "Switch",
    "While",
]
