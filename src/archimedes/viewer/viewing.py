"""``view``: a model and its trajectory as something to look at."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.display import for_reading
from archimedes.errors import refer_to
from archimedes.multibody import Model, State
from archimedes.simulate import Trajectory
from archimedes.spatial import RigidBody
from archimedes.system.programs import open_page
from archimedes.viewer.html import page
from archimedes.viewer.scene import Camera, Chart, Mark, Scene, known_numbers

__all__ = ["View", "view"]

FilePath = str | os.PathLike[str]
#: Endings of USD files.
USD = (".usda", ".usdc", ".usd")
#: Samples of one trajectory in a scene: more than a screen shows, few enough for a small page.
SAMPLES = 1500
#: Fewer samples than this are filled up from the dense output, where it was kept.
FEW = 300
#: Samples of each flight of a batch.
GHOST_SAMPLES = 80


class View:
    """A scene with ways to show it: in a notebook, a browser, a file, a picture, a video.

    ``view.save("flight.html")`` writes one file that opens anywhere, offline, and
    ``view.save("flight.glb")`` one for Blender; ``view.show()`` opens the page; in a notebook the
    last line of a cell is shown in place; ``view.live()`` shows it through viser;
    ``view.screenshot("a.png")`` and ``view.video("a.mp4")`` need Chromium (and ffmpeg) on this
    machine.

    Parameters
    ----------
    scene : Scene
        The scene to add to.
    theme : {"light", "dark", "auto"}, optional
        Colours. ``"auto"`` follows the setting of the browser.
    height : int, optional
        Height in pixels in a notebook.
    simulators : mapping of str to Simulator or Explorer, optional
        Models that run in the page, by name. They are added to the scene.
    autoplay : bool, optional
        Start models at once. Otherwise they wait for a key, a drag or the button. True by default.

    Examples
    --------
    >>> from archimedes.viewer import Body, Scene, View, box
    >>> still = Body("box", [box([1, 1, 1])], t=0.0, position=[0, 0, 0], attitude=[1, 0, 0, 0])
    >>> page = View(Scene("a box", [still]), theme="dark").html()
    >>> page[:15], len(page) < 100_000
    ('<!doctype html>', True)
    """

    def __init__(
        self,
        scene: Scene,
        theme: str = "auto",
        height: int = 560,
        simulators: Mapping[str, Any] | None = None,
        autoplay: bool = True,
    ) -> None:
        self.scene, self.theme, self.height = scene, theme, height
        self.interactive = None
        if simulators:
            from archimedes.viewer.interactive import Interactive

            self.interactive = Interactive(scene, simulators, autoplay)

    def html(self) -> str:
        """Return the page as text."""
        return page(self.scene, self.theme, self.interactive)

    def save(self, path: FilePath) -> Path:
        """Write the page or the scene to a file, and return its path.

        Parameters
        ----------
        path : path
            The ending says what is written: ``.html``, a page; ``.glb``, a glTF file with the
            motion as an animation; ``.usda``, ``.usdc`` or ``.usd``, a USD file (the extra
            ``usd``).
        """
        target, suffix = Path(path), Path(path).suffix.lower()
        if suffix not in (".html", ".htm", ".glb", *USD):
            raise ValueError(
                f"View.save: {str(path)!r} must end in .html, .glb, {', '.join(USD)}; pictures are "
                "made by .screenshot()"
            )
        if suffix in (".html", ".htm"):
            target.write_text(self.html(), encoding="utf-8", newline="\n")
            return target
        if self.interactive:
            raise ValueError(
                f"View.save: {str(path)!r} holds what was recorded, and this view runs its model; "
                "write .html, or make the view without interactive=True"
            )
        if suffix in USD:
            from archimedes.viewer.usd import save_usd

            save_usd(self.scene, target)
            return target
        from archimedes.viewer.gltf import glb

        target.write_bytes(glb(self.scene))
        return target

    def show(self) -> Path:
        """Open the page in the browser of this machine; return the file it is in."""
        folder = Path(tempfile.mkdtemp(prefix="archimedes-view-"))
        path = self.save(folder / "view.html")
        open_page(path)
        return path

    def live(self, port: int = 8080, host: str = "127.0.0.1") -> Any:
        """Show the scene through viser (the extra ``viewer`` installs it), and return the server.

        Parameters
        ----------
        port : int, optional
            Port of the server. If it is taken, the next free one is used: ``live.url`` has it.
        host : str, optional
            Address at which the server listens. By default that of this machine alone;
            ``"0.0.0.0"`` lets everybody in who can reach the machine.
        """
        from archimedes.viewer.live import Live

        return Live(self.scene, port, host)

    def screenshot(self, path: FilePath, t: float | None = None, **options: Any) -> Path:
        """Write a PNG of the page, and return its path.

        Parameters
        ----------
        path : path
            PNG file.
        t : float, optional
            Time in s. By default the first.
        **options
            ``size``, ``scale``, ``camera``, ``charts``.
        """
        from archimedes.viewer.browser import screenshot

        return screenshot(self, Path(path), t, **options)

    def video(self, path: FilePath, **options: Any) -> Path:
        """Write a video, and return its path.

        Parameters
        ----------
        path : path
            File whose name ends in ``.mp4`` or ``.gif``.
        **options
            ``fps``, ``speed``, ``size`` and others.
        """
        from archimedes.viewer.browser import video

        return video(self, Path(path), **options)

    def _repr_html_(self) -> str:
        text = html.escape(self.html(), quote=True)
        style = f"width:100%;height:{int(self.height)}px;border:0;border-radius:8px"
        # The frame has no rights but to run the page's own script.
        rights = "allow-scripts allow-downloads" if self.interactive else "allow-scripts"
        return f'<iframe sandbox="{rights}" style="{style}" srcdoc="{text}"></iframe>'

    def __repr__(self) -> str:
        if self.interactive:
            names = ", ".join([*self.interactive.simulators, *self.interactive.explorers])
            return f"View({self.scene.title!r}: {names}, interactive)"
        first, last = self.scene.span
        # The links of a robot are "robot: link".
        bodies = [b.name.partition(": ")[0] for b in self.scene.bodies if b.parent is None]
        seen = ", ".join(dict.fromkeys(bodies))
        return f"View({self.scene.title!r}: {seen}, {first:g} to {last:g} s)"


def view(
    model: Any,
    trajectory: Any = None,
    *,
    inputs: Any = None,
    batch: Trajectory | None = None,
    title: str = "",
    note: str = "",
    charts: Sequence[str] | None = None,
    camera: Camera | None = None,
    theme: str = "auto",
    interactive: bool = False,
    parameters: Any = None,
    controls: Mapping[str, Any] | None = None,
    autoplay: bool = True,
    **options: Any,
) -> View:
    """Return a view of a model along its trajectory in three dimensions, or of a model that runs.

    With ``interactive=True`` the model itself is in the page, compiled to WebAssembly: the reader
    moves its inputs and parameters while it runs.

    Parameters
    ----------
    model : vehicle, robot, dict or Scene
        A vehicle of `archimedes.vehicles`, a robot of `archimedes.multibody`, or anything whose
        states have ``pos`` and ``att``; a dict of ``name: (model, trajectory)`` for several of
        them; or a `Scene`. A trajectory alone will do where it knows what moved: where a method
        of a vehicle was solved, or where its states have ``pos`` and ``att``.
    trajectory : Trajectory, optional
        The trajectory, or what has one: the record of `fly`, a solution of optimal control. Of a
        batch, the first flight is shown, and the others as ghosts. A robot may have one `State`
        instead, in which it stands still; by default that of its file.
    inputs : tree, optional
        Inputs of the vehicle over time. By default those in the trajectory. With them, surfaces
        move and forces are drawn.
    batch : Trajectory, optional
        A batch that is shown beside one flight.
    title : str, optional
        Title.
    note : str, optional
        Line of text below the title.
    charts : sequence of str, optional
        Columns of the trajectory to draw instead of the usual ones.
    camera : Camera, optional
        How the scene is looked at first.
    theme : {"light", "dark", "auto"}, optional
        Colours. ``"auto"`` follows the setting of the browser.
    interactive : bool, optional
        Run the model in the page. False by default. `model` is then a vehicle, a robot, a function
        ``f(t, x, u, p)``, a `Simulator`, an `Explorer`, or a dict of them by name; `trajectory` is
        the state to start in, `inputs` are the inputs there.
    parameters : tree, optional
        Parameters of an interactive model. Of a vehicle: its fields by name, and ``"wind"``.
    controls : mapping, optional
        What moves in an interactive page, as in `Simulator`.
    autoplay : bool, optional
        Start an interactive page at once. Otherwise it waits for a key, a drag or the button. True
        by default.
    **options
        Further arguments of `Simulator` for an interactive page.

    Returns
    -------
    View
        The view, which can be saved, shown, and made a picture or a video of.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import Quaternion, RigidBody
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> x = RigidBody.State(
    ...     pos=np.zeros((5, 3)), att=Quaternion(np.tile([1.0, 0, 0, 0], (5, 1))),
    ...     v_B=np.zeros((5, 3)), w_B=np.zeros((5, 3)))
    >>> view(RigidBody(), Trajectory(t, x), title="at rest")
    View('at rest': RigidBody, 0 to 1 s)
    """
    if interactive:
        from archimedes.viewer.simulators import make_simulators

        given = {"inputs": inputs, "parameters": parameters, "controls": controls, **options}
        simulators = make_simulators(model, trajectory, charts=charts, **given)
        scene = Scene(title=title, note=note)
        shown = View(scene, theme, simulators=simulators, autoplay=autoplay)
        shown.scene.camera = camera or shown.scene.camera
        return shown
    for option, value in {"parameters": parameters, "controls": controls, **options}.items():
        if value is not None:
            raise TypeError(f"view: {option} is for a page that runs its model: interactive=True")
    if isinstance(model, Scene):
        scene = model
        scene.title = title or scene.title
        return View(scene, theme)
    if isinstance(alone := trajectory_of(model), Trajectory):
        model, trajectory = _model_of(alone, trajectory), alone
    scene = Scene(title=title, note=note)
    if isinstance(model, Mapping):
        several = dict(model)
        if trajectory is not None:
            raise TypeError("view: leave out trajectory: the dict has one for each model")
    else:
        name = getattr(model, "name", None) if isinstance(model, Model) else None
        several = {name or type(model).__name__: (model, trajectory)}
    for name, pair in several.items():
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"view: {name!r} must be a pair (model, trajectory)")
        _add(scene, str(name), *pair, inputs=inputs, batch=batch, charts=charts)
    scene.camera = camera or scene.camera
    return View(scene, theme)


def _model_of(trajectory: Trajectory, given: Any) -> Any:
    """Return what moved along a trajectory that is given alone."""
    if given is not None:
        raise TypeError("view: the model comes first: arc.view(model, trajectory)")
    if trajectory.model is not None:
        return trajectory.model
    if hasattr(trajectory.x, "pos") and hasattr(trajectory.x, "att"):
        return RigidBody()
    raise TypeError(
        "view: this trajectory does not know what moved; pass that first: "
        "arc.view(model, trajectory). A trajectory knows it if the solver was given a method of a "
        "vehicle: arc.solve_ode(plane.dynamics, ...)." + refer_to("view")
    )


def _add(
    scene: Scene,
    name: str,
    model: Any,
    trajectory: Trajectory,
    inputs: Any,
    batch: Trajectory | None,
    charts: Sequence[str] | None,
) -> None:
    """Add one model along its trajectory."""
    from archimedes.viewer.actors import Flight, add_actor
    from archimedes.viewer.robots import joint_charts, still  # registers robots

    if isinstance(model, Model) and (trajectory is None or isinstance(trajectory, State)):
        trajectory = still(model, trajectory)
    trajectory = trajectory_of(trajectory)
    if not isinstance(trajectory, Trajectory):
        raise TypeError(
            f"view: {name!r} needs a Trajectory of solve_ode, got {type(trajectory).__name__}: "
            "arc.view(model, trajectory)"
        )
    for leaf in tree.leaves(trajectory.x):
        known_numbers(leaf, f"view: the trajectory of {name!r}")
    if len(trajectory.batch_shape) > 1:
        raise ValueError(f"view: take a slice (n,) of the batch of shape {trajectory.batch_shape}")
    if trajectory.batch_shape:
        batch = trajectory if batch is None else batch
        trajectory = trajectory[0]
    if batch is not None and len(batch.batch_shape) != 1:
        raise ValueError("view: batch must be a Trajectory of a batch (n,)")
    trajectory, inputs = resample(trajectory, inputs_of(model, trajectory, inputs))
    first, earlier = len(scene.charts), len(scene.bodies)
    thin = None if batch is None else batch[:, :: -(-batch.t.shape[1] // GHOST_SAMPLES)]
    add_actor(model, scene, Flight(trajectory, inputs, thin, name))
    if earlier:  # names tell several apart; charts are of the first
        scene.bodies[0].label = scene.bodies[earlier].label = True
        del scene.charts[first:]
    scene.marks += marks_of(trajectory, name if earlier else "")
    if charts is not None:
        del scene.charts[first:]
        for one in charts:
            if isinstance(model, Model) and one in ("q", "v"):
                scene.charts += joint_charts(model, trajectory.t, trajectory[one], one)
            else:
                scene.charts.append(chart_of(trajectory, one))


def trajectory_of(result: Any) -> Any:
    """Return the trajectory of a flight or of a solution of optimal control; others as they are."""
    inside = getattr(result, "trajectory", None)
    return inside if isinstance(inside, Trajectory) else result


def inputs_of(model: Any, trajectory: Trajectory, inputs: Any) -> Any:
    """Return the inputs over time: those given, or those of the right kind in the trajectory."""
    if inputs is not None:
        return inputs
    kind = getattr(type(model), "Input", None)
    for value in (trajectory.u, getattr(trajectory.u, "input", None)):
        if kind is not None and isinstance(value, kind):
            return value
    return None


def resample(trajectory: Trajectory, inputs: Any) -> tuple[Trajectory, Any]:
    """Return a trajectory with about as many samples as a screen can show."""
    t, dense = trajectory.t, trajectory.dense
    if len(t) < 2:
        raise ValueError("view: a trajectory needs at least two samples")
    if len(t) < FEW and dense is not None and inputs is None:
        fine = np.linspace(t[0], t[-1], SAMPLES // 2)
        return Trajectory(fine, dense(fine), events=trajectory.events), None
    step = -(-len(t) // SAMPLES)
    keep = np.unique(np.append(np.arange(0, len(t), step), len(t) - 1))
    if t[-1] < t[0]:
        keep = keep[::-1]
    take = lambda leaf: np.asarray(leaf)[keep]  # noqa: E731
    x, u, y, inputs = tree.map(take, (trajectory.x, trajectory.u, trajectory.y, inputs))
    return Trajectory(t[keep], x, u=u, y=y, events=trajectory.events), inputs


def marks_of(trajectory: Trajectory, name: str) -> list[Mark]:
    """Return the events of a trajectory as marks on the slider."""
    if not isinstance(trajectory.events, dict):
        return []
    numbers = np.asarray(trajectory.events.get("event", ())).tolist()
    labels = [f"event {k + 1}" if len(set(numbers)) > 1 else "event" for k in numbers]
    pairs = zip(trajectory.events.get("t", ()), labels[:200])
    return [Mark(float(t), f"{name} {label}".strip()) for t, label in pairs]


def chart_of(trajectory: Trajectory, name: str) -> Chart:
    """Return the chart of a leaf or a column by its name."""
    from archimedes.simulate.trajectory.columns import component_names

    values = np.asarray(trajectory[name], dtype=float)
    units = {label.split("[")[0]: u for label, u in trajectory.units.items()}
    flat = values.reshape(len(trajectory.t), -1)
    labels = component_names("", values.shape[1:]) if values.ndim > 1 else [""]
    unit = trajectory.units.get(name, units.get(name, ""))
    shown, unit = for_reading(flat, unit)
    return Chart(name, trajectory.t, shown.T, labels, unit)
