"""The program that every backend runs: ops, nodes, regions, passes and derivatives."""

from archimedes.graph import simplify  # which registers the identities
from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64, STATIC, code_of, is_float, item_type
from archimedes.graph.ops import BY_NAME, CODES, CONST, OUT, TABLE, Op
from archimedes.graph.passes import inline, prune, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Map, Nest, Region, Scan, Solve, Switch, While
from archimedes.graph.text import Statistics, statistics
