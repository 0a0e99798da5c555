"""The page: one file, nothing fetched, names are text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from archimedes.simulate.trajectory.exports import MissingExtra
from archimedes.viewer import Simulator, browser, view
from archimedes.viewer.html import Block, pack
from tests.viewer.scenes import HOSTILE, falling


class Elements(HTMLParser):
    """Collects the elements of a page and the text of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.scripts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and self.scripts:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def text():
    return view(falling(HOSTILE, HOSTILE, HOSTILE)).html()


def test_names_units_and_titles_are_data_and_never_markup(text):
    plain = Elements(view(falling()).html())
    hostile = Elements(text)
    assert hostile.tags == plain.tags and "img" not in hostile.tags
    assert not [name for name, _ in hostile.attributes if name.startswith("on")]
    found = json.loads(hostile.scripts[0])
    assert found["title"] == found["bodies"][0]["name"] == found["charts"][0]["units"] == HOSTILE


def test_the_page_allows_its_own_script_and_no_request(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|innerHTML|eval)\b", script)


def test_in_a_notebook_it_is_a_frame_without_rights():
    shown = view(falling(HOSTILE))._repr_html_()
    found = Elements(shown)
    assert found.tags == ["iframe"]
    inner = dict(found.attributes)
    assert inner["sandbox"] == "allow-scripts"
    assert inner["srcdoc"] == view(falling(HOSTILE)).html()
    assert html.unescape(shown).count("<script>") == 1


def test_numbers_read_back():
    found, data = pack(falling())
    raw = base64.b64decode(data)
    kinds = {"f4": "<f4", "f8": "<f8", "i2": "<i2"}

    def read(place):
        return np.frombuffer(raw, kinds[place[0]], place[2], place[1])

    scene = falling()
    body, ghosts = found["bodies"][0], found["ghosts"][0]
    back = read(body["position"]).reshape(-1, 3) + body["origin"]
    np.testing.assert_allclose(back, scene.bodies[0].position, atol=1e-5)
    np.testing.assert_array_equal(read(body["t"]), scene.bodies[0].t)
    places = read(ghosts["position"]).reshape(20, 41, 3) * ghosts["unit"] + ghosts["origin"]
    np.testing.assert_allclose(places, scene.ghosts[0].position, atol=ghosts["unit"])


def test_numbers_start_where_their_kind_may():
    block = Block()
    block.add(np.zeros(3), "i1")
    assert block.add(np.zeros(2), "f8") == ["f8", 8, 2]
    assert len(base64.b64decode(block.text())) == 24


def test_save_writes_one_file(tmp_path):
    path = view(falling()).save(tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == [path] and path.stat().st_size < 200_000


def test_without_a_browser_ffmpeg_or_viser_it_says_what_to_install(monkeypatch, tmp_path):
    shown = view(falling())
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    with pytest.raises(browser.BrowserError, match="apt install chromium"):
        shown.screenshot(tmp_path / "a.png")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(browser.BrowserError, match="apt install ffmpeg"):
        shown.video(tmp_path / "a.mp4")
    monkeypatch.setitem(__import__("sys").modules, "viser", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[viewer\]"):
        shown.live()


def test_a_page_with_its_model_allows_two_scripts_and_webassembly():
    fall = lambda t, x, p: {HOSTILE: -p[HOSTILE] * x[HOSTILE]}
    text = view(
        {HOSTILE: Simulator(fall, {HOSTILE: 1.0}, parameters={HOSTILE: 1.0})},
        title=HOSTILE, interactive=True,
    ).html()  # fmt: skip
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    scripts = re.findall(r'<script(?: id="runtime")?>(.*?)</script>', text, re.DOTALL)
    assert len(scripts) == 2 and len(Elements(text).scripts) == 4
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
        assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|innerHTML|eval|import)\(", script)
    assert policy.startswith("default-src 'none'") and "unsafe-inline" not in policy
    assert "'wasm-unsafe-eval'; worker-src blob:;" in policy and "'unsafe-eval'" not in policy
    assert "img" not in Elements(text).tags and not re.search(r"https?://(?!www\.w3\.org)", text)
    assert json.loads(Elements(text).scripts[0])["live"]["models"][0]["name"] == HOSTILE
