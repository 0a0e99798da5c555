// A model in WebAssembly: state and controls are rows of doubles. The same text runs in a worker.
class Simulation {
  constructor(about, functions) {
    this.about = about;
    this.functions = functions;
    this.controls = Float64Array.from(about.controls);
    this.fired = -1;
    this.reset();
  }
  static async load(about, bytes) {
    const model = await ArcWasm.instantiate(about.layout, bytes);
    return new Simulation(about, model.functions);
  }
  reset(state = this.about.state) {
    this.k = 0; // the number of the step: time is never summed up
    this.s = Float64Array.from(state);
    this.fired = -1;
    this.bad = -1;
  }
  get t() { return this.k * this.about.dt; }
  // Run a function of the model on the present state.
  call(name) {
    const f = this.functions[name];
    f.inputs.t[0] = this.t;
    f.inputs.s.set(this.s);
    f.inputs.c.set(this.controls);
    f.run();
    return f.outputs;
  }
  step() {
    this.take(this.call("step"), 1);
  }
  // So many steps at once: by the adaptive solver, where the model is an equation and not a step.
  advance(count) {
    if (!this.functions.advance) {
      for (let i = 0; i < count && !this.stopped; i++) this.step();
      return;
    }
    this.functions.advance.inputs.t_next[0] = (this.k + count) * this.about.dt;
    this.take(this.call("advance"), count);
  }
  take(outputs, count) {
    this.s.set(outputs.y0);
    this.k += count;
    for (let j = 0; j < this.s.length; j++) if (this.s[j] - this.s[j] !== 0) { this.bad = j; break; }
    this.about.events.forEach((event, j) => {
      if (outputs.y1[j] === 1 && event.terminal && this.fired < 0) this.fired = j;
    });
  }
  // A model that has diverged, or met an event that ends it, stays as it is.
  get stopped() { return this.bad >= 0 || this.fired >= 0; }
  show() { return this.call("show").y; }
}
// Dispersed copies of one model: each has its own state and controls; all see the same changes.
class Copies {
  constructor(simulation, states, controls) {
    this.simulation = simulation;
    this.count = states.length / simulation.s.length;
    this.first = states;
    this.controls = controls.slice();
    this.nominal = simulation.controls.slice();
    this.poses = new Float32Array(7 * this.count);
    this.reset();
  }
  reset() { this.states = this.first.slice(); this.k = 0; this.over = new Uint8Array(this.count); }
  // What a reader moves moves with all copies; what is dispersed stays dispersed about it.
  set(index, value) {
    const old = this.nominal[index], m = this.nominal.length;
    this.nominal[index] = value;
    for (let at = index; at < this.controls.length; at += m) this.controls[at] = this.controls[at] === old ? value : this.controls[at] + (value - old);
  }
  // Run all copies up to a step; changes are [step, index, value], in order.
  run(to, changes, origin) {
    const one = this.simulation, n = one.s.length, m = one.controls.length;
    let at = 0;
    while (this.k < to) {
      while (at < changes.length && changes[at][0] <= this.k) this.set(changes[at][1], changes[at++][2]);
      const end = at < changes.length ? Math.min(to, changes[at][0]) : to;
      for (let i = 0; i < this.count; i++) {
        if (this.over[i]) continue;
        one.reset(this.states.subarray(i * n, (i + 1) * n));
        one.k = this.k;
        one.controls.set(this.controls.subarray(i * m, (i + 1) * m));
        while (one.k < end && !one.stopped) one.step();
        if (one.stopped) this.over[i] = 1;
        this.states.set(one.s, i * n);
        const seen = one.show(), keep = one.bad < 0;
        for (let j = 0; j < 7; j++) this.poses[7 * i + j] = keep ? seen[j] - (j < 3 ? origin[j] : 0) : NaN;
      }
      this.k = end;
    }
    while (at < changes.length) this.set(changes[at][1], changes[at++][2]);
    return this.poses;
  }
}
// In a worker: load the model, then run as far as the page asks.
function serveCopies() {
  let copies = null;
  onmessage = async ({ data }) => {
    if (data.about) {
      copies = new Copies(await Simulation.load(data.about, data.bytes), data.states, data.controls);
      postMessage({ ready: true });
    } else {
      if (data.reset) copies.reset();
      postMessage({ k: data.to, round: data.round, poses: copies.run(data.to, data.changes, data.origin).slice() });
    }
  };
}
