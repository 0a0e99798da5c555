// Models that run in the page: their clock, sliders, keys, gamepad, charts, records and copies.
const live = scene.live;
for (const about of [...live.models, ...live.explorers]) {
  about.controls = array(about.controls);
  if (about.state) about.state = array(about.state);
}
const models = [], explorers = [];
let changed = true; // whether a function of sliders has to be evaluated anew
const WINDOW = 20, BUDGET = 60, POINTS = 1200, RECORDED = 200000;
const BEGIN = "Drag, press a key or the button below to begin.";
let recording = null, behind = 1, loaded = false, ending = false, notice = "";

// ---- numbers that a reader moves ----------------------------------------------------------------
const knobs = live.controls.map((about) => ({ ...about, first: about.value, now: about.value, pressed: 0, moved: false, from: new Map() }));
const knobByName = new Map(knobs.map((knob) => [knob.name, knob]));
function setKnob(knob, value, told = true) {
  if (!(value - value === 0)) return;
  value = clamp(value, knob.kind === "pulse" ? -Infinity : knob.low, knob.kind === "pulse" ? Infinity : knob.high);
  if (value === knob.now) return;
  knob.now = value;
  for (const [which, index] of knob.targets) {
    if (which < live.models.length) setControl(models[which], index, value);
    else if (explorers[which - live.models.length]) { explorers[which - live.models.length].controls[index] = value; changed = true; stale = true; }
  }
  if (told) showKnob(knob);
}
function setControl(model, index, value) {
  if (!model || model.simulation.controls[index] === value) return;
  model.simulation.controls[index] = value;
  model.changes.push([model.simulation.k, index, value]);
}
function showKnob(knob) {
  if (knob.kind === "switch") { knob.input.checked = knob.now === knob.high; return; }
  if (knob.kind === "pulse") return;
  knob.input.value = knob.now;
  const tiny = 1e-9 * (knob.high - knob.low); // what is left of zero by rounding
  knob.said.textContent = short(Math.abs(knob.now) < tiny ? 0 : knob.now * knob.per) + (knob.units ? " " + knob.units : "");
}
const KEYS = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };
const keyName = (key) => KEYS[key] || (key.length === 1 ? key.toUpperCase() : key);
function makeKnobs() {
  if (!knobs.length) return;
  const box = element("section");
  box.id = "knobs";
  if (seen) $("charts").prepend(box); else $("app").insertBefore(box, $("charts"));
  const buttons = element("div", box);
  buttons.className = "pulses";
  for (const knob of knobs) {
    const row = element(knob.kind === "pulse" ? "button" : "label", knob.kind === "pulse" ? buttons : box);
    row.className = "knob " + knob.kind;
    if (knob.kind !== "slider") {
      if (knob.kind === "switch") {
        knob.input = element("input", row);
        Object.assign(knob.input, { type: "checkbox", name: knob.name });
        knob.input.addEventListener("change", () => { setKnob(knob, knob.input.checked ? knob.high : knob.low); keepLink(); });
      } else {
        Object.assign(row, { type: "button", name: knob.name });
        row.addEventListener("click", () => { startPulse(knob); row.blur(); });
      }
      element("span", row, knob.label);
      for (const key of knob.keys) element("kbd", row, keyName(key));
      if (knob.kind === "switch") showKnob(knob);
      continue;
    }
    const head = element("span", row);
    element("span", head, knob.label);
    head.title = knob.label;
    if (knob.keys.length) element("kbd", head, knob.keys.map(keyName).join(" "));
    knob.input = element("input", row);
    knob.said = element("output", row);
    Object.assign(knob.input, { type: "range", name: knob.name, min: knob.low, max: knob.high, step: "any", value: knob.now });
    knob.input.setAttribute("aria-label", knob.label);
    knob.input.addEventListener("input", () => { setKnob(knob, parseFloat(knob.input.value)); keepLink(); });
    for (const end of ["pointerup", "pointercancel", "change"]) {
      knob.input.addEventListener(end, () => { if (knob.returns) setKnob(knob, knob.first); knob.input.blur(); });
    }
    showKnob(knob);
  }
  if (knobs.some((knob) => knob.kind !== "pulse")) {
    const back = element("button", box, "first values");
    back.type = "button";
    buttons.append(back);
    back.id = "defaults";
    back.addEventListener("click", () => { for (const knob of knobs) setKnob(knob, knob.first); keepLink(); });
  }
}
// A pulse is played in the model's time, step by step, so that it is the same on any machine.
function startPulse(knob) {
  knob.from = new Map(knob.targets.map(([which]) => [which, models[which].simulation.k]));
}
function pulseValue(knob, which) {
  const { simulation, about } = models[which];
  let t = (simulation.k - knob.from.get(which)) * about.dt;
  for (const [seconds, value] of knob.pulse) {
    if (t < seconds - 1e-9) return value;
    t -= seconds;
  }
  knob.from.delete(which);
  return knob.first;
}
// Keys and sticks move sliders by real time, before the steps of a picture.
function moveKnobs(seconds) {
  const pads = navigator.getGamepads ? [...navigator.getGamepads()].filter(Boolean) : [];
  for (const knob of knobs) {
    const rate = ((knob.high - knob.low) / knob.rate) * seconds;
    if (knob.kind === "slider" && knob.pressed) { setKnob(knob, knob.now + knob.pressed * rate); knob.moved = true; }
    else if (knob.returns && knob.moved) {
      const left = knob.first - knob.now;
      setKnob(knob, knob.now + clamp(left, -2 * rate, 2 * rate));
      if (knob.now === knob.first) knob.moved = false;
    }
    for (const pad of pads) {
      if (knob.kind === "slider" && knob.axis !== null) {
        const axis = knob.axis < 0 ? ~knob.axis : knob.axis, raw = pad.axes[axis];
        if (raw === undefined) continue;
        const v = (Math.abs(raw) < 0.08 ? 0 : raw) * (knob.axis < 0 ? -1 : 1);
        if (v === 0 && !knob.held) continue;
        knob.held = v !== 0;
        if (knob.returns) setKnob(knob, knob.first + v * (v > 0 ? knob.high - knob.first : knob.first - knob.low));
        else setKnob(knob, knob.now + v * rate);
      } else if (knob.button !== null && pad.buttons[knob.button]) {
        const down = pad.buttons[knob.button].pressed;
        if (down && !knob.held) act(knob);
        knob.held = down;
      }
    }
  }
}
function act(knob) {
  if (knob.kind === "pulse") startPulse(knob); else setKnob(knob, knob.now === knob.high ? knob.low : knob.high);
}
const keyOf = (key) => (key.length === 1 ? key.toLowerCase() : key);
hooks.key = (event, down) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const key = keyOf(event.key);
  for (const knob of knobs) {
    const which = knob.keys.findIndex((k) => keyOf(k) === key);
    if (which < 0) continue;
    if (knob.kind === "slider") {
      const way = which === 0 ? -1 : 1;
      if (down) knob.pressed = way; else if (knob.pressed === way) knob.pressed = 0;
    } else if (down && !event.repeat) act(knob);
    if (down && notice === BEGIN) setPlaying(true);
    return true;
  }
  if (!down) return false;
  if (key === "r") { restart(); return true; }
  if (key === ".") { setPlaying(false); stepOnce(); return true; }
  return false;
};
window.addEventListener("blur", () => { for (const knob of knobs) knob.pressed = 0; });

