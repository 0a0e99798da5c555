"""Models whose forward dynamics have no answer: joints that move nothing with inertia.

Legend: with the velocities eliminated from the leaves on, as `aba` and LTDL do, D_k is the inertia
that the k-th still meets when those below it are free. Where D_k is zero a torque there gives no
finite acceleration. A link with mass and three moments of its own, or a joint with armature, makes
its D_k positive, whatever hangs on it; only models without are looked at closer, at one
configuration in general position, so that what is special to a configuration does not count.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from archimedes.checks import concrete
from archimedes.multibody.algorithms.configurations import integrate, neutral
from archimedes.multibody.algorithms.derivatives.own_derivatives import Same
from archimedes.multibody.algorithms.links import not_a_model
from archimedes.multibody.algorithms.mass_matrix import crba
from archimedes.multibody.models.model import Link, Model

__all__ = ["check_inertia_of_joints"]

#: What is left of an inertia after the elimination and is only rounding.
ROUNDING = 1e-14


def check_inertia_of_joints(model: Model) -> None:
    """Raise where a joint moves nothing with inertia, of a model whose numbers are known.

    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> check_inertia_of_joints(b.build())
    """
    if not isinstance(model, Model):
        raise TypeError(not_a_model(model))
    numbers = (model.rotations, model.positions, model.masses, model.centers, model.inertias,
               model.armature)  # fmt: skip
    if any(concrete(array) is None for array in numbers) or np.ndim(model.masses) != 1:
        return
    if complaint := complaint_of(Same(model)):
        raise ValueError(complaint)


@lru_cache(maxsize=64)
def complaint_of(same: Same) -> str | None:
    """Return what is wrong with a model, None where nothing is; those looked at last are kept."""
    model = same.model
    solid = solid_links(model)
    if all(whole or armoured(model, k) for k, whole in zip(model.links, solid, strict=True)):
        return None
    directions = np.cos(1.0 + 1.7 * np.arange(model.nv))  # no two alike, none special
    M = np.array(crba(model, integrate(model, neutral(model), directions)))
    full = M.diagonal().copy()
    for k in reversed(range(model.nv)):
        if not abs(M[k, k]) > ROUNDING * abs(full[k]):
            return complaint_about(model, k, nothing=not full[k])
        M[:k, :k] -= np.outer(M[k, :k], M[k, :k]) / M[k, k]
    return None


def solid_links(model: Model) -> np.ndarray:
    """Return which links have a mass and three positive moments of their own."""
    moments = np.linalg.eigvalsh(model.inertias)
    return (model.masses > 0.0) & (moments[:, 0] > 1e-12 * moments[:, 2])


def armoured(model: Model, link: Link) -> bool:
    """Whether all velocities of a joint have armature."""
    own = model.armature[link.v : link.v + link.kind.nv]
    return not link.mimic and bool(np.all(own > 0.0))


def complaint_about(model: Model, k: int, nothing: bool) -> str:
    """Return the message about the k-th velocity."""
    link = next(x for x in model.links if not x.mimic and x.v <= k < x.v + x.kind.nv)
    body = f"body {link.body!r}" if link.body else "the massless link behind it"
    why = (
        f"{body} and all that it carries have no inertia along it"
        if nothing
        else f"{body} has no inertia along it but what joints below can move by themselves"
    )
    return (
        f"{model.name!r}: no acceleration follows from a torque of joint {link.joint!r}: {why}, "
        f"and the joint has no armature. Give {body} a mass and an inertia (load(..., density=...) "
        "takes those of its shapes), or the joint an armature, or weld or lock the joint"
    )
