"""Calls: functions of the checked sources, of NumPy, and methods of attitudes and arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from archimedes.analysis.frames import messages
from archimedes.analysis.frames.arrays import elements, fold, key_of_node
from archimedes.analysis.frames.modules import Class, Function, parameters_of
from archimedes.analysis.frames.names import words
from archimedes.analysis.frames.scopes import last_name
from archimedes.analysis.frames.values import (
    ARRAY,
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
    key_of,
    root,
)
from archimedes.records import record

__all__ = ["call"]


@record
class Call:
    """A call with the values of its arguments."""

    flow: Any
    node: ast.Call
    args: list[Value]
    keywords: dict[str, tuple[ast.expr, Value]]
    plain: bool  # no *args: positions are known

    def value(self, index: int, name: str = "") -> Value:
        """Return the value of an argument by position or name."""
        if index < len(self.args) and self.plain:
            return self.args[index]
        return self.keywords[name][1] if name in self.keywords else None

    def arg(self, index: int) -> ast.expr:
        """Return the node of a positional argument."""
        return self.node.args[index]


def call(flow: Any, node: ast.Call) -> Value:
    """Return what is known of the result of a call, reporting arguments that do not fit."""
    func = node.func
    base = flow.ev(func.value) if isinstance(func, ast.Attribute) else None
    plain = not any(isinstance(a, ast.Starred) for a in node.args)
    args = [flow.ev(a) for a in node.args]
    keywords = {}
    for k in node.keywords:
        value = flow.ev(k.value)
        if k.arg is not None:
            keywords[k.arg] = k.value, value
    c = Call(flow, node, args, keywords, plain)
    name = last_name(func)
    if isinstance(func, ast.Attribute):
        handled, result = method(c, base, name)
        if handled:
            return result
    target = flow.callee(func, base)
    if isinstance(target, Function) and target.module.library and name in ("ned", "enu"):
        return local_attitude()
    if isinstance(target, Function) and not (target.module.library and name in FUNCTIONS):
        result = call_function(c, target, base)
        if result is not None:
            return result
    elif isinstance(target, Class):
        return construct(c, target)
    else:
        check_keywords(c)
    if name in FUNCTIONS:
        return FUNCTIONS[name](c)
    if isinstance(target, (Vector, Map)):  # R_BE(t), gravity_E(p)
        return Vector(target.frame) if isinstance(target, Vector) else target
    return None


def local_attitude() -> Map:
    """Return what is known of ``ned(lat, lon)``: it takes Earth-fixed axes to local ones."""
    earth = FrameVariable(["NED", "ENU", "N", "B"], "Earth-fixed axes")
    return Map(FrameVariable(["E", "ECEF", "ECI", "I", "B"], "local axes"), earth)


# ---- functions and classes of the sources ----------------------------------------------------


@record
class Pair:
    """An argument beside what the name of its parameter says."""

    name: str
    declared: Any
    value: Any
    node: ast.expr


def bind(c: Call, names: list[str], only_by_name: list[str]) -> list[tuple[str, ast.expr, Value]]:
    """Return names, nodes and values of arguments in the order of parameters."""
    found = []
    if c.plain:
        found = list(zip(names, c.node.args, c.args))
    known = {*names, *only_by_name}
    found += [(k, n, v) for k, (n, v) in c.keywords.items() if k in known]
    return found


def check_keywords(c: Call) -> None:
    """Check arguments by keyword of a function that is not known: their names say enough."""
    pairs = [Pair(k, c.flow.scope.declared(k), v, n) for k, (n, v) in c.keywords.items()]
    match(c, pairs, last_name(c.node.func) or "the call", False)


def call_function(c: Call, function: Function, base: Value) -> Value:
    """Check the arguments of a call and return its result."""
    flow = c.flow
    if not function.callable or "property" in function.decorators:
        return None
    positional, keyword, _ = parameters_of(function)
    by_class = isinstance(base, Class) and "classmethod" not in function.decorators
    if function.bound and not by_class:
        positional = positional[1:]
    bound = bind(c, [a.arg for a in positional], [a.arg for a in keyword])
    scope = function.scope
    pairs = [Pair(k, scope.declared(k), v, n) for k, n, v in bound]
    mapping = match(c, pairs, function.name, function.module.library, function)
    if mapping is None or flow.checker.signatures_only:
        return None
    given = {
        p.name: p.value
        for p in pairs
        if p.declared is None and isinstance(p.value, (Vector, Map, Instance, Function, Sequence))
    }
    if any(map(has_frame, given.values())) and not function.module.library:
        key = (function, *((k, key_of(v)) for k, v in given.items()))
        result, findings = flow.checker.follow_with(function, given, key, flow.depth)
        report_inside(c, function, findings)
    else:
        result = None
        declared = scope.declared(function.name)
        if isinstance(declared, (Vector, Map)):
            result = declared
        elif scope.own.letters or scope.frames:
            inside = flow.checker.follow(function)
            result = inside.result() if inside is not None else None
    return rename(result, mapping, function.module.library)


def has_frame(value: Value) -> bool:
    """Return whether something is known of a value's frame."""
    if isinstance(value, Sequence):
        return any(map(has_frame, value.items))
    return isinstance(value, (Vector, Map))


