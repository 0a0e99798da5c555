"""ONNX files that are damaged, unsafe or too large are refused, with a message that says why."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest

import archimedes as arc
from archimedes.interchange import OnnxError

from .onnx_models import DOUBLE, FLOAT, INT64, constant, helper, mlp, model, onnx, value

X, Y = value("x", [2, 2]), value("y", ["a", "b"])
IMAGE, IMAGE_OUT = value("x", [1, 1, 4, 4]), value("y", ["a", "b", "c", "d"])
ONES = np.ones((2, 2), np.float32)


def refused(source, message, *args):
    """See that a network is refused when it is read, or at the latest when it is called."""
    with pytest.raises(OnnxError, match=message):
        arc.from_onnx(source)(*args)


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def external(**entries):
    """Return a model whose weights are in another file."""
    proto = model([node("Add", ["x", "w"])], [X], [Y], [("w", ONES)])
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=str(text))
    return proto


# ---- files -------------------------------------------------------------------------------------


def test_no_file_a_folder_and_a_device(tmp_path):
    refused(tmp_path / "none.onnx", "none.onnx: no such file")
    refused(tmp_path, "is not a file")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "pipe is not a file")
    with pytest.raises(TypeError, match=r"path is int; a path, bytes or an onnx\.ModelProto"):
        arc.from_onnx(7)


def test_a_file_that_is_larger_than_memory_is_not_read(tmp_path):
    path = tmp_path / "large.onnx"
    path.touch()
    os.truncate(path, 2**31)
    refused(path, "has 2,147,483,648 bytes; at most 1,073,741,824 are read")


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_file_that_is_cut_off(tmp_path, kept):
    content = mlp((4, 8, 2)).SerializeToString()
    path = tmp_path / "cut.onnx"
    path.write_bytes(content[: int(kept * len(content))])
    refused(path, "cut.onnx: no ONNX model, or one that is cut off or damaged")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04K\x01.", b"hello", bytes(100)])
def test_a_file_that_is_something_else(content):
    refused(content, "no ONNX model")


def test_names_that_are_no_text():
    content = mlp((2, 2)).SerializeToString().replace(b"network", b"netw\xff\xfek")
    refused(content, "no ONNX model, or a damaged one: the name b'netw")


# ---- weights in other files --------------------------------------------------------------------


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "a/b", "..", "C:\\w", "w:s", "..\\w", "", "w\0"]
)
def test_weights_outside_the_folder(tmp_path, location):
    (tmp_path / "secret").write_bytes(ONES.tobytes())
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "m.onnx").write_bytes(external(location=location).SerializeToString())
    refused(
        folder / "m.onnx", "tensor 'w' has its data in .*; only files beside the model are read"
    )


def test_weights_behind_links(tmp_path):
    (tmp_path / "secret").write_bytes(ONES.tobytes())
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "w").symlink_to(tmp_path / "secret")
    (folder / "m.onnx").write_bytes(external(location="w").SerializeToString())
    refused(folder / "m.onnx", "'w', which is a link")
    (folder / "w").unlink()
    (folder / "w").hardlink_to(tmp_path / "secret")
    refused(folder / "m.onnx", "'w', which is not a plain file")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "none"}, "'none', which is not there"),
        ({"location": "folder"}, "'folder', which is not a plain file"),
        ({"location": "w", "offset": 8}, "shape .2, 2. but 8 bytes, not 16"),
        ({"location": "w", "offset": 8, "length": 16}, "at 8 to 24 of 'w', which has 16 bytes"),
        ({"location": "w", "offset": -4}, "at -4 to 16 of 'w'"),
        ({"location": "w", "length": 2**60}, "which has 16 bytes"),
        ({"location": "w", "length": "many"}, "is no number"),
        ({"location": "w", "length": 12}, "12 bytes, not 16"),
    ],
)
def test_weights_that_are_not_there(tmp_path, entries, message):
    (tmp_path / "w").write_bytes(ONES.tobytes())
    (tmp_path / "folder").mkdir()
    (tmp_path / "m.onnx").write_bytes(external(**entries).SerializeToString())
    refused(tmp_path / "m.onnx", message)


def test_weights_beside_the_model_are_read(tmp_path):
    (tmp_path / "m.data").write_bytes(bytes(8) + (2 * ONES).tobytes() + bytes(3))
    proto = external(location="m.data", offset=8, length=16)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    np.testing.assert_array_equal(arc.from_onnx(tmp_path / "m.onnx")(ONES), 3 * ONES)
    refused(proto, "is in another file; give the path")


# ---- tensors -----------------------------------------------------------------------------------


def with_tensor(**changes):
    proto = model([node("Add", ["x", "w"])], [X], [Y], [("w", ONES)])
    tensor = proto.graph.initializer[0]
    if "dims" in changes:
        del tensor.dims[:]
        tensor.dims.extend(changes["dims"])
    if "raw_data" in changes:
        tensor.raw_data = changes["raw_data"]
    if "data_type" in changes:
        tensor.data_type = changes["data_type"]
    return proto


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dims": [2**40, 2**40]}, "tensor 'w' would have 1,208,925,819,614,629,174,706,176 elem"),
        ({"dims": [2**31]}, "would have 2,147,483,648 elements"),
        ({"dims": [3, 2]}, "shape .3, 2. but 16 bytes, not 24"),
        ({"dims": [-2, -2]}, "negative length"),
        ({"raw_data": b""}, "but 0 bytes, not 16"),
        ({"data_type": 99}, "element type 99|not valid ONNX|do not fit"),
        ({"data_type": onnx.TensorProto.COMPLEX64}, "COMPLEX64|do not fit"),
    ],
)
def test_tensors_that_are_not_what_they_say(changes, message):
    refused(with_tensor(**changes), message, ONES)


def test_strings_halves_and_sparse_tensors():
    text = onnx.TensorProto.STRING
    words = model([node("Identity", ["x"])], [value("x", [1], text)], [value("y", [1], text)])
    refused(words, "element type STRING; float32, float64, integers and bool")
    half = onnx.TensorProto.FLOAT16
    proto = model([node("Identity", ["x"])], [value("x", [1], half)], [value("y", [1], half)])
    refused(proto, "FLOAT16.*convert the network to float32")
    proto = model([node("Add", ["x", "w"])], [X], [Y])
    sparse = helper.make_sparse_tensor(
        constant("w", np.ones(1, np.float32)), constant("i", np.zeros(1, np.int64)), [2**20, 2**20]
    )
    proto.graph.sparse_initializer.append(sparse)
    refused(proto, "'w' is a sparse tensor")


def test_values_that_are_no_arrays():
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    proto = model(
        [node("SequenceAt", ["s", "i"])],
        [helper.make_value_info("s", kind), value("i", [], INT64)],
        [value("y", [2])],
    )
    refused(proto, "value 's' is a sequence; only arrays are known")


# ---- graphs ------------------------------------------------------------------------------------


def test_a_cycle_and_missing_inputs():
    loop = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"])]
    refused(model(loop, [X], [Y]), "needs 'b' before it is there: a cycle, or nodes out of order")
    refused(model([node("Add", ["x", "z"])], [X], [Y]), "needs 'z' .*: nothing gives it")
    refused(model([node("Relu", ["x"], ["z"])], [X], [Y]), "nothing gives the output 'y'")


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (
            model([node("Nonsense", ["x"])], [X], [Y]),
            "not valid ONNX: No Op registered for Nonsense",
        ),
        (model([node("Det", ["x"], ["d"]), node("TfIdfVectorizer", ["d"])], [X], [Y]), "not valid"),
        (
            model(
                [helper.make_node("Cure", ["x"], ["y"], domain="evil")], [X], [Y], domains=["evil"]
            ),
            "operator 'Cure' of domain 'evil'",
        ),
        (model([node("Relu", ["x"])], [X], [Y], opset=9999), r"version \(opset\) 9999"),
        (model([node("Relu", ["x"])], [X], [Y], opset=6), r"version \(opset\) 6; versions 7 to"),
        (model([node("Relu", ["x", "x"])], [X], [Y]), "not valid ONNX.*has input size 2"),
        (
            model([node("MatMul", ["x", "w"])], [X], [Y], [("w", np.ones((3, 2), "f4"))]),
            "do not fit",
        ),
        (model([node("Add", ["x", "w"])], [X], [Y], [("w", np.ones(2))]), "must have one type"),
        (model([node("Transpose", ["x"], perm=[0, 5])], [X], [Y]), "do not fit|cannot be computed"),
        (model([node("Softmax", ["x"], axis=7)], [X], [Y]), "axis"),
        (
            model([node("Unique", ["x"])], [X], [value("y", ["n"])]),
            "operator 'Unique' is not among the",
        ),
        (model([node("Gather", ["x", "i"])], [X], [Y], [("i", [5])]), "index 5 of an axis of 2"),
        (model([node("Relu", ["x"]), node("Tanh", ["x"])], [X], [Y]), "not valid ONNX"),
        (model([node("Relu", ["x"])], [X, X], [Y]), "not valid ONNX"),
    ],
)
def test_operators_and_shapes_that_do_not_fit(proto, message):
    refused(proto, message, ONES)


def test_graphs_in_graphs():
    inner = [node("Relu", ["x"], ["z"])]
    for _ in range(20):
        graph = helper.make_graph(inner, "g", [], [value("z", [2, 2])])
        inner = [node("Scan", ["x"], ["z"], body=graph, num_scan_inputs=1)]
    refused(model(inner, [X], [value("z", [2, 2])]), "graphs are nested deeper than 16 levels")


def test_too_many_nodes():
    names = ["x", *(f"v{k}" for k in range(20_001))]
    chain = [node("Neg", [a], [b]) for a, b in itertools.pairwise(names)]
    refused(model(chain, [X], [value(names[-1], [2, 2])]), "more than 20,000 nodes")


def function(name, nodes):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, ["a"], ["b"], nodes, opsets)


def call(name, given, result):
    return helper.make_node(name, [given], [result], domain="f")


def test_functions_that_double_and_that_call_themselves():
    # Each of 30 functions calls the next one twice: 2**30 nodes.
    functions = [
        function(f"f{k}", [call(f"f{k + 1}", "a", "c"), call(f"f{k + 1}", "c", "b")])
        for k in range(14)
    ]
    functions.append(
        function(
            "f14", [node("Neg", ["a"], [f"n{j}"]) for j in range(20)] + [node("Neg", ["a"], ["b"])]
        )
    )
    proto = model([call("f0", "x", "y")], [X], [Y], functions=functions, domains=["f"])
    refused(proto, "functions of the file expand to more than 20,000 nodes")
    endless = function("f0", [call("f0", "a", "b")])
    proto = model([call("f0", "x", "y")], [X], [Y], functions=[endless], domains=["f"])
    refused(proto, "function 'f0' of the file calls itself")


def test_functions_are_expanded():
    twice = function("twice", [node("Add", ["a", "a"], ["b"])])
    proto = model([call("twice", "x", "y")], [X], [Y], functions=[twice], domains=["f"])
    np.testing.assert_array_equal(arc.from_onnx(proto)(ONES), 2 * ONES)


# ---- results that would be huge ----------------------------------------------------------------

HUGE = np.array([2**20, 2**20])
S = ("s", HUGE)


@pytest.mark.parametrize(
    ("nodes", "constants", "given"),
    [
        ([node("ConstantOfShape", ["s"])], [S], X),
        ([node("ConstantOfShape", ["s"])], [("s", np.array([2**62, 2**62, 2**62]))], X),
        ([node("Expand", ["x", "s"])], [("s", np.array([2**40, 2, 2]))], X),
        ([node("Tile", ["x", "s"])], [S], X),
        ([node("Range", ["a", "b", "c"])], [("a", 0), ("b", 2**60), ("c", 1)], X),
        ([node("Range", ["a", "b", "c"])], [("a", 0.0), ("b", 1.0), ("c", 1e-300)], X),
        ([node("Pad", ["x", "s"])], [("s", np.array([0, 0, 2**30, 2**30]))], X),
        ([node("OneHot", ["i", "s", "v"])], [("i", [1]), ("s", 2**40), ("v", [0.0, 1.0])], X),
        ([node("Resize", ["x", "", "", "s"])], [("s", np.array([1, 1, 2**20, 2**20]))], IMAGE),
        ([node("MaxPool", ["x"], kernel_shape=[1, 1], pads=[2**30] * 4)], [], IMAGE),
        ([node("Conv", ["x", "w"], pads=[2**30] * 4)], [("w", np.ones((1, 1, 1, 1), "f4"))], IMAGE),
        (
            [node("ConvTranspose", ["x", "w"], strides=[2**30, 2**30])],
            [("w", np.ones((1, 1, 1, 1), "f4"))],
            IMAGE,
        ),
        (
            [
                node("Expand", ["x", "s"], ["a"]),
                node("Expand", ["x", "t"], ["b"]),
                node("Add", ["a", "b"]),
            ],
            [("s", np.array([2**14, 1, 2, 2])), ("t", np.array([1, 2**14, 2, 2]))],
            X,
        ),
        (
            [
                node("Expand", ["x", "s"], ["a"]),
                node("Transpose", ["a"], ["b"], perm=[1, 0]),
                node("MatMul", ["b", "a"]),
            ],
            [("s", np.array([1, 2**16]))],
            value("x", [1, 1]),
        ),
        (
            [
                node("Concat", ["x"] * 64, ["a"], axis=0),
                node("Concat", ["a"] * 1024, ["b"], axis=0),
                node("Concat", ["b"] * 1024, axis=0),
            ],
            [],
            X,
        ),
    ],
    ids=lambda v: v[-1].op_type if isinstance(v, list) and v and hasattr(v[-1], "op_type") else "",
)
def test_results_that_would_be_huge(nodes, constants, given):
    shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
    kind = FLOAT
    if nodes[-1].op_type in ("Range", "OneHot"):
        kind = INT64 if constants[1][1] == 2**60 else DOUBLE
    rank = {
        "Range": 1,
        "ConstantOfShape": len(np.atleast_1d(constants[0][1])) if constants else 0,
        "Expand": 3,
        "Add": 4,
    }.get(nodes[-1].op_type, len(shape))
    proto = model(nodes, [given], [value("y", [f"n{k}" for k in range(rank)], kind)], constants)
    message = "would have .* elements|a range from|negative length|do not fit"
    refused(proto, message, np.ones(shape, np.float32))


def test_all_arrays_together_have_a_limit():
    wide = [node("Expand", ["x", "s"], [f"a{k}"]) for k in range(6)]
    total = node("Sum", [f"a{k}" for k in range(6)])
    proto = model(
        [*wide, total], [X], [value("y", ["a", "b", "c"])], [("s", np.array([2**24, 2, 2]))]
    )
    refused(proto, "needs arrays of 268,435,460 elements at one time", ONES)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (node("Conv", ["x", "w"], group=0), "group|fit"),
        (node("Conv", ["x", "w"], strides=[0, 0]), "strides|fit"),
        (node("Conv", ["x", "w"], pads=[-9, 0, 0, 0]), "pads|fit"),
        (node("Conv", ["x", "w"], dilations=[2**40, 1]), "covers|fit|elements"),
        (node("MaxPool", ["x"], kernel_shape=[9, 9]), "covers|fit|length"),
        (node("AveragePool", ["x"], kernel_shape=[-1, 2]), "kernel|fit|length"),
        (node("DepthToSpace", ["x"], blocksize=0), "channels in blocks of 0"),
        (node("SpaceToDepth", ["x"], blocksize=3), "blocks|fit"),
        (node("LRN", ["x"], size=0), "size"),
        (node("Flatten", ["x"], axis=9), "axis|fit"),
        (node("Squeeze", ["x", "two"]), "fit|computed"),
        (node("Split", ["x", "two"], ["y"], axis=2), "parts of lengths|fit"),
        (node("Slice", ["x", "two", "two", "two", "zero"]), "step|fit"),
        (node("LayerNormalization", ["x", "w"], axis=2**40), "axis 1099511627776"),
        (node("GatherND", ["x", "two"], batch_dims=2**40), "computed|axes|elements"),
        (node("Resize", ["x", "", "", "none"], mode="cubic"), "resized to 0"),
    ],
    ids=lambda v: getattr(v, "op_type", ""),
)
def test_attributes_without_meaning(bad, message):
    constants = [
        ("w", np.ones((1, 1, 2, 2), "f4")),
        ("two", [2]),
        ("zero", [0]),
        ("none", [1, 1, 0, 4]),
    ]
    out = Y if bad.op_type == "Flatten" else IMAGE_OUT
    refused(model([bad], [IMAGE], [out], constants), message, np.ones((1, 1, 4, 4), np.float32))


def test_a_loop_of_too_many_steps():
    step = helper.make_graph(
        [node("Identity", ["c"], ["d"]), node("Add", ["v", "v"], ["w"])],
        "body",
        [value("k", [], INT64), value("c", [], onnx.TensorProto.BOOL), value("v", [2, 2])],
        [value("d", [], onnx.TensorProto.BOOL), value("w", [2, 2])],
    )
    loop = node("Loop", ["n", "", "x"], body=step)
    refused(model([loop], [X], [Y], [("n", np.array(2**60))]), "would have 1,152,.* elements", ONES)
