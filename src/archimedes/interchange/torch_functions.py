"""Functions of PyTorch's tensors, made of NumPy functions: values, derivatives and maps.

One ``torch.autograd.Function`` applies a function of leaves. Its backward, forward-mode and vmap
rules apply others (``leaf_functions.py``), so that they can be differentiated and mapped in turn.
Tensors on the CPU are NumPy arrays that share their memory; those on a GPU are CuPy's, used on the
stream that PyTorch is using.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, update_wrapper
from typing import Any

import numpy as np

from archimedes.errors import DeviceError, ShapeDtypeError
from archimedes.installation import install_command
from archimedes.interchange.leaf_functions import ArrayKind, LeafFunction, TreeFunction

__all__ = ["to_torch"]


def to_torch(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of PyTorch's tensors that computes what a NumPy function computes.

    Its derivatives are exact, to any order, in reverse and in forward mode: it works with
    ``backward()``, ``torch.autograd`` and ``torch.func`` (``grad``, ``jacrev``, ``jacfwd``,
    ``hessian``, ``vmap``). Tensors on the CPU are read and results written without copies.

    Parameters
    ----------
    func : callable
        A NumPy function, compiled or not, or a map of one over a batch: ``arc.vmap(f)``. Its
        arguments and results may be any trees of structs, containers, arrays and numbers.

    Returns
    -------
    callable
        Function of the same arguments, with tensors in place of arrays. Results have the dtypes
        that `func` gives NumPy arrays of the same dtypes: float32 stays float32 where no float64
        array joins it. There are derivatives with respect to floating-point tensors; tensors of
        int64 and bool, NumPy arrays and Python numbers are constants.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    ShapeDtypeError
        At a call, if a tensor is of another dtype (float16, bfloat16, complex, int32) or is not
        dense.
    DeviceError
        At a call, if tensors are on different devices, or on one that is neither the CPU nor an
        NVIDIA GPU.

    Examples
    --------
    >>> import numpy as np
    >>> import torch  # doctest: +SKIP
    >>> f = to_torch(lambda x: np.sum(np.sin(x) * x))  # doctest: +SKIP
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)  # doctest: +SKIP
    >>> f(x).backward()  # doctest: +SKIP
    >>> x.grad  # doctest: +SKIP
    tensor([1.3818, 0.0770])
    """
    _autograd_function()
    return TorchFunction(func)


class TorchFunction:
    """The result of :func:`to_torch`."""

    def __init__(self, func: Callable[..., Any]) -> None:
        import torch

        self._tree = TreeFunction(func, "to_torch")
        update_wrapper(self, self._tree.compiled.function, updated=())
        #: PyTorch's compiler does not look inside.
        self._call = torch.compiler.disable(self._apply)

    def __repr__(self) -> str:
        return f"<to_torch: {self._tree.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._call(args, kwargs)

    def _apply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        seen: dict[Any, str] = {}

        def read(leaf: Any, name: str) -> tuple[Any, ArrayKind | None]:
            if isinstance(leaf, (np.ndarray, np.generic)):
                leaf = torch.from_numpy(np.asarray(leaf))
            if isinstance(leaf, torch.Tensor):
                seen.setdefault(leaf.device, name)
                _one_device(seen)
                return leaf, _kind_of(leaf, name)
            if type(leaf) in (float, int):
                return leaf, ArrayKind((), np.dtype(type(leaf)), weak=True)
            return leaf, None

        call = self._tree.prepare(args, kwargs, read, torch.movedim)
        device = _one_device(seen)
        results: Sequence[Any] = ()
        if call.function.count:
            results = _autograd_function().apply(call.function, *call.operands)
        return call.rebuild(results, lambda array: torch.from_numpy(array).to(device))


