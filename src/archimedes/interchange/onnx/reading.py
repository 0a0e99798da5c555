"""ONNX files are read and checked before anything of them is used.

A file may come from anywhere. Weights in other files are taken only from plain files in the same
folder; sizes, nesting and the number of nodes have limits; functions are expanded only after it is
known how long they get; then the ``onnx`` package checks the model.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archimedes.installation import install_command
from archimedes.interchange.onnx.tensors import MAX_ELEMENTS, OnnxError, check_tensor

#: Limits on files: bytes of one file, nodes after expansion, subgraphs inside subgraphs.
MAX_BYTES, MAX_NODES, MAX_DEPTH = 2**30, 20_000, 16
#: The first version of the operators in which broadcasting is NumPy's.
OLDEST = 7
STANDARD = ("", "ai.onnx")


def require_onnx() -> Any:
    """Return the package ``onnx``."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(f"from_onnx needs the package onnx: {install_command('onnx')}") from error
    return onnx


def read_model(source: Any) -> Any:
    """Return the checked model of a file.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        The file, its content, or a model in memory.
    """
    onnx = require_onnx()
    folder = None
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        model.CopyFrom(source)
    else:
        if isinstance(source, bytes):
            content, name = source, "these bytes"
        elif isinstance(source, (str, os.PathLike)):
            path = Path(source)
            content, name, folder = read_plain_file(path, "from_onnx"), str(path), path.parent
        else:
            kind = type(source).__name__
            raise TypeError(
                f"from_onnx: path is {kind}; a path, bytes or an onnx.ModelProto is needed"
            )
        model = parse(content, name)
    check_nesting(model.graph)
    check_names(model.graph)
    read_external(model, folder)
    for one in all_tensors(model.graph):
        check_tensor(one, f"from_onnx: tensor {one.name!r}")
    check_versions(model)
    model = expand_functions(model)
    check_order(model.graph, set())
    check_model(model)
    return model


def read_plain_file(path: Path, what: str, size: int = MAX_BYTES) -> bytes:
    """Return the content of a file that is neither a device nor too large."""
    try:
        status = path.stat()
    except OSError:
        raise OnnxError(f"{what}: {path}: no such file") from None
    if not stat.S_ISREG(status.st_mode):
        raise OnnxError(f"{what}: {path} is not a file")
    if status.st_size > size:
        raise OnnxError(f"{what}: {path} has {status.st_size:,} bytes; at most {size:,} are read")
    return path.read_bytes()


def parse(content: bytes, name: str) -> Any:
    """Return the model that bytes hold."""
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, RecursionError) as error:
        raise OnnxError(
            f"from_onnx: {name}: no ONNX model, or one that is cut off or damaged ({error})"
        ) from None
    if not model.HasField("graph") or not model.opset_import:
        raise OnnxError(f"from_onnx: {name}: no ONNX model: it has no graph or no version")
    return model


def subgraphs(node: Any) -> Iterator[Any]:
    """Yield the graphs among a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def check_nesting(graph: Any) -> None:
    """Refuse graphs inside graphs beyond a limit, and too many nodes."""
    nodes, level = 0, [graph]
    for _ in range(MAX_DEPTH):
        nodes += sum(len(one.node) for one in level)
        if nodes > MAX_NODES:
            raise OnnxError(f"from_onnx: the network has more than {MAX_NODES:,} nodes")
        level = [inner for one in level for node in one.node for inner in subgraphs(node)]
        if not level:
            return
    raise OnnxError(f"from_onnx: graphs are nested deeper than {MAX_DEPTH} levels")


def check_names(graph: Any) -> None:
    """Refuse names that are no text, which damaged files have as bytes."""
    names = [graph.name]
    names += [one.name for one in (*graph.input, *graph.output, *graph.initializer)]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        for inner in subgraphs(node):
            check_names(inner)
    for name in names:
        if not isinstance(name, str):
            raise OnnxError(f"from_onnx: no ONNX model, or a damaged one: the name {name!r}")


def all_tensors(graph: Any) -> Iterator[Any]:
    """Yield every tensor of a graph and its subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for inner in subgraphs(node):
            yield from all_tensors(inner)


