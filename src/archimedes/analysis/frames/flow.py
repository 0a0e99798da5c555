"""Values followed through statements and expressions, and what is wrong with them.

One pass over each function, in the order of its statements: branches are joined, and at the start
of a loop nothing is known of the names without a suffix that it sets. A name with a suffix always
means what it says; what is assigned to it must agree.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from archimedes.analysis.findings import Finding
from archimedes.analysis.frames import messages
from archimedes.analysis.frames.arrays import attribute_of, element, elements, key_of_node, multiply
from archimedes.analysis.frames.calls import call
from archimedes.analysis.frames.modules import Class, Function, Module, Routine, parameters_of
from archimedes.analysis.frames.scopes import SCALAR_TYPES, last_name
from archimedes.analysis.frames.values import (
    ARRAY,
    POISON,
    SCALAR,
    TRIG,
    ZERO,
    FrameVariable,
    Instance,
    Map,
    Sequence,
    Value,
    Vector,
    frame_of,
    join,
    unify,
)

__all__ = ["Checker", "Flow"]

Statements = Iterable[ast.stmt]
#: Contexts in which functions without suffixes are followed, and how deep.
MOST_CONTEXTS, DEPTH = 2000, 4
#: Parameters that are sines and cosines by their names: ``c``, ``s``, ``cpsi``, ``sin_theta``.
TURNED = re.compile(r"(c|s|cos|sin)_?(psi|theta|phi|th|ph|ps|alpha|beta|yaw|pitch|roll|[a-z])?")
ATTITUDE_NAMES = ("att", "attitude")
SIMPLE = (ast.Name, ast.Attribute, ast.Constant)
#: Functions that are followed inside each other, by their calls.
MOST_RUNNING = 20


class Checker:
    """One check: findings, and what is known of functions that were followed."""

    def __init__(self) -> None:
        self.sinks: dict[int, list[Finding]] = {}
        self.results: dict[Function, Flow | None] = {}
        self.contexts: dict[Any, tuple[Value, list[Finding]]] = {}
        self.modules: dict[Module, Flow] = {}
        self.signatures_only = False
        self.running = 0
        self.names: dict[ast.AST, dict[str, str]] = {}

    def sink(self, module: Module) -> list[Finding]:
        """Return the list that takes the findings of a module."""
        return self.sinks.setdefault(id(module), [])

    def module_flow(self, module: Module) -> Flow:
        """Return what the statements of a module leave, without their findings."""
        if module not in self.modules:
            flow = self.modules[module] = Flow(self, module, [])
            before, self.signatures_only = self.signatures_only, True
            flow.run([s for s in module.tree.body if not isinstance(s, DEFINITIONS)])
            self.signatures_only = before
        return self.modules[module]

    def check(self, module: Module) -> list[Finding]:
        """Follow everything in a module and return its findings."""
        self.module_flow(module)
        flow = Flow(self, module, self.sink(module))
        flow.run(module.tree.body)
        return self.sink(module)

    def follow(self, function: Function, sink: list[Finding] | None = None) -> Flow | None:
        """Follow a function once, with what its parameters' names say; None while it runs."""
        if function not in self.results:
            if self.running >= MOST_RUNNING:  # it gets its turn; its caller does without
                return None
            self.results[function] = None
            if sink is None:
                sink = self.sink(function.module)
            flow = Flow(self, function.module, sink, function)
            self.running += 1
            flow.run_function({})
            self.running -= 1
            self.results[function] = flow
        return self.results[function]

    def follow_with(
        self, function: Function, given: dict[str, Value], key: Any, depth: int
    ) -> tuple[Value, list[Finding]]:
        """Return the result of a function for arguments whose parameters have no suffix."""
        if key not in self.contexts:
            if len(self.contexts) >= MOST_CONTEXTS or depth >= DEPTH or self.running > MOST_RUNNING:
                return None, []
            self.contexts[key] = None, []  # for calls of itself
            sink: list[Finding] = []
            flow = Flow(self, function.module, sink, function, depth + 1)
            self.running += 1
            flow.run_function(given)
            self.running -= 1
            self.contexts[key] = flow.result(), sink
        return self.contexts[key]


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Flow:
    """The values of one function, or of the statements of a module or class."""

    def __init__(
        self,
        checker: Checker,
        module: Module,
        sink: list[Finding],
        function: Function | None = None,
        depth: int = 0,
    ) -> None:
        self.checker, self.module, self.sink = checker, module, sink
        self.function, self.depth = function, depth
        self.scope = function.scope if function is not None else module.scope
        self.cls: Class | None = function.cls if function is not None else None
        self.parent: Flow | None = function.parent if function is not None else None
        self.env: dict[str, Value] = {}
        self.returns: list[Value] = []
        self.counts: Counter[str] | None = None
        self.wanted: str | None = None  # the frame of the name that is being set
        self.root: ast.AST = function.node if function is not None else module.tree

    # ---- names ---------------------------------------------------------------------------

    def is_set_once(self, name: str) -> bool:
        """Return whether functions inside may rely on a name."""
        if self.counts is None:
            self.counts = Counter(
                n.id
                for n in ast.walk(self.root)
                if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))
            )
        return self.counts[name] <= 1

    def name(self, name: str) -> Value:
        """Return what a name holds."""
        if name in self.env:
            return self.env[name]
        declared = self.scope.declared(name)
        if declared is not None:
            return declared
        flow = self.parent
        while flow is not None:
            if name in flow.env:
                return flow.env[name] if flow.is_set_once(name) else None
            flow = flow.parent
        if self.function is not None:
            module = self.checker.module_flow(self.module)
            if name in module.env:
                return module.env[name] if module.is_set_once(name) else None
        return self.module.lookup(name)

    def callee(self, func: ast.expr, base: Value) -> Value:
        """Return what is called: a function named ``drag_B`` is a function, not a vector."""
        found: Value = None
        if isinstance(func, ast.Name) and func.id not in self.env:
            found = self.module.lookup(func.id)
        elif isinstance(func, ast.Attribute) and isinstance(base, Instance):
            found = base.cls.method(func.attr)
        return found if isinstance(found, (Function, Class)) else self.ev(func)

    def like_class(self, name: str) -> Value:
        """Return an object of the class that a name without a type is called after."""
        cls = self.module.class_like(name)
        return Instance(cls) if cls is not None else None

    def set_key(self, key: str | None, value: Value) -> None:
        """Note a new value of a name or attribute; what was known of its parts is gone."""
        if key is None:
            return
        for old in [k for k in self.env if k.startswith(key + ".")]:
            del self.env[old]
        self.env[key] = value

    def report(self, node: ast.AST, message: str, shown: ast.AST | None = None) -> None:
        """Add a finding at the line of a node."""
        line = getattr(node, "lineno", 1)
        text = messages.source(shown if shown is not None else node, 100)
        file = str(self.module.path) if self.module.path is not None else "<source>"
        self.sink.append(Finding(file, line, message, text, "frames"))

    def unify(self, a: Any, b: Any, node: ast.AST) -> bool:
        """Return whether two frames may be one here, and make them one."""
        return unify(a, b, self.module.same, getattr(node, "lineno", 0))

    # ---- functions -----------------------------------------------------------------------

    def run_function(self, given: dict[str, Value]) -> None:
        """Follow the body of the function with values for parameters without a suffix."""
        assert self.function is not None
        node = self.function.node
        positional, keyword, _ = parameters_of(self.function)
        for arg in [*positional, *keyword, node.args.vararg, node.args.kwarg]:
            if arg is not None:
                self.set_parameter(arg, given.get(arg.arg))
        if self.cls is not None and positional and self.function.bound:
            is_class = "classmethod" in self.function.decorators
            self.env[positional[0].arg] = self.cls if is_class else Instance(self.cls)
            for name, value in self.cls.attributes.items():
                self.env[f"{positional[0].arg}.{name}"] = value
        self.run_defaults(node)
        if isinstance(node, ast.Lambda):
            self.returns.append(self.ev(node.body))
        else:
            self.run(node.body)

    def set_parameter(self, arg: ast.arg, value: Value) -> None:
        """Note what is known of a parameter by its annotation, or from a call."""
        if arg.annotation is not None and last_name(arg.annotation) in SCALAR_TYPES:
            self.env[arg.arg] = SCALAR
        elif self.scope.declared(arg.arg) is None:
            cls = self.module.annotated(arg.annotation, self.cls)
            if value is None:
                value = Instance(cls) if cls is not None else self.like_class(arg.arg)
            if value is None and TURNED.fullmatch(arg.arg):
                value = TRIG
            self.env[arg.arg] = value

    def run_defaults(self, node: Routine) -> None:
        """Check defaults against the names of their parameters."""
        a = node.args
        positional = [*a.posonlyargs, *a.args]
        pairs = list(zip(positional[len(positional) - len(a.defaults) :], a.defaults))
        pairs += [(arg, d) for arg, d in zip(a.kwonlyargs, a.kw_defaults) if d is not None]
        for arg, default in pairs:
            self.check_agrees(self.scope.declared(arg.arg), self.ev(default), default, arg.arg)

    def result(self) -> Value:
        """Return what is known of the result: by the function's name, else by its returns."""
        declared = self.scope.declared(self.function.name) if self.function is not None else None
        if isinstance(declared, (Vector, Map)):
            return declared
        if not self.returns:
            return None
        found = self.returns[0]
        for value in self.returns[1:]:
            found = join(found, value)
        return found

    # ---- statements ----------------------------------------------------------------------

    def run(self, statements: Statements) -> bool:
        """Follow statements; return whether the one after them is reached."""
        for s in statements:
            try:
                if not self.statement(s):
                    return False
            except RecursionError:
                self.report(s, "nested too deeply to be checked: split it into smaller steps")
        return True

    def statement(self, s: ast.stmt) -> bool:
        """Follow one statement; return whether the next one is reached."""
        handler = HANDLERS.get(type(s))
        if handler is not None:
            return handler(self, s) is not False
        for child in ast.iter_child_nodes(s):
            if isinstance(child, ast.expr):
                self.ev(child)
        return True

    def _do_assign(self, s: ast.Assign) -> None:
        declared = self.scope.declared(last_name(s.targets[0]))
        self.wanted = frame_of(declared.frame) if isinstance(declared, Vector) else None
        value = self.ev(s.value)
        self.wanted = None
        for target in s.targets:
            self.assign(target, value, s.value)

    def _do_annotated(self, s: ast.AnnAssign) -> None:
        if s.value is None:
            return
        value = self.ev(s.value)
        if value is None:
            cls = self.module.annotated(s.annotation, self.cls)
            value = Instance(cls) if cls is not None else None
        self.assign(s.target, value, s.value)

    def _do_augmented(self, s: ast.AugAssign) -> None:
        old = self.ev(s.target)
        value = self.operate(s, s.op, s.target, s.value, old, self.ev(s.value))
        if isinstance(s.target, ast.Name) and self.scope.declared(s.target.id) is None:
            self.set_key(s.target.id, value)
        elif value is not POISON:
            self.assign(s.target, value, s.value)

    def _do_return(self, s: ast.Return) -> bool:
        value = self.ev(s.value) if s.value is not None else None
        if s.value is not None and self.function is not None:
            declared = self.scope.declared(self.function.name)
            self.check_agrees(declared, value, s.value, self.function.name, verb="returns")
        self.returns.append(value)
        return False

    def _do_if(self, s: ast.If) -> bool:
        branches = []
        start = self.env
        rest: list[ast.stmt] = [s]
        while len(rest) == 1 and isinstance(rest[0], ast.If):  # elif, without recursion
            branch = rest[0]
            self.ev(branch.test)
            self.env = dict(start)
            if self.run(branch.body):
                branches.append(self.env)
            start = dict(start)
            self.env = start
            rest = branch.orelse
        if self.run(rest):
            branches.append(self.env)
        return self.merge(branches)

    def merge(self, branches: list[dict[str, Value]]) -> bool:
        """Keep what all branches agree on; return whether one of them goes on."""
        if not branches:
            return False
        self.env = dict(branches[0])
        for other in branches[1:]:
            for key in {*self.env, *other}:
                if key in self.env and key in other:
                    self.env[key] = join(self.env[key], other[key])
                elif "." in key:
                    self.env.pop(key, None)
                else:
                    only = self.env.get(key, other.get(key))
                    self.env[key] = only if isinstance(only, Function) else None
        return True

    def forget(self, body: Statements) -> None:
        """Forget names that a loop sets, except zeros to which it adds."""
        for s in body:
            for n in ast.walk(s):
                if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store):
                    key = key_of_node(n)
                    if key in self.env and self.env[key] not in (ZERO, SCALAR):
                        self.set_key(key, None)

    def _do_for(self, s: ast.For | ast.AsyncFor) -> None:
        values = self.ev(s.iter)
        self.forget(s.body)
        before = dict(self.env)
        self.assign(s.target, elements(values), s.iter, check=False)
        self.run(s.body)
        self.merge([before, self.env])
        self.run(s.orelse)

    def _do_while(self, s: ast.While) -> None:
        self.forget(s.body)
        self.ev(s.test)
        before = dict(self.env)
        self.run(s.body)
        self.merge([before, self.env])
        self.run(s.orelse)

    def _do_try(self, s: Any) -> bool:
        before = dict(self.env)
        goes_on = self.run([*s.body, *s.orelse])
        branches = [self.env] if goes_on else []
        for handler in s.handlers:
            self.env = dict(before)
            self.forget(s.body)
            if self.run(handler.body):
                branches.append(self.env)
        goes_on = self.merge(branches)
        return self.run(s.finalbody) and goes_on

    def _do_with(self, s: ast.With | ast.AsyncWith) -> bool:
        for item in s.items:
            value = self.ev(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, item.context_expr, check=False)
        return self.run(s.body)

    def _do_match(self, s: ast.Match) -> bool:
        self.ev(s.subject)
        before, branches = self.env, [dict(self.env)]
        for case in s.cases:
            self.env = dict(before)
            self.bind_pattern(case.pattern)
            if case.guard is not None:
                self.ev(case.guard)
            if self.run(case.body):
                branches.append(self.env)
        return self.merge(branches)

    def bind_pattern(self, pattern: ast.pattern) -> None:
        """Note the names that a pattern captures: ``State(v_B=v)`` gives v the frame of v_B."""
        for n in ast.walk(pattern):
            if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name:
                self.env[n.name] = None
            elif isinstance(n, ast.MatchMapping) and n.rest:
                self.env[n.rest] = None
        for n in ast.walk(pattern):
            pairs: list[tuple[str, ast.pattern]] = []
            if isinstance(n, ast.MatchClass):
                pairs = list(zip(n.kwd_attrs, n.kwd_patterns))
            elif isinstance(n, ast.MatchMapping):
                pairs = [(last_name(k), p) for k, p in zip(n.keys, n.patterns)]
            for name, inner in pairs:
                if isinstance(inner, ast.MatchAs) and inner.name and inner.pattern is None:
                    value = self.scope.declared(name)
                    declared = self.scope.declared(inner.name)
                    self.check_agrees(declared, value, inner, inner.name)
                    if declared is None:
                        self.env[inner.name] = value
        for n in ast.walk(pattern):
            if isinstance(n, ast.MatchAs) and n.name and self.scope.declared(n.name) is not None:
                self.env.pop(n.name, None)

    def _do_function(self, s: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in s.decorator_list:
            self.ev(decorator)
        if self.function is None and self.cls is None:
            function = self.module.lookup(s.name)
            if isinstance(function, Function) and function.node is s:
                self.checker.follow(function)
                return
        function = Function(s, self.module, self.scope_of(s), None, self.closure())
        self.env[s.name] = function
        self.checker.follow(function, self.sink)

    def scope_of(self, s: ast.AST) -> Any:
        """Return the scope of a definition: its own at the top of a module."""
        return self.module.scope_of(s) or self.scope

    def closure(self) -> Flow | None:
        """Return where functions inside look up names: not in the module, whose end counts."""
        return self if self.function is not None else None

    def _do_class(self, s: ast.ClassDef) -> None:
        cls = self.module.lookup(s.name)
        if not isinstance(cls, Class) or cls.node is not s:
            cls = self.module.make_class(s, self.scope_of(s))
            self.env[s.name] = cls
        self.follow_class(cls)

    def follow_class(self, cls: Class) -> None:
        """Follow the statements of a class and its methods, its constructor first."""
        flow = Flow(self.checker, self.module, self.sink)
        flow.cls, flow.scope, flow.parent, flow.root = cls, cls.scope, self.closure(), cls.node
        flow.run([s for s in cls.node.body if not isinstance(s, DEFINITIONS)])
        times = Counter[str]()
        for n in ast.walk(cls.node):
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
                times[n.attr] += 1
        first = [m for m in ("__init__", "__post_init__", "setup") if m in cls.methods]
        for name in [*first, *(m for m in cls.methods if m not in first)]:
            method = cls.methods[name]
            after = self.checker.follow(method, self.sink)
            if name in first and after is not None and method.node.args.args:
                own = method.node.args.args[0].arg + "."
                for key, value in after.env.items():
                    attribute = key[len(own) :]
                    once = key.startswith(own) and "." not in attribute and times[attribute] == 1
                    if once and isinstance(value, (Vector, Map, Instance)):
                        cls.attributes[attribute] = value
        for inner in cls.inner.values():
            self.follow_class(inner)

    def _do_import(self, s: ast.Import | ast.ImportFrom) -> None:
        if self.function is not None:
            self.module.take_import(s, inside=True)

    def _do_delete(self, s: ast.Delete) -> None:
        for target in s.targets:
            self.env.pop(key_of_node(target) or "", None)

    # ---- assignments ---------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value, source: ast.expr, check: bool = True) -> None:
        """Give a target its value, and check it against the target's name."""
        if isinstance(target, ast.Starred):
            target, value = target.value, None
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value, source, check)
            return
        if isinstance(target, ast.Subscript):
            if check:
                self.store(target, value, source)
            return
        name = last_name(target)
        declared = self.scope.declared(name)
        key = key_of_node(target)
        if isinstance(declared, (Vector, Map)):
            if key is not None:
                self.set_key(key, None)
                del self.env[key]
                if value is SCALAR:  # a number by that name
                    self.env[key] = SCALAR
            if check:
                self.check_branches(declared, value, source, target)
        else:
            self.set_key(key, value)

    def unpack(self, target: Any, value: Value, source: ast.expr, check: bool) -> None:
        """Give each name of a tuple its part."""
        count = len(target.elts)
        items: list[Value] = [None] * count
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if isinstance(value, Sequence) and len(value.items) == count and not starred:
            items = list(value.items)
        elif isinstance(value, Vector) and not value.partial:
            items = [elements(value)] * count
        parts = getattr(source, "elts", [source] * count)
        parts = parts if len(parts) == count else [source] * count
        for one, item, part in zip(target.elts, items, parts):
            self.assign(one, item, part, check)

    def store(self, target: ast.Subscript, value: Value, source: ast.expr) -> None:
        """Check what is written into a part of an array with a suffix."""
        base = self.ev(target.value)
        if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            name = target.slice.value
            self.check_agrees(self.scope.declared(name), value, source, name)
        elif isinstance(base, Vector):
            expected = Vector(base.frame)
            self.check_agrees(expected, value, source, messages.source(target.value))
        elif isinstance(base, Map) and isinstance(value, Vector):
            part = element(base, target.slice)
            if part is None and not isinstance(target.slice, (ast.Tuple, ast.Slice)):
                part = Vector(base.frm)
            self.check_agrees(part, value, source, messages.source(target))
        else:
            key = key_of_node(target.value)
            if isinstance(base, Sequence) and key in self.env:
                self.env[key or ""] = None

    def check_branches(
        self, declared: Value, value: Value, source: ast.expr, target: ast.expr
    ) -> None:
        """Check a value, or both values of a conditional expression, against a target's name."""
        if isinstance(source, ast.IfExp):
            self.check_branches(declared, self.ev(source.body), source.body, target)
            self.check_branches(declared, self.ev(source.orelse), source.orelse, target)
        elif isinstance(source, ast.Call) and last_name(source.func) == "where":
            for part in source.args[1:]:
                self.check_branches(declared, self.ev(part), part, target)
        else:
            self.check_agrees(declared, value, source, messages.source(target), at=target)

    def check_agrees(
        self,
        declared: Value,
        value: Value,
        node: ast.AST,
        name: str,
        verb: str = "gets",
        at: ast.AST | None = None,
    ) -> bool:
        """Report a value that is not in the frame that a name says."""
        if isinstance(declared, Vector) and isinstance(value, Vector):
            if not self.unify(declared.frame, value.frame, node):
                text = messages.wrong_vector(self, name, verb, declared, value, node)
                self.report(at or node, text, node)
                return False
            return self.check_points(declared, value, node, name, at)
        if not (isinstance(declared, Map) and isinstance(value, Map)):
            return True
        if self.unify(declared.to, value.to, node) and self.unify(declared.frm, value.frm, node):
            return True
        self.report(at or node, messages.wrong_map(self, name, verb, declared, value, node), node)
        return False

    def check_points(
        self, declared: Vector, value: Vector, node: ast.AST, name: str, at: ast.AST | None
    ) -> bool:
        """Report a sum of positions that does not lead from the first point to the last."""
        ours, theirs = declared.points, value.points
        if not ours or theirs is None or not set(ours) <= set(theirs):
            return True
        if {k: n for k, n in theirs.items() if n} == dict(ours):
            return True
        self.report(at or node, messages.wrong_path(name, ours, theirs), node)
        return False

    # ---- expressions ---------------------------------------------------------------------

    def ev(self, node: ast.expr) -> Value:
        """Return what is known of the value of an expression, reporting what is wrong in it."""
        handler = EXPRESSIONS.get(type(node))
        if handler is not None:
            return handler(self, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.ev(child)
        return None

    def _ev_name(self, node: ast.Name) -> Value:
        return self.name(node.id)

    def _ev_constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, (int, float, complex)) and not isinstance(node.value, bool):
            return ZERO if node.value == 0 else SCALAR
        return None

    def _ev_attribute(self, node: ast.Attribute) -> Value:
        key = key_of_node(node)
        if key is not None and key in self.env:
            return self.env[key]
        base = self.ev(node.value)
        if isinstance(base, (Vector, Map)):
            found = attribute_of(base, node.attr)
            if found is not None:
                return found
        declared = self.scope.declared(node.attr)
        if declared is not None:
            return declared
        if isinstance(base, Instance):
            if node.attr in base.cls.attributes:
                return base.cls.attributes[node.attr]
            cls = base.cls.type_of(node.attr)
            found = Instance(cls) if cls is not None else base.cls.method(node.attr)
            if found is not None:
                return found
        if isinstance(base, Class):
            return base.nested(node.attr) or base.method(node.attr)
        if isinstance(base, Module):
            return self.module.find(node)
        if node.attr in ATTITUDE_NAMES and key is not None:
            return self.attitude(key)
        return self.like_class(node.attr) if base is None or isinstance(base, Instance) else None

    def attitude(self, key: str) -> Value:
        """Return an attitude without a suffix: in this package it leads to the body's axes."""
        body = self.scope.body_of(key.rpartition(".")[0])
        if not body:
            return None
        self.env[key] = Map(body, FrameVariable([body], "the reference frame"))
        return self.env[key]

    def _ev_subscript(self, node: ast.Subscript) -> Value:
        base = self.ev(node.value)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self.scope.declared(node.slice.value)
        self.ev(node.slice)
        return element(base, node.slice)

    def _ev_slice(self, node: ast.Slice) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.ev(part)
        return None

    def _ev_sequence(self, node: ast.Tuple | ast.List) -> Value:
        return Sequence(tuple([self.ev(e) for e in node.elts]))

    def _ev_starred(self, node: ast.Starred) -> Value:
        self.ev(node.value)
        return None

    def _ev_unary(self, node: ast.UnaryOp) -> Value:
        value = self.ev(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, Vector) and value.points:
            return Vector(value.frame, Counter({k: -n for k, n in value.points.items()}))
        return value if isinstance(node.op, (ast.USub, ast.UAdd)) else None

    def _ev_binary(self, node: ast.BinOp) -> Value:
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):  # long sums, without recursion
            chain.append(chain[-1].left)
        value = self.ev(chain[-1].left)
        for n in reversed(chain):
            value = self.operate(n, n.op, n.left, n.right, value, self.ev(n.right))
        return value

    def _ev_conditional(self, node: ast.IfExp) -> Value:
        self.ev(node.test)
        return join(self.ev(node.body), self.ev(node.orelse))

    def _ev_walrus(self, node: ast.NamedExpr) -> Value:
        value = self.ev(node.value)
        self.assign(node.target, value, node.value)
        return self.name(node.target.id)

    def _ev_await(self, node: ast.Await) -> Value:
        return self.ev(node.value)

    def _ev_lambda(self, node: ast.Lambda) -> Value:
        function = Function(node, self.module, self.scope, None, self)
        self.checker.follow(function, self.sink)
        return function

    def _ev_comprehension(self, node: Any) -> Value:
        before = dict(self.env)
        for part in node.generators:
            self.assign(part.target, elements(self.ev(part.iter)), part.iter, check=False)
            for test in part.ifs:
                self.ev(test)
        if isinstance(node, ast.DictComp):
            self.ev(node.key)
            self.ev(node.value)
            value = None
        else:
            value = self.ev(node.elt)
        self.env = before
        if isinstance(value, Vector):
            return Vector(value.frame, None, True, value.partial)
        return None

    def _ev_dict(self, node: ast.Dict) -> Value:
        for k, v in zip(node.keys, node.values):
            value = self.ev(v)
            if k is not None:
                self.ev(k)
                name = last_name(k) if isinstance(k, ast.Constant) else ""
                self.check_agrees(self.scope.declared(name) if name else None, value, v, name)
        return None

    def _ev_call(self, node: ast.Call) -> Value:
        return call(self, node)

    # ---- operators -----------------------------------------------------------------------

    def operate(
        self, node: ast.AST, op: ast.operator, left: ast.expr, right: ast.expr, a: Value, b: Value
    ) -> Value:
        """Return the result of an operator, reporting frames that do not fit."""
        if a is POISON or b is POISON:
            return POISON if isinstance(op, (ast.Add, ast.Sub)) else None
        if isinstance(op, (ast.Add, ast.Sub)):
            return self.add(node, left, right, a, b, isinstance(op, ast.Sub))
        if isinstance(op, ast.MatMult):
            return self.matmul(node, left, right, a, b)
        if isinstance(op, ast.Mult):
            return self.multiply(node, left, right, a, b)
        if isinstance(op, ast.Div):
            return multiply(a, b) if b is None or b in (SCALAR, TRIG) else None
        return None

    def add(
        self, node: ast.AST, left: ast.expr, right: ast.expr, a: Value, b: Value, minus: bool
    ) -> Value:
        """Return a sum or difference: both must be in one frame."""
        if a is ZERO and minus and isinstance(b, Vector):
            return Vector(b.frame)
        if a is ZERO or b is ZERO:
            return b if a is ZERO else a
        if isinstance(a, Vector) and isinstance(b, Vector):
            if not self.one_frame(node, left, right, a, b):
                return POISON
            points = None
            if a.points is not None and b.points is not None:
                points = Counter(a.points)
                for k, n in b.points.items():
                    points[k] += -n if minus else n
            frame = a.frame if a.frame is not None else b.frame
            return Vector(frame, points, a.many and b.many, a.partial or b.partial)
        if isinstance(a, Map) and isinstance(b, Map):
            if a.style == b.style == "J":
                if not self.unify(a.to, b.to, right):
                    self.report(right, messages.two_frames(self, left, right, a, b), node)
                    return POISON
                return a
            return None
        if a is None or b is None or a is ARRAY or b is ARRAY:
            known = a if isinstance(a, (Vector, Map)) else b
            if isinstance(known, Vector):
                return Vector(known.frame, None, known.many, known.partial)
            if isinstance(known, Map) and known.style == "J":
                return known
        return None

    def multiply(self, node: ast.AST, left: ast.expr, right: ast.expr, a: Value, b: Value) -> Value:
        """Return an elementwise product, or that of two attitudes."""
        if isinstance(a, Map) and isinstance(b, Map) and a.style == b.style == "Q":
            a_to, a_frm, b_to, b_frm = map(frame_of, (a.to, a.frm, b.to, b.frm))
            known = a_to and a_frm and b_to and b_frm
            same = self.module.same
            if known and not (same(a_frm or "", b_to or "") or same(a_to or "", b_frm or "")):
                self.report(right, messages.wrong_product(self, left, right, a, b), node)
                return POISON
        if isinstance(a, Vector) and ast.dump(left) == ast.dump(right):
            return None  # squares have no frame
        for one, other in ((a, right), (b, left)):  # v_E[i] += R[i][j] * v_B[j]
            if isinstance(one, Vector) and one.loose and not isinstance(other, SIMPLE):
                return None
        return multiply(a, b)

    def one_frame(self, node: ast.AST, left: ast.expr, right: ast.expr, a: Value, b: Value) -> bool:
        """Report two vectors of a sum or product that are not in one frame.

        A function without suffixes may mean to compare them: it is not reported for its callers.
        """
        if not (isinstance(a, Vector) and isinstance(b, Vector)):
            return True
        if self.unify(a.frame, b.frame, right):
            return True
        if not self.depth:
            self.report(right, messages.two_frames(self, left, right, a, b), node)
        return False

    def matmul(self, node: ast.AST, left: ast.expr, right: ast.expr, a: Value, b: Value) -> Value:
        """Return a matrix product: adjacent frames must be the same."""
        if isinstance(a, Map):
            if isinstance(b, Map):
                return self.compose(node, left, right, a, b)
            if isinstance(b, Vector):
                return self.apply(node, left, right, a, b)
            return Vector(a.to, partial=True) if b is None and a.style not in "CT" else None
        if isinstance(a, Vector) and not a.partial:
            if isinstance(b, Map):
                return self.apply(node, left, right, b.swap(), a, reverse=True)
            if isinstance(b, Vector) and not b.partial:
                self.one_frame(node, left, right, a, b)
                return SCALAR if not a.many and not b.many else None
            return None
        return Vector(a.frame, partial=True) if isinstance(a, Vector) else None

    def apply(
        self,
        node: ast.AST,
        left: ast.expr,
        right: ast.expr,
        a: Map,
        b: Vector,
        reverse: bool = False,
        method: bool = False,
    ) -> Value:
        """Return a vector after a map; ``reverse`` where the vector stands on the left."""
        if not self.unify(a.frm, b.frame, right):
            map_node, vector_node = (right, left) if reverse else (left, right)
            shown = a.swap() if reverse else a
            text = messages.wrong_operand(self, map_node, vector_node, shown, b, reverse, method)
            self.report(vector_node, text, node)
            return POISON
        points = None
        start = frame_of(a.frm)
        if a.style == "X" and b.points and start and b.points.get(start) == -1:
            points = Counter(b.points)
            del points[start]
            points[frame_of(a.to) or ""] -= 1
        elif a.style in "RQ":
            points = b.points
        return Vector(a.to, points, b.many, b.partial)

    def compose(self, node: ast.AST, left: ast.expr, right: ast.expr, a: Map, b: Map) -> Value:
        """Return the product of two maps; T_AB beside a rotation is a translation."""
        if "T" in (a.style, b.style) and a.style != b.style:
            return None
        if not self.unify(a.frm, b.to, right):
            self.report(right, messages.wrong_product(self, left, right, a, b), node)
            return POISON
        style = a.style if a.style == b.style and a.style in "XT" else "R"
        to, frm = frame_of(a.to), frame_of(b.frm)
        return Map(a.to, b.frm, "J" if to is not None and to == frm and style == "R" else style)


