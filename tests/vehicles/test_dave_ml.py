"""DAVE-ML models: values against formulas and SciPy, in all backends, and their check data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, LinearNDInterpolator, RegularGridInterpolator

import archimedes as arc
from archimedes.environment import Air
from archimedes.vehicles import F16, F16Aerodynamics, FlightState, dave_ml
from archimedes.vehicles.worlds import Surroundings
from tests.environment.backends import check_batched, check_everywhere

from . import dave_ml_files as F

A, B = np.array([-10.0, 0.0, 10.0, 20.0]), np.array([0.0, 0.5, 0.9])
DATA = np.random.default_rng(3).normal(size=(4, 3))
XY = F.variable("x", marks="Input") + F.variable("y", marks="Input")


@pytest.fixture
def model(tmp_path):
    def made(*parts, **how):
        path = tmp_path / "model.dml"
        path.write_text(F.document(*parts, **how), encoding="utf-8")
        return dave_ml.read(path)

    return made


@pytest.fixture
def formula(model):
    """A model of one calculation of x and y, as a function."""

    def made(expression):
        found = model(XY, F.variable("z", expression, "Output"))
        return lambda x, y: found(x=x, y=y)["z"]

    return made


def table(alpha="", mach="", a=A, b=B, data=DATA):
    return (
        F.variable("alpha", marks="Input", name="angleOfAttack", units="deg"),
        F.variable("mach", marks="Input"),
        F.variable("c", marks="Output"),
        F.breakpoints("A", a),
        F.breakpoints("B", b),
        F.function("c", [("alpha", alpha), ("mach", mach)], F.gridded(["A", "B"], data)),
    )


# --- tables -----------------------------------------------------------------------------------


def test_tables_are_scipys_inside(model):
    c = model(*table())
    rng = np.random.default_rng(0)
    alpha, mach = rng.uniform(-10, 20, 500), rng.uniform(0, 0.9, 500)
    expected = RegularGridInterpolator((A, B), DATA)(np.stack([alpha, mach], axis=-1))
    np.testing.assert_allclose(c(alpha=alpha, mach=mach)["c"], expected, rtol=1e-13, atol=1e-14)
    exact = [[c(alpha=a, mach=m)["c"] for m in B] for a in A]
    np.testing.assert_array_equal(exact, DATA)


@pytest.mark.parametrize(
    ("rule", "low", "high"),
    [("", 0, 0), ("neither", 0, 0), ("min", 1, 0), ("max", 0, 1), ("both", 1, 1)],
)
def test_beyond_the_tables(model, rule, low, high):
    c = model(*table(f'extrapolate="{rule}"' if rule else ""))
    line = DATA[:, 1]
    below = line[0] + low * (line[1] - line[0]) / 10.0 * -4.0
    above = line[-1] + high * (line[-1] - line[-2]) / 10.0 * 7.0
    assert c(alpha=-14.0, mach=0.5)["c"] == pytest.approx(below, rel=1e-14)
    assert c(alpha=27.0, mach=0.5)["c"] == pytest.approx(above, rel=1e-14)
    slope = arc.grad(lambda a: c(alpha=a, mach=0.5)["c"])
    assert slope(-14.0) == pytest.approx(low * (line[1] - line[0]) / 10.0, rel=1e-13)
    assert slope(27.0) == pytest.approx(high * (line[-1] - line[-2]) / 10.0, rel=1e-13)


def test_limits_of_an_independent_variable_hold_within_and_beyond_the_table(model):
    c = model(*table('extrapolate="both" min="-5" max="30"'))
    whole = model(*table('extrapolate="both"'))
    for given, used in ((-8.0, -5.0), (25.0, 25.0), (80.0, 30.0)):
        assert c(alpha=given, mach=0.2) == whole(alpha=used, mach=0.2)


@pytest.mark.parametrize(
    ("rule", "at"),
    [
        ("discrete", {-99: 0, -5.01: 0, -5.0: 1, 4.9: 1, 5.0: 2, 15.0: 3, 99: 3}),
        ("floor", {-99: 0, -0.01: 0, 0.0: 1, 9.9: 1, 10.0: 2, 20.0: 3, 99: 3}),
        ("ceiling", {-99: 0, -10.0: 0, -9.9: 1, 0.0: 1, 0.1: 2, 10.1: 3, 99: 3}),
    ],
)
def test_steps(model, rule, at):
    c = model(*table(f'interpolate="{rule}" extrapolate="both"'))
    for alpha, row in at.items():
        assert c(alpha=alpha, mach=0.5)["c"] == DATA[row, 1]
        between = c(alpha=alpha, mach=0.25)["c"]
        assert between == pytest.approx(DATA[row, :2].mean(), rel=1e-14)
    check_everywhere(lambda a: c(alpha=a, mach=0.3), 4.9, rtol=1e-15)
    check_batched(lambda a: c(alpha=a, mach=0.3), np.array([float(a) for a in at]))
    assert arc.grad(lambda a: c(alpha=a, mach=0.3)["c"])(4.9) == 0.0


def test_cubic_splines_are_scipys_and_said_to_be_a_choice(model):
    x, y = np.linspace(0.0, 3.0, 7), np.sin(np.linspace(0.0, 3.0, 7))
    simple = (
        f'<function name="s"><independentVarPts varID="x" interpolate="cubicSpline">{F.listed(x)}'
        f'</independentVarPts><dependentVarPts varID="z">{F.listed(y)}</dependentVarPts></function>'
    )
    s = model(F.variable("x", marks="Input"), F.variable("z"), simple)
    at = np.linspace(0.0, 3.0, 50)
    np.testing.assert_allclose(s(x=at)["z"], CubicSpline(x, y)(at), rtol=1e-12, atol=1e-14)
    assert "not-a-knot" in s.report().approximated[0]


def test_one_breakpoint_is_a_constant(model):
    c = model(*table(b=[0.5], data=DATA[:, 1]))
    assert c(alpha=5.0, mach=0.9)["c"] == pytest.approx(DATA[1:3, 1].mean())
    c = model(*table(a=[1.0], b=[0.5], data=[7.5]))
    assert c(alpha=5.0, mach=0.9) == {"c": 7.5}


def test_a_table_by_reference_serves_two_functions(model):
    parts = [
        XY,
        F.variable("u", marks="Output"),
        F.variable("v", marks="Output"),
        F.breakpoints("A", A),
        F.gridded(["A"], DATA[:, 0], 'gtID="G"'),
        F.gridded(["A"], DATA[:, 1], 'gtID="unused"'),
        F.function("u", [("x", "")], '<griddedTableRef gtID="G"/>'),
        F.function("v", [("y", 'extrapolate="max"')], '<griddedTableRef gtID="G"/>'),
    ]
    got = model(*parts)
    assert got(x=0.0, y=10.0) == {"u": DATA[1, 0], "v": DATA[2, 0]}
    assert "table 'unused': no function refers to it" in got.report().ignored


def test_scattered_points_that_fill_a_grid_are_a_grid(model):
    rng = np.random.default_rng(1)
    rows = [
        f"<dataPoint>{a}, {b}, {DATA[i, j]!r}</dataPoint>".replace("np.float64", "")
        .replace("(", "")
        .replace(")", "")
        for i, a in enumerate(A)
        for j, b in enumerate(B)
    ]
    rng.shuffle(rows)
    scattered = f'<ungriddedTableDef utID="U">{"".join(rows)}</ungriddedTableDef>'
    variables = table()[:3]
    c = model(
        *variables,
        scattered,
        F.function("c", [("alpha", ""), ("mach", "")], '<ungriddedTableRef utID="U"/>'),
    )
    regular = model(*table())
    for alpha, mach in rng.uniform([-15, -0.1], [25, 1.0], (20, 2)):
        assert c(alpha=alpha, mach=mach) == regular(alpha=alpha, mach=mach)


def test_other_scattered_points_are_joined_by_triangles(model):
    """As SciPy joins them, in coordinates scaled to the same size; held beyond the hull."""
    rng = np.random.default_rng(5)
    points = np.vstack([rng.uniform([-10, 0], [20, 0.9], (30, 2)), [[-10, 0], [20, 0.9]]])
    values = np.sin(points[:, 0] / 9.0) + points[:, 1] ** 2
    rows = "".join(f"<dataPoint>{F.listed([*p, v])}</dataPoint>" for p, v in zip(points, values))
    parts = [*table()[:3], f'<ungriddedTableDef utID="U">{rows}</ungriddedTableDef>']

    def made(more):
        inputs = [("alpha", more), ("mach", more)]
        return model(*parts, F.function("c", inputs, '<ungriddedTableRef utID="U"/>'))

    held, on = made(""), made('extrapolate="both"')
    at = rng.uniform([-12, -0.1], [22, 1.0], (300, 2))
    expected = LinearNDInterpolator(points, values, rescale=True)(at)
    inside = np.isfinite(expected)
    assert 100 < inside.sum() < 300
    for c in (held, on):
        got = c(alpha=at[:, 0], mach=at[:, 1])["c"]
        np.testing.assert_allclose(got[inside], expected[inside], rtol=1e-11, atol=1e-13)
    got = held(alpha=at[:, 0], mach=at[:, 1])["c"]
    assert values.min() - 1e-12 <= got.min() and got.max() <= values.max() + 1e-12
    for p, v in zip(points, values):
        assert held(alpha=p[0], mach=p[1])["c"] == pytest.approx(v, rel=1e-12, abs=1e-13)
    check_everywhere(lambda a, m: held(alpha=a, mach=m), *at[0], rtol=1e-13)
    slope = arc.grad(lambda a: held(alpha=a, mach=0.5)["c"])(3.0)
    step = [float(held(alpha=3.0 + h, mach=0.5)["c"]) for h in (-1e-4, 1e-4)]
    assert slope == pytest.approx((step[1] - step[0]) / 2e-4, rel=1e-8)
    check_batched(lambda a, m: held(alpha=a, mach=m), *at[:8].T)
    assert "Delaunay" in held.report().approximated[0]


# --- calculations -----------------------------------------------------------------------------

ATAN2 = '<csymbol definitionURL="http://daveml.org/function_spaces.html#atan2">atan2</csymbol>'
FORMULAS = [
    (("plus", "x", "y", 2.0), lambda x, y: x + y + 2.0),
    (("minus", "x", "y"), lambda x, y: x - y),
    (("minus", "x"), lambda x, y: -x),
    (("times", "x", "y", 3.0), lambda x, y: x * y * 3.0),
    (("divide", "x", "y"), lambda x, y: x / y),
    (("power", "x", 2.0), lambda x, y: x * x),
    (("power", "x", "y"), lambda x, y: x**y),
    (("power", "x", 0.5), lambda x, y: np.sqrt(x)),
    (("root", "x"), lambda x, y: np.sqrt(x)),
    (("root", "<degree><cn>3</cn></degree>", "x"), lambda x, y: np.cbrt(x)),
    (("root", "<degree><cn>4</cn></degree>", "x"), lambda x, y: x**0.25),
    (("log", "x"), lambda x, y: np.log10(x)),
    (("log", "<logbase><cn>2</cn></logbase>", "x"), lambda x, y: np.log2(x)),
    (("rem", "x", "y"), lambda x, y: np.fmod(x, y)),
    (("quotient", ("times", 10.0, "x"), "y"), lambda x, y: np.trunc(10.0 * x / y)),
    (("quotient", ("times", -10.0, "x"), "y"), lambda x, y: -np.trunc(10.0 * x / y)),
    (("abs", ("minus", "x")), lambda x, y: x),
    *(((f, "x"), lambda x, y, g=g: g(x)) for f, g in [("exp", np.exp), ("ln", np.log)]),
    *(
        ((f, "x"), lambda x, y, f=f: getattr(np, f)(x))
        for f in ["sqrt", "sin", "cos", "tan", "floor"]
    ),
    *(((f, "x"), lambda x, y, f=f: getattr(np, f)(x)) for f in ["sinh", "cosh", "tanh", "arctan"]),
    *(((f, "x"), lambda x, y, f=f: getattr(np, f)(x)) for f in ["arcsin", "arccos", "arctanh"]),
    (("arccosh", ("plus", "x", 1.0)), lambda x, y: np.arccosh(x + 1.0)),
    (("arcsinh", "x"), lambda x, y: np.arcsinh(x)),
    (("ceiling", "x"), lambda x, y: np.ceil(x)),
    (("sec", "x"), lambda x, y: 1 / np.cos(x)),
    (("csc", "x"), lambda x, y: 1 / np.sin(x)),
    (("cot", "x"), lambda x, y: 1 / np.tan(x)),
    (("sech", "x"), lambda x, y: 1 / np.cosh(x)),
    (("csch", "x"), lambda x, y: 1 / np.sinh(x)),
    (("coth", "x"), lambda x, y: 1 / np.tanh(x)),
    (("arcsec", ("plus", "x", 1.0)), lambda x, y: np.arccos(1 / (x + 1.0))),
    (("arccsc", ("plus", "x", 1.0)), lambda x, y: np.arcsin(1 / (x + 1.0))),
    (("arccot", ("minus", "x")), lambda x, y: np.arctan(-1 / x)),
    (("arcsech", "x"), lambda x, y: np.arccosh(1 / x)),
    (("arccsch", "x"), lambda x, y: np.arcsinh(1 / x)),
    (("arccoth", ("plus", "x", 1.0)), lambda x, y: np.arctanh(1 / (x + 1.0))),
    ((ATAN2, "x", "y"), np.arctan2),
    (("<csymbol>atan2</csymbol>", "y", "x"), lambda x, y: np.arctan2(y, x)),
    (("min", "x", "y", 0.5), lambda x, y: min(x, y, 0.5)),
    (("max", "x", "y", 0.5), lambda x, y: max(x, y, 0.5)),
    (("times", "<pi/>", "<exponentiale/>"), lambda x, y: np.pi * np.e),
    ('<cn type="e-notation">1.5<sep/>-3</cn>', lambda x, y: 1.5e-3),
    ('<cn type="rational">1<sep/>3</cn>', lambda x, y: 1.0 / 3.0),
    ('<cn type="integer"> 7 </cn>', lambda x, y: 7.0),
    ("<semantics><ci>x</ci><annotation>text</annotation></semantics>", lambda x, y: x),
    (("<apply>", "x"), lambda x, y: x),
    (("<apply>", ("<apply>", ("minus", "x", "y"))), lambda x, y: x - y),
    ("<reln><lt/><ci>x</ci><ci>y</ci></reln>", lambda x, y: float(x < y)),
    (("lt", "x", "<infinity/>"), lambda x, y: 1.0),
    (("times", "x", "<eulergamma/>"), lambda x, y: x * 0.5772156649015329),
    (("implies", ("lt", "x", "y"), "<false/>"), lambda x, y: float(not x < y)),
    (("lt", "x", "y"), lambda x, y: float(x < y)),
    (("lt", 0.0, "x", "y"), lambda x, y: float(0.0 < x < y)),
    (("gt", "x", "y"), lambda x, y: float(x > y)),
    (("leq", "x", "x"), lambda x, y: 1.0),
    (("geq", "x", "y"), lambda x, y: float(x >= y)),
    (("eq", "x", "x"), lambda x, y: 1.0),
    (("neq", "x", "y"), lambda x, y: float(x != y)),
    (("not", ("and", ("lt", "x", "y"), "<true/>")), lambda x, y: float(not x < y)),
    (("or", ("lt", "x", "y"), "<false/>"), lambda x, y: float(x < y)),
    (("xor", ("lt", "x", "y"), "<true/>"), lambda x, y: float(not x < y)),
]


@pytest.mark.parametrize(("expression", "meaning"), FORMULAS, ids=map(str, range(len(FORMULAS))))
def test_operations(formula, expression, meaning):
    z = formula(expression)
    for x, y in ((0.3, 0.8), (0.9, 0.4)):
        assert z(x, y) == pytest.approx(meaning(x, y), rel=4e-16)
    check_everywhere(z, 0.3, 0.8, rtol=1e-15)


def test_pieces(formula):
    steps = [
        (("minus", "x"), ("lt", "x", 0.0)),
        ("y", ("and", ("geq", "x", 1.0), ("lt", "x", 2.0))),
    ]
    z = formula({"if": steps, "else": {"if": [(7.0, ("gt", "y", 3.0))], "else": 8.0}})
    for x, y in ((-2.0, 5.0), (1.5, 5.0), (3.0, 5.0), (3.0, 1.0), (0.5, 1.0)):
        expected = -x if x < 0 else y if 1 <= x < 2 else 7.0 if y > 3 else 8.0
        assert z(x, y) == expected
        assert arc.compile(z, backend="llvm")(x, y) == expected
    open_ended = formula({"if": [("y", ("lt", "x", 0.0))]})
    assert np.isnan(open_ended(1.0, 2.0)) and open_ended(-1.0, 2.0) == 2.0


def test_pieces_may_stand_in_an_apply_of_their_own(formula):
    """As in NASA's F-16 and two-stage files; MathML's own place is without it."""
    pieces = {"if": [(("minus", "x"), ("lt", "x", 0.0)), ("y", ("lt", "x", 1.0))], "else": 7.0}
    z = formula(("plus", ("<apply>", pieces), 0.0))
    assert [float(z(x, 5.0)) for x in (-2.0, 0.5, 3.0)] == [2.0, 5.0, 7.0]


def test_the_report_says_what_a_quotient_is(model):
    """NASA's own example expects 6 / 5 = 1.2 of it, MathML says 1."""
    got = model(XY, F.variable("z", ("quotient", "x", "y"), "Output"))
    assert got(x=6.0, y=5.0) == {"z": 1.0} and got(x=-6.0, y=5.0) == {"z": -1.0}
    assert "<quotient> is a whole number" in got.report().approximated[0]


