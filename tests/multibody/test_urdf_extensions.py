"""Transmissions, and elements of Gazebo and Drake in URDF files.

What is compared with Drake are numbers that Drake 1.51 gives for the same texts: `CalcMassMatrix`,
`CalcBiasTerm` less `CalcGravityGeneralizedForces`, and `CalcInverseDynamics` with force elements.
"""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb

from .test_odd_urdf import written

BASE = """<link name="base"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>"""
ARM = """<link name="arm"><inertial><origin xyz="0.1 0.05 0.2"/><mass value="2"/>
<inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0.02" izz="0.25"/></inertial></link>"""
ORIGIN = '<origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.5"/>'
REVOLUTE = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5"/>'


def read(tmp_path, kind, inside="", more="", tag="drake:joint"):
    """Return the builder of an arm on a joint."""
    file = tmp_path / "arm.urdf"
    joint = f"""<{tag} name="j" type="{kind}"><parent link="base"/><child link="arm"/>
    {ORIGIN}{inside}</{tag}>"""
    text = f'<robot name="r" xmlns:drake="http://drake.mit.edu">{BASE}{ARM}{joint}{more}</robot>'
    file.write_text(text)
    builder = mb.read(file)
    builder.gravity = np.array([0.0, 0.0, -9.81])
    return builder


def close(found, wanted):
    return np.allclose(found, wanted, rtol=0, atol=2e-8)


def constrained(tmp_path, name, inside):
    """Return an arm on a hinge with an element of Drake besides."""
    return without_loss(read(tmp_path, "revolute", REVOLUTE, f"<{name}>{inside}</{name}>", "joint"))


def without_loss(builder):
    report = builder.report
    assert not report.ignored and not report.approximated
    return builder.build()


# ---- Drake ---------------------------------------------------------------------------------------


def test_screws_and_universal_joints_are_those_of_drake(tmp_path):
    screw = without_loss(
        read(
            tmp_path,
            "screw",
            '<axis xyz="1 2 2"/><drake:screw_thread_pitch value="0.1"/><dynamics damping="2"/>',
        )
    )
    assert close(mb.crba(screw, np.array([0.3])), [[0.258839939251545]])
    assert close(mb.rnea(screw, np.array([0.3]), np.ones(1), np.zeros(1)), [-0.4895855])
    assert close(mb.passive_torque(screw, np.array([0.3]), np.ones(1)), [-2.0])
    q, v = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    cross = without_loss(read(tmp_path, "universal", '<dynamics damping="2"/>'))
    assert close(mb.crba(cross, q), [[0.1699539544433967, 0.0], [0.0, 0.3]])
    assert close(mb.rnea(cross, q, v, np.zeros(2)), [-0.76610068, -2.13595334])
    assert close(mb.passive_torque(cross, q, v), [-2.0, -4.0])


def test_planar_and_ball_joints_are_those_of_drake(tmp_path):
    """Velocities are in axes of the child here, of the parent in Drake."""
    axis = '<axis xyz="0 1 0"/><dynamics damping="1 1 3"/>'
    plane = without_loss(read(tmp_path, "planar", axis))
    q, v = np.array([0.3, 0.4, 0.7]), np.array([1.0, 2.0, 3.0])
    M = mb.crba(plane, q)
    assert close(M[:2, :2], 2.0 * np.eye(2)) and close(M[2, 2], 0.3)
    assert close(np.linalg.norm(M[:2, 2]), np.hypot(0.1770933374662572, 0.4106555123519742))
    assert close(mb.passive_torque(plane, q, v), [-1.0, -2.0, -9.0])
    ball = without_loss(read(tmp_path, "ball", '<dynamics damping="2"/>'))
    roll, pitch, yaw = 0.3, 0.4, 0.5
    c, s = np.cos, np.sin
    X = np.array([[1, 0, 0], [0, c(roll), -s(roll)], [0, s(roll), c(roll)]])
    Y = np.array([[c(pitch), 0, s(pitch)], [0, 1, 0], [-s(pitch), 0, c(pitch)]])
    Z = np.array([[c(yaw), -s(yaw), 0], [s(yaw), c(yaw), 0], [0, 0, 1]])
    R = Z @ Y @ X
    w = 0.5 * np.sqrt(1.0 + np.trace(R))
    q = np.array(
        [w, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * w))]
    )
    assert close(
        R @ mb.crba(ball, q) @ R.T,
        [
            [0.18911058582731, -0.045750206092437, 0.004742341976908],
            [-0.045750206092437, 0.280272740315838, 0.004753099537651],
            [0.004742341976908, 0.004753099537651, 0.290616673856852],
        ],
    )


def test_a_planar_joint_with_another_damping_in_each_direction(tmp_path):
    (line,) = read(tmp_path, "planar", '<dynamics damping="1 2 3"/>').report.approximated
    assert line.endswith("damping of joint 'j' is along the axes of the child here")


