"""Random NumPy programs: ``generate(seed)`` gives source text, inputs and expected results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .array_statements import ARRAY_STATEMENTS
from .builder import MAX_SIZE, Builder
from .region_statements import REGION_STATEMENTS
from .statements import STATEMENTS

__all__ = ["Expected", "Program", "generate"]

TABLE = [*STATEMENTS, *ARRAY_STATEMENTS, *REGION_STATEMENTS]
PRODUCTIONS = [production for production, _ in TABLE]
WEIGHTS = [weight for _, weight in TABLE]


@dataclass(frozen=True)
class Expected:
    """A result that every correct evaluation gives: to the bit, or within ``err``."""

    name: str
    value: np.ndarray
    err: float
    signed: bool


@dataclass(frozen=True)
class Program:
    """``source`` defines ``program(x0, x1, ...)``, which returns the tuple of ``expected``."""

    seed: int
    source: str
    inputs: dict[str, np.ndarray]
    expected: list[Expected]

    def repro(self) -> str:
        """A standalone script that shows the program, its inputs and NumPy's results."""
        with np.printoptions(floatmode="unique"):
            made = [f"{name} = np.{value!r}" for name, value in self.inputs.items()]
        made = [line.replace("dtype=", "dtype=np.") for line in made]
        head = ["import archimedes as arc", "import numpy as np", "from numpy import nan, inf", ""]
        call = f"print(arc.compile(program)({', '.join(self.inputs)}))"
        return "\n".join([*head, self.source, "", *made, call])


def generate(seed: int, widest: int = MAX_SIZE) -> Program:
    """The program of this seed: 2 to 4 inputs and 3 to 25 statements.

    ``widest`` is the most elements that its arrays may have.
    """
    b = Builder(seed, widest)
    for _ in range(b.rng.randrange(2, 5)):
        b.add_input(b.rng.choice("fffffffssiiib"))
    inputs = len(b.vars)
    # Most programs are short: more of them find more than longer ones do.
    wanted = min(b.rng.randrange(3, 26) for _ in range(3))
    with np.errstate(all="ignore"):
        for production in b.rng.choices(PRODUCTIONS, WEIGHTS, k=2 * wanted):
            production(b)
            if len(b.vars) - inputs >= wanted:
                break
    made = b.vars[inputs:] or b.vars
    lines = [f"def program({', '.join(b.inputs)}):"]
    lines += ["    " + line for line in b.lines]
    lines += [f"    return ({''.join(v.name + ', ' for v in made)})"]
    # views are written through, so the values that count are those at the end
    final = [Expected(v.name, np.array(b.env[v.name]), v.err, v.signed) for v in made]
    return Program(seed, "\n".join(lines), b.inputs, final)
