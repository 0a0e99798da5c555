"""WebAssembly modules for browsers and Node: the module, its JavaScript, its types, a page."""

from __future__ import annotations

import ast
import base64
import dataclasses
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.backends.protocol import ArrayType, Program
from archimedes.backends.wasm.module import Export, write_module
from archimedes.embedded.c_structs import argument_branches, result_branches
from archimedes.embedded.c_text import TEMPLATES
from archimedes.embedded.preparation import Options, Prepared, as_compiled, prepare
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, F32, F64, I64
from archimedes.graph.regions.loop_regions import UNBOUNDED
from archimedes.graph.retype import retype
from archimedes.tree.treedef import LEAF, TreeDef
from archimedes.version import __version__

_DTYPES = {F64: "float64", F32: "float32", I64: "int64", B8: "bool"}
_ARRAYS = {F64: "Float64Array", F32: "Float32Array", I64: "BigInt64Array", B8: "Uint8Array"}
_SCALARS = {F64: "number", F32: "number", I64: "bigint", B8: "boolean"}
#: Example values of leaves up to this size are in the layout; all are in the module.
SHOWN = 64
#: Names that files may have.
_FILE = re.compile(r"\w[\w.-]*\Z")
#: Tells Node that scripts are ES modules; one that is there already stays.
PACKAGE = "package.json"
_PACKAGE = '{"private": true, "type": "module"}\n'


def read_template(name: str) -> str:
    """Return a file of the folder ``templates/wasm``."""
    return (TEMPLATES / "wasm" / name).read_text("utf-8")


def wasm_runtime() -> str:
    """Return the JavaScript that every module is called through; it defines ``ArcWasm``."""
    return read_template("runtime.js")


def script_text(value: Any) -> str:
    """Return a value as JavaScript that is safe in a page: ASCII, no ``<``.

    >>> script_text({"</script>": 1})
    '{"\\\\u003c/script>": 1}'
    """
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")


