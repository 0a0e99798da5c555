"""The seam for backends: what is registered runs by name or by arrays, unknown to src."""

import subprocess
import sys

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends import registry
from archimedes.backends.protocol import Backend
from archimedes.function.batching.sorted_items import over_runs
from tests.backends.outside_backends import FAR, TOY, FarArray, FarKernel, ToyKernel


@pytest.fixture(autouse=True)
def diaries():
    TOY.diary.clear()
    FAR.diary.clear()


@arc.struct
class Body:
    x: np.ndarray
    v: np.ndarray


def spring(body, k):
    return Body(x=body.v * 1.0, v=-k * body.x + np.sin(body.v))


BODY = Body(x=np.array([0.1, 0.2]), v=np.array([0.3, -0.4]))


def same(a, b):
    assert arc.tree.structure(a) == arc.tree.structure(b)
    for x, y in zip(arc.tree.leaves(a), arc.tree.leaves(b)):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


# ---- by name -----------------------------------------------------------------------------------


def test_compile_by_name():
    f = arc.compile(spring, backend="toy")
    for _ in range(6):
        same(f(BODY, 2.0), arc.compile(spring, backend="interpreter")(BODY, 2.0))
    assert TOY.diary == ["build"] + ["call"] * 6


def test_numerics_are_part_of_the_program():
    f = arc.compile(lambda x, y: x * y + 0.1, backend="toy", numerics="fast")
    g = arc.compile(lambda x, y: x * y + 0.1, backend="interpreter", numerics="fast")
    assert f(1.1, 1.3).tobytes() == g(1.1, 1.3).tobytes()


@pytest.mark.parametrize("make", [arc.jac, arc.grad, arc.hess])
def test_derivatives_use_the_functions_backend(make):
    f = lambda x: np.sum(np.sin(x) * x[0])
    x = np.array([0.5, 1.5])
    same(make(arc.compile(f, backend="toy"))(x), make(f)(x))
    assert TOY.diary == ["build", "call"]


def test_vmap_by_name():
    many = arc.tree.map(lambda x: np.stack([x, 2 * x, 3 * x]), BODY)
    wanted = arc.vmap(spring, in_axes=(0, None))(many, 2.0)
    f = arc.vmap(spring, (0, None), backend="toy")
    for _ in range(5):
        same(f(many, 2.0), wanted)
    same(arc.vmap(arc.compile(spring, backend="toy"), (0, None))(many, 2.0), wanted)
    assert TOY.diary.count("build") == 2 and set(TOY.diary) == {"build", "batch of 3"}


def test_a_map_on_another_backend_uses_the_functions_recording():
    f = arc.compile(lambda x: x * 2.0)
    f(1.0), f(np.float64(1.0))
    for name in ("toy", "interpreter", "llvm", "auto", "far"):
        for _ in range(6):
            assert arc.vmap(f, backend=name)(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    assert len(f.explain().splitlines()) == 2
    assert TOY.diary.count("build") == 1 and TOY.diary.count("batch of 3") == 6


def test_an_empty_batch_and_other_axes():
    f = arc.vmap(lambda x: (x * 2.0, 7.0), in_axes=1, out_axes=(1, 0), backend="toy")
    doubled, constant = f(np.arange(6.0).reshape(2, 3))
    assert doubled.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]] and constant.shape == (3,)
    assert arc.vmap(lambda x: x * 2.0, backend="toy")(np.zeros((0, 2))).shape == (0, 2)


def test_out_by_name():
    f, out = arc.compile(lambda x: x + 1.0, backend="toy"), np.empty(2)
    for _ in range(5):
        assert f(np.array([1.0, 2.0]), out=out) is out and out.tolist() == [2.0, 3.0]
    v, many = arc.vmap(f), np.empty((1, 2))
    assert v(np.array([[1.0, 2.0]]), out=many) is many and many.tolist() == [[2.0, 3.0]]


