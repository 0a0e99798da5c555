"""Pictures and videos of a view, taken in a browser without a window."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.system.programs import find_program, install_hint, run_program
from archimedes.viewer.browser import Browser, BrowserError

__all__ = ["screenshot", "video"]

SIZE = (1280, 720)


@contextmanager
def opened(
    view: Any, size: tuple[int, int], scale: float, settings: dict[str, Any]
) -> Iterator[Browser]:
    """Open a view in a browser; `settings` are theme, camera and whether charts are shown."""
    with tempfile.TemporaryDirectory(prefix="archimedes-view-") as folder:
        path = view.save(Path(folder) / "view.html")
        with Browser(*size, scale=scale) as browser:
            browser.open(path)
            browser.wait("window.viewer !== undefined")
            if settings.get("theme"):
                browser.evaluate(f"viewer.theme({json.dumps(settings['theme'])})")
            if not settings.get("charts", True):
                browser.evaluate("viewer.show('charts', false)")
            if settings.get("camera"):
                browser.evaluate(f"viewer.setCamera({json.dumps(settings['camera'])})")
            yield browser


def screenshot(
    view: Any,
    path: Path,
    t: float | None = None,
    *,
    size: tuple[int, int] = SIZE,
    scale: float = 1.0,
    theme: str | None = None,
    camera: dict[str, Any] | None = None,
    charts: bool = True,
) -> Path:
    """Write a PNG of a view at a time; `camera` has mode, azimuth, elevation in rad, distance."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"View.screenshot: {str(path)!r} must end in .png")
    first, last = view.scene.span
    at = 0.5 * (first + last) if t is None else float(t)
    with opened(view, size, scale, {"theme": theme, "camera": camera, "charts": charts}) as browser:
        browser.evaluate(f"viewer.go({at!r})")
        path.write_bytes(browser.screenshot())
    return path


def video(
    view: Any,
    path: Path,
    *,
    fps: int = 30,
    speed: float = 1.0,
    size: tuple[int, int] = SIZE,
    theme: str | None = None,
    camera: dict[str, Any] | None = None,
    charts: bool = True,
    progress: bool = False,
) -> Path:
    """Write an MP4 or a GIF of the whole time; `speed` is simulated time per time of the video."""
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise ValueError(f"View.video: {str(path)!r} must end in .mp4 or .gif")
    ffmpeg = find_program("ffmpeg")
    if ffmpeg is None:
        raise BrowserError(
            f"View.video needs ffmpeg, which was not found: {install_hint('ffmpeg')}"
        )
    first, last = view.scene.span
    times: Any = np.arange(first, last + 1e-9, speed / fps)
    if progress:
        from tqdm.auto import tqdm

        times = tqdm(times, unit="picture")
    settings = {"theme": theme, "camera": camera, "charts": charts}
    with tempfile.TemporaryDirectory(prefix="archimedes-video-") as folder:
        with opened(view, size, 1.0, settings) as browser:
            for k, t in enumerate(times):
                browser.evaluate(f"viewer.go({float(t)!r})")
                (Path(folder) / f"{k:06d}.png").write_bytes(browser.screenshot())
        command = [ffmpeg, "-y", "-loglevel", "error", "-framerate", str(fps)]
        command += ["-i", f"{folder}/%06d.png", *ENCODERS[path.suffix.lower()], str(path)]
        done = run_program(command)
    if done.returncode:
        raise BrowserError(f"ffmpeg could not write {path}: {done.stderr.strip()[-500:]}")
    return path


ENCODERS = {
    ".mp4": ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"),
    ".gif": ("-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse"),
}
