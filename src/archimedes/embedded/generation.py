"""``codegen``: a NumPy function becomes a C project."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from archimedes.embedded.c_types.branches import fixed_values
from archimedes.embedded.c_types.c_values import scalars
from archimedes.embedded.files.original_layout import KERNEL, original_files
from archimedes.embedded.files.targets import project_files, target_named
from archimedes.embedded.model_building import make_model
from archimedes.embedded.preparation import Prepared, prepare
from archimedes.embedded.project import CProject
from archimedes.embedded.settings import Options
from archimedes.errors import CodegenError

__all__ = ["codegen"]


def codegen(
    func: Callable[..., Any],
    args: Sequence[Any],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    return_names: Sequence[str] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    float_type: Any = float,
    int_type: Any = int,
    input_descriptions: Mapping[str, str] | None = None,
    output_descriptions: Mapping[str, str] | None = None,
    output_dir: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    verify: bool = False,
    target: str = "c",
    *,
    name: str | None = None,
    parameters: str | Sequence[str] = (),
    state: str | Sequence[str] | Mapping[str, str] | None = None,
    template: str | Path | None = None,
    optimize: str = "speed",
) -> CProject:
    """Generate a small C project from a function, with the same bits as in Python.

    ``<name>_step(in, out, work)`` computes; ``<name>_init`` sets the default inputs.

    Parameters
    ----------
    func : callable
        The function, plain NumPy.
    args : sequence
        Example arguments. Their shapes become the structs, their values the defaults.
    static_argnums, static_argnames : optional
        Arguments that are part of the program, as in :func:`compile`.
    return_names : sequence of str, optional
        Names of the results.
    kwargs : mapping, optional
        Example values of keyword arguments.
    float_type : type, optional
        ``float`` for C's double (default), or np.float32.
    int_type : type, optional
        Integer type at the interface: ``int``, np.int32, ...
    input_descriptions, output_descriptions : mapping, optional
        Comments for inputs and results, by name: ``{"x.pos": "position in m"}``.
    output_dir : path, optional
        Folder to write to. By default nothing is written: the files are in the result.
    options : mapping, optional
        Options of :class:`archimedes.embedded.settings.Options`.
    verify : bool, optional
        Compile the code here and compare its results with Python's.
    target : {"c", "arduino", "cortex-m"}, optional
        What the project is for.
    name : str, optional
        Name of the C functions. By default that of `func`.
    parameters : str or sequence of str, optional
        Arguments that become ``static const`` values in the C file.
    state : str, sequence of str or mapping, optional
        Arguments, each with the result that replaces it in the next step; ``<name>_carry`` copies
        them.
    template : path, optional
        Folder with further templates.
    optimize : {"speed", "size", "smallest"}, optional
        ``"speed"``: operations on arrays of 64 elements or more become loops (:func:`compile` has
        ``loops_from`` for other numbers). ``"size"``: from 12 elements on, and loops that differ
        only in their arrays share a function. ``"smallest"``: double arithmetic also goes through
        tables of operations, for processors without a floating-point unit.

    Returns
    -------
    CProject
        The files, with methods to compile and run them.

    Examples
    --------
    >>> import numpy as np
    >>> def lowpass(y, u, alpha):
    ...     return y + alpha * (u - y)
    >>> project = codegen(lowpass, (0.0, 0.0, 0.1), return_names=("y",), state="y")
    >>> print(project.files["lowpass.c"].split("lowpass_step", 1)[1].split("}")[0].split("{")[1])
    <BLANKLINE>
        (void)work;
        lowpass_kernel(in->y,
                       in->u,
                       in->alpha,
                       &out->y);
    <BLANKLINE>
    """
    settings = Options.of(options)
    types = scalars(float_type, int_type)
    kind = target_named(target)
    prepared = prepare(
        func,
        args,
        kwargs,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        name=name,
        options=settings,
        optimize=optimize,
    )
    original = settings.layout == "original"
    if original:
        prepared = dataclasses.replace(prepared, name=prepared.name + KERNEL)
    model = make_model(
        prepared,
        types,
        settings,
        parameters=(parameters,) if isinstance(parameters, str) else tuple(parameters),
        state=state,
        return_names=prepared.return_names if return_names is None else tuple(return_names),
        input_notes=_notes(input_descriptions, "input_descriptions"),
        output_notes=_notes(output_descriptions, "output_descriptions"),
    )
    folder = None if template is None else Path(template)
    project = CProject(
        name=model.name,
        target=kind.name,
        files=(
            original_files(model) if original else project_files(model, kind, folder, settings.cpp)
        ),
        model=model,
        prepared=prepared,
        renamed=model.renamed,
        notes=tuple(_remarks(prepared)),
        discard_user_code=settings.discard_user_code,
    )
    if verify:
        project = dataclasses.replace(project, verification=project.verify(settings.samples))
    if output_dir is not None:
        project = dataclasses.replace(project, paths=project.write(output_dir))
    return project


def _notes(given: Mapping[str, str] | None, what: str) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        raise CodegenError(
            f"codegen: {what} is a {type(given).__name__}: give a dict of names and texts, such as "
            "{'x': 'state vector'}"
        )
    return {str(key): str(text) for key, text in (given or {}).items()}


def _remarks(prepared: Prepared) -> list[str]:
    """Say which values became part of the code."""
    remarks = []
    for path, value in fixed_values(prepared):
        shown = repr(value) if len(repr(value)) < 40 else type(value).__name__
        hint = "; pass np.bool_ to make it an input" if isinstance(value, bool) else ""
        remarks.append(f"{path} = {shown} is fixed in the code{hint}")
    return remarks
