// A picture of the scene, drawn by Mol*: structure, edges, colors, pointer and keyboard.
"use strict";
const GRAY = 0xa0a0a0;
const ELEMENTS = { N: 0x3050f8, O: 0xd62728, S: 0xc9a800, P: 0xff8000, SE: 0xffa100 };
const KINDS = {
  cartoon: { type: "cartoon", theme: "value" },
  sticks: { type: "ball-and-stick", theme: "stick", typeParams: { sizeFactor: 0.14 } },
  surface: { type: "molecular-surface", theme: "value", typeParams: { alpha: 0.75 } },
  // includeParent: the surface of the whole protein, of which the residues of the groups are drawn
  patches: { type: "molecular-surface", theme: "value", typeParams: { alpha: 0.6, includeParent: true } },
};
/** Atoms from which the surface is coarser: below [0] exact, else Gaussian; its quality in Mol*. */
const SURFACES = [[3000, "low"], [50000, "lower"], [200000, "lowest"]];
let scene, lib; // data of the page, library of Mol*
const panels = [];
const selected = new Set();
let anchor = 0; // residue from which a range is selected

/** Return the text of a packed script element. */
async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** Return a new element with properties, attributes and children. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const number = code => parseInt(code.slice(1), 16);
const nameOf = row => `${scene.chain[row]}:${scene.type[row]}:${scene.number[row]}`;
const valuesOf = row => scene.colors.map(color => `${color.name}: ${color.texts[row]}`);

/** Return the location of the first atom of a loci; undefined for the background and for edges. */
function locationOf(loci) {
  if (loci.kind === "element-loci") return lib.structure.StructureElement.Loci.getFirstLocation(loci);
  if (loci.kind !== "bond-loci" || !loci.bonds.length) return undefined;
  const { aUnit, aIndex, aStructure } = loci.bonds[0];
  return { kind: "element-location", structure: aStructure, unit: aUnit, element: aUnit.elements[aIndex] };
}

/** Return the row of the residue of a location; -1 for other molecules. */
function rowOf(location) {
  const get = lib.structure.StructureProperties;
  return get.entity.id(location) === "1" ? get.residue.label_seq_id(location) - 1 : -1;
}

/** Return text of the location under the pointer: the residue with its values, or the name of a ligand. */
function describe(location) {
  const row = rowOf(location), get = lib.structure.StructureProperties;
  if (row >= 0) return [nameOf(row), ...valuesOf(row)];
  const code = get.residue.pdbx_PDB_ins_code(location);
  return [`${get.chain.auth_asym_id(location)}:${get.atom.auth_comp_id(location)}:${get.residue.auth_seq_id(location)}${code}`];
}

