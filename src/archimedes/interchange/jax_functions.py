"""Functions of JAX's arrays, made of NumPy functions: values, derivatives and maps.

There is one primitive, which applies a function of leaves. Its rules for tangents, cotangents and
batches apply others (``leaf_functions.py``), so that they can be differentiated and mapped in turn.
Compiled programs of JAX call back to Python, which calls the kernel; XLA owns the memory there and
copies the results once. Outside ``jax.jit`` nothing is copied, on the CPU or, through CuPy, on a
GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, update_wrapper
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import DeviceError, IntegerRangeError, ShapeDtypeError
from archimedes.installation import install_command
from archimedes.interchange.leaf_functions import ArrayKind, LeafFunction, TreeFunction
from archimedes.tree.nodes import KINDS
from archimedes.tree.treedef import LEAF_KIND

__all__ = ["to_jax"]


def to_jax(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of JAX's arrays that computes what a NumPy function computes.

    Its derivatives are exact, to any order, in forward and in reverse mode, and it works inside
    ``jax.jit``, ``jax.grad``, ``jax.jacfwd``, ``jax.jacrev``, ``jax.hessian``, ``jax.vmap``,
    ``jax.lax.scan`` and what else JAX traces. Structs become pytrees of JAX. Inside ``jax.jit``
    the function runs on the CPU. Outside it runs where the arrays are; on a GPU that needs CuPy.

    Parameters
    ----------
    func : callable
        A NumPy function, compiled or not, or a map of one over a batch: ``arc.vmap(f)``. Its
        arguments and results may be any trees of structs, containers, arrays and numbers.

    Returns
    -------
    callable
        Function of the same arguments, with JAX's arrays in place of NumPy's. Results have the
        dtypes that `func` gives NumPy arrays of the same dtypes: float32 stays float32 where no
        float64 array joins it. Unless ``jax_enable_x64`` is set, JAX has no 64-bit types: int32
        arguments are computed with as int64, and 64-bit results become 32-bit ones. There are
        derivatives with respect to floating-point arrays and numbers.

    Raises
    ------
    ImportError
        If JAX is not installed.
    ShapeDtypeError
        At a call, if an array is of another dtype (float16, bfloat16, complex, uint8).

    Examples
    --------
    >>> import numpy as np
    >>> import jax  # doctest: +SKIP
    >>> f = to_jax(lambda x: np.sum(np.sin(x) * x))  # doctest: +SKIP
    >>> jax.jit(jax.grad(f))(jax.numpy.array([1.0, 2.0]))  # doctest: +SKIP
    Array([1.381773 , 0.0770037], dtype=float32)
    """
    _primitive()
    _register_structs()
    return JaxFunction(func)


