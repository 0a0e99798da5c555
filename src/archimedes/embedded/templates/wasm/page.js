
(async () => {
  const message = document.getElementById("message");
  if (typeof WebAssembly === "undefined") {
    message.textContent = "This browser has no WebAssembly, so the model cannot run here.";
    return;
  }
  const model = await ArcWasm.instantiate(model_data.layout, ArcWasm.bytes(model_data.wasm));
  const [[, layout]] = model.layout.functions;
  const fn = model.functions[model.layout.functions[0][0]];
  const show = (view, leaf) => Array.from(view, (x) => (leaf.dtype === "bool" ? Boolean(x) : x)).join(", ");
  function rows(table, leaves, cell) {
    for (const leaf of leaves) {
      const row = table.insertRow();
      row.insertCell().textContent = leaf.path;
      row.insertCell().append(cell(leaf));
      row.insertCell().textContent = leaf.units || "";
    }
  }
  const results = [];
  function compute() {
    fn.run();
    for (const [leaf, cell] of results) cell.textContent = show(fn.outputs[leaf.path], leaf);
  }
  rows(document.getElementById("inputs"), layout.inputs, (leaf) => {
    const field = document.createElement("input");
    field.setAttribute("aria-label", leaf.path);
    field.value = show(fn.inputs[leaf.path], leaf);
    field.addEventListener("input", () => {
      const words = field.value.split(",").map((word) => word.trim());
      const view = fn.inputs[leaf.path];
      try {
        if (words.length !== view.length) throw new Error(`${leaf.path}: ${view.length} numbers are needed`);
        const numbers = words.map((word) => (leaf.dtype === "int64" ? BigInt(word) : word === "true" ? 1 : Number(word)));
        view.set(numbers);
        message.textContent = "";
        compute();
      } catch (error) {
        message.textContent = String(error.message);
      }
    });
    return field;
  });
  rows(document.getElementById("outputs"), layout.outputs, (leaf) => {
    const cell = document.createElement("output");
    results.push([leaf, cell]);
    return cell;
  });
  compute();
  document.documentElement.dataset.ready = "yes";
})();