def report_inside(c: Call, function: Function, findings: list[Any]) -> None:
    """Report at a call what goes wrong inside, for functions whose parameters have no suffix."""
    flow = c.flow
    plain = flow.checker.follow(function)
    if not findings or plain is None or flow.depth:
        return
    known = {(f.line, f.expression) for f in flow.checker.sink(function.module)}
    known |= {(f.line, f.expression) for f in plain.sink}
    for f in findings:
        if (f.line, f.expression) not in known:
            text = f"in {function.name}, line {f.line}: {f.message}"
            flow.report(c.node, text, c.node)


def construct(c: Call, cls: Class) -> Value:
    """Check the arguments of a constructor and return the object."""
    maker = cls.method("__init__")
    if maker is not None:
        positional, keyword, _ = parameters_of(maker)
        names, by_name, scope = (
            [a.arg for a in positional[1:]],
            [a.arg for a in keyword],
            maker.scope,
        )
    else:
        names, by_name, scope = [f[0] for f in cls.fields()], [], cls.scope
    pairs = [Pair(k, scope.declared(k), v, n) for k, n, v in bind(c, names, by_name)]
    match(c, pairs, cls.node.name, cls.module.library)
    if cls.node.name in ATTITUDES:
        return c.value(0) if isinstance(c.value(0), Map) else None
    return Instance(cls)


def match(
    c: Call, pairs: list[Pair], name: str, library: bool, function: Function | None = None
) -> dict[str, str] | None:
    """Check arguments against parameters; return the frames of the call for those declared.

    A function with a rotation among its arguments may be called with other frames if they are
    consistent, and so may the functions of this package, whose letters are not the caller's. The
    result is None where something was reported.
    """
    flow = c.flow
    for p in [] if library else pairs:
        if is_swapped(p):
            flow.report(p.node, messages.wrong_kind(name, p), c.node)
            return None
    known = [p for p in pairs if isinstance(p.declared, (Vector, Map)) and same_kind(p)]
    mapping: dict[str, str] = {}
    wrong: list[tuple[Pair, str]] = []
    consistent = True
    for p in known:
        for ours, theirs in frames_of(p):
            there = frame_of(theirs)
            if ours is None or there is None:
                continue
            if not flow.module.same(mapping.setdefault(ours, there), there):
                consistent = False
                wrong.append((p, mapping[ours]))
    if len(set(mapping.values())) < len(mapping):
        consistent = False
    turned = any(isinstance(p.value, Map) and p.value.style in "RQX" for p in known)
    if library and not consistent:
        for p, frame in wrong[:1]:
            flow.report(p.node, messages.wrong_argument(flow, name, p, frame), c.node)
            return None
    if library:
        return check_meaning(c, known, name, mapping)
    if turned and consistent and mapping:
        return mapping
    fine = True
    for p in known:
        for ours, theirs in frames_of(p):
            if not flow.unify(ours, theirs, p.node):
                flow.report(p.node, messages.wrong_argument(flow, name, p, ours), c.node)
                fine = False
                break
    return {k: k for k in mapping} if fine else None


def check_meaning(
    c: Call, known: list[Pair], name: str, mapping: dict[str, str]
) -> dict[str, str] | None:
    """Check what this package's letters mean: p_E is in axes of the Earth, or inertial ones."""
    for p in known:
        ours, theirs = frames_of(p)[0]
        there = frame_of(theirs)
        if isinstance(p.declared, Vector) and there is not None:
            wanted, got = OURS.get(str(ours), ""), MEANING.get(there, "")
            alone = len(known) == 1 or ours != "B"
            if wanted and got and alone and not set(wanted) & set(got):
                c.flow.report(p.node, messages.wrong_argument(c.flow, name, p, str(ours)), c.node)
                return None
    return mapping


