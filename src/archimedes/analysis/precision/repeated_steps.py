"""A function that is called again and again, each time with the state that it returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from archimedes.function.recording import Recording
from archimedes.graph.dtypes import F64
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan
from archimedes.symbolic.core.user_frames import SourceLine


def repeat_steps(recording: Recording, state: Sequence[tuple[int, int]], steps: int) -> Recording:
    """Return a recording of many steps, whose arguments and results are those of one.

    ``state`` are the numbers of traced arguments and of the results that replace them; other
    arguments stay as they are. What is stored between two steps belongs to the argument, so that it
    has the argument's type.
    """
    step = recording.graph
    traced = [k for k, spec in enumerate(recording.leaves) if spec.traced]
    starts = [recording.offsets()[k] for k in traced]
    carried: dict[int, int] = {}
    names: dict[int, str] = {}
    for number, result in state:
        spec, out = recording.leaves[traced[number]], recording.outs[result]
        for k in range(spec.size):
            carried[starts[number] + k] = out.start + k
            names[starts[number] + k] = recording.names[traced[number]]
    own = list(carried)
    others = [k for k in range(len(step.inputs)) if k not in carried]
    kinds = step.input_dtypes

    def store(g: Graph, ids: Sequence[int]) -> dict[int, int]:
        """Return stored states, by input: nodes that belong to their arguments."""
        found = {}
        for k, i in zip(own, ids):
            found[k] = g.emit(CODES["stop"], i) if kinds[k] == F64 else i
            if found[k] != i and g.lines is not None:
                g.lines[found[k]] = (SourceLine("", 0, names[k]),)
        return found

    body = Graph()
    body.lines = []
    inner = [body.input(kinds[k]) for k in (*own, *others)]
    values = {**dict(zip(others, inner[len(own) :])), **store(body, inner[: len(own)])}
    outs = inline(body, step, [values[k] for k in range(len(kinds))])
    body.outputs = [outs[carried[k]] for k in own]

    g = Graph()
    g.lines = []
    inputs = [g.input(kind) for kind in kinds]
    scan = Scan([inputs[k] for k in (*own, *others)], body, steps - 1, len(own), 0).in_blocks()
    last = {**dict(enumerate(inputs)), **store(g, g.region(scan).tolist())}
    g.outputs = inline(g, step, [last[k] for k in range(len(kinds))])
    return replace(recording, blocks=g, memo={})
