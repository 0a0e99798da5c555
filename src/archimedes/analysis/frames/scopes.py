"""Which letters are frames in a file, and what a name means there.

B, E, N and I, and words such as NED, are frames everywhere. Any other letter is one where a
rotation, a transformation or a ``p_AB_C`` of the same function or class (or of the module's own
statements) names it: in ``v_A - v_B`` alone, A and B are two bodies.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable

from archimedes.analysis.frames.names import (
    FORCES,
    FRAME_WORDS,
    NUMBERS,
    MonogramName,
    are_compatible,
    parse_name,
)
from archimedes.analysis.frames.values import SCALAR, Map, Value, Vector

__all__ = ["Evidence", "Scope"]

USUAL = {"B", "E", "N", "I", *FRAME_WORDS}
SCALAR_TYPES = {"float", "int", "bool", "str", "Scalar", "complex"}
USES = (
    ast.Import,
    ast.ImportFrom,
    ast.BinOp,
    ast.Subscript,
    ast.Call,
    ast.Attribute,
    ast.Assign,
    ast.AnnAssign,
    ast.arg,
)
ATTITUDE_METHODS = {"rotate", "as_matrix", "as_quat", "kinematics", "apply_vec"}
VECTOR_CALLS = {"cross", "dot", "norm", "rotate", "apply", "matvec", "solve"}


def name_in(n: ast.AST) -> str:
    """Return the identifier that a node holds, "" for none."""
    if isinstance(n, ast.Name):
        return n.id
    if isinstance(n, ast.Attribute):
        return n.attr
    if isinstance(n, (ast.arg, ast.keyword)):
        return n.arg or ""
    if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return n.name
    if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant):
        return str(n.slice.value)
    return ""


class Evidence:
    """What the names below a node say: frames that maps name, letters beside each head."""

    def __init__(self, node: ast.AST) -> None:
        self.frames: set[str] = set()
        self.letters: defaultdict[str, set[str]] = defaultdict(set)
        self.vectors: set[str] = set()
        self.jacobians: set[str] = set()
        self.scalars: set[str] = set()
        self.matrices: set[str] = set()
        self.rotations: set[str] = set()
        self.factors: set[str] = set()
        self.spatial = False
        self.archimedes = False
        self.bodies: defaultdict[str, set[str]] = defaultdict(set)
        for n in ast.walk(node):
            name = name_in(n)
            if "_" in name:
                self.take_name(name)
            if isinstance(n, USES):
                self.take_use(n)
            if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mult, ast.Div)):
                self.factors |= {last_name(n.left), last_name(n.right)}
        # A resistance between base and emitter is multiplied by a current.
        self.spatial = self.spatial or bool(self.rotations - self.factors)

    def all_letters(self) -> set[str]:
        """Return the letters beside all heads."""
        return {x for letters in self.letters.values() for x in letters}

    def take_name(self, name: str) -> None:
        """Note the frames of a name."""
        p = parse_name(name)
        if p is None:
            return
        if p.kind == "map" and p.style in "RQX":
            self.frames |= {p.to, p.frm}
            if p.style == "R" and len({p.to, p.frm} & USUAL) == 2:
                self.rotations.add(name)
        elif p.points and p.to and p.kind == "vector":
            self.frames.add(p.to)
        if p.kind == "vector" and p.to:
            self.letters[p.head].add(p.to)
        self.spatial = self.spatial or p.to in FRAME_WORDS or p.frm in FRAME_WORDS

    def take_use(self, n: ast.AST) -> None:
        """Note what is used as a vector, a Jacobian or a number, and what shows 3-D physics."""
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            text = ast.unparse(n)
            self.archimedes = self.archimedes or "archimedes" in text
            self.spatial = self.spatial or self.archimedes or "spatial" in text
        elif isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult):
            for side in (n.left, n.right):
                self.vectors.add(last_name(side))
                self.spatial = self.spatial or is_map(side)
            if isinstance(n.left, ast.BinOp) and isinstance(n.left.op, ast.MatMult):
                self.matrices.add(last_name(n.left.right))  # R @ P_B @ R.T
        elif isinstance(n, ast.Subscript):
            self.vectors.add(last_name(n.value))
        elif isinstance(n, ast.Call):
            called = last_name(n.func)
            self.spatial = self.spatial or called in ATTITUDE_METHODS or called == "cross"
            if called in VECTOR_CALLS:
                self.vectors.update(last_name(a) for a in n.args)
            if called in ("pinv", "lstsq"):
                self.jacobians.update(last_name(a) for a in n.args)
        elif isinstance(n, ast.Attribute) and n.attr[:2] in ("v_", "w_"):
            p = parse_name(n.attr)
            if p is not None and len(n.attr) == 3 and (p.head == "w" or p.to == "B"):
                self.bodies[ast.unparse(n.value)].add(p.to)
        elif isinstance(n, ast.Attribute) and n.attr in ("T", "mT"):
            self.jacobians.add(last_name(n.value))
            self.vectors.add(last_name(n.value))
            self.spatial = self.spatial or is_map(n.value)
        elif isinstance(n, ast.Assign):
            targets = n.targets[0]
            if isinstance(targets, ast.Tuple) and isinstance(n.value, ast.Tuple):
                for target, value in zip(targets.elts, n.value.elts):
                    self.take_assignment({last_name(target)}, value)
            else:
                self.take_assignment({last_name(t) for t in n.targets}, n.value)
        elif isinstance(n, ast.AnnAssign) and last_name(n.annotation) in SCALAR_TYPES:
            self.scalars.add(last_name(n.target))
        elif isinstance(n, ast.arg) and last_name(n.annotation) in SCALAR_TYPES:
            self.scalars.add(n.arg)

    def take_assignment(self, targets: set[str], value: ast.expr) -> None:
        """Note what is set to a Jacobian, or to a product that is a vector."""
        called = last_name(value.func) if isinstance(value, ast.Call) else ""
        if "jac" in called.lower():
            self.jacobians |= targets
        product = isinstance(value, ast.BinOp) and isinstance(value.op, ast.MatMult)
        if product or called in VECTOR_CALLS - {"norm", "dot"}:
            self.vectors |= targets


def last_name(node: ast.AST | None) -> str:
    """Return the last identifier of a name or attribute, "" for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""