def test_many_pieces(formula):
    steps = [(float(k), ("lt", "x", float(k))) for k in range(2000)]
    assert formula({"if": steps, "else": -1.0})(1234.5, 0.0) == 1235.0
    steps = [(("divide", float(k), "y"), ("lt", "x", float(k))) for k in range(200)]
    assert formula({"if": steps, "else": -1.0})(123.5, 2.0) == 62.0


def test_nan_goes_through(model):
    for rule in ("linear", "floor", "ceiling", "discrete"):
        c = model(*table(f'interpolate="{rule}"'))
        assert np.isnan(c(alpha=np.nan, mach=0.5)["c"])
        assert np.isnan(arc.compile(lambda a, c=c: c(alpha=a, mach=0.5)["c"])(np.nan))


def test_a_piece_that_is_not_taken_does_no_harm(formula):
    """1/sqrt(1 - x^2) beyond 1: no nan in the value or its derivative, alone and in batches."""
    below = ("divide", 1.0, ("root", ("minus", 1.0, ("power", "x", 2.0))))
    z = formula({"if": [(below, ("lt", "x", 1.0))], "else": ("times", 5.0, "x")})
    x = np.array([0.6, 1.0, 2.0])
    slopes = [0.6 * 0.64**-1.5, 5.0, 5.0]
    np.testing.assert_allclose([arc.grad(z)(v, 0.0) for v in x], slopes, rtol=1e-14)
    np.testing.assert_allclose(arc.vmap(arc.grad(z))(x, x), slopes, rtol=1e-14)
    np.testing.assert_allclose(z(x, 0.0), [1.25, 5.0, 10.0], rtol=1e-15)  # and no warning
    check_everywhere(z, 1.0, 0.0)


