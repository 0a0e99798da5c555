"""What to write instead: known remedies, by the operation that lost the digits and what it read.

The remedies are textbook ones: Goldberg, "What every computer scientist should know about
floating-point arithmetic", ACM Computing Surveys 23(1), 1991 (quadratics, (1 - x)(1 + x), log1p);
Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002 (chapters 1, 4: variance,
compensated sums; section 27.6: hypot); Kahan, "How futile are mindless assessments of roundoff",
2006 (angles by arctan2); Bierman, Factorization Methods for Discrete Sequential Estimation, 1977
(covariances).
"""

from __future__ import annotations

from archimedes.analysis.precision.statistics import NodeError
from archimedes.graph.ops import CONST, INPUT, OPERANDS, TABLE
from archimedes.graph.program import Graph

_SUMS = ("add", "sub")
#: Ops that only scale a value or change its sign.
_SCALING = ("neg", "abs", "copysign", "mul", "div")
_DOUBLE = "or compute this line and what it reads in double"


def _name(g: Graph, i: int) -> str:
    return TABLE[g.op[i]].name


def _origin(g: Graph, i: int) -> int:
    """Return the node that a value is, but for its sign and a constant factor."""
    while _name(g, i) in _SCALING:
        others = [j for j in g.operands(i) if g.op[j] != CONST]
        if len(others) != 1:
            break
        i = others[0]
    return i


def _is_constant(g: Graph, i: int, value: float) -> bool:
    return g.op[i] == CONST and abs(g.value[i]) == value


def _is_square(g: Graph, i: int) -> bool:
    return (_name(g, i) == "mul" and g.a[i] == g.b[i]) or (
        _name(g, i) == "pow" and _is_constant(g, g.b[i], 2.0)
    )


def _terms(g: Graph, i: int, most: int = 400) -> set[int]:
    """Return the nodes that a sum of products and quotients is made of."""
    found: set[int] = set()
    waiting = [i]
    while waiting and len(found) < most:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += g.operands(i) if _name(g, i) in (*_SCALING, *_SUMS) else ()
    return found


def _is_share(g: Graph, i: int) -> bool:
    """Return whether a value is a part of a sum, p/(p + r)."""
    if _name(g, i) != "div":
        return False
    part, whole = g.operands(i)
    return _name(g, whole) == "add" and part in g.operands(whole)


def advise(node: NodeError, arguments: bool) -> str:
    """Return what to do about an operation that lost digits, as a sentence without a full stop.

    ``arguments``: the operation is of the function itself, so that its inputs are arguments.
    """
    g, i, op = node.graph, node.node, node.op
    if op in _SUMS:
        return _advise_sum(node, arguments)
    if op in ("arccos", "arcsin"):
        return (
            "near 1 the angle depends on the last digits: use np.arctan2(np.linalg.norm(np.cross("
            "a, b)), a @ b), or the arctan2 of the sine and the cosine"
        )
    if op in ("log", "log2", "log10"):
        inner = g.a[i]
        if _name(g, inner) in _SUMS and any(_is_constant(g, j, 1.0) for j in g.operands(inner)):
            return "use np.log1p(x) for log(1 + x)"
        return "near 1 the logarithm depends on the last digits: use np.log1p of the difference"
    if op in ("sin", "cos", "tan"):
        return (
            "the angle is many turns, or near a zero: keep it between -pi and pi while it grows "
            "(subtract whole turns), or count turns in an integer"
        )
    if op in ("exp", "exp2", "exp10", "expm1", "sinh", "cosh"):
        return (
            "a large exponent turns its relative error into that of the result: subtract the "
            "largest exponent first (log-sum-exp), or compute the exponent in double"
        )
    if op == "pow":
        return "a large power multiplies the error: take its base in double"
    if op == "solve":
        return (
            "the system is nearly singular: scale its rows and columns, use a least-squares or "
            "square-root form, or solve it in double"
        )
    if op == "sum":
        return (
            "add with compensation (Kahan), subtract the mean first, or keep this accumulator in "
            "double"
        )
    return f"rearrange the formula, {_DOUBLE}"


