"""A scene as one HTML file that needs nothing else: no network, no libraries, no other files.

Names, units and titles are data in it, never markup: they stand in a block of JSON whose every
``<``, ``>`` and ``&`` is written as an escape, and the script puts them on the page as text. The
page's own policy allows the one script and the one style sheet it was made with, by their digests,
and nothing else: no other script runs in it, and no request can leave it. Numbers are one block of
bytes; the description of the scene says where each array lies in it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_choice
from archimedes.typing import Array, ArrayLike
from archimedes.viewer.meshes import arrow, dart
from archimedes.viewer.scene import COLORS, Arrow, Body, Chart, Ghosts, Mesh, Path, Scene

if TYPE_CHECKING:
    from archimedes.viewer.interactive import Interactive

#: Files of the script, in order: one scope, no modules, so that it works from a file.
SCRIPTS = (
    *("numbers", "data", "shaders", "drawing", "camera"),
    *("frame", "charts", "controls", "main"),
)
#: What pages whose models run in them need more: before the last of the scripts.
LIVE = "live"
THEMES = ("auto", "light", "dark")
#: Ghosts whose whole path is drawn; of the others only where they are.
PATHS_OF_GHOSTS = 150
#: Pairs of triangles that meet at a corner, taken at once.
MOST_PAIRS = 2_000_000
#: Stands for "not there" among the whole numbers of ghosts.
ABSENT = -32768


def _read(name: str) -> str:
    folder = resources.files("archimedes.viewer") / "page"
    return (folder / name).read_text(encoding="utf-8")


@functools.cache
def _texts(live: bool) -> tuple[str, str, str]:
    """Return template, style and script as they are in the package."""
    names = (*SCRIPTS[:-1], LIVE, SCRIPTS[-1]) if live else SCRIPTS
    script = "\n".join(_read(f"{name}.js") for name in names)
    return _read("page.html"), _read("style.css"), f'"use strict";\n(() => {{\n{script}}})();\n'


def _runtime() -> str:
    """Return the script that runs models, in the page and in a worker."""
    from archimedes.embedded.wasm_project import wasm_runtime

    return f'"use strict";\n{wasm_runtime()}\n{_read("runtime.js")}'


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _json(data: Any) -> str:
    """Return data as JSON that cannot end the element it stands in, nor a line of a script."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page(scene: Scene, theme: str = "auto", live: Interactive | None = None) -> str:
    """Return the page of a scene; `theme` is "light", "dark" or "auto" (as the reader's system).

    The models of `live` run in the page: their programs are part of it, and its policy
    allows WebAssembly and a worker of the page's own script.

    >>> from archimedes.viewer import Body, box
    >>> still = Body("box", [box([1, 1, 1])], t=0.0, position=[0, 0, 0], attitude=[1, 0, 0, 0])
    >>> text = page(Scene("a </script> box", [still]))
    >>> "a </script> box" in text, text.count("<script")
    (False, 3)
    """
    check_choice(theme, "view: theme", THEMES)
    template, style, script = _texts(live is not None)
    description, data = pack(scene, live)
    runtime = _runtime() if live else ""
    more = f" '{_digest(runtime)}' 'wasm-unsafe-eval'; worker-src blob:" if live else ""
    return Template(template).substitute(
        MORE_SCRIPTS=more,
        RUNTIME=f'<script id="runtime">{runtime}</script>\n' if live else "",
        TITLE=html.escape(scene.title or "Archimedes"),
        STYLE=style,
        SCRIPT=script,
        STYLE_HASH=_digest(style),
        SCRIPT_HASH=_digest(script),
        SCENE=_json({**description, "theme": theme}),
        DATA=data,
    )


# ---- numbers ----------------------------------------------------------------------------


