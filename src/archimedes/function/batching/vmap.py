"""``vmap``: run a function over many instances at once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from archimedes import tree
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.backends.registry import check_backend, runs_in_place
from archimedes.checks import check_callable
from archimedes.errors import TraceError
from archimedes.function.batching import batch_axes
from archimedes.function.batching.recorded_maps import recorded_map
from archimedes.function.compiled import Compiled
from archimedes.function.execution.kernel_calls import result_arrays
from archimedes.function.execution.shortcuts import ShortcutHolder
from archimedes.function.execution.tiers import CallForm
from archimedes.function.recording import Recording
from archimedes.function.region_bodies import must_record, trace_static_results
from archimedes.system.cpus import check_threads
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.function.inspection import Check

__all__ = ["vmap"]

P = ParamSpec("P")
R = TypeVar("R")


class Batched(ShortcutHolder, Generic[P, R]):
    """The result of :func:`vmap`."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_axes: Any,
        out_axes: Any,
        name: str | None,
        threads: int | None,
        backend: str | None = None,
    ) -> None:
        super().__init__()
        check_callable(function, "vmap: func", remedy="write arc.vmap(f)(x)")
        self.compiled = function if isinstance(function, Compiled) else Compiled(function)
        #: What runs it, if not what runs the function.
        self.backend = None if backend is None else check_backend("vmap", backend)
        functools.update_wrapper(self, self.compiled.function, updated=())
        self.name = name or f"vmap_{self.compiled.name}"
        self.__name__ = self.name
        batch_axes.check_axes(in_axes, "in_axes")
        batch_axes.check_axes(out_axes, "out_axes")
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.threads = check_threads("vmap", threads)
        self.__signature__ = inspect.signature(self.compiled.function)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.compiled!r} over axes {self.in_axes}>"

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Call it like the original function."""

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Evaluate all instances; keyword arguments are shared by all of them.

        ``out=`` takes what an earlier call returned and has the results written into its arrays
        (unless the function has a parameter of that name).
        """
        out = None
        if "out" in kwargs and "out" not in self.__signature__.parameters:
            out = kwargs.pop("out")
        axes, leaves, treedef, count = self._instances(args)
        sample = treedef.unflatten(
            [
                leaf if axis is None else batch_axes.instance(leaf)
                for leaf, axis in zip(leaves, axes)
            ]
        )
        in_place = runs_in_place(self.backend or self.compiled.backend, leaves)
        _, recording, tiers = self.compiled.lookup(sample, kwargs, in_place)
        every, batched = self._line_up(sample, kwargs, leaves, axes)
        if tiers is None or must_record(args, kwargs):
            if out is not None:
                raise TraceError(
                    f"{self.name}: out= takes numbers; inside a recorded function there is "
                    "nothing to save, leave it out"
                )
            recording = trace_static_results(recording)
            result = recorded_map(recording, every, batched, count)
            return batch_axes.place_results(recording, result, self.out_axes, count, batched, HOST)
        tiers = tiers.on(self.backend).where(every, recording.names)
        kind = tiers.calls.result_kind
        arrays = None if out is None else self._arrays(recording, out, kind, count)
        values = tiers.batch(every, batched, count, self.threads, arrays)
        if tiers.often and not kwargs and self._takes_shortcuts(axes, batched):
            form = CallForm(tuple(batched), self.threads, out is not None)
            self._offer(tiers, form, args)
        if out is not None:
            return out
        result = tiers.finish(values)
        return batch_axes.place_results(recording, result, self.out_axes, count, batched, kind)

    def _instances(self, args: tuple[Any, ...]) -> tuple[list[int | None], list[Any], TreeDef, int]:
        """Return batch axes and leaves, with that axis first, the tree, and how many there are."""
        axes = batch_axes.leaf_axes(self.in_axes, args, self.compiled.name)
        leaves, treedef = tree.flatten(args)
        count = batch_axes.count_instances(leaves, axes, treedef)
        return axes, list(map(batch_axes.to_front, leaves, axes)), treedef, count

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run each instance as plain Python, with the checks the function makes of values.

        Returns what came up, with the number of the instance; see ``Compiled.check``.
        """
        from archimedes.function.inspection import Check, check

        axes, leaves, treedef, count = self._instances(args)
        findings: list[Any] = []
        for k in range(count):
            row = treedef.unflatten([x if a is None else x[k] for x, a in zip(leaves, axes)])
            one = check(self.name, self.compiled.function, self.compiled, row, kwargs, k)
            findings.extend(one.findings)
        return Check(self.name, tuple(findings))

    def _arrays(self, recording: Recording, out: Any, kind: Arrays, count: int) -> list[Any]:
        if self.out_axes != 0:
            raise ValueError(f"{self.name}: out= needs out_axes=0, it is {self.out_axes!r}")
        return result_arrays(self.name, recording, out, kind, count)

    def _takes_shortcuts(self, axes: list[int | None], batched: list[bool]) -> bool:
        """Return whether arguments reach the function, and results the caller, as they are."""
        signature = self.compiled.signature
        plain = signature.plain and not signature.static and self.out_axes == 0
        return plain and not any(axes) and len(batched) == len(axes)

    def _line_up(
        self, sample: Any, kwargs: dict[str, Any], fronted: list[Any], axes: list[int | None]
    ) -> tuple[list[Any], list[bool]]:
        """Put leaves in the recording's order: arguments as bound, defaults and keywords shared."""
        signature = self.compiled.signature

        marks = [_Mark(k) for k in range(len(fronted))]
        values = signature.bind(tree.structure(sample).unflatten(marks), kwargs)
        fixed = signature.fixed(values)
        every, batched = [], []
        for mark in tree.leaves(tuple(v for k, v in values.items() if k not in fixed)):
            mine = isinstance(mark, _Mark)
            every.append(fronted[mark.position] if mine else mark)
            batched.append(mine and axes[mark.position] is not None)
        return every, batched

    def __content__(self) -> tuple[Any, ...]:
        return (self.compiled, self.in_axes, self.out_axes)


class _Mark:
    """Stands for an argument leaf while its place among all leaves is looked up."""

    def __init__(self, position: int) -> None:
        self.position = position


def vmap(
    func: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    name: str | None = None,
    *,
    threads: int | None = None,
    backend: str | None = None,
) -> Batched[P, R]:
    """Return a function that maps a function over an axis of its arguments.

    On numbers it runs as one native kernel over SIMD lanes and threads. Results do not depend on
    their number. Maps may be nested. Arrays of a device run there, and so do the results.

    Parameters
    ----------
    func : callable
        Function of one instance. Keyword arguments are shared by all instances.
    in_axes : int, None or tuple, optional
        Axis of the instances, for all arguments, or a tuple with one entry for each argument: an
        axis, None (shared by all instances), or a tree of those. 0 by default.
    out_axes : int or tree, optional
        Axis of the instances in the result. 0 by default.
    name : str, optional
        Name in messages and listings.
    threads : int, optional
        Number of threads. By default all CPUs for large batches.
    backend : str, optional
        What runs the map, as in :func:`compile`. By default the backend of `func`.

    Returns
    -------
    callable
        Function of the batched arguments.

    Examples
    --------
    >>> import numpy as np
    >>> vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    return Batched(func, in_axes, out_axes, name, threads, backend)
