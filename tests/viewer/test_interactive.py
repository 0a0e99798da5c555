"""Interactive pages in a real browser: bits, sliders, keys, drag, copies, what may go wrong."""

from __future__ import annotations

import csv
import io
import json
import time
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest

import archimedes as arc
from archimedes.demos import DEMOS
from archimedes.viewer import Control, Explorer, Simulator, view
from archimedes.viewer.browser import Browser
from tests.embedded.toolchain import needs
from tests.viewer.scenes import HOSTILE
from tests.viewer.test_browser import complaints
from tests.viewer.test_browser import requests_that_leave as requests

pytestmark = [needs("chromium"), pytest.mark.long]
LIVE = [name for name, demo in DEMOS.items() if demo.live]


@pytest.fixture(scope="module")
def browser():
    with Browser(1280, 720) as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the live page of a demonstration and its models, made once."""
    folder, made = tmp_path_factory.mktemp("live"), {}

    def of(name):
        if name not in made:
            shown = import_module(f"archimedes.demos.{DEMOS[name].live}").page()
            made[name] = shown.save(folder / f"{name}.html"), shown.interactive.simulators
        return made[name]

    return of


def requests_that_leave(browser):
    """Return requests for anything but the page and the worker that it starts."""
    return [url for url in requests(browser) if not url.startswith("blob:null/")]


def opened(browser, page, fragment="", before=""):
    browser.events.clear()
    browser.resize(1280, 720)
    added = None
    if before:
        script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        added = script["identifier"]
    try:
        # An address that differs in its fragment alone would not be loaded anew.
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=page.resolve().as_uri() + fragment)
        browser.wait("document.readyState === 'complete' && window.viewer !== undefined")
    finally:
        if added is not None:
            browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added)


def loaded(browser, page, fragment="", before=""):
    opened(browser, page, fragment, before)
    browser.wait("viewer.live.loaded()")


@contextmanager
def pressed(browser, key):
    text = {"text": key} if len(key) == 1 else {}
    browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
    yield
    browser.call("Input.dispatchKeyEvent", type="keyUp", key=key)


def press(browser, key):
    with pressed(browser, key):
        pass


def mouse(browser, kind, x, y, buttons=1):
    browser.call(
        "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons,
        clickCount=1,
    )  # fmt: skip


def drag(browser, body, dx, dy, hold=0.6):
    """Drag a body by the mouse; return where it was on the screen, and where it is held."""
    x, y = browser.evaluate(f"viewer.live.place({json.dumps(body)})")
    mouse(browser, "mousePressed", x, y)
    assert browser.evaluate("viewer.live.pulling()"), f"nothing to hold at {x}, {y}"
    for part in np.linspace(0.0, 1.0, 9):
        mouse(browser, "mouseMoved", x + part * dx, y + part * dy)
    time.sleep(hold)
    held = browser.evaluate(f"viewer.live.place({json.dumps(body)})")
    mouse(browser, "mouseReleased", x + dx, y + dy, 0)
    assert not browser.evaluate("viewer.live.pulling()")
    return (x, y), held


def slide(browser, label, value):
    """Move a slider as a person does: it gets a value and says so."""
    browser.evaluate(
        f"(() => {{ const s = document.querySelector('input[aria-label={json.dumps(label)}]');"
        f"s.value = {value}; s.dispatchEvent(new Event('input')); }})()"
    )


def swing(t, x, u, p):
    return np.stack([x[1], u["torque"] - p["gravity"] * np.sin(x[0])])


def pendulum(**options):
    given = {"inputs": {"torque": 0.0}, "parameters": {"gravity": 9.81}, **options}
    return view(Simulator(swing, np.array([1.0, 0.0]), **given), interactive=True, title="Pendulum")


@pytest.fixture
def swinging(browser, tmp_path):
    loaded(browser, pendulum().save(tmp_path / "pendulum.html"))
    return browser


# ---- the demonstrations -------------------------------------------------------------------------


def state_of(browser, model=0):
    # As bytes: JSON knows no negative zero, nor nan.
    row = f"new Uint8Array(Float64Array.from(viewer.live.state({model})).buffer)"
    return np.array(browser.evaluate(f"Array.from({row})"), dtype=np.uint8).view(np.float64)


STEPS = {"quadruped": 4, "panda": 200}


@pytest.mark.parametrize("name", LIVE)
def test_the_page_reaches_the_state_of_python_bit_for_bit(browser, pages, name):
    page, models = pages(name)
    loaded(browser, page)
    browser.evaluate("viewer.live.reset()")
    count = STEPS.get(name, 400)
    browser.evaluate(f"viewer.live.step({count})")
    for k, model in enumerate(models.values()):
        s, c = model.rows()
        step = arc.compile(model.step, backend="interpreter" if name == "quadruped" else "auto")
        for j in range(count):
            s, fired = step(j * model.dt, s, c)
            if fired.any():
                break
        found, wanted = state_of(browser, k), np.asarray(s)
        off = np.flatnonzero(found.view(np.int64) != wanted.view(np.int64))
        assert {model.state_names[j]: (found[j], wanted[j]) for j in off} == {}
    assert complaints(browser) == [] and requests_that_leave(browser) == []


def test_fly_the_f16(browser, pages):
    loaded(browser, pages("f16")[0])
    press(browser, "p")
    assert browser.evaluate("viewer.live.get('autopilot')") == 0
    with pressed(browser, "ArrowRight"):
        browser.wait("viewer.live.state()[4] > 0.1")  # it rolls to the right: q_x grows
    browser.wait("Math.abs(viewer.live.get('aileron')) < 1e-12")  # the stick comes back
    before = browser.evaluate("viewer.live.count()")
    press(browser, "2")
    browser.wait(f"viewer.live.count() > {before + 250}")
    assert browser.evaluate("viewer.live.get('dutch_roll')") == 0
    with pressed(browser, "x"):
        browser.wait("viewer.live.get('throttle') > 0.25")
    browser.wait("viewer.live.copies().poses === 100")
    assert browser.evaluate("viewer.live.copies().kind") == "worker"
    assert complaints(browser) == []


def test_land_the_rocket(browser, pages):
    loaded(browser, pages("landing")[0])
    browser.evaluate("viewer.live.end()")
    browser.wait("viewer.live.notice() !== ''")
    assert browser.evaluate("viewer.live.notice()").startswith("touchdown at 23.7")
    press(browser, "r")
    press(browser, "g")
    browser.evaluate("viewer.live.set('throttle', 0)")
    browser.evaluate("viewer.live.end()")
    browser.wait("viewer.live.notice() !== ''")
    assert browser.evaluate("viewer.live.notice()").startswith("crash: too fast")
    assert complaints(browser) == []


def test_balance_the_pole(browser, pages):
    loaded(browser, pages("cartpole")[0])
    assert browser.evaluate("[viewer.state().playing, viewer.live.count()]") == [False, 0]
    press(browser, "k")  # it waits for a key or a drag
    assert browser.evaluate("viewer.state().playing")
    drag(browser, "you: cart", 120, 0, 0.3)
    assert browser.evaluate("viewer.live.state(0)[0]") > 0.02  # the cart has followed the mouse
    browser.wait("viewer.live.notice().startsWith('you: it fell over')")
    assert browser.evaluate("viewer.state().playing")  # the regulator goes on
    browser.wait("Math.abs(viewer.live.state(1)[1]) < 0.02")
    slide(browser, "gain of the regulator", 2.0)
    assert browser.evaluate("viewer.live.fragment()") == "gain=2"
    assert complaints(browser) == []


def test_tumble_and_detumble(browser, pages):
    rate = "Math.hypot(...viewer.live.state().slice(10, 13))"
    loaded(browser, pages("satellite")[0])
    for key in "123":
        press(browser, key)
    browser.wait(f"{rate} > 0.2")
    drag(browser, "satellite", 30, 25, 0.2)
    press(browser, "w")
    browser.evaluate("viewer.live.end()")
    browser.wait(f"{rate} < 1e-3")
    assert complaints(browser) == []


def test_push_the_quadruped(browser, pages):
    loaded(browser, pages("quadruped")[0])
    press(browser, "ArrowLeft")
    browser.wait("viewer.live.count() > 100")
    drag(browser, "robot: trunk", 25, 0, 0.4)
    browser.wait("viewer.live.count() > 1500", 90)
    assert browser.evaluate("viewer.live.state()[2]") > 0.35  # it stands
    slide(browser, "friction of the ground", 0.05)
    assert browser.evaluate("viewer.live.get('friction')") == pytest.approx(0.05)
    assert complaints(browser) == []


def test_drag_the_hand_of_the_panda(browser, pages):
    loaded(browser, pages("panda")[0])
    (x, y), (to_x, to_y) = drag(browser, "panda: link7", 90, -70, 1.0)
    assert to_x - x > 20 and to_y - y < -15
    browser.wait(f"Math.abs(viewer.live.place('panda: link7')[0] - {x}) < 3")  # it comes back
    press(browser, "h")
    assert browser.evaluate("viewer.live.get('hold')") == 0
    assert complaints(browser) == []


@pytest.mark.parametrize("name", LIVE)
def test_pictures_per_second_and_size(browser, pages, name, capsys):
    page, _ = pages(name)
    assert page.stat().st_size < 2_000_000
    loaded(browser, page)
    browser.evaluate("viewer.play(true)")
    browser.evaluate("viewer.rate(1)")  # the first pictures compile shaders
    rate = browser.evaluate("viewer.rate(1.5)")
    quality = browser.evaluate("viewer.state().quality")
    with capsys.disabled():
        size = page.stat().st_size / 1e3
        told = f"{rate:.0f} pictures/s at quality {quality:g}, {size:.0f} kB"
        print(f"\n  {name}, 1280 x 720, by software: {told}")
    assert rate > 1.0  # a machine under load says nothing about a quiet one
    browser.resize(390, 844, mobile=True)
    time.sleep(0.3)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    boxes = browser.evaluate(
        "['view', 'play', 'reset', 'knobs', 'speed'].map((id) => {"
        "const r = document.getElementById(id).getBoundingClientRect();"
        "return [r.left, r.top, r.right, r.bottom]; })"
    )
    for left, top, right, bottom in boxes:
        assert left >= 0 and top >= 0 and right <= 391 and bottom <= 845 and right - left > 30
    assert complaints(browser) == []


# ---- the controls of a page ---------------------------------------------------------------------


def test_pause_step_reset_and_slow_motion(swinging):
    click = "document.getElementById('{}').click()".format
    swinging.wait("viewer.live.count() > 20")
    swinging.evaluate(click("play"))
    held = swinging.evaluate("viewer.live.count()")
    time.sleep(0.2)
    assert swinging.evaluate("viewer.live.count()") == held
    swinging.evaluate(click("step"))
    assert swinging.evaluate("viewer.live.count()") == held + 1
    swinging.evaluate(click("reset"))
    swinging.evaluate(click("play"))
    swinging.evaluate(
        "(() => { const s = document.getElementById('speed'); s.value = '0.1';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    first = swinging.evaluate("viewer.live.count()")
    swinging.evaluate(click("play"))
    time.sleep(1.0)
    assert 3 <= swinging.evaluate("viewer.live.count()") - first <= 40  # 100 at full speed
    assert complaints(swinging) == []


def test_run_to_the_end_is_adaptive(swinging):
    from scipy.integrate import solve_ivp

    swinging.evaluate("viewer.live.reset()")
    swinging.evaluate("viewer.live.set('torque', 1)")
    swinging.evaluate("viewer.live.end()")
    swinging.wait("viewer.live.count() === 6000 && !viewer.state().playing")
    rhs = lambda t, x: [x[1], 1.0 - 9.81 * np.sin(x[0])]
    exact = solve_ivp(rhs, (0, 60), [1.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(state_of(swinging), exact, atol=1e-5)


def test_what_is_recorded_is_what_was_reached(swinging):
    swinging.evaluate("viewer.live.reset(); viewer.live.record(true)")
    swinging.evaluate("viewer.live.step(50)")
    rows = list(csv.reader(io.StringIO(swinging.evaluate("viewer.live.csv()"))))
    assert rows[0] == ["t", "x[0]", "x[1]", "torque", "gravity"] and len(rows) == 51
    last = np.array(rows[-1], dtype=float)
    assert last[0] == 0.5 and last[1:3].tobytes() == pendulum_state(50).tobytes()


def pendulum_state(steps, **values):
    model = Simulator(
        swing, np.array([1.0, 0.0]), inputs={"torque": 0.0}, parameters={"gravity": 9.81}
    )
    return np.asarray(model.run(steps, **values))


def test_a_link_keeps_the_sliders(browser, tmp_path):
    page = pendulum().save(tmp_path / "a.html")
    loaded(browser, page, "#gravity=4.5&torque=nan&nothing=3&%E0%A4%A=1&gravity")
    assert browser.evaluate("viewer.live.get('gravity')") == 4.5
    assert browser.evaluate("viewer.live.get('torque')") == 0
    slide(browser, "torque", 0.25)
    browser.wait("location.hash === '#torque=0.25&gravity=4.5'")
    browser.evaluate("viewer.live.reset(); viewer.live.step(40)")
    assert state_of(browser).tobytes() == pendulum_state(40, torque=0.25, gravity=4.5).tobytes()
    browser.evaluate("document.getElementById('defaults').click()")
    assert browser.evaluate("viewer.live.get('gravity')") == 9.81
    loaded(browser, page, "#gravity=1e9")
    assert browser.evaluate("viewer.live.get('gravity')") == 19.62  # no farther than the slider
    assert complaints(browser) == []


def test_a_gamepad_moves_the_stick(browser, tmp_path):
    stick = Control(-1.0, 1.0, axis=~1, returns=True)
    page = pendulum(controls={"torque": stick}).save(tmp_path / "a.html")
    fake = "window.pad = { axes: [0, 0], buttons: [] }; navigator.getGamepads = () => [null, pad];"
    loaded(browser, page, before=fake)
    browser.evaluate("pad.axes[1] = -0.5; 0")
    browser.wait("viewer.live.get('torque') === 0.5")
    browser.evaluate("pad.axes[1] = 0.01; 0")
    browser.wait("viewer.live.get('torque') === 0")


def test_copies_are_those_of_python(browser, tmp_path):
    gravity = np.array([3.0, 9.81, 12.0])
    shown = falling(copies={"parameters": {"gravity": gravity}})
    loaded(browser, shown.save(tmp_path / "a.html"))
    browser.evaluate("viewer.live.reset(); viewer.live.step(30)")
    browser.wait("viewer.live.copies().k === 30 && !viewer.live.copies().waiting")
    assert browser.evaluate("viewer.live.copies()") == {
        "kind": "worker", "k": 30, "waiting": False, "poses": 3
    }  # fmt: skip
    seen = np.array(browser.evaluate("viewer.live.copyPoses()")).reshape(3, 7)
    (model,) = shown.interactive.simulators.values()
    heights = [-float(model.run(30, gravity=g).pos[2]) for g in gravity]
    np.testing.assert_allclose(seen[:, 2], heights, atol=1e-5)  # drawn in single precision
    assert complaints(browser) == []


def test_without_a_worker_copies_run_on_the_page(browser, tmp_path):
    shown = falling(copies={"parameters": {"gravity": np.array([3.0, 12.0])}})
    loaded(browser, shown.save(tmp_path / "a.html"), before="delete window.Worker;")
    browser.wait("viewer.live.copies().kind === 'page' && viewer.live.copies().poses === 2")
    assert complaints(browser) == []


def falling(name="ball", **options):
    """Return the page of a ball that falls: a state with pos and att is drawn as a block."""
    from archimedes.spatial import Quaternion, RigidBody

    def fall(t, x, p):
        down = np.stack([0.0 * p["gravity"], 0.0 * p["gravity"], p["gravity"]])
        still = 0.0 * x.v_B
        return RigidBody.State(x.v_B, Quaternion(0.0 * x.att.array), down, still)

    zero = np.zeros(3)
    x0 = RigidBody.State(np.array([0.0, 0.0, -50.0]), Quaternion.identity(), zero, zero)
    model = Simulator(fall, x0, parameters={"gravity": 9.81}, **options)
    return view({name: model}, interactive=True)


# ---- what may go wrong --------------------------------------------------------------------------


def test_a_model_that_diverges_says_so_and_stops(browser, tmp_path):
    blow = lambda t, x, p: p["gain"] * x * x
    shown = view(Simulator(blow, np.ones(1), parameters={"gain": 40.0}), interactive=True)
    loaded(browser, shown.save(tmp_path / "a.html"))
    browser.wait("viewer.live.notice() !== ''")
    told = browser.evaluate("document.getElementById('trouble').textContent")
    assert "the model diverged at" in told and "x[0] is " in told and "Reset" in told
    assert browser.evaluate("viewer.state().playing") is False
    browser.evaluate("viewer.live.set('gain', 0)")
    browser.evaluate("document.getElementById('reset').click()")
    browser.wait("viewer.live.notice() === '' && viewer.live.count() > 5")
    assert complaints(browser) == []


def test_states_may_start_at_infinity_or_nan(browser, tmp_path):
    least = lambda t, x: {"least": np.minimum(x["least"], np.sin(t)), "n": x["n"]}
    inf = Simulator(least, {"least": np.inf, "n": 2**53 + 1}, discrete=True)
    loaded(browser, view(inf, interactive=True).save(tmp_path / "a.html"))
    browser.wait("viewer.live.count() > 3")
    found = inf.state.unpack(state_of(browser))[0]
    assert found["least"] == 0.0 and found["n"] == 2**53 + 1
    nan = Simulator(lambda t, x: -x, np.array([np.nan]))
    loaded(browser, view(nan, interactive=True).save(tmp_path / "b.html"))
    browser.wait("viewer.live.notice().includes('diverged at 0.010 s: x[0] is NaN')")
    assert complaints(browser) == []


def test_nan_inputs_are_refused(swinging):
    for value in ("NaN", "Infinity", "undefined", "'1'"):
        swinging.evaluate(f"viewer.live.set('torque', {value})")
        assert swinging.evaluate("viewer.live.get('torque')") in (0, 1)
    swinging.evaluate("viewer.live.step(5)")
    assert np.isfinite(state_of(swinging)).all()


@pytest.mark.parametrize("name", [HOSTILE, "__proto__", "constructor", 'a,b"c\n=1+1'])
def test_hostile_names_stay_text(browser, tmp_path, name):
    sink = arc.Event(lambda t, x, u: x[name] - 0.9, terminal=True)
    model = Simulator(
        lambda t, x, u: {name: u[name] - x[name]}, {name: 1.0}, inputs={name: 0.0},
        events={name: sink}, controls={name: Control(label=name, units=name)},
    )  # fmt: skip
    shown = view({name: model}, title=name, note=name, interactive=True)
    loaded(browser, shown.save(tmp_path / "a.html"))
    browser.wait("viewer.live.notice() !== ''")
    assert browser.evaluate("viewer.live.notice()").startswith(name)
    assert browser.evaluate("viewer.live.names()") == [name]
    assert browser.evaluate("document.querySelectorAll('img, b img').length") == 0
    label = browser.evaluate("document.querySelector('.knob span span').textContent")
    assert label == name
    browser.evaluate("viewer.live.reset(); viewer.live.record(true); viewer.live.step(3)")
    rows = list(csv.reader(io.StringIO(browser.evaluate("viewer.live.csv()"))))
    assert rows[0][-1] == name and len(rows) == 4
    browser.evaluate("({}).polluted === undefined")
    assert complaints(browser) == [] and requests_that_leave(browser) == []


def test_without_webgl_there_are_charts(browser, tmp_path):
    refuse = (
        "{ const kinds = HTMLCanvasElement.prototype, own = kinds.getContext;"
        "kinds.getContext = function (kind, ...more) {"
        "return kind === 'webgl2' ? null : own.call(this, kind, ...more); }; }"
    )
    loaded(browser, falling().save(tmp_path / "a.html"), before=refuse)
    browser.wait("viewer.live.count() > 20")
    assert "needs WebGL 2" in browser.evaluate("document.getElementById('trouble').textContent")
    assert browser.evaluate("document.querySelectorAll('.chart').length") > 1
    told = float(browser.evaluate("document.querySelector('.chart h2 b').textContent"))
    assert told < 50.0
    assert complaints(browser) == []


def test_without_webassembly_it_says_so(browser, tmp_path):
    opened(browser, falling().save(tmp_path / "a.html"), before="delete window.WebAssembly;")
    browser.wait("!document.getElementById('trouble').hidden")
    assert "WebAssembly" in browser.evaluate("document.getElementById('trouble').textContent")
    assert browser.evaluate("viewer.state().pictures") > 0
    assert complaints(browser) == []


def test_the_policy_allows_its_own_scripts_alone(browser, tmp_path):
    loaded(browser, falling().save(tmp_path / "a.html"))
    code = (
        "(() => { const s = document.createElement('script'); s.textContent = 'window.owned = 1';"
        "document.body.appendChild(s); try { eval('window.owned = 2'); } catch {}"
        "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; })()"
    )
    browser.call("Runtime.evaluate", expression=code, allowUnsafeEvalBlockedByCSP=False)
    assert browser.evaluate("window.owned") is None
    assert any("Content Security Policy" in text for text in complaints(browser))


def test_in_a_notebook_frame(browser, tmp_path):
    frame = falling(copies={"parameters": {"gravity": np.ones(3)}})._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body>{frame}</body>", encoding="utf-8")
    browser.events.clear()
    browser.open(path)
    time.sleep(1.5)
    assert complaints(browser) == []


def test_a_slow_machine_draws_less_and_computes_all(browser, tmp_path):
    loaded(browser, falling().save(tmp_path / "a.html"))
    browser.call("Emulation.setCPUThrottlingRate", rate=20)
    try:
        browser.evaluate("viewer.live.reset(); viewer.play(true)")
        start = time.monotonic()
        browser.wait("viewer.live.count() >= 100", 30)
        assert time.monotonic() - start < 10.0  # one second of the model, not twenty
    finally:
        browser.call("Emulation.setCPUThrottlingRate", rate=1)


def test_a_finger_drags_too(browser, pages):
    loaded(browser, pages("panda")[0])
    browser.resize(390, 844, mobile=True)
    x, y = browser.evaluate("viewer.live.place('panda: link7')")
    touch = "Input.dispatchTouchEvent"
    browser.call(touch, type="touchStart", touchPoints=[{"x": x, "y": y}])
    assert browser.evaluate("viewer.live.pulling()")
    browser.call(touch, type="touchMove", touchPoints=[{"x": x - 40, "y": y - 60}])
    browser.wait(f"viewer.live.place('panda: link7')[1] < {y - 10}")
    browser.call(touch, type="touchEnd", touchPoints=[])
    assert not browser.evaluate("viewer.live.pulling()")
    assert complaints(browser) == []


def test_curves_follow_the_sliders_bit_for_bit(browser, tmp_path):
    t = np.linspace(0.0, 5.0, 51)

    def response(p):
        fall = lambda t, x: -p["rate"] * x
        x = arc.odeint(fall, (0.0, 5.0), np.ones(1), t_eval=t)
        return t, {"left": x[0], "more": np.stack([x[0], x[0] ** 2], axis=1)}

    curves = Explorer(response, {"rate": 0.5}, controls={"rate": (0.1, 3.0)})
    loaded(browser, view(curves, interactive=True).save(tmp_path / "a.html"), "#rate=1.5")
    told = "Number(document.querySelector('.chart h2 b').textContent)"
    browser.wait(f"Math.abs({told} - {np.exp(-7.5)}) < 1e-5")
    slide(browser, "rate", 0.25)
    browser.wait(f"Math.abs({told} - {np.exp(-1.25):.3f}) < 1e-3")
    assert not browser.evaluate("viewer.state().playing")
    row = "new Uint8Array(Float64Array.from(viewer.live.curves()).buffer)"
    found = np.array(browser.evaluate(f"Array.from({row})"), dtype=np.uint8).view(np.float64)
    wanted = arc.compile(curves.curves)(np.array([0.25]))
    assert found.tobytes() == np.asarray(wanted).tobytes() and len(found) == 51 * 4
    assert complaints(browser) == []