// ---- the link: sliders in the fragment of the address --------------------------------------------
let keeping = 0;
const kept = (knob) => knob.kind !== "pulse" && !knob.returns;
const fragment = () => knobs.filter((knob) => kept(knob) && knob.now !== knob.first)
  .map((knob) => encodeURIComponent(knob.name) + "=" + String(knob.now)).join("&");
function keepLink() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    try { history.replaceState(null, "", "#" + fragment()); } catch { /* a frame may not have an address */ }
  }, 250);
}
function readLink() {
  for (const pair of location.hash.slice(1).split("&")) {
    const cut = pair.indexOf("=");
    if (cut < 0) continue;
    let name = "";
    try { name = decodeURIComponent(pair.slice(0, cut)); } catch { continue; }
    const knob = knobByName.get(name), value = Number(pair.slice(cut + 1));
    if (knob && kept(knob) && pair.length > cut + 1) setKnob(knob, value);
  }
}

// ---- time ---------------------------------------------------------------------------------------
hooks.time = () => {
  const running = models.filter((model) => !model.simulation.stopped);
  return running.length ? Math.min(...running.map((model) => model.simulation.t)) : Math.max(0, ...models.map((model) => model.simulation.t));
};
// Whole steps up to a time; where they take longer than there is time, the clock runs slower.
hooks.advance = (seconds, pace) => {
  if (!loaded || !models.length) return;
  if (notice === BEGIN) say("");
  moveKnobs(seconds);
  if (ending) { runOn(); return; }
  const start = performance.now();
  const wanted = now + seconds * pace; // of real time
  let late = false;
  for (const model of models) {
    const last = Math.floor(wanted / model.about.dt + 1e-9);
    while (model.simulation.k < last && !model.simulation.stopped) {
      step(model);
      if (performance.now() - start > BUDGET) { late = true; break; }
    }
  }
  const reached = late ? hooks.time() : wanted;
  behind = 0.9 * behind + 0.1 * (seconds > 0 ? clamp((reached - now) / (seconds * pace), 0, 1) : 1);
  now = reached;
  after();
};
// Set what pulses are at now; return whether one is still played.
function playPulses(model) {
  let open = false;
  for (const knob of knobs) {
    for (const [which, index] of knob.from.size ? knob.targets : []) {
      if (models[which] !== model || !knob.from.has(which)) continue;
      setControl(model, index, pulseValue(knob, which));
      open = open || knob.from.has(which);
    }
  }
  return open;
}
function step(model) {
  playPulses(model);
  model.simulation.step();
  if (recording) record(model);
}
function stepOnce() {
  if (!loaded) return;
  for (const model of models) if (!model.simulation.stopped) step(model);
  now = hooks.time();
  after();
}
// The adaptive solver up to the end, a little of it between two pictures.
function runOn() {
  const start = performance.now();
  let open = true;
  while (open && performance.now() - start < 30) {
    open = false;
    for (const model of models) {
      const { simulation, about } = model, left = Math.round(about.end / about.dt) - simulation.k;
      if (left <= 0 || simulation.stopped) continue;
      open = true;
      if (playPulses(model)) simulation.step();
      else simulation.advance(Math.min(left, about.stride - (simulation.k % about.stride)));
      if (recording) record(model);
      look_at(model);
    }
    now = hooks.time();
    hooks.sample();
  }
  after();
  if (!open) { ending = false; setPlaying(false); }
}
function after() {
  for (const model of models) look_at(model);
  askCopies();
  for (const { simulation, about, over } of models) {
    if (!simulation.stopped || over.told) continue;
    over.told = true;
    const name = models.length > 1 ? about.name + ": " : "", t = short(simulation.t);
    const earlier = notice && models.length > 1 ? notice + " · " : "";
    if (simulation.bad >= 0) {
      say(`${earlier}${name}the model diverged at ${t} s: ${about.names[simulation.bad] || "its state"} is ${simulation.s[simulation.bad]}. Reset starts it again.`);
    } else {
      say(`${earlier}${name}${about.events[simulation.fired].name} at ${t} s`);
    }
  }
  if (models.every((model) => model.simulation.stopped)) { ending = false; setPlaying(false); }
  stale = true;
}
function say(text) {
  notice = text;
  $("trouble").hidden = !text;
  $("trouble").textContent = text;
}
function restart() {
  for (const model of models) {
    model.simulation.reset();
    Object.assign(model, { over: { told: false }, changes: [] });
    model.about.copies && (model.round = (model.round || 0) + 1);
    for (const index of model.simulation.controls.keys()) model.changes.push([0, index, model.simulation.controls[index]]);
    model.changes = model.changes.filter(([, index]) => model.movable.has(index));
    dropPull(model);
  }
  for (const knob of knobs) {
    knob.from.clear();
    if (knob.kind === "pulse") for (const [which, index] of knob.targets) setControl(models[which], index, knob.first);
  }
  for (const { data } of charts) if (data.explorer === undefined) for (const row of [data.times, ...data.rows]) row.length = 0;
  for (const trail of trailsLive) trail.clear();
  now = 0; ending = false; recording = recording && [];
  say("");
  for (const model of models) look_at(model);
  hooks.sample();
  if (!playing) setPlaying(true);
  stale = true;
}

