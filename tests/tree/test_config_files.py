"""YAML 1.2 and JSON files: what words mean, and files that are made to do harm."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archimedes.errors import StructError
from archimedes.tree import config_files
from archimedes.tree.config_files import read_data, write_data

#: The examples of the standard's core schema (YAML 1.2.2, 10.3.2) and what version 1.1 made of.
WORDS = [
    ("010", 10),
    ("0o14", 12),
    ("0x3A", 58),
    ("-19", -19),
    ("+12", 12),
    ("1:30", "1:30"),
    ("190:20:30", "190:20:30"),
    ("190:20:30.15", "190:20:30.15"),
    ("0b101", "0b101"),
    ("1_000", "1_000"),
    ("1_000.5", "1_000.5"),
    ("yes", "yes"),
    ("No", "No"),
    ("on", "on"),
    ("OFF", "OFF"),
    ("y", "y"),
    ("true", True),
    ("False", False),
    ("TRUE", True),
    ("tRUE", "tRUE"),
    ("null", None),
    ("~", None),
    ("", None),
    ("nuLL", "nuLL"),
    ("0.", 0.0),
    (".5", 0.5),
    ("-0.0", -0.0),
    ("12e03", 12e3),
    ("-2E+05", -2e5),
    ("1e-6", 1e-6),
    ("685.230_15", "685.230_15"),
    (".inf", float("inf")),
    ("-.Inf", float("-inf")),
    ("2024-01-01", "2024-01-01"),
    ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
    ("=", "="),
    ("0o8", "0o8"),
    ("0x", "0x"),
    ("1e", "1e"),
    (".", "."),
    ("-", [None]),
]


@pytest.fixture
def written(tmp_path):
    def write(text: str, suffix: str = ".yaml"):
        path = tmp_path / f"file{suffix}"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("text, value", WORDS)
def test_words_mean_what_yaml_1_2_says(written, text, value):
    found = read_data(written(f"x: {text}\n" if text != "-" else "x:\n- \n"))["x"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("text", [w for w, v in WORDS if isinstance(v, str)] + ["1e5", "0o17"])
def test_text_that_looks_like_a_number_stays_text(tmp_path, text):
    path = tmp_path / "x.yaml"
    write_data({"x": text, text: [text]}, path)
    assert read_data(path) == {"x": text, text: [text]}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
    | st.text("0123456789.eEoxX_:+-~yesnoffalsetruenullinf", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab01:", max_size=3), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(values)
def test_what_is_written_is_read(data):
    assert config_files.parse_yaml(config_files.print_yaml(data)) == data


LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{k + 1}: &a{k + 1} [{', '.join([f'*a{k}'] * 9)}]\n" for k in range(10)
)
MERGES = "a0: &a0 {k0: 1}\n" + "".join(
    f"a{k + 1}: &a{k + 1}\n  <<: [{', '.join([f'*a{k}'] * 9)}]\n  k{k + 1}: 1\n" for k in range(10)
)
#: Files made to do harm, and the words of the refusal.
HOSTILE = {
    "billion laughs": (
        LAUGHS,
        r"its aliases \(\*name\) stand for [\d,]+ values, more than 1,000,000",
    ),
    "billion merges": (MERGES, "its aliases"),
    "alias to itself": ("a: &a [*a]\n", "refers to a node that contains it"),
    "alias to itself by merging": ("a: &a\n  <<: *a\n", "refers to a node that contains it"),
    "unknown alias": ("a: *b\n", "not valid YAML"),
    "nested": ("[" * 500 + "]" * 500, "nested too deeply"),
    "nested maps": ("".join(" " * k + f"k{k}:\n" for k in range(700)), "nested too deeply"),
    "python object": ("a: !!python/object/apply:os.system ['echo no']\n", "not valid YAML"),
    "own tag": ("a: !shell rm\n", "not valid YAML"),
    "long number": ("a: " + "9" * 5000 + "\n", "integer string conversion"),
    "wrong number": ("a: !!int 'abc'\n", "invalid literal"),
    "two documents": ("a: 1\n---\nb: 2\n", "not valid YAML"),
    "control character": ("a: \x07\n", "not valid YAML"),
    "key twice": ("a: 1\na: 2\n", "'a' is given twice"),
    "key twice by value": ("010: 1\n10: 2\n", "10 is given twice"),
    "list as a key": ("? [1, 2]\n: 3\n", "not valid YAML|a key must be"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused_at_once(written, name):
    text, words = HOSTILE[name]
    path = written(text)
    begin = time.process_time()
    with pytest.raises(StructError, match=words) as caught:
        read_data(path)
    assert str(path) in str(caught.value)
    assert time.process_time() - begin < 5.0


def test_the_bomb_is_small_and_the_limit_leaves_room(written):
    assert len(LAUGHS) < 1000
    text = "a: &a [1, 2, 3]\nb:\n" + "- *a\n" * 1000
    assert sum(map(sum, read_data(written(text))["b"])) == 6000
    assert read_data(written("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n"))["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_files_that_are_too_long(written, monkeypatch, suffix):
    monkeypatch.setattr(config_files, "LIMIT", 2**20)
    with pytest.raises(StructError, match=r"has more than 1 MiB.*file of their own"):
        read_data(written('"' + "x" * 2**20 + '"', suffix))
    assert read_data(written('"' + "x" * (2**20 - 2) + '"', suffix)) == "x" * (2**20 - 2)


@pytest.mark.parametrize(
    "text, words",
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1, "a": 2}', "'a' is given twice"),
        ('{"a": ' + "9" * 5000 + "}", "integer string conversion"),
        ('{"a": 1,}', "not valid JSON"),
        ("", "not valid JSON"),
        ("\ufeff{}", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
    ],
)
def test_hostile_json_is_refused(written, text, words):
    with pytest.raises(StructError, match=words):
        read_data(written(text, ".json"))


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(StructError, match="is not UTF-8 text"):
        read_data(path)
    path.write_bytes(b"a: 1\x00\n")
    with pytest.raises(StructError, match="not valid YAML"):
        read_data(path)


def test_json_keeps_its_numbers(tmp_path):
    path = tmp_path / "x.json"
    data = {"a": 1, "b": 1.5, "c": 2**60, "d": None, "e": [True, "010"]}
    write_data(data, path)
    assert read_data(path) == data == json.loads(path.read_text())
