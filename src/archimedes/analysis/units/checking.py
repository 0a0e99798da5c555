"""``check_units``: record a function, propagate units through it, report what does not fit."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from archimedes import tree
from archimedes.analysis.findings import Finding, Report
from archimedes.analysis.units.closures import with_units
from archimedes.analysis.units.constructors import declaring_units
from archimedes.analysis.units.declarations import (
    LeafUnit,
    Spelled,
    declared_units,
    read_units,
)
from archimedes.analysis.units.messages import Narrator
from archimedes.analysis.units.propagation import (
    Block,
    Known,
    Mismatch,
    Propagation,
    rate_of,
)
from archimedes.analysis.units.recording import Origin, known_unit, recording_units
from archimedes.analysis.units.region_rules import region_units
from archimedes.analysis.units.source import Text
from archimedes.analysis.units.unification import Expr
from archimedes.checks import check_callable
from archimedes.errors import UnitsError
from archimedes.function.compiled import Compiled
from archimedes.function.leaf_specs import argument_paths, describe_leaves
from archimedes.function.recording import Recording, record
from archimedes.function.signatures import Signature
from archimedes.graph.dtypes import B8
from archimedes.physical_units import Unit
from archimedes.symbolic.core.trace import attempt
from archimedes.tree.treedef import TreeDef

__all__ = ["UnitsReport", "check_units"]

RESULT = "return"


class UnitsReport(Report):
    """Findings about units, and the units that were found.

    Parameters
    ----------
    findings : sequence of Finding, optional
        What does not fit, in any order.
    about : str, optional
        What was checked.
    units : mapping, optional
        The unit of each argument and result by its path (``"x.pos"``, ``"return.v"``), as texts:
        what is declared, what follows from the uses of values that are not, ``"?"`` where nothing
        follows.

    Examples
    --------
    >>> import archimedes as arc
    >>> report = arc.check_units(lambda v, t: v * t, {"v": "m/s", "t": "s"})(2.0, 3.0)
    >>> report.ok, report.units["return"]
    (True, 'm')
    """

    def __init__(
        self,
        findings: Sequence[Finding] = (),
        about: str = "",
        units: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(findings, about)
        self.units = dict(units or {})

    def raise_if_any(self) -> None:
        """Raise :class:`UnitsError` with the findings, if there are any."""
        if not self.ok:
            count = "one finding" if len(self) == 1 else f"{len(self)} findings"
            raise UnitsError(f"the units of {self.about} do not fit, {count}:\n{self}", self)


def check_units(
    func: Callable[..., Any],
    units: Mapping[str, Any] | None = None,
    *,
    static_argnames: str | Sequence[str] | None = None,
    rates_of: str | None = None,
) -> UnitsCheck:
    """Return the function that checks the units of a function, for given arguments.

    The function is recorded as by :func:`compile`, and units are propagated through the program:
    products multiply, sums must agree, functions such as the sine take plain numbers, roots halve.
    Units come from ``field(units=...)`` of structs, from :func:`quantity`, and from `units`. Those
    of numbers in the code and of arguments that are not declared follow from their use.

    Parameters
    ----------
    func : callable
        The function, plain NumPy. A method of a struct is checked with the units of its fields.
    units : mapping, optional
        Units of arguments by name or path, and of the result: ``{"t": "s", "x.pos": "m", "return":
        "m/s"}``. One for all elements of an array, or a sequence of one for each. They count more
        than those of fields.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the recorded program.
    rates_of : str, optional
        Name of the argument that the result is the time derivative of, so that its units are those
        of the argument per second. By default a result of the structure of an argument may be
        either: what fits better counts.

    Returns
    -------
    UnitsCheck
        Function of the same arguments that returns a :class:`UnitsReport`.

    Raises
    ------
    UnitsError
        A unit is not known, or `units` names what is not there.

    Examples
    --------
    >>> import archimedes as arc
    >>> def height(h, v, t):
    ...     return h + v
    >>> report = arc.check_units(height, {"h": "m", "v": "m/s", "t": "s"})(1.0, 2.0, 3.0)
    >>> print(report[0].message)
    adds m and m/s (`h` is m, `v` is m/s): multiply `v` by `t`?
    """
    return UnitsCheck(func, units, static_argnames, rates_of)


class UnitsCheck:
    """A function that checks the units of another, for given arguments; see :func:`check_units`.

    Parameters
    ----------
    func : callable
        The checked function, kept as ``function``.
    units : mapping, optional
        What is declared for it, by name or path.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the recorded program.
    rates_of : str, optional
        Name of the argument that the result is the time derivative of.

    Examples
    --------
    >>> import archimedes as arc
    >>> check = arc.check_units(lambda x, v: x + v, {"x": "m", "v": "m/s"})
    >>> len(check(1.0, 2.0)), check.units["x"]
    (1, 'm')
    """

    def __init__(
        self,
        func: Callable[..., Any],
        units: Mapping[str, Any] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        rates_of: str | None = None,
    ) -> None:
        check_callable(func, "check_units: func", remedy="write arc.check_units(f)(x), not f(x)")
        _check_mapping(units)
        static: Any = static_argnames
        if isinstance(func, Compiled):
            static = static_argnames or tuple(func.signature.static)
            func = func.function
        self.function, self.units, self.rates_of = func, dict(units or {}), rates_of
        #: Name of the argument whose units the result must have.
        self.like: str | None = None
        self.signature = Signature(func, None, static)
        for key, declared in self.units.items():
            if isinstance(declared, (str, list, tuple)):
                read_units(declared, f"check_units: units[{key!r}]")
            name = _root(key)
            if name not in (RESULT, *self.signature.names) and self.signature.plain:
                raise UnitsError(
                    f"check_units: units names {key!r}, but the arguments are "
                    f"{', '.join(map(repr, self.signature.positional))} (and {RESULT!r} is the "
                    "result)"
                )
        if rates_of is not None and rates_of not in self.signature.names:
            raise UnitsError(
                f"check_units: rates_of is {rates_of!r}, but the arguments are "
                + ", ".join(map(repr, self.signature.positional))
            )

    def __call__(self, *args: Any, **kwargs: Any) -> UnitsReport:
        """Record the function for these arguments, and return what does not fit."""
        return _Check(self).run(args, kwargs)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"check_units({name}, {self.units})"


def _check_mapping(units: Any) -> None:
    if units is not None and not isinstance(units, Mapping):
        raise UnitsError(
            f"check_units: units is a mapping such as {{'t': 's', 'return': 'm/s'}}, got {units!r}"
        )


class _Check:
    """One check of a function with given arguments."""

    def __init__(self, check: UnitsCheck) -> None:
        self.func, self.signature = check.function, check.signature
        self.units, self.rates_of, self.like = check.units, check.rates_of, check.like
        #: Units of the elements of each argument by its path.
        self.elements: dict[str, list[Expr]] = {}
        self.propagation = Propagation(region_units)
        first = self.signature.positional[:1]
        self.propagation.prefers_rates = self.rates_of is not None or first == ["t"]
        self.reach: dict[str, Unit] = {}
        #: What could not be taken into account.
        self.limits = ""
        self.spellings: dict[Unit, str] = {}

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> UnitsReport:
        values = self.signature.bind(args, kwargs)
        # A default that was left alone is traced all the same where its unit is declared.
        declared = {_root(key) for key in self.units} - self.signature.static
        static = (self.signature.fixed(values) - declared) | self._fixed_numbers(values)
        dynamic = {k: v for k, v in values.items() if k not in static}
        self._check_names(values)
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        specs = describe_leaves(leaves, treedef, list(dynamic))
        names = argument_paths(treedef, dynamic)
        treedefs = dict(zip(dynamic, treedef.children))
        given = {k: v for k, v in self.units.items() if not _is_result(k)}
        known = declared_units(treedefs, [spec.shape for spec in specs], given, leaves)

        def build(symbols: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            new = dict(zip(dynamic, treedef.unflatten(symbols)))
            return self.signature.rebind(values, new)

        with recording_units():
            try:
                with attempt(), declaring_units(_classes(treedef)):
                    recording = record(self._call, specs, build, names)
            except Exception:
                # Structs around the function may be needed as plain numbers.
                self.reach.clear()
                self.limits = ", without the units of structs that it reads or makes"
                recording = record(self.func, specs, build, names)
        inputs = self._inputs(recording, known)
        outputs = self.propagation.run(recording.blocks, inputs)
        self.propagation.require_fields()
        results = self._results(recording, treedefs, dict(zip(names, known)), outputs)
        return self._report(dict(zip(names, self._by_leaf(recording, inputs))) | results)

    def _fixed_numbers(self, values: Mapping[str, Any]) -> set[str]:
        """Return the arguments that are ints without a unit: counts, which may decide on shapes."""
        return {k for k, v in values.items() if type(v) is int and k not in self.units}

    def _check_names(self, values: Mapping[str, Any]) -> None:
        for key in self.units:
            if _root(key) not in (RESULT, *map(_root, values)):
                raise UnitsError(
                    f"check_units: units names {key!r}, but the arguments are "
                    f"{', '.join(map(repr, values))} (and {RESULT!r} is the result)"
                )

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, with the structs that it reads as numbers of known units."""
        return with_units(self.func, self._note)(*args, **kwargs)

    def _note(self, path: str, unit: LeafUnit) -> None:
        """Take note of a value with a unit, and of how the unit is written."""
        for one in unit if isinstance(unit, tuple) else (unit,):
            if isinstance(one, Spelled) and not one.is_plain:
                known = self.spellings.setdefault(one, one.text)
                if known != one.text:  # N m and J: the usual one
                    self.spellings[one] = str(one)
        if isinstance(unit, Unit) and not unit.is_plain:
            self.reach[path] = unit

    # ---- units of arguments and results --------------------------------------------------

    def _inputs(self, recording: Recording, known: Sequence[LeafUnit]) -> list[Known]:
        inputs: list[Known] = []
        for spec, form, unit, path in zip(
            recording.leaves, recording.forms(), known, recording.names
        ):
            if not spec.traced or not spec.size:
                continue
            self._note(path, unit)
            if spec.code == B8:
                inputs += [None] * form.width
                continue
            if isinstance(unit, tuple):
                elements = [self.propagation.new() if u is None else Expr(u) for u in unit]
            else:
                elements = [Expr(unit) if unit is not None else self.propagation.new()] * spec.size
                if unit is None and not form.block:
                    elements = [self.propagation.new() for _ in range(spec.size)]
            self.elements[path] = elements
            inputs += [Block.of(elements)] if form.block else elements
        return inputs

    def _by_leaf(self, recording: Recording, inputs: Sequence[Known]) -> list[str]:
        texts, at = [], 0
        for spec, form in zip(recording.leaves, recording.forms()):
            width = form.width if spec.traced and spec.size else 0
            texts.append(self._text(inputs[at : at + width]))
            at += width
        return texts

    def _text(self, values: Sequence[Known]) -> str:
        units = [
            unit
            for value in values
            if value is not None
            for unit in (value.units if isinstance(value, Block) else [value])
        ]
        texts = []
        for unit in units:
            found = self.propagation.unknowns.resolve(unit)
            texts.append("?" if found.unknowns else self._spell(found.unit))
        distinct = list(dict.fromkeys(texts))
        return distinct[0] if len(distinct) == 1 else ", ".join(texts)

    def _spell(self, unit: Unit) -> str:
        return "1" if unit.is_plain else self.spellings.get(unit) or str(unit)

    def _results(
        self,
        recording: Recording,
        treedefs: Mapping[str, TreeDef],
        arguments: Mapping[str, LeafUnit],
        outputs: list[Known],
    ) -> dict[str, str]:
        """Compare the units of the results with what is declared for them."""
        out = recording.out_tree
        shapes = [tuple(leaf.shape) for leaf in recording.outs]
        given = {k: v for k, v in self.units.items() if _is_result(k)}
        wanted = declared_units({RESULT: out}, shapes, given)
        paths, texts = out.paths(RESULT), {}
        exact: list[list[Expr] | None] = [None] * len(wanted)
        state = None if given else self._state(treedefs, out)
        if state is not None:
            own = [arguments[path] for path in treedefs[state].paths(state)]
            if len(own) != len(wanted):
                raise UnitsError(
                    f"check_units: the result has {len(wanted)} leaves, {state!r} has {len(own)}: "
                    "it is no derivative of it"
                )
            wanted = [mine if mine is not None else unit for mine, unit in zip(own, wanted)]
            if self.rates_of is not None or self.like is not None:
                paths_of = treedefs[state].paths(state)
                exact = [self.elements.get(path) for path in paths_of]
        elements: list[tuple[int, list[Known], Any]] = []
        at = 0
        for k, (leaf, form) in enumerate(zip(recording.outs, recording.out_forms())):
            if not leaf.spec.traced:
                unit = known_unit(leaf.spec.value)
                elements.append((k, [Expr(unit)] if unit is not None else [], None))
                continue
            ids = recording.blocks.outputs[at : at + form.width]
            elements.append((k, outputs[at : at + form.width], ids))
            at += form.width
        per_second = not given and self._is_derivative(elements, wanted, state)
        for k, values, ids in elements:
            path = paths[k]
            label = "the result" + path[len(RESULT) :]
            if per_second and state is not None:
                label = f"the derivative of {state}{path[len(RESULT) :]}"
            pairs = self._pairs(values, wanted[k], per_second, exact[k])
            self._compare(pairs, label, recording, ids, path)
            texts[path] = self._text(values)
        return texts

    def _state(self, treedefs: Mapping[str, TreeDef], out: TreeDef) -> str | None:
        """Return the argument that the result may be the derivative of."""
        asked = self.rates_of or self.like
        if asked is not None:
            return asked if asked in treedefs else None
        for name, treedef in treedefs.items():
            same_class = bool(treedef.children) and treedef.kind.cls is out.kind.cls
            if same_class and treedef.paths() == out.paths():
                return name
        return None

    def _wanted(self, unit: LeafUnit, count: int, per_second: bool) -> list[Expr | None] | None:
        if unit is None:
            return None
        units = unit if isinstance(unit, tuple) else (unit,) * count
        found = [None if u is None else Expr(u) for u in units]
        return [rate_of(x) if per_second and x is not None else x for x in found]

    def _is_derivative(
        self, elements: Sequence[Any], wanted: Sequence[LeafUnit], state: str | None
    ) -> bool:
        """Return whether results fit the units of the state per second better than those."""
        if self.rates_of is not None or self.like is not None:
            return self.like is None
        unknowns, wrong = self.propagation.unknowns, {}
        for per_second in (True, False):
            before = unknowns.snapshot()
            wrong[per_second] = sum(
                not unknowns.equate(a, b)
                for k, values, _ in elements
                for a, b in self._pairs(values, wanted[k], per_second)
            )
            unknowns.restore(before)
        if state is None:  # another struct: only where nothing speaks against it
            return wrong[True] == 0 < wrong[False]
        return wrong[True] <= wrong[False]

    def _pairs(
        self,
        values: Sequence[Known],
        unit: LeafUnit,
        per_second: bool,
        exact: Sequence[Expr] | None = None,
    ) -> list[tuple[Expr, Expr]]:
        """Return the units of the elements of a result and what they must be.

        ``exact`` are those of the argument that it belongs to, known or not.
        """
        found: list[Expr] = []
        for value in values:
            if isinstance(value, Block):
                size = len(value.index) if value.index is not None else 1
                found += value.elements(size)
            elif value is not None:
                found.append(value)
        if exact is not None and len(exact) == len(found):
            # A model without units may as well count in other times.
            known = [(a, self.propagation.unknowns.resolve(b)) for a, b in zip(found, exact)]
            return [(a, rate_of(b) if per_second else b) for a, b in known if not b.unknowns]
        target = self._wanted(unit, len(found), per_second)
        return [(a, b) for a, b in zip(found, target or ()) if b is not None]

    def _compare(
        self,
        pairs: Sequence[tuple[Expr, Expr]],
        label: str,
        recording: Recording,
        ids: Sequence[int] | None,
        path: str,
    ) -> None:
        every, g = self.propagation, recording.blocks
        for n, (a, b) in enumerate(pairs):
            if every.unknowns.equate(a, b):
                continue
            origin: Origin | None = None
            if ids is not None and len(ids) > n and g.lines is not None:
                node = ids[n]
                line = g.lines[node]
                if isinstance(line, Origin) and line.places and node not in g.inputs:
                    origin = line._replace(inside="", swapped=False)
            if not self._is_told(recording.out_tree, path):
                every.mismatches.append(Mismatch("return", (a, b), origin, f"{label}|{path}"))
            return

    def _is_told(self, out: TreeDef, path: str) -> bool:
        """Return whether there is a finding about a field of the result where it was made."""
        name = path.rpartition(".")[2]
        fields = [f.detail[0] for f in self.propagation.mismatches if f.what == "field"]
        classes = {cls.__qualname__.rpartition("<locals>.")[2] for cls in _classes(out)}
        return any(d.field == name and d.struct in classes for d in fields)

    # ---- the report --------------------------------------------------------------------

    def _report(self, units: Mapping[str, str]) -> UnitsReport:
        every = self.propagation
        narrator = Narrator(every.unknowns, self.reach, self.spellings)
        findings: list[Finding] = []
        # A field that is wrong where a struct is made is wrong as a rate and as a result too.
        for found in sorted(every.mismatches, key=lambda m: m.what in ("rate", "return")):
            default = Text("<unknown>", 0, "")
            if found.what == "return":
                label, _, path = found.detail.partition("|")
                default = _find_return(self.func, path.rpartition(".")[2] if path else "")
                found = Mismatch(found.what, found.units, found.origin, label)
            finding = narrator.tell(found, default)
            lines = {(f.file, f.line) for f in findings}
            if found.what in ("rate", "return") and (finding.file, finding.line) in lines:
                continue
            findings.append(finding)
        told = {(f.file, f.line) for f in findings}
        for factor in every.factors:
            scale = narrator.tell_factor(factor)
            if scale is not None and (scale.file, scale.line) not in told:
                findings.append(scale)
        name = getattr(self.func, "__qualname__", type(self.func).__name__)
        return UnitsReport(findings, f"{name}(){self.limits}", units)