// ---- what is seen -------------------------------------------------------------------------------
const trailsLive = [];
// Put the poses of a model into its bodies.
function look_at(model) {
  const seen = model.simulation.show(), { about } = model;
  model.seen.set(seen);
  about.bodies.forEach((k, j) => {
    const body = scene.bodies[k];
    for (let i = 0; i < 3; i++) body.places[i] = seen[7 * j + i];
    for (let i = 0; i < 4; i++) body.turns[i] = seen[7 * j + 3 + i];
  });
  const base = 7 * about.bodies.length;
  about.arrows.forEach((k, j) => { for (let i = 0; i < 3; i++) scene.arrows[k].rows[i] = seen[base + 3 * j + i]; });
}
// A point of every line, and of every trail, at the present time.
hooks.sample = () => {
  const at = hooks.time();
  for (const { data } of charts) {
    if (data.explorer !== undefined || (data.times.length && data.times[data.times.length - 1] === at)) continue;
    data.times.push(at);
    data.lines.forEach(([which, index], row) => data.rows[row].push(models.length > which ? models[which].seen[index] : NaN));
    if (data.times.length > POINTS) for (const row of [data.times, ...data.rows]) row.splice(0, 200);
  }
  for (const trail of trailsLive) trail.add();
};
hooks.window = (data) => {
  if (data.explorer !== undefined) return data.times.length ? [Math.min(...data.times), Math.max(...data.times)] : [0, 1];
  const first = data.times.length ? data.times[0] : 0;
  const long = WINDOW * Math.max(1, speed);
  return now - first > long && playing && !ending ? [now - long, now] : [Math.min(first, now), Math.max(now, first + 2)];
};
function prepareScene() {
  for (const body of scene.bodies) {
    body.places = Float64Array.from(body.places, (v, k) => v + (k < 3 ? body.origin[k] : 0)).slice(0, 3);
    body.turns = Float64Array.from(body.turns).slice(0, 4);
    body.times = [0];
    body.origin = [0, 0, 0];
  }
  for (const arrow of scene.arrows) { arrow.rows = Float64Array.from(arrow.rows).slice(0, 3); arrow.times = [0]; }
  for (const chart of scene.charts) { chart.times = []; chart.rows = (chart.starts || chart.lines).map(() => []); }
}
prepareScene();
// A trail that grows: buffers of one size, of which new points are sent; old ones are thinned out.
class Trail {
  constructor(body, model) {
    this.body = body; this.model = model; this.room = 3000; this.count = 0;
    const n = this.room;
    this.P = new Float32Array(6 * n); this.N = new Float32Array(6 * n); this.T = new Float32Array(2 * n);
    const S = Float32Array.from({ length: 2 * n }, (_, k) => (k % 2 ? 1 : -1));
    this.buffers = [this.P, this.N, this.T].map((data) => buffer(data, gl.DYNAMIC_DRAW));
    const [P, N, T] = this.buffers;
    this.vao = attributes(programs.trail, { aPlace: [this.P, 3, { buffer: P }], aNext: [this.N, 3, { buffer: N }], aTime: [this.T, 1, { buffer: T }], aSide: [S, 1] });
    this.made = { vao: this.vao, count: 0 };
  }
  clear() { this.count = this.made.count = 0; }
  add() {
    const here = this.body.places, k = this.count;
    if (k === 0) this.body.origin0 = [here[0], here[1], here[2]];
    const p = [0, 1, 2].map((j) => here[j] - this.body.origin0[j]);
    if (k > 0) {
      const moved = Math.hypot(...[0, 1, 2].map((j) => p[j] - this.P[6 * (k - 1) + j]));
      if (moved < 0.04 * this.body.reach) return;
    }
    if (k === this.room) { this.thin(); this.add(); return; }
    for (let s = 0; s < 2; s++) {
      for (let j = 0; j < 3; j++) {
        this.P[6 * k + 3 * s + j] = p[j];
        if (k > 0) this.N[6 * (k - 1) + 3 * s + j] = p[j];
        this.N[6 * k + 3 * s + j] = k > 0 ? 2 * p[j] - this.P[6 * (k - 1) + j] : p[j];
      }
      this.T[2 * k + s] = 0;
    }
    this.count++;
    this.send(Math.max(0, k - 1));
  }
  thin() {
    const half = this.count >> 1;
    for (let k = 0; k < half; k++) for (let j = 0; j < 6; j++) this.P[6 * k + j] = this.P[12 * k + j];
    for (let k = 0; k < half; k++) for (let j = 0; j < 6; j++) this.N[6 * k + j] = this.P[6 * Math.min(k + 1, half - 1) + j];
    this.count = half;
    this.send(0);
  }
  send(from) {
    const [P, N, T] = this.buffers, n = this.count;
    for (const [id, data, width] of [[P, this.P, 6], [N, this.N, 6], [T, this.T, 2]]) {
      gl.bindBuffer(gl.ARRAY_BUFFER, id);
      gl.bufferSubData(gl.ARRAY_BUFFER, 4 * width * from, data.subarray(width * from, width * n));
    }
    this.made.count = 2 * n;
  }
}
hooks.prepared = () => {
  trailsLive.length = 0;
  scene.bodies.forEach((body, k) => {
    if (!body.trail) return;
    const model = models.find((each) => each.about.bodies.includes(k));
    if (!model) return;
    const trail = new Trail(body, model);
    trailsLive.push(trail);
    things.trails[k] = trail.made;
  });
};
hooks.origin = (body) => body.origin0 || body.origin;

