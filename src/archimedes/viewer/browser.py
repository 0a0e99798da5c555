"""A browser without a window, driven through a pipe: for screenshots, videos and tests.

Chromium reads commands of its DevTools protocol from one pipe and answers on another, each a JSON
text that ends in a zero byte (``--remote-debugging-pipe``).
"""

from __future__ import annotations

import base64
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from archimedes.errors import ArchimedesError
from archimedes.system.processes import PipedProcess, is_root
from archimedes.system.programs import find_browser, install_hint

__all__ = ["Browser", "BrowserError"]

OPTIONS = (
    *(
        "--headless=new",
        "--no-first-run",
        "--disable-extensions",
        "--disable-background-networking",
    ),
    *("--disable-component-update", "--disable-sync", "--disable-default-apps", "--mute-audio"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--disable-dev-shm-usage", "--disable-gpu-compositing"),
)

#: How the browser says that it waits for its own copies of canvases, where no graphics card helps.
OWN_NOTES = "GL Driver Message (OpenGL, Performance"


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
            target = next(t for t in self._pages() if t["type"] == "page")["targetId"]
            answer = self._send(
                "Target.attachToTarget", {"targetId": target, "flatten": True}, None
            )
            self._session = answer["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
            self.resize(*self.size)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _pages(self) -> list[dict[str, Any]]:
        for _ in range(100):
            found = self._send("Target.getTargets", {}, None)["targetInfos"]
            if any(t["type"] == "page" for t in found):
                return found
            time.sleep(0.05)
        raise BrowserError("the browser opened no page")

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
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            text = details.get("exception", {}).get("description", details.get("text"))
            raise BrowserError(f"in the page: {text}")
        return found["result"].get("value")

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
        found = self._send("Page.captureScreenshot", {"format": "png"}, self._session, patience)
        return base64.b64decode(found["data"])

    def complaints(self) -> list[str]:
        """Return errors and warnings of the page, without what the browser notes of itself."""
        self.evaluate("0")  # what has happened up to now has arrived
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(json.dumps(params["args"])[:500])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return [text for text in found if OWN_NOTES not in text]

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for."""
        self.evaluate("0")
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]