#: b: body, l: local level, e: Earth-fixed, i: inertial.
MEANING = {
    "B": "b",
    "NED": "l",
    "ENU": "l",
    "N": "li",
    "E": "eil",
    "I": "i",
    "ECEF": "e",
    "ITRF": "e",
    "ECI": "i",
    "GCRF": "i",
    "FRD": "b",
    "FLU": "b",
}


#: What the letters of this package's own parameters mean.
OURS = {**MEANING, "E": "ei"}


def is_swapped(p: Pair) -> bool:
    """Return whether a rotation is given for a vector, or a vector for a rotation."""
    if not isinstance(p.node, (ast.Name, ast.Attribute)):
        return False
    if isinstance(p.declared, Vector):
        return isinstance(p.value, Map) and p.value.style in "RQ" and not p.declared.many
    plain = isinstance(p.value, Vector) and not p.value.partial
    return isinstance(p.declared, Map) and p.declared.style == "R" and plain


def same_kind(p: Pair) -> bool:
    """Return whether parameter and argument are both vectors or both maps."""
    return type(p.declared) is type(p.value)


def frames_of(p: Pair) -> list[tuple[Any, Any]]:
    """Return the frames of the parameter beside those of the argument."""
    if isinstance(p.declared, Vector):
        return [(p.declared.frame, p.value.frame)]
    return [(p.declared.to, p.value.to), (p.declared.frm, p.value.frm)]


def rename(value: Value, mapping: dict[str, str], library: bool) -> Value:
    """Return a result in the frames of the caller."""
    if all(k == v for k, v in mapping.items()) and not library:
        return value

    def frame(f: Any) -> Any:
        here = frame_of(f)
        if here is None:
            return None
        if here in mapping:
            return mapping[here]
        return FrameVariable(frozenset(mapping.values())) if library else here

    if isinstance(value, Vector):
        return Vector(frame(value.frame), None, value.many, value.partial)
    if isinstance(value, Map):
        return Map(frame(value.to), frame(value.frm), value.style)
    if isinstance(value, Sequence):
        return Sequence(tuple(rename(item, mapping, library) for item in value.items))
    return value if isinstance(value, Instance) else None


# ---- methods -----------------------------------------------------------------------------------

ATTITUDES = {"Quaternion", "RotationMatrix", "RotationVector", "ModifiedRodrigues", "EulerAngles"}
#: Frames in which no body lies still: their letters are not those of its rates.
REFERENCE = words("E N I W NED ENU ECI ECEF ITRF GCRF")
TURNING = {"rotate", "apply", "apply_vec", "rotate_vector"}
INVERSES = {"inv", "inverse", "conj", "conjugate", "transpose"}
CONVERSIONS = {"as_matrix", "as_quat", "as_dcm", "copy", "normalize", "normalized", "astype"}
SHAPES = words("copy astype flatten ravel squeeze conj tolist round clip")


def method(c: Call, base: Value, name: str) -> tuple[bool, Value]:
    """Return whether a method is one of attitudes or arrays, and its result."""
    func = c.node.func
    assert isinstance(func, ast.Attribute)
    if isinstance(base, (Function, Class)) or type(base).__name__ == "Module":
        return False, None
    found = base.cls.method(name) if isinstance(base, Instance) else None
    if found and not (found.module.library and name in TURNING | INVERSES | {"as_matrix"}):
        return False, None
    if isinstance(base, Vector):
        return vector_method(c, base, name)
    if isinstance(base, Map):
        return map_method(c, base, name)
    if (isinstance(base, Sequence) or base is None) and name in ("append", "extend") and c.args:
        return append(c, base, name)
    wanted = name in TURNING and isinstance(c.value(0), Vector)
    wanted = wanted or name in ("as_matrix", "kinematics") or (name in INVERSES and not c.args)
    if not wanted or not (base is None or isinstance(base, Instance)):
        return False, None
    body = FrameVariable(REFERENCE, "body axes") if name == "kinematics" else FrameVariable()
    attitude = Map(body, FrameVariable())
    key = key_of_node(func.value)
    if key is not None:
        c.flow.env[key] = attitude
    return map_method(c, attitude, name)