def test_a_model_is_recorded_once_and_may_be_part_of_a_struct(formula, model):
    @arc.struct
    class Part:
        gain: float
        model: object = arc.field(static=True)

        def value(self, x):
            return self.gain * self.model(x=x, y=1.0)["z"]

    z = {"if": [(("divide", "x", "y"), ("lt", "x", 1.0))], "else": 5.0}
    own = model(XY, F.variable("z", z, "Output"))
    copy = pickle.loads(pickle.dumps(own))
    assert copy(x=0.5, y=2.0) == own(x=0.5, y=2.0) == {"z": 0.25}
    f = arc.compile(lambda part, x: part.value(x))
    assert [float(f(Part(2.0, own), 0.5)) for _ in range(3)] == [1.0] * 3
    assert len(f.explain().splitlines()) == 1, f.explain()


def test_an_operation_may_be_the_name_of_a_variable(model):
    got = model(
        F.variable("power", marks="Input"),
        F.variable("plus", ("times", "power", 2.0)),
        F.variable("z", ("plus", "plus", "power"), "Output"),
    )
    assert got(power=3.0) == {"z": 9.0}


def test_variables_are_limited(model):
    got = model(
        F.variable("x", marks="Input", minValue="0.1", maxValue="5"),
        F.variable("z", ("times", "x", 10.0), "Output", maxValue="20"),
    )
    assert [float(got(x=x)["z"]) for x in (-3.0, 1.0, 9.0)] == [1.0, 10.0, 20.0]
    check_everywhere(lambda x: got(x=x), 9.0, rtol=0.0)


