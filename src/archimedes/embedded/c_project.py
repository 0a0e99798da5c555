"""``codegen``: a NumPy function becomes a C project, its files and what can be done with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike

from archimedes.analysis.ranges.arguments import arguments_around
from archimedes.analysis.ranges.bounds import Bounds, bound_recording
from archimedes.embedded import c_files
from archimedes.embedded.c_model import Model, make_model
from archimedes.embedded.c_structs import fixed_values, scalars
from archimedes.embedded.mixed_types import pair_states, with_double
from archimedes.embedded.preparation import Options, Prepared, as_compiled, prepare
from archimedes.embedded.verification import HostLibrary, Verification, verify_model
from archimedes.errors import CodegenError

if TYPE_CHECKING:
    from archimedes.embedded.wasm_project import WasmModule

__all__ = ["CProject", "codegen"]


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
    bounds : Bounds, optional
        Certified ranges of the results, of ``ranges=``.

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
    verification: Verification | None = None
    bounds: Bounds | None = None

    @property
    def c_file(self) -> str:
        """Path in ``files`` of the C file that holds the algorithm."""
        return c_files.TARGETS[self.target].folder.format(name=self.name) + f"{self.name}.c"

    def write(self, output_dir: str | PathLike[str]) -> tuple[Path, ...]:
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
                texts[path] = c_files.keep_user_code(text, old, str(path), self.discard_user_code)
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


@overload
def codegen(  # type: ignore[overload-overlap]
    func: Callable[..., Any],
    args: Sequence[Any],
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    return_names: Sequence[str] | None = ...,
    kwargs: Mapping[str, Any] | None = ...,
    float_type: DTypeLike = ...,
    *,
    output_dir: str | Path | None = ...,
    options: Mapping[str, Any] | None = ...,
    target: Literal["wasm"],
    name: str | None = ...,
    optimize: str = ...,
    debug: bool = ...,
) -> WasmModule: ...


@overload
def codegen(
    func: Callable[..., Any],
    args: Sequence[Any],
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    return_names: Sequence[str] | None = ...,
    kwargs: Mapping[str, Any] | None = ...,
    float_type: DTypeLike = ...,
    int_type: DTypeLike = ...,
    input_descriptions: Mapping[str, str] | None = ...,
    output_descriptions: Mapping[str, str] | None = ...,
    output_dir: str | Path | None = ...,
    options: Mapping[str, Any] | None = ...,
    verify: bool = ...,
    target: str = ...,
    *,
    name: str | None = ...,
    parameters: str | Sequence[str] = ...,
    state: str | Sequence[str] | Mapping[str, str] | None = ...,
    template: str | Path | None = ...,
    optimize: str = ...,
    debug: bool = ...,
    double: Sequence[str] = ...,
    ranges: Mapping[str, Any] | None = ...,
) -> CProject: ...


def codegen(
    func: Callable[..., Any],
    args: Sequence[Any],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    return_names: Sequence[str] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    float_type: DTypeLike = float,
    int_type: DTypeLike = int,
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
    debug: bool = False,
    double: Sequence[str] = (),
    ranges: Mapping[str, Any] | None = None,
) -> CProject | WasmModule:
    """Generate a C project or a WebAssembly module from a function, with the bits of Python.

    In C, ``<name>_step(in, out, work)`` computes and ``<name>_init`` sets the default inputs. With
    ``target="wasm"``, ``<name>.js`` loads ``<name>.wasm`` in browsers and in Node.

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
        Options of :class:`archimedes.embedded.preparation.Options`.
    verify : bool, optional
        Compile the code here and compare its results with Python's.
    target : {"c", "arduino", "cortex-m", "simulink", "ros2", "wasm"}, optional
        What the project is for. "simulink" adds an S-function and the script that builds it, and
        "ros2" makes a package with a node.
        Options of "wasm" are ``batch`` (True: a function of many instances too), ``simd`` (False:
        it computes them in pairs), ``adaptive`` and ``max_iterations``.
    name : str, optional
        Name of the C functions. By default that of `func`.
    parameters : str or sequence of str, optional
        Arguments that become ``static const`` values in the C file, or dialog parameters of an
        S-function, or parameters of a node.
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
    debug : bool, optional
        Print what was generated: the number of statements, the structs, values that became part of
        the code, and the files. False by default.
    double : sequence of str, optional
        With ``float_type=np.float32``: what stays double, arguments and results by their names
        (``"x.P"``) and lines of source (``"filter.py:12"``), as
        :meth:`archimedes.Compiled.precision` lists them.
    ranges : mapping, optional
        Ranges of inputs by their names, ``{"x.pos": (-10.0, 10.0)}``; other inputs keep their
        example values. Certified ranges of the results, see :meth:`archimedes.Compiled.bounds`, are
        in ``bounds`` of the result and in its :func:`archimedes.embedded.report`.

    Returns
    -------
    CProject or WasmModule
        The files; those of C with methods to compile and run them.

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
    if target == "wasm":
        from archimedes.embedded.wasm_project import generate  # which C projects do without

        others = {
            "int_type": np.dtype(int_type) != np.int64,
            "input_descriptions": input_descriptions,
            "output_descriptions": output_descriptions,
            "verify": verify,
            "parameters": parameters,
            "state": state,
            "template": template,
            "double": double,
            "ranges": ranges,
        }
        module = generate(
            func,
            args,
            options,
            others,
            name=name,
            static=(static_argnums, static_argnames),
            kwargs=kwargs,
            float_type=float_type,
            return_names=return_names,
            optimize=optimize,
        )
        if output_dir is not None:
            module = dataclasses.replace(module, paths=module.write(output_dir))
        if debug:
            print(module)
        return module
    settings = Options.of(options)
    types = scalars(float_type, int_type)
    kind = c_files.target_named(target)
    compiled = as_compiled(func, static_argnums, static_argnames)
    prepared = prepare(
        compiled, args, kwargs, name, settings, optimize, lines=bool(double or ranges)
    )
    return_names = prepared.return_names if return_names is None else tuple(return_names)
    if double:
        if types.float_type == np.float64:
            raise CodegenError(
                f"codegen: double={double!r} says what stays double in a program of float32: give "
                "float_type=np.float32 too"
            )
        prepared = with_double(prepared, pair_states(double, state), return_names)
        types = scalars(float, int_type)
    parameters = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    original = settings.layout == "original"
    if original:
        prepared = dataclasses.replace(prepared, name=prepared.name + c_files.KERNEL)
    model = make_model(
        prepared,
        types,
        settings,
        parameters=() if kind.words else parameters,
        state=state,
        return_names=return_names,
        input_notes=_check_descriptions(input_descriptions, "input_descriptions"),
        output_notes=_check_descriptions(output_descriptions, "output_descriptions"),
    )
    folder = None if template is None else Path(template)
    if original:
        files = c_files.original_files(model)
    else:
        files = c_files.project_files(model, kind, folder, settings.cpp, parameters)
    notes, discard = tuple(_remarks(prepared)), settings.discard_user_code
    project = CProject(model.name, kind.name, files, model, prepared, model.renamed, notes, discard)
    if ranges is not None:
        single = types.float_type == np.float32
        project = dataclasses.replace(
            project, bounds=_certify(prepared, ranges, return_names, single)
        )
    if verify:
        project = dataclasses.replace(project, verification=project.verify(settings.samples))
    if output_dir is not None:
        project = dataclasses.replace(project, paths=project.write(output_dir))
    if debug:
        print(project)
    return project


