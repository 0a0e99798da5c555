"""Nodes of ROS 2: built against a stand-in for rclcpp and messages made from the .msg files."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import yaml

import archimedes as arc
from archimedes.errors import CodegenError

from .test_simulink import ARGS, INERTIA, NAMES, Body, spin
from .toolchain import needs

STUB = Path(__file__).parent / "ros2_stub"
#: Rules of rosidl for the names of fields and messages.
FIELD, MESSAGE = re.compile(r"(?!.*__)(?!.*_$)[a-z][a-z0-9_]*"), re.compile(r"[A-Z][A-Za-z0-9]*")
CPP = {"float64": "double", "float32": "float", "bool": "bool"}


def project(**options):
    args = (*ARGS[:4], np.bool_(True))
    settings = {"parameters": "k", "state": {"w": "rate"}, **options}
    return arc.codegen(spin, args, return_names=NAMES, target="ros2", **settings)


def message_header(package, kind, text):
    """Return a C++ header for a .msg file: its fields, and a visitor of their numbers."""
    fields, visits, includes = [], [], []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        declared, name = line.split("#")[0].split()
        base, count = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", declared).groups()
        assert FIELD.fullmatch(name), name
        cpp = CPP.get(base, f"{base}_t" if base.startswith("int") else base)
        if MESSAGE.fullmatch(base):
            includes.append(f'#include "{header_of(base)}.hpp"')
            visits.append(f"{name}.each(f);")
        else:
            visits.append(f"for (auto & v : {name}) f(v);" if count else f"f({name});")
        fields.append(f"std::array<{cpp}, {count}> {name};" if count else f"{cpp} {name};")
    return "\n".join(
        [
            "#pragma once\n#include <array>\n#include <cstdint>",
            *includes,
            f"namespace {package}::msg {{ struct {kind} {{",
            *fields,
            f"template <class F> void each(F f) {{ {' '.join(visits)} }} }}; }}",
        ]
    )


def header_of(kind):
    """The name of a header as ROS derives it from a message of words without digits."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", kind).lower()


def numbers(*values):
    return " ".join(float(x).hex() for v in values for x in np.ravel(v))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ros2")
    project().write(folder)
    include = folder / "include" / "spin_node" / "msg"
    include.mkdir(parents=True)
    for path in (folder / "msg").iterdir():
        header = message_header("spin_node", path.stem, path.read_text())
        (include / f"{header_of(path.stem)}.hpp").write_text(header)
    strict = ["-Wall", "-Wextra", "-Werror", "-ffp-contract=off", f"-I{folder}"]
    run = subprocess.run
    run(["gcc", "-std=c99", *strict, "-c", folder / "spin.c", "-o", folder / "spin.o"], check=True)
    own = ["-std=c++17", f"-I{STUB}", f"-I{folder / 'include'}"]
    sources = [folder / "src" / "spin_node.cpp", folder / "spin.o"]
    run(["g++", *own, *strict, *sources, "-o", folder / "node"], check=True)
    return folder


