"""Write the physics once, in plain NumPy; run it, differentiate it, batch it, deploy it.

>>> import numpy as np
>>> import archimedes as arc
>>> arc.jac(lambda x: np.sin(x) * x[::-1])(np.array([0.0, 1.0])).round(3)
array([[1.   , 0.   ],
       [0.841, 0.   ]])
"""

from archimedes import tree
from archimedes.errors import ArchimedesError, GraphError, StructError, TraceError
from archimedes.function import (
    Compiled,
    ConvergenceError,
    Interpolant,
    RootInfo,
    array,
    callback,
    coloring,
    compile,
    cond,
    custom_jvp,
    custom_vjp,
    eye,
    fori_loop,
    grad,
    hess,
    implicit,
    interpolant,
    jac,
    jvp,
    ones,
    ones_like,
    root,
    scan,
    sparsity,
    stop_gradient,
    switch,
    vjp,
    vmap,
    while_loop,
    zeros,
    zeros_like,
)
from archimedes.tree import StructConfig, UnionConfig, field, struct

__version__ = "0.1.0"

__all__ = [
    "ArchimedesError",
    "Compiled",
    "ConvergenceError",
    "GraphError",
    "Interpolant",
    "RootInfo",
    "StructConfig",
    "StructError",
    "TraceError",
    "UnionConfig",
    "array",
    "callback",
    "coloring",
    "compile",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "eye",
    "field",
    "fori_loop",
    "grad",
    "hess",
    "implicit",
    "interpolant",
    "jac",
    "jvp",
    "ones",
    "ones_like",
    "root",
    "scan",
    "sparsity",
    "stop_gradient",
    "struct",
    "switch",
    "tree",
    "vjp",
    "vmap",
    "while_loop",
    "zeros",
    "zeros_like",
]