def test_springs_between_points_are_those_of_drake(tmp_path):
    name = "drake:linear_spring_damper"
    parts = {"free_length": "0.2", "stiffness": "30", "damping": "4"}
    places = {"p_AP": "0.5 0 0", "p_BQ": "0 0.4 0.1"}
    inside = f'<{name}_body_A name="base"/><{name}_body_B name="arm"/>' + "".join(
        f'<{name}_{key} value="{value}"/>' for key, value in (places | parts).items()
    )
    spring = constrained(tmp_path, name, inside)
    torque = mb.passive_torque(spring, np.array([0.3]), np.ones(1))
    assert close(torque, [0.1575272 - 0.61491819])


def test_balls_and_tendons_constrain_as_in_drake(tmp_path):
    name = "drake:ball_constraint"
    inside = (
        f'<{name}_body_A name="base"/><{name}_body_B name="arm"/>'
        f'<{name}_p_AP value="0.1 0.2 0.3"/><{name}_p_BQ value="0 0 0"/>'
    )
    planar = read(tmp_path, "planar", more=f"<{name}>{inside}</{name}>")
    model = without_loss(planar)
    # The points meet where the joint has its origin, and no other.
    assert close(mb.constraint_error(model, model.closures, mb.neutral(model)), np.zeros(3))
    moved = mb.constraint_error(model, model.closures, np.array([0.2, 0.0, 0.0]))
    assert close(np.linalg.norm(moved), 0.2)
    name = "drake:tendon_constraint"
    inside = f'<{name}_joint name="j" a="2.5"/>' + "".join(
        f'<{name}_{key} value="{value}"/>'
        for key, value in {"offset": "0.5", "lower_limit": "-1", "upper_limit": "1"}.items()
    )
    tendon = constrained(tmp_path, name, inside)
    assert close(mb.tendon_length(tendon, np.array([0.3])), [0.75])
    # Drake: lower <= sum of a q + offset <= upper.
    assert tendon.tendons.lower == -1.5 and tendon.tendons.upper == 0.5


def test_shapes_of_drake(tmp_path):
    shapes = (
        '<drake:ellipsoid a="0.1" b="0.2" c="0.3"/>', '<drake:capsule radius="0.1" length="0.5"/>'
    )  # fmt: skip
    more = "".join(f"<collision><geometry>{each}</geometry></collision>" for each in shapes)
    file = written(
        tmp_path,
        more=f'<link name="x">{more}</link><joint name="x" type="fixed"><parent link="b"/>'
        '<child link="x"/></joint>',
    )
    found = [(shape.kind, shape.size) for shape in mb.read(file).geometry]
    assert found == [("ellipsoid", (0.1, 0.2, 0.3)), ("capsule", (0.1, 0.5))]


# ---- transmissions -------------------------------------------------------------------------------

