"""Models for pages: rows of doubles, steps, sampled parts, events, controls and their messages."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes import tree
from archimedes.demos.interactive import cart_pole
from archimedes.vehicles import load
from archimedes.viewer import Control, Explorer, Pull, Simulator, view
from archimedes.viewer.controls import describe_control
from archimedes.viewer.simulator import Row


@arc.struct
class Input:
    """A torque with a unit and limits."""

    torque: float = arc.field(units="N m", limits=(-3.0, 3.0), default=0.0)
    on: bool = True


def swing(t, x, u, p):
    return np.stack([x[1], np.where(u.on, u.torque, 0.0) - p["gravity"] * np.sin(x[0])])


def pendulum(**options):
    given = {"inputs": Input(), "parameters": {"gravity": 9.81}, **options}
    return Simulator(swing, np.array([1.0, 0.0]), **given)


def test_rows_keep_every_bit():
    value = {"a": np.array([1.5, -0.0, np.inf]), "k": np.array([2**62 + 3, -7]), "b": True}
    row = Row(value, "x")
    back = row.unpack(row.pack(value))
    for ours, theirs in zip(tree.leaves(back), tree.leaves(value)):
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()
    assert list(row.columns) == ["a[0]", "a[1]", "a[2]", "b"] and row.size == 8


def test_steps_are_those_of_discretize():
    model = pendulum(dt=0.02)
    step = arc.discretize(swing, 0.02)
    x = np.array([1.0, 0.0])
    for k in range(50):
        x = step(k * 0.02, x, Input(torque=2.0), {"gravity": 9.81})
    assert model.run(50, torque=2.0).tobytes() == np.asarray(x).tobytes()


def test_the_adaptive_solver_agrees_with_a_tight_reference():
    from scipy.integrate import solve_ivp

    model = pendulum()
    s, c = model.rows({"torque": 1.0})
    ours = arc.compile(model.advance)(0.0, 3.0, s, c)[0]
    rhs = lambda t, x: [x[1], 1.0 - 9.81 * np.sin(x[0])]
    theirs = solve_ivp(rhs, (0, 3), [1.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_sampled_parts_act_at_their_rates():
    fast = arc.Sampled(lambda t, x, u: u[0] + 1.0, init=0.0, dt=0.02)
    slow = arc.Sampled(lambda t, x, u: u[1] + 1.0, init=0.0, dt=0.05)
    model = Simulator(lambda t, x, u: 0.0 * x + u[0], 0.0, sampled=[fast, slow], dt=0.01)
    s, c = model.rows()
    for k in range(100):
        s, _ = arc.compile(model.step)(k * 0.01, s, c)
    _, memory = model.state.unpack(s)
    assert memory == (50.0, 20.0)
    reference = arc.solve_ode(lambda t, x, u: 0.0 * x + u[0], (0.0, 1.0), 0.0, sampled=[fast, slow])
    assert float(model.state.unpack(s)[0]) == pytest.approx(float(reference.x[-1]), abs=1e-9)


def test_events_stop_and_reset():
    ground = arc.Event(
        lambda t, x: x[0], direction=-1, reset=lambda t, x: np.stack([0.0 * x[0], -x[1]])
    )
    over = arc.Event(lambda t, x: 2.0 - t, terminal=True)
    fall = lambda t, x: np.stack([x[1], -9.81 + 0.0 * x[0]])
    model = Simulator(fall, np.array([1.0, 0.0]), events={"bounce": ground, "over": over}, dt=0.01)
    s, c = model.rows()
    fired = []
    for k in range(201):
        s, which = arc.compile(model.step)(k * 0.01, s, c)
        fired += [(round((k + 1) * 0.01, 2), int(j)) for j in np.flatnonzero(which)]
    assert fired[0] == (0.46, 0) and fired[-1] == (2.0, 1)  # sqrt(2 / 9.81) is 0.4515


def test_names_units_and_ranges_come_from_the_structs():
    model = pendulum()
    (k, torque), (_, on), (_, gravity) = (model.controls[n] for n in ("torque", "on", "gravity"))
    assert (torque.low, torque.high, torque.units) == (-3.0, 3.0, "N m")
    assert (on.kind, gravity.low, gravity.high) == ("switch", 0.0, 19.62)
    told = describe_control(torque, "torque", 0.0, [[0, k]])
    assert (told["label"], told["units"], told["targets"]) == ("torque", "N m", [[0, 0]])
    angle = describe_control(Control(-np.pi, np.pi, units="rad"), "a", 0.0, [])
    assert angle["units"] == "deg" and angle["per"] == pytest.approx(180.0 / np.pi)


def test_a_chosen_control_is_found_by_the_end_of_its_path():
    model = pendulum(parameters={"world": {"gravity": 9.81}}, controls={"torque": (-1, 1)})
    assert list(model.controls) == ["torque"]
    deep = Simulator(lambda t, x, p: -p["a"]["gain"] * x, 1.0, parameters={"a": {"gain": 2.0}},
                     controls={"gain": (0.0, 5.0)})  # fmt: skip
    assert deep.run(1, gain=0.0) == 1.0


@pytest.mark.parametrize(
    ("controls", "says"),
    [
        (
            {"thrust": (0, 1)},
            "'thrust' moves nothing; inputs and parameters are torque, on, gravity",
        ),
        ({"torque": 3}, r"must be \(low, high\), True for a switch, or a Control, got 3"),
        ({"torque": (1.0, 1.0)}, "low must be below high, got 1.0 and 1.0"),
        ({"torque": (np.nan, 1.0)}, "low must be below high, got nan"),
        ({"gravity": (0.0, 1.0)}, "'gravity' starts at 9.81, outside its range from 0 to 1"),
        (
            {"torque": Control(keys=("a", "b")), "gravity": Control(0, 20, keys=("B", "c"))},
            "the key 'B' moves 'torque' and 'gravity'",
        ),
    ],
)
def test_wrong_controls_say_so(controls, says):
    with pytest.raises((ValueError, TypeError), match=says):
        pendulum(controls=controls)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"kind": "knob"}, "kind"),
        ({"keys": "a"}, "a slider has 2 keys, not the space bar, got 'a'"),
        ({"kind": "switch", "keys": " "}, "a switch has 1 key, not the space bar"),
        ({"kind": "pulse"}, "together"),
        ({"rate": 0.0}, "rate must be positive"),
    ],
)
def test_impossible_controls_say_so(arguments, says):
    with pytest.raises(ValueError, match=says):
        Control(**arguments)


def test_wrong_models_say_so():
    with pytest.raises(TypeError, match="give the state to start in"):
        view(swing, interactive=True)
    with pytest.raises(TypeError, match=r"shows a vehicle, a robot, a function .* got int"):
        view(3, interactive=True)
    with pytest.raises(TypeError, match="controls is for a page that runs its model"):
        view(swing, controls={"torque": (0, 1)})
    with pytest.raises(ValueError, match=r"sampled\[0\] has dt = 0.015, which is no multiple"):
        part = arc.Sampled(lambda t, x, u: u, init=0.0, dt=0.015)
        Simulator(lambda t, x, u: x, 1.0, sampled=part, dt=0.01)
    with pytest.raises(ValueError, match="there is no control 'mass'; there are"):
        pendulum().run(1, mass=3.0)
    with pytest.raises(ValueError, match="copies have different counts"):
        pendulum(copies={"x0": np.zeros((3, 2)), "parameters": {"gravity": np.ones(2)}})
    with pytest.raises(ValueError, match="charts: there is no 'height'"):
        view(pendulum(charts=["height"]), interactive=True)
    with pytest.raises(TypeError, match="a Simulator has it all: leave out dt"):
        view(pendulum(), interactive=True, dt=0.1)


def test_what_is_shown_of_a_state_is_what_the_scene_has():
    plane = load("f16")
    shown = view(plane, interactive=True)
    (model,) = shown.interactive.simulators.values()
    s, c = model.rows()
    seen = arc.compile(model.show)(0.0, s, c)
    bodies = shown.scene.bodies
    assert len(bodies) == 5 and set(model.controls) >= {"throttle", "elevator", "wind[0]"}
    for k, body in enumerate(bodies):
        np.testing.assert_allclose(seen[7 * k : 7 * k + 3], body.position[0], atol=1e-8)
        np.testing.assert_allclose(seen[7 * k + 3 : 7 * k + 7], body.attitude[0], atol=1e-12)


def test_a_pull_does_the_work_of_its_spring():
    """The wrench on a link is the gradient of the spring's energy (central differences)."""
    b = mb.Builder("arm")
    for k, parent in enumerate(("world", "l0", "l1")):
        b.add_body(f"l{k}", mass=1.0, com=[0, 0, 0.2], inertia=[0.02, 0.02, 0.01])
        b.attach(f"l{k}", parent, joint=f"j{k}", axis=[k % 2, 1 - k % 2, 0.3], position=[0, 0, 0.4])
    arm = b.build()
    point, target = np.array([0.1, -0.05, 0.3]), np.array([0.3, 0.2, 0.9])
    pull = Pull(("l2",), 50.0, 0.0, 1e9, on=np.ones(1), point=point, target=target)
    q = np.array([0.3, -0.5, 0.8])

    def energy(q):
        pose = mb.frame_pose(arm, q, "l2")
        return 25.0 * np.sum((target - pose.t - pose.r.as_matrix() @ point) ** 2)

    h = 1e-6
    slope = [(energy(q + h * e) - energy(q - h * e)) / (2 * h) for e in np.eye(3)]
    still = np.zeros(3)
    with_pull = mb.rnea(arm, q, still, still, pull.forces(arm, q, still))
    torque = mb.rnea(arm, q, still, still) - with_pull
    np.testing.assert_allclose(torque, -np.array(slope), rtol=1e-6)
    far = pull.replace(limit=2.0)
    assert np.linalg.norm(far.force(np.zeros(3), np.zeros(3))) == pytest.approx(2.0)


