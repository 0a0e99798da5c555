// Vectors as arrays of three, quaternions scalar first, matrices by columns; all in doubles.
const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const mul = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const size = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => mul(a, 1 / (size(a) || 1));
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

const qmul = (p, q) => [
  p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
  p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
  p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
  p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
];
// The matrix (9, by columns) from the body's axes to the scene's.
function qmatrix(q) {
  const n = 1 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] || 1);
  const [w, x, y, z] = q;
  return [
    1 - 2 * n * (y * y + z * z), 2 * n * (x * y + w * z), 2 * n * (x * z - w * y),
    2 * n * (x * y - w * z), 1 - 2 * n * (x * x + z * z), 2 * n * (y * z + w * x),
    2 * n * (x * z + w * y), 2 * n * (y * z - w * x), 1 - 2 * n * (x * x + y * y),
  ];
}
const turn = (m, v) => [
  m[0] * v[0] + m[3] * v[1] + m[6] * v[2],
  m[1] * v[0] + m[4] * v[1] + m[7] * v[2],
  m[2] * v[0] + m[5] * v[1] + m[8] * v[2],
];
// The matrix that takes x to a direction, for arrows.
function pointing(direction) {
  const x = unit(direction);
  const y = unit(cross(Math.abs(x[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], x));
  const z = cross(x, y);
  return [...x, ...y, ...z];
}
// Where a time lies in a row of times: the interval, and the part of it that has passed.
function place(times, t) {
  const last = times.length - 1;
  if (last < 1 || t <= times[0]) return [0, 0];
  if (t >= times[last]) return [last - 1, 1];
  let low = 0, high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle; else high = middle;
  }
  const step = times[high] - times[low];
  return [low, step > 0 ? (t - times[low]) / step : 1];
}
// Rows of `width` numbers, straight between two of them; quaternions the short way around.
function between(rows, width, [k, part], turning = false) {
  const out = new Array(width);
  const more = (k + 1) * width < rows.length;
  let sign = 1;
  if (turning && more) {
    let d = 0;
    for (let j = 0; j < width; j++) d += rows[k * width + j] * rows[(k + 1) * width + j];
    sign = d < 0 ? -1 : 1;
  }
  for (let j = 0; j < width; j++) {
    const a = rows[k * width + j], b = more ? sign * rows[(k + 1) * width + j] : a;
    out[j] = a + part * (b - a);
  }
  return out;
}
const rgb = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255);
// A number in few characters, as on an instrument.
function short(x) {
  if (!isFinite(x)) return "–";
  const a = Math.abs(x);
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) return x.toExponential(1);
  return x.toFixed(a >= 1000 ? 0 : a >= 100 ? 1 : a >= 10 ? 2 : 3);
}