SIMPLE = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
<joint name="j"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
<actuator name="m">{}</actuator></transmission>"""
ROTOR = '<drake:rotor_inertia value="0.02"/>'
RATIO = '<drake:gear_ratio value="7"/>'
REDUCED = "<mechanicalReduction>10</mechanicalReduction>"


def test_a_motor_turns_its_joint_by_its_reduction(tmp_path):
    motor = SIMPLE.format(ROTOR + RATIO + REDUCED)
    model = without_loss(read(tmp_path, "revolute", REVOLUTE, motor, "joint"))
    q, v = np.array([0.3]), np.ones(1)
    assert close(mb.crba(model, q), [[1.255]])  # which is Drake's
    assert mb.actuator_torque(model, model.actuators, q, v, np.array([0.2])) == 2.0
    # The effort of the joint is the most that its actuators give.
    assert mb.actuator_torque(model, model.actuators, q, v, np.array([2.0])) == 5.0
    # Without a ratio of its own the rotor turns as fast as the motor.
    model = read(tmp_path, "revolute", REVOLUTE, SIMPLE.format(ROTOR + REDUCED), "joint").build()
    assert close(model.armature, [100.0 * 0.02])


@pytest.mark.parametrize(
    "text",
    [
        """<transmission type="pr2_mechanism_model/SimpleTransmission" name="t"><actuator name="m"/>
        <joint name="j"/><mechanicalReduction>10</mechanicalReduction></transmission>""",
        """<transmission name="t"><plugin>transmission_interface/SimpleTransmission</plugin>
        <actuator name="m" role="actuator1"/><joint name="j" role="joint1">
        <mechanical_reduction>10</mechanical_reduction></joint></transmission>""",
    ],
)
def test_older_and_younger_words_for_a_reduction(tmp_path, text):
    model = without_loss(read(tmp_path, "revolute", REVOLUTE, text, "joint"))
    assert model.actuators == (mb.Motor("j", gear=10.0),)


def test_gains_of_a_controller_make_a_servo(tmp_path):
    gains = SIMPLE.format('<drake:controller_gains p="100" d="3"/>')
    model = without_loss(read(tmp_path, "revolute", REVOLUTE, gains, "joint"))
    q, v = np.array([0.3]), np.ones(1)
    torque = mb.actuator_torque(model, model.actuators, q, v, np.array([0.31]))
    assert close(torque, [100.0 * 0.01 - 3.0])


def test_a_differential_keeps_power(tmp_path):
    """Torques and speeds as the package transmission_interface maps them."""
    text = """<transmission name="t"><type>transmission_interface/DifferentialTransmission</type>
    <joint name="j"><mechanicalReduction>2</mechanicalReduction></joint>
    <joint name="last"><mechanicalReduction>3</mechanicalReduction></joint>
    <actuator name="left"><mechanicalReduction>50</mechanicalReduction></actuator>
    <actuator name="right"><mechanicalReduction>-40</mechanicalReduction></actuator>
    </transmission>"""
    model = without_loss(mb.read(written(tmp_path, more=text)))
    still, u = np.zeros(2), np.array([1.0, 2.0])
    torque = mb.actuator_torque(model, model.actuators, still, still, u)
    assert close(torque, [2 * (50 * 1 - 40 * 2), 3 * (50 * 1 + 40 * 2)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SIMPLE.replace('"j"', '"none"'), "joint 'none' is not one of one coordinate that moves"),
        (SIMPLE.replace("Simple", "FourBarLinkage"), "FourBarLinkageTransmission with joints and"),
        (SIMPLE.replace("<joint", "<leverArm/><joint"), "<leverArm> of transmission 't'"),
        (SIMPLE.replace("<actuator", "<actuator size='2'"), "size in <actuator> of trans"),
    ],
)  # fmt: skip
def test_transmissions_without_a_counterpart_are_reported(tmp_path, text, said):
    report = read(tmp_path, "revolute", REVOLUTE, text.format(""), "joint").report
    (line,) = report.ignored
    assert said in line


@pytest.mark.parametrize(
    ("motor", "message"),
    [
        ("<mechanicalReduction>0</mechanicalReduction>", "gear must be finite and not zero"),
        ("<mechanicalReduction>x</mechanicalReduction>", "mechanicalReduction is 'x', which"),
        (REDUCED + "<mechanical_reduction>1</mechanical_reduction>", "has two reductions"),
        ('<drake:rotor_inertia value="-1"/>', "the inertia of the rotor is negative"),
    ],
)
def test_wrong_transmissions(tmp_path, motor, message):
    with pytest.raises(ValueError, match=r"arm\.urdf:\d+: .*" + message):
        read(tmp_path, "revolute", REVOLUTE, SIMPLE.format(motor), "joint")


SHAFTS = """<transmission name="t"><type>transmission_interface/DifferentialTransmission</type>
<joint name="j"><mechanicalReduction>{}</mechanicalReduction></joint>
<joint name="last"><mechanicalReduction>{}</mechanicalReduction></joint>
<actuator name="left"><mechanicalReduction>{}</mechanicalReduction></actuator>
<actuator name="right"><mechanicalReduction>{}</mechanicalReduction></actuator>
</transmission>"""


@pytest.mark.parametrize(
    "reductions", [(1, 1, 1, 1), (2, 3, 50, -40), (-1, 1.7, 9 / 7, 1e-3), (0.1, 1 / 3, 0.3, 0.7)]
)
def test_a_saved_differential_keeps_its_bits(reductions, tmp_path):
    """Motors of other joints before and after it keep their places."""
    one, last = SIMPLE.format(REDUCED), SIMPLE.replace('"j"', '"last"').format("")
    text = one + SHAFTS.format(*map(repr, reductions)) + last
    model = without_loss(mb.read(written(tmp_path, more=text)))
    report = mb.save(model, file := tmp_path / "again.urdf")
    assert not report.ignored and report.used["transmission"] == 3
    again = mb.load(file, strict=True)
    assert again.actuators == model.actuators and len(again.actuators) == 4
    assert again.tendons.names == model.tendons.names == ("left", "right")
    assert again.tendons.arms.tobytes() == model.tendons.arms.tobytes()


def test_the_tendons_of_a_saved_differential_are_in_the_order_of_its_motors(tmp_path):
    model = without_loss(mb.read(written(tmp_path, more=SHAFTS.format(2, 3, 1, 1))))
    model = model.replace(actuators=model.actuators[::-1])
    report = mb.save(model, file := tmp_path / "again.urdf")
    assert "the tendons of differentials are in the order of their motors" in report.approximated
    again = mb.load(file)
    assert again.tendons.names == ("right", "left") and again.actuators == model.actuators
    q, u = np.zeros(2), np.array([1.0, 2.0])
    one, other = (mb.actuator_torque(m, m.actuators, q, q, u) for m in (model, again))
    assert np.array_equal(one, other) and np.array_equal(one, [6.0, 3.0])


def test_differentials_that_urdf_cannot_have(tmp_path):
    model = without_loss(mb.read(written(tmp_path, more=SHAFTS.format(1, 1, 1, 1))))
    tendons, (left, right) = model.tendons, model.actuators
    for wrong in (
        # Both turn both joints in one sense, or not alike, and a spring is no shaft.
        model.replace(tendons=tendons.replace(arms=np.ones((2, 2)))),
        model.replace(tendons=tendons.replace(arms=np.array([[1.0, 1.0], [1.0, -1.5]]))),
        model.replace(tendons=tendons.replace(stiffness=np.array([1.0, 0.0]))),
        model.replace(actuators=(left, right.replace(gear=2.0))),
        model.replace(actuators=(left, left)),
    ):
        with pytest.raises(ValueError, match="no place for\n  tendons 'left', 'right'\n  2 act"):
            mb.save(wrong, tmp_path / "again.urdf")


# ---- Gazebo --------------------------------------------------------------------------------------


def test_springs_and_weightless_links_of_gazebo(tmp_path):
    text = """<gazebo reference="j"><material>Gazebo/Red</material>
    <springStiffness>8</springStiffness>
    <springReference>0.5</springReference><provideFeedback>1</provideFeedback></gazebo>
    <gazebo reference="arm"><turnGravityOff>true</turnGravityOff></gazebo>"""
    model = without_loss(read(tmp_path, "revolute", REVOLUTE, text, "joint"))
    q, v = np.array([0.3]), np.zeros(1)
    # A spring of 8 N m/rad, 0.2 rad short, and nothing else.
    assert close(mb.rnea(model, q, v, v) - mb.passive_torque(model, q, v), [-8.0 * 0.2])


def test_what_gazebo_knows_besides_is_reported(tmp_path):
    text = """<gazebo reference="arm"><mu1>0.9</mu1></gazebo>
    <gazebo><plugin name="control"/></gazebo>
    <gazebo reference="nothing"><gravity>0</gravity></gazebo>"""
    ignored = read(tmp_path, "revolute", REVOLUTE, text, "joint").report.ignored
    assert [line.partition(": ")[2] for line in ignored] == [
        "<mu1> of 'arm' in <gazebo>",
        "<plugin> of the robot in <gazebo>",
        "<gravity> of 'nothing' in <gazebo>",
    ]


@pytest.mark.parametrize(
    ("carried", "message"),
    [("1 2 3", "carried has 3 numbers; it is a mass"), ("1 2 3 x", "carried is 'x', which")],
)
def test_wrong_weights_that_are_carried(tmp_path, carried, message):
    off = f'<turnGravityOff carried="{carried}">0</turnGravityOff>'
    text = f'<gazebo reference="arm">{off}</gazebo>'
    with pytest.raises(ValueError, match=r"arm\.urdf:\d+: .*" + message):
        read(tmp_path, "revolute", REVOLUTE, text, "joint")


# ---- saving --------------------------------------------------------------------------------------


def test_a_saved_robot_keeps_motors_springs_and_weightless_links(tmp_path):
    b = mb.Builder("robot")
    for name, carried in (("a", 0.0), ("b", 1.0), ("c", 0.0)):
        b.add_body(name, mass=1.0, inertia=[0.1, 0.1, 0.1], gravity_compensation=carried)
    b.attach("a", joint="one", armature=0.1 + 0.2, stiffness=1.0 / 3.0, rest=0.1)
    b.attach("b", "a", joint="two", kind="prismatic", lower=-1.0, upper=1.0, effort_limit=3.0)
    b.attach("c", "b", joint="three", kind="continuous", armature=0.2)
    b.actuators += [mb.Motor("two", gear=9.0 / 7.0), mb.Motor("one"), mb.Servo("three", 10.0, 0.3)]
    model = b.build()
    file = tmp_path / "robot.urdf"
    report = mb.save(model, file)
    assert not report.ignored
    again = mb.load(file, strict=True)
    q, v, u = np.array([0.1, 0.2, 0.3]), np.ones(3), np.array([0.4, 0.5, 0.6])
    x, y = (mb.State(q, v), u)
    one, other = (m.dynamics(0.0, x, y, actuators=m.actuators) for m in (model, again))
    assert np.array_equal(one.v, other.v)
    assert again.actuators == model.actuators
    assert np.array_equal(again.armature, model.armature)
    b.actuators.append(mb.Motor("two", stall_torque=1.0))
    with pytest.raises(ValueError, match="1 actuator"):
        mb.save(b.build(), file)