class Block:
    """Bytes of arrays one after the other, each aligned to its kind of number."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, values: ArrayLike, kind: str = "f4") -> list[Any]:
        """Append an array; return [kind, offset in bytes, count of numbers]."""
        array = np.ascontiguousarray(values, dtype=f"<{kind}")
        self._append(b"\0" * (-self.size % array.itemsize))
        entry = [kind, self.size, array.size]
        self._append(array.tobytes())
        return entry

    def _append(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)

    def text(self) -> str:
        """Return all bytes in base64."""
        return base64.b64encode(b"".join(self.parts)).decode("ascii")


def pack(scene: Scene, live: Interactive | None = None) -> tuple[dict[str, Any], str]:
    """Return the description of a scene, plain data for JSON, and its numbers in base64."""
    if scene.bodies or live is None:
        scene.check()
    block = Block()
    numbers = {body.name: k for k, body in enumerate(scene.bodies)}
    centre, extent = bounds(scene)
    camera = scene.camera
    description: dict[str, Any] = {
        "title": scene.title,
        "note": " ".join([scene.note, *left_out(scene)]).strip(),
        "span": list(scene.span) if live is None else [0.0, 0.0],
        "centre": centre.tolist(),
        "extent": extent,
        "origin": [0.0, 0.0, scene.ground.height if scene.ground else 0.0],
        "bodies": [_body(block, body, k, numbers) for k, body in enumerate(scene.bodies)],
        "paths": [_path(block, path) for path in scene.paths],
        "arrows": [_arrow(block, one, numbers) for one in scene.arrows],
        "ghosts": [_ghosts(block, ghosts) for ghosts in scene.ghosts],
        "charts": [_chart(block, chart) for chart in scene.charts],
        "marks": [{"t": float(mark.t), "name": mark.name} for mark in scene.marks],
        "ground": _ground(scene, extent),
        "earth": None if scene.earth is None else asdict(scene.earth),
        "camera": {
            **asdict(camera),
            "body": numbers[camera.body] if camera.body else 0,
            "given": camera.distance > 0.0,
        },
        "arrow": _mesh(block, [arrow(1.0, 0.05, color="#ffffff")]),
        "dart": _mesh(block, [dart()]),
    }
    if live is not None:
        description |= live.describe(block)
    return description, block.text()


def left_out(scene: Scene) -> list[str]:
    """Return what the page says about what it cannot show."""
    if not scene.left_out:
        return []
    more = len(scene.left_out) - 1
    return [f"Not shown: {scene.left_out[0]}{f' and {more} more' if more else ''}"]


def _ground(scene: Scene, extent: float) -> dict[str, float] | None:
    if scene.ground is None:
        return None
    cell = scene.ground.cell or round_number(extent / 12.0)
    return {"height": scene.ground.height, "cell": cell}


def round_number(x: float) -> float:
    """Round down to 1, 2 or 5 times a power of ten.

    >>> round_number(370.0)
    200.0
    """
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * max(s for s in (1, 2, 5) if s * power <= x * (1 + 1e-9)))


def bounds(scene: Scene) -> tuple[Array, float]:
    """Return the centre of all positions and the radius in m of a sphere that holds them."""
    free = [b for b in scene.bodies if b.parent is None]
    if not free:
        return np.zeros(3), 1.0
    points = [b.position for b in free] + [path.points for path in scene.paths]
    low = np.min([p.min(axis=0) for p in points], axis=0)
    high = np.max([p.max(axis=0) for p in points], axis=0)
    largest = max(max(b.radius, b.reach) for b in free)
    return 0.5 * (low + high), float(0.5 * np.linalg.norm(high - low) + 1.5 * largest)


def attributes(item: object, names: str) -> dict[str, Any]:
    """Return the attributes of a part of a scene that are sent as they are."""
    return {name: getattr(item, name) for name in names.split()}


def _body(block: Block, body: Body, k: int, numbers: dict[str, int]) -> dict[str, Any]:
    origin = np.zeros(3) if body.parent is not None else body.position[0]
    radius = body.radius if body.meshes else body.reach or 1.0
    return {
        **attributes(body, "name trail curtain label framed"),
        "color": body.color or COLORS[k % len(COLORS)],
        "parent": None if body.parent is None else numbers[body.parent],
        "t": block.add(body.t, "f8"),
        "origin": origin.tolist(),
        "position": block.add(body.position - origin),
        "attitude": block.add(body.attitude),
        "mesh": _mesh(block, body.meshes) if body.meshes else None,
        "radius": radius,
        "reach": body.reach or radius,
        "least": body.least_pixels,
    }


def _mesh(block: Block, meshes: Sequence[Mesh]) -> dict[str, Any]:
    """Pack positions, normals and colours of all triangles, transparent ones last.

    Positions are 16-bit integers, in units of 1/32,767 of the largest; colours are those of so many
    corners each.
    """
    ordered = sorted(meshes, key=lambda mesh: mesh.opacity < 1.0)
    corners = [mesh.vertices[mesh.triangles].reshape(-1, 3) for mesh in ordered]
    normals = [corner_normals(mesh) for mesh in ordered]
    colors: list[list[int]] = []
    for mesh, points in zip(ordered, corners):
        rgb = [int(mesh.color[k : k + 2], 16) for k in (1, 3, 5)]
        colors.append([len(points), *rgb, round(255 * mesh.opacity)])
    places = np.concatenate(corners)
    unit = float(np.abs(places).max(initial=0.0) or 1.0) / 32767.0
    return {
        "unit": unit,
        "places": block.add(np.rint(places / unit), "i2"),
        "normals": block.add(np.rint(127.0 * np.concatenate(normals)), "i1"),
        "colors": colors,
        "opaque": sum(len(c) for c, mesh in zip(corners, ordered) if mesh.opacity >= 1.0),
    }


def corner_normals(mesh: Mesh) -> Array:
    """Return a normal for each corner of each triangle (3 m, 3).

    It is the sum of those of the triangles that meet there and bend by less than the crease,
    weighted by their areas; vertices at the same position count as one.
    """
    corners = mesh.vertices[mesh.triangles]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    sizes = np.linalg.norm(areas, axis=1, keepdims=True)
    units = areas / np.where(sizes > 0.0, sizes, 1.0)
    span = float(np.abs(mesh.vertices).max()) or 1.0
    _, spot = np.unique(np.rint(mesh.vertices / (1e-6 * span)), axis=0, return_inverse=True)
    spot = np.asarray(spot).reshape(-1)[mesh.triangles].ravel()
    order = np.argsort(spot, kind="stable")
    counts = np.bincount(spot)
    starts = np.cumsum(counts) - counts
    out = np.repeat(units, 3, axis=0)
    for count in np.unique(counts[counts > 0]):  # all spots where so many corners meet, at once
        groups = order[starts[counts == count][:, None] + np.arange(count)]
        for corners in np.array_split(groups, 1 + groups.size * int(count) // MOST_PAIRS):
            faces = corners // 3
            near = units[faces] @ np.swapaxes(units[faces], 1, 2) >= np.cos(mesh.crease)
            total = near @ areas[faces]
            length = np.linalg.norm(total, axis=2, keepdims=True)
            known = length > 0.0
            out[corners] = np.where(known, total / np.where(known, length, 1.0), units[faces])
    return out


def _path(block: Block, path: Path) -> dict[str, Any]:
    origin = path.points[0]
    return {
        **attributes(path, "name color dashed"),
        "dash": 30.0 / max(len(path.points), 1),
        "origin": origin.tolist(),
        "points": block.add(path.points - origin),
    }


def _arrow(block: Block, one: Arrow, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        **attributes(one, "name units scale color"),
        "body": numbers[one.body],
        "origin": one.origin.tolist(),
        "t": block.add(one.t, "f8"),
        "values": block.add(one.values),
    }


def _ghosts(block: Block, ghosts: Ghosts) -> dict[str, Any]:
    """Pack a batch as 16-bit integers, in units of 1/32,767 of its extent."""
    known = np.isfinite(ghosts.position).all(axis=2)
    if not known.any():
        raise ValueError(f"Ghosts {ghosts.name!r}: none of them has a position")
    points = ghosts.position[known]
    origin = 0.5 * (points.min(axis=0) + points.max(axis=0))
    unit = float(np.abs(points - origin).max() or 1.0) / 32767.0
    steps = np.rint(np.where(known[..., None], (ghosts.position - origin) / unit, ABSENT))
    attitude = None
    if ghosts.attitude is not None:
        attitude = block.add(np.rint(127.0 * np.nan_to_num(ghosts.attitude)), "i1")
    return {
        **attributes(ghosts, "name color size"),
        "count": len(ghosts.position),
        "lines": min(len(ghosts.position), PATHS_OF_GHOSTS),
        "origin": origin.tolist(),
        "unit": unit,
        "t": block.add(ghosts.t, "f8"),
        "position": block.add(steps, "i2"),
        "attitude": attitude,
    }


def _chart(block: Block, chart: Chart) -> dict[str, Any]:
    description = {
        **attributes(chart, "title units"),
        "labels": list(chart.labels),
        "t": block.add(chart.t, "f8"),
        "values": [block.add(row) for row in chart.values],
    }
    if chart.low is not None:
        description["band_t"] = block.add(chart.band_t, "f8")
        for side in ("low", "high"):
            description[side] = [block.add(row) for row in getattr(chart, side)]
    return description
