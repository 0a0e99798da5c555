"""What pages and examples printed and drew, kept until they, or the package, change.

Blocks run for a while. ``python -m tests.quality.pages`` runs them all and keeps what it saw; the
site is made of that, and where ``ARCHIMEDES_KEPT_OUTPUTS=1`` (in CI, a minute later) the tests of
pages and examples take it as run. Anything else runs them again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import platform
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy

from docs.site.block_runs import run_file
from docs.site.page_blocks import PAGES, ROOT, missing

__all__ = ["EXAMPLES", "FOLDER", "PICTURE_FOLDER", "kept", "run_all"]

FOLDER = ROOT / "build" / "pages"
PICTURE_FOLDER = FOLDER / "pictures"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: What runs pages, and draws examples.
RUNNER = ("block_runs.py", "page_blocks.py", "pictures.py")
#: Files of the package that count.
ENDINGS = {".py", ".pyi", ".yaml", ".c", ".in", ".npz"}


def run_all(
    files: Iterable[Path] = (*PAGES, *EXAMPLES), workers: int = 2, stale: bool = False
) -> dict[Path, list[dict[str, Any]]]:
    """Return the outputs of pages and examples; those that are not kept are run.

    With `stale` outputs of an older package will do.
    """
    outputs = {file: kept(file, stale) for file in files}
    waiting = [file for file, found in outputs.items() if found is None]
    # A process each: what one page does to Python is nothing to the next.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, max_tasks_per_child=1) as pool:
        runs = {file: pool.submit(run_file, file, PICTURE_FOLDER) for file in waiting}
        failures = []
        for file, run in runs.items():
            error = run.exception()
            if isinstance(error, Exception):
                failures.append(error)
            else:
                outputs[file] = _keep(file, run.result())
            print(f"{file.relative_to(ROOT)}: {'fails' if error else 'runs'}", flush=True)
    if failures:
        raise ExceptionGroup("pages or examples fail", failures)
    return {file: found for file, found in outputs.items() if found is not None}


def kept(file: Path, stale: bool = False) -> list[dict[str, Any]] | None:
    """Return the outputs of a page or example, if it has been run as it is."""
    record = _record(file)
    if not record.exists():
        return None
    found = json.loads(record.read_text("utf-8"))
    same = found["page"] == _digest(file) and (stale or found["package"] == _package())
    # Blocks were left out for want of something that may be here now.
    wanted = [name for output in found["outputs"] for name in output["skipped"]]
    return found["outputs"] if same and len(missing(wanted)) == len(wanted) else None


def _keep(file: Path, outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    record = _record(file)
    record.parent.mkdir(parents=True, exist_ok=True)
    found = {"page": _digest(file), "package": _package(), "outputs": outputs}
    record.write_text(json.dumps(found, indent=1), "utf-8")
    return outputs


def _record(file: Path) -> Path:
    name = "_".join(file.relative_to(ROOT).parts)
    return FOLDER / f"{name}.json"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def _package() -> str:
    """Return what a page stands on: the package, what draws pictures, Python and NumPy."""
    digest = hashlib.sha256()
    digest.update(f"{platform.python_version()} {numpy.__version__}".encode())
    package = (p for p in (ROOT / "src").rglob("*") if p.suffix in ENDINGS)
    runner = (Path(__file__).with_name(name) for name in RUNNER)
    for path in sorted([*package, *runner]):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
