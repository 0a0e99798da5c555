
async function read(url) {
  if (url.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

/** Load the module: the file beside this one, or other bytes (ArrayBuffer, typed array, WebAssembly.Module). */
export async function load(source) {
  return ArcWasm.instantiate(layout, source ?? (await read(new URL(`./${file}`, import.meta.url))));
}

export { layout };
