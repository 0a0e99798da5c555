"""Object code on disk: found again, and never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archimedes.backends import code_cache as cache
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.backends.llvm.runtime.pointers import data_pointer
from archimedes.graph import CODES, F64, Call, Graph
from tests.entries import is_supported


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data_pointer(np.zeros(1))  # whose code would be kept in the folder, once in each process
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
    assert (first.cached, second.cached, value) == (0, 1, 6.0)
    assert [p.suffix for p in files(folder)] == [".o"]


def test_another_program_layout_or_cpu_is_another_file(folder):
    for g, options in (
        (graph(), {}),
        (graph(3.0), {}),
        (graph(), {"target_features": "-avx512f"}),
        (graph(), {"part": 3}),
    ):
        kernel, _ = make(g, **options)
        assert kernel.cached == 0
    assert len(files(folder)) == 4


def test_batches_are_cached_by_what_is_batched(folder):
    for expected in (0, 1):
        kernel, _ = make(graph())
        out = np.empty(5)
        kernel.call_batch([np.arange(5.0)], [True], [out], 5)
        assert out.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
        assert kernel.cached == 2 * expected


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_damaged_files_are_made_anew(folder, damage):
    make(graph())
    (path,) = files(folder)
    data = path.read_bytes()
    flipped = data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]
    broken = {"empty": b"", "cut": data[: len(data) // 2], "flipped": flipped, "other": b"?" * 99}
    path.write_bytes(broken[damage])
    kernel, value = make(graph())
    assert (kernel.cached, value) == (0, 6.0)
    assert make(graph())[0].cached == 1
    assert path.read_bytes()[:20] == data[:20]


def test_turned_off(folder, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "0")
    make(graph())
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_no_error(folder):
    # A file in the place of the folder: fails for every user, root too.
    folder.write_text("not a folder")
    kernel, value = make(graph())
    assert (kernel.cached, value) == (0, 6.0)
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
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.graph import CODES, F64, Graph
g = Graph()
x = g.input(F64)
g.outputs = [g.emit(CODES["exp"], x)]
kernel = build(g, [(1, F64)], [(1, F64)])
out = np.empty(1)
kernel.call([np.zeros(1)], [out])
print(out[0], kernel.cached)
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
    # The kernel, and what reads the addresses of arrays, unless Python does.
    assert [p.suffix for p in files(folder)] == [".o"] * (1 + is_supported())
    out, errors = start(env).communicate(timeout=60)
    assert out.split() == ["1.0", "1"], errors


FROM_DISK = """
import sys
import numpy as np
import archimedes as arc
f = arc.compile(lambda x: np.sin(x) * x, backend="llvm")
one, many = f(np.arange(3.0)), arc.vmap(f)(np.ones((50, 3)))
print(one.tobytes().hex(), many.tobytes().hex())
writing = ("archimedes.backends.llvm.lowering.", "archimedes.graph.expand")
print(*[name for name in sys.modules if name.startswith(writing)])
"""


def test_code_from_the_disk_needs_nothing_that_writes_code(folder):
    made = [
        subprocess.run(
            [sys.executable, "-c", FROM_DISK], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert made[0][0] == made[1][0]
    assert "entries" in made[0][1] and made[1][1] == ""


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


# ---- what others could have put there ----------------------------------------------------------


def test_a_file_exchanged_with_another_is_made_anew(folder):
    # The objects of both have the same symbol; only their names tell them apart.
    for factor in (2.0, 3.0):
        make(graph(factor))
    one, two = files(folder)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    for factor in (2.0, 3.0):
        kernel, value = make(graph(factor))
        assert (kernel.cached, value) == (0, 3.0 * factor)


def scalar_in_place_of_a_batch(folder: Path) -> None:
    kernel, _ = make(graph())
    kernel.call_batch([np.arange(5.0)], [True], [np.empty(5)], 5)
    one, two = files(folder)
    a, b = one.read_bytes(), two.read_bytes()
    one.write_bytes(b)
    two.write_bytes(a)


def test_a_scalar_kernel_in_place_of_a_batch_kernel(folder):
    # Another symbol: linking it used to end the process.
    scalar_in_place_of_a_batch(folder)
    kernel, value = make(graph())
    out = np.empty(5)
    kernel.call_batch([np.arange(5.0)], [True], [out], 5)
    assert (kernel.cached, value, out.tolist()) == (0, 6.0, [0.0, 2.0, 4.0, 6.0, 8.0])


@pytest.fixture
def fresh(monkeypatch):
    """As in a new process: nothing looked at, nothing said."""
    cache._distrust_once.cache_clear()
    monkeypatch.setattr(cache, "_said", set())


posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files to another user"
)

PLACES = {"top": lambda f: f, "above": lambda f: f.parent, "inner": lambda f: files(f)[0].parent}


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
@pytest.mark.parametrize("place", PLACES)
def test_a_folder_that_others_can_write_is_not_used(folder, fresh, place, mode):
    make(graph())
    where = PLACES[place](folder)
    where.chmod(mode)
    cache._distrust_once.cache_clear()
    with pytest.warns(
        cache.DistrustWarning, match=f"others may write to {where} .*chmod go-w"
    ) as w:
        kernel, value = make(graph())
        make(graph())  # said once
    assert (kernel.cached, value, len(w)) == (0, 6.0, 1)
    where.chmod(0o700)
    cache._distrust_once.cache_clear()
    assert make(graph())[0].cached == 1


@posix
def test_a_file_that_others_can_write_is_not_used(folder, fresh):
    make(graph())
    (path,) = files(folder)
    path.chmod(0o666)
    with pytest.warns(cache.DistrustWarning, match=f"others may write to {path}"):
        assert make(graph())[0].cached == 0
    assert make(graph())[0].cached == 1, "made anew, and ours"


@as_root
@pytest.mark.parametrize("place", ["top", "above", "inner", "file"])
def test_what_belongs_to_another_user_is_not_used(folder, fresh, place):
    make(graph())
    where = files(folder)[0] if place == "file" else PLACES[place](folder)
    os.chown(where, 12345, -1)
    cache._distrust_once.cache_clear()
    with pytest.warns(cache.DistrustWarning, match=r"belongs to another user \(uid 12345\)"):
        assert make(graph())[0].cached == 0


@posix
def test_a_sticky_folder_above_is_good_enough(folder, fresh):
    make(graph())
    folder.parent.chmod(0o1777)
    cache._distrust_once.cache_clear()
    assert make(graph())[0].cached == 1
    folder.chmod(0o1777)
    cache._distrust_once.cache_clear()
    assert make(graph())[0].cached == 1
    files(folder)[0].parent.chmod(0o1777)  # but where the file is others may add files
    cache._distrust_once.cache_clear()
    with pytest.warns(cache.DistrustWarning):
        assert make(graph())[0].cached == 0


@posix
def test_new_folders_are_private_under_any_umask(folder, fresh, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(folder / "a" / "b"))
    old = os.umask(0o000)
    try:
        make(graph())
    finally:
        os.umask(old)
    made = [folder, *folder.rglob("*")]
    assert len(made) == 5
    assert not any(p.stat().st_mode & 0o077 for p in made)
    assert make(graph())[0].cached == 1


@posix
def test_links_and_pipes_are_not_read(folder, fresh, tmp_path):
    make(graph())
    (path,) = files(folder)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert make(graph())[0].cached == 0
    assert not path.is_symlink() and elsewhere.read_bytes() == path.read_bytes()
    path.unlink()
    os.mkfifo(path)  # reading it would wait forever
    with pytest.warns(cache.DistrustWarning, match="is no plain file"):
        assert make(graph())[0].cached == 0
    assert path.is_file()
    path.unlink()
    path.mkdir()
    with pytest.warns(cache.DistrustWarning, match="is no plain file"):
        cache._said.clear()
        assert make(graph())[0].cached == 0


@posix
def test_a_link_to_a_folder_of_ones_own_is_fine(folder, fresh, tmp_path, monkeypatch):
    make(graph())
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "link"))
    assert make(graph())[0].cached == 1
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "circle"))
    assert make(graph())[1] == 6.0


def test_trimming_deletes_nothing_but_kernels(folder, fresh, monkeypatch, tmp_path):
    photos = folder / "photos"
    photos.mkdir(parents=True)
    (photos / "holiday.jpg").write_bytes(bytes(5000))
    (folder / "ab").mkdir()
    (folder / "ab" / "notes.o").write_bytes(bytes(5000))
    others = tmp_path / "others"
    others.mkdir()
    (others / f"{'c' * 40}.o").write_bytes(bytes(5000))
    (folder / "cc").symlink_to(others)
    monkeypatch.setattr(cache, "LIMIT", 100)
    cache._trim_once.cache_clear()
    assert cache.write("de" * 20, bytes(50))
    assert len(files(folder)) == 2 and (others / f"{'c' * 40}.o").exists()


def test_a_user_without_a_home_compiles_all_the_same(folder, monkeypatch):
    monkeypatch.delenv("ARCHIMEDES_CACHE_DIR")

    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "home", home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.cache_folder() is None
    assert make(graph())[1] == 6.0


@pytest.mark.parametrize("seed", range(8))
def test_garbage_of_every_kind(folder, fresh, seed):
    make(graph())
    (path,) = files(folder)
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for _ in range(5):
        data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
    cut = int(rng.integers(len(data)))
    path.write_bytes(bytes(data) if seed % 2 else bytes(data[:cut]) + rng.bytes(cut))
    kernel, value = make(graph())
    assert (kernel.cached, value) == (0, 6.0)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write to")
def test_a_home_for_reading_only(folder, fresh, monkeypatch):
    monkeypatch.delenv("ARCHIMEDES_CACHE_DIR")
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, "/proc/self/task")
        assert cache.write("ab" * 20, b"code") is False
        assert make(graph())[1] == 6.0


KILLED = """
import os, signal
from archimedes.backends import code_cache as cache
def die(*args): os.kill(os.getpid(), signal.SIGKILL)
cache.os.replace = die
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_killed_in_the_middle_of_writing(folder, fresh):
    import archimedes

    env = {**os.environ, "PYTHONPATH": str(Path(archimedes.__file__).parents[1])}
    command = [sys.executable, "-c", KILLED + SCRIPT]
    assert subprocess.run(command, env=env, capture_output=True, timeout=60).returncode == -9
    assert [p.suffix for p in files(folder)] == [".part"]
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, timeout=60)
    assert done.stdout.split() == [b"1.0", b"0"], done.stderr
    assert sorted(p.suffix for p in files(folder)) == [".o"] * (1 + is_supported()) + [".part"]


