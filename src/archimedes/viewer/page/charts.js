// Strip charts: lines are drawn once; the cursor and its dots are elements that move over them.
const charts = [];
const CYCLES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#7a52cc"],
  dark: ["#62b6f0", "#ff9a4d", "#4fd6a8", "#f0a3cc", "#f0d04d", "#b7b7ff", "#e0e0e0"],
};
const element = (tag, parent, text) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text; // text, never markup: names are a user's
  if (parent) parent.appendChild(made);
  return made;
};
function makeCharts() {
  const side = document.getElementById("charts");
  scene.charts.forEach((data) => {
    const box = element("section", side);
    box.className = "chart";
    const head = element("h2", box);
    element("span", head, data.title);
    if (data.units) element("small", head, `(${data.units})`);
    const values = data.rows.map((_, k) => {
      const each = element("span", head);
      const name = data.labels[k];
      if (name) element("small", each, name + " ");
      return element("b", each, "");
    });
    const paper = element("div", box);
    paper.className = "paper";
    const sheet = element("canvas", paper), cursor = element("i", paper);
    const dots = data.rows.map(() => element("b", paper));
    const chart = { data, sheet, values, cursor, dots, range: rangeOf(data) };
    const seek = (event) => {
      if (scene.live) return;
      const at = sheet.getBoundingClientRect();
      go(chart.from + ((event.clientX - at.left - chart.left) / chart.width) * (chart.to - chart.from));
    };
    sheet.addEventListener("pointerdown", (event) => { seek(event); if (event.pointerType === "mouse") sheet.setPointerCapture(event.pointerId); });
    sheet.addEventListener("pointermove", (event) => { if (event.buttons && event.pointerType === "mouse") seek(event); });
    charts.push(chart);
  });
}
function rangeOf(data, from = 0) {
  let low = Infinity, high = -Infinity;
  for (const row of [...data.rows, ...(data.lows || []), ...(data.highs || [])]) {
    for (let k = from; k < row.length; k++) { if (row[k] < low) low = row[k]; if (row[k] > high) high = row[k]; }
  }
  if (!(low <= high)) return [0, 1];
  // What does not change lies in the middle, whatever rounding has left of it.
  const still = high - low < 1e-9 + 1e-6 * Math.abs(high);
  const rest = still ? (Math.abs(high) > 1e-9 ? 0.1 * Math.abs(high) : 1) : (high - low) * 0.08;
  return [low - rest, high + rest];
}
// Round numbers in a range, about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((s) => s * power >= 0.85 * raw) * power;
  const out = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) out.push(k * step);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return [out, step / power === 2.5 && power < 10 ? digits + 1 : digits];
}
function drawLines(chart) {
  const { data, sheet } = chart, style = getComputedStyle(document.documentElement);
  const ratio = Math.min(window.devicePixelRatio || 1, 2), w = sheet.clientWidth, h = sheet.clientHeight;
  if (!w || !h) return;
  sheet.width = Math.round(w * ratio); sheet.height = Math.round(h * ratio);
  const g = sheet.getContext("2d");
  g.scale(ratio, ratio);
  g.font = "10px system-ui, sans-serif";
  const [low, high] = chart.range, [levels, digits] = ticks(low, high, Math.max(2, Math.floor(h / 22)));
  const spell = (v) => (Math.abs(v) >= 1e5 ? v.toExponential(1) : v.toFixed(digits));
  chart.left = Math.max(26, ...levels.map((v) => g.measureText(spell(v)).width + 6));
  chart.width = w - chart.left - 6; chart.top = 4; chart.height = h - 20;
  [chart.from, chart.to] = scene.live ? hooks.window(data) : scene.span;
  const X = (t) => chart.left + ((t - chart.from) / (chart.to - chart.from || 1)) * chart.width;
  const Y = (v) => chart.top + (1 - (v - low) / (high - low)) * chart.height;
  g.strokeStyle = style.getPropertyValue("--line"); g.fillStyle = style.getPropertyValue("--soft"); g.lineWidth = 1;
  g.textAlign = "right"; g.textBaseline = "middle";
  for (const v of levels) {
    g.beginPath(); g.moveTo(chart.left, Y(v)); g.lineTo(w - 6, Y(v)); g.stroke();
    g.fillText(spell(v), chart.left - 4, Y(v));
  }
  g.textAlign = "center"; g.textBaseline = "alphabetic";
  const [times, places] = ticks(chart.from, chart.to, Math.max(2, Math.floor(w / 70)));
  // The name of the axis stands at its end, in place of the ticks there.
  const axis = data.axis || "time (s)", end = w - 2 - g.measureText(axis).width;
  g.fillText(axis, (end + w - 2) / 2, h - 4);
  for (const t of times) {
    const half = g.measureText(t.toFixed(places)).width / 2, x = Math.max(X(t), chart.left + 6);
    if (x + half + 6 < end) g.fillText(t.toFixed(places), x, h - 4);
  }
  g.save();
  g.beginPath(); g.rect(chart.left, 0, chart.width + 6, h - 14); g.clip();
  data.rows.forEach((row, k) => {
    const color = CYCLES[theme][k % CYCLES[theme].length];
    if (data.lows) {
      g.globalAlpha = 0.2; g.fillStyle = color; g.beginPath();
      for (let i = 0; i < data.bandTimes.length; i++) g.lineTo(X(data.bandTimes[i]), Y(data.highs[k][i]));
      for (let i = data.bandTimes.length - 1; i >= 0; i--) g.lineTo(X(data.bandTimes[i]), Y(data.lows[k][i]));
      g.fill(); g.globalAlpha = 1;
    }
    g.strokeStyle = color; g.lineWidth = 1.5; g.lineJoin = "round"; g.beginPath();
    const stride = Math.max(1, Math.floor(row.length / (w * 3)));
    let open = false;
    for (let i = 0; i < row.length; i += stride) {
      if (isNaN(row[i])) { open = false; continue; }
      if (open) g.lineTo(X(data.times[i]), Y(row[i])); else g.moveTo(X(data.times[i]), Y(row[i]));
      open = true;
    }
    g.stroke();
    chart.values[k].style.color = chart.dots[k].style.background = color;
  });
  g.restore();
  chart.cursor.style.height = chart.height + "px";
  chart.X = X; chart.Y = Y;
}
function drawCharts(t, words = true) {
  for (const chart of charts) {
    const { sheet, data } = chart;
    if (!sheet.clientWidth) continue;
    const beyond = scene.live && data.rows.some((row) => row[row.length - 1] < chart.range[0] || row[row.length - 1] > chart.range[1]);
    const aged = beyond || scene.live && performance.now() - (chart.drawn || 0) > (quality < 1 ? 200 : 90);
    if (aged) { chart.range = rangeOf(data, place(data.times, hooks.window(data)[0])[0]); chart.drawn = performance.now(); }
    if (aged || !chart.X || chart.theme !== theme || chart.w !== sheet.clientWidth || chart.h !== sheet.clientHeight) {
      chart.theme = theme; chart.w = sheet.clientWidth; chart.h = sheet.clientHeight;
      drawLines(chart);
    }
    if (!chart.X) continue;
    const x = chart.X(clamp(data.explorer === undefined ? t : chart.to, chart.from, chart.to)), at = place(data.times, t);
    chart.cursor.style.transform = `translate(${x.toFixed(1)}px, ${chart.top}px)`;
    data.rows.forEach((row, k) => {
      const v = scene.live ? row[row.length - 1] : between(row, 1, at)[0];
      // What is left of zero by rounding is zero beside what the chart shows.
      const least = 1e-6 * (chart.range[1] - chart.range[0]);
      if (words) chart.values[k].textContent = short(Math.abs(v) < least ? 0 : v);
      chart.dots[k].hidden = isNaN(v) || data.explorer !== undefined;
      if (!isNaN(v)) chart.dots[k].style.transform = `translate(${x.toFixed(1)}px, ${chart.Y(v).toFixed(1)}px)`;
    });
  }
}