def vector_method(c: Call, base: Vector, name: str) -> tuple[bool, Value]:
    """Return the result of a method of an array that holds vectors."""
    func = c.node.func
    assert isinstance(func, ast.Attribute)
    if name == "dot" and c.args:
        return True, c.flow.matmul(c.node, func.value, c.arg(0), base, c.args[0])
    if name == "cross" and c.args:
        c.flow.one_frame(c.node, func.value, c.arg(0), base, c.args[0])
        return True, Vector(base.frame)
    if name in ("append", "extend") and c.args:
        return append(c, base, name)
    if name in ("sum", "mean", "cumsum"):
        along = c.args or "axis" in c.keywords
        return True, Vector(base.frame) if along else SCALAR
    if name in ("transpose", "swapaxes"):
        return True, Vector(base.frame, None, base.many, True)
    if name in ("max", "min", "norm", "std", "item"):
        return True, SCALAR
    return (True, base) if name in SHAPES else (False, None)


def map_method(c: Call, base: Map, name: str) -> tuple[bool, Value]:
    """Return the result of a method of a rotation, attitude or transformation."""
    flow, func = c.flow, c.node.func
    assert isinstance(func, ast.Attribute)
    relax(base)
    if name in TURNING and c.args:
        inverse = inverse_flag(c)
        if inverse is None:
            return True, None
        used = base.swap() if inverse else base
        value = c.args[0]
        if isinstance(value, Vector):
            return True, flow.apply(c.node, func.value, c.arg(0), used, value, method=True)
        return True, Vector(used.to, partial=True)
    if name in INVERSES and not (name == "transpose" and c.args and len(c.args) > 2):
        return True, base.swap()
    if name in CONVERSIONS:
        matrix = name in ("as_matrix", "as_dcm") and base.style == "Q"
        return True, Map(base.to, base.frm) if matrix else base
    if name == "kinematics" and c.args:
        value = c.args[0]
        if isinstance(value, Vector) and not flow.unify(base.to, value.frame, c.arg(0)):
            text = messages.wrong_rate(flow, func.value, c.arg(0), base, value)
            flow.report(c.arg(0), text, c.node)
        return True, None
    if name == "angular_velocity":
        return True, Vector(base.to)
    if name in ("rotation", "translation"):
        return True, Map(base.to, base.frm) if name == "rotation" else Vector(base.to)
    if name in ("dot", "multiply", "__matmul__") and c.args:
        return True, flow.matmul(c.node, func.value, c.arg(0), base, c.args[0])
    return False, None


def relax(base: Map) -> None:
    """Let go of an attitude that turns vectors within one frame: it changes no coordinates."""
    to, frm = base.to, base.frm
    known = frame_of(to) is not None and frame_of(to) == frame_of(frm)
    if known and isinstance(to, FrameVariable) and isinstance(frm, FrameVariable):
        for variable in (to, frm):
            variable.frame, variable.wild = None, True


def inverse_flag(c: Call) -> bool | None:
    """Return the argument ``inverse`` of a rotation, None if it is not in the source."""
    node = c.keywords["inverse"][0] if "inverse" in c.keywords else None
    if node is None:
        node = c.arg(1) if len(c.args) > 1 else None
    if node is None:
        return False
    return bool(node.value) if isinstance(node, ast.Constant) else None


def append(c: Call, base: Value, name: str) -> tuple[bool, Value]:
    """Follow a list that grows."""
    flow, value = c.flow, c.args[0]
    func = c.node.func
    assert isinstance(func, ast.Attribute)
    value = elements(value) if name == "extend" else value
    key = key_of_node(func.value)
    declared = flow.scope.declared(last_name(func.value))
    if isinstance(declared, Vector):
        flow.check_agrees(Vector(declared.frame), value, c.arg(0), messages.source(func.value))
    elif key is not None and key in flow.env:
        flow.env[key] = None
        empty = isinstance(base, Sequence) and not base.items
        if isinstance(value, Vector) and (empty or is_like(fold(base), value)):
            flow.env[key] = Vector(value.frame, None, True)
    return True, None


def is_like(base: Value, value: Vector) -> bool:
    """Return whether a list holds vectors in the frame of another one."""
    return isinstance(base, Vector) and base.many and root(base.frame) == root(value.frame)


# ---- NumPy -------------------------------------------------------------------------------------


