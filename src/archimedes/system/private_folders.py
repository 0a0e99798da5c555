"""Folders for one user: where the cache is by default, and who else could write to a folder.

As ``ssh`` does with its keys: a file, its folder and all folders above must belong to this user or
to the administrator, and be writable for no one else. Linux and macOS say so by owner and mode; a
folder with the sticky bit is good enough above, because others cannot rename what is not theirs
there. Windows says so by lists of access rights: a list grants rights to users and groups, each
named by an identifier such as ``S-1-5-18`` (Microsoft, "Well-known SIDs").
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def user_cache_folder(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the folder where this user's programs keep what they can make again.

    ``%LOCALAPPDATA%`` on Windows, ``~/Library/Caches`` on macOS, elsewhere ``$XDG_CACHE_HOME`` or
    ``~/.cache``; None for a user without a home.
    """
    named = {"win32": "LOCALAPPDATA", "darwin": ""}.get(platform, "XDG_CACHE_HOME")
    if named and environment.get(named):
        return Path(environment[named])
    usual = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(platform, ".cache")
    try:
        return Path.home() / usual
    except RuntimeError:
        return None


def explain_distrust(folder: Path) -> str | None:
    """Return why files in a folder are not to be trusted, or None if they are."""
    try:
        real = folder.resolve(strict=True)
        problems = (_problem(p, p.stat(), p is not real) for p in [real, *real.parents])
        return next((x for x in problems if x is not None), None)
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go in circles
        return f"{folder} cannot be looked at: {error}"


def explain_distrust_of_file(path: Path, status: os.stat_result) -> str | None:
    """Return why an open file, in a trusted folder, is not to be trusted."""
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is no plain file"
    return _problem(path, status)


def _problem(path: Path, status: os.stat_result, above: bool = False) -> str | None:
    if sys.platform == "win32":
        other = find_other_writer(read_grants(path), this_user(), above)
        return other and f"{other} may write to {path}"
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user (uid {status.st_uid})"
    if status.st_mode & _OTHERS and not (above and status.st_mode & stat.S_ISVTX):
        return f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user only."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


#: The system, administrators, the installer of Windows; and the owner of a file, who is looked at.
_TRUSTED = {
    "S-1-5-18",
    "S-1-5-32-544",
    "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
    "S-1-3-0",
    "S-1-3-4",
}
_NAMES = {
    "S-1-1-0": "everyone",
    "S-1-5-11": "every user who has logged in",
    "S-1-5-32-545": "every user of this machine",
}
#: Rights to exchange what is in a folder or file: delete it or what it holds, change its rights
#: or its owner, everything. Without the right to add: others may add to C:\ and exchange nothing.
_EXCHANGE = 0x40 | 0x1_0000 | 0x4_0000 | 0x8_0000 | 0x1000_0000
#: The same with the rights to write, to append and to add files.
_CHANGE = _EXCHANGE | 0x2 | 0x4 | 0x4000_0000
_ALLOWED, _INHERIT_ONLY = 0, 0x8
_FILE, _OWNER_AND_LIST = 1, 0x1 | 0x4


class _Entry(ctypes.Structure):
    """An entry of a list: an identifier follows."""

    _fields_ = (
        ("kind", ctypes.c_ubyte),
        ("flags", ctypes.c_ubyte),
        ("size", ctypes.c_ushort),
        ("rights", ctypes.c_uint32),
    )


def find_other_writer(
    grants: Iterable[tuple[str, int]], user: str, above: bool = False
) -> str | None:
    """Return who besides a user and administrators may change a file or folder, or None.

    Parameters
    ----------
    grants
        Identifiers with the rights that they have, as :func:`read_grants` yields them.
    user
        The identifier of the user.
    above
        Whether it is only a folder above, to which others may add what they like.

    Examples
    --------
    >>> find_other_writer([("S-1-5-18", 0x1F01FF), ("S-1-1-0", 0x1301BF)], "S-1-5-21-7")
    'everyone'
    """
    for who, rights in grants:
        if rights & (_EXCHANGE if above else _CHANGE) and who not in {*_TRUSTED, user}:
            return _NAMES.get(who, f"another user ({who})")
    return None


if sys.platform == "win32":

    def read_grants(path: Path) -> Iterator[tuple[str, int]]:
        """Yield who has which rights to a file or folder; its owner can have any."""
        library = ctypes.WinDLL("advapi32")
        owner, rights, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        pointers = map(ctypes.byref, (owner, rights, memory))
        status = library.GetNamedSecurityInfoW(
            ctypes.c_wchar_p(str(path)), _FILE, _OWNER_AND_LIST,
            next(pointers), None, next(pointers), None, next(pointers),
        )  # fmt: skip
        if status:
            raise ctypes.WinError(status)
        try:
            yield _text(owner), _CHANGE
            if not rights.value:  # no list: everyone may do everything
                yield "S-1-1-0", _CHANGE
                return
            number, entry = 0, ctypes.c_void_p()
            while library.GetAce(rights, number, ctypes.byref(entry)):
                number += 1
                one = ctypes.cast(entry, ctypes.POINTER(_Entry)).contents
                if one.kind == _ALLOWED and not one.flags & _INHERIT_ONLY:
                    assert entry.value is not None
                    yield _text(ctypes.c_void_p(entry.value + ctypes.sizeof(_Entry))), one.rights
        finally:
            ctypes.WinDLL("kernel32").LocalFree(memory)

    def _text(identifier: Any) -> str:
        text = ctypes.c_wchar_p()
        convert = ctypes.WinDLL("advapi32").ConvertSidToStringSidW
        if not convert(identifier, ctypes.byref(text)):
            raise ctypes.WinError()
        name = text.value or ""
        ctypes.WinDLL("kernel32").LocalFree(text)
        return name

    @cache
    def this_user() -> str:
        """Return the identifier of the user of this process."""
        library, kernel = ctypes.WinDLL("advapi32"), ctypes.WinDLL("kernel32")
        token, size = ctypes.c_void_p(), ctypes.c_uint32()
        query, user, this_process = 0x8, 1, ctypes.c_void_p(-1)
        if not library.OpenProcessToken(this_process, query, ctypes.byref(token)):
            raise ctypes.WinError()
        try:
            memory = ctypes.create_string_buffer(256)
            buffer = ctypes.byref(memory), ctypes.sizeof(memory), ctypes.byref(size)
            if not library.GetTokenInformation(token, user, *buffer):
                raise ctypes.WinError()
            # TOKEN_USER begins with a pointer to the identifier.
            return _text(ctypes.cast(memory, ctypes.POINTER(ctypes.c_void_p)).contents)
        finally:
            kernel.CloseHandle(token)
