"""``compile``: a NumPy function becomes a graph, once for each kind of arguments."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from archimedes.backends.registry import check_backend
from archimedes.checks import check_choice
from archimedes.errors import TraceError
from archimedes.function.dependencies.openers import Same
from archimedes.function.execution.shortcuts import P, R
from archimedes.function.execution.tiers import SINGLE, CallForm, Tiers, out_error, result_arrays
from archimedes.function.recorded_function import RecordedFunction
from archimedes.function.recording import (
    INLINE_LIMIT,
    Recording,
    apply_recording,
    is_part_of_recording,
)
from archimedes.function.signatures import warn_of_former_options
from archimedes.graph import Graph, Statistics, statistics
from archimedes.late_binding import provided

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from archimedes.analysis.precision.report import PrecisionReport
    from archimedes.analysis.ranges.bounds import Bounds
    from archimedes.function.inspection import Check, Report

__all__ = ["Compiled", "compile"]


class CompiledMethod(functools.partial, Generic[P, R]):
    """A compiled function bound to its first argument: what ``model.method`` gives."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, /, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
            """Call the function with its first argument in place."""

    @property
    def _compiled(self) -> Any:
        return self.func

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph used for these arguments."""
        return self._compiled.graph(*self.args, *args, **kwargs)

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return figures about the graph used for these arguments."""
        return self._compiled.statistics(*self.args, *args, **kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Compile for these arguments, time it, and return the figures."""
        return self._compiled.report(*self.args, *args, **kwargs)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run the method as plain Python on these numbers, with its checks of values."""
        return self._compiled.check(*self.args, *args, **kwargs)

    def bounds(self, ranges: Any, *args: Any, boxes: int = 256, **kwargs: Any) -> Bounds:
        """Return certified ranges of the method's results: see ``Compiled.bounds``."""
        return provided("bounds")(self, ranges, args, kwargs, boxes=boxes)

    def precision(self, *args: Any, **kwargs: Any) -> PrecisionReport:
        """Say where the method loses digits for these arguments: see ``Compiled.precision``."""
        return self._compiled.precision(*self.args, *args, **kwargs)

    def explain(self) -> str:
        """Say what was recorded and why, for all instances."""
        return self._compiled.explain()


Q = ParamSpec("Q")
S = TypeVar("S")


class Compiled(RecordedFunction[P, R]):
    """A function that is recorded once for each structure, shape and dtype of its arguments.

    It is made by :func:`compile` and by the derivative functions. Call it like the original; the
    first call with a new kind of arguments records the function. Called with traced values, it
    becomes part of the function that is being recorded. ``out=`` takes what an earlier call
    returned and has the results written into its arrays, unless the function has a parameter of
    that name.

    Parameters
    ----------
    function : callable
        The original function.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program. They are compared by content;
        each new value is recorded anew. Python bools, strings and functions are always static.
    static_argnames : str or sequence of str, optional
        Names of such arguments.
    return_names : sequence of str, optional
        Names of the results, if the function returns a tuple.
    name : str, optional
        Name in messages and listings. By default that of the function.
    backend : {"auto", "llvm", "interpreter", "cuda"}, optional
        What runs the function, with the same bits. ``"auto"``, the default, interprets at first and
        compiles to native code when that pays.
    numerics : {"strict", "fast"}, optional
        ``"strict"``, the default, rounds every operation as NumPy does. ``"fast"`` fuses products
        and sums, and inverts a divisor that is used more than once: results differ from NumPy's by
        rounding, but not between backends, lanes and threads. Derivatives and :func:`vmap` of the
        function use its mode; inside another compiled function, the mode of that one holds.
    freeze : bool, optional
        Take globals, closures and attributes as they are at the first recording, and never look at
        them again. By default a function whose surroundings have changed is recorded anew.
    loops_from : int, optional
        Number of elements from which operations on arrays become loops, which take the same time to
        compile whatever their length. Smaller arrays are scalarized, which runs fastest. 64 by
        default. Results may differ by the rounding of sums.
    watch : sequence, optional
        Objects whose content is part of the function, instead of what the function is seen to read.

    Examples
    --------
    >>> import archimedes as arc
    >>> f = arc.compile(lambda x: 2.0 * x)
    >>> f.name, float(f(3.0))
    ('<lambda>', 6.0)
    """

    #: Called from another recording, it is copied into it up to this many operations.
    inline_limit = INLINE_LIMIT

    @property
    def arg_names(self) -> tuple[str, ...]:
        """Names of the function's arguments."""
        return tuple(self.signature.parameters.parameters)

    def __repr__(self) -> str:
        return f"<compiled {self.name}{self.signature.parameters}, {len(self._cache)} recorded>"

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Compiled[P, R]: ...
    @overload
    def __get__(
        self: Compiled[Concatenate[S, Q], R], instance: S, owner: Any = None
    ) -> CompiledMethod[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else CompiledMethod(self, instance)

    def __reduce__(self) -> str:
        # As Python does with functions: named when pickled, shared when copied.
        return getattr(self, "__qualname__", self.name)

    # ---- calling ---------------------------------------------------------------------------

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Evaluate; the first call with a new kind of arguments records the function."""
        if "out" in kwargs and "out" not in self.signature.names:
            return self._into(kwargs.pop("out"), args, kwargs)
        leaves, recording, tiers = self.lookup(args, kwargs, in_place=True)
        if tiers is not None and not is_part_of_recording(leaves):
            tiers = tiers.where(leaves, recording.names)
            result = tiers(leaves)
            if tiers.often and not kwargs and self._takes_shortcuts:
                self._offer(tiers, SINGLE, args)
            return result
        return apply_recording(recording, leaves, self.inline_limit)

    def _into(self, out: Any, args: Any, kwargs: Any) -> Any:
        """Evaluate into the arrays of ``out``."""
        leaves, recording, tiers = self.lookup(args, kwargs, in_place=True)
        if tiers is None or is_part_of_recording(leaves):
            raise out_error(self.name)
        tiers = tiers.where(leaves, recording.names)
        tiers.into(leaves, result_arrays(self.name, recording, out, tiers.calls.result_kind))
        if tiers.often and not kwargs and self._takes_shortcuts:
            self._offer(tiers, CallForm(into=True), args)
        return out

    @property
    def _takes_shortcuts(self) -> bool:
        """Whether arguments reach the function as they are given."""
        return self.signature.plain and not self.signature.static

    # ---- looking inside --------------------------------------------------------------------

    def recording(self, *args: Any, **kwargs: Any) -> Recording:
        """Return the recording for given arguments, and make it if needed.

        Parameters
        ----------
        *args, **kwargs
            Arguments as the function itself takes them. Their structure, shapes and dtypes matter,
            and the values of static ones.
        """
        return self.lookup(args, kwargs)[1]

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph for given arguments. Printing it shows the program.

        Parameters
        ----------
        *args, **kwargs
            Arguments as the function itself takes them. Their structure, shapes and dtypes matter,
            and the values of static ones.
        """
        return self.recording(*args, **kwargs).graph

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return figures about the graph for given arguments.

        Parameters
        ----------
        *args, **kwargs
            Arguments as the function itself takes them. Their structure, shapes and dtypes matter,
            and the values of static ones.
        """
        return statistics(self.graph(*args, **kwargs))

    def source(self, kind: str, *args: Any, **kwargs: Any) -> str:
        """Return the generated code for given arguments as text.

        Parameters
        ----------
        kind : str
            ``"llvm"`` or ``"asm"``; other backends have kinds of their own.
        *args, **kwargs
            Arguments as the function itself takes them. Their structure, shapes and dtypes matter,
            and the values of static ones.
        """
        kernel = self._tiers(args, kwargs).kernel()
        remedy = "" if kernel.sources else "this backend shows no code"
        check_choice(kind, "source: kind", kernel.sources, remedy)
        return kernel.source(kind)

    def report(self, *args: Any, backend: str | None = None, **kwargs: Any) -> Report:
        """Compile for given arguments, measure the time of a call, and return the figures.

        Parameters
        ----------
        *args, **kwargs
            Arguments as the function itself takes them. Their structure, shapes and dtypes matter,
            and the values of static ones.
        backend : str, optional
            Another backend than that of the function, unless the function has a parameter of this
            name. That of a GPU reports the resources of its kernels, and times a batch.
        """
        from archimedes.function.inspection import measure

        if backend is not None and "backend" in self.signature.names:
            kwargs["backend"], backend = backend, None
        leaves, recording, tiers = self.lookup(args, kwargs)
        tiers = self._require_numbers(tiers)
        if backend is not None:
            tiers = tiers.on(check_backend("report", backend))
        return measure(self.name, tiers.where(leaves, recording.names), leaves)

    def _tiers(self, args: Any, kwargs: Any) -> Tiers:
        leaves, recording, tiers = self.lookup(args, kwargs)
        return self._require_numbers(tiers).where(leaves, recording.names)

    def _require_numbers(self, tiers: Tiers | None) -> Tiers:
        if tiers is None:
            raise TraceError(f"{self.name} uses values of the function that is being recorded")
        return tiers

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run the function as plain Python on given numbers, with its checks of values.

        A compiled function cannot make these checks. The result lists errors, warnings such as
        divisions by zero, and differences from the compiled result. It is true if there are none.

        Parameters
        ----------
        *args, **kwargs
            Arguments as the function itself takes them. Their structure, shapes and dtypes matter,
            and the values of static ones.

        Examples
        --------
        >>> f = compile(lambda m: 1.0 / m)
        >>> print(f.check(0.0))  # doctest: +ELLIPSIS
        <lambda>: 1 found
        error: ZeroDivisionError: ...
        """
        from archimedes.function.inspection import check

        return check(self.name, self.function, self, args, kwargs)

    def bounds(self, ranges: Any, *args: Any, boxes: int = 256, **kwargs: Any) -> Bounds:
        """Return certified ranges of the results for arguments in given ranges.

        Whatever the function computes for such arguments, to the last bit, lies between ``lower``
        and ``upper``. The result also lists what is proven, such as that nothing is divided by
        zero, and the lines for which it is not.

        Parameters
        ----------
        ranges : dict, or tree
            A range for each argument by its name, ``{"x": (-1.0, 1.0), "u": (0.0, 2.0)}``, or in
            order. A range is a pair ``(lower, upper)`` of numbers or arrays, or an
            :class:`Interval`; it stands for an argument or for leaves of it. A number is known
            exactly. Infinite ends are allowed.
        *args, **kwargs
            Values of the arguments, if `ranges` names parts of them such as ``"x.v_B"`` or
            ``"u[2]"``; what it does not name keeps its value.
        boxes : int, optional
            How many boxes the ranges may be divided into: more give tighter results and take
            longer. 256 by default.

        Returns
        -------
        Bounds
            ``lower`` and ``upper`` in the structure of the result, ``findings`` and ``proofs``.

        Examples
        --------
        >>> import numpy as np
        >>> f = compile(lambda x: np.sqrt(1.0 - x**2))
        >>> result = f.bounds({"x": (-0.6, 0.6)})
        >>> bool(0.7 < result.lower <= 0.8), float(result.upper), result.ok
        (True, 1.0, True)
        >>> f.bounds({"x": (-0.6, 1.1)}).findings[0].kind
        'domain'
        """
        return provided("bounds")(self, ranges, args, kwargs, boxes=boxes)

    def precision(
        self,
        *args: Any,
        dtype: DTypeLike = np.float32,
        ranges: Mapping[str, Any] | None = None,
        rtol: float | None = None,
        atol: float = 0.0,
        digits: float | None = None,
        **kwargs: Any,
    ) -> PrecisionReport:
        """Run the function in float32 beside float64 and say where digits are lost, by line.

        float32 is what ``codegen(float_type=np.float32)`` computes. The report lists the error of
        each result, what each line of the function did to the digits, and findings: cancellation,
        addends that a sum swallows, drift in loops, overflow, branches that go another way, each
        with a suggestion; and a small set of lines that need double.

        Parameters
        ----------
        *args, **kwargs
            Arguments as the function itself takes them. Their values matter. If the function has a
            parameter of the name of an option here, it is the function's.
        dtype : {np.float32, np.float64}, optional
            The arithmetic to examine. float32 is compared with float64, float64 with double-double
            (32 digits).
        ranges : mapping, optional
            Ranges of arguments by their names, as :meth:`bounds` takes them:
            ``{"x": (-1.0, 1.0), "u.throttle": (0.0, 1.0)}``. The function is examined at corners,
            special and random points of them, and interval arithmetic says what is proven for all
            of them. Arguments that are not named keep the value given.
        rtol : float, optional
            Relative error that results may have: 1e-4 for float32 and 1e-10 for float64 by default.
        atol : float, optional
            Absolute errors up to this do not count. 0 by default.
        digits : float, optional
            The same as ``rtol=10**-digits``.

        Returns
        -------
        PrecisionReport
            A list of findings, with ``ok``, ``results``, ``lines`` and ``double``. Printing it
            shows all of them.

        Examples
        --------
        >>> import numpy as np
        >>> f = compile(lambda x: 1.0 - np.cos(x))
        >>> report = f.precision(1e-3)
        >>> report.ok, report.digits < 2.0
        (False, True)
        """
        options = {"dtype": dtype, "ranges": ranges, "rtol": rtol, "atol": atol, "digits": digits}
        for name in self.signature.names.intersection(options):
            kwargs[name] = options.pop(name)
        return provided("precision")(self, args, kwargs, **options)

    def __content__(self) -> tuple[Any, ...]:
        # A frozen function is known by identity: it is the same while it exists.
        if self.dependencies.frozen:
            return (Same(self),)
        return (*self.dependencies.roots, self.numerics)


class _Options(typing.TypedDict, total=False):
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    return_names: Sequence[str] | None
    name: str | None
    backend: str | None
    numerics: str
    freeze: bool
    loops_from: int | None


@overload
def compile(func: Callable[P, S], **options: typing.Unpack[_Options]) -> Compiled[P, S]: ...
@overload
def compile(
    func: None = None, **options: typing.Unpack[_Options]
) -> Callable[[Callable[P, S]], Compiled[P, S]]: ...
def compile(
    func: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    return_names: Sequence[str] | None = None,
    name: str | None = None,
    backend: str | None = None,
    numerics: str = "strict",
    freeze: bool = False,
    loops_from: int | None = None,
    **former: Any,
) -> Any:
    """Compile a NumPy function; also usable as a decorator.

    Arguments and results may be any trees of structs, containers, arrays and numbers. The function
    is recorded at the first call with a new structure, shape or dtype of the arguments. What it
    reads (globals, closures, attributes, captured arrays) is part of it.

    Parameters
    ----------
    func : callable, optional
        The function, plain NumPy. Without it, `compile` returns a decorator.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program. They are compared by content;
        each new value is recorded anew. Python bools, strings and functions are always static.
    static_argnames : str or sequence of str, optional
        Names of such arguments.
    return_names : sequence of str, optional
        Names of the results, if the function returns a tuple.
    name : str, optional
        Name in messages and listings. By default that of the function.
    backend : {"auto", "llvm", "interpreter", "cuda"}, optional
        What runs the function, with the same bits. ``"auto"``, the default, interprets at first and
        compiles to native code when that pays.
    numerics : {"strict", "fast"}, optional
        ``"strict"``, the default, rounds every operation as NumPy does. ``"fast"`` fuses products
        and sums, and inverts a divisor that is used more than once: results differ from NumPy's by
        rounding, but not between backends, lanes and threads. Derivatives and :func:`vmap` of the
        function use its mode; inside another compiled function, the mode of that one holds.
    freeze : bool, optional
        Take globals, closures and attributes as they are at the first recording, and never look at
        them again. By default a function whose surroundings have changed is recorded anew.
    loops_from : int, optional
        Number of elements from which operations on arrays become loops, which take the same time to
        compile whatever their length. Smaller arrays are scalarized, which runs fastest. 64 by
        default. Results may differ by the rounding of sums.
    **former
        Options of the original package that have no meaning here. They are accepted with a warning.

    Returns
    -------
    Compiled
        Function of the same arguments.

    Examples
    --------
    >>> import numpy as np
    >>> f = compile(lambda x: np.sum(x**2))
    >>> float(f(np.array([3.0, 4.0])))
    25.0
    """
    warn_of_former_options("compile", former)
    options: _Options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "return_names": return_names,
        "name": name,
        "backend": backend,
        "numerics": numerics,
        "freeze": freeze,
        "loops_from": loops_from,
    }
    if func is None:
        return functools.partial(compile, **options)
    return Compiled(func, **options)
