"""Locks, new files and renaming, with real processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from archimedes.system import files

HOLDER = """
import pathlib, sys
from archimedes.system.files import lock_file
held = lock_file(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
windows = pytest.mark.skipif(sys.platform != "win32", reason="what Windows refuses")
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes, and links that anybody can make")


def holder(path):
    """A process that holds a lock until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"held"
    return process


@pytest.mark.parametrize("ending", ["closed", "killed"])
def test_a_lock_of_another_process_ends_with_it(tmp_path, ending):
    process = holder(tmp_path / "lock")
    with pytest.raises(BlockingIOError):
        files.lock_file(tmp_path / "lock")
    if ending == "killed":
        process.kill()
    process.communicate()
    files.lock_file(tmp_path / "lock").close()


def test_a_lock_is_one_in_this_process_too(tmp_path):
    with files.lock_file(tmp_path / "lock"), pytest.raises(BlockingIOError):
        files.lock_file(tmp_path / "lock")
    files.lock_file(tmp_path / "lock").close()


def test_new_files_are_new(tmp_path):
    with files.open_new(tmp_path / "a") as file:
        file.write(b"1\n2\r\n")
    assert (tmp_path / "a").read_bytes() == b"1\n2\r\n"
    with pytest.raises(FileExistsError):
        files.open_new(tmp_path / "a")


@posix
def test_new_files_are_private_and_no_links(tmp_path):
    files.open_new(tmp_path / "a").close()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for opened in (files.open_for_reading, files.open_new, files.lock_file):
        with pytest.raises(OSError):
            opened(tmp_path / "link")


@posix
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    handle = files.open_for_reading(tmp_path / "pipe")
    assert not stat.S_ISREG(os.fstat(handle).st_mode)
    os.close(handle)


def test_renaming_replaces_and_reaches_the_disk(tmp_path):
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "old").write_bytes(b"old")
    files.rename(tmp_path / "new", tmp_path / "old")
    files.write_name_to_disk(tmp_path)
    assert (tmp_path / "old").read_bytes() == b"new" and not (tmp_path / "new").exists()


def test_windows_is_asked_again(tmp_path, monkeypatch):
    """Somebody holds the file at first: on Windows it is tried again, elsewhere it is an error."""
    (tmp_path / "new").write_bytes(b"new")
    real, refusals = os.replace, [PermissionError(13, "held by a scanner")] * 3

    def replace(source, target):
        if refusals:
            raise refusals.pop()
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(PermissionError):
        files.rename(tmp_path / "new", tmp_path / "old")
    monkeypatch.setattr(sys, "platform", "win32")
    files.rename(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"new" and not refusals


@windows
def test_windows_gives_up_on_a_file_that_stays_open(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    (tmp_path / "new").write_bytes(b"new")
    with (tmp_path / "old").open("wb"), pytest.raises(PermissionError):
        files.rename(tmp_path / "new", tmp_path / "old")
    files.rename(tmp_path / "new", tmp_path / "old")