def test_order_of_definition_does_not_matter_and_chains_may_be_long(model):
    chain = [F.variable(f"v{k}", ("plus", f"v{k - 1}", 1.0)) for k in range(1, 2000)]
    got = model(*reversed(chain), F.variable("v0", marks="Input"))
    assert got(v0=0.5) == {"v1999": 1999.5}


# --- inputs and outputs -----------------------------------------------------------------------


def test_inputs_by_id_and_by_name_and_constants_replaced(model):
    got = model(
        F.variable("alpha", name="angle of attack", units="deg", marks="Input"),
        F.variable("S", name="area", units="m2", initialValue="20"),
        F.variable("el", initialValue="1.5", marks="Control"),
        F.variable("L", ("times", "S", ("plus", "alpha", "el")), "Output", units="N"),
        F.variable("area_out", ("times", 1.0, "S"), "Output"),
    )
    assert (got.inputs, got.constants, got.outputs) == (("alpha", "el"), ("S",), ("L", "area_out"))
    assert got(alpha=2.0) == got({"angle of attack": 2}) == {"L": 70.0, "area_out": 20.0}
    assert got({"alpha": 2.0}, S=10.0, el=0.0) == {"L": 20.0, "area_out": 10.0}
    assert got.variables["L"].units == "N" and got.variables["alpha"].name == "angle of attack"
    assert got.signals(alpha=2.0)["el"] == 1.5
    assert list(arc.compile(got)(alpha=2.0)) == ["L", "area_out"]


