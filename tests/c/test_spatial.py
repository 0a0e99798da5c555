"""Every spatial function, and rigid bodies with every attitude, as C."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archimedes as arc
from archimedes import spatial
from archimedes.graph import DTYPES

from ..long_parameters import long_but
from ..programs.program import Program
from ..spatial.test_traced import ANGLES, ARRAYS, ONE, V, W
from .checking import COMPILERS, FLOATS, LEVELS, Bundle, needs

ATTITUDES = {
    "quaternion": ONE,
    "euler": ONE.as_euler("zxz"),
    "rotvec": ONE.as_rotvec(),
    "mrp": ONE.as_mrp(),
}


def case(name: str, function: Any, args: tuple[Any, ...]) -> Program:
    """A function recorded on its arguments, at these and at five points nearby."""
    graph = arc.compile(function).graph(*args)
    flat = np.concatenate([np.ravel(x) for x in arc.tree.leaves(args)])
    rng = np.random.default_rng(0)
    points = flat + 0.2 * np.vstack([np.zeros(flat.size), rng.normal(size=(5, flat.size))])
    columns = [points[:, k].astype(DTYPES[d]) for k, d in enumerate(graph.input_dtypes)]
    return Program(name, graph, columns)


@cache
def cases() -> list[Program]:
    made = [case(name, getattr(spatial, name), args) for name, args in ARRAYS.items()]
    convert = lambda a: spatial.euler_to_euler(a, "xyz", "ZYZ")
    made.append(case("euler_to_euler", convert, (ANGLES,)))
    u = spatial.RigidBody.Input(V, W, 2.0, np.diag([1.0, 2.0, 2.5]))
    dynamics = lambda x, u: spatial.RigidBody.dynamics(0.0, x, u)
    for name, attitude in ATTITUDES.items():
        state = spatial.RigidBody.State(V, attitude, W, W + 1.0)
        made.append(case(f"rigid_body_{name}", dynamics, (state, u)))
    return made


@cache
def bundle(float_type: str) -> Bundle:
    return Bundle(cases(), float_type)


@pytest.mark.long_cases("double--O2-clang", "float*")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("level", long_but(["-O2"], LEVELS))
@pytest.mark.parametrize("float_type", FLOATS)
def test_spatial_functions(float_type: str, level: str, compiler: str, tmp_path: Path):
    needs(compiler)
    bundle(float_type).check(tmp_path, compiler, level)