@dataclass(frozen=True)
class WasmModule:
    """A generated WebAssembly module, with the JavaScript that calls it.

    Parameters
    ----------
    name : str
        Name of the files.
    wasm : bytes
        The module.
    layout : dict
        Functions, arguments and results, and where they lie in the module's memory.
    files : dict
        Texts, and the module's bytes, by path.
    notes : tuple of str
        Remarks for the reader.
    paths : tuple of Path, optional
        Files that were written.

    Examples
    --------
    >>> import archimedes as arc
    >>> def gain(x, k):
    ...     return k * x
    >>> module = arc.codegen(gain, (1.0, 2.0), target="wasm")
    >>> sorted(module.files)
    ['gain.d.ts', 'gain.html', 'gain.js', 'gain.wasm', 'package.json']
    >>> module.wasm[:4]
    b'\\x00asm'
    """

    name: str
    wasm: bytes
    layout: dict[str, Any]
    files: dict[str, str | bytes]
    notes: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()

    def write(self, output_dir: str | PathLike[str]) -> tuple[Path, ...]:
        """Write the files into a folder and return their paths.

        Parameters
        ----------
        output_dir : path
            The folder; it is made where there is none.
        """
        folder = Path(output_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self.files.items():
                if name == PACKAGE and (folder / name).exists():
                    continue
                data = content if isinstance(content, bytes) else content.encode()
                (folder / name).write_bytes(data)
        except OSError as error:
            raise CodegenError(
                f"codegen: cannot write to output_dir={str(output_dir)!r} ({error.strerror}): "
                "choose a folder that you may write to"
            ) from error
        return tuple(folder / name for name in self.files)

    def script(self, variable: str = "model_data") -> str:
        """Return JavaScript that defines the layout and the module, for one file of HTML.

        Parameters
        ----------
        variable : str, optional
            Name of the constant, ``model_data`` by default: an object with ``layout`` and
            ``wasm``, the module in base64, as ``ArcWasm.bytes`` takes it.
        """
        text = base64.b64encode(self.wasm).decode("ascii")
        return f'const {variable} = {{"layout": {script_text(self.layout)}, "wasm": "{text}"}};\n'

    def __repr__(self) -> str:
        lines = [f"WebAssembly module {self.name!r}: {len(self.wasm):,} bytes"]
        for name, own in self.layout["functions"]:
            given, made = (
                ", ".join(x["path"] for x in own[side]) for side in ("inputs", "outputs")
            )
            lines.append(f"  {name}({given}) -> {made}")
        where = f"written to {self.paths[0].parent}" if self.paths else "not written"
        lines.append(f"  files ({where}): {', '.join(self.files)}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def wasm_module(
    functions: Mapping[str, tuple[Callable[..., Any], Sequence[Any]]],
    name: str = "model",
    *,
    simd: bool = False,
) -> WasmModule:
    """Write several functions as one WebAssembly module, with one memory.

    Parameters
    ----------
    functions : mapping
        A function and its example arguments, by the name it has in the module.
    name : str, optional
        Name of the files, ``model`` by default.
    simd : bool, optional
        Compute the instances of batches in pairs. False by default.

    Returns
    -------
    WasmModule
        The module, its layout and its files.

    Examples
    --------
    >>> def energy(m, v):
    ...     return 0.5 * m * v**2
    >>> def momentum(m, v):
    ...     return m * v
    >>> module = wasm_module({"energy": (energy, (2.0, 3.0)), "momentum": (momentum, (2.0, 3.0))})
    >>> [name for name, _ in module.layout["functions"]]
    ['energy', 'momentum']
    """
    made = {}
    for key, pair in functions.items():
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise CodegenError(
                f"wasm_module: functions[{key!r}] must be a pair of a function and its example "
                f"arguments, such as (f, (x, u)), got {type(pair).__name__}"
            )
        function, args = pair
        compiled = as_compiled(function, None, None)
        made[str(key)] = prepare(compiled, args, None, str(key), _options({}), "speed")
    return make_wasm(made, name, batch="simd" if simd else "scalar")


def _options(options: Mapping[str, Any]) -> Options:
    """Return the options of a recording: a browser has time for loops of any length."""
    return Options.of({"adaptive": True, "max_iterations": UNBOUNDED, **options})


#: The options of codegen that a module has; others belong to C projects.
_OPTIONS = ("batch", "simd", "adaptive", "max_iterations")


def generate(
    func: Any,
    args: Sequence[Any],
    options: Mapping[str, Any] | None,
    others: Mapping[str, Any],
    *,
    name: str | None,
    static: tuple[Any, Any],
    kwargs: Mapping[str, Any] | None,
    float_type: Any,
    return_names: Sequence[str] | None,
    optimize: str,
) -> WasmModule:
    """Write one function as a module; ``others`` are arguments that belong to C projects."""
    for key, value in others.items():
        if value:
            raise CodegenError(
                f"codegen: {key} is for C projects and has no meaning with target='wasm': leave it "
                "out"
            )
    given = dict(options or {})
    for key in given:
        if key not in _OPTIONS:
            raise CodegenError(
                f"codegen: options has {key!r}, which target='wasm' does not know: it knows "
                f"{', '.join(_OPTIONS)}"
            )
    batch = given.pop("batch", True) and ("simd" if given.pop("simd", False) else "scalar")
    compiled = as_compiled(func, *static)
    prepared = prepare(compiled, args, kwargs, name, _options(given), optimize)
    if prepared.name == "<lambda>":
        raise CodegenError("codegen: a lambda has no name for files: give name='...'")
    names = prepared.return_names if return_names is None else tuple(return_names)
    return make_wasm(
        {"call": prepared}, prepared.name, batch=batch, float_type=float_type, return_names=names
    )


def make_wasm(
    functions: Mapping[str, Prepared],
    name: str,
    *,
    batch: str | bool = "scalar",
    float_type: Any = float,
    return_names: Sequence[str] | None = None,
) -> WasmModule:
    """Write recorded functions as a module and its files."""
    if not _FILE.match(name):
        raise CodegenError(
            f"codegen: name={name!r} cannot be the name of a file: use letters, digits, _, - and ."
        )
    single = _is_single(float_type)
    descriptions = {key: _Description(x, return_names, single) for key, x in functions.items()}
    programs = {key: x.program for key, x in descriptions.items()}
    values = {key: x.arguments.values for key, x in descriptions.items()}
    wasm, module, exports = write_module(programs, values, batch)
    layout = {
        "version": 1,
        "generator": f"archimedes {__version__}",
        "memory": {"pages": module.pages},
        "functions": [[key, x.layout(exports[key])] for key, x in descriptions.items()],
    }
    made = WasmModule(name, wasm, layout, {})
    types = "\n".join(_types(key, x) for key, x in descriptions.items())
    files: dict[str, str | bytes] = {
        f"{name}.wasm": wasm,
        f"{name}.js": _javascript(made),
        f"{name}.d.ts": _declarations(descriptions, types),
        f"{name}.html": page_text(made),
        PACKAGE: _PACKAGE,
    }
    return dataclasses.replace(made, files=files)


def _is_single(float_type: Any) -> bool:
    dtype = np.dtype(float_type)
    if dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise CodegenError(f"codegen: float_type={float_type!r}: use float or np.float32")
    return dtype == np.float32


# ---- arguments and results -----------------------------------------------------------------------


def _member_names(treedef: TreeDef) -> list[str] | None:
    """Return the names of the children, or None where they are numbered."""
    cls = treedef.kind.cls
    if issubclass(cls, (list, tuple)) and not hasattr(cls, "_fields"):
        return None
    labels = treedef.kind.labels(treedef.aux, len(treedef.children))
    return [label[1:] if label.startswith(".") else _key(label) for label in labels]


def _key(label: str) -> str:
    """Return the key in a label such as ``['mass']``."""
    try:
        return str(ast.literal_eval(label[1:-1]))
    except (SyntaxError, ValueError):
        return label[1:-1]


def _tree(treedef: TreeDef, numbers: Iterator[int | None]) -> dict[str, Any]:
    """Describe a tree; ``numbers`` are those of its leaves, None for one that is fixed."""
    if treedef is LEAF:
        number = next(numbers)
        return {"fixed": True} if number is None else {"leaf": number}
    names = _member_names(treedef)
    children = [_tree(child, numbers) for child in treedef.children]
    if names is None:
        return {"list": children}
    if not children and treedef.kind.cls is type(None):
        return {"fixed": True}
    labels = treedef.kind.labels(treedef.aux, len(children))
    for k, name in enumerate(names):
        if name in names[:k]:
            raise CodegenError(
                f"codegen: {labels[names.index(name)]} and {labels[k]} have the same name in "
                "JavaScript, where keys are text: rename one of them"
            )
    return {"object": [list(x) for x in zip(names, children, labels)]}


def _units_of(treedef: TreeDef) -> Iterator[str]:
    """Yield the unit of each leaf, "" where none is declared."""
    cls = treedef.kind.cls
    declared: dict[str, str] = {}
    if dataclasses.is_dataclass(cls):
        declared = {f.name: str(f.metadata.get("units") or "") for f in dataclasses.fields(cls)}
    labels = treedef.kind.labels(treedef.aux, len(treedef.children))
    for label, child in zip(labels, treedef.children):
        if child is LEAF:
            yield declared.get(label[1:], "")
        else:
            yield from _units_of(child)


class _Description:
    """What is known of the arguments and results of a function."""

    def __init__(
        self, prepared: Prepared, return_names: Sequence[str] | None, single: bool
    ) -> None:
        self.prepared = prepared
        self.arguments = argument_branches(prepared)
        names = prepared.return_names if return_names is None else return_names
        results, outs = result_branches(prepared, names)
        self.paths = [path for b in results for path in b.treedef.paths(b.name)]

        def stored(leaf: ArrayType) -> ArrayType:
            return ArrayType(F32, leaf.shape) if single and leaf.code == F64 else leaf

        graph = prepared.recording.blocks
        inputs, outputs = (
            tuple(stored(leaf) for leaf in side) for side in (self.arguments.leaves, outs)
        )
        self.program = Program(retype(graph) if single else graph, inputs, outputs, prepared.name)
        trees = [
            (b.name, _tree(b.treedef, iter([None if x is None else k for k, x in b.leaves])))
            for b in self.arguments.branches
        ]
        self.trees = trees
        self.result = _tree(prepared.recording.out_tree, iter(range(len(outs))))

    def layout(self, export: Export) -> dict[str, Any]:
        """Return the layout of the exported function."""
        units = [u for b in self.arguments.branches for u in self._branch_units(b)]
        inputs = [
            self._leaf(path, leaf.array, leaf.address, unit) | _shown(value)
            for path, leaf, unit, value in zip(
                self.arguments.paths, export.inputs, units, self.arguments.values
            )
        ]
        out_tree = self.prepared.recording.out_tree
        out_units = [""] if out_tree is LEAF else list(_units_of(out_tree))
        outputs = [
            self._leaf(path, leaf.array, leaf.address, unit)
            for path, leaf, unit in zip(self.paths, export.outputs, out_units)
        ]
        return {
            "export": export.name,
            "batch": export.batch,
            "arguments": [{"name": name, "tree": tree} for name, tree in self.trees],
            "result": self.result,
            "inputs": inputs,
            "outputs": outputs,
        }

    @staticmethod
    def _branch_units(branch: Any) -> Iterator[str]:
        units = [""] if branch.treedef is LEAF else list(_units_of(branch.treedef))
        return (u for u, (_, leaf) in zip(units, branch.leaves) if leaf is not None)

    @staticmethod
    def _leaf(path: str, array: ArrayType, offset: int, units: str) -> dict[str, Any]:
        return {
            "path": path,
            "dtype": _DTYPES[array.code],
            "shape": list(array.shape),
            "size": array.size,
            "offset": offset,
            "units": units,
        }


def _shown(value: np.ndarray) -> dict[str, Any]:
    """Return the example value for the layout; JSON has no nan and no infinity."""
    flat = np.ravel(value)
    if flat.size > SHOWN or not np.isfinite(flat.astype(float)).all():
        return {}
    return {"value": [int(x) if flat.dtype.kind in "bi" else float(x) for x in flat]}


# ---- files ---------------------------------------------------------------------------------------


def _javascript(made: WasmModule) -> str:
    notice = f"// Generated by Archimedes {__version__}.\n"
    file = script_text(f"{made.name}.wasm")
    data = f"\nconst layout = {script_text(made.layout)};\nconst file = {file};\n"
    return notice + wasm_runtime() + data + read_template("load.js")


def page_text(made: WasmModule) -> str:
    """Return the example page: one file, under a content policy that allows its script alone."""
    script = wasm_runtime() + made.script() + read_template("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    words = {"title": html.escape(made.name), "script": script, "hash": f"sha256-{digest}"}
    return read_template("index.html").format(**words)


def _type_of(tree: dict[str, Any], leaves: Sequence[ArrayType], given: bool) -> str:
    """Return the type of a tree in TypeScript; ``given``: of what a call takes."""
    if "leaf" in tree:
        leaf = leaves[tree["leaf"]]
        if not leaf.shape:
            return "number | bigint" if given and leaf.code == I64 else _SCALARS[leaf.code]
        return f"Numbers<{_ARRAYS[leaf.code]}>" if given else _ARRAYS[leaf.code]
    if "list" in tree:
        return f"[{', '.join(_type_of(x, leaves, given) for x in tree['list'])}]"
    if "object" in tree:
        members = (
            f"{script_text(name)}{'?' if 'fixed' in child else ''}: "
            f"{_type_of(child, leaves, given)}"
            for name, child, _ in tree["object"]
        )
        return f"{{ {'; '.join(members)} }}"
    return "unknown" if given else "null"


_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_RESERVED = """
arguments await break case catch class const continue debugger default delete do else enum
eval export extends false finally for function if implements import in instanceof interface
let new null package private protected public return static super switch this throw true try
typeof var void while with yield
"""


def _types(key: str, own: _Description) -> str:
    """Return the type of a function in TypeScript."""
    leaves, outs = own.program.inputs, own.program.outputs
    words = []
    for k, (name, tree) in enumerate(own.trees):
        plain = name if _WORD.match(name) and name not in _RESERVED.split() else f"argument{k}"
        words.append(f"{plain}: {_type_of(tree, leaves, True)}")
    return f"({', '.join(words)}) => {_type_of(own.result, outs, False)}"


def _declarations(descriptions: Mapping[str, _Description], types: str) -> str:
    texts = {key: _types(key, own) for key, own in descriptions.items()}
    members = "\n".join(
        f"  readonly {script_text(key)}: ModuleFunction<{text}>;" for key, text in texts.items()
    )
    only = ""
    if len(texts) == 1:
        (text,) = texts.values()
        only = (
            f"  call: {text};\n  batch: (n: number, options?: {{ shared?: string[] }}) => Batch;\n"
        )
    return read_template("types.d.ts").format(members=members, only=only)
