// Controls and sequence of the page, and their connection with the pictures of page_panel.js.

function swatch(code) {
  const made = element("span", { className: "swatch" });
  made.style.background = code;
  return made;
}

/** Mark the residue under the pointer in the sequence and in the other pictures. */
function mark(row, from) {
  for (const old of document.querySelectorAll(".residue.hovered")) old.classList.remove("hovered");
  if (row >= 0) document.getElementById(`r${row}`).classList.add("hovered");
  for (const panel of panels) if (panel !== from) panel.highlight(row);
}

/** Select a residue: alone, with a range from the last one, or in addition. */
function choose(row, range, add) {
  const rows = range ? Array.from({ length: Math.abs(row - anchor) + 1 }, (_, i) => Math.min(row, anchor) + i) : [row];
  const remove = add && !range && selected.has(row);
  if (!add && !range) selected.clear();
  for (const one of rows) if (remove) selected.delete(one); else selected.add(one);
  if (!range) anchor = row;
  update();
}

function update({ zoom = selected.size === 1 } = {}) {
  const rows = [...selected].sort((a, b) => a - b);
  for (const cell of document.querySelectorAll(".residue")) cell.setAttribute("aria-selected", selected.has(Number(cell.dataset.row)));
  for (const panel of panels) panel.select(rows, { zoom });
  const text = rows.length === 1 ? [nameOf(rows[0]), ...valuesOf(rows[0])].join(" · ")
    : rows.length ? `${rows.length} residues selected: ${rows.slice(0, 8).map(nameOf).join(", ")}${rows.length > 8 ? ", …" : ""}`
    : "Click on residues in the picture or the sequence; Shift selects a range, Escape clears.";
  document.getElementById("status").textContent = text;
}

/** Return a checkbox that shows and hides a kind of drawing in all pictures. */
function checkbox(kind, text, checked, code) {
  const box = element("input", { type: "checkbox", checked, name: kind });
  box.addEventListener("change", () => busy(() => Promise.all(panels.map(panel => panel.show(kind, box.checked))), `Drawing ${text} …`));
  const label = element("label", {}, box);
  if (code) label.append(swatch(code));
  label.append(text);
  return label;
}

/** Return a list of the colors of the scene. */
function colorList(name, text, chosen, extra) {
  const options = [...extra, ...scene.colors.map((color, i) => [i, color.name])];
  const list = element("select", { name }, ...options.map(([value, label]) => element("option", { value, selected: value === chosen }, label)));
  return [element("label", {}, text, list), list];
}

/** Draw the controls. */
function drawControls() {
  const [colorLabel, color] = colorList("color", "Color", 0, []);
  color.addEventListener("change", () => busy(async () => { await panels[0].recolor(Number(color.value)); paint(); }));
  const [besideLabel, beside] = colorList("beside", "Compare with", scene.beside ?? "", [["", "–"]]);
  beside.addEventListener("change", () => busy(() => compare(beside.value)));
  const kinds = [["cartoon", "Cartoon", true], ["sticks", "Sticks", false], ["surface", "Surface", false]];
  if (scene.groups.length) kinds.push(["patches", "Surface patches", true]);
  if (scene.ligands) kinds.push(["ligands", `Ligands (${scene.ligands})`, true]);
  const edges = scene.edges.map((kind, i) => checkbox(`edges-${i}`, `${kind.name} (${kind.pairs.length})`, true, kind.color));
  const reset = element("button", { type: "button" }, "Reset view"), png = element("button", { type: "button" }, "Save PNG");
  reset.addEventListener("click", () => panels.forEach(panel => panel.home()));
  png.addEventListener("click", () => busy(savePng, "Drawing the pictures for the file …"));
  const form = document.getElementById("controls");
  form.addEventListener("submit", event => event.preventDefault());
  form.append(colorLabel, besideLabel,
    element("fieldset", { "aria-label": "Drawings" }, ...kinds.map(kind => checkbox(...kind))),
    ...(edges.length ? [element("fieldset", { "aria-label": "Edges" }, ...edges)] : []), reset, png);
}

