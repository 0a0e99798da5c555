"""Odd but legal MJCF files against MuJoCo itself: flags, names, equalities, and the report."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .mujoco_peer import MESSAGES, mujoco

INERTIAL = (
    '<inertial pos="0.1 0.02 -0.03" mass="1.3" fullinertia="0.02 0.03 0.04 0.001 0.002 0.003"/>'
)


def written(tmp_path, bodies, before="", after=""):
    file = tmp_path / "odd.xml"
    text = bodies.replace("INERTIAL", INERTIAL)
    file.write_text(f"<mujoco>{before}<worldbody>{text}</worldbody>{after}</mujoco>")
    return file


TWO = """<body name="a" pos="0 0 1"><joint type="free"/>INERTIAL
<site name="s" pos="0.1 0.2 0.3" euler="40 10 0"/></body>
<body name="b" pos="0.5 0 1" euler="30 20 10"><joint type="free"/>INERTIAL
<site name="t" pos="-0.1 0.2 0.1" euler="0 50 0"/></body>
<site name="fixed" pos="0.3 0.3 0.3" euler="0 10 20"/>"""


@pytest.mark.parametrize(
    "text",
    [
        '<connect body1="a" anchor="0.1 0.2 0.3"/>',
        '<connect site1="s" site2="t"/>',
        '<connect site1="s" site2="fixed"/>',
        '<weld body1="a"/>',
        '<weld body1="b" anchor="0.1 0.2 0.3"/>',
        '<weld body1="a" body2="b" anchor="0.1 0.2 0.3"/>',
        '<weld body1="a" body2="b" relpose="0.5 0 0.1 1 0.3 0 0" anchor="0.1 0.2 0.3"/>',
        '<weld site1="s" site2="t"/>',
        '<weld site1="fixed" site2="t"/>',
    ],
)
def test_what_an_equality_holds(tmp_path, text):
    """How far its places are apart, and how far its axes are turned, as MuJoCo finds it."""
    file = written(tmp_path, TWO, after=f"<equality>{text}</equality>")
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    builder = mb.read(file)
    model = builder.build()
    assert len(model.closures) == 1 and not builder.report.ignored
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = mb.random_configuration(model, rng)
        d.qpos[:] = q
        mujoco.mj_forward(m, d)
        closure = model.closures[0]
        one, two = (mb.frame_pose(model, q, name) for name in (closure.first, closure.second))
        wanted = np.linalg.norm(d.efc_pos[:3])
        assert abs(np.linalg.norm(one.t - two.t) - wanted) < 1e-13
        error = mb.constraint_error(model, model.closures, q)
        if "weld" in text:
            turned = np.sin(0.5 * np.linalg.norm(error[3:]))
            assert abs(turned - np.linalg.norm(d.efc_pos[3:6])) < 1e-13


def test_flags_switch_off_what_they_say(tmp_path):
    """Springs and dampers of tendons too, friction, actuators, their ranges, and equalities."""
    bodies = (
        '<body name="a"><joint name="j" stiffness="3" damping="2" frictionloss="1"/>INERTIAL</body>'
    )
    after = """<tendon><fixed name="t" stiffness="5" damping="3"><joint joint="j" coef="2"/></fixed>
    </tendon><actuator><motor name="m" joint="j" ctrlrange="-1 1"/></actuator>
    <equality><joint name="e" joint1="j"/></equality>"""
    flags = ["spring", "damper", "frictionloss", "clampctrl", "equality"]
    off = "".join(f'{flag}="disable" ' for flag in flags)
    file = written(tmp_path, bodies, f"<option><flag {off}/></option>", after)
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = 0.3, 0.7, 5.0
    mujoco.mj_forward(m, d)
    builder = mb.read(file)
    model = builder.build()
    assert np.array_equal(mb.passive_torque(model, d.qpos, d.qvel), d.qfrc_passive)
    assert not d.qfrc_passive.any()
    driven = mb.actuator_torque(model, model.actuators, d.qpos, d.qvel, d.ctrl)
    assert np.array_equal(driven, d.qfrc_actuator) and driven == 5.0
    assert not model.closures
    assert builder.report.ignored == ["odd: equality 'e'"] and not builder.report.approximated
    file = written(tmp_path, bodies, '<option><flag actuation="disable"/></option>', after)
    assert "odd: actuator 'm', which the file switches off" in mb.read(file).report.ignored
    file = written(tmp_path, bodies, '<option actuatorgroupdisable="0"/>', after)
    assert not mb.load(file).actuators


def test_parts_without_names_get_names_that_are_not_taken(tmp_path):
    """And so do the joints of welded bodies, and sites that are named as a body is."""
    file = written(
        tmp_path,
        """<body><joint/>INERTIAL<body name="body1"><joint/>INERTIAL</body></body>
        <body name="w"><joint/>INERTIAL<body name="foot">INERTIAL<site name="foot" pos="1 0 0"/>
        <body name="x"><joint name="w_foot"/>INERTIAL<site/></body></body></body>
        <body name="y"><joint name="w_joint0"/>INERTIAL</body>""",
    )
    builder = mb.read(file)
    model = builder.build()
    m = mujoco.MjModel.from_xml_path(str(file))
    assert model.nv == m.nv == 5
    assert set(model.joint_names) > {"w_foot", "w_joint0"}
    assert builder.report.used["site"] == 2 and "foot:site" in model.frame_names
    assert builder.report.approximated == [
        "odd: site 'foot', named as a body is, is the frame 'foot:site'"
    ]
    M, d = np.zeros((5, 5)), mujoco.MjData(m)
    d.qpos[:] = q = np.linspace(0.1, 0.9, 5)
    mujoco.mj_forward(m, d)
    mujoco.mj_fullM(m, d, M)
    assert np.allclose(mb.crba(model, q), M, rtol=0, atol=1e-13)


def test_long_chains(tmp_path):
    one = '<body pos="0 0 0.1"><joint axis="0 1 0"/><geom size="0.01"/>'
    assert mb.load(written(tmp_path, one * 150 + "</body>" * 150)).nv == 150
    with pytest.raises(ValueError, match=r"odd\.xml:1: more than 500 elements inside each other"):
        mb.load(written(tmp_path, one * 600 + "</body>" * 600))


@pytest.mark.parametrize(
    ("joint", "after", "said"),
    [
        ('type="free" stiffness="3"', "", "joint 'j': its spring pulls along the screw"),
        ('actuatorfrcrange="-2 2"', "", "joint 'j': actuatorfrcrange is an effort_limit, of what"),
        (
            "",
            '<actuator><general name="g" joint="j" dyntype="filter" dynprm="0"/></actuator>',
            "actuator 'g': a lag of no time is none",
        ),
        (
            "",
            '<tendon><fixed name="t" range="-1 1"><joint joint="j" coef="2"/></fixed></tendon>',
            "limits of joints and tendons, which are soft",
        ),
    ],
)
def test_what_counts_otherwise_is_reported_by_name(tmp_path, joint, after, said):
    file = written(tmp_path, f'<body name="a"><joint name="j" {joint}/>INERTIAL</body>', "", after)
    report = mb.read(file).report
    assert any(said in line for line in [*report.approximated, *report.ignored])
    with pytest.raises(ValueError, match="strict=True: 1 elements"):
        mb.load(file, strict=True)


def test_what_no_joint_has_is_refused_with_the_name_of_the_file(tmp_path):
    file = written(tmp_path, '<body name="a"><joint name="j" damping="-1"/>INERTIAL</body>')
    with pytest.raises(ValueError, match=r"odd\.xml: joint 'j': damping must not be negative"):
        mb.load(file)


def test_where_a_free_body_starts_is_at_rest(tmp_path):
    file = written(tmp_path, '<body name="a" pos="0 0 2"><freejoint name="j"/>INERTIAL</body>')
    builder = mb.read(file)
    assert (
        "joint 'j': where its body is in the file is model.rest" in builder.report.approximated[0]
    )
    assert np.array_equal(builder.build().rest, [0, 0, 2, 1, 0, 0, 0])


def test_warnings_of_mujoco_come_to_the_tests_and_not_into_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    m = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    d = mujoco.MjData(m)
    d.qpos[:] = np.nan
    before = len(MESSAGES)
    mujoco.mj_step(m, d)
    assert any("QPOS" in text for text in MESSAGES[before:])
    assert list(tmp_path.iterdir()) == []


#: A hinge that a position servo with an activation drives, within a range of activations.
SERVO = """<body name="a"><joint name="h" type="hinge" axis="0 1 0" damping="2"/>
<geom type="box" size="0.1 0.1 0.1" mass="1"/></body>"""


@pytest.mark.parametrize("kind", ["integrator", "filter", "filterexact"])
def test_activations_stay_within_their_range(tmp_path, kind):
    # With an activation that winds up the joint stayed at 1.00 long after the command had turned.
    actuator = f"""<actuator><general joint="h" dyntype="{kind}" dynprm="0.2" gainprm="40"
    biastype="affine" biasprm="0 -40 0" actlimited="true" actrange="-1 1"/></actuator>"""
    option = '<option timestep="0.0005" gravity="0 0 0" integrator="implicitfast"/>'
    file = written(tmp_path, SERVO, option, actuator)
    model = mb.load(file)
    (lagged,) = model.actuators
    assert lagged.activation_range.tolist() == [-1.0, 1.0]

    def command(t):
        return np.where(t < 3.0, 4.0, -4.0)

    peer = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(peer)
    times, theirs = np.array([1.0, 2.9, 3.2, 3.6, 4.0]), []
    for time in times:
        while data.time < time - 1e-9:
            data.ctrl[0] = command(data.time)
            mujoco.mj_step(peer, data)
        theirs.append([data.qpos[0], data.act[0]])

    def f(t, x):
        return mb.dynamics(model, t, x, command(t)[None], actuators=[lagged])

    ours = arc.odeint(
        f, (0.0, 4.0), mb.driven_state(model, [lagged]), t_eval=times, max_step=0.01, rtol=1e-6
    )
    np.testing.assert_allclose(ours.q[:, 0], np.array(theirs)[:, 0], atol=5e-3)
    np.testing.assert_allclose(ours.activations[:, 0], np.array(theirs)[:, 1], atol=5e-3)


def test_what_is_said_of_plugins_and_of_early_activations(tmp_path):
    library = pathlib.Path(mujoco.__file__).parent / "plugin" / "libactuator.so"
    if not library.exists():
        pytest.skip("MuJoCo's plugins are not installed")
    mujoco.mj_loadPluginLibrary(str(library))
    before = '<extension><plugin plugin="mujoco.pid"><instance name="pid"/></plugin></extension>'
    after = """<actuator><plugin name="p" joint="h" plugin="mujoco.pid" instance="pid"/>
    <general name="g" joint="h" dyntype="filter" dynprm="0.1" actearly="true"/></actuator>"""
    builder = mb.read(written(tmp_path, SERVO, before, after))
    assert len(builder.actuators) == 1
    assert any("actuator 'p': what a plugin computes" in line for line in builder.report.ignored)
    assert any("actuator 'g': actearly" in line for line in builder.report.approximated)


def test_a_weld_whose_turns_do_not_count_holds_points_alone(tmp_path):
    def closures(scale):
        weld = f'<weld body1="a" body2="b" anchor="0.1 0.2 0.3" torquescale="{scale}"/>'
        return mb.read(written(tmp_path, TWO, after=f"<equality>{weld}</equality>")).closures

    assert [c.kind for c in closures(0)] == ["spherical"]
    assert [c.kind for c in closures(0.5)] == ["fixed"]


@pytest.mark.parametrize("axis", [[0, 0, 1.0000000000000002], [0, 0, -3.0], [1e-170, 0.0, 1.0]])
def test_axes_that_are_nearly_unit_vectors(axis):
    b = mb.Builder()
    b.add_body("a", mass=1.0, inertia=[0.2, 0.3, 0.4])
    b.attach("a", joint="j", axis=axis)
    acceleration = mb.aba(b.build(), np.array([0.1]), np.array([0.2]), np.array([1.0]))
    np.testing.assert_allclose(acceleration, [2.5], rtol=1e-14)
