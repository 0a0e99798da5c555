// Everything is drawn relative to the camera, so that metres count beside a planet.
const LIGHT = `
uniform vec3 uSun, uUp;
vec3 lit(vec3 base, vec3 n, vec3 eye) {
  float sky = 0.5 + 0.5 * dot(n, uUp);
  float sun = max(dot(n, uSun), 0.0);
  vec3 h = normalize(uSun + eye);
  // Powers by squaring: without a graphics card, pow costs more than all the rest.
  float g = max(dot(n, h), 0.0), g8 = g * g; g8 *= g8; g8 *= g8;
  float g32 = g8 * g8; g32 *= g32;
  float shine = g32 * g8 * 0.28;
  float away = 1.0 - max(dot(n, eye), 0.0);
  float rim = away * away * away * 0.16 * sky;
  vec3 c = base * (mix(vec3(0.30, 0.29, 0.30), vec3(0.52, 0.57, 0.64), sky) + sun * vec3(0.78, 0.74, 0.66));
  c += shine * sun * vec3(1.0) + rim * vec3(0.8, 0.9, 1.0);
  // What is bright comes near to white, and keeps its shape.
  vec3 over = max(c - 0.7, 0.0);
  return min(c, 0.7) + 0.3 * over / (over + 0.3);
}`;
const SHADERS = {
  solid: [`
in vec3 aPlace; in vec3 aNormal; in vec4 aColor;
uniform mat4 uProject; uniform mat3 uTurn; uniform vec3 uMove; uniform float uScale;
out vec3 vNormal; out vec3 vEye; out vec4 vColor;
void main() {
  vec3 p = uTurn * (aPlace * uScale) + uMove;
  vNormal = uTurn * aNormal; vEye = -p; vColor = aColor;
  gl_Position = uProject * vec4(p, 1.0);
}`, LIGHT + `
in vec3 vNormal; in vec3 vEye; in vec4 vColor; uniform vec4 uTint; out vec4 color;
void main() {
  vec3 n = normalize(vNormal), eye = normalize(vEye);
  if (dot(n, eye) < 0.0) n = -n;
  vec4 base = vec4(mix(vColor.rgb, uTint.rgb, uTint.a), vColor.a);
  color = vec4(lit(base.rgb, n, eye), base.a);
}`],
  shadow: [`
in vec3 aPlace;
uniform mat4 uProject; uniform mat3 uTurn; uniform vec3 uMove; uniform float uScale, uDown; uniform vec3 uSun;
void main() {
  vec3 p = uTurn * (aPlace * uScale) + uMove;
  p -= uSun * ((p.z + uDown) / uSun.z);
  gl_Position = uProject * vec4(p, 1.0);
}`, `
uniform vec4 uTint; out vec4 color; void main() { color = uTint; }`],
  ghost: [`
in vec3 aPlace; in vec3 aNormal; in vec3 iPlace; in vec4 iTurn;
uniform mat4 uProject; uniform vec3 uMove; uniform float uScale, uClear;
out vec3 vNormal; out vec3 vEye; out float vFade;
vec3 spin(vec4 q, vec3 v) { return v + 2.0 * cross(q.yzw, cross(q.yzw, v) + q.x * v); }
void main() {
  vec3 p = spin(iTurn, aPlace * uScale) + iPlace + uMove;
  vNormal = spin(iTurn, aNormal); vEye = -p;
  float d = length(iPlace + uMove);
  vFade = uClear > 0.0 ? smoothstep(1.6, 4.5, d / uClear) : 1.0;
  gl_Position = uProject * vec4(p, 1.0);
}`, LIGHT + `
in vec3 vNormal; in vec3 vEye; in float vFade; uniform vec4 uTint; out vec4 color;
void main() {
  if (vFade < 0.02) discard;
  vec3 n = normalize(vNormal), eye = normalize(vEye);
  if (dot(n, eye) < 0.0) n = -n;
  color = vec4(mix(uTint.rgb, lit(uTint.rgb, n, eye), 0.6), uTint.a * vFade);
}`],
  // A line as a strip of constant width on the screen; what lies ahead in time is faint.
  trail: [`
in vec3 aPlace; in vec3 aNext; in float aTime; in float aSide;
uniform mat4 uProject; uniform vec3 uMove; uniform vec2 uScreen; uniform float uWidth;
out float vTime; out float vSide;
void main() {
  vec4 a = uProject * vec4(aPlace + uMove, 1.0), b = uProject * vec4(aNext + uMove, 1.0);
  float near = 1e-3;
  vec2 along = (b.xy / max(b.w, near) - a.xy / max(a.w, near)) * uScreen;
  if (b.w < near || a.w < near) along = vec2(1.0, 0.0);
  float l = length(along);
  vec2 across = l > 1e-6 ? vec2(-along.y, along.x) / l : vec2(0.0, 1.0);
  a.xy += across * aSide * uWidth / uScreen * a.w;
  vTime = aTime; vSide = aSide;
  gl_Position = a;
}`, `
in float vTime; in float vSide; uniform vec4 uTint; uniform float uNow, uAhead, uDash; out vec4 color;
void main() {
  float edge = 1.0 - smoothstep(0.55, 1.0, abs(vSide));
  float on = vTime <= uNow ? 1.0 : uAhead;
  if (uDash > 0.0 && fract(vTime * uDash) > 0.55) discard;
  color = vec4(uTint.rgb, uTint.a * on * edge);
  if (color.a < 0.004) discard;
}`],
  // Thin lines and curtains: a place, a time, and how opaque.
  thin: [`
in vec3 aPlace; in float aTime; in float aFade;
uniform mat4 uProject; uniform vec3 uMove; out float vTime; out float vFade;
void main() { vTime = aTime; vFade = aFade; gl_Position = uProject * vec4(aPlace + uMove, 1.0); }`, `
in float vTime; in float vFade; uniform vec4 uTint; uniform float uNow, uAhead; out vec4 color;
void main() {
  color = vec4(uTint.rgb, uTint.a * vFade * (vTime <= uNow ? 1.0 : uAhead));
  if (color.a < 0.004) discard;
}`],
};
// Sky, ground or planet: one triangle over the screen, a ray for each of its points.
const RAYS = `
in vec2 aPlace; uniform mat3 uRays; uniform vec2 uLens; out vec3 vRay;
void main() { vRay = uRays * vec3(aPlace * uLens, -1.0); gl_Position = vec4(aPlace, 1.0, 1.0); }`;
const SKY = `
in vec3 vRay; out vec4 color;
uniform vec3 uSun, uSkyTop, uSkyLow;
vec3 sky(vec3 ray) {
  float s = max(dot(ray, uSun), 0.0), s4 = s * s * s * s;
  return mix(uSkyLow, uSkyTop, sqrt(clamp(ray.z, 0.0, 1.0))) + vec3(0.12, 0.11, 0.08) * s4 * s4 * s4;
}`;
SHADERS.plain = [RAYS, SKY + `
void main() { color = vec4(sky(normalize(vRay)), 1.0); }`];
SHADERS.ground = [RAYS, SKY + `
uniform vec3 uGround, uGrid; uniform float uHeight, uPerCell, uPerFar; uniform vec2 uHere;
// How much of a point is covered by lines a cell apart, given how many points a cell spans.
float lines(vec2 at, vec2 points, float width) {
  vec2 l = clamp(width + 0.5 - abs(fract(at - 0.5) - 0.5) * points, 0.0, 1.0);
  return max(l.x, l.y);
}
void main() {
  if (vRay.z > -1e-4 || uHeight <= 0.0) {
    vec3 ray = normalize(vRay);
    color = vec4(mix(uSkyLow, sky(ray), clamp(ray.z * 50.0, 0.0, 1.0)), 1.0);
    return;
  }
  // The ray is as long as it comes: where it meets the ground, its length is no matter.
  vec3 reach = vRay * (uHeight / -vRay.z);
  vec2 at = uHere + reach.xy * uPerCell;
  vec2 wide = max(fwidth(at), 1e-6), points = 1.0 / wide;
  float w = max(wide.x, wide.y);
  float fine = lines(at, points, 0.5) * 0.5 * clamp(1.25 - 3.0 * w, 0.0, 1.0);
  float main_ = lines(at * 0.1, points * 10.0, 0.9) * 0.9 * clamp(1.25 - 0.3 * w, 0.0, 1.0);
  vec3 off = reach * uPerFar;
  float haze = dot(off, off);
  color = vec4(mix(mix(uGround, uGrid, max(fine, main_)), uSkyLow, haze / (1.0 + haze)), 1.0);
}`];
SHADERS.planet = [RAYS, `
in vec3 vRay; out vec4 color;
uniform vec3 uSun, uPlanet, uRayAhead; uniform float uExcess, uNear, uDeep, uScaleDeep; uniform mat3 uEarth;
float spot(vec3 p) { return fract(sin(dot(floor(p), vec3(12.99, 78.23, 37.72))) * 43758.55); }
// A planet of radius 1; uPlanet is its centre from the camera, uExcess its distance squared less 1.
void main() {
  vec3 ray = normalize(vRay);
  gl_FragDepth = 1.0;
  float b = dot(uPlanet, ray), d = b * b - uExcess;
  if (d <= 0.0 || b <= 0.0) {
    vec3 p = ray * 180.0;
    float star = spot(p);
    vec3 c = vec3(0.016, 0.020, 0.034) + vec3(smoothstep(0.9975, 1.0, star)) * (0.35 + 0.5 * fract(star * 7919.0)) *
      (1.0 - smoothstep(0.25, 0.6, length(fract(p) - 0.5)));
    float miss = sqrt(max(uExcess + 1.0 - b * b, 0.0)); // how far the ray passes from the centre
    float air = b > 0.0 ? exp(-max(miss - 1.0, 0.0) * 60.0) : 0.0;
    vec3 side = normalize(ray * b - uPlanet);
    color = vec4(c + vec3(0.25, 0.5, 0.95) * air * 0.75 * smoothstep(-0.35, 0.4, dot(side, uSun)), 1.0);
    return;
  }
  float far = uExcess / (b + sqrt(d));
  vec3 n = normalize(ray * far - uPlanet), e = uEarth * n;
  float lat = asin(clamp(e.z, -1.0, 1.0)) * 57.29578, lon = atan(e.y, e.x) * 57.29578;
  float wlat = fwidth(lat) + 1e-5, wlon = min(fwidth(lon), 5.0) + 1e-5;
  float cell = uNear > 0.6 ? 15.0 : uNear > 0.12 ? 5.0 : 1.0;
  float gl = 1.0 - smoothstep(wlat * 0.6, wlat * 1.5, abs(fract(lat / cell - 0.5) - 0.5) * cell);
  float gm = 1.0 - smoothstep(wlon * 0.6, wlon * 1.5, abs(fract(lon / cell - 0.5) - 0.5) * cell);
  if (abs(lat) > 84.0) gm = 0.0;
  float main_ = max(1.0 - smoothstep(wlat, wlat * 2.2, abs(lat)), (1.0 - smoothstep(wlon, wlon * 2.2, abs(lon))) * step(abs(lat), 84.0));
  float day = smoothstep(-0.12, 0.25, dot(n, uSun)), view = max(dot(n, -ray), 0.0);
  vec3 sea = mix(vec3(0.045, 0.14, 0.30), vec3(0.07, 0.26, 0.47), view);
  vec3 g = mix(sea, vec3(0.55, 0.75, 0.95), max(max(gl, gm) * 0.34, main_ * 0.85));
  float s = max(dot(reflect(ray, n), uSun), 0.0), s8 = s * s, rim = 1.0 - view; s8 *= s8; s8 *= s8;
  float shine = s8 * s8 * s8 * 0.22;
  g = g * mix(0.16, 1.15, day) + shine * day * vec3(1.0, 0.95, 0.85);
  color = vec4(g + vec3(0.22, 0.45, 0.9) * (rim * rim * rim * sqrt(rim)) * mix(0.12, 0.9, day), 1.0);
  gl_FragDepth = clamp(uDeep * (1.0 - 1.0 / max(far * dot(ray, uRayAhead) * uScaleDeep, 1.0)), 0.0, 1.0);
}`];
