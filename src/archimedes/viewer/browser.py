"""A browser without a window, driven through a pipe: for pictures and videos of a view.

Chromium reads commands of its DevTools protocol from one pipe and answers on another, each a JSON
text that ends in a zero byte (``--remote-debugging-pipe``).
"""

from __future__ import annotations

import base64
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from archimedes.errors import ArchimedesError
from archimedes.system.processes import PipedProcess, is_root
from archimedes.system.programs import find_browser, find_program, install_hint, run_program

if TYPE_CHECKING:
    from archimedes.viewer.viewing import View


OPTIONS = (
    *("--headless=new", "--no-first-run", "--disable-extensions", "--mute-audio"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--disable-dev-shm-usage", "--disable-gpu-compositing"),
    "--disable-default-apps",
)
#: Size of a picture in pixels.
SIZE = (1280, 720)
#: Options of ffmpeg by the ending of the file.
ENCODERS = {
    ".mp4": ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"),
    ".gif": ("-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse"),
}


class BrowserError(ArchimedesError):
    """No browser was found, or it did not do what it was asked for."""


class Browser:
    """A page of a browser; use it in a ``with`` block, which ends the browser.

    `events` has all that the page reported: console messages, errors, requests.
    """

    def __init__(self, width: int = 1280, height: int = 720, scale: float = 1.0) -> None:
        path = find_browser()
        if path is None:
            raise BrowserError(
                "no Chromium was found, which pictures of the viewer need: "
                f"{install_hint('chromium')}, or name one by the variable ARCHIMEDES_BROWSER; "
                "pages saved by .save() open in any browser"
            )
        self.size, self.scale = (width, height), scale
        self.path = path
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._rest = b""

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(
            prefix="archimedes-browser-", ignore_cleanup_errors=True
        )
        size = f"--window-size={self.size[0]},{self.size[1]}"
        # Chromium refuses to run as root inside its sandbox, as in a container.
        rooted = ["--no-sandbox"] if is_root() else []
        home = f"--user-data-dir={self._home.name}"
        self._process = PipedProcess(
            [self.path, *OPTIONS, *rooted, size, home, "about:blank"],
            handles="--remote-debugging-io-pipes",
        )
        try:
            page = {"targetId": self._wait_for_page(), "flatten": True}
            self._session = self._send("Target.attachToTarget", page, None)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
            self.resize(*self.size)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait_for_page(self) -> str:
        """Return the number of the browser's first page."""
        for _ in range(100):
            for target in self._send("Target.getTargets", {}, None)["targetInfos"]:
                if target["type"] == "page":
                    return target["targetId"]
            time.sleep(0.05)
        raise BrowserError("the browser did not open a page")

    def __exit__(self, *error: Any) -> None:
        self._process.end()
        self._home.cleanup()

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol on the page and return its result."""
        return self._send(method, params, self._session)

    def _send(
        self, method: str, params: dict[str, Any], session: str | None, timeout: float = 120.0
    ) -> Any:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._process.send(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(timeout)
            if answer is None:
                raise BrowserError(f"the browser did not answer {method}")
            if answer.get("id") != number:
                self.events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error'].get('message')}")
            else:
                return answer["result"]

    def _receive(self, timeout: float) -> dict[str, Any] | None:
        end = time.monotonic() + timeout
        while b"\0" not in self._rest:
            data = self._process.receive(end - time.monotonic())
            if data is None:
                return None
            if not data:
                raise BrowserError("the browser ended")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        """Give the page a size in CSS pixels."""
        self.size = (width, height)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=self.scale, mobile=mobile,
        )  # fmt: skip

    def open(self, path: Path | str, timeout: float = 60.0) -> None:
        """Open a file and wait until it has loaded."""
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.wait("document.readyState === 'complete'", timeout)

    def wait(self, condition: str, timeout: float = 60.0) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + timeout
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise BrowserError(f"waited {timeout:g} s in vain for {condition}")
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; a promise is waited for."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            text = details.get("exception", {}).get("description", details.get("text"))
            raise BrowserError(f"in the page: {text}")
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """Return a PNG of what the page shows.

        The browser waits for its next picture, which may not come where nothing changes: then it
        is asked again, after a change of the page's size that is none.
        """
        for patience in (20.0, 60.0):
            with suppress(BrowserError):
                return self._capture(patience)
            self.resize(*self.size)
        return self._capture(120.0)

    def _capture(self, patience: float) -> bytes:
        """Return a PNG, if it comes within some seconds."""
        answer = self._send("Page.captureScreenshot", {"format": "png"}, self._session, patience)
        return base64.b64decode(answer["data"])


# ---- pictures ---------------------------------------------------------------------------


@contextmanager
def open_view(
    view: View,
    size: tuple[int, int] = SIZE,
    scale: float = 1.0,
    *,
    theme: str | None = None,
    camera: dict[str, Any] | None = None,
    charts: bool = True,
) -> Iterator[Browser]:
    """Open a view in a browser; `camera` has mode, azimuth, elevation in rad, distance."""
    with tempfile.TemporaryDirectory(prefix="archimedes-view-") as folder:
        path = view.save(Path(folder) / "view.html")
        with Browser(*size, scale=scale) as browser:
            browser.open(path)
            browser.wait("window.viewer !== undefined")
            if theme:
                browser.evaluate(f"viewer.theme({json.dumps(theme)})")
            if not charts:
                browser.evaluate("viewer.show('charts', false)")
            if camera:
                browser.evaluate(f"viewer.setCamera({json.dumps(camera)})")
            yield browser


def screenshot(view: View, path: Path, t: float | None = None, **options: Any) -> Path:
    """Write a PNG of a view at a time; `options` are those of `open_view`."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"View.screenshot: {str(path)!r} must end in .png")
    first, last = view.scene.span
    at = 0.5 * (first + last) if t is None else float(t)
    with open_view(view, **options) as browser:
        browser.evaluate(f"viewer.go({at!r})")
        path.write_bytes(browser.screenshot())
    return path


def video(
    view: View,
    path: Path,
    *,
    fps: int = 30,
    speed: float = 1.0,
    progress: bool = False,
    **options: Any,
) -> Path:
    """Write an MP4 or a GIF of the whole time; `speed` is simulated time per time of the video.

    `options` are those of `open_view`.
    """
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise ValueError(f"View.video: {str(path)!r} must end in .mp4 or .gif")
    ffmpeg = find_program("ffmpeg")
    if ffmpeg is None:
        raise BrowserError(f"View.video needs ffmpeg, which is missing: {install_hint('ffmpeg')}")
    first, last = view.scene.span
    times: Any = np.arange(first, last + 1e-9, speed / fps)
    if progress:
        from tqdm.auto import tqdm

        times = tqdm(times, unit="picture")
    with tempfile.TemporaryDirectory(prefix="archimedes-video-") as folder:
        with open_view(view, **options) as browser:
            for k, t in enumerate(times):
                browser.evaluate(f"viewer.go({float(t)!r})")
                (Path(folder) / f"{k:06d}.png").write_bytes(browser.screenshot())
        command = [ffmpeg, "-y", "-loglevel", "error", "-framerate", str(fps)]
        command += ["-i", f"{folder}/%06d.png", *ENCODERS[path.suffix.lower()], str(path)]
        done = run_program(command)
    if done.returncode:
        raise BrowserError(f"ffmpeg could not write {path}: {done.stderr.strip()[-500:]}")
    return path