def test_states_are_inputs_and_their_rates_outputs(model):
    got = model(
        F.variable("v", marks="State", initialValue="3"),
        F.variable("vdot", ("times", -2.0, "v"), "StateDeriv"),
    )
    assert got.inputs == ("v",) and got() == {"vdot": -6.0}


def test_without_marks_results_are_what_nothing_uses(model):
    got = model(F.variable("x"), F.variable("u", ("plus", "x", 1.0)), F.variable("w", ("abs", "u")))
    assert got.inputs == ("x",) and got(x=-3.0) == {"w": 2.0}
    assert got.report().approximated == (
        "taken as inputs, not marked as such: x",
        "no output is marked: all that is computed and not used further is one",
    )


def test_no_namespace_no_doctype(model):
    z = F.variable("z", ("plus", "x", "y")).replace(f' xmlns="{F.MATHML}"', "")
    assert model(XY, z, namespace=False, doctype="")(x=1, y=2) == {"z": 3.0}
    prefixed = z.replace("<math>", f'<m:math xmlns:m="{F.MATHML}">').replace("</math>", "</m:math>")
    for tag in ("apply", "ci", "plus"):
        prefixed = prefixed.replace(f"<{tag}", f"<m:{tag}").replace(f"</{tag}", f"</m:{tag}")
    assert model(XY, prefixed)(x=1, y=2) == {"z": 3.0}


