"""Random robots: trees of any shape with every kind of joint."""

from __future__ import annotations

import numpy as np

from archimedes import multibody as mb
from archimedes.multibody.parts.joints import KINDS, rotation_about
from archimedes.spatial import RotationMatrix, Transformation

__all__ = ["EVERY_KIND", "SWING", "random_tree"]


def _swing_pose(q):
    """A body that turns about z at the end of an arm of length 0.3 that turns about y."""
    R = rotation_about((0.0, 1.0, 0.0), q[0]) @ rotation_about((0.0, 0.0, 1.0), q[1])
    place = np.stack([0.3 * np.cos(q[0]), 0.0 * q[0], -0.3 * np.sin(q[0])])
    return Transformation(place, RotationMatrix.make(R))


def _swing_motion(q):
    """Velocity in the child's axes: S changes with q[1]."""
    c, s = np.cos(q[1]), np.sin(q[1])
    # The arm's end moves by -0.3 along its own z; R' of a turn about z takes it to the child.
    zero = 0.0 * c
    first = np.stack([zero, zero, zero - 0.3, s, c, zero])
    return np.stack([first, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])], axis=1)


#: A kind whose motions are not constant in the child's axes.
SWING = mb.user_joint("swing", 2, _swing_pose, _swing_motion)
EVERY_KIND = (*(name for name in KINDS if name != "fixed"), "mimic")


def random_axis(rng):
    if rng.random() < 0.5:
        return np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    axis = rng.normal(size=3)
    return axis / np.sqrt(axis @ axis)


def across(second, axis):
    """Return a second axis that is not along the first."""
    return np.roll(second, 1) if abs(second @ axis) > 0.999 else second


def random_inertia(rng):
    """Return a mass, a centre and an inertia that a cloud of points has."""
    points = rng.normal(size=(6, 3)) * 0.2
    masses = rng.uniform(0.1, 1.0, 6)
    center = masses @ points / masses.sum()
    arms = points - center
    J = sum(m * ((r @ r) * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True))
    return masses.sum(), center, J


def random_tree(seed, kinds=EVERY_KIND, size=None, armature=True, loaded=False):
    """Return a model with joints of these kinds in random order, on random parents."""
    rng = np.random.default_rng(seed)
    chosen = [*kinds] if size is None else [kinds[k] for k in rng.integers(len(kinds), size=size)]
    rng.shuffle(chosen)
    b = mb.Builder(f"tree {seed}")
    names, single = ["world"], []
    for n, kind in enumerate(chosen):
        name = f"body{n}"
        b.add_body(name, *random_inertia(rng))
        mimic = None
        if kind == "mimic":
            kind = ("revolute", "prismatic")[rng.integers(2)]
            if single:
                source = single[rng.integers(len(single))]
                mimic = mb.Mimic(source, rng.normal(), rng.normal())
        if kind in ("revolute", "prismatic", "helical", "continuous") and mimic is None:
            single.append(f"joint{n}")
        values = {"armature": rng.uniform(0.0, 0.3)} if armature and mimic is None else {}
        if loaded and mimic is None:
            values |= {"damping": rng.uniform(), "friction": rng.uniform()}
            values |= {"stiffness": rng.uniform()}
        axis, pitch = random_axis(rng), 0.0
        second = across(random_axis(rng), axis) if kind == "universal" else None
        anchor = rng.normal(size=3) * 0.1 if kind in ("revolute", "spherical") else (0, 0, 0)
        if kind == "helical":
            pitch = rng.normal() * 0.2
        b.attach(
            name, names[rng.integers(len(names))], joint=f"joint{n}", kind=kind,
            axis=axis, second_axis=second, anchor=anchor, pitch=pitch,
            rotation=rotation_about(random_axis(rng), rng.normal()),
            position=rng.normal(size=3) * 0.4, mimic=mimic, **values,
        )  # fmt: skip
        names.append(name)
    return b.build()


def random_state(model, seed):
    rng = np.random.default_rng(seed)
    q = mb.random_configuration(model, rng)
    return q, rng.normal(size=model.nv), rng.normal(size=model.nv)
