"""What users call: compile, derivatives, control flow, batching."""

from archimedes.function.arrays import array, eye, ones, ones_like, zeros, zeros_like
from archimedes.function.batching import vmap
from archimedes.function.branches import cond, switch
from archimedes.function.callbacks import callback
from archimedes.function.compiled import Compiled, compile
from archimedes.function.custom import custom_jvp, custom_vjp, stop_gradient
from archimedes.function.derivatives import grad, hess, jac, jvp, vjp
from archimedes.function.implicit_functions import ConvergenceError, RootInfo, implicit, root
from archimedes.function.interpolation import Interpolant, interpolant
from archimedes.function.loops import fori_loop, scan, while_loop
from archimedes.function.sparse import coloring, sparsity
from archimedes.symbolic.matrix_functions import expm

__all__ = [
    "Compiled",
    "ConvergenceError",
    "Interpolant",
    "RootInfo",
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
    "jac",
    "jvp",
    "ones",
    "ones_like",
    "root",
    "scan",
    "sparsity",
    "stop_gradient",
    "switch",
    "vjp",
    "vmap",
    "while_loop",
    "zeros",
    "zeros_like",
]