def test_sorted_runs_without_code_of_their_own():
    over = over_runs(arc.compile(lambda row, item: (row[1] + item)[None], backend="toy"), 2)
    rows, items = np.array([[[1.0, 10.0], [2.0, 20.0]]]), np.array([0.5, 1.0, 1.5, 3.0])
    done, results = np.array([0]), np.zeros((1, 4, 1))
    over.bound(0, items, 1.0, results)(rows, np.array([0]), done)
    assert done.tolist() == [3] and results[0, :3, 0].tolist() == [10.5, 11.0, 21.5]


def test_report_and_source():
    f = arc.compile(lambda x: x * 2.0, backend="toy")
    report = f.report(1.0)
    assert report.backend == "toy" and report.code_bytes == 0 and "one call" in str(report)
    assert str(report).endswith("2 fingers")
    assert f.source("toy", 1.0).startswith("toy ")
    with pytest.raises(ValueError, match="source: kind='asm' is not one of 'toy'"):
        f.source("asm", 1.0)


def test_the_environment_chooses(monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_BACKEND", "toy")
    assert arc.compile(lambda x: x * 2.0)(1.5) == 3.0 and TOY.diary == ["build", "call"]
    monkeypatch.setenv("ARCHIMEDES_BACKEND", "fortran")
    with pytest.raises(ValueError, match=r"ARCHIMEDES_BACKEND='fortran' is not one of \('auto', "):
        arc.compile(lambda x: x)


def test_unknown_names_list_the_known_ones():
    known = r"'auto', 'llvm', 'interpreter', 'cuda'.*'toy', 'far'.*"
    with pytest.raises(ValueError, match=rf"compile: backend='fpga' is not one of \({known}\)"):
        arc.compile(spring, backend="fpga")
    with pytest.raises(ValueError, match=rf"vmap: backend='fpga' is not one of \({known}\)"):
        arc.vmap(spring, backend="fpga")
    with pytest.raises(ValueError, match="vmap: backend='fpga' is not one of"):
        arc.vmap(arc.compile(spring), backend="fpga")


class _Named(Backend):
    def __init__(self, name):
        self.name = name

    def build(self, program):
        raise AssertionError


def test_registering():
    with pytest.raises(TypeError, match="register needs a Backend, got ABCMeta"):
        registry.register(_Named)
    for name in ("auto", "two words"):
        with pytest.raises(ValueError, match="cannot be the name of a backend"):
            registry.register(_Named(name))
    registry.register(_Named("passing"))
    assert "passing" in registry.names()
    registry.unregister("passing")
    assert "passing" not in registry.names()
    with pytest.raises(ValueError, match="'passing' is not a registered backend"):
        registry.unregister("passing")


def test_names_alone_load_no_backend():
    code = (
        "import sys; import archimedes as arc; from archimedes.backends import registry; "
        "arc.compile(lambda x: x, backend='llvm'); registry.names(); "
        "assert not any('llvm' in m for m in sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- by arrays ---------------------------------------------------------------------------------


def far(value):
    return arc.tree.map(FarArray, value)


def near(value):
    return arc.tree.map(lambda x: x.get() if isinstance(x, FarArray) else x, value)


def test_arrays_decide():
    f = arc.compile(spring)
    there = f(far(BODY), 2.0)
    assert isinstance(there, Body) and isinstance(there.x, FarArray)
    same(near(there), f(BODY, 2.0))
    assert FAR.diary == ["build", "call"] and TOY.diary == []
    assert len(f.explain().splitlines()) == 1, "one recording for both"


def test_batches_of_device_arrays():
    many = arc.tree.map(lambda x: np.stack([x, 2 * x, 3 * x], axis=1), BODY)
    f = arc.vmap(spring, in_axes=(1, None), out_axes=1)
    for _ in range(5):
        there = f(far(many), 2.0)
        same(near(there), f(many, 2.0))
    assert FAR.diary == ["build"] + ["batch of 3"] * 5
    constant = arc.vmap(lambda x: (x, np.ones(2)))(FarArray(np.ones(3)))[1]
    assert isinstance(constant, FarArray) and constant.shape == (3, 2)
    shared = arc.vmap(lambda x, y: y * 2.0, in_axes=(0, None), out_axes=None)
    assert shared(FarArray(np.ones(3)), FarArray([2.0])).get().tolist() == [4.0]


def test_derivatives_of_device_arrays():
    f = lambda x: np.sum(np.sin(x) * x[0])
    x = np.array([0.5, 1.5])
    same(arc.jac(f)(FarArray(x)).get(), arc.jac(f)(x))
    same(arc.vmap(arc.grad(f))(FarArray([x])).get(), arc.vmap(arc.grad(f))(x[None]))


def test_out_on_the_device():
    f, out = arc.compile(lambda x: x + 1.0), FarArray(np.empty(2))
    assert f(FarArray([1.0, 2.0]), out=out) is out and out.get().tolist() == [2.0, 3.0]
    many = FarArray(np.empty((1, 2)))
    assert arc.vmap(f)(FarArray([[1.0, 2.0]]), out=many) is many
    assert many.get().tolist() == [[2.0, 3.0]]
    with pytest.raises(TypeError, match=r"out is a ndarray, it must be .* far array of shape"):
        f(FarArray([1.0, 2.0]), out=np.empty(2))


def test_numbers_go_with_any_arrays_and_arrays_do_not_mix():
    f = arc.compile(lambda x, y: x + y)
    assert f(FarArray([1.0]), np.float64(2.0)).get().tolist() == [3.0]
    message = (
        r"argument x is a far array and y is a NumPy array: a call runs where its arrays are, so "
        r"all of them must be of one kind; move them with FarArray\(x\) or x.get\(\)"
    )
    with pytest.raises(ValueError, match=message):
        f(FarArray([1.0]), np.array([2.0]))
    with pytest.raises(ValueError, match="argument x is a NumPy array and y is a far array"):
        arc.vmap(f)(np.array([2.0]), FarArray([1.0]))


def test_a_named_device_moves_numpy_arrays_there_and_back():
    f = arc.compile(spring, backend="far")
    same(f(BODY, 2.0), arc.compile(spring)(BODY, 2.0))
    out = np.empty(2)
    g = arc.compile(lambda x: x + 1.0, backend="far")
    assert g(np.array([1.0, 2.0]), out=out) is out and out.tolist() == [2.0, 3.0]
    v, many = arc.vmap(g), np.empty((1, 2))
    assert v(np.array([[1.0, 2.0]]), out=many) is many and many.tolist() == [[2.0, 3.0]]
    assert isinstance(g(FarArray([1.0])), FarArray), "its own arrays stay there"


def test_another_named_backend_does_not_take_them():
    f = arc.compile(spring, backend="toy")
    with pytest.raises(ValueError, match="made with backend='toy', but is called with far arrays"):
        f(far(BODY), 2.0)


def test_dtypes_of_device_arrays_are_checked():
    with pytest.raises(ValueError, match="argument x has dtype complex128, which cannot be traced"):
        arc.compile(lambda x: x)(FarArray([1j]))


def test_a_device_may_move_large_batches_itself(monkeypatch):
    def in_pieces(self, inputs, batched, outputs, count, threads=None):
        self.diary.append("pieces")
        for k in range(0, count, 2):
            part = slice(k, k + 2)
            rows = [x[part] if many else x for x, many in zip(inputs, batched)]
            ToyKernel.call_batch(
                self, rows, batched, [o[part] for o in outputs], len(outputs[0][part])
            )
        return True

    monkeypatch.setattr(FarKernel, "call_batch_from_host", in_pieces)
    f, x, out = arc.vmap(lambda x: np.sin(x), backend="far"), np.arange(5.0), np.empty(5)
    assert f(x).tobytes() == np.sin(x).tobytes() and f(x, out=out) is out
    assert out.tobytes() == np.sin(x).tobytes()
    assert FAR.diary == ["build", *(["pieces", "batch of 2", "batch of 2", "batch of 1"] * 2)]


# ---- solves ------------------------------------------------------------------------------------


def fall(t, x, g):
    return np.array([x[1], -g - 0.1 * x[1]])


def test_solve_ode_by_name():
    options = {"args": (9.81,), "t_eval": np.linspace(0.0, 1.0, 4), "rtol": 1e-4, "atol": 1e-4}
    wanted = arc.solve_ode(fall, (0.0, 1.0), [1.0, 0.0], **options)
    found = arc.solve_ode(fall, (0.0, 1.0), [1.0, 0.0], **options, backend="toy")
    assert found.x.tobytes() == wanted.x.tobytes() and found.stats == wanted.stats
    assert {"build", "call"} <= set(TOY.diary)
    end = lambda **more: arc.odeint(fall, (0.0, 1.0), [1.0, 0.0], args=(9.81,), rtol=1e-4, **more)
    assert end(backend="toy").tobytes() == end().tobytes()


def test_kernels_of_backends_are_kept_apart(monkeypatch):
    solve = lambda **options: arc.solve_ode(lambda t, x: -x, (0.0, 0.1), 1.0, dt=0.05, **options)
    one, other = solve(), solve(backend="far")
    assert one.x.tobytes() == other.x.tobytes() and FAR.diary
    FAR.diary.clear()
    solve()
    assert FAR.diary == []
    monkeypatch.setenv("ARCHIMEDES_BACKEND", "far")
    solve()
    assert FAR.diary, "the environment's choice is no other's"


def test_groups_of_solves_are_the_backends_choice():
    x0 = np.linspace(1.0, 2.0, 7)
    options = {"t_eval": [0.0, 0.1], "dt": 0.05, "in_axes": 0, "threads": 1}
    wanted = arc.solve_ode(lambda t, x: -x, (0.0, 0.1), x0, **options)
    found = arc.solve_ode(lambda t, x: -x, (0.0, 0.1), x0, **options, backend="toy")
    assert found.x.tobytes() == wanted.x.tobytes()
    batches = {line for line in TOY.diary if line.startswith("batch")}
    assert batches == {"batch of 3", "batch of 1"}, "7 solves in groups of at most 3"


def test_unknown_backends_of_solves():
    with pytest.raises(ValueError, match=r"solve_ode: backend='fpga' is not one of \('auto', "):
        arc.solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, backend="fpga")
    with pytest.raises(ValueError, match="odeint: backend='fpga' is not one of"):
        arc.odeint(lambda t, x: -x, (0.0, 1.0), 1.0, backend="fpga")


def test_solvers_say_how_to_use_a_device():
    x0, f = FarArray([1.0, 2.0]), lambda t, x, *more: -x
    message = "holds a far array, and a single solve takes NumPy's: move it here, or give a batch"
    for solve in (arc.solve_ode, arc.odeint):
        with pytest.raises(ValueError, match=f"x0 {message}"):
            solve(f, (0.0, 1.0), x0)
        with pytest.raises(ValueError, match=f"args {message}"):
            solve(f, (0.0, 1.0), [1.0, 2.0], args=(x0,))
    with pytest.raises(ValueError, match=r"far arrays, and solvers take NumPy's.*backend='far'"):
        arc.solve_ode(f, (0.0, 1.0), x0, in_axes=0)


def test_chunks_of_campaigns_are_the_backends_choice(monkeypatch, tmp_path):
    from archimedes.simulate import Normal, monte_carlo

    monkeypatch.setattr(TOY, "sizes", TOY.sizes._replace(chunk=4))
    monkeypatch.setenv("ARCHIMEDES_BACKEND", "toy")
    found = monte_carlo(lambda p: {"y": 2.0 * p["a"]}, {"a": Normal(0.0, 1.0)}, n=10, seed=3)
    assert found.results["y"].shape == (10,)
    assert {"batch of 4", "batch of 2"} <= set(TOY.diary)


def test_device_arrays_that_a_function_reads_are_never_fetched(monkeypatch):
    held = {"far": FarArray([1.0]), "k": 2.0}
    monkeypatch.setattr(FarArray, "__reduce_ex__", lambda self, version: pytest.fail("fetched"))
    f = arc.compile(lambda x: x * held["k"])
    assert f(3.0) == 6.0
    held["k"] = 5.0
    assert f(3.0) == 15.0