def is_map(node: ast.AST) -> bool:
    """Return whether a node is named as a rotation is."""
    p = parse_name(last_name(node))
    return p is not None and p.kind == "map" and p.style != "J"


class Scope:
    """What names mean in one function or class of a module.

    Parameters
    ----------
    own, module : Evidence
        What the function or class, and the statements of the module, say.
    spatial : bool
        Whether the file has rotations, cross products or the like.
    same : callable
        Whether two frames are one.
    attitudes : bool
        Whether attitudes are those of this package.
    backwards : bool
        Whether ``R_BE`` takes B to E here, as the file says in a comment.
    """

    def __init__(
        self,
        own: Evidence,
        module: Evidence,
        spatial: bool,
        same: Callable[[str, str], bool] = are_compatible,
        attitudes: bool = False,
        backwards: bool = False,
    ) -> None:
        self.attitudes, self.backwards = attitudes, backwards
        self.own, self.module, self.spatial, self.same = own, module, spatial, same
        self.frames = own.frames | module.frames
        self.kept: dict[str, Value] = {}

    def declared(self, name: str) -> Value:
        """Return what a name says of its value, None for a name without frames."""
        if name not in self.kept:
            p = parse_name(name)
            self.kept[name] = None if p is None else self.meaning(p, name)
        return self.kept[name]

    def meaning(self, p: MonogramName, name: str) -> Value:
        """Return the value that a name stands for."""
        if name in self.own.scalars or name in self.module.scalars:
            return SCALAR
        if p.kind == "map":
            if p.style == "J":
                weak = not p.strong and not self.spatial
                if weak or not self.is_frame(p.to):
                    return None
                return Map(p.to, None if name in self.own.jacobians else p.to, "J")
            if p.style == "X" and name in self.own.jacobians:  # data: X_TR @ X_TE.T
                return None
            if p.style in "CT" and not (self.is_frame(p.to) and self.is_frame(p.frm)):
                return None
            return Map(p.frm, p.to, p.style) if self.backwards else Map(p.to, p.frm, p.style)
        if name in self.own.matrices and p.to:
            return Map(p.to, p.to, "J") if self.is_frame(p.to) else None
        inertial = {"I", "ECI"} & (self.frames | self.own.all_letters())
        if p.head in ("w", "omega", "Omega") and name.endswith("_E") and inertial:
            return None  # the rate of the Earth, the same numbers in both frames
        points = Counter({p.points[1]: 1, p.points[0]: -1}) if p.points else None
        if p.to and (not self.is_frame(p.to) or self.is_label(p, name)):
            return None
        return Vector(p.to or None, points, p.many)

    def body_of(self, owner: str) -> str:
        """Return the frame to whose axes an object's attitude leads: that of its own rates.

        An attitude of this package takes the reference frame to the body, but the attitude of a
        sensor takes the body to the sensor: the object must have ``w_B`` or ``v_B`` beside it.
        """
        letters = self.own.bodies.get(owner, set())
        return next(iter(letters)) if self.attitudes and len(letters) == 1 else ""

    def is_frame(self, letter: str) -> bool:
        """Return whether a letter is a frame here."""
        return letter in USUAL or letter in self.frames

    def is_label(self, p: MonogramName, name: str) -> bool:
        """Return whether the letter of a vector is the name of a body or of a component."""
        if p.to in FRAME_WORDS:
            return False
        used = self.own.vectors | self.module.vectors
        if (p.head in NUMBERS and name not in used) or not (p.strong or self.spatial):
            return True
        if p.head in FORCES and p.to == "N" and not self.spatial:
            return True
        letters = self.own.letters[p.head] | self.module.letters[p.head]
        if p.to == "B" and "B" not in self.frames and letters & ({"A", "C"} - self.frames):
            return True  # bodies A and B
        if p.to in "NED" and {"N", "E"} <= letters:  # north, east, down
            vectors = {f"{p.head}_N", f"{p.head}_E"} & used
            return "D" in letters or "U" in letters or not (vectors or {"N", "E"} <= self.frames)
        return False
