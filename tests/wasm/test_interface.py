"""The JavaScript of a module in Node: nested arguments, types, errors, views, batches, names."""

from __future__ import annotations

import json
import subprocess
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.wasm import module
from archimedes.embedded import wasm_module
from archimedes.errors import CodegenError
from archimedes.spatial import Quaternion, RigidBody

from ..embedded.toolchain import needs

pytestmark = needs("node")

#: Values as JSON has them not: typed arrays by name, BigInts, nans.
_SHOW = """
export function show(x) {
  if (typeof x === "bigint") return `${x}n`;
  if (typeof x === "number") return Object.is(x, -0) ? "-0" : Number.isFinite(x) ? x : String(x);
  if (ArrayBuffer.isView(x)) return [x.constructor.name, ...Array.from(x, show)];
  if (Array.isArray(x)) return x.map(show);
  if (x && typeof x === "object") return Object.keys(x).map((key) => [key, show(x[key])]);
  return x;
}
export function caught(run) {
  try { run(); } catch (error) { return `${error.name}: ${error.message}`; }
  return "nothing";
}
"""


def in_node(folder: Path, text: str, name: str = "m") -> Any:
    """Run a script behind ``const model = await load()``; it puts what it finds into ``said``."""
    (folder / "show.mjs").write_text(_SHOW)
    head = f'import {{ load }} from "./{name}.js";\nimport {{ show, caught }} from "./show.mjs";\n'
    script = f"{head}const said = [];\nconst model = await load();\n{text}\n"
    (folder / "run.mjs").write_text(script + "console.log(JSON.stringify(said));\n")
    done = subprocess.run(["node", f"{folder}/run.mjs"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


Gains = namedtuple("Gains", ["kp", "ki"])


def mixed(x, gains, flags, n, nothing):
    total = gains.kp * x["a"] + gains.ki
    return {"y": total, "rows": np.outer(x["a"], [1.0, 2.0])}, [n + 1, flags & True, n > 3], nothing


MIXED = (
    {"a": np.arange(3.0), "b": np.float32(1.0)},
    Gains(2.0, 0.5),
    np.array([True, False]),
    np.int64(2**60),
    None,
)


def test_nested_arguments_and_results(tmp_path: Path):
    arc.codegen(mixed, MIXED, target="wasm", name="m", output_dir=tmp_path)
    said = in_node(
        tmp_path,
        """
        const x = {a: [1, -0, NaN], b: 0.1}, gains = {kp: 3, ki: 0};
        said.push(show(model.call(x, gains, [true, false], 2n ** 62n, null)));
        const a = new Float64Array([1, 2, 3]), flags = new Uint8Array([0, 1]);
        said.push(show(model.call({a, b: 1}, gains, flags, 7, undefined)));
        """,
    )
    (first, numbers, nothing), second = said
    found = dict(first)
    assert found["y"] == ["Float64Array", 3, 0, "NaN"]
    assert found["rows"] == ["Float64Array", 1, 2, "-0", "-0", "NaN", "NaN"]
    assert numbers == ["4611686018427387905n", ["Uint8Array", 1, 0], True]
    assert nothing is None
    assert second[1] == ["8n", ["Uint8Array", 0, 1], True]


def test_structs_are_objects_with_the_names_of_their_fields(tmp_path: Path):
    x = RigidBody.State(
        pos=np.zeros(3), att=Quaternion([1.0, 0.0, 0.0, 0.0]), v_B=np.ones(3), w_B=np.full(3, 0.1)
    )
    u = RigidBody.Input(F_B=np.ones(3), M_B=np.zeros(3), m=2.0, J_B=np.diag([1.0, 2.0, 3.0]))

    def rates(x, u):
        return RigidBody().dynamics(0.0, x, u)

    module = arc.codegen(rates, (x, u), target="wasm", name="m", output_dir=tmp_path)
    leaves = {leaf["path"]: leaf for leaf in module.layout["functions"][0][1]["inputs"]}
    assert leaves["x.pos"]["units"] == "m" and leaves["x.v_B"]["value"] == [1.0, 1.0, 1.0]
    (said,) = in_node(
        tmp_path,
        """
        const att = {array: [1, 0, 0, 0]};
        const x = {pos: [0, 0, 0], att, v_B: [1, 1, 1], w_B: [0.1, 0.1, 0.1]};
        const u = {F_B: [1, 1, 1], M_B: [0, 0, 0], m: 2, J_B: [[1, 0, 0], [0, 2, 0], [0, 0, 3]],
          dm_dt: 0, dJ_dt: new Float64Array(9)};
        said.push(show(model.call(x, u)));
        """,
    )
    want = arc.compile(rates)(x, u)
    assert dict(said)["v_B"] == ["Float64Array", *want.v_B.tolist()]
    assert dict(dict(said)["att"])["array"] == ["Float64Array", *want.att.array.tolist()]


WRONG = [
    (
        "model.call({a: [1, 2], b: 1}, g, f, 1, null)",
        "x['a']: an array of shape [3] is needed, got",
    ),
    ("model.call({a: [1, 'x', 3], b: 1}, g, f, 1, null)", "x['a'][1]: a number is needed, got the"),
    ("model.call({a: [1, , 3], b: 1}, g, f, 1, null)", "x['a'][1]: a number is needed, got undefi"),
    ("model.call({a: [1, 2n, 3], b: 1}, g, f, 1, null)", "x['a'][1]: a number is needed, got bigi"),
    (
        "model.call({a: 5, b: 1}, g, f, 1, null)",
        "x['a']: an array of shape [3] is needed, got numb",
    ),
    ("model.call({a: [1, 2, 3]}, g, f, 1, null)", "x['b'] is missing"),
    (
        "model.call({a: [1, 2, 3], b: 1, c: 1}, g, f, 1, null)",
        'x: there is no "c"; the names are a',
    ),
    ("model.call([1, 2], g, f, 1, null)", "x: an object with a, b is needed, got Array(2)"),
    ("model.call(null, g, f, 1, null)", "x: an object with a, b is needed, got null"),
    (
        "model.call(x, {kp: Symbol('s'), ki: 1}, f, 1, null)",
        "gains.kp: a number is needed, got symbo",
    ),
    ("model.call(x, g, [1, 2], 1, null)", "flags[1]: a boolean is needed, got number 2"),
    (
        "model.call(x, g, f, 1.5, null)",
        "n: an integer (number or BigInt) is needed, got number 1.5",
    ),
    ("model.call(x, g, f, 2n ** 63n, null)", "n: an integer of 64 bits is needed, got bigint 922"),
    (
        "model.call(x, g, f, NaN, null)",
        "n: an integer (number or BigInt) is needed, got number NaN",
    ),
    ("model.call(x, g)", "call takes 5 arguments (x, gains, flags, n, nothing), got 2"),
    ("model.batch(-1)", "batch: a number of instances is needed, got number -1"),
    ("model.batch(2, {shared: ['z']})", 'batch: shared names "z", which is no input'),
]


def test_wrong_arguments_are_named(tmp_path: Path):
    arc.codegen(mixed, MIXED, target="wasm", name="m", output_dir=tmp_path)
    lines = [f"said.push(caught(() => {call}));" for call, _ in WRONG]
    good = "const x = {a: [1, 2, 3], b: 1}, g = {kp: 1, ki: 1}, f = [true, true];\n"
    said = in_node(tmp_path, good + "\n".join(lines))
    for text, (call, message) in zip(said, WRONG):
        assert text.startswith(f"TypeError: {message}"), (call, text)


def accelerate(state, throttle):
    return {"v": state["v"] + 0.1 * throttle, "p": state["p"] + 0.1 * state["v"]}


def test_views_and_batches(tmp_path: Path):
    state = {"v": 1.0, "p": np.zeros(2)}
    options = {"simd": True}
    arc.codegen(
        accelerate, (state, 2.0), target="wasm", name="m", output_dir=tmp_path, options=options
    )
    said = in_node(
        tmp_path,
        """
        const f = model.functions.call;
        f.run();
        const pairs = [["state['v']", "v"], ["state['p']", "p"]];
        f.carry(pairs);
        f.run();
        said.push(show(f.outputs.p), show(f.outputs.v));
        f.reset();
        said.push(show(f.inputs["state['v']"]));
        const before = model.memory.buffer.byteLength;
        const b = model.batch(30001, {shared: ["throttle"]});
        said.push(model.memory.buffer.byteLength > before);
        b.inputs["state['v']"].set(Float64Array.from({length: 30001}, (_, k) => k));
        b.inputs.throttle[0] = 10;
        b.run();
        said.push(show(b.outputs.v.slice(-2)), b.outputs.p.length, show(b.outputs.p.slice(-2)));
        said.push(show(f.inputs["state['v']"]), show(f.call({v: 5, p: [0, 0]}, 0)));
        const empty = model.batch(0);
        empty.run();
        said.push(empty.outputs.v.length);
        """,
    )
    v = 1.0 + 0.1 * 2.0
    assert said[0] == ["Float64Array", *[0.0 + 0.1 * 1.0 + 0.1 * v] * 2]
    assert said[1] == ["Float64Array", v + 0.1 * 2.0]
    assert said[2:4] == [["Float64Array", 1], True]
    assert said[4:7] == [
        ["Float64Array", 30000, 30001],
        60002,
        ["Float64Array", *[0.1 * 30000] * 2],
    ]
    # The arrays of single calls are as they were.
    assert said[7] == ["Float64Array", 1]
    assert dict(said[8])["v"] == 5 and said[9] == 0


HOSTILE = [
    "__proto__",
    "constructor",
    "</script>",
    'quote"',
    "it's",
    "new",
    "ü\u2028\U0001f680",
    "a b",
]


def test_hostile_names(tmp_path: Path):
    names = {name: float(k) for k, name in enumerate(HOSTILE)}
    module = arc.codegen(
        lambda x: {**x, "toString": x["new"]},
        (names,),
        target="wasm",
        name="m",
        output_dir=tmp_path,
    )
    for file in ("m.js", "m.html", "m.d.ts"):
        text = (tmp_path / file).read_text("utf-8")
        assert text.isascii()
        assert text.count("</script>") == (1 if file == "m.html" else 0)
    given = json.dumps(json.dumps({name: 10.0 * k for k, name in enumerate(HOSTILE)}))
    (said,) = in_node(tmp_path, f"said.push(show(model.call(JSON.parse({given}))));")
    want = {name: 10.0 * k for k, name in enumerate(HOSTILE)} | {"toString": 50.0}
    assert dict(said) == want
    assert "</" not in module.script() and "<!--" not in module.script()


def test_keys_that_look_the_same_are_refused():
    with pytest.raises(CodegenError, match=r"\[1\] and \['1'\] have the same name in JavaScript"):
        arc.codegen(lambda x: x[1], ({1: 1.0, "1": 2.0},), target="wasm", name="m")


def test_empty_arrays_single_precision_and_static_arguments(tmp_path: Path):
    def scale(x, e, factor, mode):
        return (x * factor if mode == "times" else x), e, np.sum(e)

    module = arc.codegen(
        scale,
        (np.ones(2), np.zeros((0, 3)), 0.1, "times"),
        target="wasm",
        name="m",
        output_dir=tmp_path,
        float_type=np.float32,
    )
    said = in_node(tmp_path, "said.push(show(model.call([1, 0.2], [], 0.1, 'times')));")
    x = np.array([1.0, 0.2], np.float32) * np.float32(0.1)
    assert said == [[["Float32Array", *x.astype(float).tolist()], ["Float32Array"], 0]]
    assert "Float32Array" in module.files["m.d.ts"]


def test_large_arrays(tmp_path: Path):
    """Loops over many numbers, in memory that the module has from the start."""
    n = 250_000

    def halves(x):
        return 0.5 * x, np.max(x)

    made = arc.codegen(halves, (np.ones(n),), target="wasm", name="m", output_dir=tmp_path)
    assert made.layout["memory"]["pages"] * 65536 > 16 * n
    assert len(made.wasm) < 8 * n + 2000
    text = f"""
    const x = Float64Array.from({{length: {n}}}, (_, k) => k - 7);
    const [half, most] = model.call(x);
    said.push(half.length, half[0], half[{n - 1}], most);
    """
    assert in_node(tmp_path, text) == [n, -3.5, 0.5 * (n - 8), n - 8]


def test_too_large_arrays_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST", 100_000)
    with pytest.raises(CodegenError, match=r"take 320,016 bytes; a WebAssembly module has room"):
        arc.codegen(lambda x: 2.0 * x, (np.ones(10_000),), target="wasm", name="m")


def test_several_functions_share_a_module(tmp_path: Path):
    module = wasm_module(
        {
            "step": (accelerate, ({"v": 1.0, "p": 0.0}, 2.0)),
            "energy": (lambda v: 0.5 * v * v, (3.0,)),
        }
    )
    module.write(tmp_path)
    (said,) = in_node(
        tmp_path,
        "const { energy, step } = model.functions;"
        "said.push([energy.call(4), show(step.call({v: 1, p: 0}, 5))]);",
        "model",
    )
    assert said[0] == 8 and dict(said[1])["v"] == 1.5


def test_functions_of_any_name(tmp_path: Path):
    """Exports have names of their own where those would clash."""
    names = ["memory", "f", "f_batch", "</script>", "__proto__", "a b"]
    module = wasm_module({name: (lambda x, k=k: x + k, (1.0, 0.0)) for k, name in enumerate(names)})
    module.write(tmp_path)
    calls = [f"model.functions[{json.dumps(name)}].call(10, {k})" for k, name in enumerate(names)]
    assert in_node(tmp_path, f"said.push({', '.join(calls)});", "model") == list(range(10, 16))
    with pytest.raises(
        CodegenError, match=r"functions\['f'\] must be a pair of a function and its"
    ):
        wasm_module({"f": accelerate})


REFUSED = [
    ({"state": "x"}, "state is for C projects"),
    ({"options": {"cpp": True}}, "options has 'cpp', which target='wasm' does not know"),
    ({"name": "../m"}, "cannot be the name of a file"),
    ({"float_type": np.float16}, "use float or np.float32"),
]


@pytest.mark.parametrize(("keywords", "message"), REFUSED)
def test_refusals(keywords: dict, message: str):
    with pytest.raises(CodegenError, match=message):
        arc.codegen(lambda x: x, (1.0,), target="wasm", **{"name": "m", **keywords})


def test_callbacks_are_refused():
    def f(x):
        return arc.callback(np.sin, x, x)

    with pytest.raises(CodegenError, match="calls the Python function 'sin'"):
        arc.codegen(f, (1.0,), target="wasm")


def test_no_tool_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(subprocess, "Popen", None)
    made = arc.codegen(accelerate, ({"v": 1.0, "p": 0.0}, 2.0), target="wasm", output_dir=tmp_path)
    assert {path.name for path in made.paths} >= {"accelerate.wasm", "accelerate.js"}


def test_a_package_of_the_user_stays(tmp_path: Path):
    (tmp_path / "package.json").write_text('{"name": "mine", "type": "module"}')
    arc.codegen(lambda x: x, (1.0,), target="wasm", name="m", output_dir=tmp_path)
    assert "mine" in (tmp_path / "package.json").read_text()
