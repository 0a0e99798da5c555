"""What a user gets wrong: each is the right answer, a true status, or an error that teaches."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.spatial import Quaternion, Transformation

Z = np.zeros(3)


def builder(links=3, **values):
    b, parent = mb.Builder("arm"), "world"
    for k in range(links):
        b.add_body(f"link{k}", 1.0, [0, 0, -0.2], [0.1, 0.1, 0.1])
        b.attach(
            f"link{k}", parent, joint=f"j{k}", axis=[0, 1, 0], position=[0, 0, -0.5], lower=-2.0,
            upper=2.0, **values,
        )  # fmt: skip
        parent = f"link{k}"
    b.add_frame("tip", parent, position=[0, 0, -0.5])
    return b


def one_body(**values):
    b = mb.Builder()
    b.add_body("a", 1.0, inertia=[1, 1, 1])
    b.attach("a", joint="j", **values)
    return b


ARM = builder().build()
GOAL = Transformation(np.array([10.0, 0.0, 0.0]), Quaternion.identity())
HOLD = mb.Closure("world", "tip", "spherical")

WRONG = {
    "leading axes": (
        lambda: mb.aba(ARM, np.zeros((5, 3)), np.zeros((4, 3)), Z),
        r"leading axes must broadcast, got shapes q \(5, 3\), v \(4, 3\), tau \(3,\)",
    ),
    "a transposed batch": (lambda: mb.rnea(ARM, np.zeros((3, 5)), Z, Z), r"got \(3, 5\)"),
    "a batch for one": (
        lambda: mb.constrained_acceleration(ARM, [HOLD], np.zeros((5, 3)), Z, Z),
        r"q must have shape \(3,\) here; use arc.vmap for many",
    ),
    "a joint's name": (lambda: ARM.q_slice("j11"), "no joint 'j11'; did you mean 'j1'"),
    "a body's name": (
        lambda: builder().remove("lnk1"),
        "'lnk1' is not a body; did you mean 'link1'",
    ),
    "a name of nothing": (lambda: mb.frame_pose(ARM, Z, "x"), r"known names: link0, .*tip"),
    "two masses": (lambda: mb.Builder().add_body("a", [1.0, 2.0]), "mass must be one number"),
    "a mass of nan": (lambda: mb.Builder().add_body("a", np.nan), "mass must be finite and not"),
    "a negative mass later": (
        lambda: ARM.replace(masses=-ARM.masses),
        "Model masses must not be negative",
    ),
    "limits crossed": (
        lambda: one_body(lower=1.0, upper=-1.0),
        "lower limit above upper limit",
    ),
    "a limit of nan": (lambda: one_body(lower=np.nan), "joint 'j': lower must be a number"),
    "negative damping": (lambda: one_body(damping=-1.0), "joint 'j': damping must not be negative"),
    "negative armature": (lambda: one_body(armature=-1.0), "armature must not be negative"),
    "limits of a ball joint": (
        lambda: one_body(kind="spherical", upper=1.0),
        "joint 'j': a spherical joint has no limits",
    ),
    "a pitch without a screw": (lambda: one_body(pitch=0.1), "only helical joints have a pitch"),
    "a second axis": (lambda: one_body(second_axis=[1, 0, 0]), "only universal joints have"),
    "axes along each other": (
        lambda: one_body(kind="universal", second_axis=[0, 0, -2]),
        "second_axis=.* must not be along axis",
    ),
    "locked at nan": (lambda: builder().lock({"j1": np.nan}), "lock: joint 'j1' must be finite"),
    "locked beyond": (
        lambda: builder().lock({"j1": 90.0}),
        "lock: joint 'j1' at 90.0 is beyond its upper limit 2.0; angles are in rad",
    ),
    "locked at two numbers": (
        lambda: builder().lock({"j1": [1.0, 2.0]}),
        r"lock: joint 'j1': coordinates must have shape \(\) or \(1,\), got \(2,\)",
    ),
    "merged with equal names": (
        lambda: builder().merge(builder(), "link2"),
        "body or frame 'link0' already exists; merge with another prefix",
    ),
    "nothing moves": (lambda: mb.Builder("x").build(), "'x' has no bodies: add_body adds one"),
    "nothing floats": (lambda: mb.Builder("x").build("floating"), "'x' has no bodies"),
    "a mimic of nan": (lambda: mb.Mimic("j", np.nan), "multiplier must be finite, got nan"),
    "a mimic of itself": (
        lambda: one_body(mimic=mb.Mimic("j")).build(),
        "joint 'j' follows 'j', and that follows it in turn",
    ),
    "a tendon along nothing": (lambda: builder().add_tendon("t", {}), "'t': arms must name"),
    "a tendon inside out": (
        lambda: builder().add_tendon("t", {"j0": 1.0}, rest=[1.0, -1.0]),
        r"'t': rest must be \(lower, upper\)",
    ),
    "no such shape": (
        lambda: builder().add_shape("link0", "ball", [1.0]),
        "kind=.ball. is not one",
    ),
    "a flat box": (
        lambda: builder().add_shape("link0", "box", [1.0]),
        "size of a box must",
    ),
    "a negative sphere": (
        lambda: builder().add_shape("link0", "sphere", [-1.0]),
        "shape of 'link0': sizes must be finite and not negative",
    ),
    "an indefinite inertia": (
        lambda: indefinite().build(),
        r"body 'a', .* no body has: its least principal moment is negative, -1 kg m\^2",
    ),
    "no closures": (
        lambda: mb.constrained_acceleration(ARM, [], Z, Z, Z),
        "closures is empty: for a model without closures use aba or dynamics",
    ),
    "a negative frequency": (
        lambda: mb.constrained_acceleration(ARM, [HOLD], Z, Z, Z, frequency=-1.0),
        "frequency, in rad/s, must not be negative",
    ),
    "projection of nan": (
        lambda: mb.project_configuration(ARM, [HOLD], Z * np.nan),
        "q must be finite, got",
    ),
    "a goal from nan": (
        lambda: mb.inverse_kinematics(ARM, "tip", GOAL, q0=Z * np.nan),
        "q0 must be finite",
    ),
    "three weights": (
        lambda: mb.inverse_kinematics(ARM, "tip", GOAL, weights=[1, 1, 1]),
        r"weights, linear part first, must have shape \(\) or \(6,\), got \(3,\)",
    ),
    "a negative tolerance": (
        lambda: mb.inverse_kinematics(ARM, "tip", GOAL, tolerance=-1.0),
        "tolerance must not be negative",
    ),
    "negative friction": (lambda: mb.Ground(friction=-1.0), "Ground friction must not be negative"),
    "friction of nan": (lambda: mb.Ground(friction=np.nan), "Ground friction must be a number"),
    "a negative radius": (lambda: mb.sphere("a", -1.0), "Contacts on 'a': radius must not be neg"),
    "a negative capsule": (lambda: mb.capsule("a", 0.1, -1.0), "capsule length must not be neg"),
    "a coordinate of a follower": (
        lambda: gripper().q_slice("right"),
        "joint 'right' of 'robot' follows 'left' and has no coordinates of its own",
    ),
    "an encoder on a follower": (
        lambda: mb.encoder(gripper(), np.zeros(1), "right"),
        "joint 'right' of 'robot' follows 'left'",
    ),
    "a motor on a follower": (
        lambda: mb.actuator_torque(gripper(), [mb.Motor("right")], *np.zeros((3, 1))),
        "joint 'right' of 'robot' follows 'left'",
    ),
    "the name of the base's joint": (
        lambda: named_as_the_root().build("floating"),
        "'root_joint' joins a floating base; rename your joint",
    ),
    "a joint without coordinates": (
        lambda: mb.user_joint("x", 0, None, None),
        "user_joint 'x': size must be a whole number of at least 1",
    ),
    "zero at nan": (lambda: one_body(zero_at=np.nan), "joint 'j': zero_at must be finite"),
    "a place of two numbers": (
        lambda: mb.Closure("world", "tip", place=(1.0, 2.0)),
        "Closure place must have shape",
    ),
    "an offset of nan": (lambda: mb.Coupling({"j": 1.0}, np.nan), "Coupling offset must be finite"),
    "a coupling of many coordinates": (
        lambda: mb.constraint_error(ball(), [mb.Coupling({"root_joint": 1.0})], mb.neutral(ball())),
        "joint 'root_joint' has 6 velocities; a Coupling is of",
    ),
    "torques of another size": (
        lambda: mb.contact_step(
            ARM, mb.rest_state(ARM), 1e-3, [mb.sphere("tip", 0.1)], mb.Ground(), u=np.zeros(2)
        ),
        r"u must have shape \(3,\)",
    ),
    "a speed without a torque": (
        lambda: mb.Motor("j", no_load_speed=10.0),
        "Motor of 'j': a no_load_speed needs a stall_torque",
    ),
    "two arms for one joint": (
        lambda: mb.Drive(("j",), [1.0, 2.0]),
        r"Drive of 'j': arms must have shape \(1,\)",
    ),
    "a range inside out": (
        lambda: mb.Drive(("j",), [1.0], force_range=[1.0, -1.0]),
        r"Drive of 'j': force_range must be \(lower, upper\)",
    ),
    "no counts": (
        lambda: mb.encoder(ARM, Z, "j0", counts=0.0),
        "encoder counts, per rad or m, must",
    ),
    "no gear": (lambda: mb.Motor("j", gear=0.0), "Motor of 'j': gear must be finite and not zero"),
    "a negative stall": (lambda: mb.Motor("j", stall_torque=-1.0), "stall_torque must not be neg"),
    "a servo that pushes": (lambda: mb.Servo("j", stiffness=-1.0), "stiffness must not be neg"),
    "no lag": (
        lambda: mb.Lagged(mb.Motor("j"), time_constant=0.0),
        "time_constant, in s, must be positive and finite",
    ),
    "an endless damping": (lambda: one_body(damping=np.inf), "joint 'j': damping must be finite"),
    "friction of a joint without limit": (
        lambda: one_body(friction=np.inf),
        "joint 'j': friction must be finite",
    ),
    "an endless stop": (lambda: one_body(limit_frequency=np.inf), "limit_frequency must be finite"),
    "nowhere to be": (
        lambda: one_body(lower=np.inf),
        "joint 'j': lower=inf leaves the joint no position at all",
    ),
    "an endless muscle": (
        lambda: mb.Muscle("j", peak=np.inf, length_range=[0.0, 1.0]),
        "Muscle of 'j': peak must be finite",
    ),
    "a muscle without a gear": (
        lambda: mb.Muscle("j", peak=1.0, length_range=[0.0, 1.0], gear=0.0),
        "Muscle of 'j': gear must be finite and not zero",
    ),
    "a softness that swings up": (
        lambda: mb.Softness(damping=-1.0),
        "Softness damping must not be negative",
    ),
    "a field of one size": (
        lambda: mb.HeightField(np.zeros((2, 2)), 1.0),
        r"HeightField size, along x and y, must have shape \(2,\)",
    ),
    "soft contact with endless friction": (
        lambda: mb.soft_dynamics(
            ball(),
            0.0,
            at(0.1),
            contacts=[mb.sphere("ball", 0.1)],
            ground=mb.Ground(friction=np.inf),
        ),
        "Ground friction must be finite in soft_dynamics",
    ),
    "a negative weight": (
        lambda: mb.inverse_kinematics(ARM, "tip", GOAL, weights=-1.0),
        "weights must not be negative",
    ),
    "one body that avoids itself": (
        lambda: mb.inverse_kinematics(
            ARM, "tip", GOAL, avoid=[(mb.sphere("link2", 0.1), mb.sphere("tip", 0.1))]
        ),
        "avoid: 'link2' and 'tip' are one body; nothing changes their distance",
    ),
}


def gripper():
    b = mb.Builder()
    for name, mimic in (("left", None), ("right", mb.Mimic("left", -1.0))):
        b.add_body(name, 0.1, inertia=[1e-4, 1e-4, 1e-4])
        b.attach(name, joint=name, kind="prismatic", mimic=mimic)
    return b.build()


def named_as_the_root():
    b = mb.Builder()
    for name in "ab":
        b.add_body(name, 1.0, inertia=[1, 1, 1])
    b.attach("b", "a", joint="root_joint")
    return b


def indefinite():
    b = mb.Builder()
    b.add_body("a", 1.0, inertia=[[1, 2, 0], [2, 1, 0], [0, 0, 1]])
    b.attach("a", joint="j")
    return b


@pytest.mark.parametrize("case", WRONG)
def test_an_error_teaches(case):
    call, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        call()


TYPES = {
    "half a step": (
        lambda: mb.project_configuration(ARM, [HOLD], Z, steps=2.5),
        "steps must be a whole number of at least 0",
    ),
    "a model merged": (lambda: builder().merge(ARM), r"other must be a Builder, got Model; read\("),
    "a seed": (lambda: mb.random_configuration(ARM, 0), r"rng must be a numpy.random.Generator"),
    "one closure": (
        lambda: mb.constraint_error(ARM, HOLD, Z),
        "closures must be a list",
    ),
    "an array for a state": (
        lambda: mb.contact_step(ARM, np.zeros(6), 1e-3, [mb.sphere("tip", 0.1)], mb.Ground()),
        r"x must be a State, got ndarray; write State\(q=..., v=...\)",
    ),
    "one shape": (
        lambda: mb.contact_step(ARM, mb.rest_state(ARM), 1e-3, mb.sphere("tip", 0.1), mb.Ground()),
        "contacts must be a list of Contacts",
    ),
    "a ground in a list": (
        lambda: mb.contact_step(
            ARM, mb.rest_state(ARM), 1e-3, [mb.sphere("tip", 0.1)], [mb.Ground()]
        ),
        "ground must be a Ground, got list",
    ),
    "an array under closures": (
        lambda: mb.constrained_dynamics(ARM, [HOLD], 0.0, Z),
        r"x must be a State, got ndarray; write State\(q=..., v=...\)",
    ),
    "a matrix for a target": (
        lambda: mb.inverse_kinematics(ARM, "tip", np.eye(4)),
        "target must be a Transformation",
    ),
    "a number for a terrain": (
        lambda: mb.Ground(height=2.0),
        r"Ground height must be a function \(x, y\), got float",
    ),
    "one task": (
        lambda: mb.whole_body_control(
            ARM, mb.rest_state(ARM), mb.posture_task(ARM, mb.rest_state(ARM), Z)
        ),
        r"tasks must be a list, got Task; write \[...\]",
    ),
    "two lags": (
        lambda: mb.Lagged(mb.Lagged(mb.Motor("j"), 0.1), 0.1),
        "Lagged actuator must be one without a lag or delay, got Lagged",
    ),
    "a delay behind a lag": (
        lambda: mb.Lagged(mb.Delayed(mb.Motor("j"), 0.1, 2), 0.1),
        r"got Delayed, which would not act; a delay goes outside: Delayed\(Lagged",
    ),
    "two delays": (
        lambda: mb.Delayed(mb.Delayed(mb.Motor("j"), 0.1, 2), 0.1, 2),
        "Delayed actuator must not be Delayed itself",
    ),
}


@pytest.mark.parametrize("case", TYPES)
def test_a_wrong_type_is_named(case):
    call, message = TYPES[case]
    with pytest.raises(TypeError, match=message):
        call()


def test_merging_is_all_or_nothing():
    b, other = builder(), one_body()
    other.joints["j0"] = other.joints.pop("j")
    before = [*b.bodies], [*b.joints], [*b.frames]
    with pytest.raises(ValueError, match="joint 'j0' already exists"):
        b.merge(other, "link2")
    assert before == ([*b.bodies], [*b.joints], [*b.frames])


def test_a_builder_merged_with_itself():
    b = builder()
    b.report.ignored.append("a line")
    b.merge(b, "link2", prefix="other_")
    assert b.build().nv == 6 and b.report.ignored == ["a line"] * 2


def test_what_cannot_be_reached_is_said():
    found = mb.inverse_kinematics(ARM, "tip", GOAL)
    assert not found.success and np.isfinite(found.q).all()
    assert np.all((found.q >= ARM.lower) & (found.q <= ARM.upper))
    held = mb.project_configuration(ARM, [mb.Closure("world", "tip", place=(9.0, 0, 0))], Z + 0.1)
    assert np.abs(mb.constraint_error(ARM, [HOLD], held)).max() > 0.1


@pytest.mark.parametrize("step", [-1e-3, 0.0, np.nan, np.inf])
def test_steps_are_positive(step):
    with pytest.raises(ValueError, match="step, in s, must be positive and finite"):
        mb.contact_step(ARM, mb.rest_state(ARM), step, [mb.sphere("tip", 0.1)], mb.Ground())


@pytest.mark.parametrize("restitution", [-0.1, 1.1, np.nan])
def test_restitutions_are_fractions(restitution):
    with pytest.raises(ValueError, match="restitution must be between 0 and 1"):
        mb.contact_step(
            ARM, mb.rest_state(ARM), 1e-3, [mb.sphere("tip", 0.1)], mb.Ground(),
            restitution=restitution,
        )  # fmt: skip


def ball():
    b = mb.Builder("ball")
    b.add_body("ball", 1.0, inertia=[0.004, 0.004, 0.004])
    return b.build("floating")


def at(height, speed=0.0):
    return mb.State(np.array([0, 0, height, 1, 0, 0, 0.0]), np.array([0, 0, speed, 0, 0, 0.0]))


@pytest.mark.long
def test_contact_at_exactly_zero_distance():
    model, shapes, ground = ball(), [mb.sphere("ball", 0.1)], mb.Ground()
    x = mb.contact_step(model, at(0.1), 1e-3, shapes, ground)
    np.testing.assert_array_equal(x.v, 0.0)
    np.testing.assert_array_equal(x.q, at(0.1).q)
    assert not mb.contact_forces(model, at(0.1).q, np.zeros(6), shapes, ground)["ball"].any()


@pytest.mark.parametrize("step", [0.1, 1.0, 10.0])
@pytest.mark.long
def test_huge_steps_stay_above_the_ground_and_lose_energy(step):
    model, shapes, ground = ball(), [mb.sphere("ball", 0.1)], mb.Ground()
    x = at(1.0, -5.0)
    for _ in range(5):
        before = mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)
        x = mb.contact_step(model, x, step, shapes, ground)
        after = mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)
        assert x.q[2] > 0.1 - 1e-9 and after <= before + 1e-9
    assert x.q[2] == pytest.approx(0.1) and np.abs(x.v).max() < 1e-9


def test_a_loop_in_a_singular_position():
    """A parallelogram laid flat, which can go on in two ways: velocities stay within both."""
    b = mb.Builder("flat")
    for name, parent, x, length in (
        ("crank", "world", 0.0, 0.5), ("coupler", "crank", 0.5, 1.0), ("rocker", "world", 1.0, 0.5),
    ):  # fmt: skip
        b.add_body(name, length, [length / 2, 0, 0], [0.01, 0.1, 0.1])
        b.attach(name, parent, joint=name, axis=[0, 1, 0], position=[x, 0, 0])
        b.add_frame(f"{name}_end", name, position=[length, 0, 0])
    flat, loop = b.build(), [mb.Closure("coupler_end", "rocker_end", "revolute", axis=(0, 1, 0))]
    assert not mb.constraint_error(flat, loop, Z).any()
    J = mb.constraint_jacobian(flat, loop, Z)
    assert np.linalg.matrix_rank(J) == 1  # of two in general position
    v = mb.project_velocity(flat, loop, Z, np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(J @ v, 0.0, atol=1e-9)
    a, _ = mb.constrained_acceleration(flat, loop, Z, v, Z)
    assert np.isfinite(a).all()


def test_quaternions_of_any_length():
    b = builder(2)
    hull = mb.Builder("hull")
    hull.add_body("hull", 3.0, [0.1, 0, 0], [0.1, 0.1, 0.1])
    hull.merge(b, "hull")
    model = hull.build("floating")
    rng = np.random.default_rng(0)
    q, v, a = mb.random_configuration(model, rng), *rng.normal(size=(2, model.nv))
    long = q.copy()
    long[3:7] *= 3.0
    for function, given in (
        (mb.rnea, (v, a)), (mb.aba, (v, a)), (mb.crba, ()), (mb.coriolis_matrix, (v,)),
        (mb.center_of_mass, ()), (mb.frame_jacobian, ("tip",)), (mb.centroidal_momentum, (v,)),
    ):  # fmt: skip
        np.testing.assert_allclose(
            function(model, long, *given), function(model, q, *given), rtol=1e-12, atol=1e-12
        )
    np.testing.assert_allclose(mb.difference(model, q, long), 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="quaternion q must be finite and not zero"):
        mb.rnea(model, 0.0 * q, v, a)


def test_a_search_from_single_precision_succeeds():
    goal = mb.frame_pose(ARM, np.array([0.3, 0.4, 0.2]), "tip")
    found = mb.inverse_kinematics(ARM, "tip", goal, np.full(3, 0.1, np.float32))
    assert found.success and found.position_error < 1e-9


def test_feet_with_friction_without_limit():
    feet = [mb.sphere("ball", 0.1)]
    found = mb.whole_body_control(ball(), at(0.1), [], feet, mb.Ground(friction=np.inf))
    np.testing.assert_allclose(found.force, [[0.0, 0.0, 9.81]], atol=1e-3)


def test_float32_states_are_as_exact_as_they_are():
    rng = np.random.default_rng(1)
    q, v, tau = rng.normal(size=(3, 3)).astype(np.float32)
    exact = mb.aba(ARM, *(x.astype(float) for x in (q, v, tau)))
    made = mb.aba(ARM, q, v, tau)
    np.testing.assert_allclose(made, exact, rtol=1e-5)
    compiled = arc.compile(lambda q, v, tau: mb.aba(ARM, q, v, tau))(q, v, tau)
    np.testing.assert_allclose(compiled, exact, rtol=1e-5)


def test_angles_beyond_a_turn():
    q = np.array([0.3, -0.2, 0.7])
    far = q + 2 * np.pi * np.array([5, -3, 40])
    np.testing.assert_allclose(mb.aba(ARM, far, Z, Z), mb.aba(ARM, q, Z, Z), atol=1e-11)


@pytest.mark.long
def test_models_are_arguments():
    q = Z + 0.1
    swing = arc.compile(lambda model, q: mb.aba(model, q, q, q))
    np.testing.assert_allclose(swing(ARM, q), mb.aba(ARM, q, q, q), atol=1e-12)
    heavy = ARM.replace(masses=2.0 * ARM.masses)
    np.testing.assert_allclose(swing(heavy, q), mb.aba(heavy, q, q, q), atol=1e-12)
    small = builder(2).build()
    np.testing.assert_allclose(swing(small, q[:2]), mb.aba(small, *[q[:2]] * 3), atol=1e-12)
    slope = arc.grad(lambda model: np.sum(mb.aba(model, q, Z, Z)))(ARM).masses
    step = 1e-6
    for k in range(3):
        up, down = (ARM.masses + s * np.eye(3)[k] for s in (step, -step))
        rate = sum(
            s * mb.aba(ARM.replace(masses=m), q, Z, Z).sum() for s, m in ((1, up), (-1, down))
        )
        assert slope[k] == pytest.approx(rate / (2 * step), rel=1e-6)
    many = arc.vmap(lambda masses: mb.aba(ARM.replace(masses=masses), q, Z, Z))
    rows = np.stack([ARM.masses, 2.0 * ARM.masses])
    np.testing.assert_allclose(many(rows)[1], mb.aba(heavy, q, Z, Z), atol=1e-12)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies(copied):
    model, b = copied(ARM), copied(builder())
    assert model == ARM and model.frame_names == ARM.frame_names
    np.testing.assert_array_equal(mb.aba(model, Z, Z, Z), mb.aba(ARM, Z, Z, Z))
    assert not model.masses.flags.writeable
    b.remove("link2")
    assert b.build().nv == 2


def test_nan_goes_through_and_is_not_hidden():
    assert np.isnan(mb.rnea(ARM, Z * np.nan, Z, Z)).all()
    assert np.isnan(mb.aba(ARM, Z, Z * np.nan, Z)).any()
    assert np.isnan(mb.aba(ARM, Z + np.inf, Z, Z)).all()


def test_motors_without_a_limit_have_derivatives():
    for values in ({}, {"stall_torque": 1.0}, {"stall_torque": 1.0, "no_load_speed": 10.0}):
        motor = mb.Motor("j0", gear=2.0, **values)
        total = lambda v, motor=motor: np.sum(mb.actuator_torque(ARM, [motor], Z, v, [0.3]))
        np.testing.assert_array_equal(arc.grad(total)(Z + 0.1), 0.0)
