
async function read(url) {
  if (url.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

/** Load the module: the file beside this one, one at another URL, or bytes (or a WebAssembly.Module). */
export async function load(source = `./${file}`) {
  const isAddress = typeof source === "string" || source instanceof URL;
  return ArcWasm.instantiate(layout, isAddress ? await read(new URL(source, import.meta.url)) : source);
}

export { layout };