def keep(c: Call) -> Value:
    """A function that returns its argument, or one like it."""
    return fold(c.value(0, "a"))


def cross(c: Call) -> Value:
    a, b = fold(c.value(0, "a")), fold(c.value(1, "b"))
    if len(c.args) > 1 and not c.flow.one_frame(c.node, c.arg(0), c.arg(1), a, b):
        return None
    known = [v for v in (a, b) if isinstance(v, Vector)]
    return Vector(known[0].frame) if known else None


def product(c: Call) -> Value:
    if len(c.args) < 2 or not c.plain:
        return None
    return c.flow.matmul(c.node, c.arg(0), c.arg(1), fold(c.args[0]), fold(c.args[1]))


def chain(c: Call) -> Value:
    nodes = getattr(c.node.args[0], "elts", []) if c.node.args else []
    if not nodes or not isinstance(c.args[0], Sequence):
        return None
    value, left = c.args[0].items[0], nodes[0]
    for node, item in zip(nodes[1:], c.args[0].items[1:]):
        value = c.flow.matmul(c.node, left, node, value, item)
        left = node
    return value


def outer(c: Call) -> Value:
    a, b = c.value(0, "a"), c.value(1, "b")
    if isinstance(a, Vector) and isinstance(b, Vector):
        same = root(a.frame) == root(b.frame)
        return Map(a.frame, b.frame, "J" if same else "R")
    return None


def inverse(c: Call) -> Value:
    a = c.value(0, "a")
    return a.swap() if isinstance(a, Map) else None


def transpose(c: Call) -> Value:
    a = c.value(0, "a")
    if isinstance(a, Vector):
        return Vector(a.frame, None, a.many, True)
    return a.swap() if isinstance(a, Map) else None


def solve(c: Call) -> Value:
    a = c.value(0, "a")
    if not isinstance(a, Map) or len(c.args) < 2:
        return None
    return c.flow.matmul(c.node, c.arg(0), c.arg(1), a.swap(), fold(c.args[1]))


def least_squares(c: Call) -> Value:
    return Sequence((solve(c), None, None, None))


def scalar(c: Call) -> Value:
    return SCALAR


def norm(c: Call) -> Value:
    return None if "axis" in c.keywords or len(c.args) > 2 else SCALAR


def trigonometric(c: Call) -> Value:
    return TRIG


def zeros(c: Call) -> Value:
    return ZERO


def numbers(c: Call) -> Value:
    return ARRAY


def total(c: Call) -> Value:
    """``sum`` and ``np.sum``: of a list, of products (a dot product), or along an axis."""
    first = c.node.args[0] if c.node.args else None
    if isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mult):
        a, b = c.flow.ev(first.left), c.flow.ev(first.right)
        c.flow.one_frame(c.node, first.left, first.right, a, b)
        return None
    value = c.value(0, "a")
    if isinstance(value, Sequence) and isinstance(first, (ast.List, ast.Tuple)) and value.items:
        result, left = value.items[0], first.elts[0]
        for node, item in zip(first.elts[1:], value.items[1:]):
            result = c.flow.operate(c.node, ast.Add(), left, node, result, item)
            left = node
        return result
    along = "axis" in c.keywords or len(c.args) > 1 or isinstance(c.node.func, ast.Name)
    if isinstance(value, Vector) and (along or isinstance(first, ast.GeneratorExp)):
        return Vector(value.frame, None)
    return None


def along_axis(c: Call) -> Value:
    value = fold(c.value(0, "a"))
    return Vector(value.frame) if isinstance(value, Vector) and c.keywords.get("axis") else None


def choose(c: Call) -> Value:
    if len(c.args) != 3:
        return None
    a, b = fold(c.value(1)), fold(c.value(2))
    # Where the result has a name with a suffix, each of the two is compared with that.
    if not c.flow.wanted and not c.flow.one_frame(c.node, c.arg(1), c.arg(2), a, b):
        return None
    return join(a, b)


def either(c: Call) -> Value:
    a, b = c.value(0), c.value(1)
    known = [v for v in (a, b) if isinstance(v, Vector)]
    if len(known) == 2:
        return join(a, b)
    return Vector(known[0].frame) if known else None