@cache
def _autograd_function() -> Any:
    """Return the class of PyTorch's that applies functions of leaves."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"to_torch needs PyTorch ({error}): {install_command('torch')}") from None

    class Apply(torch.autograd.Function):
        """``apply(function, *operands)``: results of a function of leaves, as tensors."""

        @staticmethod
        def forward(function: LeafFunction, *operands: Any) -> tuple[Any, ...]:
            return _run(function, operands)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.function, *operands = inputs
            ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in operands]
            tensors = [x for x in operands if isinstance(x, torch.Tensor)]
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            floats = ctx.function.floats
            ctx.mark_non_differentiable(*(x for k, x in enumerate(output) if k not in floats))

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
            function, operands = ctx.function, _saved(ctx)
            wrt = [k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed]
            given = [cotangents[k] for k in function.floats]
            products = iter(Apply.apply(function.vjp(wrt), *operands, *given))
            return (None, *(next(products) if k in wrt else None for k in range(len(operands))))

        @staticmethod
        def jvp(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
            function, operands = ctx.function, _saved(ctx)
            wrt = [
                k
                for k, (x, v) in enumerate(zip(operands, tangents))
                if v is not None and x.is_floating_point()
            ]
            given = [tangents[k] for k in wrt]
            products = iter(Apply.apply(function.jvp(wrt), *operands, *given))
            return tuple(
                next(products) if k in function.floats else None for k in range(function.count)
            )

        @staticmethod
        def vmap(info: Any, in_dims: Any, function: LeafFunction, *operands: Any) -> Any:
            axes = in_dims[1:]
            moved = [x if axis is None else x.movedim(axis, 0) for x, axis in zip(operands, axes)]
            mapped = function.mapped([axis is not None for axis in axes])
            return Apply.apply(mapped, *moved), (0,) * function.count

    return Apply


def _saved(ctx: Any) -> list[Any]:
    """Return the operands of a call, of which a context keeps the tensors apart."""
    tensors = iter(ctx.saved_tensors)
    return [next(tensors) if x is None else x for x in ctx.numbers]


# ---- tensors and arrays --------------------------------------------------------------------------


def _one_device(seen: dict[Any, str]) -> Any:
    """Return the one device of all tensors, given with an argument on each, or raise."""
    import torch

    for device, name in seen.items():
        if device.type not in ("cpu", "cuda"):
            raise DeviceError(
                f"{name} is on {device}, but functions run on the CPU and on NVIDIA GPUs only: "
                "move it with .to('cpu')"
            )
    if len(seen) > 1:
        where = ", ".join(f"{name} on {device}" for device, name in seen.items())
        raise DeviceError(f"tensors are on different devices, {where}: move them to one with .to()")
    return next(iter(seen), torch.device("cpu"))


def _kind_of(tensor: Any, name: str) -> ArrayKind:
    """Describe a tensor, or say why functions do not take it."""
    import torch

    dtypes = {
        torch.float64: np.float64,
        torch.float32: np.float32,
        torch.int64: np.int64,
        torch.bool: np.bool_,
    }
    if tensor.dtype not in dtypes:
        remedy = "take real and imaginary parts"
        if not tensor.is_complex():
            remedy = (
                "convert it with .float()"
                if tensor.is_floating_point()
                else "convert it with .long()"
            )
        raise ShapeDtypeError(
            f"{name} is a tensor of {tensor.dtype}, but functions take float64, float32, int64 and "
            f"bool: {remedy}"
        )
    if tensor.layout != torch.strided:
        raise ShapeDtypeError(
            f"{name} is a tensor of layout {tensor.layout}, but functions take dense tensors: "
            "convert it with .to_dense()"
        )
    return ArrayKind(tuple(tensor.shape), np.dtype(dtypes[tensor.dtype]))


def _run(function: LeafFunction, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Call a function of leaves with tensors; they and the results share memory with its arrays."""
    import torch

    devices = {x.device for x in operands if isinstance(x, torch.Tensor)}
    device = next((d for d in devices if d.type != "cpu"), None)
    exchange = HostExchange() if device is None else DeviceExchange(device)
    with exchange.working():
        arrays = [
            exchange.array(x.detach()) if isinstance(x, torch.Tensor) else x for x in operands
        ]
        return tuple(exchange.tensor(x) for x in function(arrays))


class HostExchange:
    """Between tensors on the CPU and NumPy's arrays."""

    def working(self) -> AbstractContextManager[Any]:
        """Return the context to work in."""
        return nullcontext()

    def array(self, tensor: Any) -> Any:
        """Return the array in a tensor's memory."""
        return tensor.resolve_conj().resolve_neg().numpy()[()]

    def tensor(self, array: Any) -> Any:
        """Return the tensor in an array's memory."""
        import torch

        return torch.from_numpy(np.asarray(array))


class DeviceExchange:
    """Between tensors on an NVIDIA GPU and CuPy's arrays."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def working(self) -> AbstractContextManager[Any]:
        """Return the context to work in: PyTorch's device and its current stream there."""
        import torch

        from archimedes.backends.cuda.device import on_stream

        return on_stream(self.device.index, torch.cuda.current_stream(self.device).cuda_stream)

    def array(self, tensor: Any) -> Any:
        """Return the array in a tensor's memory."""
        from archimedes.backends.cuda.device import as_cupy

        return as_cupy(tensor)

    def tensor(self, array: Any) -> Any:
        """Return the tensor in an array's memory."""
        import torch

        from archimedes.backends.cuda.device import as_cupy

        return torch.from_dlpack(as_cupy(array))
