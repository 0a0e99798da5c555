"""``f.bounds(ranges)``: ranges in and out, findings with their lines, regions and float32."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.analysis import Bounds, Interval
from archimedes.analysis.ranges.subdivision import bound_graph
from archimedes.errors import ShapeDtypeError, StructError
from tests.analysis.bounds_models import MODELS
from tests.analysis.bounds_table import examine
from tests.analysis.sampling import outside, points_in, results_at


def ratio(x, y):
    return x / y


# ---- what goes in -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ranges",
    [
        {"x": (1.0, 2.0), "y": (4.0, 8.0)},
        {"x": (1, 2), "y": (4, 8)},
        {"y": Interval(4.0, 8.0), "x": Interval(1.0, 2.0)},
        ((1.0, 2.0), (4.0, 8.0)),
        [(1.0, 2.0), Interval(4.0, 8.0)],
    ],
)
def test_ranges_are_given_by_name_or_in_order(ranges):
    bounds = arc.compile(ratio).bounds(ranges)
    assert (float(bounds.lower), float(bounds.upper)) == (0.125, 0.5)
    assert bounds.ok and all(bounds.proofs.values())


def test_one_argument_needs_no_name():
    f = arc.compile(lambda x: 2.0 * x)
    for ranges in ((1.0, 3.0), {"x": (1.0, 3.0)}, Interval(1.0, 3.0), ((1.0, 3.0),)):
        assert float(f.bounds(ranges).upper) == 6.0
    two = f.bounds(([0.0, 1.0], [1.0, 3.0]))
    assert two.lower.tolist() == [0.0, 2.0] and two.upper.tolist() == [2.0, 6.0]


@arc.struct
class State:
    pos: np.ndarray
    speed: float


def test_structs_hold_ranges_or_are_their_ends():
    f = arc.compile(lambda x, m: State(pos=2.0 * x.pos, speed=x.speed * m))
    low, high = State(np.array([0.0, 1.0]), -1.0), State(np.array([2.0, 3.0]), 1.0)
    inside = State(pos=([0.0, 1.0], [2.0, 3.0]), speed=(-1.0, 1.0))
    for x in (Interval(low, high), (low, high), inside):
        bounds = f.bounds({"x": x, "m": 3.0})
        assert isinstance(bounds.lower, State)
        assert bounds.lower.pos.tolist() == [0.0, 2.0] and bounds.upper.pos.tolist() == [4.0, 6.0]
        assert (float(bounds.lower.speed), float(bounds.upper.speed)) == (-3.0, 3.0)
        assert bounds.names == ("result.pos[0]", "result.pos[1]", "result.speed")


def test_parts_of_arguments_vary_around_their_values():
    f = arc.compile(lambda x, u: x.pos * u["gain"] + x.speed)
    x, u = State(np.array([1.0, 2.0]), 5.0), {"gain": 2.0}
    bounds = f.bounds({"x.pos[1]": (1.0, 3.0), "u['gain']": (1.0, 2.0)}, x, u)
    assert bounds.lower.tolist() == [6.0, 6.0] and bounds.upper.tolist() == [7.0, 11.0]
    assert f.bounds({}, x, u).upper.tolist() == [7.0, 9.0]
    assert f.bounds({"x": (0.0, 1.0)}, x, u).upper.tolist() == [3.0, 3.0]


class Plant:
    def __init__(self):
        self.gain = 3.0

    @arc.compile
    def rate(self, x):
        return self.gain * x


def test_methods_and_plain_functions():
    assert float(Plant().rate.bounds({"x": (0.0, 2.0)}).upper) == 6.0
    assert float(arc.bounds(ratio, {"x": (1.0, 2.0), "y": 4.0}).upper) == 0.5


@pytest.mark.parametrize(
    ("ranges", "args", "error", "text"),
    [
        ({"z": (0.0, 1.0)}, (), TypeError, "there is no argument z; for parts of arguments"),
        ({"x": (0.0, 1.0)}, (), TypeError, "no range for y; write a pair such as"),
        ((0.0, 1.0, 2.0), (), TypeError, "ranges must name a range for each argument"),
        ({"x": (2.0, 1.0), "y": 1.0}, (), ValueError, "x: lower limit above upper limit"),
        ({"x": (np.nan, 1.0), "y": 1.0}, (), ValueError, "the range of x is nan; use inf"),
        ({"x": ([0, 0], [1, 1, 1]), "y": 1.0}, (), ShapeDtypeError, "lower end of x has shape"),
        ({"x": Interval([1.0], {"a": 1.0}), "y": 1.0}, (), StructError, "ends of x have different"),
        ({"x[7]": (0.0, 1.0)}, (np.ones(2), 1.0), ShapeDtypeError, "does not fit x[7]"),
        ({"q": (0.0, 1.0)}, (1.0, 1.0), ValueError, "no number of the arguments is called 'q'"),
        ((0.0, 1.0), (1.0, 1.0), TypeError, "must be a dict from paths"),
    ],
)
def test_ranges_that_do_not_fit_are_named(ranges, args, error, text):
    with pytest.raises(error) as caught:
        arc.compile(ratio).bounds(ranges, *args)
    assert text in str(caught.value)


def test_the_number_of_boxes_is_checked():
    with pytest.raises(ValueError, match="bounds: boxes must be a whole number of at least 1"):
        arc.compile(ratio).bounds({"x": 1.0, "y": 2.0}, boxes=0)


# ---- what comes out -----------------------------------------------------------------------------


def test_findings_name_the_line():
    def risky(x, y):
        a = np.sqrt(x)
        return a / y

    bounds = arc.compile(risky).bounds({"x": (-1.0, 4.0), "y": (-1.0, 1.0)})
    line = risky.__code__.co_firstlineno
    assert [(f.kind, f.line - line) for f in bounds.findings] == [
        ("domain", 1),
        ("division by zero", 2),
        ("overflow", 2),
    ]
    assert bounds.findings[0].file == __file__
    assert bounds.findings[0].expression == "a = np.sqrt(x)"
    assert "it lies between -1 and" in bounds.findings[0].message
    assert not bounds.ok and bool(bounds.nan)
    proofs = bounds.proofs
    assert not proofs["no division by zero"] and proofs["no table end is met"]
    text = str(bounds)
    assert "not proven:" in text and "result  -inf to inf or nan" in text


def test_the_side_that_is_not_taken_does_not_matter():
    safe = arc.compile(lambda x: np.where(x > 0.0, np.log(x), 0.0) + np.where(x == 0.0, 0.0, x))
    bounds = safe.bounds({"x": (-1.0, 4.0)})
    assert not {"domain", "division by zero"} & {f.kind for f in bounds.findings}
    assert not bounds.nan


def test_ends_of_tables_are_found():
    table = arc.interpolant([[0.0, 1.0, 3.0, 4.0]], [0.0, 2.0, 3.0, 1.0])
    f = arc.compile(lambda x: table(x))
    inside = f.bounds({"x": (0.5, 3.5)})
    assert inside.ok
    assert inside.lower <= 1.0 and inside.lower > 0.99
    assert 3.0 <= inside.upper < 3.01
    (finding,) = f.bounds({"x": (0.5, 4.5)}).findings
    assert finding.kind == "table end"
    assert finding.message.startswith("a table from 0 to 4 may be left: it is read from")


def test_ends_of_short_tables_and_of_interp_are_found():
    short = arc.interpolant([[0.0, 1.0, 2.0]], [0.0, 1.0, 4.0])
    for f in (lambda x: short(x), lambda x: np.interp(x, [0.0, 1.0, 2.0], [0.0, 1.0, 4.0])):
        compiled = arc.compile(f)
        assert compiled.bounds({"x": (0.5, 2.0)}).ok
        for beyond in ((0.5, 3.0), (-1.0, 1.0)):
            assert "table end" in {g.kind for g in compiled.bounds({"x": beyond}).findings}


def test_a_clock_in_a_loop_is_known_exactly():
    def run(x):
        def step(c):
            return c[0] + 0.1, 0.9 * c[1]

        return arc.while_loop(lambda c: c[0] < 0.95, step, (0.0, x))

    bounds = arc.compile(run).bounds({"x": (1.0, 2.0)}, boxes=4)
    assert bounds.lower[0] == bounds.upper[0] == arc.compile(run)(1.0)[0]
    assert bounds.upper[1] < 0.71


def test_a_fixed_step_solver_is_followed():
    def run(x0):
        return arc.odeint(lambda t, x: -x, (0.0, 1.0), x0, method="rk4", dt=0.1)

    bounds = arc.compile(run).bounds({"x0": ([1.0], [2.0])}, boxes=1)
    assert bounds.ok
    assert bounds.lower[0] == pytest.approx(np.exp(-1.0), rel=1e-5)
    assert bounds.upper[0] == pytest.approx(2.0 * np.exp(-1.0), rel=1e-5)


def test_lists_hold_ranges_and_text_is_no_range():
    product = arc.compile(lambda x: x[0] * x[1])
    assert float(product.bounds({"x": [(0.0, 1.0), (2.0, 3.0)]}).upper) == 3.0
    with pytest.raises(TypeError, match="no number in ranges='abc'"):
        arc.compile(lambda x: x).bounds("abc")


def test_rows_and_contains():
    f = arc.compile(lambda x: (x + 1.0, {"y": np.stack([x, -x])}), return_names=("a", "b"))
    bounds = f.bounds({"x": (0.0, 2.0)})
    assert isinstance(bounds, Bounds)
    assert bounds.rows() == [
        ("a", 1.0, 3.0, False),
        ("b['y'][0]", 0.0, 2.0, False),
        ("b['y'][1]", -2.0, 0.0, False),
    ]
    assert bounds.contains(f(1.0)) and not bounds.contains(f(2.1))
    assert bounds.contains(arc.vmap(f)(np.linspace(0.0, 2.0, 9)))


def test_integers_and_bools_keep_their_types():
    def mixed(n, flag, x):
        return n * n - 3, np.logical_and(flag, x > 0.5), np.floor(x)

    n = Interval(np.int64(-2), np.int64(3))
    bounds = arc.compile(mixed).bounds(
        {"n": n, "flag": Interval(np.bool_(0), np.bool_(1)), "x": (0, 2)}
    )
    assert bounds.lower[0] == -3 and bounds.upper[0] == 6
    assert bounds.lower[0].dtype == np.int64 and bounds.lower[1].dtype == np.bool_
    assert (bool(bounds.lower[1]), bool(bounds.upper[1])) == (False, True)
    assert (float(bounds.lower[2]), float(bounds.upper[2])) == (0.0, 2.0)


def test_float32_functions_have_float32_bounds():
    f = arc.compile(lambda x: x * np.float32(0.1) + np.float32(1e38))
    bounds = f.bounds({"x": Interval(np.float32(0.0), np.float32(3.0))})
    assert bounds.lower.dtype == np.float32
    for x in np.linspace(0.0, 3.0, 301, dtype=np.float32):
        assert bounds.contains(f(x))


def test_fast_numerics_are_contained():
    def f(x, y):
        return x / y + x * y, y / 3.0, x / y

    fast = arc.compile(f, numerics="fast")
    bounds = fast.bounds({"x": (0.1, 0.7), "y": (0.3, 0.9)}, boxes=1)
    rng = np.random.default_rng(0)
    many = arc.vmap(fast)(rng.uniform(0.1, 0.7, 20_000), rng.uniform(0.3, 0.9, 20_000))
    assert bounds.contains(many)


# ---- regions ------------------------------------------------------------------------------------


def test_a_stable_loop_stays_bounded():
    def settle(x):
        return arc.scan(lambda c, _: (0.9 * c + 0.01 * np.sin(c), None), x, length=200)[0]

    bounds = arc.compile(settle).bounds({"x": (-1.0, 1.0)}, boxes=8)
    assert bounds.ok and -0.01 < bounds.lower <= bounds.upper < 0.01


def test_a_loop_with_a_condition_is_followed_to_its_end():
    def halve(x):
        return arc.while_loop(
            lambda c: c[0] > 1.0, lambda c: (0.5 * c[0], c[1] + 1), (x, np.int64(0))
        )

    bounds = arc.compile(halve).bounds({"x": (3.0, 9.0)})
    assert bounds.lower[0] + 1e-9 >= 0.5 and bounds.upper[0] <= 1.0 + 1e-9
    assert (int(bounds.lower[1]), int(bounds.upper[1])) == (2, 4)


def test_a_loop_without_an_end_is_summarized():
    def forever(x):
        return arc.while_loop(lambda c: c > -1.0, lambda c: np.cos(c), x)

    graph = arc.compile(forever).graph(1.0)
    ranges = bound_graph(graph, np.array([[0.0], [1.0]]), boxes=2, unroll=100)
    assert {p.kind for p in ranges.problems} == {"unknown"}
    assert ranges.ends[0, 0] >= -1.0 and ranges.ends[1, 0] <= 1.0


def test_long_loops_are_summarized_by_what_they_do_not_leave():
    def run(x, u):
        return arc.scan(lambda c, v: (0.5 * c + 0.25 * np.tanh(v), c), x, u)

    u = np.linspace(-1.0, 1.0, 40)
    graph = arc.compile(run).graph(0.0, u)
    ends = np.stack([np.concatenate([[-0.2], u - 0.1]), np.concatenate([[0.2], u + 0.1])])
    ranges = bound_graph(graph, ends, boxes=1, unroll=50)
    assert np.all(np.abs(ranges.ends) < 2.0) and not ranges.nan.any()
    points = points_in(ends, 2000, np.random.default_rng(2))
    assert not outside(results_at(graph, points), ranges.ends, ranges.nan).any()


def test_branches_are_followed_where_they_are_taken():
    def f(x):
        return arc.cond(x > 1.0, lambda x: np.sqrt(x - 1.0), lambda x: 1.0 - x, x)

    bounds = arc.compile(f).bounds({"x": (0.0, 5.0)})
    assert bounds.ok and (float(bounds.lower), float(bounds.upper)) == (0.0, 2.0)


def test_maps_blocks_and_linear_systems():
    A = np.array([[4.0, 1.0], [1.0, 3.0]])

    def f(x):
        mapped = arc.vmap(lambda s: s * s)(x)
        return np.sum(np.sin(np.arange(100.0) * 0.01 * x[0])), mapped, np.linalg.solve(A, x[:2])

    compiled = arc.compile(f)
    bounds = compiled.bounds(([-1.0, 0.5, 2.0], [1.0, 1.0, 3.0]))
    assert bounds.ok
    assert np.all(bounds.lower[1] <= [0.0, 0.25, 4.0]) and np.all(
        bounds.upper[1] <= [1.0, 1.0, 9.0]
    )
    rng = np.random.default_rng(1)
    for _ in range(200):
        assert bounds.contains(compiled(rng.uniform([-1.0, 0.5, 2.0], [1.0, 1.0, 3.0])))
    exact = np.linalg.inv(A) @ np.array([1.0, 0.75])
    assert np.all(bounds.upper[2] >= exact - 1e-9)


def test_a_callback_can_give_anything():
    def f(x):
        return arc.callback(lambda v: np.asarray(v) + 1.0, 0.0, x)

    bounds = arc.compile(f).bounds({"x": (0.0, 1.0)})
    assert [finding.kind for finding in bounds.findings] == ["not known"]
    assert bounds.lower == -np.inf and bounds.nan


def test_random_numbers_are_between_zero_and_one():
    def f(seed):
        return arc.random.uniform(arc.random.key(seed))

    bounds = arc.compile(f).bounds({"seed": Interval(np.int64(0), np.int64(1000))})
    assert bounds.lower >= 0.0 and bounds.upper <= 1.0


# ---- models -------------------------------------------------------------------------------------

QUICK = ("pid", "kalman_filter", "j2_gravity", "drag_with_mach_table", "slerp")


def test_there_are_fifty_models():
    assert len(MODELS) >= 50


@pytest.mark.parametrize("name", QUICK)
def test_models_contain_what_was_sampled(name):
    row = examine(name, 20_000, boxes=32, compile=False)
    assert row.outside == 0
    assert np.median(row.ratios) < 3.0


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in MODELS if name not in QUICK])
def test_more_models_contain_what_was_sampled(name):
    assert examine(name, 5_000, boxes=1, compile=False).outside == 0


# ---- C code -------------------------------------------------------------------------------------


def follow(x, u, k):
    error = u - x
    return x + 0.1 * np.clip(k * error, -1.0, 1.0), np.sqrt(error * error + 1.0) / x


RANGES = {"x": (0.5, 1.5), "u": (-1.0, 1.0)}


@pytest.mark.parametrize("float_type", [float, np.float32])
def test_c_projects_have_certified_ranges(float_type):
    project = arc.codegen(
        follow, (1.0, 0.5, 2.0), return_names=("x", "n"), ranges=RANGES, float_type=float_type
    )
    bounds = project.bounds
    assert bounds.ok and bounds.names == ("x", "n")
    assert [name for name, *_ in bounds.inputs] == ["x", "u", "k"]
    assert bounds.inputs[2] == ("k", 2.0, 2.0)
    assert bounds.lower[0].dtype == np.dtype(float_type)
    rng = np.random.default_rng(0)
    single = arc.compile(follow)
    for x, u in rng.uniform([0.5, -1.0], [1.5, 1.0], (100, 2)):
        assert bounds.contains(single(float_type(x), float_type(u), float_type(2.0)))


def test_the_report_has_the_ranges_and_what_is_not_proven():
    from archimedes.embedded import ResourceReport

    project = arc.codegen(
        follow, (1.0, 0.5, 2.0), return_names=("x", "n"), ranges={"x": (-0.5, 1.5)}
    )
    page = ResourceReport(
        *("follow", "host", "-O2", 1, 1, 0, 1, {"in": 24}, 8, ("follow_step",), (), {}, {}, ()),
        bounds=project.bounds,
    )
    assert "certified   ranges of 2 results, 4 of 6 proofs" in str(page)
    text = page.markdown()
    assert "## Certified ranges" in text and "| x | -0.5 | 1.5 |" in text
    assert "| no division by zero | not proven |" in text
    line = follow.__code__.co_firstlineno + 2
    assert f"test_bounds.py:{line} | division by zero | the divisor may be zero" in text


def test_codegen_names_what_is_not_an_input():
    with pytest.raises(ValueError, match="codegen: ranges: no number of the arguments is called"):
        arc.codegen(follow, (1.0, 0.5, 2.0), ranges={"speed": (0.0, 1.0)})