def _classes(treedef: TreeDef) -> set[type]:
    """Return the classes of all nodes of a tree."""
    return {treedef.kind.cls}.union(*map(_classes, treedef.children))


def _root(key: str) -> str:
    """Return the name of the argument that a path begins with."""
    return key.split(".")[0].split("[")[0]


def _is_result(key: str) -> bool:
    return key == RESULT or key.startswith((f"{RESULT}.", f"{RESULT}["))


def _find_return(func: Callable[..., Any], name: str) -> Text:
    """Return where a function returns a value: the keyword of that name, or the return."""
    inner: Any = inspect.unwrap(func)
    inner = getattr(inner, "__func__", inner)
    inner = getattr(inner, "func", inner)
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    if code is None:
        return Text("<unknown>", 0, "")
    try:
        lines, first = inspect.getsourcelines(code)
        node = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return Text(code.co_filename, code.co_firstlineno, "")
    keywords = [k for k in ast.walk(node) if isinstance(k, ast.keyword) and k.arg == name]
    if keywords:
        at = keywords[-1]
        return Text(code.co_filename, first + at.lineno - 1, ast.unparse(at))
    returns = [r for r in ast.walk(node) if isinstance(r, ast.Return)]
    if returns:
        line = returns[-1].lineno
        return Text(code.co_filename, first + line - 1, ast.unparse(returns[-1]))
    return Text(code.co_filename, first, lines[0].strip())