def _advise_sum(node: NodeError, arguments: bool) -> str:
    g, i = node.graph, node.node
    a, b = g.operands(i)
    first, second = _origin(g, a), _origin(g, b)
    pair = {_name(g, first), _name(g, second)}
    one = _is_constant(g, a, 1.0) or _is_constant(g, b, 1.0)
    if one and "exp" in pair:
        return "use np.expm1(x) for exp(x) - 1"
    if one and "pow" in pair:
        return (
            "use np.expm1(y*np.log(x)) for x**y - 1, with np.log1p where x is 1 plus a small number"
        )
    if one and "cos" in pair:
        return "use 2*np.sin(x/2)**2 for 1 - cos(x)"
    if one and (_is_square(g, a) or _is_square(g, b)):
        return "use (1 - x)*(1 + x) for 1 - x**2"
    if "sqrt" in pair:
        return (
            "multiply by the conjugate: for the roots of a x**2 + b x + c take q = -(b + "
            "np.copysign(np.sqrt(d), b))/2 and the roots q/a and c/q"
        )
    squares = _is_square(g, first), _is_square(g, second)
    if any(squares) and node.op == "sub":
        return (
            "subtract the mean before squaring: np.mean((x - np.mean(x))**2); for two squares, "
            "a**2 - b**2 is (a - b)*(a + b)"
        )
    if one and any(_is_share(g, j) for j in (a, b)):
        return (
            "1 - p/(p + r) is r/(p + r); for a covariance use the Joseph form (I - K H) P "
            "(I - K H)' + K R K'"
        )
    if a in _terms(g, b) or b in _terms(g, a):
        return (
            "a value is reduced by a multiple of itself, as a covariance is by its measurement: "
            "use the Joseph form (I - K H) P (I - K H)' + K R K' or propagate a square root of P, "
            f"{_DOUBLE}"
        )
    leaves = [j for j in (first, second) if g.op[j] == INPUT]
    if arguments and len(leaves) == 2:
        return (
            "the arguments were rounded before they were subtracted: subtract before converting "
            "to the shorter type, and pass the difference"
        )
    return f"take the difference of the large parts analytically, {_DOUBLE}"


def is_accumulator(node: NodeError) -> bool:
    """Return whether an operation is a sum that a loop hands on to its next step."""
    g, i = node.graph, node.node
    while True:
        if node.op not in _SUMS or not node.key:
            return False
        if i in g.outputs:
            return True
        users = [j for j in range(i + 1, len(g.op)) if _name(g, j) in _SUMS and i in g.operands(j)]
        if len(users) != 1:
            return False
        (i,) = users


def advise_absorbed(node: NodeError) -> str:
    """Return what to do about a sum that loses its small addends."""
    operands = node.graph.operands(node.node)
    if node.steady and any(node.graph.op[i] == INPUT for i in operands):
        return (
            "keep the number of steps in an integer and multiply: t = k*dt, or keep this "
            "accumulator in double"
        )
    return "add with compensation (Kahan), or keep this accumulator in double"


def advise_overflow(node: NodeError) -> str:
    """Return what to do about a result beyond the largest number."""
    g, i = node.graph, node.node
    if node.op in ("exp", "exp2", "exp10", "expm1", "sinh", "cosh"):
        return "subtract the largest exponent before np.exp (log-sum-exp)"
    users = [j for j in range(i, len(g.op)) if OPERANDS[g.op[j]] and i in g.operands(j)]
    roots = [j for k in users for j in range(k, len(g.op)) if k in g.operands(j)] + users
    if _is_square(g, i) and any(_name(g, j) == "sqrt" for j in roots):
        return "use np.hypot(x, y) for np.sqrt(x**2 + y**2)"
    return "scale the unit, so that the numbers are near 1, or compute this line in double"
