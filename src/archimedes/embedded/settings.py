"""The options of ``codegen``: what there is, and what each means."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archimedes.errors import CodegenError

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Options of :func:`codegen`, given as a dict.

    ``version``: text of the version macro. ``scratch``: "stack", or "workspace" to put arrays that
    the step needs into ``<name>_work_t``. ``cpp``: add a header-only C++ class. ``nonfinite``:
    allow nan and inf as default values. ``max_iterations``: longest loop with a condition.
    ``adaptive``: allow solvers that choose their own steps.
    ``samples``: sets of inputs that ``verify`` tries. ``discard_user_code``: overwrite files
    even if something that a user wrote is lost. ``traceability``: comments in the C code that name
    the lines of Python it comes from, see ``archimedes.embedded.report``. ``layout``: "own", or
    "original" for files and names as programs written for Archimedes 0.5 expect them.
    """

    version: str = "1.0.0"
    scratch: str = "stack"
    cpp: bool = False
    nonfinite: bool = False
    max_iterations: int = 10_000
    adaptive: bool = False
    traceability: bool = False
    samples: int = 48
    discard_user_code: bool = False
    layout: str = "own"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.+-]+", str(self.version), re.ASCII):
            raise CodegenError(
                f"codegen: version={self.version!r} must consist of letters, digits and .+-_"
            )
        if self.scratch not in ("stack", "workspace"):
            raise CodegenError(
                f"codegen: scratch={self.scratch!r} is not one of 'stack', 'workspace'"
            )

        if self.layout not in ("own", "original"):
            raise CodegenError(f"codegen: layout={self.layout!r} is not one of 'own', 'original'")

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Options:
        """Read a user's dict; an unknown key is an error that names the nearest one."""
        known = [field.name for field in dataclasses.fields(cls)]
        for key in given or {}:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {known}"
                raise CodegenError(f"codegen: options has the unknown key {key!r}; {hint}")
        return cls(**dict(given or {}))
