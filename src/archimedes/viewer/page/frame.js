// One picture: backdrop, shadows, what is solid, what one sees through, lines, arrows.
const show = { trail: true, ghosts: true, arrows: true, frames: false, labels: true, charts: true, shadow: true };
const SKIES = {
  light: { uSkyTop: [0.40, 0.60, 0.86], uSkyLow: [0.86, 0.91, 0.95], uGround: [0.80, 0.835, 0.84], uGrid: [0.60, 0.655, 0.68], plain: [0.93, 0.95, 0.97] },
  dark: { uSkyTop: [0.035, 0.065, 0.13], uSkyLow: [0.13, 0.165, 0.215], uGround: [0.075, 0.09, 0.11], uGrid: [0.205, 0.24, 0.28], plain: [0.07, 0.085, 0.105] },
};
let theme = "light";
const drawn = { labels: [] };

function resize(quality) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2) * quality;
  const w = Math.max(1, Math.round(canvas.clientWidth * ratio)), h = Math.max(1, Math.round(canvas.clientHeight * ratio));
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
}
const backdropName = scene.ground ? "ground" : scene.earth ? "planet" : "plain";
function backdrop(view, lensing, sun) {
  const look = SKIES[theme], { right: r, top: u, back: b } = view;
  const common = {
    uRays: [...r, ...u, ...b], uLens: [1 / lensing.a, 1 / lensing.f], uSun: sun, uRayAhead: mul(b, -1), ...look,
  };
  if (scene.ground) {
    const cell = scene.ground.cell, whole = cell * 100, height = view.eye[2] - scene.ground.height;
    Object.assign(common, {
      uHeight: height, uPerCell: 1 / cell, uHere: [(view.eye[0] % whole) / cell, (view.eye[1] % whole) / cell],
      uPerFar: 1 / Math.max(scene.extent * 2.6, camera.distance * 5, height * 4),
    });
  } else if (scene.earth) {
    const R = scene.earth.radius, h = size(view.eye) / R - 1;
    const a = scene.earth.angle + scene.earth.rate * now, c = Math.cos(a), s = Math.sin(a);
    Object.assign(common, {
      uPlanet: mul(view.eye, -1 / R), uExcess: h * (2 + h), uNear: h, uEarth: [c, -s, 0, s, c, 0, 0, 0, 1],
      uDeep: lensing.far / (lensing.far - lensing.near), uScaleDeep: R / lensing.near,
    });
  } else {
    Object.assign(common, { uSkyTop: look.plain, uSkyLow: look.plain.map((x) => x * (theme === "dark" ? 1.5 : 0.95)) });
  }
  // Without a planet nothing is behind the backdrop: it leaves the depths as they were cleared.
  gl.depthMask(Boolean(scene.earth)); gl.depthFunc(gl.ALWAYS); gl.disable(gl.BLEND);
  use(programs[backdropName], common);
  gl.bindVertexArray(things.backdrop);
  gl.drawArrays(gl.TRIANGLES, 0, 3);
  gl.depthMask(true);
  gl.depthFunc(gl.LEQUAL);
}
function draw(t, quality = 1) {
  resize(quality);
  const W = canvas.width, H = canvas.height, all = poses(t);
  const view = look(all), lensing = projection(view, W, H);
  const sun = unit(scene.earth ? add(mul(basis(scene.centre)[2], 0.75), [0.35, -0.5, 0.35]) : [0.45, -0.35, 0.82]);
  const common = { uProject: lensing.matrix, uSun: sun, uUp: view.up, uScreen: [W / 2, H / 2], uTint: [0, 0, 0, 0] };
  gl.viewport(0, 0, W, H);
  gl.enable(gl.DEPTH_TEST);
  gl.clear(gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
  backdrop(view, lensing, sun);
  // How large bodies are drawn: those that would vanish on the screen are enlarged.
  const scales = scene.bodies.map((body, k) => {
    if (body.parent !== null) return 1;
    const px = pixelsPer(canvas.clientHeight, size(sub(all[k].p, view.eye))) * body.radius * 2;
    return body.least && px < body.least ? body.least / px : 1;
  });
  scene.bodies.forEach((body, k) => {
    if (body.parent === null) return;
    scales[k] = scales[body.parent];
    const up = all[body.parent];
    all[k].p = add(up.p, mul(sub(all[k].p, up.p), scales[k]));
  });
  const solids = scene.bodies.map((body, k) => ({ body, k, made: things.bodies[k], move: sub(all[k].p, view.eye) })).filter((x) => x.made);
  if (scene.ground && show.shadow) shadows(solids, all, scales, common, view);
  gl.enable(gl.BLEND); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  for (const { made, move, k } of solids) {
    use(programs.solid, { ...common, uTurn: all[k].m, uMove: move, uScale: scales[k] });
    gl.bindVertexArray(made.solid);
    gl.drawArrays(gl.TRIANGLES, 0, made.opaque);
  }
  if (show.ghosts) ghosts(t, common, view, quality);
  gl.depthMask(false);
  if (show.trail) trails(t, common, view);
  gl.depthMask(true);
  if (show.arrows) arrows(t, all, scales, common, view);
  if (show.frames) frames(all, scales, common, view);
  if (hooks.draw) hooks.draw(all, common, view);
  gl.depthMask(false);
  for (const { made, move, k } of solids) {
    if (made.count === made.opaque) continue;
    use(programs.solid, { ...common, uTurn: all[k].m, uMove: move, uScale: scales[k] });
    gl.bindVertexArray(made.solid);
    gl.drawArrays(gl.TRIANGLES, made.opaque, made.count - made.opaque);
  }
  gl.depthMask(true);
  drawn.labels = labels(all, scales, view, lensing);
}
function shadows(solids, all, scales, common, view) {
  gl.enable(gl.BLEND); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  gl.disable(gl.DEPTH_TEST); gl.enable(gl.STENCIL_TEST);
  gl.stencilFunc(gl.EQUAL, 0, 255); gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
  for (const { made, move, k, body } of solids) {
    const height = all[k].p[2] - scene.ground.height, fade = clamp(1.25 - height / (24 * body.reach), 0, 1);
    if (fade <= 0 || height < -body.reach) continue;
    const tint = [0.02, 0.04, 0.08, fade * (theme === "dark" ? 0.55 : 0.32)];
    use(programs.shadow, { ...common, uTurn: all[k].m, uMove: move, uScale: scales[k], uDown: view.eye[2] - scene.ground.height, uTint: tint });
    gl.bindVertexArray(made.shadow);
    gl.drawArrays(gl.TRIANGLES, 0, made.opaque);
  }
  gl.disable(gl.STENCIL_TEST); gl.enable(gl.DEPTH_TEST);
}
// All of them where there is time, every fourth without its line while pictures come slowly.
function ghosts(t, common, view, quality) {
  scene.ghosts.forEach((each, k) => {
    const made = things.ghosts[k], move = sub(each.origin, view.eye), tint = rgb(each.color);
    const typical = size(sub(view.at, view.eye)), px = pixelsPer(canvas.clientHeight, typical) * each.size;
    const scale = each.size * clamp(9 / Math.max(px, 1e-9), 1, 1e9);
    // Those close to the eye would hide what it looks at.
    const clear = camera.mode === "overview" ? 0 : typical;
    const count = each.times ? moveGhosts(each, made, t, quality < 1 ? Math.ceil(each.count / 150) : 1, move, 1.6 * clear) : hooks.ghosts(each, made);
    use(programs.ghost, { ...common, uMove: move, uScale: scale, uClear: clear, uTint: [...tint, 0.62] });
    gl.bindVertexArray(made.vao);
    gl.drawArraysInstanced(gl.TRIANGLES, 0, made.vertices, count);
    if (quality < 1 || !each.times) return;
    gl.depthMask(false);
    use(programs.thin, { ...common, uMove: move, uNow: t, uAhead: 0.35, uTint: [...tint, theme === "dark" ? 0.16 : 0.24] });
    gl.bindVertexArray(made.thin);
    gl.drawArrays(gl.LINES, 0, made.points);
    gl.depthMask(true);
  });
}
function trails(t, common, view) {
  scene.bodies.forEach((body, k) => {
    const made = things.trails[k];
    if (!made) return;
    const move = sub(hooks.origin ? hooks.origin(body) : body.origin, view.eye), tint = rgb(body.color);
    if (made.curtain) {
      use(programs.thin, { ...common, uMove: move, uNow: t, uAhead: 0.0, uTint: [...tint, theme === "dark" ? 0.22 : 0.20] });
      gl.bindVertexArray(made.curtain);
      // Up to the next point: what lies further ahead would be thrown away point by point.
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, Math.min(made.count, 2 * place(body.times, t)[0] + 4));
    }
    use(programs.trail, { ...common, uMove: move, uNow: t, uAhead: 0.28, uDash: 0, uWidth: 2.6 * (canvas.width / canvas.clientWidth), uTint: [...tint, 0.95] });
    gl.bindVertexArray(made.vao);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, made.count);
  });
  scene.paths.forEach((path, k) => {
    const made = things.paths[k];
    use(programs.trail, { ...common, uMove: sub(path.origin, view.eye), uNow: 1e30, uAhead: 1, uDash: path.dashed ? path.dash : 0, uWidth: 1.8 * (canvas.width / canvas.clientWidth), uTint: [...rgb(path.color), 0.8] });
    gl.bindVertexArray(made.vao);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, made.count);
  });
}
// An arrow is drawn as long as its value, and thick enough to be seen.
function oneArrow(from, along, length, thick, color, common, view) {
  if (!(length > 1e-9)) return;
  const m = pointing(along);
  for (let j = 0; j < 3; j++) { m[j] *= length; m[3 + j] *= thick; m[6 + j] *= thick; }
  use(programs.solid, { ...common, uTurn: m, uMove: sub(from, view.eye), uScale: 1, uTint: [...color, 1] });
  gl.bindVertexArray(things.arrow.solid);
  gl.drawArrays(gl.TRIANGLES, 0, things.arrow.count);
}
function arrows(t, all, scales, common, view) {
  for (const arrow of scene.arrows) {
    const at = all[arrow.body], value = between(arrow.rows, 3, place(arrow.times, t));
    const from = add(at.p, turn(at.m, mul(arrow.origin, scales[arrow.body])));
    const reach = scene.bodies[arrow.body].reach * scales[arrow.body];
    oneArrow(from, value, size(value) * arrow.scale * scales[arrow.body], reach * 0.42, rgb(arrow.color), common, view);
  }
}
const AXES = [[0.88, 0.27, 0.24], [0.20, 0.66, 0.33], [0.22, 0.47, 0.90]];
function frames(all, scales, common, view) {
  const triad = (p, m, length) => {
    for (let j = 0; j < 3; j++) oneArrow(p, m.slice(3 * j, 3 * j + 3), length, length * 0.26, AXES[j], common, view);
  };
  scene.bodies.forEach((body, k) => { if (body.framed) triad(all[k].p, all[k].m, 1.25 * body.reach * scales[k]); });
  const least = 60 / pixelsPer(canvas.clientHeight, size(sub(scene.origin, view.eye)));
  triad(scene.origin, [1, 0, 0, 0, 1, 0, 0, 0, 1], Math.max(least, scene.earth ? scene.earth.radius * 1.3 : scene.bodies[0].reach));
}
// Where names belong on the screen, in CSS pixels.
function labels(all, scales, view, lensing) {
  const w = canvas.clientWidth, h = canvas.clientHeight, out = [];
  const project = (p) => {
    const m = lensing.matrix, x = sub(p, view.eye);
    const c = [0, 1, 3].map((k) => m[k] * x[0] + m[4 + k] * x[1] + m[8 + k] * x[2]);
    return c[2] > 0 ? [(0.5 + (0.5 * c[0]) / c[2]) * w, (0.5 - (0.5 * c[1]) / c[2]) * h] : null;
  };
  scene.bodies.forEach((body, k) => {
    if (!body.label || !show.labels) return;
    out.push([scene.live ? body.name.split(": ")[0] : body.name, project(add(all[k].p, mul(view.up, 1.15 * body.reach * scales[k])))]);
  });
  return out;
}