def test_the_regulator_of_the_cart_is_that_of_scipy():
    from scipy.linalg import solve_continuous_are

    ml, inertia = 0.2 * 0.6, 0.2 * 0.36 * 4 / 3
    det = 1.2 * inertia - ml**2
    A = np.zeros((4, 4))
    A[0, 2] = A[1, 3] = 1.0
    A[2, 1], A[3, 1] = -(ml**2) * 9.80665 / det, 1.2 * ml * 9.80665 / det
    A[2, 2], A[3, 2] = -0.5 * inertia / det, 0.5 * ml / det
    A[2, 3], A[3, 3] = 2e-3 * ml / det, -2e-3 * 1.2 / det
    B = np.array([[0.0], [0.0], [inertia / det], [-ml / det]])
    P = solve_continuous_are(A, B, np.diag([4.0, 20.0, 1.0, 1.0]), np.eye(1) * 0.1)
    np.testing.assert_allclose(cart_pole.gains(), (10.0 * B.T @ P)[0], rtol=1e-8)


def test_an_explorer_says_what_it_needs():
    t = np.linspace(0.0, 1.0, 5)
    made = Explorer(
        lambda p: (t, {"y_1": p["a"] * t, "both": np.stack([t, t], axis=1)}), {"a": 2.0}
    )
    assert [(c["title"], len(c["starts"])) for c in made.charts(0)] == [("y 1", 1), ("both", 2)]
    np.testing.assert_array_equal(made.curves(np.array([3.0]))[5:10], 3.0 * t)
    named = Explorer(lambda p: (t, {"angle (rad)": {"truth": t, "seen": p * t}}), 1.0)
    (chart,) = named.charts(0)
    assert (chart["title"], chart["labels"]) == ("angle (rad)", ["truth", "seen"])
    with pytest.raises(ValueError, match="must return a pair, the abscissa"):
        Explorer(lambda p: {"y": t}, {"a": 1.0})
    with pytest.raises(ValueError, match=r"curves over 5 points have shapes \(5,\) or"):
        Explorer(lambda p: (t, {"y": np.zeros(4)}), {"a": 1.0})


