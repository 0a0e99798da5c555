"""Configurations as points of a manifold: neutral, random, moved along a velocity, apart.

Legend: q (nq,) are coordinates, in which quaternions have four numbers, v (nv,) velocities. Moving
from q along v for a unit of time, with v constant in the joints' own axes, is ``integrate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import concrete
from archimedes.multibody.algorithms import links
from archimedes.spatial.components import components
from archimedes.typing import ArrayLike, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Link, Model

__all__ = ["coordinate_rates", "difference", "integrate", "neutral", "random_configuration"]


def own_links(model: Model) -> list[Link]:
    """Return the links that have coordinates of their own."""
    return [link for link in model.links if not link.mimic]


def neutral(model: Model) -> np.ndarray:
    """Return the configuration (nq,) with all joints at zero, quaternions (1, 0, 0, 0).

    Parameters
    ----------
    model : Model
        The robot.

    Examples
    --------
    >>> from archimedes.multibody import Builder, neutral
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[1, 1, 1])
    >>> neutral(b.build(base="floating"))
    array([0., 0., 0., 1., 0., 0., 0.])
    """
    return np.array([x for link in own_links(model) for x in link.kind.neutral])


def random_configuration(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Return a random configuration within the limits of the joints.

    All attitudes are equally likely. A joint without limits gets an angle or length between -pi and
    pi, a position one in a cube of 2 m around the origin. A joint with a limit beyond those numbers
    gets a range of 2 pi from there on.

    Parameters
    ----------
    model : Model
        The robot.
    rng : np.random.Generator
        Random number generator.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, random_configuration
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[1, 1, 1])
    >>> random_configuration(b.build(base="floating"), np.random.default_rng(1)).shape
    (7,)
    """
    if not hasattr(rng, "uniform"):
        raise TypeError(
            f"rng must be a numpy.random.Generator, np.random.default_rng(seed), got {rng!r}"
        )
    lower, upper = concrete(model.lower), concrete(model.upper)
    if lower is None or upper is None:
        raise TypeError("random_configuration needs a model whose limits are known numbers")
    low, high = range_of(lower, upper)
    q: list[float] = []
    for link in own_links(model):
        q += link.kind.draw(rng, low[link.q_slice], high[link.q_slice])
    return np.array(q, dtype=float)


def range_of(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where coordinates are drawn from: between their limits, where these are finite.

    >>> range_of(np.array([-1.0, 5.0]), np.array([np.inf, np.inf]))
    (array([-1.,  5.]), array([ 3.14159265, 11.28318531]))
    """
    above = np.where(lower < np.pi, np.pi, lower + 2.0 * np.pi)
    below = np.where(upper > -np.pi, -np.pi, upper - 2.0 * np.pi)
    low = np.where(np.isfinite(lower), lower, below)
    return low, np.maximum(low, np.where(np.isfinite(upper), upper, above))


def integrate(model: Model, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the configuration that is reached by moving along a velocity for unit time.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity, times the unit of time.

    Returns
    -------
    array (..., nq)
        Configuration.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, integrate, neutral
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[1, 1, 1])
    >>> ball = b.build(base="floating")
    >>> integrate(ball, neutral(ball), np.array([0, 0, 1.0, 0, 0, np.pi])).round(3)
    array([0., 0., 1., 0., 0., 0., 1.])
    """
    q, v = links.check_state(model, q=q, v=v)
    points, speeds = components(q, model.nq), components(v, model.nv)
    moved: list[Any] = []
    for link in own_links(model):
        moved += link.kind.integrate(points[link.q_slice], speeds[link.v_slice])
    return links.join_numbers(moved)


def difference(model: Model, q0: ArrayLike, q1: ArrayLike) -> Vector:
    """Return the velocity that leads from one configuration to another in unit time.

    ``integrate(model, q0, difference(model, q0, q1))`` is `q1`, up to the signs of quaternions.

    Parameters
    ----------
    model : Model
        The robot.
    q0 : array (..., nq)
        First configuration.
    q1 : array (..., nq)
        Second configuration.

    Returns
    -------
    array (..., nv)
        The velocity.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, difference, neutral
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[1, 1, 1])
    >>> ball = b.build(base="floating")
    >>> difference(ball, neutral(ball), np.array([0, 0, 1.0, 0, 0, 0, 1.0])).round(3)
    array([0.   , 0.   , 1.   , 0.   , 0.   , 3.142])
    """
    before = components(links.check_coordinates(model, q0, "q0"), model.nq)
    after = components(links.check_coordinates(model, q1, "q1"), model.nq)
    velocity: list[Any] = []
    for link in own_links(model):
        velocity += link.kind.difference(before[link.q_slice], after[link.q_slice])
    return links.join_numbers(velocity)


def coordinate_rates(model: Model, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return dq/dt for a velocity.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Returns
    -------
    array (..., nq)
        Rates of the coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, coordinate_rates, neutral
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[1, 1, 1])
    >>> ball = b.build(base="floating")
    >>> coordinate_rates(ball, neutral(ball), np.array([0, 0, 1.0, 0, 0, 2.0]))
    array([0., 0., 1., 0., 0., 0., 1.])
    """
    q, v = links.check_state(model, q=q, v=v)
    points, speeds = components(q, model.nq), components(v, model.nv)
    rates: list[Any] = []
    for link in own_links(model):
        rates += link.kind.rates(points[link.q_slice], speeds[link.v_slice])
    return links.broadcast_result(links.join_numbers(rates), (*links.leading_axes(q, v), model.nq))
