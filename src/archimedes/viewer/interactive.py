"""Interactive pages: models compiled to WebAssembly, with what the page needs to know of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from archimedes.embedded.wasm_project import wasm_module
from archimedes.viewer.actors import Placing
from archimedes.viewer.controls import describe_control
from archimedes.viewer.explorer import Explorer
from archimedes.viewer.scene import Chart, Scene
from archimedes.viewer.simulator import Simulator

#: Time in s between two outputs of "run to the end", where no sampled part asks for less.
OUTPUT_INTERVAL = 0.05
#: About as many outputs, if that is too short.
OUTPUTS = 1200
COPY_COLOR = "#6d8fc4"


class Interactive:
    """Models that run in a page, and what of its scene belongs to which.

    Making one adds all models to the scene. Charts of the same title and unit share a chart, with
    the names of the models.
    """

    def __init__(
        self, scene: Scene, models: Mapping[str, Simulator | Explorer], autoplay: bool = True
    ) -> None:
        self.scene, self.autoplay = scene, autoplay
        self.simulators = {n: m for n, m in models.items() if isinstance(m, Simulator)}
        self.explorers = {n: m for n, m in models.items() if isinstance(m, Explorer)}
        self.parts: list[dict[str, Any]] = []
        self.charts: dict[tuple[str, str], dict[str, Any]] = {}
        for which, (name, simulator) in enumerate(self.simulators.items()):
            first, arrows = len(scene.bodies), len(scene.arrows)
            simulator.add_to_scene(scene, name)
            if 0 < first < len(scene.bodies):  # names tell several apart
                scene.bodies[0].label = scene.bodies[first].label = True
            bodies = list(range(first, len(scene.bodies)))
            vectors = list(range(arrows, len(scene.arrows)))
            at = 7 * len(bodies) + 3 * len(vectors)
            for chart in scene.charts:
                at = _add_lines(self.charts, chart, which, at, name if len(models) > 1 else "")
            scene.charts = []
            self.parts.append({"bodies": bodies, "arrows": vectors, "lines": at})

    def describe(self, block: Any) -> dict[str, Any]:
        """Return what the page needs to know, and add programs and numbers to the block."""
        names = {body.name: k for k, body in enumerate(self.scene.bodies)}
        models: list[dict[str, Any]] = []
        ghosts: list[dict[str, Any]] = []
        for part, (name, simulator) in zip(self.parts, self.simulators.items(), strict=True):
            models.append({**part, **_model(simulator, name, names, block)})
            if simulator.copies is not None:
                models[-1]["copies"], shown = _copies(simulator, self.scene, part, block)
                models[-1]["copies"]["ghosts"] = len(ghosts)
                ghosts.append(shown)
        curves = [_explorer(explorer, block) for explorer in self.explorers.values()]
        charts = list(self.charts.values())
        for k, explorer in enumerate(self.explorers.values()):
            charts += explorer.charts(k)
        every: dict[str, Simulator | Explorer] = {**self.simulators, **self.explorers}
        live = {"models": models, "explorers": curves, "controls": _controls(every)}
        return {"charts": charts, "ghosts": ghosts, "live": {**live, "autoplay": self.autoplay}}


def _model(
    simulator: Simulator, name: str, bodies: Mapping[str, int], block: Any
) -> dict[str, Any]:
    """Return what the page needs of one model; its program goes to the block."""
    module = compiled(simulator)
    s, c = simulator.rows()
    events = [{"name": n, "terminal": bool(e.terminal)} for n, e in simulator.events.items()]
    return {
        "name": name,
        "dt": simulator.dt,
        "end": simulator.t_end,
        "stride": stride(simulator),
        "state": block.add(s, "f8"),
        "controls": block.add(c, "f8"),
        "names": simulator.state_names,
        "events": events,
        "module": block.add(np.frombuffer(module.wasm, dtype=np.uint8), "u1"),
        "layout": module.layout,
        "pull": _pull(simulator, name, bodies),
        "copies": None,
    }


def _explorer(explorer: Explorer, block: Any) -> dict[str, Any]:
    """Return what the page needs of a function of sliders; its program goes to the block."""
    _, c = explorer.rows()
    module = wasm_module({"curves": (explorer.curves, (0.0 * c,))}, name="model")
    program = block.add(np.frombuffer(module.wasm, dtype=np.uint8), "u1")
    return {"controls": block.add(c, "f8"), "module": program, "layout": module.layout}


def _copies(
    simulator: Simulator, scene: Scene, part: dict[str, Any], block: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the copies of a model, and how they are drawn: small and faint, as ghosts."""
    assert simulator.copies is not None
    states, controls = simulator.copies
    first = scene.bodies[part["bodies"][0]] if part["bodies"] else None
    size = 1.0 if first is None else 0.9 * (first.reach or first.radius)
    shown = {
        "name": f"{len(states):,} copies",
        "color": COPY_COLOR,
        "size": size,
        "count": len(states),
        "lines": 0,
        "origin": [0.0, 0.0, 0.0],
    }
    return {"states": block.add(states, "f8"), "controls": block.add(controls, "f8")}, shown


