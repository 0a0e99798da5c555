"""Attitude classes enter themselves; a user's class in another file joins by its ``name``."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes import spatial
from archimedes.spatial import AttitudeBase, EulerAngles, Quaternion, RigidBody, Transformation
from tests.spatial.gibbs_vector import GibbsVector

Q = Quaternion([0.8, 0.2, -0.4, 0.4]).normalize()
OTHERS = {"quat": (), "euler": ("zyx",), "rotvec": (), "mrp": (), "matrix": (), "gibbs": ()}


@pytest.mark.parametrize("source", OTHERS)
@pytest.mark.parametrize("target", OTHERS)
def test_any_class_converts_to_any_other(source, target):
    start = Q.to(source, *OTHERS[source])
    made = start.to(target, *OTHERS[target])
    assert type(made) is type(Q.to(target, *OTHERS[target]))
    np.testing.assert_allclose(made.as_matrix(), Q.as_matrix(), atol=1e-14)


def test_a_users_class_does_what_ours_do():
    g = Q.to("gibbs")
    assert type(g) is GibbsVector
    np.testing.assert_allclose(g.array, Q.array[1:] / Q.array[0], rtol=1e-15)
    np.testing.assert_allclose(g.as_euler().array, Q.as_euler().array, atol=1e-14)
    np.testing.assert_allclose((g * Q).as_matrix(), Q.as_matrix() @ g.as_matrix(), atol=1e-14)
    assert type(g.inv()) is GibbsVector and bool(g.approx_equal(Q))
    assert type(GibbsVector.from_euler([0.1, 0.2, 0.3], "xyz")) is GibbsVector
    both = GibbsVector(np.stack([g.array, -g.array]))
    np.testing.assert_allclose(both.as_quat().array[1], Q.inv().array, atol=1e-14)
    assert type((Transformation(np.ones(3), g) @ Transformation(np.ones(3), Q)).r) is Quaternion


def test_a_users_class_in_a_recording():
    u = RigidBody.Input(np.ones(3), np.array([0.1, 0.2, 0.3]), 2.0, np.diag([1.0, 2.0, 3.0]))
    x = RigidBody.State(np.zeros(3), Q.to("gibbs"), np.array([1.0, 2.0, 3.0]), np.ones(3))
    eager = RigidBody.dynamics(0.0, x, u)
    for backend in ("interpreter", "llvm"):
        compiled = arc.compile(RigidBody.dynamics, backend=backend)(0.0, x, u)
        assert type(compiled.att) is GibbsVector
        np.testing.assert_array_equal(compiled.att.array, eager.att.array)
    turned = arc.compile(lambda q: q.to("gibbs"))(Q)
    np.testing.assert_array_equal(turned.array, Q.to("gibbs").array)


def test_kinematics_of_the_users_class_agree_with_the_quaternions():
    w_B = np.array([0.3, -0.1, 0.2])
    rate = Q.kinematics(w_B, baumgarte=0.0).array
    expected = arc.jvp(lambda q: q[1:] / q[0])(Q.array, rate)
    np.testing.assert_allclose(Q.to("gibbs").kinematics(w_B).array, expected, atol=1e-15)


def test_unknown_names_are_errors_that_list_the_known():
    with pytest.raises(ValueError, match=r"no attitude class is named 'quaternion': write one of "):
        Q.to("quaternion")
    with pytest.raises(ValueError, match=r"'quat'.*'gibbs'"):
        EulerAngles([0.1, 0.2, 0.3]).to("quaternion")


def test_a_name_has_one_class():
    with pytest.raises(ValueError, match=r"name='quat' is taken by .*\.Quaternion; choose another"):

        class Other(AttitudeBase, name="quat"):
            pass

    assert type(Q.to("quat")) is Quaternion


def test_a_definition_that_is_run_again_replaces_itself():
    def define():
        class Again(AttitudeBase, name="run again"):
            @classmethod
            def of_quaternion(cls, q):
                return cls

        return Again

    first, second = define(), define()
    assert first is not second and Q.to("run again") is second


def test_a_class_without_a_name_is_not_entered():
    class Unnamed(AttitudeBase):
        pass

    with pytest.raises(ValueError, match="no attitude class is named 'Unnamed'"):
        Q.to("Unnamed")


def test_the_base_names_no_class():
    folder = Path(spatial.__file__).parent / "attitudes"
    names = {"Quaternion", "EulerAngles", "RotationMatrix", "RotationVector", "ModifiedRodrigues"}
    tree = ast.parse((folder / "attitude_base.py").read_text(encoding="utf-8"))
    assert names.isdisjoint(n.id for n in ast.walk(tree) if isinstance(n, ast.Name))
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    assert names.isdisjoint(texts)
