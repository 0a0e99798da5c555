"""Campaigns on disk: a manifest that says what is run, and a file for each chunk of runs.

Nothing is ever changed: a chunk is written to another name, synced to disk and renamed, so that a
process killed at any moment leaves whole chunks only. The files are NumPy archives without
pickles, named by their runs (``runs-0000000256-0000000512.npz``). Neither the lock nor unfinished
files are ever written through a symbolic link.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes.errors import ArchimedesError
from archimedes.simulate.trajectory.exports import read_archive
from archimedes.system.files import lock_file, open_new, rename, write_name_to_disk

__all__ = ["CampaignError"]

NAME = re.compile(r"runs-(\d+)-(\d+)\.npz")
LEFTOVER = re.compile(r"(runs-\d+-\d+|manifest)\.part")
UNFINISHED = ".part"
#: Status of a run whose model raised an error; other values are those of a solve.
RAISED = -100
#: Names in a chunk besides those of parameters and results.
STATUS, MESSAGES = "status", "messages"

#: What must be the same for runs to belong together, and what the error says if it is not.
IDENTITY = {
    "format": "is in another format",
    "version": "was written by another version of this package",
    "seed": "was run with another seed",
    "distributions": "was run with other distributions or fixed values",
    "vectorize": "was run with another setting of vectorize",
    "model": "was run with another model, or something that the model reads was another (or "
    "another version of this package or of Python made it)",
}


class CampaignError(ArchimedesError, RuntimeError):
    """A campaign cannot go on: other settings than on disk, a damaged file, a run that failed.

    >>> import tempfile
    >>> import archimedes as arc
    >>> from archimedes.simulate import CampaignError, Normal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = arc.monte_carlo(lambda p: p["a"], {"a": Normal()}, n=2, folder=folder)
    ...     try:
    ...         arc.monte_carlo(lambda p: p["a"], {"a": Normal()}, n=2, seed=7, folder=folder)
    ...     except CampaignError as error:
    ...         print(type(error).__name__)
    CampaignError
    """


class Chunk(NamedTuple):
    """The runs `start` to `stop` (not included) and the file that holds them."""

    start: int
    stop: int
    path: Path


def missing_ranges(done: Sequence[Chunk], total: int, size: int) -> list[tuple[int, int]]:
    """Return the ranges of runs below `total` that no chunk has, at most `size` runs each.

    >>> missing_ranges([Chunk(2, 4, Path())], 7, 2)
    [(0, 2), (4, 6), (6, 7)]
    """
    ranges, at = [], 0
    for start, stop in [*((c.start, c.stop) for c in sorted(done)), (total, total)]:
        stopping = min(start, total)
        ranges += [(k, min(k + size, stopping)) for k in range(at, stopping, size)]
        at = max(at, stop)
    return ranges


class ChunkStore:
    """The folder of one campaign; use it as a context to hold it against other processes."""

    def __init__(self, folder: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.identity = {"format": "archimedes-campaign", "version": 1, **identity}
        self._lock: Any = None

    def __enter__(self) -> ChunkStore:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CampaignError(
                f"monte_carlo: {self.folder} cannot be used as a folder ({error.strerror}): name "
                "one that can be made and written to"
            ) from error
        self._take_lock()
        try:
            for leftover in self.folder.glob(f"*{UNFINISHED}"):
                if LEFTOVER.fullmatch(leftover.name):
                    leftover.unlink()  # of a link, the link
            self._check_manifest()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        if self._lock is not None:
            self._lock.close()  # the operating system releases the lock, even after a kill
            self._lock = None

    def _take_lock(self) -> None:
        path = self.folder / "lock"
        try:
            self._lock = lock_file(path)
        except BlockingIOError:
            raise CampaignError(
                f"monte_carlo: another process is running the campaign in {self.folder}"
            ) from None
        except OSError as error:
            raise CampaignError(
                f"monte_carlo: {path} cannot be opened ({error.strerror}): it must be a plain "
                "file, no link, in a folder that you can write to"
            ) from error

    def _check_manifest(self) -> None:
        """Write the manifest of a new campaign; compare it with that of an old one."""
        path = self.folder / "manifest.json"
        if not path.exists():
            if any(NAME.fullmatch(p.name) for p in self.folder.iterdir()):
                raise CampaignError(
                    f"monte_carlo: {self.folder} has runs but no manifest.json that says what "
                    "they are; give an empty folder"
                )
            text = json.dumps(self.identity, indent=2) + "\n"
            self._write(path, lambda file: file.write(text.encode()))
            return
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(manifest, dict):
                raise ValueError("it holds no settings")
        except (OSError, ValueError, RecursionError) as error:
            raise CampaignError(f"monte_carlo: {path} cannot be read: {error}") from error
        for name, words in IDENTITY.items():
            if manifest.get(name) != self.identity[name]:
                raise CampaignError(
                    f"monte_carlo: the campaign in {self.folder} {words}: {name} is "
                    f"{manifest.get(name)} there and {self.identity[name]} now. Runs of both "
                    "cannot be mixed: restore it, or give another folder"
                )

    def chunks(self) -> list[Chunk]:
        """Return the chunks that are there, in the order of their runs."""
        matches = [(NAME.fullmatch(path.name), path) for path in self.folder.iterdir()]
        chunks = sorted(Chunk(int(m[1]), int(m[2]), path) for m, path in matches if m)
        for one, other in itertools.pairwise(chunks):
            if one.stop > other.start:
                raise CampaignError(
                    f"monte_carlo: {one.path} and {other.path} hold the same runs: delete the one "
                    "that was copied there by hand"
                )
        return chunks

    def write(self, start: int, stop: int, arrays: Mapping[str, np.ndarray]) -> Chunk:
        """Add a chunk; when this returns it is on disk, whole."""
        for name, array in arrays.items():
            if array.dtype.hasobject:
                raise TypeError(f"monte_carlo: {name} holds Python objects; return numbers")
        path = self.folder / f"runs-{start:010d}-{stop:010d}.npz"
        self._write(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
        return Chunk(start, stop, path)

    def _write(self, path: Path, put: Callable[[Any], Any]) -> None:
        """Write a file under another name, sync it to disk, and rename it."""
        beside = path.with_suffix(UNFINISHED)
        try:
            with open_new(beside, mode=0o644) as file:  # never what somebody else put there
                put(file)
                file.flush()
                os.fsync(file.fileno())
            rename(beside, path)
            write_name_to_disk(self.folder)
        except OSError as error:
            if not isinstance(error, FileExistsError):
                beside.unlink(missing_ok=True)  # a full disk: make room
            raise CampaignError(
                f"monte_carlo: {beside} cannot be written ({error.strerror or error}). The runs "
                "that were finished are kept: the same call goes on once there is room, and you "
                "can write to the folder"
            ) from error


def read_chunk(chunk: Chunk) -> dict[str, np.ndarray]:
    """Return the arrays of a chunk; each has the runs as its first axis."""
    try:
        with chunk.path.open("rb") as file:
            arrays = read_archive(file)
        check_rows(arrays, chunk.stop - chunk.start)
    except (ValueError, OSError) as error:
        raise CampaignError(
            f"monte_carlo: {chunk.path} is damaged ({error}): delete it, and its runs "
            "are done again"
        ) from error
    return arrays


def check_rows(arrays: Mapping[str, np.ndarray], count: int) -> None:
    """Raise ValueError if the arrays are not those of ``count`` runs."""
    for name, array in arrays.items():
        result = name == STATUS or name.startswith("result")
        if result and (array.ndim == 0 or len(array) != count):
            raise ValueError(f"{name} has shape {array.shape}, and there are {count} runs")
    raised = int((arrays[STATUS] == RAISED).sum()) if STATUS in arrays else 0
    if len(arrays.get(MESSAGES, ())) != raised:
        raise ValueError(f"{raised} runs raised an error, with {len(arrays[MESSAGES])} messages")
