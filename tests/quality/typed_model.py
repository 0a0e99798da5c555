"""What an editor should see of a user's code; read by a type checker, never run."""

from typing import reveal_type

import numpy as np
from numpy.typing import NDArray

import archimedes as arc

Vector = NDArray[np.float64]


@arc.struct
class Body:
    mass: float
    position: Vector
    name: str = arc.field(static=True, default="body")

    @arc.compile
    def energy(self, velocity: Vector) -> float:
        return 0.5 * self.mass * float(velocity @ velocity)


def scaled(x: Vector, k: float = 1.0) -> Vector:
    return k * x


def weight(body: Body, g: float) -> float:
    return g * body.mass


@arc.compile(name="doubled")
def doubled(x: Vector) -> Vector:
    return 2.0 * x


class Wing(arc.Struct):
    area: float
    span: float = 1.0


body = Body(1.0, position=np.ones(3))
wing = Wing(2.0)
compiled = arc.compile(scaled)

reveal_type(Body)  # def (mass: float, position: ARRAY, name: str =) -> Body
reveal_type(body.mass)  # float
reveal_type(Wing)  # def (area: float, span: float =) -> Wing
reveal_type(wing.replace(area=3.0))  # Wing
reveal_type(arc.tree.replace(body, mass=2.0))  # Body
reveal_type(body.position)  # ARRAY
reveal_type(body.energy(np.ones(3)))  # float
reveal_type(compiled)  # Compiled[[x: ARRAY, k: float =], ARRAY]
reveal_type(compiled(np.ones(3), k=2.0))  # ARRAY
reveal_type(compiled(np.ones(3), out=np.ones(3)))  # ARRAY
reveal_type(doubled)  # Compiled[[x: ARRAY], ARRAY]
reveal_type(arc.compile(weight)(body, 9.81))  # float
reveal_type(arc.jac(scaled))  # Compiled[[ANY_ARRAY, k: float =], ANY_ARRAY]
reveal_type(arc.jac(scaled)(np.ones(2)))  # ANY_ARRAY
reveal_type(arc.jac(scaled, argnums=1))  # Compiled[[x: ARRAY, k: float =], Any]
reveal_type(arc.jac(scaled, sparse=True))  # SparseDerivative
reveal_type(arc.grad(weight)(body, 9.81))  # Body
reveal_type(arc.grad(weight, argnums=1)(body, 9.81))  # Any
reveal_type(arc.hess(lambda x: x @ x)(np.ones(3)))  # Any
reveal_type(arc.vmap(weight))  # Batched[[body: Body, g: float], float]
reveal_type(arc.vmap(scaled)(np.ones((5, 3))))  # ARRAY

Body("heavy")  # error: Missing positional argument "position" in call to "Body"
body.mass = 2.0  # error: Property "mass" defined in "Body" is read-only
compiled("x")  # error: No overload variant of "__call__" of "CompiledCallable" matches
arc.compile(weight)(body)  # error: No overload variant of "__call__" of "CompiledCallable" matches
