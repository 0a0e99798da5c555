"""Numbers that look like those of other units: lengths in mm, inertias in kg mm^2."""

from __future__ import annotations

import numpy as np

from archimedes.multibody.models.builder import Builder

__all__ = ["report_unit_slips"]

#: A body whose radius of gyration is so many times the size of the robot is suspicious, as is a
#: robot with a joint or a centre of mass so many m from what carries it.
TOO_WIDE, TOO_FAR = 20.0, 10.0


def report_unit_slips(builder: Builder, place: str) -> None:
    """Add to the report what is physical but unlikely; it is taken as it stands."""
    lengths = {f"joint {j.name!r}": size(j.position) for j in builder.joints.values()}
    lengths |= {f"the centre of {b.name!r}": size(b.com) for b in builder.bodies.values()}
    for what, length in lengths.items():
        if length > TOO_FAR:
            builder.report.approximated.append(
                f"{place}: {what} is {length:.4g} m away from what carries it, which looks like "
                "mm; taken as m"
            )
    for shape in builder.geometry:
        if shape.kind not in ("plane", "mesh") and max(shape.size) > TOO_FAR:
            builder.report.approximated.append(
                f"{place}: a {shape.kind} of {shape.body!r} is {max(shape.size):.4g} m large, "
                "which looks like mm; taken as m"
            )
    extent = max([0.05, *lengths.values()])
    for body in builder.bodies.values():
        if body.mass > 0.0:
            wide = float(np.sqrt(np.abs(np.asarray(body.inertia)).max()) / np.sqrt(body.mass))
            if wide > TOO_WIDE * extent:
                builder.report.approximated.append(
                    f"{place}: {body.name!r} of {body.mass:.4g} kg has the inertia of a body that "
                    f"is {wide:.3g} m wide, on a robot whose parts are {extent:.3g} m apart: it "
                    "looks like kg mm^2; taken as kg m^2"
                )


def size(x: object) -> float:
    """Return the length of a vector."""
    return float(np.sqrt(np.sum(np.square(np.asarray(x, dtype=float)))))