HANDLERS: dict[type, Any] = {
    ast.Assign: Flow._do_assign,
    ast.AnnAssign: Flow._do_annotated,
    ast.AugAssign: Flow._do_augmented,
    ast.Return: Flow._do_return,
    ast.Raise: lambda flow, s: False,
    ast.Continue: lambda flow, s: False,
    ast.Break: lambda flow, s: False,
    ast.If: Flow._do_if,
    ast.For: Flow._do_for,
    ast.AsyncFor: Flow._do_for,
    ast.While: Flow._do_while,
    ast.Try: Flow._do_try,
    ast.With: Flow._do_with,
    ast.AsyncWith: Flow._do_with,
    ast.Match: Flow._do_match,
    ast.FunctionDef: Flow._do_function,
    ast.AsyncFunctionDef: Flow._do_function,
    ast.ClassDef: Flow._do_class,
    ast.Delete: Flow._do_delete,
    ast.Import: Flow._do_import,
    ast.ImportFrom: Flow._do_import,
}
if hasattr(ast, "TryStar"):
    HANDLERS[ast.TryStar] = Flow._do_try

EXPRESSIONS: dict[type, Any] = {
    ast.Name: Flow._ev_name,
    ast.Constant: Flow._ev_constant,
    ast.Attribute: Flow._ev_attribute,
    ast.Subscript: Flow._ev_subscript,
    ast.Slice: Flow._ev_slice,
    ast.Tuple: Flow._ev_sequence,
    ast.List: Flow._ev_sequence,
    ast.Starred: Flow._ev_starred,
    ast.UnaryOp: Flow._ev_unary,
    ast.BinOp: Flow._ev_binary,
    ast.IfExp: Flow._ev_conditional,
    ast.NamedExpr: Flow._ev_walrus,
    ast.Await: Flow._ev_await,
    ast.Lambda: Flow._ev_lambda,
    ast.ListComp: Flow._ev_comprehension,
    ast.SetComp: Flow._ev_comprehension,
    ast.GeneratorExp: Flow._ev_comprehension,
    ast.DictComp: Flow._ev_comprehension,
    ast.Dict: Flow._ev_dict,
    ast.Call: Flow._ev_call,
}