class JaxFunction:
    """The result of :func:`to_jax`."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self._tree = TreeFunction(func, "to_jax")
        update_wrapper(self, self._tree.compiled.function, updated=())

    def __repr__(self) -> str:
        return f"<to_jax: {self._tree.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        import jax.numpy as jnp

        if len(_registered) < len(KINDS):
            _register_structs()
        call = self._tree.prepare(args, kwargs, _read, jnp.moveaxis)
        results = _primitive().bind(*call.operands, function=call.function)
        return call.rebuild(results, jnp.asarray)


@cache
def _primitive() -> Any:
    """Return the primitive ``bind(*operands, function=...)``, with all of its rules."""
    try:
        import jax
        from jax.extend.core import Primitive
        from jax.interpreters import ad, batching, mlir
    except ImportError as error:
        raise ImportError(f"to_jax needs JAX ({error}): {install_command('jax')}") from None

    primitive = Primitive("archimedes")
    primitive.multiple_results = True

    def result_types(shapes: Sequence[tuple[int, ...]], function: LeafFunction) -> list[Any]:
        return [
            jax.ShapeDtypeStruct(kind.shape, jax.dtypes.canonicalize_dtype(kind.dtype))
            for kind in function.results(shapes)
        ]

    @primitive.def_abstract_eval
    def _(*operands: Any, function: LeafFunction) -> list[Any]:
        types = result_types([np.shape(x) for x in operands], function)
        return [jax.core.ShapedArray(t.shape, t.dtype) for t in types]

    def call(function: LeafFunction, operands: Sequence[Any], types: Sequence[Any]) -> list[Any]:
        arrays = [_as_leaf(x, weak) for x, weak in zip(operands, function.weak)]
        return [_as_type(x, t.dtype, "a result") for x, t in zip(function(arrays), types)]

    @primitive.def_impl
    def _(*operands: Any, function: LeafFunction) -> list[Any]:
        shapes = [np.shape(x) for x in operands]
        types = result_types(shapes, function)
        kinds = function.results(shapes)
        gpu = _gpu_of(operands)
        if gpu is not None:
            return _call_on_gpu(function, operands, types, gpu)
        if jax.default_backend() != "cpu" or not _share_memory(kinds, types):
            return [jax.numpy.asarray(x) for x in call(function, operands, types)]
        results = [_aligned_empty(t.shape, t.dtype) for t in types]
        function.into([_as_leaf(x, weak) for x, weak in zip(operands, function.weak)], results)
        return [jax.numpy.from_dlpack(x) for x in results]

    def lower(context: Any, *operands: Any, function: LeafFunction) -> Any:
        types = result_types([x.shape for x in context.avals_in], function)
        # Not jax.pure_callback: it makes JAX's arrays of the arguments first, which takes five
        # times as long as the rest of the call.
        results, _, _ = mlir.emit_python_callback(
            context,
            lambda *arrays: tuple(call(function, arrays, types)),
            None,
            list(operands),
            context.avals_in,
            context.avals_out,
            has_side_effect=False,
        )
        return results

    mlir.register_lowering(primitive, lower)

    def batch(operands: Any, axes: Any, *, function: LeafFunction) -> Any:
        moved = [
            x if axis is None else jax.numpy.moveaxis(x, axis, 0) for x, axis in zip(operands, axes)
        ]
        mapped = function.mapped([axis is not None for axis in axes])
        return primitive.bind(*moved, function=mapped), [0] * function.count

    batching.primitive_batchers[primitive] = batch

    def push(primals: Any, tangents: Any, *, function: LeafFunction) -> Any:
        results = primitive.bind(*primals, function=function)
        wrt = [
            k
            for k, (x, v) in enumerate(zip(primals, tangents))
            if not isinstance(v, ad.Zero) and jax.typeof(x).dtype.kind == "f"
        ]
        directions = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in results]
        if wrt:
            given = [tangents[k] for k in wrt]
            products = primitive.bind(*primals, *given, function=function.jvp(wrt))
            for k, product in zip(function.floats, products):
                directions[k] = product
        return results, directions

    ad.primitive_jvps[primitive] = push

    def pull(cotangents: Any, *operands: Any, function: LeafFunction) -> Any:
        linear = function.linear
        if linear is None:
            raise NotImplementedError("a function that is not linear has no transpose")
        unknown = [k for k, x in enumerate(operands) if ad.is_undefined_primal(x)]
        count = len(operands) - linear.size
        primals, own = operands[:count], [k - count for k in unknown]
        given = [ad.instantiate_zeros(ct) for ct in cotangents]
        transposed, positions = linear.transpose(own)
        products = primitive.bind(*primals, *given, function=transposed)
        results: list[Any] = [None] * len(operands)
        for k, position in zip(unknown, positions):
            results[k] = products[position]
        return results

    ad.primitive_transposes[primitive] = pull
    return primitive


# ---- arrays --------------------------------------------------------------------------------------

#: Bytes from which results are written where JAX can keep them: less is copied sooner.
_LARGE = 2**16
#: Bytes to which JAX aligns arrays on the CPU.
_ALIGNMENT = 64


def _read(leaf: Any, name: str) -> tuple[Any, ArrayKind | None]:
    """Return a leaf as an array of JAX's, and its kind; None for what is not made of numbers."""
    import jax

    number = isinstance(leaf, (int, float)) and not isinstance(leaf, bool)
    if not number and not isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
        return leaf, None
    if isinstance(leaf, (int, np.integer, np.ndarray)):
        narrow = jax.dtypes.canonicalize_dtype(np.asarray(leaf).dtype)
        leaf = _as_type(leaf, narrow, name) if narrow == np.int32 else leaf
    array = jax.numpy.asarray(leaf)
    dtypes = {"float64": "f8", "float32": "f4", "int64": "i8", "int32": "i8", "bool": "?"}
    if str(array.dtype) not in dtypes:
        raise ShapeDtypeError(
            f"{name} is an array of {array.dtype}, but functions take float64, float32, int64, "
            "int32 and bool: convert it with .astype()"
        )
    weak = bool(getattr(array, "weak_type", False)) and not array.shape
    dtype = np.dtype(dtypes[str(array.dtype)])
    if weak:
        dtype = np.dtype(float if dtype.kind == "f" else int)
    return array, ArrayKind(tuple(array.shape), dtype, weak)


