"""Where commands write: into one folder that is named, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from archimedes.cli.answers import CommandError

__all__ = ["input_file", "output_file", "output_folder"]


def output_folder(folder: Path) -> Path:
    """Make a folder and return it, or say why it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"{folder.absolute()} cannot be made ({error.strerror}): name another folder with "
            "--output"
        ) from None
    return folder


def output_file(folder: Path, name: str) -> Path:
    """Return a path directly inside a folder, never through a link that leads elsewhere."""
    path = folder / name
    if Path(name).name != name or path.is_symlink():
        raise CommandError(f"{path} leads out of {folder}: remove the link, or name another folder")
    return path


def input_file(path: Path, most: int = 2**30) -> Path:
    """Return the path of a file that can be read, of `most` bytes."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder: name a file in it")
    if not path.is_file():
        raise CommandError(f"{path} is not there, or no plain file")
    if path.stat().st_size > most:
        raise CommandError(f"{path} has more than {most // 2**20} MiB: too much to look at")
    return path