def test_other_encodings(tmp_path):
    text = F.document(F.variable("x", marks="Input", name="Größe"), F.variable("z", ("abs", "x")))
    path = tmp_path / "model.dml"
    for encoding in ("utf-16", "iso-8859-1"):
        path.write_bytes(text.replace("UTF-8", encoding).encode(encoding))
        assert dave_ml.read(path)({"Größe": -2.0}) == {"z": 2.0}


# --- derivatives, batches, C ------------------------------------------------------------------


def test_recorded_batched_and_differentiated(model):
    c = model(*table('extrapolate="both"'))

    def f(alpha, mach):
        return c(alpha=alpha, mach=mach)

    rng = np.random.default_rng(2)
    points = rng.uniform([-15.0, -0.1], [25.0, 1.0], (40, 2))
    for alpha, mach in points[:3]:
        check_everywhere(f, alpha, mach, rtol=1e-15)
    check_batched(f, *points.T)
    slope = arc.grad(lambda a, m: f(a, m)["c"])(3.0, 0.25)
    assert slope == pytest.approx((DATA[2, :2] - DATA[1, :2]).mean() / 10.0, rel=1e-13)


def test_as_c(model, tmp_path):
    z = {"if": [(("divide", "c", "alpha"), ("gt", "alpha", 0.0))], "else": ("sin", "mach")}
    got = model(*table(mach='interpolate="floor"'), F.variable("z", z, "Output"))
    arc.codegen(
        lambda alpha, mach: got(alpha=alpha, mach=mach),
        (3.0, 0.25),
        name="aero",
        output_dir=tmp_path / "c",
        verify=True,
    )


# --- check data -------------------------------------------------------------------------------


def checked(model, expected=4.0, tol="1e-9", units="nd", output="result"):
    return model(
        XY,
        F.variable("w", ("times", "x", "y")),
        F.variable("z", ("minus", "w", 2.0), "Output", name="result"),
        "<checkData>",
        F.shot(
            "nominal",
            [F.signal("x", 2.0, units="nd"), F.signal("y", 3.0)],
            [F.signal(output, expected, tol, units)],
            [F.signal("w", 6.0, kind="varID"), F.signal("x", 2.0, kind="signalID")],
        ),
        "</checkData>",
    )


