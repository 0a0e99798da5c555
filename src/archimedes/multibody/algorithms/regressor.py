"""Torques as a product of a matrix and the inertial parameters of the bodies.

Legend: a body's ten parameters are m, m c (3), and Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin
of its frame. The force that moves it is linear in them: with v, w velocity and a', alpha its
spatial acceleration (gravity included), a = a' + w x v that of the origin,
``f = m a + (alpha x + w x w x) m c`` and ``n = I alpha + w x I w + m c x a``.
Source: Atkeson, An and Hollerbach, Estimation of inertial parameters of manipulator loads and
links, Int. J. Robotics Research 5, 1986.

Base parameters are the combinations of inertial parameters that torques depend on.

Legend: W stacks regressors of random states, (samples nv, 10 bodies). Its columns are taken from
left to right: one that is not a combination of those before it is independent, and its parameter
is the head of a base parameter; W = W_1 K with W_1 the independent columns, and the base parameters
are ``K p``. A parameter without effect has a column of zeros in K.
Source: Gautier, Numerical calculation of the base inertial parameters of robots, J. Robotic Systems
8, 1991 (QR decomposition).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import check_positive
from archimedes.multibody.algorithms import links
from archimedes.multibody.algorithms.configurations import random_configuration
from archimedes.multibody.algorithms.mass_matrix import Entries, add_entry, fill_matrix
from archimedes.spatial.components import components, cross, join
from archimedes.tree import replace
from archimedes.typing import ArrayLike, Matrix, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model
from archimedes.spatial.spatial_algebra import Spatial

__all__ = ["BaseParameters", "base_parameters", "inertial_parameters", "torque_regressor"]


def torque_regressor(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Matrix:
    """Return the matrix that gives `rnea` when multiplied by the inertial parameters.

    Its ten columns per body, in the order of `body_names`, belong to m, m c and Ixx, Ixy, Iyy, Ixz,
    Iyz, Izz about the origin of the frame of the body; see `inertial_parameters`. Torques of
    armature are not included.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    a : array (..., nv)
        Acceleration in m/s^2 and rad/s^2.

    Returns
    -------
    array (nv, 10 bodies)
        The regressor.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, inertial_parameters, rnea, torque_regressor
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> arm, state = b.build(), (np.array([0.1]), np.array([2.0]), np.array([3.0]))
    >>> Y = torque_regressor(arm, *state)
    >>> np.allclose(Y @ inertial_parameters(arm), rnea(arm, *state))
    True
    """
    q, v, a = links.check_state(model, q=q, v=v, a=a)
    coordinates, X, S = links.links_at(model, q)
    speeds, rates = components(v, model.nv), components(a, model.nv)
    v_of: list[Spatial] = []
    a_of: list[Spatial] = []
    for i, link in enumerate(model.links):
        up, vJ = link.parent, links.joint_velocity(S[i], speeds)
        a_i = X[i].motion_to_child(a_of[up] if up >= 0 else links.world_acceleration(model))
        v_i = X[i].motion_to_child(v_of[up]) + vJ if up >= 0 else vJ
        a_i = a_i + links.joint_velocity(S[i], rates) + v_i.cross(vJ)
        if (bias := links.bias_of(link, coordinates[i], speeds)) is not None:
            a_i = a_i + bias
        v_of.append(v_i)
        a_of.append(a_i)
    bodies = [i for i, link in enumerate(model.links) if link.body]
    Y: Entries = {}
    for n, body in enumerate(bodies):
        for k, force in enumerate(body_regressor(v_of[body], a_of[body])):
            for i in links.ancestors(model, body):
                for j, column in S[i]:
                    add_entry(Y, j, 10 * n + k, column.dot(force))
                force = X[i].force_to_parent(force)
    return fill_matrix(Y, (*links.leading_axes(q, v, a), model.nv, 10 * len(bodies)))


def body_regressor(v: Spatial, a: Spatial) -> list[Spatial]:
    """Return the forces that a unit of each of the ten parameters needs."""
    w, turning = v.angular, a.angular
    push = a.linear + cross(w, v.linear)
    zero = np.zeros(np.shape(push))
    forces = [Spatial(push, zero)]
    for e in np.eye(3):
        arm = np.broadcast_to(e, np.shape(push))
        forces.append(Spatial(cross(turning, arm) + cross(w, cross(w, arm)), cross(arm, push)))
    for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)):
        forces.append(Spatial(zero, unit_moment(i, j, turning) + cross(w, unit_moment(i, j, w))))
    return forces


def unit_moment(i: int, j: int, x: Vec3) -> Vec3:
    """Return the product of the inertia with ones at (i, j) and (j, i), and a vector."""
    parts = components(x, 3)
    rows = [0.0 * parts[0]] * 3
    rows[i] = parts[j]
    rows[j] = parts[i]
    return join(rows)


def inertial_parameters(model: Model) -> Vector:
    """Return the inertial parameters, by which `torque_regressor` is multiplied.

    Parameters
    ----------
    model : Model
        The robot.

    Returns
    -------
    array (10 bodies,)
        Parameters.

    Examples
    --------
    >>> from archimedes.multibody import Builder, inertial_parameters
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> inertial_parameters(b.build())
    array([2. , 1. , 0. , 0. , 0.1, 0. , 0.6, 0. , 0. , 0.6])
    """
    rows = []
    for link, I in zip(model.links, links.inertias_of(model), strict=True):
        if link.body:
            J = [I.J[0, 0], I.J[0, 1], I.J[1, 1], I.J[0, 2], I.J[1, 2], I.J[2, 2]]
            rows.append(np.concatenate([np.stack([I.m]), I.h, np.stack(J)]))
    return np.concatenate(rows)


#: Columns are independent where more than this part of them is.
INDEPENDENT = 1e-8
#: What is left of zeros in K by rounding is taken off.
ROUNDING = 1e-9
NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


class BaseParameters(NamedTuple):
    """Base parameters of a model.

    ``torque_regressor(...)[:, columns] @ (combinations @ inertial_parameters(model))`` are the
    torques.

    Parameters
    ----------
    columns : array of int
        Independent columns of the regressor.
    combinations : array
        Matrix that takes the inertial parameters to the base parameters.
    names : tuple of str
        What each base parameter is the sum of.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> arm = b.build()
    >>> found = mb.base_parameters(arm)
    >>> found.columns.shape, (found.combinations @ mb.inertial_parameters(arm)).round(3)
    ((3,), array([1. , 0. , 0.6]))
    """

    columns: np.ndarray
    combinations: np.ndarray
    names: tuple[str, ...]


def base_parameters(model: Model, samples: int = 0, seed: int = 0) -> BaseParameters:
    """Return the base parameters of a model.

    They are the combinations of inertial parameters that affect its torques, and are found from the
    regressors of random states. They depend on the joints, not on masses or limits.

    Parameters
    ----------
    model : Model
        The robot.
    samples : int, optional
        Number of random states. By default three per body and ten more; too few are an error.
    seed : int, optional
        Seed of the random states.

    Examples
    --------
    >>> from archimedes.multibody import Builder, base_parameters
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> base_parameters(b.build()).names
    ('mx(bob)', 'mz(bob)', 'Iyy(bob)')
    """
    rng = np.random.default_rng(seed)
    count = samples or 10 + 3 * len(model.body_names)
    check_positive(count, "samples")
    anywhere: Any = np.full(model.nq, np.inf)
    unlimited = replace(model, lower=-anywhere, upper=anywhere)
    q = np.stack([random_configuration(unlimited, rng) for _ in range(count)])
    v, a = rng.normal(size=(2, count, model.nv))
    W = np.asarray(torque_regressor(model, q, v, a)).reshape(count * model.nv, -1)
    columns = independent_columns(W)
    if len(columns) == len(W):
        few = f"{count} samples are too few to tell which of {W.shape[1]} columns are independent"
        raise ValueError(f"base_parameters: {few}; leave samples out or give more")
    K = np.linalg.lstsq(W[:, columns], W, rcond=None)[0]
    K = np.where(np.abs(K) < ROUNDING * max(1.0, float(np.abs(K).max())), 0.0, K)
    K[:, columns] = np.eye(len(columns))
    return BaseParameters(
        columns, K, tuple(describe_sum(model, K[k], j) for k, j in enumerate(columns))
    )


def independent_columns(W: np.ndarray) -> np.ndarray:
    """Return the columns that are no combination of those before them, by orthogonalisation."""
    basis = np.zeros((W.shape[0], 0))
    independent = []
    largest = float(np.sqrt((W * W).sum(axis=0).max()))
    for j in range(W.shape[1]):
        rest = W[:, j].copy()
        for _ in range(2):  # twice is enough
            rest = rest - basis @ (basis.T @ rest)
        left, size = np.sqrt(rest @ rest), np.sqrt(W[:, j] @ W[:, j])
        if left > INDEPENDENT * size and size > INDEPENDENT * largest:
            basis = np.column_stack([basis, rest / left])
            independent.append(j)
    return np.array(independent, dtype=int)


def describe_sum(model: Model, row: np.ndarray, head: int) -> str:
    """Return what a base parameter is the sum of, its head first."""
    names = [f"{part}({body})" for body in model.body_names for part in NAMES]
    terms = [names[head]]
    for j in np.flatnonzero(row):
        if j != head:
            factor = "" if abs(abs(row[j]) - 1.0) < ROUNDING else f"{abs(row[j]):.4g} "
            terms.append(f"{'-' if row[j] < 0 else '+'} {factor}{names[j]}")
    return " ".join(terms)
