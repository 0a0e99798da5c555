"""Object code on disk: found again, and never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archimedes.backends.llvm import build, cache
from archimedes.graph import CODES, F64, Call, Graph


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "1")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def graph(factor: float = 2.0, rule: object = None) -> Graph:
    body = Graph()
    x = body.input(F64)
    body.outputs = [body.emit(CODES["mul"], x, body.const(factor))]
    g = Graph()
    (y,) = g.region(Call([g.input(F64)], body, rule))  # type: ignore[arg-type]
    g.outputs = [int(y)]
    return g


def make(g: Graph, **options: object):
    kernel = build(g, [(1, F64)], [(1, F64)], **options)  # type: ignore[arg-type]
    out = np.empty(1)
    kernel.call([np.array([3.0])], [out])
    return kernel, out[0]


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def test_found_again(folder):
    first, _ = make(graph(rule=object()))
    # A derivative rule is another object in every process; it is no part of the key.
    second, value = make(graph(rule=object()))
    assert (first.stats.cached, second.stats.cached, value) == (0, 1, 6.0)
    assert [p.suffix for p in files(folder)] == [".o"]


def test_another_program_layout_or_cpu_is_another_file(folder):
    for g, options in (
        (graph(), {}),
        (graph(3.0), {}),
        (graph(), {"target_features": "-avx512f"}),
        (graph(), {"part": 3}),
    ):
        kernel, _ = make(g, **options)
        assert kernel.stats.cached == 0
    assert len(files(folder)) == 4


def test_batches_are_cached_by_what_is_batched(folder):
    for expected in (0, 1):
        kernel, _ = make(graph())
        out = np.empty(5)
        kernel.call_batch([np.arange(5.0)], [True], [out], 5)
        assert out.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
        assert kernel.stats.cached == 2 * expected


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_damaged_files_are_made_anew(folder, damage):
    make(graph())
    (path,) = files(folder)
    data = path.read_bytes()
    flipped = data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]
    broken = {"empty": b"", "cut": data[: len(data) // 2], "flipped": flipped, "other": b"?" * 99}
    path.write_bytes(broken[damage])
    kernel, value = make(graph())
    assert (kernel.stats.cached, value) == (0, 6.0)
    assert make(graph())[0].stats.cached == 1
    assert path.read_bytes()[:20] == data[:20]


def test_turned_off(folder, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "0")
    make(graph())
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_no_error(folder):
    # A file in the place of the folder: fails for every user, root too.
    folder.write_text("not a folder")
    kernel, value = make(graph())
    assert (kernel.stats.cached, value) == (0, 6.0)
    assert cache.write("ab" * 20, b"code") is False


def test_a_full_disk_is_no_error(folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    _, value = make(graph())
    assert value == 6.0
    assert files(folder) == []


SCRIPT = """
import numpy as np
from archimedes.backends.llvm import build
from archimedes.graph import CODES, F64, Graph
g = Graph()
x = g.input(F64)
g.outputs = [g.emit(CODES["exp"], x)]
kernel = build(g, [(1, F64)], [(1, F64)])
out = np.empty(1)
kernel.call([np.zeros(1)], [out])
print(out[0], kernel.stats.cached)
"""


def start(env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def test_four_processes_at_once_and_no_compiler(folder, tmp_path):
    import archimedes

    empty = tmp_path / "bin"
    empty.mkdir()
    source = str(Path(archimedes.__file__).parents[1])
    env = {**os.environ, "PATH": str(empty), "PYTHONPATH": source}
    assert shutil.which("cc", path=env["PATH"]) is None
    running = [start(env) for _ in range(4)]
    for process in running:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert out.split()[0] == "1.0"
    assert [p.suffix for p in files(folder)] == [".o"]
    out, errors = start(env).communicate(timeout=60)
    assert out.split() == ["1.0", "1"], errors


def test_files_used_longest_ago_make_room(folder, monkeypatch):
    keys = [cache.cache_key(k) for k in range(6)]
    for age, key in enumerate(keys[:5]):
        assert cache.write(key, bytes(1000))
        old = 1e9 - 1000.0 * age
        os.utime(cache._path(folder, key), (old, old))
    assert cache.read(keys[4]) == bytes(1000)  # now it is the newest
    monkeypatch.setattr(cache, "LIMIT", 3500)
    cache._trim_once.cache_clear()
    assert cache.write(keys[5], bytes(1000))
    left = [k for k, key in enumerate(keys) if cache.read(key) is not None]
    assert left == [0, 4, 5]
    assert cache.write(keys[1], bytes(1000)), "checked once a process only"
    assert len(files(folder)) == 4
