"""What ``codegen`` returns: the files of a C project, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archimedes.embedded.checking.host_library import HostLibrary
from archimedes.embedded.checking.verification import Verification, verify_model
from archimedes.embedded.files.targets import TARGETS
from archimedes.embedded.files.user_regions import keep_user_code
from archimedes.embedded.model import Model
from archimedes.embedded.preparation import Prepared
from archimedes.errors import CodegenError

__all__ = ["CProject"]


@dataclass(frozen=True)
class CProject:
    """A generated C project.

    Parameters
    ----------
    name : str
        Name of the project and prefix of its functions.
    target : str
        What the project is for.
    files : dict
        Texts of the files by path.
    model : Model
        Structs and functions of the project.
    prepared : Prepared
        The recorded function.
    renamed : dict
        Python names that C could not keep, with those used instead.
    notes : tuple of str
        Remarks for the reader.
    discard_user_code : bool, optional
        Overwrite what users wrote into USER CODE regions. False by default.
    paths : tuple of Path, optional
        Files that were written.
    verification : Verification, optional
        Result of ``verify=True``.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> def gain(x, k):
    ...     return k * x
    >>> project = arc.codegen(gain, (np.zeros(2), 3.0), return_names=("y",))
    >>> sorted(project.files)
    ['CMakeLists.txt', 'Makefile', 'gain.c', 'gain.h', 'main.c']
    """

    name: str
    target: str
    files: dict[str, str]
    model: Model
    prepared: Prepared
    renamed: dict[str, str]
    notes: tuple[str, ...]
    discard_user_code: bool = False
    paths: tuple[Path, ...] = ()
    verification: Verification | None = field(default=None)

    @property
    def c_file(self) -> str:
        """Path in ``files`` of the C file that holds the algorithm."""
        return TARGETS[self.target].folder.format(name=self.name) + f"{self.name}.c"

    def write(self, output_dir: Any) -> tuple[Path, ...]:
        """Write the files into a folder, and keep what users wrote into USER CODE regions.

        Nothing is written unless all of it can be.

        Parameters
        ----------
        output_dir : path
            The folder.
        """
        folder = Path(output_dir)
        texts = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in self.files.items():
                path = folder / name
                old = path.read_text(encoding="utf-8") if path.exists() else ""
                texts[path] = keep_user_code(text, old, str(path), self.discard_user_code)
            for path, text in texts.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("w", encoding="utf-8", newline="\n") as file:
                    file.write(text)
        except OSError as error:
            raise CodegenError(
                f"codegen: cannot write to output_dir={str(output_dir)!r} ({error.strerror}): "
                "choose a folder that you may write to"
            ) from error
        return tuple(texts)

    def verify(self, samples: int = 48, seed: int = 0) -> Verification:
        """Compile on this machine and compare with the interpreter, bit for bit.

        Parameters
        ----------
        samples : int, optional
            Number of random inputs, 48 by default.
        seed : int, optional
            Seed of these inputs.
        """
        return verify_model(self.model, samples, seed)

    def load(self, flags: Sequence[str] = ()) -> HostLibrary:
        """Compile on this machine and load it, to call the C code from Python.

        Parameters
        ----------
        flags : sequence of str, optional
            Further flags of the compiler.
        """
        return HostLibrary(self.model, flags)

    def __repr__(self) -> str:
        m = self.model
        lines = [
            f"C project {self.name!r} for target {self.target!r}: {m.source.stats.statements} "
            f"statements, {len(m.source.helpers)} helper functions, hash {m.digest}"
        ]
        for _, struct in m.roots():
            members = ", ".join(f.name for f in struct.fields)
            lines.append(f"  {struct.c_name}: {members}")
        where = f"written to {self.paths[0].parent}" if self.paths else "not written"
        lines.append(f"  files ({where}): {', '.join(self.files)}")
        lines += [f"  {path} is called {c_name} in C" for path, c_name in self.renamed.items()]
        lines += [f"  note: {note}" for note in self.notes]
        if self.verification is not None:
            lines.append(f"  verified: {self.verification}")
        return "\n".join(lines)