/** Draw the table of groups: a row selects the residues of a group, and zooms to them. */
function drawGroups() {
  if (!scene.groups.length) return;
  const columns = Object.keys(scene.groups[0].values);
  const head = element("tr", {}, ...["", ...columns].map(name => element("th", { scope: "col" }, name)));
  const body = scene.groups.map(({ name, rows, values }) => {
    const button = element("button", { type: "button" }, name);
    const line = element("tr", {}, element("th", { scope: "row" }, button), ...columns.map(column => element("td", {}, values[column])));
    line.addEventListener("click", () => { selected.clear(); rows.forEach(row => selected.add(row)); update({ zoom: true }); });
    return line;
  });
  document.getElementById("groups").append(element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}

/** Draw the sequence: one cell per residue, ten to a group. */
function drawSequence() {
  const section = document.getElementById("sequence");
  let chain, ten, start = 0;
  scene.letter.forEach((letter, row) => {
    if (row === 0 || scene.chain[row] !== scene.chain[row - 1]) {
      chain = element("div", { className: "chain", role: "listbox", "aria-multiselectable": "true", "aria-label": `chain ${scene.chain[row]}` });
      section.append(element("h2", {}, `Chain ${scene.chain[row]}`), chain);
      start = row;
    }
    if ((row - start) % 10 === 0) {
      ten = element("span", { role: "presentation" });
      chain.append(element("span", { className: "ten", role: "presentation" }, element("small", { "aria-hidden": "true" }, scene.number[row]), ten));
    }
    ten.append(element("span", { className: "residue", id: `r${row}`, "data-row": row, role: "option", "aria-selected": "false",
      tabIndex: row === 0 ? 0 : -1 }, letter));
  });
  const rowAt = event => { const cell = event.target.closest(".residue"); return cell ? Number(cell.dataset.row) : -1; };
  section.addEventListener("click", event => { const row = rowAt(event); if (row >= 0) { focusCell(row); choose(row, event.shiftKey, event.ctrlKey || event.metaKey); } });
  section.addEventListener("pointerover", event => mark(rowAt(event)));
  section.addEventListener("pointerleave", () => mark(-1));
  section.addEventListener("keydown", event => {
    const row = rowAt(event), last = scene.letter.length - 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10, Home: -last, End: last };
    if (row < 0 || !(event.key in steps || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(last, row + (steps[event.key] ?? 0)));
    focusCell(next);
    if (event.key in steps) { mark(next); if (event.shiftKey) choose(next, true, false); }
    else choose(row, event.shiftKey, true);
  });
}

function focusCell(row) {
  document.querySelector('.residue[tabindex="0"]').tabIndex = -1;
  const cell = document.getElementById(`r${row}`);
  cell.tabIndex = 0;
  cell.focus({ preventScroll: false });
}

/** Color the sequence as the first picture. */
function paint() {
  const color = scene.colors[panels[0].color];
  color.codes.forEach((code, row) => {
    const cell = document.getElementById(`r${row}`), [r, g, b] = [16, 8, 0].map(shift => ((number(code) >> shift) & 255) / 255)
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    cell.style.background = code;
    cell.style.color = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff"; // WCAG 2.1: the larger contrast
    cell.setAttribute("aria-label", `${nameOf(row)}, ${color.name}: ${color.texts[row]}`);
  });
}

/** Return whether the checkbox of a kind is checked. */
const isShown = kind => document.querySelector(`input[name="${kind}"]`)?.checked ?? false;

async function addPanel(color) {
  const panel = new Panel(color);
  panels.push(panel);
  document.getElementById("panels").append(panel.figure);
  await panel.start();
  const kinds = [...Object.keys(KINDS), "ligands", ...scene.edges.map((_, i) => `edges-${i}`)];
  for (const kind of kinds) await panel.show(kind, isShown(kind));
  panel.home();
  panel.plugin.canvas3d.didDraw.subscribe(() => follow(panel));
}

/** Copy the camera of a picture that was turned to the other one. */
function follow(panel) {
  const other = panels.find(one => one !== panel && one.plugin?.canvas3d);
  if (!other || !(panel.figure.matches(":hover") || panel.figure.contains(document.activeElement))) return;
  const { position, up, target } = panel.plugin.canvas3d.camera.getSnapshot(), last = JSON.stringify([position, up, target]);
  if (last === panel.last) return;
  panel.last = other.last = last;
  other.plugin.canvas3d.camera.setState({ position, up, target }, 0);
  other.plugin.canvas3d.requestDraw();
}

/** Show a second picture with the values of a color, or remove it. */
async function compare(value) {
  if (value === "") {
    const panel = panels.pop();
    panel.figure.remove();
    panel.plugin.dispose();
  } else if (panels.length > 1) await panels[1].recolor(Number(value));
  else {
    const { position, up, target } = panels[0].plugin.canvas3d.camera.getSnapshot();
    await addPanel(Number(value));
    panels[1].plugin.canvas3d.camera.setState({ position, up, target }, 0);
  }
}

/** Save the pictures beside each other, each above its legend, as one PNG file. */
async function savePng() {
  const images = panels.map(() => new Image());
  for (const [i, panel] of panels.entries()) {
    images[i].src = await panel.plugin.helpers.viewportScreenshot.getImageDataUri();
    await images[i].decode();
  }
  const scale = images[0].width / panels[0].canvas.clientWidth, line = 20 * scale, pen = element("canvas").getContext("2d");
  const height = Math.max(...images.map(image => image.height)), width = images.reduce((sum, image) => sum + image.width, 0);
  pen.canvas.width = width;
  pen.canvas.height = height + line * (2 + Math.max(...panels.map(panel => scene.colors[panel.color].categories.length)));
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, width, pen.canvas.height);
  images.reduce((left, image, i) => {
    pen.drawImage(image, left, 0);
    drawLegend(pen, scene.colors[panels[i].color], left + line / 2, height + line, line);
    return left + image.width;
  }, 0);
  const names = [scene.name, ...panels.map(panel => scene.colors[panel.color].name)].join("_").replace(/[^\w.-]+/g, "_");
  element("a", { href: pen.canvas.toDataURL("image/png"), download: `${names}.png` }).click();
}

