"""The same graph in other tools: CasADi's virtual machine, CasADi's C, JAX.

Graphs are translated node by node, so that every peer computes the same expressions.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.graph import TABLE, Call, Graph

__all__ = ["casadi_c", "casadi_function", "casadi_map", "jax_vmap"]

Batch = Callable[[Sequence[np.ndarray]], np.ndarray]

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def _translate(g: Graph, inputs: Sequence[Any], functions: dict[str, Callable[..., Any]]) -> list:
    """Evaluate a graph of plain ops and calls on values of another tool."""
    table = {**_ARITHMETIC, **functions}
    values: dict[int, Any] = {}
    for i in g.live():
        name = TABLE[g.op[i]].name
        if name == "const":
            values[i] = g.value[i]
        elif name == "input":
            values[i] = inputs[g.a[i]]
        elif name == "region":
            region = g.regions[i]
            assert isinstance(region, Call), region.kind
            given = [values[j] for j in region.inputs.tolist()]
            values[i] = _translate(region.body, given, functions)
        elif name == "out":
            values[i] = values[g.a[i]][g.b[i]]
        else:
            values[i] = table[name](*(values[j] for j in g.operands(i)))
    return [values[i] for i in g.outputs]


def casadi_function(g: Graph, sizes: Sequence[int]) -> Any:
    """The graph as a CasADi function of vectors of the given sizes, named ``model``."""
    import casadi as ca

    names = {"abs": ca.fabs, "select": ca.if_else, "max": ca.fmax, "min": ca.fmin}
    names |= {"not": ca.logic_not, "and": ca.logic_and, "or": ca.logic_or}
    names |= {name: getattr(ca, name) for name in ("sqrt", "sin", "cos", "exp", "log")}
    arguments = [ca.SX.sym(f"x{k}", size) for k, size in enumerate(sizes)]
    flat = [a[j] for a, size in zip(arguments, sizes) for j in range(size)]
    return ca.Function("model", arguments, [ca.vertcat(*_translate(g, flat, names))])


def casadi_map(g: Graph, sizes: Sequence[int], n: int) -> Batch:
    """CasADi's virtual machine over a batch, ``Function.map``, through its buffer interface."""
    function = casadi_function(g, sizes).map(n)
    out = np.empty((n, len(g.outputs)))

    def run(arrays: Sequence[np.ndarray]) -> np.ndarray:
        # One instance is a column, columns are contiguous: rows of C-ordered arrays.
        buffer, call = function.buffer()
        for k, array in enumerate(arrays):
            buffer.set_arg(k, memoryview(array))
        buffer.set_res(0, memoryview(out))
        call()
        return out

    return run


_LOOP = """
void batch(const double** in, double* out, long n) {
  const double* arg[%(args)d]; double* res[1]; double w[%(work)d]; long long iw[%(iwork)d];
  static const long sizes[] = {%(sizes)s};
  for (long i = 0; i < n; ++i) {
    for (int k = 0; k < %(inputs)d; ++k) arg[k] = in[k] + i * sizes[k];
    res[0] = out + i * %(outputs)d;
    model(arg, res, iw, w, 0);
  }
}
"""


#: Compiled libraries by the content of their graph.
_libraries: dict[tuple[str, tuple[int, ...]], Any] = {}


def _casadi_library(g: Graph, sizes: tuple[int, ...]) -> Any:
    """Compile CasADi's C of a graph, with a loop over a batch."""
    function = casadi_function(g, sizes)
    figures = {
        "args": function.sz_arg(),
        "work": max(function.sz_w(), 1),
        "iwork": max(function.sz_iw(), 1),
        "sizes": ", ".join(map(str, sizes)),
        "inputs": len(sizes),
        "outputs": len(g.outputs),
    }
    folder = Path(tempfile.mkdtemp())
    name = "model.c"
    function.generate(name, {"with_header": False})
    source = Path(name).read_text(encoding="utf-8") + _LOOP % figures
    Path(name).unlink()
    (folder / name).write_text(source, encoding="utf-8")
    flags = ["-O3", "-march=native", "-shared", "-fPIC", "-w"]
    library = str(folder / "model.so")
    subprocess.run(["gcc", *flags, str(folder / name), "-o", library, "-lm"], check=True)
    return ctypes.CDLL(library)


def casadi_c(g: Graph, sizes: Sequence[int], n: int) -> Batch | None:
    """CasADi's generated C, ``gcc -O3 -march=native``, looped over the batch in C."""
    if shutil.which("gcc") is None:
        return None
    key = g.digest(), tuple(sizes)
    if key not in _libraries:
        _libraries[key] = _casadi_library(g, tuple(sizes))
    batch = _libraries[key].batch
    out = np.empty((n, len(g.outputs)))

    def run(arrays: Sequence[np.ndarray]) -> np.ndarray:
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        batch(pointers, ctypes.c_void_p(out.ctypes.data), ctypes.c_long(n))
        return out

    return run


def jax_function(g: Graph, sizes: Sequence[int]) -> Callable[..., Any]:
    """The graph as a JAX function of vectors, float64."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    names = {"abs": jnp.abs, "select": jnp.where, "max": jnp.maximum, "min": jnp.minimum}
    names |= {"not": jnp.logical_not, "and": jnp.logical_and, "or": jnp.logical_or}
    names |= {name: getattr(jnp, name) for name in ("sqrt", "sin", "cos", "exp", "log")}

    def one(*arguments: Any) -> Any:
        flat = [a[j] for a, size in zip(arguments, sizes) for j in range(size)]
        return jnp.stack(_translate(g, flat, names))

    return one


def jax_vmap(g: Graph, sizes: Sequence[int], n: int) -> Batch:
    """JAX on the CPU, ``jit(vmap(...))``."""
    import jax

    compiled = jax.jit(jax.vmap(jax_function(g, sizes)))

    def run(arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(compiled(*arrays))

    return run
