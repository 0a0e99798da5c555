"""Builders changed in odd orders, copied, pickled, and filled with arrays that change later."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.spatial import EulerAngles, Quaternion, Transformation

from .test_builder import arm


def test_arrays_given_to_a_builder_may_be_changed_afterwards():
    """One array filled again for each body, as loops do."""
    b, p, com, J, low = mb.Builder(), np.zeros(3), np.zeros(3), np.eye(3), np.array([-1.0])
    for k in range(2):
        b.add_body(f"l{k}", 1.0, com, J)
        b.attach(f"l{k}", f"l{k - 1}" if k else "world", joint=f"j{k}", position=p, lower=low)
        b.add_frame(f"f{k}", f"l{k}", position=p)
        for array in (p, com, J, low):
            array += 1.0
    model = b.build(physical=False)
    assert np.array_equal(model.positions, [[0, 0, 0], [1, 1, 1]])
    assert np.array_equal(model.centers, [[0, 0, 0], [1, 1, 1]])
    assert np.array_equal(model.inertias, [np.eye(3), np.eye(3) + 1])
    assert np.array_equal(model.lower, [-1, 0])
    assert np.array_equal(model.frame_positions[model.frame("f0")], [0, 0, 0])


def test_joints_are_locked_together_or_not_at_all():
    b = arm()
    b.add_body("follower", 0.5, inertia=[1, 1, 1])
    b.attach("follower", "link0", joint="f", mimic=mb.Mimic("j1", -2.0, 0.1))
    for wrong, message in (
        ({"j0": 0.5, "j1": 3.0}, "joint 'j1' at 3.0 is beyond its upper limit"),
        ({"j1": 0.5, "f": 0.3}, "joint 'f' follows 'j1' and is at -0.9 then, not at 0.3"),
    ):
        with pytest.raises(ValueError, match=message):
            b.lock(wrong)
        assert b.build().nq == 3
    b.lock({"j1": 0.5, "f": -0.9})
    assert b.build().joint_names == ("j0", "j2")


def test_a_copied_builder_has_a_report_of_its_own():
    b = arm()
    b.actuators.append(mb.Motor("j1"))
    other = copy.copy(b)
    other.lock({"j1": 0.0})
    assert other.report.ignored and not b.report.ignored


def test_merged_closures_to_the_world_move_along():
    other, q = arm(2), np.array([0.3, 0.4])
    other.add_frame("tip", "link1", position=[0, 0, 1.0])
    at = mb.frame_pose(other.build(), q, "tip").t
    other.closures.append(mb.Closure("world", "tip", "spherical", place=tuple(at)))
    b = mb.Builder("cart")
    b.add_body("cart", 1.0, inertia=[1, 1, 1])
    b.attach("cart", joint="track", kind="prismatic", axis=[1, 0, 0])
    turned = EulerAngles([0.1, 0.2, 0.3])
    b.merge(other, "cart", prefix="p_", rotation=turned, position=[1, 2, 3])
    model = b.build()
    for track in (0.0, 0.7):
        error = mb.constraint_error(model, model.closures, np.array([track, *q]))
        assert np.abs(error).max() < 1e-14


def test_shapes_of_the_world_move_along():
    """A plane and a box of a world that is put on a cart, against where a frame of it goes."""
    other = arm(2)
    other.add_frame("table", "world", position=[0.5, 0.0, 0.2])
    other.add_shape("world", "plane", [0.0, 0.0], "collision")
    other.add_shape("world", "box", [0.1, 0.2, 0.3], "collision", position=[0.5, 0.0, 0.2])
    b = mb.Builder("cart")
    b.add_body("cart", 1.0, inertia=[1, 1, 1])
    b.attach("cart", joint="track", kind="prismatic", axis=[1, 0, 0])
    turned = EulerAngles([0.1, 0.2, 0.3])
    b.merge(other, "cart", prefix="p_", rotation=turned, position=[1, 2, 3])
    b.merge(other, prefix="w_")
    model = b.build()
    plane, box, still, _ = model.geometry
    assert (plane.body, box.body, still.body) == ("cart", "cart", "world")
    cart, table = (mb.frame_pose(model, mb.neutral(model), k) for k in ("cart", "p_table"))
    assert np.abs(cart.apply(np.array(box.position)) - table.t).max() < 1e-15
    assert np.abs(cart.r.as_matrix() @ plane.rotation - table.r.as_matrix()).max() < 1e-15


def test_merging_where_the_base_would_be_welded_by_a_name_that_is_taken():
    other = mb.Builder("gripper")
    for name in ("base", "finger"):
        other.add_body(name, 1.0, inertia=[1, 1, 1])
    other.attach("finger", "base", joint="link1_base")
    b = arm(2)
    b.merge(other, "link1")
    assert b.build().joint_names == ("j0", "j1", "link1_base")


def test_removing_leaves_what_only_shares_a_name():
    """Joints and frames have names of their own; what went with a body is reported."""
    b = arm(3)
    b.add_frame("j2", "link0")
    b.closures += [mb.Closure("world", "j2"), mb.Coupling({"j0": 1.0, "j2": 1.0})]
    b.add_tendon("t", {"j0": 1.0, "j2": 1.0})
    b.actuators.append(mb.Motor("j2"))
    b.remove("link2")
    assert b.closures == [mb.Closure("world", "j2")]
    assert not b.tendons and not b.actuators
    assert b.report.ignored == [
        "arm: tendon 't' of ['j0', 'j2']: ['j2'] went with 'link2'",
        "arm: a closure of ['j0', 'j2']: ['j2'] went with 'link2'",
    ]


def test_many_models_in_one_are_printed_without_numbers():
    model = arm(2).build()
    many = model.replace(masses=np.ones((3, 2)), lower=np.zeros((3, 2)))
    assert repr(many) == "Model('arm': 2 bodies, nq=2, nv=2)"
    assert str(many).splitlines()[1] == "└─ j0 (revolute) → link0"


def test_axes_of_any_length():
    b = arm(1)
    for k, size in enumerate((1e-200, 1e200)):
        b.add_body(f"x{k}", 1.0, inertia=[1, 1, 1])
        b.attach(f"x{k}", "link0", joint=f"x{k}", axis=[3 * size, 0, -4 * size])
        assert np.allclose(b.joints[f"x{k}"].screw.axis, [0.6, 0, -0.8], rtol=1e-15)


def on_circle(q):
    return Transformation(np.stack([np.cos(q[0]), np.sin(q[0]), 0.0 * q[0]]), Quaternion.identity())


def along_circle(q):
    return np.stack([-np.sin(q), np.cos(q), *[0.0 * q] * 4])


def test_joints_of_your_own_are_pickled():
    b = mb.Builder()
    b.add_body("bead", 2.0, inertia=[1, 1, 1])
    b.attach("bead", joint="wire", kind=mb.user_joint("circle", 1, on_circle, along_circle))
    model = b.build()
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert again.links[0].kind == mb.user_joint("circle", 1, on_circle, along_circle)
    assert np.array_equal(mb.rnea(again, [0.3], [1.0], [2.0]), mb.rnea(model, [0.3], [1.0], [2.0]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda x: {"anchor": [x, 0, 0]}, "joint 'j': anchor must be known, not traced"),
        (lambda x: {"kind": "helical", "pitch": x}, "joint 'j': pitch.* must be known, not traced"),
        (lambda x: {"mimic": mb.Mimic("j0", x)}, "Mimic of 'j0': multiplier must be known"),
    ],
)
def test_what_cannot_be_traced_is_said_by_name(given, message):
    first = arm(1)

    def build(x):
        b = copy.copy(first)
        b.add_body("last", 1.0, inertia=[1, 1, 1])
        b.attach("last", "link0", joint="j", **given(x))
        return b.build().masses

    with pytest.raises(ValueError, match=message):
        arc.jac(build)(np.array(0.3))


def test_a_zero_may_be_traced():
    first = arm(1)

    def height(x):
        b = copy.copy(first)
        b.add_body("last", 1.0, inertia=[1, 1, 1])
        b.attach("last", "link0", joint="j", axis=[0, 1, 0], zero_at=x)
        b.add_frame("tip", "last", position=[0.3, 0, 0])
        return mb.frame_pose(b.build(), np.array([0.0, 0.5]), "tip").t[2]

    assert abs(arc.jac(height)(np.array(0.2)) - 0.3 * np.cos(0.3)) < 1e-15


def test_locking_a_quaternion_takes_all_of_it():
    b = mb.Builder()
    for name, parent in (("a", "world"), ("b", "a")):
        b.add_body(name, 1.0, inertia=[1, 1, 1])
        b.attach(name, parent, joint=name, kind="spherical" if name == "a" else "revolute")
    for value in (0.0, np.zeros(4)):
        with pytest.raises(ValueError, match="joint 'a' has a quaternion: give all 4 coordinates"):
            b.lock({"a": value})


def bodies(n, **values):
    """Return a builder of a chain without random numbers."""
    b = mb.Builder("chain")
    for k in range(n):
        b.add_body(f"l{k}", 1.0, inertia=[1, 1, 1])
        b.attach(f"l{k}", f"l{k - 1}" if k else "world", joint=f"j{k}", **values)
    return b


def universal(b):
    b.add_body("u", 1.0, inertia=[1, 1, 1])
    b.attach("u", "l1", joint="u", kind="universal", second_axis=[1, 0, 0], upper=[1.0, 2.0])
    b.lock({"u": [0.0, 3.0]})


WRONG = {
    "beyond the limit of a second axis": (universal, "joint 'u' at .* is beyond its upper limit"),
    "many centres": (lambda b: b.add_body("x", 1.0, np.zeros((5, 3))), "body 'x': com must have s"),
    "many places": (
        lambda b: b.add_frame("f", "l0", position=np.zeros((5, 3))),
        r"frame 'f' position must have shape \(3,\), got \(5, 3\): a builder makes one model",
    ),
    "many turns": (
        lambda b: b.add_frame("f", "l0", rotation=np.stack([np.eye(3)] * 2)),
        r"frame 'f' rotation must have shape \(3, 3\)",
    ),
    "no name": (lambda b: b.attach("l0", joint=""), "a joint needs a name, got ''"),
    "a name for a mimic": (
        lambda b: b.attach("l0", joint="x", mimic="j0"),
        r"joint 'x': mimic must be a Mimic, got str; write Mimic\(joint, multiplier",
    ),
    "a list to lock": (lambda b: b.lock(["j0"]), "lock takes coordinates by joint"),
    "an arm of nan": (
        lambda b: b.add_tendon("t", {"j0": np.nan}),
        "tendon 't': arm of 'j0' must be finite",
    ),
    "three lengths": (
        lambda b: b.add_tendon("t", {"j0": 1.0}, rest=[1, 2, 3]),
        r"tendon 't': rest, a length or \(lower, upper\), must have shape",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused_by_name(case):
    call, message = WRONG[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call(bodies(2))


def test_joints_of_your_own_move_as_they_say():
    """A subspace that is not the transform's derivative would be physics of no joint."""
    with pytest.raises(ValueError, match=r"joint kind 'circle': at q = .* column 0 of subspace is"):
        mb.user_joint("circle", 1, on_circle, lambda q: -along_circle(q))
    with pytest.raises(TypeError, match=r"returns must be a Transformation, got nda"):
        mb.user_joint("circle", 1, lambda q: q, along_circle)
    with pytest.raises(ValueError, match=r"subspace must be \(6, 2\)"):
        mb.user_joint("circle", 2, on_circle, lambda q: np.zeros((6, 1)))

    def height(radius):
        def place(q):
            circle = on_circle(q)
            return Transformation(radius * circle.t, circle.r)

        b = mb.Builder()
        b.add_body("bead", 2.0, inertia=[1, 1, 1])
        kind = mb.user_joint("circle", 1, place, lambda q: radius * along_circle(q))
        b.attach("bead", joint="wire", kind=kind)
        return mb.frame_pose(b.build(), np.array([0.3]), "bead").t[1]

    assert arc.jac(height)(np.array(2.0)) == pytest.approx(np.sin(0.3))
