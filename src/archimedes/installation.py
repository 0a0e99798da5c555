"""How this package is installed, for messages that say what to install besides it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

#: The name under which the package index knows this package: ``archimedes`` there is another one.
DISTRIBUTION = "archimedes-dynamics"


@cache
def checkout_folder() -> Path | None:
    """Return the root of the source tree that this package runs from, or None for a wheel."""
    package = Path(__file__).resolve().parent
    root = package.parent.parent
    return root if package.parent.name == "src" and (root / "pyproject.toml").is_file() else None


def install_command(extra: str) -> str:
    """Return the command that installs this package with one of its extras.

    Parameters
    ----------
    extra
        Name of the extra, a key of ``[project.optional-dependencies]`` in ``pyproject.toml``.

    Returns
    -------
    str
        A command for the shell. From a source tree it installs that tree, from a wheel the
        distribution.

    Examples
    --------
    >>> install_command("viewer").endswith('[viewer]"')
    True
    """
    root = checkout_folder()
    if root is None:
        return f'pip install "{DISTRIBUTION}[{extra}]"'
    source = "." if root == Path.cwd() else root
    return f'pip install -e "{source}[{extra}]"'
