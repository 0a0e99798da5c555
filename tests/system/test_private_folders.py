"""Where the cache is on each system, and who else may write to a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from archimedes.system.private_folders import explain_distrust, find_other_writer, user_cache_folder

HOME = Path.home()
ME = "S-1-5-21-1-2-3-1001"
FULL, MODIFY, READ = 0x1F01FF, 0x1301BF, 0x1200A9
ADD = 0x4
#: Lists as Windows makes them: of a folder of the user, of all users, of the disk, of a shared one.
OWN = [(ME, FULL), ("S-1-5-18", FULL), ("S-1-5-32-544", FULL)]
USERS = [("S-1-5-18", FULL), ("S-1-5-32-544", FULL), ("S-1-5-32-545", READ), ("S-1-1-0", READ)]
ROOT = [("S-1-5-32-544", FULL), ("S-1-5-32-545", READ), ("S-1-5-11", ADD)]
SHARED = [("S-1-5-32-544", FULL), ("S-1-5-11", MODIFY)]


@pytest.mark.parametrize(
    "platform, environment, expected",
    [
        ("linux", {}, HOME / ".cache"),
        ("linux", {"XDG_CACHE_HOME": "/a/b"}, Path("/a/b")),
        ("linux", {"XDG_CACHE_HOME": ""}, HOME / ".cache"),
        ("darwin", {"XDG_CACHE_HOME": "/a/b"}, HOME / "Library" / "Caches"),
        ("win32", {"LOCALAPPDATA": "/a/b"}, Path("/a/b")),
        ("win32", {}, HOME / "AppData" / "Local"),
    ],
)
def test_each_system_has_its_folder(platform, environment, expected):
    assert user_cache_folder(platform, environment) == expected


@pytest.mark.parametrize(
    "grants, above, expected",
    [
        (OWN, False, None),
        (USERS, True, None),
        (ROOT, True, None),
        (ROOT, False, "every user who has logged in"),
        (SHARED, False, "every user who has logged in"),
        (SHARED, True, "every user who has logged in"),
        ([*OWN, ("S-1-1-0", FULL)], True, "everyone"),
        ([("S-1-5-21-1-2-3-1002", FULL), (ME, FULL)], False, "another user (S-1-5-21-1-2-3-1002)"),
        ([(ME, FULL), ("S-1-3-0", FULL)], False, None),
    ],
)
def test_lists_of_windows(grants, above, expected):
    assert find_other_writer(grants, ME, above) == expected


def test_a_folder_that_is_not_there_is_not_trusted(tmp_path):
    assert "cannot be looked at" in explain_distrust(tmp_path / "missing")


@pytest.mark.skipif(sys.platform != "win32", reason="reads lists of access rights")
def test_windows_itself(tmp_path):
    from archimedes.system.private_folders import read_grants, this_user

    assert this_user().startswith("S-1-5-")
    assert list(read_grants(tmp_path))
    with pytest.raises(OSError):
        list(read_grants(tmp_path / "missing"))
