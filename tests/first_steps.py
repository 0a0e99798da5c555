"""The way of a new user, timed: ``python -m tests.first_steps``.

Clones this repository, installs it into a new environment with an empty cache and an empty home,
runs the demonstration, then the model of "Getting started" up to its C file, then a new project of
the user's own with its test and its C target. Prints what each took, and fails where something does
or all of it takes longer than ten minutes.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from docs.site.page_blocks import ROOT, blocks_of

__all__ = ["main"]

#: Ten minutes, in s.
LIMIT = 600.0


class Steps:
    """Runs commands one after the other and keeps what they took."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.rows: list[tuple[str, float, float]] = []
        self.home = work / "home"
        self.home.mkdir()
        kept = ("PATH", "LANG", "TMPDIR", "PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE")
        self.environ = {k: os.environ[k] for k in kept if k in os.environ}
        self.environ |= {"HOME": str(self.home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(self, what: str, command: Sequence[str], folder: Path | None = None) -> None:
        """Run a command, note wall and processor time, and stop where it fails."""
        before, begun = _processor(), time.perf_counter()
        done = subprocess.run(
            [str(word) for word in command], cwd=folder or self.work, env=self.environ,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        row = (what, time.perf_counter() - begun, _processor() - before)
        self.rows.append(row)
        print(f"  {what:<44}{row[1]:>8.1f} s {row[2]:>8.1f} s of a processor", flush=True)
        if done.returncode:
            print(done.stdout[-4000:])
            raise SystemExit(f"first_steps: {what!r} ended with {done.returncode}")


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tutorial() -> tuple[str, str]:
    """Return the program of "Getting started": up to the C file, and the part that writes it."""
    blocks = [b.code for b in blocks_of((ROOT / "docs" / "getting_started.md").read_text("utf-8"))]
    first = next(k for k, code in enumerate(blocks) if "codegen" in code)
    head = "import matplotlib\nmatplotlib.use('agg')\n"
    return head + "\n".join(blocks[:first]), head + "\n".join(blocks[: first + 1])


def main() -> int:
    """Go all the way; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="archimedes-first-") as place:
        work = Path(place)
        steps = Steps(work)
        model, as_c = tutorial()
        (work / "model.py").write_text(model, "utf-8")
        (work / "as_c.py").write_text(as_c, "utf-8")
        print(f"A new user's first steps, Python {sys.version.split()[0]}, {os.cpu_count()} cores:")
        steps.run("git clone", ["git", "clone", "-q", str(ROOT), "archimedes"])
        steps.run("python -m venv", [sys.executable, "-m", "venv", "env"])
        python = work / "env" / "bin" / "python"
        steps.environ["PATH"] = f"{python.parent}:{steps.environ['PATH']}"
        steps.run("pip install -e .", [python, "-m", "pip", "install", "-q", "-e", "archimedes"])
        steps.run("python -m archimedes (the demonstration)", [python, "-m", "archimedes"])
        steps.run("the first model of one's own", [python, "model.py"])
        steps.run("its C file", [python, "as_c.py"])
        if shutil.which("cc"):
            (folder,) = {p.parent for p in work.glob("*/Makefile")}
            steps.run("make, with the compiler here", ["make"], folder)
        steps.run("archimedes new pendulum", ["archimedes", "new", "pendulum"])
        steps.run("pip install pytest", [python, "-m", "pip", "install", "-q", "pytest"])
        steps.run("its test", [python, "-m", "pytest", "-q"], work / "pendulum")
        steps.run("its C target", [python, "make_c.py"], work / "pendulum")
        total = sum(row[1] for row in steps.rows)
        print(f"  {'in all':<44}{total:>8.1f} s {sum(row[2] for row in steps.rows):>8.1f} s")
        print(f"{'Within' if total < LIMIT else 'LONGER THAN'} {LIMIT / 60:.0f} minutes.")
        return 0 if total < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
