// Calls of a WebAssembly module that Archimedes generated: checked arguments, views of its memory, batches.
const ArcWasm = (() => {
  "use strict";
  const KINDS = {
    float64: { array: Float64Array, bytes: 8 },
    float32: { array: Float32Array, bytes: 4 },
    int64: { array: BigInt64Array, bytes: 8 },
    bool: { array: Uint8Array, bytes: 1 },
  };
  const LEAST = -(2n ** 63n);
  const MOST = 2n ** 63n - 1n;
  const ROW = 12;

  function describe(value) {
    if (value === null || value === undefined) return String(value);
    if (typeof value === "object" || typeof value === "function") {
      const name = value.constructor && value.constructor.name;
      const length = Array.isArray(value) || ArrayBuffer.isView(value) ? `(${value.length})` : "";
      return `${typeof name === "string" && name ? name : typeof value}${length}`;
    }
    return typeof value === "string" ? `the string ${JSON.stringify(value)}` : `${typeof value} ${String(value)}`;
  }

  function wrong(path, wanted, value) {
    return new TypeError(`${path}: ${wanted} is needed, got ${describe(value)}`);
  }

  // One number, in the form that a typed array takes.
  const CONVERT = {
    float64: (value, path) => {
      if (typeof value !== "number") throw wrong(path, "a number", value);
      return value;
    },
    int64: (value, path) => {
      if (typeof value !== "bigint" && !Number.isInteger(value)) throw wrong(path, "an integer (number or BigInt)", value);
      const whole = BigInt(value);
      if (whole < LEAST || whole > MOST) throw wrong(path, "an integer of 64 bits", value);
      return whole;
    },
    bool: (value, path) => {
      if (value !== true && value !== false && value !== 0 && value !== 1) throw wrong(path, "a boolean", value);
      return Number(value);
    },
  };
  CONVERT.float32 = CONVERT.float64;

  // Write an array of any nesting to its elements, row-major.
  function fill(view, at, shape, leaf, value, path) {
    const size = shape.reduce((a, b) => a * b, 1);
    const text = `an array of shape [${shape.join(", ")}]`;
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      if (value.length !== size) throw wrong(path, text, value);
      if (value.constructor === view.constructor && leaf.dtype !== "bool") {
        view.set(value, at);
        return;
      }
    } else if (!Array.isArray(value)) {
      throw wrong(path, text, value);
    } else if (shape.length > 1 && value.length === shape[0] && (value.length !== size || typeof value[0] === "object")) {
      const step = shape[0] ? size / shape[0] : 0;
      for (let k = 0; k < value.length; ++k) fill(view, at + k * step, shape.slice(1), leaf, value[k], `${path}[${k}]`);
      return;
    } else if (value.length !== size) {
      throw wrong(path, text, value);
    }
    const convert = CONVERT[leaf.dtype];
    for (let k = 0; k < size; ++k) view[at + k] = convert(value[k], `${path}[${k}]`);
  }

  function put(view, leaf, value, path) {
    if (leaf.shape.length === 0) view[0] = CONVERT[leaf.dtype](value, path);
    else fill(view, 0, leaf.shape, leaf, value, path);
  }

  function take(view, leaf) {
    if (leaf.shape.length) return view.slice();
    return leaf.dtype === "bool" ? view[0] !== 0 : view[0];
  }

  // Names such as __proto__ and constructor are names like others.
  function has(value, name) {
    return Object.hasOwn(value, name) || (name in value && !(name in Object.prototype));
  }

  function putTree(tree, value, path, views, leaves) {
    if (tree.leaf !== undefined) {
      put(views[tree.leaf], leaves[tree.leaf], value, path);
    } else if (tree.object) {
      if (typeof value !== "object" || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) {
        throw wrong(path, `an object with ${tree.object.map(([name]) => name).join(", ") || "no names"}`, value);
      }
      const names = new Set(tree.object.map(([name]) => name));
      for (const name of Object.keys(value)) {
        if (!names.has(name)) throw new TypeError(`${path}: there is no ${JSON.stringify(name)}; the names are ${[...names].join(", ")}`);
      }
      for (const [name, child, label] of tree.object) {
        const fixed = child.fixed !== undefined;
        if (!has(value, name)) {
          if (fixed) continue;
          throw new TypeError(`${path}${label} is missing`);
        }
        putTree(child, value[name], `${path}${label}`, views, leaves);
      }
    } else if (tree.list) {
      const all = Array.isArray(value) || ArrayBuffer.isView(value);
      if (!all || value.length !== tree.list.length) throw wrong(path, `an array of ${tree.list.length}`, value);
      tree.list.forEach((child, k) => putTree(child, value[k], `${path}[${k}]`, views, leaves));
    }
  }

  function takeTree(tree, views, leaves) {
    if (tree.leaf !== undefined) return take(views[tree.leaf], leaves[tree.leaf]);
    if (tree.list) return tree.list.map((child) => takeTree(child, views, leaves));
    if (!tree.object) return null;
    const made = {};
    for (const [name, child] of tree.object) {
      const value = takeTree(child, views, leaves);
      Object.defineProperty(made, name, { value, enumerable: true, writable: true, configurable: true });
    }
    return made;
  }

  function viewsOf(memory, leaves, starts, count = () => 1) {
    return leaves.map((leaf, k) => new KINDS[leaf.dtype].array(memory.buffer, starts[k], leaf.size * count(k)));
  }

  // Views by path, made anew after the memory has grown.
  class Views {
    constructor(memory, leaves, starts, count) {
      this.make = () => viewsOf(memory, leaves, starts, count);
      this.memory = memory;
      this.leaves = leaves;
      this.buffer = null;
    }
    get all() {
      if (this.buffer !== this.memory.buffer) {
        this.list = this.make();
        this.byPath = Object.create(null);
        this.leaves.forEach((leaf, k) => { this.byPath[leaf.path] = this.list[k]; });
        this.buffer = this.memory.buffer;
      }
      return this;
    }
  }

  class Batch {
    constructor(fn, n, shared) {
      if (!fn.layout.batch) throw new TypeError(`${fn.name} was generated without a batch: leave out options={"batch": False}`);
      if (!Number.isInteger(n) || n < 0) throw wrong("batch", "a number of instances", n);
      const { inputs, outputs } = fn.layout;
      for (const path of shared) {
        if (!inputs.some((leaf) => leaf.path === path)) throw new TypeError(`batch: shared names ${JSON.stringify(path)}, which is no input`);
      }
      const one = new Set(shared);
      const leaves = [...inputs, ...outputs];
      const counts = leaves.map((leaf, k) => (k < inputs.length && one.has(leaf.path) ? 1 : n));
      let at = ROW * leaves.length;
      const offsets = leaves.map((leaf, k) => {
        const start = Math.ceil(at / 8) * 8;
        at = start + leaf.size * counts[k] * KINDS[leaf.dtype].bytes;
        return start;
      });
      const base = fn.reserve(at);
      const starts = offsets.map((x) => x + base);
      this.n = n;
      this.fn = fn;
      this.table = base;
      const table = new Int32Array(fn.memory.buffer, base, 3 * leaves.length);
      leaves.forEach((leaf, k) => {
        const item = KINDS[leaf.dtype].bytes;
        table.set([starts[k], counts[k] === 1 && n !== 1 ? 0 : leaf.size * item, item], 3 * k);
      });
      const m = inputs.length;
      this.given = new Views(fn.memory, inputs, starts.slice(0, m), (k) => counts[k]);
      this.made = new Views(fn.memory, outputs, starts.slice(m), (k) => counts[m + k]);
      // What a single call has now is what all instances have at first.
      fn.given.all.list.forEach((view, k) => {
        for (let i = 0; i < counts[k]; ++i) this.given.all.list[k].set(view, i * view.length);
      });
    }
    get inputs() { return this.given.all.byPath; }
    get outputs() { return this.made.all.byPath; }
    run() { this.fn.exports[this.fn.layout.batch](this.n, this.table); }
  }

  class Fn {
    constructor(name, layout, exports, reserve) {
      this.name = name;
      this.layout = layout;
      this.exports = exports;
      this.memory = exports.memory;
      this.region = [0, 0];
      this.reserveNew = reserve;
      this.given = new Views(this.memory, layout.inputs, layout.inputs.map((leaf) => leaf.offset));
      this.made = new Views(this.memory, layout.outputs, layout.outputs.map((leaf) => leaf.offset));
      this.first = this.given.all.list.map((view) => view.slice());
      this.run = exports[layout.export];
    }
    get inputs() { return this.given.all.byPath; }
    get outputs() { return this.made.all.byPath; }
    reset() {
      this.given.all.list.forEach((view, k) => view.set(this.first[k]));
    }
    carry(pairs) {
      const { inputs, outputs } = this;
      for (const [to, from] of pairs) inputs[to].set(outputs[from]);
    }
    call(...args) {
      const wanted = this.layout.arguments;
      if (args.length !== wanted.length) {
        const names = wanted.map(({ name }) => name).join(", ");
        throw new TypeError(`${this.name} takes ${wanted.length} arguments (${names}), got ${args.length}`);
      }
      const views = this.given.all.list;
      wanted.forEach(({ name, tree }, k) => putTree(tree, args[k], name, views, this.layout.inputs));
      this.run();
      return takeTree(this.layout.result, this.made.all.list, this.layout.outputs);
    }
    batch(n, { shared = [] } = {}) { return new Batch(this, n, shared); }
    reserve(bytes) {
      if (this.region[1] < bytes) this.region = [this.reserveNew(bytes), bytes];
      return this.region[0];
    }
  }

  async function instantiate(layout, source) {
    const made = await WebAssembly.instantiate(source, {});
    const { exports } = made instanceof WebAssembly.Instance ? made : made.instance;
    const { memory } = exports;
    let end = memory.buffer.byteLength;
    function reserve(bytes) {
      const start = end;
      const missing = start + bytes - memory.buffer.byteLength;
      if (missing > 0) {
        try {
          memory.grow(Math.ceil(missing / 65536));
        } catch {
          throw new RangeError(`batch: there is no memory for ${bytes} bytes more`);
        }
      }
      end = Math.ceil((start + bytes) / 16) * 16;
      return start;
    }
    const functions = Object.create(null);
    for (const [name, own] of layout.functions) functions[name] = new Fn(name, own, exports, reserve);
    const model = { layout, memory, exports, functions };
    const only = layout.functions.length === 1 ? functions[layout.functions[0][0]] : null;
    if (only) {
      model.call = (...args) => only.call(...args);
      model.batch = (...args) => only.batch(...args);
    }
    return model;
  }

  function bytes(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }

  return { instantiate, bytes };
})();
