"""Regions: nodes with bodies, for what a straight line of scalars should not spell out.

A class describes its region wholly (see ``base.py``). Two regions of the plan are something
simpler: a lookup (a constant table read at a computed index) is a plain node, see
``Graph.lookup``; an implicit function is a ``Call`` with a derivative of its own.
"""

from archimedes.graph.regions.base import DerivativeRule, OneBody, Region
from archimedes.graph.regions.block_regions import (
    Accumulate,
    Affine,
    Gather,
    Move,
    Nest,
    Pack,
    Sort,
)
from archimedes.graph.regions.call_regions import Call, Host, Switch
from archimedes.graph.regions.linear_solve import Solve
from archimedes.graph.regions.loop_regions import Map, Scan, While
