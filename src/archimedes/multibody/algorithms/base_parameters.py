"""Base parameters: the combinations of inertial parameters that torques depend on.

Legend: W stacks regressors of random states, (samples nv, 10 bodies). Its columns are taken from
left to right: one that is not a combination of those before it is independent, and its parameter
is the head of a base parameter; W = W_1 K with W_1 the independent columns, and the base parameters
are ``K p``. A parameter without effect has a column of zeros in K.
Source: Gautier, Numerical calculation of the base inertial parameters of robots, J. Robotic Systems
8, 1991 (QR decomposition).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import check_positive
from archimedes.multibody.algorithms.configurations import random_configuration
from archimedes.multibody.algorithms.regressor import torque_regressor
from archimedes.multibody.models.model import Model

__all__ = ["BaseParameters", "base_parameters"]

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
    unlimited = model.replace(lower=-anywhere, upper=anywhere)  # type: ignore[attr-defined]
    q = np.stack([random_configuration(unlimited, rng) for _ in range(count)])
    v, a = rng.normal(size=(2, count, model.nv))
    W = np.asarray(torque_regressor(model, q, v, a)).reshape(count * model.nv, -1)
    columns = independent(W)
    if len(columns) == len(W):
        raise ValueError(
            f"base_parameters: {count} samples give {len(W)} torques, too few to tell which of "
            f"{W.shape[1]} parameters are independent; leave samples out or give more"
        )
    K = np.linalg.lstsq(W[:, columns], W, rcond=None)[0]
    K = np.where(np.abs(K) < ROUNDING * max(1.0, float(np.abs(K).max())), 0.0, K)
    K[:, columns] = np.eye(len(columns))
    return BaseParameters(columns, K, tuple(named(model, K[k], j) for k, j in enumerate(columns)))


def independent(W: np.ndarray) -> np.ndarray:
    """Return the columns that are no combination of those before them, by orthogonalisation."""
    basis = np.zeros((W.shape[0], 0))
    found = []
    largest = float(np.sqrt((W * W).sum(axis=0).max()))
    for j in range(W.shape[1]):
        rest = W[:, j].copy()
        for _ in range(2):  # twice is enough
            rest = rest - basis @ (basis.T @ rest)
        left, size = np.sqrt(rest @ rest), np.sqrt(W[:, j] @ W[:, j])
        if left > INDEPENDENT * size and size > INDEPENDENT * largest:
            basis = np.column_stack([basis, rest / left])
            found.append(j)
    return np.array(found, dtype=int)


def named(model: Model, row: np.ndarray, head: int) -> str:
    """Return what a base parameter is the sum of, its head first."""
    names = [f"{part}({body})" for body in model.body_names for part in NAMES]
    terms = [names[head]]
    for j in np.flatnonzero(row):
        if j != head:
            factor = "" if abs(abs(row[j]) - 1.0) < ROUNDING else f"{abs(row[j]):.4g} "
            terms.append(f"{'-' if row[j] < 0 else '+'} {factor}{names[j]}")
    return " ".join(terms)
