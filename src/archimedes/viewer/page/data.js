// The scene as it stands in the page: one block of numbers, and what each part of it is.
const read = (id) => document.getElementById(id).textContent;
const scene = JSON.parse(read("scene"));
const bytes = (() => {
  const text = atob(read("data").trim());
  const out = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) out[k] = text.charCodeAt(k);
  return out.buffer;
})();
const KINDS = { f4: Float32Array, f8: Float64Array, i2: Int16Array, i1: Int8Array, u1: Uint8Array };
const array = (place) => new KINDS[place[0]](bytes, place[1], place[2]);

// What a page whose model runs in it does differently: filled in by live.js.
const hooks = {};

for (const body of scene.bodies) {
  body.times = array(body.t);
  body.places = array(body.position);
  body.turns = array(body.attitude);
  body.shown = true;
}
for (const arrow of scene.arrows) {
  arrow.times = array(arrow.t);
  arrow.rows = array(arrow.values);
}
for (const chart of scene.charts) {
  if (chart.lines) continue; // of a model that runs in the page
  chart.times = array(chart.t);
  chart.rows = chart.values.map(array);
  if (chart.low) {
    chart.bandTimes = array(chart.band_t);
    chart.lows = chart.low.map(array);
    chart.highs = chart.high.map(array);
  }
}
for (const ghosts of scene.ghosts) {
  if (!ghosts.t) continue; // of copies that run along
  ghosts.times = array(ghosts.t);
  ghosts.places = array(ghosts.position);
  ghosts.turns = ghosts.attitude && array(ghosts.attitude);
}
for (const path of scene.paths) path.rows = array(path.points);
const bodyIndex = new Map(scene.bodies.map((body, k) => [body.name, k]));

// Place and attitude of all bodies at a time, parents first.
function poses(t) {
  const out = [];
  for (const body of scene.bodies) {
    const at = place(body.times, t);
    let p = add(body.origin, between(body.places, 3, at));
    let q = between(body.turns, 4, at, true);
    if (body.parent !== null) {
      const up = out[body.parent];
      p = add(up.p, turn(up.m, p));
      q = qmul(up.q, q);
    }
    out.push({ p, q, m: qmatrix(q) });
  }
  return out;
}