def _certify(
    prepared: Prepared, ranges: Any, return_names: Sequence[str] | None, float32: bool
) -> Bounds:
    """Return certified ranges of what the C code computes."""
    known = arguments_around(prepared.recording, prepared.arguments, ranges, "codegen: ranges")
    return bound_recording(
        prepared.name,
        known.recording,
        known.ends,
        known.names,
        float32=float32,
        return_names=return_names,
    )


def make_c_project(func: Callable[..., Any], args: Sequence[Any], **options: Any) -> CProject:
    """Return the C project of a function, for what runs on boards."""
    project: Any = codegen(func, args, **options)
    if not isinstance(project, CProject):
        raise CodegenError("target='wasm' is for browsers and Node: boards run C projects")
    return project


def _check_descriptions(texts: Mapping[str, str] | None, what: str) -> dict[str, str]:
    if texts is not None and not isinstance(texts, Mapping):
        raise CodegenError(
            f"codegen: {what} is a {type(texts).__name__}: give a dict such as {{'x': 'state'}}"
        )
    return {str(key): str(text) for key, text in (texts or {}).items()}


def _remarks(prepared: Prepared) -> list[str]:
    """Say which values became part of the code."""
    remarks = []
    for path, value in fixed_values(prepared):
        shown = repr(value) if len(repr(value)) < 40 else type(value).__name__
        hint = "; pass np.bool_ to make it an input" if isinstance(value, bool) else ""
        remarks.append(f"{path} = {shown} is fixed in the code{hint}")
    return remarks