// ---- drag: a spring from a point of a body to the cursor ------------------------------------------
let pull = null;
const corners = new Map();
function rayAt(event) {
  const at = canvas.getBoundingClientRect(), view = look(poses(now)), lensing = projection(view, at.width, at.height);
  const x = (2 * (event.clientX - at.left)) / at.width - 1, y = 1 - (2 * (event.clientY - at.top)) / at.height;
  return { from: view.eye, view, along: unit(add(add(mul(view.right, x / lensing.a), mul(view.top, y / lensing.f)), mul(view.back, -1))) };
}
// The nearest body under the cursor, and where on it, in its axes.
function pick(ray) {
  const all = poses(now);
  let best = null;
  scene.bodies.forEach((body, k) => {
    if (!body.mesh) return;
    if (!corners.has(k)) corners.set(k, cornersOf(body.mesh));
    const m = all[k].m, inverse = [m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]];
    const o = turn(inverse, sub(ray.from, all[k].p)), d = turn(inverse, ray.along), P = corners.get(k);
    for (let i = 0; i < P.length; i += 9) {
      const a = [P[i], P[i + 1], P[i + 2]], e = [P[i + 3] - a[0], P[i + 4] - a[1], P[i + 5] - a[2]], f = [P[i + 6] - a[0], P[i + 7] - a[1], P[i + 8] - a[2]];
      const h = cross(d, f), det = dot(e, h);
      if (Math.abs(det) < 1e-14) continue;
      const s = sub(o, a), u = dot(s, h) / det, q = cross(s, e), v = dot(d, q) / det, t = dot(f, q) / det;
      if (u < 0 || v < 0 || u + v > 1 || t <= 1e-6 || (best && t >= best.t)) continue;
      best = { t, body: k, point: add(o, mul(d, t)) };
    }
  });
  return best;
}
hooks.grab = (event) => {
  if (event.button !== 0 || event.shiftKey || !loaded) return false;
  const ray = rayAt(event), hit = pick(ray);
  const model = hit && models.find((each) => each.about.pull && each.about.pull.bodies.includes(hit.body));
  if (!model) return false;
  pull = { id: event.pointerId, model, hit, x: event.clientX, y: event.clientY, depth: hit.t * dot(ray.along, mul(ray.view.back, -1)) };
  const { on, point } = model.about.pull, which = model.about.pull.bodies.indexOf(hit.body);
  for (let i = 0; i < 3; i++) setControl(model, point + i, hit.point[i]);
  model.about.pull.bodies.forEach((_, j) => setControl(model, on + j, j === which ? 1 : 0));
  follow();
  canvas.style.cursor = "grabbing";
  if (!playing) setPlaying(true);
  return true;
};
// The cursor in the plane through the point that was taken hold of, in the axes of the model's world.
function follow() {
  const { model, x, y, depth } = pull, { place } = model.about.pull;
  const ray = rayAt({ clientX: x, clientY: y });
  const at = add(ray.from, mul(ray.along, depth / dot(ray.along, mul(ray.view.back, -1))));
  pull.at = at;
  const p = sub(at, place.relative ? scene.bodies[pull.hit.body].places : place.offset), R = place.R, o = place.relative ? [0, 0, 0] : place.origin;
  for (let j = 0; j < 3; j++) setControl(model, model.about.pull.target + j, R[0][j] * p[0] + R[1][j] * p[1] + R[2][j] * p[2] + o[j]);
}
hooks.drag = (event) => {
  if (!pull || event.pointerId !== pull.id) return false;
  pull.x = event.clientX; pull.y = event.clientY;
  follow();
  return true;
};
hooks.follow = () => { if (pull) follow(); if (changed) explore(); };
// Evaluate functions of sliders, and take their curves.
function explore() {
  changed = false;
  explorers.forEach((explorer, which) => {
    explorer.curves.inputs.c.set(explorer.controls);
    explorer.curves.run();
    const y = explorer.curves.outputs.y;
    for (const { data } of charts) {
      if (data.explorer !== which) continue;
      data.times = Array.from(y.subarray(0, data.count));
      data.rows = data.starts.map((start) => Array.from(y.subarray(start, start + data.count)));
    }
  });
  for (const chart of charts) chart.drawn = 0;
}
hooks.release = (event) => {
  if (!pull || event.pointerId !== pull.id) return false;
  dropPull(pull.model);
  return true;
};
function dropPull(model) {
  if (model.about.pull) model.about.pull.bodies.forEach((_, j) => setControl(model, model.about.pull.on + j, 0));
  if (pull && pull.model === model) { pull = null; canvas.style.cursor = ""; }
}
hooks.draw = (all, common, view) => {
  if (!pull) return;
  const body = all[pull.hit.body], from = add(body.p, turn(body.m, pull.hit.point)), along = sub(pull.at, from);
  oneArrow(from, along, size(along), scene.bodies[pull.hit.body].reach * 0.25, [0.95, 0.45, 0.15], common, view);
};

