"""The jobs of a folder in browsers: Chromium reads a file, Firefox asks a server of our own."""

from __future__ import annotations

import base64
import http.server
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

from archimedes.viewer.browser import Browser

from .checking import run_jobs_in_node

HERE = Path(__file__).parent
#: Nothing but the page's own script, and no eval except of WebAssembly.
POLICY = "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline' 'wasm-unsafe-eval'"

_MAIN = """
const bytesOf = (text) => Uint8Array.from(atob(text), (x) => x.charCodeAt(0));
async function main() {
  const read = (name) => bytesOf(data.modules[name]);
  const pieces = await runJobs(data.jobs, bytesOf(data.inputs), read);
  let text = "";
  for (const piece of pieces) for (const byte of piece) text += String.fromCharCode(byte);
  return btoa(text);
}
main().then((text) => finish(text), (error) => finish(`error: ${error.stack || error}`));
"""


def page(folder: Path, finish: str) -> str:
    """Return one file of HTML that runs the jobs and calls ``finish`` with the results."""
    jobs = json.loads((folder / "jobs.json").read_text())

    def encoded(name: str) -> str:
        return base64.b64encode((folder / name).read_bytes()).decode("ascii")

    modules = {job["wasm"]: encoded(job["wasm"]) for job in jobs}
    data = json.dumps({"jobs": jobs, "inputs": encoded("inputs.bin"), "modules": modules})
    runner = (HERE / "jobs.mjs").read_text().replace("export async", "async")
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return (
        f"<!doctype html>{head}<script>{runner}\nconst data = {data};\n{finish}\n{_MAIN}</script>"
    )


def _write(folder: Path, text: str) -> None:
    assert not text.startswith("error"), text
    (folder / "outputs.bin").write_bytes(base64.b64decode(text))


def run_in_chromium(folder: Path, browser: Browser | None = None) -> None:
    """Run the jobs of a folder in Chromium, from a file."""
    if browser is None:
        with Browser(800, 600) as opened:
            run_in_chromium(folder, opened)
        return
    (folder / "page.html").write_text(
        page(folder, "const finish = (text) => { window.made = text; };")
    )
    browser.open(folder / "page.html")
    browser.wait("window.made !== undefined", timeout=300.0)
    _write(folder, browser.evaluate("window.made"))


def run_in_node_and_chromium(folder: Path) -> None:
    """Run the jobs of a folder in both, which have the same engine: the same bytes."""
    run_jobs_in_node(folder)
    wanted = (folder / "outputs.bin").read_bytes()
    run_in_chromium(folder)
    assert (folder / "outputs.bin").read_bytes() == wanted, "Chromium differs from Node"


def run_in_firefox(folder: Path) -> None:
    """Run the jobs of a folder in Firefox, which sends the results back to a server."""
    text = page(folder, 'const finish = (text) => fetch("/made", {method: "POST", body: text});')
    made: list[str] = []
    done = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def do_POST(self) -> None:
            made.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()
            done.set()

        def log_message(self, *_: object) -> None:
            pass

    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/page.html"
        command = ["firefox-esr", "--headless", "--no-remote", "--profile", home, address]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home},
        )
        try:
            assert done.wait(300.0), "Firefox sent nothing"
        finally:
            process.terminate()
            process.wait(30.0)
            server.shutdown()
    _write(folder, made[0])
