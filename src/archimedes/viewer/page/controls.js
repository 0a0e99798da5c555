// Time, play, speed, camera, what is shown; mouse, touch and keys.
const $ = (id) => document.getElementById(id);
const [START, END] = scene.span;
let now = START, playing = false, speed = 1, stale = true, quality = 1;
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const MODES = { chase: "behind it", follow: "beside it", overview: "overview", free: "free" };
const ICONS = { play: "M3 1.5v13l11-6.5z", pause: "M3 1.5h3.6v13H3zM9.4 1.5H13v13H9.4z" };

function go(t) { now = clamp(t, START, END); stale = true; }
function setPlaying(on) {
  if (on && now >= END && !scene.live) now = START;
  playing = on && (END > START || Boolean(scene.live));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 16 16");
  path.setAttribute("d", ICONS[playing ? "pause" : "play"]);
  svg.appendChild(path);
  $("play").replaceChildren(svg);
  $("play").setAttribute("aria-label", playing ? "pause" : "play");
  stale = true;
}
function setTheme(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  stale = true;
}
function makeControls() {
  $("title").textContent = scene.title;
  $("note").textContent = scene.note;
  if (END <= START && !scene.live) for (const id of ["play", "clock", "track", "pace"]) $(id).hidden = true;
  if (scene.earth) $("stage").dataset.sky = "dark";
  const range = $("time");
  range.min = START; range.max = END;
  range.step = (END - START) / 2000 || 1;
  range.addEventListener("input", () => { setPlaying(false); go(parseFloat(range.value)); });
  $("play").addEventListener("click", () => setPlaying(!playing));
  for (const mark of scene.marks) {
    const tick = element("i", $("marks"));
    tick.style.left = (100 * (mark.t - START)) / (END - START || 1) + "%";
    tick.title = `${mark.name}, ${short(mark.t)} s`;
  }
  const wanted = scene.live ? 1 : (END - START) / 40;
  const own = SPEEDS.find((s) => s >= wanted && s >= 1) || SPEEDS[SPEEDS.length - 1];
  for (const s of SPEEDS.filter((s) => s <= Math.max(10, own * 5) && s >= own / 50)) {
    const option = element("option", $("speed"), s + " ×");
    option.value = s;
    option.selected = s === own;
  }
  speed = own;
  $("speed").addEventListener("change", (event) => { speed = parseFloat(event.target.value); });
  for (const mode in MODES) element("option", $("camera"), MODES[mode]).value = mode;
  $("camera").value = camera.mode;
  $("camera").addEventListener("change", (event) => { setMode(event.target.value); stale = true; });
  makeOptions();
  for (const arrow of scene.arrows) {
    const row = element("div", $("legend"));
    element("i", row).style.background = arrow.color;
    element("span", row, arrow.name);
    arrow.readout = element("span", row);
  }
  if (scene.ghosts.length) {
    for (const each of scene.ghosts) {
      const row = element("div", $("legend"));
      element("i", row).style.background = each.color;
      element("span", row, each.name);
    }
  }
}
// The sliders of a model stand beside its charts, and stay.
function showCharts() {
  if (!scene.live) $("charts").hidden = !show.charts;
  else for (const chart of document.querySelectorAll(".chart")) chart.hidden = !show.charts;
}
function makeOptions() {
  const box = $("options");
  const NAMES = { trail: "trail", ghosts: "ghosts", arrows: "vectors", frames: "frames", labels: "names", charts: "charts", shadow: "shadow" };
  const there = { ghosts: scene.ghosts.length, arrows: scene.arrows.length, charts: scene.charts.length, shadow: scene.ground, labels: scene.bodies.some((b) => b.label) };
  for (const name in NAMES) {
    if (name in there && !there[name]) continue;
    const label = element("label", box), tick = element("input", label);
    tick.type = "checkbox"; tick.checked = show[name]; tick.id = "show-" + name;
    label.append(NAMES[name]);
    tick.addEventListener("change", () => {
      show[name] = tick.checked;
      showCharts();
      $("legend").hidden = !(show.arrows || show.ghosts);
      stale = true;
    });
  }
  element("hr", box);
  const dark = element("button", box, "light or dark");
  dark.id = "theme";
  dark.addEventListener("click", () => setTheme(theme === "dark" ? "light" : "dark"));
  $("menu").addEventListener("click", () => {
    box.hidden = !box.hidden;
    $("menu").setAttribute("aria-expanded", String(!box.hidden));
  });
}
// One finger or the left button turns, two fingers or the wheel zoom, the right button shifts.
function makePointer() {
  const fingers = new Map();
  let gap = 0;
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (hooks.grab && !fingers.size && hooks.grab(event)) return;
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    gap = 0;
  });
  const lift = (event) => { if (hooks.release) hooks.release(event); fingers.delete(event.pointerId); gap = 0; };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointermove", (event) => {
    if (hooks.drag && hooks.drag(event)) return;
    const old = fingers.get(event.pointerId);
    if (!old) return;
    const dx = event.clientX - old[0], dy = event.clientY - old[1];
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    if (fingers.size === 2) {
      const [a, b] = [...fingers.values()], wide = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (gap) zoom(gap / wide);
      gap = wide;
    } else if (event.buttons & 2 || event.shiftKey) {
      shift(dx, dy);
    } else {
      camera.azimuth -= dx * 0.006;
      camera.elevation = clamp(camera.elevation + dy * 0.006, -1.5, 1.5);
    }
    stale = true;
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(clamp(event.deltaY, -200, 200) * 0.0014));
  }, { passive: false });
  makeKeys();
}
function makeKeys() {
  window.addEventListener("keyup", (event) => { if (hooks.key) hooks.key(event, false); });
  window.addEventListener("keydown", (event) => {
    if (event.target.matches && event.target.matches("select")) return;
    if (hooks.key && hooks.key(event, true)) { event.preventDefault(); return; }
    if (event.target.matches && event.target.matches("input[type=checkbox]")) return;
    const step = (END - START) / 200, moves = { ArrowLeft: -step, ArrowRight: step };
    if (event.key === " " && event.target.tagName !== "BUTTON") setPlaying(!playing);
    else if (scene.live) return;
    else if (event.key in moves && event.target.id !== "time") go(now + moves[event.key]);
    else if (event.key === "Home") go(START);
    else if (event.key === "End") go(END);
    else return;
    event.preventDefault();
  });
}
function zoom(factor) {
  const body = scene.bodies[camera.body];
  camera.distance = clamp(camera.distance * factor, 0.6 * body.radius, 30 * scene.extent + 10 * body.reach);
  stale = true;
}
function shift(dx, dy) {
  if (camera.mode !== "free") { setMode("free"); $("camera").value = "free"; }
  const view = look(poses(now)), metres = 1 / pixelsPer(canvas.clientHeight, camera.distance);
  camera.target = add(camera.target, add(mul(view.right, -dx * metres), mul(view.top, dy * metres)));
}
