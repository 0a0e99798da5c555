"""MuJoCo as a peer, whose warnings come here: it would write them to a file where the tests run.

Legend: v_MuJoCo = T v. The velocities of free joints are in axes of the world there, here in those
of the body.
"""

from __future__ import annotations

import numpy as np

from archimedes.multibody.parts.joints import KINDS
from tests.optional_packages import import_or_skip

mujoco = import_or_skip("mujoco")

#: What MuJoCo has warned of; without a handler it goes to MUJOCO_LOG.TXT in the current directory.
MESSAGES: list[str] = []
mujoco.set_mju_user_warning(MESSAGES.append)


def world_axes(model, q):
    """Return T (nv, nv), which is orthogonal."""
    T = np.eye(model.nv)
    for link in model.links:
        if link.kind is KINDS["free"]:
            R = link.kind.pose(link.screw, q[link.q : link.q + 7].tolist()).R
            T[link.v : link.v + 3, link.v : link.v + 3] = R
    return T


def transport(model, q, v):
    """Return dT/dt v, an acceleration that MuJoCo's coordinates have and ours have not."""
    T, out = world_axes(model, q), np.zeros(model.nv)
    for link in model.links:
        if link.kind is KINDS["free"]:
            i = link.v
            out[i : i + 3] = T[i : i + 3, i : i + 3] @ np.cross(v[i + 3 : i + 6], v[i : i + 3])
    return out
