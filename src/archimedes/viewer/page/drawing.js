// WebGL 2: programs and buffers, made once; `draw` puts the scene of one time on the screen.
const canvas = document.getElementById("view");
// Where no graphics card helps, edges are not smoothed and fewer ghosts leave a line.
const bySoftware = (() => {
  const probe = document.createElement("canvas").getContext("webgl2");
  const names = probe && probe.getExtension("WEBGL_debug_renderer_info");
  const found = names ? /swiftshader|llvmpipe|software|basic render/i.test(probe.getParameter(names.UNMASKED_RENDERER_WEBGL)) : false;
  const lose = probe && probe.getExtension("WEBGL_lose_context");
  if (lose) lose.loseContext();
  return found;
})();
const gl = canvas.getContext("webgl2", { antialias: !bySoftware, stencil: true, alpha: false, powerPreference: "high-performance" });

function program([vertex, fragment]) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, "#version 300 es\nprecision highp float; precision highp int;\n" + text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) {
    const logs = gl.getAttachedShaders(made).map((shader) => gl.getShaderInfoLog(shader));
    throw new Error([gl.getProgramInfoLog(made), ...logs].join("\n"));
  }
  const found = { id: made, at: {}, in: {} };
  for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); k++) {
    const { name, type } = gl.getActiveUniform(made, k);
    found.at[name] = [gl.getUniformLocation(made, name), type];
  }
  for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_ATTRIBUTES); k++) {
    const { name } = gl.getActiveAttrib(made, k);
    found.in[name] = gl.getAttribLocation(made, name);
  }
  return found;
}
const SETTERS = {
  [0x1406]: "uniform1f", [0x8b50]: "uniform2fv", [0x8b51]: "uniform3fv", [0x8b52]: "uniform4fv",
  [0x1404]: "uniform1i", [0x8b5b]: "m3", [0x8b5c]: "m4",
};
function use(p, values) {
  gl.useProgram(p.id);
  for (const name in values) {
    const slot = p.at[name];
    if (!slot) continue;
    const how = SETTERS[slot[1]];
    if (how === "m3") gl.uniformMatrix3fv(slot[0], false, values[name]);
    else if (how === "m4") gl.uniformMatrix4fv(slot[0], false, values[name]);
    else gl[how](slot[0], values[name]);
  }
}
function buffer(data, usage = gl.STATIC_DRAW) {
  const made = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, made);
  gl.bufferData(gl.ARRAY_BUFFER, data, usage);
  return made;
}
const TYPES = new Map([[Float32Array, 0x1406], [Int8Array, 0x1400], [Uint8Array, 0x1401]]);
// layout: name -> [data, width, instanced]; a second name may share the data with an offset.
function attributes(p, layout) {
  const vao = gl.createVertexArray();
  gl.bindVertexArray(vao);
  for (const [name, [data, width, options = {}]] of Object.entries(layout)) {
    if (!(name in p.in)) continue;
    options.buffer ? gl.bindBuffer(gl.ARRAY_BUFFER, options.buffer) : buffer(data);
    const kind = TYPES.get(data.constructor);
    gl.enableVertexAttribArray(p.in[name]);
    gl.vertexAttribPointer(p.in[name], width, kind, kind !== 0x1406, options.stride || 0, options.offset || 0);
    if (options.each) gl.vertexAttribDivisor(p.in[name], 1);
  }
  gl.bindVertexArray(null);
  return vao;
}