def test_check_data_that_pass(model):
    report = checked(model).check()
    assert report.ok and report.failures == () and report.shots == 1
    assert [row.signal for row in report.rows] == ["z", "w", "x"]
    assert str(report) == "1 shots: 3 of 3 values agree"
    assert checked(model, 4.1, "0.11").check().ok
    assert checked(model, 4.0, "0").check().ok


def test_check_data_that_fail(model):
    report = checked(model, 4.1, "0.05").check()
    (row,) = report.failures
    assert not report.ok
    assert (row.shot, row.signal, row.expected, row.got) == ("nominal", "z", 4.1, 4.0)
    assert "nominal: z: expected 4.1, got 4.0, tolerance 0.05: FAILED" in str(report)


def test_check_data_of_another_model(model):
    report = checked(model, units="lbf").check()
    assert report.ok and "units are 'lbf' in the check data, 'nd' in the model" in report.report()
    report = checked(model, output="lift").check()
    assert not report.ok and "no variable 'lift'" in str(report)


def test_values_in_between_are_compared_but_do_not_decide(model):
    got = model(
        F.variable("x", marks="Input"),
        F.variable("z", ("abs", "x"), "Output"),
        "<checkData>",
        F.shot("s", [F.signal("x", 2.0)], [F.signal("z", 2.0, 1e-9)], [F.signal("x", 2.1)]),
        "</checkData>",
    )
    report = got.check()
    assert report.ok and [row.signal for row in report.failures] == ["x"]
    assert got.check(internal_rtol=0.1).failures == ()


def test_names_in_check_data_are_those_seen_from_outside(model):
    """A name may be the varID of another variable, or belong to one inside as well."""
    got = model(
        F.variable("a", name="b", marks="Input"),
        F.variable("b", ("times", 2.0, "a"), name="c"),
        F.variable("c", ("plus", "b", 1.0), "Output", name="c"),
        "<checkData>",
        F.shot(
            "s",
            [F.signal("b", 3.0)],
            [F.signal("c", 7.0, 0)],
            [F.signal("b", 6.0, kind="varID"), F.signal("b", 3.0)],
        ),
        "</checkData>",
    )
    assert got.check().ok and got.check().failures == ()


def test_a_check_case_may_leave_out_its_inputs(model):
    """`checkInputs` is optional in the DTD: the initial values are checked then."""
    outputs = f"<checkOutputs>{F.signal('z', 6.0, 1e-9)}</checkOutputs>"
    got = model(
        F.variable("x", initialValue=3.0),
        F.variable("z", ("times", 2.0, "x"), "Output"),
        f'<checkData><staticShot name="as it is">{outputs}</staticShot></checkData>',
    )
    assert got.check().ok and len(got.check().rows) == 1


def test_no_check_data_is_no_pass(model):
    assert not model(*table()).check().ok


def test_report_says_what_was_used_and_ignored(model):
    header = (
        '<fileHeader name="h"><author name="n" org="o"/><description>d</description></fileHeader>'
    )
    noise = "<uncertainty effect='additive'><normalPDF numSigmas='3'/></uncertainty>"
    parts = list(table())
    parts[0] = F.variable("alpha", marks="Input", inside=noise, units="deg")
    extra = F.variable("k", ("abs", "mach"), initialValue="3") + '<x:note xmlns:x="urn:x"/>'
    report = model(*parts, extra, header=header).report()
    assert "inputs: alpha (deg), mach (nd)" in report.used
    table_line = (
        "table: c = c table(alpha (4 points, linear, extrapolate neither), "
        "mach (3 points, linear, extrapolate neither))"
    )
    assert table_line in report.used
    assert set(report.ignored) == {
        "<author>: 1",
        "<description>: 1",
        "<uncertainty>: 1",
        "<{urn:x}note>: 1",
        "initialValue of k: it is computed",
    }
    assert str(report).startswith("used:\n  inputs: alpha (deg)")


# --- the F-16 ---------------------------------------------------------------------------------