/** Draw the legend of a color: its name with a scale, or with a line for each category. */
function drawLegend(pen, color, left, top, line) {
  const write = (text, x, y) => { pen.fillStyle = "#1a1a1a"; pen.fillText(text, x, y); return x + pen.measureText(text).width + line / 2; };
  pen.font = `${0.7 * line}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  let x = write([scene.name, color.name, color.unit && `(${color.unit})`].filter(Boolean).join(" "), left, top);
  if (color.stops.length) {
    x = write(color.ends[0], x, top);
    const fill = pen.createLinearGradient(x, 0, x + 7 * line, 0);
    color.stops.forEach((code, i) => fill.addColorStop(i / (color.stops.length - 1), code));
    pen.fillStyle = fill;
    pen.fillRect(x, top - 0.3 * line, 7 * line, 0.6 * line);
    write(color.ends[1], x + 7.5 * line, top);
  }
  color.categories.forEach(([label, code, count], i) => {
    pen.fillStyle = code;
    pen.fillRect(left, top + (i + 0.7) * line, 0.6 * line, 0.6 * line);
    write(`${label} (${count})`, left + line, top + (i + 1) * line);
  });
}

let queue = Promise.resolve(), waiting = 0;
/** Run an action after those before it, with a message on the page; a failure is shown on the page. */
function busy(action, message = "Drawing …") {
  const status = document.getElementById("status");
  waiting += 1;
  document.body.setAttribute("aria-busy", "true");
  status.textContent = message;
  queue = queue.then(async () => {
    await new Promise(resolve => setTimeout(resolve, 50)); // the browser shows the message first
    try {
      await action();
      for (const panel of panels) panel.plugin.canvas3d.commit(true); // else Mol* adds new drawings frames later
      if (waiting === 1) update();
    } catch (error) {
      status.textContent = `The page failed: ${error.message}`;
      reportError(error);
    }
    waiting -= 1;
    document.body.setAttribute("aria-busy", String(waiting > 0));
  });
  return queue;
}

document.addEventListener("keydown", event => { if (event.key === "Escape" && selected.size) { selected.clear(); update(); } });
busy(async () => {
  if (!("DecompressionStream" in window)) throw new Error("this browser is too old (DecompressionStream, 2023).");
  const program = element("script");
  program.textContent = await unpack("molstar");
  document.head.append(program);
  lib = globalThis.molstar.lib;
  scene = JSON.parse(await unpack("scene"));
  drawControls();
  drawGroups();
  drawSequence();
  await addPanel(0);
  paint();
  if (scene.beside === null) return;
  await addPanel(scene.beside);
  panels[0].home(); // its picture is narrower now
}, "Loading the structure …");