def read_external(model: Any, folder: Path | None) -> None:
    """Put weights that lie in other files of the same folder into the model."""
    from onnx import TensorProto

    budget = MAX_BYTES
    tensors = [*all_tensors(model.graph)]
    for function in model.functions:
        for node in function.node:
            tensors += [a.t for a in node.attribute if a.HasField("t")]
    for tensor in tensors:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        if folder is None:
            raise OnnxError(
                f"from_onnx: the data of tensor {tensor.name!r} is in another file; give the path "
                "of the model instead of its content"
            )
        content = read_external_tensor(tensor, folder, budget)
        budget -= len(content)
        tensor.raw_data = content
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def read_external_tensor(tensor: Any, folder: Path, budget: int) -> bytes:
    """Return the bytes of a tensor from a plain file in the folder of the model."""
    what = f"from_onnx: tensor {tensor.name!r}"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    # A plain name: no folders, drives or streams, on any system.
    if not location or location in (".", "..") or any(c in location for c in "/\\:\0"):
        raise OnnxError(
            f"{what} has its data in {location!r}; only files beside the model are read"
        )
    path = folder / location
    if path.is_symlink():
        raise OnnxError(
            f"{what} has its data in {location!r}, which is a link; only files are read"
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
    except ValueError:
        raise OnnxError(f"{what} has an offset or length of its data that is no number") from None
    # The file is only opened here; not more than the tensor needs is read.
    try:
        status = path.stat()
    except OSError:
        raise OnnxError(f"{what} has its data in {location!r}, which is not there") from None
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise OnnxError(f"{what} has its data in {location!r}, which is not a plain file")
    if length < 0:
        length = status.st_size - offset
    if offset < 0 or length < 0 or offset + length > status.st_size:
        raise OnnxError(
            f"{what} has its data at {offset} to {offset + length} of {location!r}, "
            f"which has {status.st_size} bytes"
        )
    if length > budget or length > 8 * MAX_ELEMENTS:
        raise OnnxError(f"{what} has {length:,} bytes; at most {budget:,} are read")
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def check_versions(model: Any) -> None:
    """Refuse operators of other domains, and versions that are not known."""
    from onnx.defs import onnx_opset_version

    own = {function.domain for function in model.functions}
    newest = onnx_opset_version()
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for domain, version in versions.items():
        if domain not in STANDARD:
            continue
        if not OLDEST <= version <= newest:
            raise OnnxError(
                f"from_onnx: the network uses operators of version (opset) {version}; versions "
                f"{OLDEST} to {newest} can be read: onnx.version_converter.convert_version "
                "converts others, and a newer onnx package may know more"
            )
    for node in all_nodes(model.graph):
        if node.domain not in STANDARD and node.domain not in own:
            raise OnnxError(
                f"from_onnx: node {node.name!r} is operator {node.op_type!r} of domain "
                f"{node.domain!r}; only the standard operators of ONNX are known: export the "
                "network without extensions of a runtime"
            )
    if not any(domain in versions for domain in STANDARD) and len(model.graph.node):
        raise OnnxError("from_onnx: the file does not say which version (opset) of ONNX it uses")


def all_nodes(graph: Any) -> Iterator[Any]:
    """Yield every node of a graph and its subgraphs."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)


def expand_functions(model: Any) -> Any:
    """Write functions that the file defines in place of the nodes that call them."""
    if not model.functions:
        return model
    functions = {(f.domain, f.name): f for f in model.functions}
    sizes: dict[tuple[str, str], int] = {}
    under_way: list[tuple[str, str]] = []

    def size(nodes: Any) -> int:
        total = 0
        for node in nodes:
            total += 1 + sum(size(inner.node) for inner in subgraphs(node))
            key = (node.domain, node.op_type)
            if key in functions:
                total += size_of(key)
            if total > MAX_NODES:
                raise OnnxError(
                    f"from_onnx: the functions of the file expand to more than {MAX_NODES:,} nodes"
                )
        return total

    def size_of(key: tuple[str, str]) -> int:
        if key in under_way:
            raise OnnxError(f"from_onnx: function {key[1]!r} of the file calls itself")
        if key not in sizes:
            if len(under_way) >= MAX_DEPTH:
                raise OnnxError(f"from_onnx: functions are nested deeper than {MAX_DEPTH} levels")
            under_way.append(key)
            sizes[key] = size(functions[key].node)
            under_way.pop()
        return sizes[key]

    size(model.graph.node)
    for key in functions:
        size_of(key)
    from onnx import inliner

    return inliner.inline_local_functions(model)


def check_model(model: Any) -> None:
    """Let the ``onnx`` package check the model; other runtimes accept outputs without a shape."""
    from onnx import checker

    without = [one for one in model.graph.output if not one.type.tensor_type.HasField("shape")]
    for one in without:
        one.type.tensor_type.shape.SetInParent()
    try:
        checker.check_model(model)
    except (checker.ValidationError, ValueError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise OnnxError(f"from_onnx: the network is not valid ONNX: {first}") from None
    for one in without:
        one.type.tensor_type.ClearField("shape")


def check_order(graph: Any, outer: set[str]) -> None:
    """See that every input of a node is there before the node: no cycles, nothing missing."""
    for one in graph.sparse_initializer:
        raise OnnxError(f"from_onnx: {one.values.name!r} is a sparse tensor, which is not known")
    known = outer | {one.name for one in graph.input} | {one.name for one in graph.initializer}
    later = {name for node in graph.node for name in node.output}
    for node in graph.node:
        what = f"from_onnx: node {node.name!r} ({node.op_type})"
        for name in node.input:
            if name and name not in known:
                why = "a cycle, or nodes out of order" if name in later else "nothing gives it"
                raise OnnxError(f"{what} needs {name!r} before it is there: {why}")
        for inner in subgraphs(node):
            check_order(inner, known)
        known |= set(node.output)
    for one in graph.output:
        if one.name not in known:
            raise OnnxError(f"from_onnx: nothing gives the output {one.name!r}")
