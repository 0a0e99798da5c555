// A camera on a sphere about what it looks at; azimuth and elevation in rad, distance in m.
const lens = 0.75; // vertical field of view in rad
const camera = {
  mode: scene.camera.mode, body: scene.camera.body,
  azimuth: (scene.camera.azimuth * Math.PI) / 180, elevation: (scene.camera.elevation * Math.PI) / 180,
  distance: scene.camera.distance, target: (scene.camera.target || scene.centre).slice(), course: 0,
};
// Up is away from a planet; from its middle, along its axis.
const onPlanet = (p) => scene.earth && size(p) > 0.5 * scene.earth.radius;
const upAt = (p) => (onPlanet(p) ? unit(p) : [0, 0, 1]);
// Right, ahead and up at a place: east and north on a planet.
function basis(p) {
  const up = upAt(p);
  const east = onPlanet(p) ? unit(cross([0, 0, 1], up)) : [1, 0, 0];
  return [east, cross(up, east), up];
}
function startDistance(mode) {
  const body = scene.bodies[camera.body];
  return mode === "overview" ? scene.extent * 2.2 : body.reach * (mode === "chase" ? 3.6 : 4.2);
}
function setMode(mode) {
  if (mode === "free") camera.target = camera.at ? camera.at.slice() : camera.target;
  else if (mode === "overview" || camera.mode === "overview") camera.distance = startDistance(mode);
  if (mode === "overview") { camera.elevation = clamp(camera.elevation, 0.5, 1.2); camera.azimuth = -2.2; }
  else if (camera.mode === "overview") camera.elevation = 0.3;
  if (mode === "chase" && camera.mode !== "chase") { camera.azimuth = Math.PI; camera.elevation = 0.22; }
  camera.mode = mode;
}
if (!camera.distance && scene.bodies.length) camera.distance = startDistance(camera.mode);
if (camera.mode === "chase" && !scene.camera.given) { camera.azimuth = Math.PI * 0.9; camera.elevation = 0.22; }

// Where the camera is, and which way it looks.
function look(bodies) {
  const body = bodies[camera.body];
  const at = camera.mode === "overview" ? scene.centre : camera.mode === "free" ? camera.target : body.p;
  camera.at = at;
  const [east, north, up] = basis(at);
  let azimuth = camera.azimuth;
  if (camera.mode === "chase") {
    const ahead = [body.m[0], body.m[1], body.m[2]];
    const x = dot(ahead, east), y = dot(ahead, north);
    if (Math.hypot(x, y) > 0.15) camera.course = Math.atan2(y, x);
    azimuth += camera.course;
  }
  const c = Math.cos(camera.elevation), s = Math.sin(camera.elevation);
  const out = add(add(mul(east, c * Math.cos(azimuth)), mul(north, c * Math.sin(azimuth))), mul(up, s));
  let eye = add(at, mul(out, camera.distance));
  if (scene.ground) {
    const least = scene.ground.height + 0.02 * camera.distance;
    if (eye[2] < least) eye = [eye[0], eye[1], least];
  }
  if (scene.earth && size(eye) < scene.earth.radius * 1.0002) eye = mul(unit(eye), scene.earth.radius * 1.0002);
  const back = unit(sub(eye, at)), right = unit(cross(up, back)), top = cross(back, right);
  return { eye, back, right, top, up, at };
}
// Clip coordinates from places relative to the camera: turn and project in one matrix.
function projection(view, width, height) {
  const near = clamp(camera.distance * 0.02, 0.01, 2e5);
  const far = Math.max(scene.extent * 6 + camera.distance * 4, near * 100) + (scene.earth ? scene.earth.radius * 4 : 0);
  const f = 1 / Math.tan(lens / 2), a = f / (width / height);
  const p = (far + near) / (near - far), q = (2 * far * near) / (near - far);
  const { right: r, top: u, back: b } = view;
  return {
    near, far, f, a,
    matrix: [
      a * r[0], f * u[0], p * b[0], -b[0], a * r[1], f * u[1], p * b[1], -b[1],
      a * r[2], f * u[2], p * b[2], -b[2], 0, 0, q, 0,
    ],
  };
}
// On wide lenses: how many pixels a metre has at a distance.
const pixelsPer = (height, distance) => height / (2 * Math.tan(lens / 2) * Math.max(distance, 1e-9));
