"""Folders of campaigns under attack: links, damaged files, full disks, folders for reading only."""

from __future__ import annotations

import errno
import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from archimedes.simulate import CampaignError, Normal, monte_carlo
from archimedes.simulate.campaigns import chunk_store as store

links = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="no symbolic links to refuse")
DRAWN = {"a": Normal()}


def double(p):
    return {"x": 2.0 * p["a"]}


def run(folder: Path, n: int = 20, chunk: int = 10):
    return monte_carlo(double, DRAWN, n, folder=folder, chunk=chunk)


@links
def test_the_lock_is_not_opened_through_a_link(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("do not touch")
    folder = tmp_path / "campaign"
    folder.mkdir()
    (folder / "lock").symlink_to(precious)
    with pytest.raises(CampaignError, match=r"lock cannot be opened .* no link"):
        run(folder)
    assert precious.read_text() == "do not touch"


@links
@pytest.mark.parametrize("name", ["manifest.part", "runs-0000000000-0000000010.part"])
def test_unfinished_files_are_not_written_through_links(tmp_path, name):
    precious = tmp_path / "precious.txt"
    precious.write_text("do not touch")
    folder = tmp_path / "campaign"
    folder.mkdir()
    (folder / name).symlink_to(precious)
    assert run(folder).complete  # a leftover goes
    assert precious.read_text() == "do not touch"
    assert not list(folder.glob("*.part"))


@links
def test_a_link_put_there_meanwhile_stops_the_campaign(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("do not touch")
    folder = tmp_path / "campaign"

    def attack(done, n):
        (folder / "runs-0000000010-0000000020.part").symlink_to(precious)

    with pytest.raises(CampaignError, match=r"part cannot be written \(File exists\)"):
        monte_carlo(double, DRAWN, 20, folder=folder, chunk=10, progress=attack)
    assert precious.read_text() == "do not touch"


@links
def test_a_store_that_is_a_link_is_fine(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run(tmp_path / "link").executed == 20
    assert run(tmp_path / "real").executed == 0


@links
def test_a_result_that_is_a_link_to_something_else_is_damaged(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("do not touch")
    folder = tmp_path / "campaign"
    run(folder)
    (folder / "runs-0000000010-0000000020.npz").unlink()
    (folder / "runs-0000000010-0000000020.npz").symlink_to(precious)
    with pytest.raises(CampaignError, match="is damaged"):
        run(folder)
    assert precious.read_text() == "do not touch"


def test_files_of_others_stay(tmp_path):
    for name in ("movie.part", "runs.part", "runs-1.npz", "notes.txt"):
        (tmp_path / name).write_text("mine")
    assert run(tmp_path).complete
    assert (tmp_path / "movie.part").read_text() == (tmp_path / "runs.part").read_text() == "mine"


@pytest.mark.parametrize("when", ["write", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch, when, number):
    run(tmp_path, 10)

    def full(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        target = {"write": (np, "savez"), "fsync": (os, "fsync"), "replace": (os, "replace")}[when]
        patch.setattr(*target, full)
        words = rf"cannot be written \({os.strerror(number)}\).*the same call goes on"
        with pytest.raises(CampaignError, match=words):
            run(tmp_path)
    assert not list(tmp_path.glob("*.part"))
    assert run(tmp_path).executed == 10


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_folder_in_an_impossible_place(tmp_path):
    (tmp_path / "file").write_text("a file")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/campaign")):
        with pytest.raises(CampaignError, match="cannot be used as a folder"):
            run(folder)


def archive(**members: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def array(value) -> bytes:
    data = io.BytesIO()
    np.save(data, value, allow_pickle=True)
    return data.getvalue()


HEADER = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"
HUGE = HEADER % b"1000000000000000"
HUGE = HUGE + b" " * (128 - len(HUGE) - 1) + b"\n"
GOOD = {"status.npy": array(np.zeros(10, int)), "messages.npy": array(np.array([], "U1"))}
#: What may lie in the place of a chunk; pickles would run code.
HOSTILE = {
    "empty": b"",
    "text": b"runs",
    "no archive": array(np.zeros(10)),
    "pickle": array(np.array([{"a": 1}], dtype=object)),
    "pickle inside": archive(**GOOD, **{"result['x'].npy": array(np.array([print], dtype=object))}),
    "no arrays": archive(),
    "bytes in place of an array": archive(**GOOD, **{"result['x'].npy": b"no array"}),
    "too few rows": archive(**GOOD, **{"result['x'].npy": array(np.zeros(3))}),
    "no axis": archive(**GOOD, **{"result['x'].npy": array(np.float64(1.0))}),
    "huge header": archive(**GOOD, **{"result['x'].npy": HUGE}),
    "status too short": archive(**{**GOOD, "status.npy": array(np.zeros(2, int))}),
    "messages missing": archive(
        **{**GOOD, "status.npy": array(np.full(10, -100))},
        **{"result['x'].npy": array(np.zeros(10))},
    ),
    "evil header": archive(**{"result['x'].npy": HEADER % b"__import__('os').getcwd()" + b"\n"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_chunks_are_named(tmp_path, name):
    run(tmp_path)
    victim = tmp_path / "runs-0000000010-0000000020.npz"
    victim.write_bytes(HOSTILE[name])
    with pytest.raises(CampaignError, match=r"runs-0000000010-0000000020\.npz (is damaged|has \[)"):
        run(tmp_path)
    victim.unlink()
    assert run(tmp_path).executed == 10


@pytest.mark.parametrize("seed", range(12))
def test_random_damage_is_seen_or_harmless(tmp_path, seed):
    whole = run(tmp_path)
    rng = np.random.default_rng(seed)
    victim = tmp_path / "runs-0000000000-0000000010.npz"
    data = bytearray(victim.read_bytes())
    if seed % 3:
        data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
    else:
        del data[int(rng.integers(1, len(data))) :]
    victim.write_bytes(data)
    try:
        found = run(tmp_path)
    except CampaignError as error:
        assert "runs-0000000000-0000000010.npz" in str(error)
    else:  # a byte of a date or an attribute in the archive's directory
        assert found.results["x"].tobytes() == whole.results["x"].tobytes()


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "3", "{", "[" * 100_000, "\x00", '{"format": "other"}', "{}"]
)
def test_hostile_manifests(tmp_path, text):
    run(tmp_path)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(CampaignError, match=r"manifest\.json cannot be read|give another folder"):
        run(tmp_path)


def test_a_manifest_that_is_a_folder_or_no_text(tmp_path):
    run(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(CampaignError, match=r"manifest\.json cannot be read"):
        run(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(CampaignError, match=r"manifest\.json cannot be read"):
        run(tmp_path)


def test_chunks_that_overlap_are_refused(tmp_path):
    run(tmp_path)
    data = (tmp_path / "runs-0000000000-0000000010.npz").read_bytes()
    (tmp_path / "runs-0000000005-0000000015.npz").write_bytes(data)
    with pytest.raises(CampaignError, match="hold the same runs"):
        run(tmp_path)


def test_the_manifest_is_plain_text(tmp_path):
    run(tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text())["seed"] == 0
    assert store.LEFTOVER.fullmatch("manifest.part")