def test_code_depends_on_every_source_that_writes_it(tmp_path, monkeypatch):
    """All of ``lowering``, ``graph`` and the files that backends share, besides a backend's own."""
    digest = cache._folder_digest.__wrapped__
    monkeypatch.setattr(cache, "_folder_digest", digest)
    seen = []
    sources = cache._sources

    def noted(folder, inside):
        for name, *known in sources(folder, inside):
            seen.append(Path(folder + name))
            yield name, *known

    monkeypatch.setattr(cache, "_sources", noted)
    inner = tmp_path / "inner" / "own.py"
    inner.parent.mkdir()
    inner.write_text("a = 1")
    first = cache.sources_digest(tmp_path)
    backends = Path(cache.__file__).parent
    wanted = {inner, *backends.glob("*.py"), *(backends / "lowering").glob("*.py")}
    assert (
        wanted <= set(seen) and backends.parent / "graph" / "regions" / "block_regions.py" in seen
    )
    assert cache.sources_digest(tmp_path) == first
    # Time of change, size, name.
    os.utime(inner, ns=(1, 1))
    changed = {first, cache.sources_digest(tmp_path)}
    inner.write_text("a = 12")
    os.utime(inner, ns=(1, 1))
    changed.add(cache.sources_digest(tmp_path))
    inner.rename(inner.with_name("other.py"))
    changed.add(cache.sources_digest(tmp_path))
    assert len(changed) == 4