let programs, things;
function prepare() {
  programs = {};
  for (const name in SHADERS) programs[name] = program(SHADERS[name]);
  things = {
    backdrop: attributes(programs[backdropName], { aPlace: [new Float32Array([-1, -1, 3, -1, -1, 3]), 2] }),
    arrow: solid(scene.arrow),
    bodies: scene.bodies.map((body) => body.mesh && solid(body.mesh)),
    trails: scene.bodies.map((body) => (body.trail && !scene.live ? trailOf(body) : null)),
    paths: scene.paths.map((path) => strip(path.rows, Float32Array.from({ length: path.rows.length / 3 }, (_, k) => k))),
    ghosts: scene.ghosts.map(ghostsOf),
  };
}
const cornersOf = (mesh) => Float32Array.from(array(mesh.places), (v) => v * mesh.unit);
function solid(mesh) {
  const p = cornersOf(mesh), n = array(mesh.normals), c = new Uint8Array(4 * (p.length / 3));
  let at = 0;
  for (const [count, ...color] of mesh.colors) {
    for (const end = at + count; at < end; at++) c.set(color, 4 * at);
  }
  const layout = { aPlace: [p, 3], aNormal: [n, 3], aColor: [c, 4] };
  return {
    solid: attributes(programs.solid, layout), shadow: attributes(programs.shadow, layout),
    opaque: mesh.opaque, count: p.length / 3,
  };
}
// Two corners per point on either side of the line, each knowing the next point.
function strip(rows, times) {
  const n = rows.length / 3;
  const P = new Float32Array(6 * n), N = new Float32Array(6 * n), T = new Float32Array(2 * n), S = new Float32Array(2 * n);
  for (let k = 0; k < n; k++) {
    for (let s = 0; s < 2; s++) {
      for (let j = 0; j < 3; j++) {
        const here = rows[3 * k + j];
        P[6 * k + 3 * s + j] = here;
        N[6 * k + 3 * s + j] = k + 1 < n ? rows[3 * k + 3 + j] : 2 * here - rows[Math.max(3 * k - 3 + j, j)];
      }
      T[2 * k + s] = times[k];
      S[2 * k + s] = s ? 1 : -1;
    }
  }
  return { vao: attributes(programs.trail, { aPlace: [P, 3], aNext: [N, 3], aTime: [T, 1], aSide: [S, 1] }), count: 2 * n };
}
function trailOf(body) {
  const made = strip(body.places, Float32Array.from(body.times));
  if (scene.ground && body.curtain) {
    // A curtain from the path down to the ground shows how high it is.
    const n = body.times.length, P = new Float32Array(6 * n), T = new Float32Array(2 * n), F = new Float32Array(2 * n);
    for (let k = 0; k < n; k++) {
      for (let j = 0; j < 3; j++) P[6 * k + j] = P[6 * k + 3 + j] = body.places[3 * k + j];
      P[6 * k + 5] = scene.ground.height - body.origin[2];
      T[2 * k] = T[2 * k + 1] = body.times[k];
      F[2 * k] = 1; F[2 * k + 1] = 0.12;
    }
    made.curtain = attributes(programs.thin, { aPlace: [P, 3], aTime: [T, 1], aFade: [F, 1] });
  }
  return made;
}
function ghostsOf(ghosts) {
  const mesh = scene.dart, n = ghosts.count, m = ghosts.times ? ghosts.times.length : 0;
  const rows = new Float32Array(7 * n);
  const each = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, each);
  gl.bufferData(gl.ARRAY_BUFFER, rows, gl.DYNAMIC_DRAW);
  const layout = {
    aPlace: [cornersOf(mesh), 3], aNormal: [array(mesh.normals), 3],
    iPlace: [rows, 3, { buffer: each, stride: 28, each: true }],
    iTurn: [rows, 4, { buffer: each, stride: 28, offset: 12, each: true }],
  };
  if (!ghosts.times) return { rows, each, vao: attributes(programs.ghost, layout), vertices: array(mesh.places).length / 3 };
  const lines = Math.min(ghosts.lines, bySoftware ? 40 : 1e9), P = new Float32Array(lines * (m - 1) * 6), T = new Float32Array(lines * (m - 1) * 2);
  for (let i = 0, at = 0; i < lines; i++) {
    const g = Math.floor((i * n) / lines);
    for (let k = 0; k + 1 < m; k++) {
      for (let s = 0; s < 2; s++, at++) {
        const row = 3 * (g * m + k + s);
        const known = ghosts.places[row] !== -32768 && ghosts.places[3 * (g * m + k + 1 - s)] !== -32768;
        for (let j = 0; j < 3; j++) P[3 * at + j] = known ? ghosts.places[row + j] * ghosts.unit : 0;
        T[at] = known ? ghosts.times[k + s] : 1e30;
      }
    }
  }
  const F = new Float32Array(T.length).fill(1);
  return {
    rows, each, vao: attributes(programs.ghost, layout), vertices: array(mesh.places).length / 3,
    thin: attributes(programs.thin, { aPlace: [P, 3], aTime: [T, 1], aFade: [F, 1] }), points: T.length,
  };
}

// Where each ghost is now: straight between two of its samples; those that are gone are not drawn.
function moveGhosts(ghosts, made, t, stride, move, near) {
  const m = ghosts.times.length, [k, part] = place(ghosts.times, t), { places, turns, unit } = ghosts;
  let drawn = 0;
  const next = Math.min(k + 1, m - 1);
  for (let g = 0; g < ghosts.count; g += stride) {
    const a = 3 * (g * m + k), b = 3 * (g * m + next), at = 7 * drawn;
    if (places[a] === -32768 || places[b] === -32768) continue;
    for (let j = 0; j < 3; j++) made.rows[at + j] = (places[a + j] + part * (places[b + j] - places[a + j])) * unit;
    const x = made.rows[at] + move[0], y = made.rows[at + 1] + move[1], z = made.rows[at + 2] + move[2];
    if (x * x + y * y + z * z < near * near) continue;
    if (turns) {
      const c = 4 * (g * m + k), d = 4 * (g * m + next);
      let s = 0;
      for (let j = 0; j < 4; j++) s += turns[c + j] * turns[d + j];
      s = s < 0 ? -1 : 1;
      let norm = 0;
      for (let j = 0; j < 4; j++) {
        const v = turns[c + j] + part * (s * turns[d + j] - turns[c + j]);
        made.rows[at + 3 + j] = v;
        norm += v * v;
      }
      norm = 1 / Math.sqrt(norm || 1);
      for (let j = 0; j < 4; j++) made.rows[at + 3 + j] *= norm;
    } else {
      made.rows[at + 3] = 1; made.rows[at + 4] = made.rows[at + 5] = made.rows[at + 6] = 0;
    }
    drawn++;
  }
  gl.bindBuffer(gl.ARRAY_BUFFER, made.each);
  gl.bufferSubData(gl.ARRAY_BUFFER, 0, made.rows.subarray(0, 7 * drawn));
  return drawn;
}
