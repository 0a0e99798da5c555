"""Dynamics of robots as C: the same bits as in Python, as the verification of codegen shows."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .robots import path_of


def project(name, base, function):
    model = mb.load(path_of(name), base)
    state = (mb.neutral(model), np.zeros(model.nv), np.zeros(model.nv))

    def torque_or_acceleration(q, v, a):
        return function(model, q, v, a)

    return arc.codegen(torque_or_acceleration, state, verify=True), model


def test_forward_dynamics_of_an_arm():
    made, model = project("finger_edu", "fixed", mb.aba)
    text = "".join(str(content) for content in made.files.values())
    assert "malloc" not in text and "#include <math.h>" not in text
    assert model.nv == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "base", "function"), [("xarm7", "fixed", mb.aba), ("go1", "floating", mb.rnea)]
)
def test_arms_and_quadrupeds(name, base, function):
    made, _ = project(name, base, function)
    assert made.files
