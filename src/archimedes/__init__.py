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

from archimedes.lazy_names import lazy_names
from archimedes.version import __version__ as __version__

if TYPE_CHECKING:
    from archimedes import (
        embedded,
        environment,
        optimize,
        random,
        simulate,
        spatial,
        special,
        tree,
        vehicles,
        viz,
    )
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
        SparsePattern,
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
        sym,
        sym_like,
        vjp,
        vmap,
        while_loop,
        zeros,
        zeros_like,
    )
    from archimedes.optimize import minimize, nlp_solver
    from archimedes.simulate import (
        Event,
        InconsistentStart,
        InputSeries,
        Sampled,
        SimulationError,
        SolveInfo,
        Trajectory,
        discretize,
        integrator,
        monte_carlo,
        odeint,
        solve_dae,
        solve_ode,
    )
    from archimedes.tree import StructConfig, UnionConfig, field, struct
    from archimedes.viz import plot, set_theme

__all__ = [
    "ArchimedesError",
    "CodegenError",
    "Compiled",
    "ConvergenceError",
    "Event",
    "GraphError",
    "InconsistentStart",
    "InputSeries",
    "Interpolant",
    "RootInfo",
    "Sampled",
    "SimulationError",
    "SolveInfo",
    "SparsePattern",
    "StructConfig",
    "StructError",
    "TraceError",
    "Trajectory",
    "UnionConfig",
    "array",
    "callback",
    "codegen",
    "coloring",
    "compile",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "discretize",
    "embedded",
    "environment",
    "expm",
    "eye",
    "field",
    "fori_loop",
    "grad",
    "hess",
    "implicit",
    "integrator",
    "interpolant",
    "jac",
    "jvp",
    "minimize",
    "monte_carlo",
    "nlp_solver",
    "odeint",
    "ones",
    "ones_like",
    "optimize",
    "plot",
    "random",
    "root",
    "scan",
    "set_theme",
    "simulate",
    "solve_dae",
    "solve_ode",
    "sparsity",
    "spatial",
    "special",
    "stop_gradient",
    "struct",
    "switch",
    "sym",
    "sym_like",
    "tree",
    "vehicles",
    "viz",
    "vjp",
    "vmap",
    "while_loop",
    "zeros",
    "zeros_like",
]

# Names are imported when they are first used: `import archimedes` itself costs almost nothing.
_PACKAGES = (
    *("tree", "graph", "symbolic", "backends", "function"),
    *(
        "random",
        "special",
        "embedded",
        "optimize",
        "simulate",
        "spatial",
        "environment",
        "vehicles",
        "viz",
    ),
    *("error", "theme", "typing"),
)
#: One line a package: the names it gives to users. The rest are those of ``function``.
_HOMES = {
    "archimedes.errors": "ArchimedesError CodegenError GraphError StructError TraceError",
    "archimedes.tree": "StructConfig UnionConfig field struct",
    "archimedes.embedded": "codegen",
    "archimedes.optimize": "minimize nlp_solver",
    "archimedes.simulate": (
        "Event InconsistentStart InputSeries Sampled SimulationError SolveInfo Trajectory "
        "discretize integrator monte_carlo odeint solve_dae solve_ode"
    ),
    "archimedes.viz": "plot set_theme",
}
_elsewhere = {name for names in _HOMES.values() for name in names.split()}
_HOMES["archimedes.function"] = " ".join({*__all__} - _elsewhere - {*_PACKAGES})
_named = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    return import_module(f"archimedes.{name}") if name in _PACKAGES else _named(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