// ---- records ------------------------------------------------------------------------------------
function record(model) {
  if (recording.length >= RECORDED) return;
  recording.push([models.indexOf(model), model.simulation.t, Float64Array.from(model.simulation.s), Float64Array.from(model.simulation.controls)]);
}
const cell = (text) => (/[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text);
function csv() {
  const out = [];
  models.forEach((model, which) => {
    const { about } = model, rows = recording.filter((row) => row[0] === which);
    const inputs = knobs.flatMap((knob) => knob.targets.filter(([k]) => k === which).map(([, index]) => [knob.name, index]));
    const columns = about.names.map((name, k) => [name, k]).filter(([name]) => name);
    const prefix = models.length > 1 ? about.name + " " : "";
    out.push(["t", ...columns.map(([name]) => prefix + name), ...inputs.map(([name]) => prefix + name)].map(cell).join(","));
    for (const [, t, s, c] of rows) out.push([t, ...columns.map(([, k]) => s[k]), ...inputs.map(([, k]) => c[k])].join(","));
  });
  return out.join("\n") + "\n";
}
function download() {
  if (!recording || !recording.length) { say("Nothing is recorded yet: press record and let the model run."); return; }
  const link = element("a"), url = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.href = url;
  link.download = "record.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// ---- copies -------------------------------------------------------------------------------------
function startCopies(model, index) {
  const { about } = model, states = new Float64Array(array(about.copies.states)), controls = new Float64Array(array(about.copies.controls));
  const ghosts = scene.ghosts[about.copies.ghosts];
  model.copies = { waiting: false, shown: null, ghosts };
  const settle = (poses, round) => {
    model.copies.waiting = false;
    if (round === (model.round || 0)) { ghosts.live = poses; ghosts.origin = model.copies.origin.slice(); stale = true; }
    askCopies();
  };
  try {
    const text = $("runtime").textContent + "\nserveCopies();\n";
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const worker = new Worker(url);
    model.copies.waiting = true;
    worker.onmessage = ({ data }) => {
      if (!data.ready) { settle(data.poses, data.round); return; }
      Object.assign(model.copies, { waiting: false, kind: "worker" });
      askCopies();
    };
    worker.onerror = (event) => { event.preventDefault(); worker.terminate(); onPage(); };
    model.copies.ask = (message) => worker.postMessage(message);
    const plain = { dt: about.dt, state: about.state, controls: about.controls, events: about.events, layout: about.layout };
    worker.postMessage({ about: plain, bytes: moduleBytes(about), states, controls });
  } catch { onPage(); }
  // Where a worker is not allowed, copies run between the pictures.
  async function onPage() {
    model.copies.kind = "page";
    const copies = new Copies(await Simulation.load(about, moduleBytes(about)), states, controls);
    model.copies.waiting = false;
    model.copies.ask = (message) => setTimeout(() => {
      if (message.reset) copies.reset();
      settle(copies.run(message.to, message.changes, message.origin).slice(), message.round);
    }, 0);
    askCopies();
  }
}
function askCopies() {
  for (const model of models) {
    const { copies } = model;
    if (!copies || copies.waiting || !copies.ask || !show.ghosts) continue;
    const round = model.round || 0, reset = copies.round !== round;
    if (!reset && copies.k === model.simulation.k) continue;
    copies.waiting = true; copies.round = round; copies.k = model.simulation.k;
    const body = scene.bodies[model.about.bodies[0]];
    copies.origin = Array.from(body.places);
    const changes = model.changes;
    model.changes = [];
    copies.ask({ to: copies.k, changes, reset, round, origin: copies.origin });
  }
}
hooks.ghosts = (ghosts, made) => {
  if (!ghosts.live) return 0;
  let drawn = 0;
  for (let i = 0; i < ghosts.count; i++) {
    if (!(Math.abs(ghosts.live[7 * i]) < 1e30)) continue;
    made.rows.set(ghosts.live.subarray(7 * i, 7 * i + 7), 7 * drawn++);
  }
  gl.bindBuffer(gl.ARRAY_BUFFER, made.each);
  gl.bufferSubData(gl.ARRAY_BUFFER, 0, made.rows.subarray(0, 7 * drawn));
  return drawn;
};

// ---- buttons and start --------------------------------------------------------------------------
function makeButtons() {
  const box = element("div");
  box.id = "acts";
  $("track").replaceWith(box);
  const add = (id, text, title, run) => {
    const made = element("button", box, text);
    made.type = "button"; made.id = id; made.title = title;
    made.addEventListener("click", () => { run(made); made.blur(); });
  };
  if (!live.models.length) { $("play").hidden = $("clock").hidden = $("pace").hidden = true; }
  else addRunning();
  add("link", "link", "copy the address with these sliders", () => {
    try { history.replaceState(null, "", "#" + fragment()); } catch { /* a frame may not have an address */ }
    const told = () => say(""), done = () => { say("The link with these values is copied."); setTimeout(told, 1500); };
    const refused = () => { say("The link with these values is in the address bar."); setTimeout(told, 2500); };
    if (navigator.clipboard) navigator.clipboard.writeText(location.href).then(done, refused); else refused();
  });
  function addRunning() {
    add("step", "step", "one step (.)", () => { setPlaying(false); stepOnce(); });
    add("reset", "reset", "start again (R)", restart);
    add("end", "to the end", `run to ${short(Math.max(...live.models.map((m) => m.end)))} s with the adaptive solver`, () => { ending = true; setPlaying(true); });
    add("record", "record", "keep every step from now on", (button) => {
      recording = recording ? null : [];
      button.setAttribute("aria-pressed", String(Boolean(recording)));
    });
    add("csv", "CSV", "download what was recorded", download);
  }
}
const moduleBytes = (about) => new Uint8Array(array(about.module));
hooks.clock = () => {
  const slow = behind < 0.9 && playing && !ending ? ` (${(behind * speed).toFixed(1)} × real time)` : "";
  return now.toFixed(2) + " s" + slow;
};
hooks.start = async () => {
  makeKnobs();
  makeButtons();
  if (typeof WebAssembly === "undefined") {
    say("This page runs its model in WebAssembly, which this browser does not offer.");
    return;
  }
  try {
    for (const about of live.models) {
      const simulation = await Simulation.load(about, moduleBytes(about));
      models.push({ about, simulation, seen: new Float64Array(about.lines), over: { told: false }, changes: [], movable: new Set() });
    }
    for (const about of live.explorers) {
      const { functions } = await ArcWasm.instantiate(about.layout, moduleBytes(about));
      explorers.push({ controls: Float64Array.from(about.controls), curves: functions.curves });
    }
  } catch (error) {
    say("The model of this page could not be started: " + error.message);
    return;
  }
  for (const knob of knobs) for (const [which, index] of knob.targets) if (models[which]) models[which].movable.add(index);
  for (const { about, movable } of models) {
    if (!about.pull) continue;
    about.pull.bodies.forEach((_, j) => movable.add(about.pull.on + j));
    for (let j = 0; j < 3; j++) movable.add(about.pull.point + j).add(about.pull.target + j);
  }
  readLink();
  loaded = true;
  if (gl && scene.bodies.length) hooks.prepared();
  models.forEach((model, k) => {
    look_at(model);
    if (model.about.copies) startCopies(model, k);
  });
  hooks.sample();
  stale = true;
  if (!models.length) return;
  setPlaying(live.autoplay && !matchMedia("(prefers-reduced-motion: reduce)").matches);
  if (!live.autoplay) say(BEGIN);
};
// What scripts and tests may ask for.
hooks.api = {
  loaded: () => loaded,
  set: (name, value) => setKnob(knobByName.get(name), value),
  get: (name) => knobByName.get(name).now,
  names: () => knobs.map((knob) => knob.name),
  step: (count = 1) => { setPlaying(false); for (let k = 0; k < count; k++) stepOnce(); },
  reset: () => { restart(); setPlaying(false); },
  end: () => { ending = true; setPlaying(true); },
  state: (k = 0) => Array.from(models[k].simulation.s),
  count: (k = 0) => models[k].simulation.k,
  seen: (k = 0) => Array.from(models[k].seen),
  copies: (k = 0) => (models[k].copies ? { kind: models[k].copies.kind, k: models[k].copies.k, waiting: models[k].copies.waiting, poses: scene.ghosts.length && scene.ghosts[0].live ? scene.ghosts[0].live.length / 7 : 0 } : null),
  copyPoses: (k = 0) => Array.from(scene.ghosts[models[k].about.copies.ghosts].live, (v, j) => (j % 7 < 3 ? v + models[k].copies.origin[j % 7] : v)),
  curves: (k = 0) => Array.from(explorers[k].curves.outputs.y),
  notice: () => notice,
  csv: () => csv(),
  record: (on) => { recording = on ? [] : null; },
  place: (body) => { const all = poses(now), h = canvas.getBoundingClientRect(); return screenPoint(all[bodyIndex.get(body)].p, h); },
  pulling: () => pull !== null,
  fragment,
};
function screenPoint(p, at) {
  const view = look(poses(now)), m = projection(view, at.width, at.height).matrix, x = sub(p, view.eye);
  const c = [0, 1, 3].map((k) => m[k] * x[0] + m[4 + k] * x[1] + m[8 + k] * x[2]);
  return [at.left + (0.5 + (0.5 * c[0]) / c[2]) * at.width, at.top + (0.5 - (0.5 * c[1]) / c[2]) * at.height];
}
