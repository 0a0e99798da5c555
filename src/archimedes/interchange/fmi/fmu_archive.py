"""FMU files: zip archives from anywhere, of which nothing is trusted.

An archive is judged by its table of contents before anything is unpacked. Refused are what could
fill the disk (zip bombs, entries that lie over each other), what could write or read outside the
folder it is unpacked into (absolute names, ``..``, drive letters, links, devices), and what readers
could understand in two ways (a name twice, a file that is also a folder, names that differ between
the table and the entry). Sizes are counted again while unpacking, whatever the table says.
"""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

#: What an FMU may hold at most: bytes of the file, bytes unpacked, entries.
MOST_PACKED, MOST_UNPACKED, MOST_ENTRIES = 2 * 2**30, 4 * 2**30, 20_000
#: An entry of more than this many bytes may not be more than RATIO times as long as its packed
#: form. Text is packed to a twentieth; only what is made for it exceeds a few hundred.
SMALL, RATIO = 2**20, 250
#: Bytes of a text file that is read into memory.
MOST_TEXT = 64 * 2**20
CHUNK = 2**20
#: Characters of a name.
LONGEST = 1000
METHODS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}
ENCRYPTED = 0x1
#: Bytes of an entry's own header, without name and extra field.
HEADER = 30


class FmuArchive:
    """A zip archive whose table of contents has been checked.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    ValueError
        It is no zip archive, or one that is not safe to unpack.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = self.path.name
        if not self.path.exists():
            raise FileNotFoundError(f"{os.fspath(path)}: no such file")
        status = os.stat(self.path)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{os.fspath(path)} is not a file: give the path of an .fmu file")
        if status.st_size > MOST_PACKED:
            raise self.error(f"{status.st_size} bytes are too much; at most {MOST_PACKED}")
        self.entries = {info.filename: info for info in self._checked_entries(status.st_size)}

    def error(self, message: str) -> ValueError:
        """Return an error that names the file."""
        return ValueError(f"{self.name}: {message}")

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in a folder and below it."""
        return [name for name in self.entries if name.startswith(folder)]

    def read(self, name: str, most: int = MOST_TEXT) -> bytes:
        """Return the content of a file of at most this many bytes."""
        if name not in self.entries:
            raise self.error(f"there is no {name} in it: not an FMU, or not all of it")
        if self.entries[name].file_size > most:
            raise self.error(f"{name} has {self.entries[name].file_size} bytes; at most {most}")
        with self._open() as archive:
            return b"".join(self._chunks(archive, name))

    def extract(self, folder: Path, *parts: str) -> None:
        """Unpack the files whose names begin with one of the parts into a folder."""
        with self._open() as archive:
            for name in filter(lambda name: name.startswith(parts), self.entries):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                # "x": what lies there is not written over, nor followed if it is a link.
                with target.open("xb") as file:
                    for chunk in self._chunks(archive, name):
                        file.write(chunk)

    def _open(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except UnicodeDecodeError:
            raise self.error("not an FMU: it has names that are no text") from None
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
            raise self.error(f"not a zip archive, so no FMU ({_short(error)})") from None

    def _chunks(self, archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
        """Yield the content of a file; no more of it than the table says."""
        info, count = self.entries[name], 0
        try:
            with archive.open(info) as file:
                while chunk := file.read(CHUNK):
                    count += len(chunk)
                    if count > info.file_size:
                        raise self.error(f"{name} is longer than its {info.file_size} bytes")
                    yield chunk
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            UnicodeDecodeError,
        ) as error:
            raise self.error(f"{name} is damaged: {_short(error)}") from None
        if count != info.file_size:
            raise self.error(f"{name} ends after {count} of {info.file_size} bytes")

    # ---- the table of contents -----------------------------------------------------------------

    def _checked_entries(self, size: int) -> list[zipfile.ZipInfo]:
        with self._open() as archive:
            infos = archive.infolist()
        if len(infos) > MOST_ENTRIES:
            raise self.error(f"{len(infos)} entries are too many; at most {MOST_ENTRIES}")
        self._check_lengths(infos, size)
        seen: dict[str, str] = {}
        for info in infos:
            self._check_kind(info)
            self._check_name(info, seen)
        self._check_parents(seen)
        return [info for info in infos if not info.filename.endswith("/")]

    def _check_lengths(self, infos: list[zipfile.ZipInfo], size: int) -> None:
        total = sum(info.file_size for info in infos)
        if total > MOST_UNPACKED:
            raise self.error(
                f"unpacked it would have {total} bytes; at most {MOST_UNPACKED} (a zip bomb?)"
            )
        for info in infos:
            if info.file_size > SMALL and info.file_size > RATIO * info.compress_size:
                raise self.error(
                    f"{info.filename!r} grows from {info.compress_size} to {info.file_size} bytes, "
                    f"more than {RATIO} times (a zip bomb?)"
                )
        end = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            if info.header_offset < end:
                raise self.error(f"{info.filename!r} lies over another entry (a zip bomb?)")
            end = info.header_offset + HEADER + info.compress_size
        if end > size:
            raise self.error("entries reach beyond the end of the file")

    def _check_kind(self, info: zipfile.ZipInfo) -> None:
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        if kind and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
            raise self.error(f"{info.filename!r} is {what}: an FMU holds plain files only")
        if info.flag_bits & ENCRYPTED:
            raise self.error(f"{info.filename!r} is encrypted")
        if info.compress_type not in METHODS:
            raise self.error(
                f"{info.filename!r} is packed by method {info.compress_type}; the standard allows "
                "stored (0) and deflated (8)"
            )

    def _check_name(self, info: zipfile.ZipInfo, seen: dict[str, str]) -> None:
        # Python cuts names at a NUL and turns the separators of the system into "/".
        name = info.orig_filename
        if len(name) > LONGEST:
            raise self.error(f"a name of {len(name)} characters; at most {LONGEST}")
        if not name or any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
            raise self.error(f"the name {name!r} has characters that no file should have")
        parts = name.removesuffix("/").split("/")
        if name.startswith(("/", "\\")) or ":" in name:
            raise self.error(f"{name!r} is an absolute name: it would be written outside")
        if "\\" in name:
            raise self.error(f"{name!r} has a backslash: the standard asks for /")
        if ".." in parts:
            raise self.error(f"{name!r} leads out of its folder")
        if any(part in ("", ".") or part != part.rstrip(". ") for part in parts):
            raise self.error(f"{name!r} means different files on different systems")
        # Some systems do not tell upper case from lower case.
        key = name.removesuffix("/").casefold()
        if key in seen:
            raise self.error(f"{name!r} is there twice, also as {seen[key]!r}")
        seen[key] = name

    def _check_parents(self, seen: dict[str, str]) -> None:
        for key, name in seen.items():
            parent = key.rpartition("/")[0]
            while parent:
                if parent in seen and not seen[parent].endswith("/"):
                    raise self.error(f"{seen[parent]!r} is a file and the folder of {name!r}")
                parent = parent.rpartition("/")[0]


def _short(error: Exception) -> str:
    """Return a message that may quote the file, cut to a line."""
    text = str(error)
    return text if len(text) <= 200 else f"{text[:200]} ..."
