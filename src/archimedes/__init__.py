"""Write the physics once, in plain NumPy; run it, differentiate it, batch it, deploy it.

>>> import numpy as np
>>> import archimedes as arc
>>> arc.jac(lambda x: np.sin(x) * x[::-1])(np.array([0.0, 1.0])).round(3)
array([[1.   , 0.   ],
       [0.841, 0.   ]])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archimedes.version import __version__ as __version__

if TYPE_CHECKING:
    from archimedes import embedded, spatial, tree
    from archimedes.embedded import codegen
    from archimedes.errors import (
        ArchimedesError,
        CodegenError,
        GraphError,
        StructError,
        TraceError,
    )
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
        expm,
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

__all__ = [
    "ArchimedesError",
    "CodegenError",
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
    "codegen",
    "coloring",
    "compile",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "embedded",
    "expm",
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
    "spatial",
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

# Names are imported when they are first used: `import archimedes` itself costs almost nothing.
_PACKAGES = ("tree", "spatial", "graph", "symbolic", "backends", "function", "embedded")
_ELSEWHERE = {
    **dict.fromkeys(("ArchimedesError", "CodegenError", "GraphError"), "errors"),
    **dict.fromkeys(("StructError", "TraceError"), "errors"),
    "codegen": "embedded",
    **dict.fromkeys(("StructConfig", "UnionConfig", "field", "struct"), "tree"),
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"archimedes.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'archimedes' has no attribute {name!r}")
    home = import_module(f"archimedes.{_ELSEWHERE.get(name, 'function')}")
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