def talk(folder, *lines):
    text = "\n".join(lines) + "\n"
    done = subprocess.run([folder / "node"], input=text, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.long
@needs("gcc", "g++")
def test_the_node_publishes_the_bits_of_python(folder):
    rng = np.random.default_rng(2)
    w, k = ARGS[1], np.array([0.02, 0.7])
    lines = [f"set k {numbers(k)}"]
    expected = ["node spin", "timer 0.01"]
    for n in range(3):
        mass, M, on = rng.uniform(1, 3), rng.normal(size=3), n != 1
        inertia = INERTIA + np.diag(rng.uniform(size=3))
        lines += [f"message ~/body {numbers(mass, inertia)}", f"message ~/m {numbers(M)}"]
        lines += [f"message ~/on_in {numbers(on)}", "step"]
        results = arc.compile(spin)(Body(mass, inertia), w, M, k, np.bool_(on))
        w = results[0]
        for topic, value in zip(("rate", "product", "on_out", "count"), results, strict=True):
            expected.append(f"~/{topic} {numbers(value)}")
    found = talk(folder, *lines)
    assert found[:2] == expected[:2]
    for one, other in zip(found[2:], expected[2:], strict=True):
        (topic, *values), (name, *wanted) = one.split(), other.split()
        assert topic == name
        assert [float.fromhex(x).hex() for x in values] == wanted


@pytest.mark.long
@needs("gcc", "g++")
def test_wrong_parameters_change_nothing(folder):
    lines = talk(folder, "step", f"set k {numbers(np.ones(3))}", "step")
    assert "error k must have 2 elements" in lines
    first, second = (line.split()[1:] for line in lines if line.startswith("~/on_out"))
    assert first == second == ["0x1p+0"]


def test_the_files_say_what_ros_asks_for():
    files = project().files
    assert {"package.xml", "CMakeLists.txt", "launch/spin.launch.py", "src/spin_node.cpp"} < set(
        files
    )
    package = ET.fromstring(files["package.xml"])
    assert package.findtext("name") == "spin_node" and package.findtext("license")
    compile(files["launch/spin.launch.py"], "launch", "exec")
    settings = yaml.safe_load(files["config/spin.yaml"])["/**"]["ros__parameters"]
    assert settings == {"rate": 100.0, "k": [0.01, 0.5]}
    body = files["msg/SpinBody.msg"]
    assert "float64 mass  # [kg]\n" in body
    assert "float64[9] inertia  # 3 x 3, row by row [kg m^2]\n" in body
    listed = set(re.findall(r'"(msg/\w+\.msg)"', files["CMakeLists.txt"]))
    assert listed == {name for name in files if name.startswith("msg/")}
    assert all(MESSAGE.fullmatch(name[4:-4]) for name in listed)
    assert "| `~/on_out` | published | `spin_node/msg/SpinOn" in files["README.md"]
    assert "-ffp-contract=off" in files["CMakeLists.txt"]
    # rosidl makes a target with the name of the package: the program must have another.
    assert "add_executable(run_spin " in files["CMakeLists.txt"]
    assert 'executable="run_spin"' in files["launch/spin.launch.py"]


def test_names_that_ros_has_not():
    def glide(v__B, Rate_, V_B):
        return v__B + Rate_ + V_B

    files = arc.codegen(glide, (1.0, 2.0, 3.0), target="ros2", return_names=("Out__",)).files
    for name, text in files.items():
        if name.startswith("msg/"):
            assert MESSAGE.fullmatch(Path(name).stem)
            fields = [line.split("#")[0].split()[1] for line in text.splitlines() if line[0] != "#"]
            assert all(map(FIELD.fullmatch, fields))
    topics = re.findall(r"`~/(\w+)`", files["README.md"])
    assert topics == ["v_b", "rate", "v_b2", "out"]
    with pytest.raises(CodegenError, match="the parameter 'rate' is the node's own: rename it"):
        arc.codegen(
            lambda x, rate: x * rate, (1.0, 2.0), target="ros2", name="f", parameters="rate"
        )
    with pytest.raises(CodegenError, match="a parameter of ROS cannot be inf by default"):
        arc.codegen(
            lambda x, k: x * k,
            (1.0, np.inf),
            target="ros2",
            name="f",
            parameters="k",
            options={"nonfinite": True},
        )


def test_fields_are_keywords_in_no_language():
    """Messages with such fields do not compile in C++, or do not load in Python."""

    def scale(gains):
        return {"out": gains["λ"] * gains["class"]}

    gains = {"λ": 1.0, "class": 2.0, "delete": 3.0, "from": 4.0, "class_value": 5.0}
    files = arc.codegen(scale, (gains,), target="ros2").files
    fields = re.findall(r"^float64 (\w+)", files["msg/ScaleGains.msg"], re.M)
    assert sorted(fields) == [
        *("class_value", "class_value2", "delete_value", "from_value", "lambda_value")
    ]
    assert all(FIELD.fullmatch(name) for name in fields)
    assert "value.lambda = message.lambda_value;" in files["src/scale_node.cpp"]
    assert "value.class_ = message.class_value" in files["src/scale_node.cpp"]
