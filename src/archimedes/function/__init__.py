"""What users call: compile, derivatives, control flow, batching.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.lazy_names import lazy_names

if TYPE_CHECKING:
    from archimedes.function.arrays import (
        array,
        eye,
        ones,
        ones_like,
        sym,
        sym_like,
        zeros,
        zeros_like,
    )
    from archimedes.function.batching.vmap_calls import vmap
    from archimedes.function.compiled import Compiled, compile
    from archimedes.function.control_flow.branches import cond, switch
    from archimedes.function.control_flow.callbacks import callback
    from archimedes.function.control_flow.loops import fori_loop, scan, while_loop
    from archimedes.function.derivatives.custom_rules import custom_jvp, custom_vjp, stop_gradient
    from archimedes.function.derivatives.sparse import SparsePattern, coloring, sparsity
    from archimedes.function.derivatives.transforms import grad, hess, jac, jvp, vjp
    from archimedes.function.implicit_functions import ConvergenceError, RootInfo, implicit, root
    from archimedes.function.interpolation import Interpolant, interpolant
    from archimedes.symbolic.core.traced_content import is_traced
    from archimedes.symbolic.linalg.matrix_functions import expm

_HOMES = {
    "archimedes.function.arrays": "array eye ones ones_like sym sym_like zeros zeros_like",
    "archimedes.function.batching.vmap_calls": "vmap",
    "archimedes.function.control_flow.branches": "cond switch",
    "archimedes.function.control_flow.callbacks": "callback",
    "archimedes.function.compiled": "Compiled compile",
    "archimedes.function.derivatives.custom_rules": "custom_jvp custom_vjp stop_gradient",
    "archimedes.function.derivatives.transforms": "grad hess jac jvp vjp",
    "archimedes.function.implicit_functions": "ConvergenceError RootInfo implicit root",
    "archimedes.function.interpolation": "Interpolant interpolant",
    "archimedes.function.control_flow.loops": "fori_loop scan while_loop",
    "archimedes.function.derivatives.sparse": "SparsePattern coloring sparsity",
    "archimedes.symbolic.core.traced_content": "is_traced",
    "archimedes.symbolic.linalg.matrix_functions": "expm",
}

__all__ = [
    "Compiled",
    "ConvergenceError",
    "Interpolant",
    "RootInfo",
    "SparsePattern",
    "array",
    "callback",
    "coloring",
    "compile",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "expm",
    "eye",
    "fori_loop",
    "grad",
    "hess",
    "implicit",
    "interpolant",
    "is_traced",
    "jac",
    "jvp",
    "ones",
    "ones_like",
    "root",
    "scan",
    "sparsity",
    "stop_gradient",
    "switch",
    "sym",
    "sym_like",
    "vjp",
    "vmap",
    "while_loop",
    "zeros",
    "zeros_like",
]

__getattr__ = lazy_names(__name__, _HOMES)