def test_whole_numbers_become_floats_where_they_can():
    model = Simulator(lambda t, x, p: -p["gain"] * x, 1, parameters={"gain": 4}, dt=0.1)
    assert (
        model.run(1) == pytest.approx(np.exp(-0.4), rel=1e-3)
        and model.controls["gain"][1].high == 8.0
    )
    count = Simulator(lambda t, x: x + 1, 3, discrete=True)
    assert count.run(4) == 7 and count.run(4).dtype == np.int64
    with pytest.raises(TypeError, match=r"int64 at the start and float64 after a step"):
        Simulator(lambda t, x: x + 0.5, 3, discrete=True).run(1)
    with pytest.raises(ValueError, match=r"has shape \(2,\), then \(3,\)"):
        Simulator(lambda t, x: np.zeros(3), np.zeros(2), discrete=True).run(1)


def test_a_key_of_random_numbers_keeps_its_bits():
    def walk(t, x):
        new = arc.random.split(x["key"], 2)
        return {"key": new[0], "x": x["x"] + arc.random.normal(new[1], ())}

    x0 = {"key": arc.random.key(2**40 + 7), "x": 0.0}
    model = Simulator(walk, x0, discrete=True)
    x = x0
    for _ in range(5):
        x = walk(0.0, x)
    found = model.run(5)
    assert found["x"] == x["x"] and found["key"].tobytes() == np.asarray(x["key"]).tobytes()


def test_outputs_are_charts_in_the_order_written():
    def outputs(t, x, u, p):
        return {"z (m)": x[0], "both": {"rate": x[1], "angle": x[0]}, "row": x}

    model = pendulum(outputs=outputs)
    charts = view(model, interactive=True).interactive.charts.values()
    found = [(c["title"], c["labels"]) for c in charts]
    assert found == [("z (m)", [""]), ("both", ["rate", "angle"]), ("row", ["[0]", "[1]"])]
    s, c = model.rows()
    np.testing.assert_array_equal(model.show(0.0, s, c), [1.0, 0.0, 1.0, 1.0, 0.0])
