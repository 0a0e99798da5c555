// The loop: draws when time passes or something has changed, and rests otherwise.
const spans = new Map();
let before = 0, slow = 0, pictures = 0;
function showLabels() {
  for (const [name, at] of drawn.labels) {
    let span = spans.get(name);
    if (!span) spans.set(name, (span = element("span", $("labels"), name)));
    span.hidden = !at;
    if (at) span.style.transform = `translate(${at[0].toFixed(1)}px, ${at[1].toFixed(1)}px) translate(-50%, -100%)`;
  }
  if (!show.labels) for (const span of spans.values()) span.hidden = true;
}
const digits = END - START < 20 ? 2 : END - START < 2000 ? 1 : 0;
let told = 0;
function update() {
  if (hooks.follow) hooks.follow();
  if (seen) draw(now, quality);
  // Words need not change with every picture: painting them takes longer than the picture does.
  // Nor the cursors of the charts, where pictures come slowly.
  const stamp = performance.now(), words = !playing || stamp - told > (quality < 1 ? 250 : 100);
  if (words || quality === 1) drawCharts(now, words);
  showLabels();
  pictures++;
  if (!words) return;
  told = stamp;
  if (scene.live) $("clock").textContent = hooks.clock();
  else {
    $("time").value = now;
    $("time").setAttribute("aria-valuetext", now.toFixed(digits) + " s");
    $("clock").replaceChildren(now.toFixed(digits) + " s ");
    element("small", $("clock"), "of " + END.toFixed(digits) + " s");
  }
  for (const arrow of scene.arrows) {
    arrow.readout.textContent = short(size(between(arrow.rows, 3, place(arrow.times, now)))) + " " + arrow.units;
  }
}
function tick(stamp) {
  const passed = Math.min((stamp - before) / 1000, 0.25);
  if (playing) {
    if (scene.live) { hooks.advance(passed, speed); hooks.sample(); }
    else {
      now += passed * speed;
      if (now >= END) { now = END; setPlaying(false); }
    }
    stale = true;
    adapt(stamp - before);
  } else if (quality < 1) {
    quality = 1; stale = true; // what stands still is drawn in full
  }
  before = stamp;
  if (stale) { stale = false; update(); }
  requestAnimationFrame(tick);
}
// Where pictures come slowly while time runs, fewer pixels are drawn.
function adapt(ms) {
  slow = 0.9 * slow + 0.1 * clamp(ms, 0, 200);
  if (slow > 36 && quality > 0.5) { quality = quality === 1 ? 0.75 : Math.max(0.5, quality - 0.125); slow = 25; }
}
// Whether there is anything to see beside the charts.
const seen = Boolean(gl && scene.bodies.length);
function start() {
  if (!gl) {
    $("trouble").hidden = false;
    $("trouble").textContent = "This page needs WebGL 2, which this browser does not offer. The charts work without it.";
  }
  if (!seen) $("app").dataset.flat = "";
  if (scene.live) $("app").dataset.live = "";
  if (!gl && !scene.live) {
    makeCharts(); makeControls();
    setTheme("light");
    drawCharts(now);
    return;
  }
  if (seen) prepare();
  makeCharts();
  makeControls();
  if (seen) makePointer(); else { makeKeys(); $("camera").parentElement.hidden = true; }
  const wanted = scene.theme === "auto" ? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") : scene.theme;
  setTheme(wanted);
  // A page plays at once, unless its reader has asked for less motion.
  if (scene.live) hooks.start();
  else setPlaying(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  new ResizeObserver(() => { stale = true; }).observe($("app"));
  new ResizeObserver(() => { stale = true; }).observe(canvas);
  canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); playing = false; });
  canvas.addEventListener("webglcontextrestored", () => { prepare(); if (hooks.prepared) hooks.prepared(); stale = true; });
  requestAnimationFrame((stamp) => { before = stamp; tick(stamp); });
}
// What scripts and tests may ask for.
window.viewer = {
  live: hooks.api,
  go: (t) => { setPlaying(false); go(t); quality = 1; update(); },
  play: (on) => setPlaying(on),
  setCamera: (values) => { if (values.mode) { setMode(values.mode); $("camera").value = values.mode; } Object.assign(camera, values); update(); },
  show: (name, on) => { show[name] = on; const tick = $("show-" + name); if (tick) tick.checked = on; showCharts(); update(); },
  theme: (name) => { setTheme(name); update(); },
  state: () => ({ now, playing, speed, quality, pictures, mode: camera.mode, span: scene.span, size: [canvas.width, canvas.height] }),
  pixels: () => {
    update();
    const w = canvas.width, h = canvas.height, out = new Uint8Array(4 * w * h);
    gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, out);
    let sum = 0;
    for (let k = 0; k < out.length; k++) sum = (sum * 31 + out[k]) >>> 0;
    return sum;
  },
  rate: (seconds) => new Promise((done) => {
    const first = performance.now(), from = pictures;
    const wait = () => {
      const passed = (performance.now() - first) / 1000;
      if (passed >= seconds) done((pictures - from) / passed); else requestAnimationFrame(wait);
    };
    wait();
  }),
};
start();
