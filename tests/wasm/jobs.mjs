// Runs modules on inputs, in Node and in browsers: single calls, then the same instances as a batch.
//
// jobs: [{wasm, name, batch, count, inputs: [[offset, bytes, item]...], outputs: [...]}...]; given: for
// each job and instance the bytes of its inputs; read(wasm): the bytes of a module. Returns pieces of
// bytes, in the same order: for each job the results of single calls, then those of the batch.
export async function runJobs(jobs, given, read) {
  const made = [];
  const modules = new Map();
  let at = 0;
  const sum = (leaves) => leaves.reduce((total, leaf) => total + leaf[1], 0);
  for (const job of jobs) {
    if (!modules.has(job.wasm)) {
      const module = await WebAssembly.compile(read(job.wasm));
      if (WebAssembly.Module.imports(module).length) throw new Error(`${job.wasm} has imports`);
      modules.set(job.wasm, new WebAssembly.Instance(module).exports);
    }
    const { memory, [job.name]: call, [job.batch]: batch } = modules.get(job.wasm);
    const start = at;
    for (let k = 0; k < job.count; ++k) {
      const bytes = new Uint8Array(memory.buffer);
      for (const [offset, size] of job.inputs) {
        bytes.set(given.subarray(at, at + size), offset);
        at += size;
      }
      call();
      for (const [offset, size] of job.outputs) made.push(bytes.slice(offset, offset + size));
    }
    // The batch: instance after instance, behind all that the module uses.
    const width = { inputs: sum(job.inputs), outputs: sum(job.outputs) };
    const table = memory.buffer.byteLength;
    const rows = job.inputs.length + job.outputs.length;
    const first = table + 16 * rows + 16;
    const total = 16 * rows + 16 + job.count * (width.inputs + width.outputs) + 64;
    memory.grow(Math.ceil(total / 65536));
    const bytes = new Uint8Array(memory.buffer);
    const view = new DataView(memory.buffer);
    bytes.set(given.subarray(start, at), first);
    const results = first + job.count * width.inputs;
    let row = table;
    for (const [side, from] of [["inputs", first], ["outputs", results]]) {
      let offset = from;
      for (const [, size, item] of job[side]) {
        view.setInt32(row, offset, true);
        view.setInt32(row + 4, width[side], true);
        view.setInt32(row + 8, item, true);
        row += 12;
        offset += size;
      }
    }
    batch(job.count, table);
    made.push(bytes.slice(results, results + job.count * width.outputs));
  }
  return made;
}