/** Return triangles of one prism per edge, as PLY text. */
function prisms({ pairs, width, color }) {
  const sides = 5, vertices = [], faces = [], rgb = [16, 8, 0].map(shift => (number(color) >> shift) & 255).join(" ");
  pairs.forEach(([a, b], edge) => {
    const p = scene.pos[a], q = scene.pos[b], d = p.map((x, i) => q[i] - x), length = Math.hypot(...d) || 1;
    const helper = Math.abs(d[0]) < 0.6 * length ? [1, 0, 0] : [0, 1, 0];
    const cross = (u, v) => [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    const unit = v => v.map(x => x / Math.hypot(...v));
    const u = unit(cross(d, helper)), w = unit(cross(d, u)), radius = 0.03 + 0.12 * width[edge], first = vertices.length;
    for (let k = 0; k < sides; k++) {
      const angle = 2 * Math.PI * k / sides, normal = u.map((x, i) => Math.cos(angle) * x + Math.sin(angle) * w[i]);
      for (const end of [p, q])
        vertices.push([...end.map((x, i) => (x + radius * normal[i]).toFixed(2)), ...normal.map(x => x.toFixed(2)), rgb].join(" "));
      const [i, j] = [first + 2 * k, first + 2 * ((k + 1) % sides)];
      faces.push(`3 ${i} ${j} ${i + 1}`, `3 ${j} ${j + 1} ${i + 1}`);
    }
  });
  const properties = ["x", "y", "z", "nx", "ny", "nz"].map(name => `property float ${name}`);
  const colors = ["red", "green", "blue"].map(name => `property uchar ${name}`);
  return ["ply", "format ascii 1.0", `element vertex ${vertices.length}`, ...properties, ...colors,
    `element face ${faces.length}`, "property list uchar int vertex_index", "end_header", ...vertices, ...faces, ""].join("\n");
}

/** One picture of the structure. */
class Panel {
  constructor(color) {
    this.color = color;
    this.shown = new Map(); // kind -> reference in the state of Mol*
    this.canvas = element("canvas", { tabIndex: 0, role: "img" });
    this.tip = element("div", { className: "tip", hidden: true });
    this.picture = element("div", { className: "picture" }, this.canvas, this.tip);
    this.caption = element("figcaption");
    this.figure = element("figure", {}, this.caption, this.picture);
  }

  async start() {
    const spec = lib.plugin.DefaultPluginSpec();
    const off = { name: "off", params: {} }; // occlusion darkens colors, and takes most of the time without a graphics card
    spec.canvas3d = { ...spec.canvas3d, camera: { manualReset: true, helper: { axes: off } }, multiSample: { mode: "off" },
      postprocessing: { ...spec.canvas3d?.postprocessing, occlusion: off },
      renderer: { ...spec.canvas3d?.renderer, backgroundColor: 0xffffff } };
    this.plugin = new lib.plugin.PluginContext(spec);
    await this.plugin.init();
    if (!(await this.plugin.initViewerAsync(this.canvas, this.picture))) throw new Error("WebGL is not available in this browser.");
    scene.colors.forEach((_, i) => { this.register(`value-${i}`, i, false); this.register(`stick-${i}`, i, true); });
    const build = this.plugin.builders;
    const data = await build.data.rawData({ data: scene.structure, label: scene.name });
    const trajectory = await build.structure.parseTrajectory(data, "mmcif");
    this.structure = await build.structure.createStructure(await build.structure.createModel(trajectory));
    this.parts = { polymer: await build.structure.tryCreateComponentStatic(this.structure, "polymer") };
    if (scene.ligands) {
      for (const part of ["ligand", "ion", "branched"])
        this.parts[part] = await build.structure.tryCreateComponentStatic(this.structure, part);
    }
    // groups in gray, i.e. without a value of the first color, have no patch
    const grouped = [...new Set(scene.groups.flatMap(group => group.rows))].filter(row => scene.colors[0].texts[row] !== "none");
    if (grouped.length) {
      const params = lib.structure.StructureElement.Bundle.fromLoci(this.loci(grouped));
      this.parts.patches = await build.structure.tryCreateComponent(this.structure, { type: { name: "bundle", params }, nullIfEmpty: true, label: "patches" }, "patches");
    }
    this.plugin.behaviors.interaction.hover.subscribe(({ current, page }) => this.hover(current.loci, page));
    this.plugin.behaviors.interaction.click.subscribe(({ current, modifiers }) => {
      const location = locationOf(current.loci), row = location ? rowOf(location) : -1;
      if (row >= 0) choose(row, modifiers.shift, modifiers.control || modifiers.meta);
    });
    this.canvas.addEventListener("keydown", event => this.turn(event));
    this.canvas.addEventListener("mouseleave", () => this.hover({ kind: "empty-loci" }));
    this.label();
  }

  /** Add a color theme of Mol* with the values of color i; with elements, atoms besides carbon have their own color. */
  register(name, i, elements) {
    const codes = scene.colors[i].codes.map(number);
    const factory = (_, props) => ({ factory, granularity: "group", props, description: scene.colors[i].name, color: place => {
      const location = place.kind === "bond-location"
        ? { kind: "element-location", structure: place.aStructure, unit: place.aUnit, element: place.aUnit.elements[place.aIndex] } : place;
      if (location.kind !== "element-location" || !location.unit) return GRAY;
      const symbol = elements ? lib.structure.StructureProperties.atom.type_symbol(location) : "C", row = rowOf(location);
      return symbol in ELEMENTS ? ELEMENTS[symbol] : row < 0 ? GRAY : codes[row];
    } });
    this.plugin.representation.structure.themes.colorThemeRegistry.add({
      name, label: scene.colors[i].name, category: "Values", factory, getParams: () => ({}), defaultValues: {}, isApplicable: () => true });
  }

  /** Show or hide a kind of drawing. */
  async show(kind, on) {
    if (on === this.shown.has(kind)) return;
    if (!on) {
      const build = this.plugin.build();
      for (const ref of this.shown.get(kind)) build.delete(ref);
      this.shown.delete(kind);
      await build.commit();
    } else if (kind.startsWith("edges-")) {
      const { Data, Shape, Representation } = lib.plugin.StateTransforms, edges = scene.edges[Number(kind.slice(6))];
      if (!edges.pairs.length) return; // Mol* refuses an empty shape
      const raw = this.plugin.build().toRoot().apply(Data.RawData, { data: prisms(edges), label: edges.name });
      raw.apply(Data.ParsePly).apply(Shape.ShapeFromPly, { label: edges.name }).apply(Representation.ShapeRepresentation3D);
      this.shown.set(kind, [raw.ref]);
      await raw.commit();
    } else {
      const { type, theme, typeParams } = this.drawing(kind), refs = [];
      this.shown.set(kind, refs);
      const parts = { ligands: ["ligand", "ion", "branched"], patches: ["patches"] }[kind] ?? ["polymer"];
      for (const part of parts.filter(part => this.parts[part])) {
        const color = kind === "ligands" ? "element-symbol" : `${theme}-${this.color}`;
        const params = kind === "ligands" ? { sizeFactor: 0.22 } : typeParams ?? {};
        refs.push((await this.plugin.builders.structure.representation.addRepresentation(this.parts[part], { type, color, typeParams: params })).ref);
      }
    }
  }

  /** Return how Mol* draws a kind; surfaces of large structures are coarser, since they take seconds otherwise. */
  drawing(kind) {
    const quality = SURFACES.findLast(([atoms]) => this.structure.data.elementCount >= atoms)?.[1];
    const drawing = KINDS[kind] ?? KINDS.sticks;
    if (drawing.type !== "molecular-surface" || !quality) return drawing;
    return { ...drawing, type: "gaussian-surface", typeParams: { ...drawing.typeParams, quality } };
  }

  /** Color the protein by the values of color i. */
  async recolor(i) {
    this.color = i;
    const build = this.plugin.build();
    for (const [kind, { theme }] of Object.entries(KINDS))
      for (const ref of this.shown.get(kind) ?? [])
        build.to(ref).update(old => { old.colorTheme = { name: `${theme}-${i}`, params: {} }; });
    await build.commit();
    this.label();
  }

  label() {
    const color = scene.colors[this.color], unit = color.unit ? ` (${color.unit})` : "";
    this.caption.replaceChildren(element("strong", {}, color.name + unit));
    if (color.stops.length) {
      const bar = element("span", { className: "bar", role: "img", "aria-label": `color scale from ${color.ends[0]} to ${color.ends[1]}` });
      bar.style.background = `linear-gradient(to right, ${color.stops.join(",")})`;
      this.caption.append(element("span", {}, color.ends[0]), bar, element("span", {}, color.ends[1]));
    }
    for (const [label, code, count] of color.categories) this.caption.append(element("span", { className: "item" }, swatch(code), `${label} (${count})`));
    if (color.missing) this.caption.append(element("span", { className: "item" }, swatch("#bdbdbd"), `no value (${color.missing})`));
    this.canvas.setAttribute("aria-label", `3D structure of ${scene.name}, colored by ${color.name}. Arrow keys turn it, plus and minus zoom.`);
  }

  hover(loci, page) {
    const location = locationOf(loci), row = location ? rowOf(location) : -1;
    mark(row, this);
    this.tip.hidden = !location;
    if (!location) return;
    const [title, ...values] = describe(location), box = this.picture.getBoundingClientRect();
    this.tip.replaceChildren(element("b", {}, title), ...values.flatMap(text => [text, element("br")]));
    const x = page ? page[0] - window.scrollX - box.left : 0, y = page ? page[1] - window.scrollY - box.top : 0;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, box.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${Math.max(0, Math.min(y + 14, box.height - this.tip.offsetHeight - 4))}px`;
  }

  loci(rows) {
    const schema = { prefix: { label_entity_id: "1" }, items: { label_seq_id: rows.map(row => row + 1) } };
    return lib.structure.StructureElement.Loci.fromSchema(this.structure.data, schema);
  }

  highlight(row) {
    const manager = this.plugin.managers.interactivity.lociHighlights;
    if (row < 0) manager.clearHighlights(); else manager.highlightOnly({ loci: this.loci([row]) }, false);
  }

  select(rows, { zoom = false } = {}) {
    const manager = this.plugin.managers.interactivity.lociSelects;
    manager.deselectAll();
    if (!rows.length) return;
    const loci = this.loci(rows);
    manager.select({ loci }, false);
    if (zoom) this.plugin.managers.camera.focusLoci(loci, { durationMs: 0 });
  }

  /** Fit all atoms into the picture, the longest axis of the protein along its longer side; Mol* leaves a wide margin. */
  home() {
    const { camera } = this.plugin.canvas3d, { clientWidth: width, clientHeight: height } = this.picture, { units, boundary } = this.structure.data;
    const [long, middle, back] = scene.axes, isTall = height > width;
    const right = isTall ? middle.map(x => -x) : long, up = isTall ? long : middle;
    const along = (axis, p) => axis[0] * p[0] + axis[1] * p[1] + axis[2] * p[2];
    const places = units.flatMap(({ elements, conformation: c }) => Array.from(elements, e => [c.x(e), c.y(e), c.z(e)]))
      .map(p => [along(right, p), along(up, p), along(back, p)]);
    const [x, y] = [0, 1].map(i => places.reduce(([low, high], p) => [Math.min(low, p[i]), Math.max(high, p[i])], [Infinity, -Infinity]))
      .map(([low, high]) => (low + high) / 2);
    const slope = Math.tan(camera.state.fov / 2), margin = 2, { center, radius } = boundary.sphere; // Å, of cartoons and sticks
    const far = places.reduce((most, p) => Math.max(most, p[2]
      + Math.max((Math.abs(p[0] - x) + margin) / (slope * width / height), (Math.abs(p[1] - y) + margin) / slope)), -Infinity);
    const at = z => right.map((_, i) => x * right[i] + y * up[i] + z * back[i]), depth = along(back, center);
    const visible = { radius: radius + 8, radiusMax: radius + 8 }; // with edges and surface
    camera.setState({ target: at(depth), position: at(Math.max(far, depth + 8)), up, ...visible }, 0);
    this.plugin.canvas3d.requestDraw();
  }

  /** Turn and zoom with the keyboard. */
  turn(event) {
    const { Vec3, Quat } = lib.math.LinearAlgebra, camera = this.plugin.canvas3d.camera, { position, target, up } = camera.getSnapshot();
    const steps = { ArrowLeft: [up, -0.15], ArrowRight: [up, 0.15], ArrowUp: ["x", -0.15], ArrowDown: ["x", 0.15] };
    const view = Vec3.sub(Vec3(), position, target);
    if (event.key in steps) {
      const [axis, angle] = steps[event.key];
      const around = axis === "x" ? Vec3.normalize(Vec3(), Vec3.cross(Vec3(), up, view)) : Vec3.normalize(Vec3(), up);
      const turn = Quat.setAxisAngle(Quat(), around, angle);
      camera.setState({ position: Vec3.add(Vec3(), target, Vec3.transformQuat(Vec3(), view, turn)), up: Vec3.transformQuat(Vec3(), up, turn) }, 0);
    } else if (event.key === "+" || event.key === "-") {
      camera.setState({ position: Vec3.scaleAndAdd(Vec3(), target, view, event.key === "+" ? 0.85 : 1.18) }, 0);
    } else return;
    event.preventDefault();
    this.plugin.canvas3d.requestDraw();
  }
}