def gather(c: Call) -> Value:
    """``stack`` and relatives: vectors in one frame are rows, along another axis columns."""
    found = fold(c.value(0))
    if not isinstance(found, Vector):
        return None
    columns = last_name(c.node.func) == "column_stack" or "axis" in c.keywords or len(c.args) > 1
    return Vector(found.frame, None, found.many, columns)


def skew(c: Call) -> Value:
    a = c.value(0)
    return Map(a.frame, a.frame, "J") if isinstance(a, Vector) else None


def convert(c: Call) -> Value:
    """What returns the same rotation in another form."""
    value = c.value(0)
    return value if isinstance(value, Map) else None


def same_function(c: Call) -> Value:
    """``arc.compile(f)`` is called as f is."""
    value = c.value(0)
    return value if isinstance(value, Function) else None


def zipped(c: Call) -> Value:
    return Sequence((Sequence(tuple(elements(a) for a in c.args)),)) if c.plain else None


def enumerated(c: Call) -> Value:
    return Sequence((Sequence((SCALAR, elements(c.value(0)))),)) if c.args else None


def einsum(c: Call) -> Value:
    """Give each index of the subscripts its frame, and the result those of its indices."""
    text = c.node.args[0] if c.node.args else None
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str) and c.plain):
        return None
    inputs, _, output = text.value.replace(" ", "").partition("->")
    terms, values, nodes = inputs.split(","), c.args[1:], c.node.args[1:]
    if len(terms) != len(values):
        return None
    mapped = {x for t, v in zip(terms, values) if isinstance(v, Map) for x in t[-2:]}
    frames: dict[str, Any] = {}
    for term, value, node in zip(terms, values, nodes):
        if isinstance(value, Map) and len(term) >= 2:
            pairs = [(term[-2], value.to), (term[-1], value.frm)]
        elif isinstance(value, Vector) and not value.partial and term:
            shared = [x for x in term if x in mapped]
            pairs = [((shared or [term[-1]])[-1], value.frame)]
        else:
            continue
        for index, frame in pairs:
            if not c.flow.unify(frames.setdefault(index, frame), frame, node):
                text_ = messages.wrong_index(index, frames[index], frame, node)
                c.flow.report(node, text_, c.node)
                return None
    ends = [frames[x] for x in output if x in frames]
    if len(ends) == 1:
        return Vector(ends[0], partial=len(output.replace(".", "")) > 1)
    return Map(ends[0], ends[1]) if len(ends) == 2 and len(output) == 2 else None


def rows(names: str, function: Callable[[Call], Value]) -> dict[str, Callable[[Call], Value]]:
    """Return a row of the table for each name."""
    return dict.fromkeys(names.split(), function)


FUNCTIONS: dict[str, Callable[[Call], Value]] = {
    **rows("array asarray ascontiguousarray atleast_1d atleast_2d squeeze copy deepcopy", keep),
    **rows("negative positive real abs absolute fabs clip nan_to_num float32 float64 round", keep),
    **rows("as_array as_finite check_vector stop_gradient broadcast_to deg2rad radians", keep),
    **rows("rad2deg degrees unit normalize normalise normalized unit_vector list tuple", keep),
    **rows("reversed around asfarray", keep),
    **rows("cross", cross),
    **rows("dot vdot inner matmul matvec vecdot", product),
    **rows("multi_dot", chain),
    **rows("outer", outer),
    **rows("inv pinv", inverse),
    **rows("transpose swapaxes matrix_transpose", transpose),
    **rows("solve", solve),
    **rows("lstsq", least_squares),
    **rows("float int len det trace length", scalar),
    **rows("norm", norm),
    **rows("sin cos tan", trigonometric),
    **rows("zeros zeros_like", zeros),
    **rows("eye identity ones ones_like full diag arange linspace", numbers),
    **rows("sum", total),
    **rows("mean average cumsum diff median", along_axis),
    **rows("where select", choose),
    **rows("maximum minimum fmax fmin", either),
    **rows("stack concatenate hstack vstack row_stack column_stack", gather),
    **rows("skew hat cross_matrix tilde skew_symmetric wedge", skew),
    **rows("quaternion_to_dcm dcm_to_quaternion from_matrix quaternion_normalize", convert),
    **rows("dcm_normalize Quaternion RotationMatrix", convert),
    **rows("quaternion_inverse quaternion_conjugate", inverse),
    **rows("compile jit njit", same_function),
    **rows("zip", zipped),
    **rows("enumerate", enumerated),
    **rows("einsum", einsum),
}