def _add_lines(merged: dict[Any, Any], chart: Chart, which: int, at: int, name: str) -> int:
    """Add the lines of a chart to the one of its title; return the place after them."""
    entry = merged.setdefault(
        (chart.title, chart.units),
        {"title": chart.title, "units": chart.units, "labels": [], "lines": []},
    )
    for label in chart.labels:
        entry["labels"].append(" ".join(part for part in (name, label) if part))
        entry["lines"].append([which, at])
        at += 1
    return at


def compiled(simulator: Simulator) -> Any:
    """Return the WebAssembly module of a model."""
    s, c = (np.zeros(len(row)) for row in simulator.rows())
    functions: dict[str, Any] = {
        "step": (simulator.step, (0.0, s, c)),
        "show": (simulator.show, (0.0, s, c)),
    }
    if not simulator.discrete:
        functions["advance"] = (simulator.advance, (0.0, simulator.dt, s, c))
    return wasm_module(functions, name="model")


def stride(simulator: Simulator) -> int:
    """Return how many steps "run to the end" takes at once: no sampled part acts between."""
    whole = [round(part.dt / simulator.dt) for part in simulator.sampled if part.dt is not None]
    interval = max(OUTPUT_INTERVAL, simulator.t_end / OUTPUTS)
    own = max(1, round(interval / simulator.dt))
    return math.gcd(*whole) if whole else own


def _controls(models: Mapping[str, Simulator | Explorer]) -> list[dict[str, Any]]:
    """Return all controls; those of one name move all models that have it."""
    found: dict[str, tuple[Any, float, list[list[int]]]] = {}
    for which, model in enumerate(models.values()):
        row = model.rows()[1]
        for name, (k, control) in model.controls.items():
            found.setdefault(name, (control, float(row[k]), []))[2].append([which, k])
    return [
        describe_control(control, name, value, at) for name, (control, value, at) in found.items()
    ]


def _pull(simulator: Simulator, name: str, bodies: Mapping[str, int]) -> dict[str, Any] | None:
    """Return where the page finds the numbers of a pull, and the bodies that can be dragged."""
    if simulator.pull is None:
        return None
    pull = simulator.pull[1]
    full = [f"{name}: {body}" if body else name for body in pull.bodies]
    if missing := [body for body in full if body not in bodies]:
        raise ValueError(f"Pull: there is no body {missing[0]!r}; there are {list(bodies)}")
    at = {key: simulator.pull_columns[f"{key}[0]"] for key in ("on", "point", "target")}
    placing = simulator.placing or Placing(np.eye(3), np.zeros(3))
    place: dict[str, Any] = {"R": placing.R.tolist(), "origin": placing.origin.tolist()}
    place["offset"] = simulator.offset.tolist()
    place["relative"] = pull.relative
    return {**at, "bodies": [bodies[body] for body in full], "place": place}
