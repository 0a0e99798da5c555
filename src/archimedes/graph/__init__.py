"""The program that every backend runs: ops, nodes, regions, passes and derivatives."""

from archimedes.graph import simplify  # which registers the identities
from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64, code_of, is_float
from archimedes.graph.ops import BY_NAME, CODES, TABLE, Op
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Solve, Switch, While
from archimedes.graph.text import Statistics, statistics