def test_the_f16_as_a_file_is_the_f16(tmp_path):
    path = tmp_path / "f16.dml"
    path.write_text(F.f16_file())
    got = dave_ml.read(path)
    assert got.check().rows == () and len(got.inputs) == 9
    aero = F16Aerodynamics()
    air = Air(288.15, 101325.0, 1.225, 340.3, 1.8e-5)

    def coefficients(v_B, w_B, el, ail, rdr):
        around = Surroundings(air, 0.0, v_B, w_B, np.zeros(3))
        alpha, beta = (np.rad2deg(angle) for angle in around.angles)
        values = got(
            V=around.airspeed,
            alpha=alpha,
            beta=beta,
            **dict(zip("pqr", w_B)),
            **{k: np.rad2deg(v) for k, v in (("el", el), ("ail", ail), ("rdr", rdr))},
        )
        own = aero.coefficients(around, el, ail, rdr, 0.3)
        return np.stack(list(values.values())), np.concatenate(own)

    rng = np.random.default_rng(4)
    both = arc.vmap(coefficients)
    n = 300
    v_B = rng.uniform([50, -40, -30], [200, 40, 120], (n, 3))
    surfaces = rng.uniform(-0.5, 0.5, (3, n))
    imported, own = both(v_B, rng.uniform(-2, 2, (n, 3)), *surfaces)
    np.testing.assert_allclose(imported, own, rtol=1e-13, atol=2e-15)
    check_everywhere(coefficients, v_B[0], np.array([0.1, -0.2, 0.3]), 0.1, -0.2, 0.3)


def test_the_f16s_engine_as_nasa_writes_it_passes_its_check_cases(tmp_path):
    path = tmp_path / "engine.dml"
    path.write_text(F.engine_file())
    got = dave_ml.read(path)
    report = got.check()
    assert report.ok and len(report.rows) == 6, str(report)
    for power, slope in ((10.0, (12680.0 - 1060.0) / 50.0), (80.0, (20000.0 - 12680.0) / 50.0)):
        thrust = arc.grad(lambda pwr: got(PWR=pwr, ALT=0.0, RMACH=0.0)["FEX"])
        assert thrust(power) == pytest.approx(slope, rel=1e-13)
    check_everywhere(lambda p, h, m: got(PWR=p, ALT=h, RMACH=m), 70.0, 12000.0, 0.5)


def test_a_two_stage_rocket_as_nasa_writes_it(tmp_path):
    path = tmp_path / "two_stages.dml"
    path.write_text(F.two_stage_file())
    got = dave_ml.read(path)
    expected = {
        (1.0, 0.0): (360.0, 17e6, 17e6 / (360.0 * 9.8066)),
        (0.0, 1.0): (390.0, 5e6, 5e6 / (390.0 * 9.8066)),
        (1.0, 1.0): (360.0, 17e6, 17e6 / (360.0 * 9.8066)),
        (0.0, 0.0): (0.001, 0.0, 0.0),
    }
    for flags, values in expected.items():
        assert tuple(got(stg1firing=flags[0], stg2firing=flags[1]).values()) == values
    check_everywhere(lambda a, b: got(stg1firing=a, stg2firing=b), 0.0, 1.0)


@arc.struct
class ImportedAerodynamics(F16Aerodynamics):
    """The F-16's own aerodynamics, with coefficients from a file."""

    model: object = arc.field(static=True)

    def coefficients(self, around, elevator, aileron, rudder, xcg):
        angles = (*around.angles, elevator, aileron, rudder)
        given = {k: np.rad2deg(v) for k, v in zip(("alpha", "beta", "el", "ail", "rdr"), angles)}
        rates = dict(zip("pqr", around.w_air_B))
        c = self.model(given, V=around.airspeed, xcg=xcg, **rates)
        return np.stack([c[k] for k in ("cx", "cy", "cz")]), np.stack(
            [c[k] for k in ("cl", "cm", "cn")]
        )


def test_the_file_takes_the_place_of_the_f16s_tables(tmp_path):
    path = tmp_path / "f16.dml"
    path.write_text(F.f16_file())
    own = F16()
    other = arc.tree.replace(own, aero=ImportedAerodynamics(model=dave_ml.read(path)))
    flight = FlightState(
        0.1, 0.2, 3000.0, np.array([150.0, 5.0, 2.0]), np.array([0.1, 0.05, 0.0]), np.full(3, 0.02)
    )
    x = F16.State(own.world.state(flight), np.array(30.0))
    u = F16.Input(0.3, -0.05, 0.02, -0.01)
    expected, got = (arc.tree.ravel(p.dynamics(0.0, x, u))[0] for p in (own, other))
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    check_everywhere(lambda x, u: other.dynamics(0.0, x, u), x, u)