def _as_leaf(array: Any, weak: bool) -> Any:
    """Return an array of JAX's as the kernel takes it, in the same memory."""
    if weak:
        return np.asarray(array).item()
    leaf = np.asarray(array)[()]
    return leaf.astype(np.int64) if leaf.dtype == np.int32 else leaf


def _as_type(array: Any, dtype: Any, name: str) -> Any:
    """Return an array in the type that JAX has for it; whole numbers must fit there."""
    wide = array if hasattr(array, "__cuda_array_interface__") else np.asarray(array)
    if dtype == np.int32 and wide.size and not -(2**31) <= wide.min() <= wide.max() < 2**31:
        raise IntegerRangeError(
            f"{name} has whole numbers of more than 32 bits (a key of random numbers?), which JAX "
            'has not: jax.config.update("jax_enable_x64", True)'
        )
    return array if type(array) is int else wide.astype(dtype, copy=False)


def _share_memory(kinds: Sequence[ArrayKind], types: Sequence[Any]) -> bool:
    """Return whether results are worth writing to, and may be written to, memory for JAX."""
    bytes_of = [kind.dtype.itemsize * math.prod(kind.shape) for kind in kinds]
    same = all(kind.shape and kind.dtype == t.dtype for kind, t in zip(kinds, types))
    return same and max(bytes_of, default=0) >= _LARGE


def _aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array that JAX can take without a copy."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _gpu_of(operands: Sequence[Any]) -> int | None:
    """Return the number of the GPU on which all arrays are, if CuPy can use it; else None."""
    import jax

    devices = set().union(*(x.devices() for x in operands if isinstance(x, jax.Array)))
    if len(devices) != 1:
        return None
    (device,) = devices
    if device.platform not in ("gpu", "cuda"):
        return None
    from archimedes.backends.cuda.device import cupy

    try:
        cupy()
    except DeviceError:  # without CuPy arrays are copied to the CPU and back
        return None
    return int(device.local_hardware_id)


def _call_on_gpu(
    function: LeafFunction, operands: Sequence[Any], types: Sequence[Any], gpu: int
) -> list[Any]:
    """Return the results for arrays on a GPU, in the memory in which the kernel wrote them."""
    import jax

    from archimedes.backends.cuda.device import as_cupy, finished_on

    jax.block_until_ready(list(operands))
    with finished_on(gpu):
        arrays = [x.item() if weak else as_cupy(x) for x, weak in zip(operands, function.weak)]
        arrays = [x.astype(np.int64) if getattr(x, "dtype", 0) == np.int32 else x for x in arrays]
        results = [
            _as_type(as_cupy(x), t.dtype, "a result") for x, t in zip(function(arrays), types)
        ]
    return [jax.numpy.from_dlpack(x) for x in results]


#: Classes that JAX was told about.
_registered: set[type] = {LEAF_KIND.cls}


def _register_structs() -> None:
    """Make pytrees of JAX of all structs and other nodes of trees that exist."""
    from jax import tree_util

    for cls in set(KINDS) - _registered:
        _registered.add(cls)
        if issubclass(cls, (list, tuple, dict, type(None))):
            continue  # JAX knows them
        try:
            tree_util.register_pytree_with_keys(cls, _take_apart_with_keys, _put_together)
        except ValueError:
            continue  # its author has registered it


def _take_apart_with_keys(node: Any) -> tuple[list[tuple[Any, Any]], Any]:
    from jax.tree_util import GetAttrKey

    children, treedef = tree.flatten(node, is_leaf=lambda x: x is not node)
    names = [path.lstrip(".") for path in treedef.paths()]
    return [(GetAttrKey(name), child) for name, child in zip(names, children)], treedef


def _put_together(treedef: Any, children: Iterable[Any]) -> Any:
    return treedef.unflatten(list(children))
