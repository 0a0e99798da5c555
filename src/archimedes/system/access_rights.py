"""Who may change a file on Windows, by its owner and its list of access rights.

A list grants rights to users and groups, each named by an identifier such as ``S-1-5-18``
(Microsoft, "Well-known SIDs"). The functions of ``advapi32`` that read it have been there since
Windows NT.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["find_other_writer"]

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
        found = map(ctypes.byref, (owner, rights, memory))
        status = library.GetNamedSecurityInfoW(
            ctypes.c_wchar_p(str(path)), _FILE, _OWNER_AND_LIST,
            next(found), None, next(found), None, next(found),
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
        found = text.value or ""
        ctypes.WinDLL("kernel32").LocalFree(text)
        return found

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
            given = ctypes.byref(memory), ctypes.sizeof(memory), ctypes.byref(size)
            if not library.GetTokenInformation(token, user, *given):
                raise ctypes.WinError()
            # TOKEN_USER begins with a pointer to the identifier.
            return _text(ctypes.cast(memory, ctypes.POINTER(ctypes.c_void_p)).contents)
        finally:
            kernel.CloseHandle(token)
