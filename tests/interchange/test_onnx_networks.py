"""Networks from ONNX files: values, bits, derivatives, bounds, names and messages."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.graph import statistics
from archimedes.interchange import Network, OnnxError

from ..embedded.toolchain import needs
from ..optional_packages import import_or_skip
from .onnx_models import (
    DOUBLE,
    INT64,
    attention_net,
    conv_net,
    helper,
    lstm_net,
    mlp,
    model,
    onnx,
    quantized_net,
    reference,
    value,
)

MODELS = {
    "mlp": (mlp((6, 16, 16, 3)), (5, 6)),
    "conv": (conv_net(), (2, 3, 12, 12)),
    "lstm": (lstm_net(), (6, 2, 3)),
    "attention": (attention_net(), (2, 4, 8)),
    "quantized": (quantized_net(), (3, 2, 6, 6)),
}


def sample(shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.fixture(scope="module")
def networks():
    """The networks of the table, each with an input; recordings are shared by the tests."""
    return {name: (arc.from_onnx(proto), sample(shape)) for name, (proto, shape) in MODELS.items()}


def outputs(result):
    return result if isinstance(result, tuple) else (result,)


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_other_runtimes(networks, name):
    network, x = networks[name]
    got = outputs(network(x))
    for expected in (reference(MODELS[name][0], x), run_in_onnxruntime(MODELS[name][0], x)):
        assert len(got) == len(expected) == len(network.output_names)
        for a, b in zip(got, expected):
            assert a.shape == b.shape
            if b.dtype == np.float32 and name != "quantized":
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6)
            else:  # integers, and floats that are multiples of a step
                np.testing.assert_array_equal(a, b)
            assert a.dtype == (b.dtype if b.dtype.kind == "f" else np.int64)


def run_in_onnxruntime(proto, *args):
    runtime = import_or_skip("onnxruntime")
    session = runtime.InferenceSession(proto.SerializeToString())
    return session.run(None, dict(zip((one.name for one in session.get_inputs()), args)))


@pytest.mark.long_cases("attention", "lstm")
@pytest.mark.parametrize("name", MODELS)
def test_a_row_is_the_same_in_a_batch_of_any_size(networks, name):
    network, x = networks[name]
    axis = 1 if name == "lstm" else 0
    one = np.take(x, [0], axis=axis)
    first = outputs(network(one))[0]
    many = outputs(network(np.repeat(one, 7, axis=axis)))[0]
    rows = 2 if name == "lstm" else 0
    assert many.shape[rows] == 7
    np.testing.assert_allclose(many, np.repeat(first, 7, axis=rows), rtol=2e-6, atol=1e-7)


def test_an_empty_batch():
    network = arc.from_onnx(MODELS["mlp"][0])
    assert network(np.zeros((0, 6), np.float32)).shape == (0, 3)
    assert arc.from_onnx(MODELS["conv"][0])(np.zeros((0, 3, 12, 12), np.float32)).shape == (0, 5)


def test_quantisation_rounds_half_to_even_and_saturates():
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])]
    proto = model(
        nodes,
        [value("x", ["N"])],
        [value("y", ["N"], onnx.TensorProto.INT8)],
        [("s", np.float32(2.0)), ("z", np.int8(1))],
    )
    x = np.array([1.0, 3.0, 5.0, -1.0, -3.0, 1e9, -np.inf, np.inf, 252.9, 253.0], np.float32)
    got = arc.from_onnx(proto)(x)
    # 0.5, 1.5, 2.5, -0.5, -1.5 are rounded to even numbers; 126.5 saturates after the zero point.
    assert got.tolist() == [1, 3, 3, 1, -1, 127, -128, 127, 127, 127]
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, run_in_onnxruntime(proto, x)[0])


def test_integers_wrap_to_their_width():
    nodes = [
        helper.make_node("Add", ["a", "b"], ["s"]),
        helper.make_node("Mul", ["a", "b"], ["p"]),
        helper.make_node("Cast", ["s"], ["w"], to=onnx.TensorProto.INT16),
    ]
    u8 = onnx.TensorProto.UINT8
    outs = [value("s", ["N"], u8), value("p", ["N"], u8), value("w", ["N"], onnx.TensorProto.INT16)]
    proto = model(nodes, [value("a", ["N"], u8), value("b", ["N"], u8)], outs)
    a, b = np.array([250, 3, 255], np.uint8), np.array([10, 4, 255], np.uint8)
    got = arc.from_onnx(proto)(a, b)
    for x, y in zip(got, (a + b, a * b, (a + b).astype(np.int16))):
        np.testing.assert_array_equal(x, y)


def test_float64_networks_compute_in_float64():
    proto = mlp((3, 5, 2), dtype=np.float64)
    x = sample((4, 3), dtype=np.float64)
    got = arc.from_onnx(proto)(x)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, reference(proto, x)[0], rtol=1e-14)


def test_nan_and_infinity_pass_through():
    for op, given, expected in (
        ("Relu", [np.nan, np.inf, -np.inf], [np.nan, np.inf, 0.0]),
        ("Sigmoid", [np.nan, np.inf, -np.inf, 1e30, -1e30], [np.nan, 1.0, 0.0, 1.0, 0.0]),
        ("Tanh", [np.nan, np.inf, -np.inf], [np.nan, 1.0, -1.0]),
        ("Softplus", [np.nan, np.inf, -np.inf, 100.0], [np.nan, np.inf, 0.0, 100.0]),
        ("Elu", [np.nan, np.inf, -np.inf], [np.nan, np.inf, -1.0]),
        ("Gelu", [np.nan, np.inf, 3e38], [np.nan, np.inf, 3e38]),
    ):
        proto = model(
            [helper.make_node(op, ["x"], ["y"])], [value("x", ["N"])], [value("y", ["N"])], opset=20
        )
        got = arc.from_onnx(proto)(np.array(given, np.float32))
        np.testing.assert_allclose(got, np.float32(expected), atol=2e-38, err_msg=op)


def test_numbers_without_axes_and_several_inputs():
    nodes = [helper.make_node("Sub", ["a", "b::0"], ["y"])]
    proto = model(nodes, [value("a", []), value("b::0", [])], [value("y", [])])
    network = arc.from_onnx(proto)
    assert network.input_names == ("a", "b::0") and network.arg_names == ("a", "b__0")
    assert float(network(np.float32(5.0), b__0=np.float32(2.0))) == 3.0
    assert float(network(5, 2.5)) == 2.5


# ---- bits --------------------------------------------------------------------------------------


def same_bits(a, b):
    return all(
        x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(outputs(a), outputs(b))
    )


@pytest.mark.long_cases("attention", "mlp")
@pytest.mark.parametrize("name", MODELS)
def test_interpreter_and_native_code_have_the_same_bits(networks, name):
    network, x = networks[name]
    native = arc.Compiled(network.function, backend="llvm", freeze=True)
    interpreted = arc.Compiled(network.function, backend="interpreter", freeze=True)
    assert same_bits(native(x), interpreted(x))
    assert same_bits(native(x), network(x))


@needs("gcc")
@pytest.mark.long_cases("conv", "attention", "mlp")
@pytest.mark.parametrize("name", MODELS)
def test_c_has_the_same_bits(networks, name):
    network, x = networks[name]
    small = x[:, :1] if name == "lstm" else x[:1]
    verification = arc.codegen(network, (small,), name="net").verify(samples=4)
    assert verification.samples == 4


@pytest.mark.long
@needs("node")
def test_webassembly_has_the_same_bits(networks, tmp_path):
    from ..wasm.checking import differences, function_case

    cases = [
        function_case(name, network, *((sample(x.shape, seed),) for seed in range(2)))
        for name, (network, x) in networks.items()
    ]
    assert differences(cases, tmp_path) == {}


# ---- recording ---------------------------------------------------------------------------------


def test_programs_do_not_grow_with_data():
    def size(proto, shape):
        return statistics(arc.from_onnx(proto).recording(sample(shape)).blocks).nodes

    assert size(mlp((64, 64, 64, 64)), (32, 64)) == size(mlp((256, 256, 256, 256)), (32, 256))
    assert size(conv_net(), (1, 3, 12, 12)) <= 1.05 * size(conv_net(), (4, 3, 12, 12))
    assert size(lstm_net(8, 64), (50, 1, 8)) == size(lstm_net(8, 64), (500, 1, 8))


def test_networks_are_parts_of_functions():
    network = arc.from_onnx(mlp((2, 8, 1), dtype=np.float64))

    def rates(t, x):
        return np.stack([x[1], network(x[None])[0, 0] - x[0]])

    end = arc.odeint(rates, (0.0, 1.0), np.array([0.3, 0.0]), method="rk4", dt=0.01)
    x, h = np.array([0.3, 0.0]), 0.01
    for _ in range(100):  # Runge and Kutta's method by hand, around ONNX's own evaluator

        def f(x):
            return np.array([x[1], reference(MODEL_OF_RATES, x[None])[0][0, 0] - x[0]])

        a = f(x)
        b = f(x + h / 2 * a)
        c = f(x + h / 2 * b)
        d = f(x + h * c)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
    np.testing.assert_allclose(end, x, rtol=1e-9)
    rows = sample((5, 2), dtype=np.float64)
    one_by_one = arc.vmap(lambda x: network(x[None])[0])(rows)
    np.testing.assert_allclose(one_by_one, network(rows), rtol=1e-13)


MODEL_OF_RATES = mlp((2, 8, 1), dtype=np.float64)


def test_loops_and_branches_on_values():
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["v", "two"], ["w"]),
            helper.make_node("Less", ["w", "limit"], ["go"]),
        ],
        "body",
        [value("k", [], INT64), value("c", [], onnx.TensorProto.BOOL), value("v", [], DOUBLE)],
        [value("go", [], onnx.TensorProto.BOOL), value("w", [], DOUBLE)],
        [],
    )
    yes = helper.make_graph(
        [helper.make_node("Neg", ["z"], ["p"])], "g", [], [value("p", [], DOUBLE)]
    )
    no = helper.make_graph(
        [helper.make_node("Abs", ["z"], ["q"])], "h", [], [value("q", [], DOUBLE)]
    )
    nodes = [
        helper.make_node("Loop", ["most", "true", "x"], ["z"], body=body),
        helper.make_node("Greater", ["x", "two"], ["large"]),
        helper.make_node("If", ["large"], ["y"], then_branch=yes, else_branch=no),
    ]
    constants = [("two", 2.0), ("limit", 100.0), ("true", True), ("most", 50)]
    proto = model(nodes, [value("x", [], DOUBLE)], [value("y", [], DOUBLE)], constants)
    network = arc.from_onnx(proto)
    for x in (1.5, 3.0, 0.1, 70.0):
        expected = reference(proto, np.array(x))[0]
        assert float(network(np.float64(x))) == float(expected)
        assert float(arc.grad(network)(np.float64(x))) == float(expected) / x


def test_an_unrolled_scan_is_a_scan():
    step = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "t"], ["u"])],
        "step",
        [value("s", [2]), value("e", [2])],
        [value("t", [2]), value("u", [2])],
    )
    nodes = [helper.make_node("Scan", ["s0", "x"], ["last", "all"], body=step, num_scan_inputs=1)]
    proto = model(
        nodes,
        [value("s0", [2]), value("x", ["T", 2])],
        [value("last", [2]), value("all", ["T", 2])],
    )
    s0, x = sample((2,)), sample((9, 2), 1)
    for a, b in zip(arc.from_onnx(proto)(s0, x), reference(proto, s0, x)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


# ---- derivatives -------------------------------------------------------------------------------


@pytest.mark.long
def test_derivatives_of_dense_layers_are_those_of_torch():
    torch = import_or_skip("torch")
    proto = mlp((3, 7, 2), "Softplus", np.float64)
    network = arc.from_onnx(proto)
    weights = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in proto.graph.initializer}

    def peer(x):
        h = torch.nn.functional.softplus(x @ weights["w0"].T + weights["b0"])
        return (h @ weights["w1"].T + weights["b1"]).sum() ** 2

    x = sample((2, 3), dtype=np.float64)
    loss = arc.compile(lambda x: np.sum(network(x)) ** 2)
    t = torch.tensor(x)
    gradient = torch.autograd.functional.jacobian(peer, t).numpy()
    np.testing.assert_allclose(arc.grad(loss)(x), gradient, rtol=1e-11)
    hessian = torch.autograd.functional.hessian(peer, t).numpy()
    np.testing.assert_allclose(arc.hess(loss)(x), hessian, rtol=1e-10, atol=1e-12)


@pytest.mark.long
def test_lstms_and_their_derivatives_are_those_of_torch():
    torch = import_or_skip("torch")
    proto = lstm_net(dtype=np.float64)
    network = arc.from_onnx(proto)
    weights = {t.name: onnx.numpy_helper.to_array(t)[0] for t in proto.graph.initializer}

    def reorder(w):  # gates i, o, f, c of ONNX are i, f, c, o in PyTorch
        i, o, f, c = np.split(w, 4)
        return torch.tensor(np.concatenate([i, f, c, o]))

    peer = torch.nn.LSTM(3, 4).double()
    peer.weight_ih_l0.data, peer.weight_hh_l0.data = reorder(weights["w"]), reorder(weights["r"])
    peer.bias_ih_l0.data, peer.bias_hh_l0.data = map(reorder, np.split(weights["b"], 2))
    x = sample((6, 2, 3), dtype=np.float64)
    y, (h, c) = peer(torch.tensor(x))
    got = network(x)
    for a, b in zip(got, (y[:, None], h, c)):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-12)
    gradient = arc.grad(lambda x: np.sum(network(x)[0] ** 2))(x)
    expected = torch.autograd.functional.jacobian(
        lambda x: (peer(x)[0] ** 2).sum(), torch.tensor(x)
    )
    np.testing.assert_allclose(gradient, expected.numpy(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("op", ["Sigmoid", "Tanh", "Elu", "Gelu", "Selu", "Softplus", "Swish"])
def test_derivatives_are_finite_and_right_everywhere(op):
    proto = model(
        [helper.make_node(op, ["x"], ["y"])],
        [value("x", ["N"], DOUBLE)],
        [value("y", ["N"], DOUBLE)],
        opset=24,
    )
    network = arc.from_onnx(proto)
    x = np.array([-1e4, -800.0, -40.0, -3.0, -1e-3, 1e-3, 0.7, 30.0, 800.0, 1e4])
    slope = arc.compile(lambda x: arc.grad(lambda x: np.sum(network(x)))(x))(x)
    assert np.isfinite(slope).all()
    step = 1e-6 * np.maximum(np.abs(x), 1.0)
    differences = (network(x + step) - network(x - step)) / (2.0 * step)
    np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-8)


# ---- bounds ------------------------------------------------------------------------------------


def test_bounds_of_a_policy_hold_and_are_tight():
    network = arc.from_onnx(mlp((3, 12, 1), dtype=np.float64, seed=3))
    low, high = np.full((1, 3), -0.5), np.full((1, 3), 0.5)
    certified = network.bounds({"x": (low, high)})
    assert certified.ok
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, size=(100_000, 3))
    corners = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3), axis=-1).reshape(-1, 3)
    y = network(np.concatenate([x, corners]))
    assert certified.lower[0, 0] <= y.min() and y.max() <= certified.upper[0, 0]
    assert (certified.upper - certified.lower)[0, 0] < 1.1 * (y.max() - y.min())


# ---- names and messages ------------------------------------------------------------------------


def test_names_and_printing(tmp_path):
    path = tmp_path / "policy.onnx"
    path.write_bytes(mlp((4, 8, 2)).SerializeToString())
    network = arc.from_onnx(str(path))
    assert isinstance(network, Network)
    assert network.input_names == ("x",) and network.output_names == ("y",)
    assert repr(network) == (
        "<network policy(x: float (N, 4)) -> y: float (N, 2); 3 nodes, 58 weights>"
    )
    assert "x : float (N, 4)" in network.__doc__ and "y: float (N, 2)" in network.__doc__
    several = arc.from_onnx(lstm_net())
    assert several.output_names == ("y", "h", "c") and len(several(sample((2, 1, 3)))) == 3


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((np.zeros((2, 5), np.float32),), OnnxError, r"shape \(2, 5\); the network needs \(N, 6\)"),
        ((np.zeros(6, np.float32),), OnnxError, r"shape \(6,\); the network needs \(N, 6\)"),
        ((np.zeros((2, 6), bool),), OnnxError, r"'x' is bool; the network needs float \(N, 6\)"),
        ((), TypeError, "missing a required argument: 'x'"),
        ((1.0, 2.0), TypeError, "too many positional arguments"),
    ],
)
def test_wrong_arguments(networks, args, error, message):
    with pytest.raises(error, match=message):
        networks["mlp"][0](*args)


def test_lengths_of_one_name_must_agree():
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    proto = model(nodes, [value("a", ["N", 2]), value("b", ["N", 2])], [value("y", ["N", 2])])
    network = arc.from_onnx(proto)
    with pytest.raises(OnnxError, match=r"'b' has the shape \(4, 2\).*\(N, 2\), where N=3"):
        network(np.zeros((3, 2), np.float32), np.zeros((4, 2), np.float32))


def test_integers_beyond_their_type_are_refused():
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    i8 = onnx.TensorProto.INT8
    network = arc.from_onnx(model(nodes, [value("x", ["N"], i8)], [value("y", ["N"], i8)]))
    assert network([1, -128]).tolist() == [1, -128]
    with pytest.raises(OnnxError, match="'x' is float64; the network needs int8"):
        network(np.array([0.5]))
    with pytest.raises(OnnxError, match="input 'x' has 0 to 200; int8 holds -128 to 127"):
        network.function(np.array([0, 200]))


def test_lists_and_other_dtypes_are_converted(networks):
    network, x = networks["mlp"]
    np.testing.assert_array_equal(network(x.tolist()), network(x))
    assert network(x.astype(np.float64)).dtype == np.float32
    assert network(np.ones((1, 6), np.int16)).dtype == np.float32


def test_shapes_from_values_need_constants():
    nodes = [helper.make_node("Expand", ["x", "n"], ["y"])]
    proto = model(nodes, [value("x", [1]), value("n", [1], INT64)], [value("y", ["a"])])
    with pytest.raises(OnnxError, match=r"the shape depends on values .* constants=\{\.\.\.\}"):
        arc.from_onnx(proto)(np.ones(1, np.float32), np.array([3]))
    network = arc.from_onnx(proto, constants={"n": [3]})
    assert network.input_names == ("x",)
    assert network(np.float32([2.0])).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match=r"constants: 'm' is not one of the inputs \['x', 'n'\]"):
        arc.from_onnx(proto, constants={"m": 3})


def test_training_is_refused():
    nodes = [helper.make_node("Dropout", ["x", "r", "t"], ["y"])]
    proto = model(
        nodes, [value("x", [2])], [value("y", [2])], [("r", np.float32(0.5)), ("t", True)]
    )
    with pytest.raises(OnnxError, match=r"training_mode is set: export .* \(model\.eval\(\)\)"):
        arc.from_onnx(proto)(np.ones(2, np.float32))


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r"from_onnx needs the package onnx: pip install .*onnx\]"
    ):
        arc.from_onnx("policy.onnx")
