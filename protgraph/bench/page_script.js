"use strict";
// Tables: a click on a heading sorts; numbers by data-value, missing ones last.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const name = head.textContent;
    head.textContent = "";
    const button = head.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => {
      const first = head.dataset.first || "descending";
      const other = first === "descending" ? "ascending" : "descending";
      const direction = head.getAttribute("aria-sort") === first ? other : first;
      for (const each of table.querySelectorAll("thead th")) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction);
      const sign = direction === "ascending" ? 1 : -1;
      const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        const [m, n] = [Number(x), Number(y)];
        return sign * (Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n);
      });
      table.tBodies[0].append(...rows);
    });
  });
}
// Legends: a click hides or shows a model in all charts of its task.
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    for (const part of button.closest("section").querySelectorAll("[data-series]"))
      if (part.dataset.series === button.dataset.toggle) part.toggleAttribute("data-off", !on);
  });
}
// Proteins: CA traces drawn far to near; a drag rotates both views of a protein.
const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
function color(code, palette) {
  if (code === null) return [200, 204, 209];
  if (palette) { const hex = palette[code % palette.length]; return [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)); }
  const place = Math.max(0, Math.min(0.9999, code)) * (RAMP.length - 1), i = Math.floor(place);
  return mix(RAMP[i], RAMP[i + 1], place - i);
}
function show(box, protein) {
  let yaw = 0.5, pitch = 0.3;
  const canvases = [...box.querySelectorAll("canvas")];
  const n = protein.x.length, radius = Math.max(1, ...protein.x.map((x, i) => Math.hypot(x, protein.y[i], protein.z[i])));
  function draw() {
    const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
    const points = protein.x.map((x, i) => {
      const u = cy * x + sy * protein.z[i], w = -sy * x + cy * protein.z[i], y = protein.y[i];
      return [u, cp * y - sp * w, sp * y + cp * w];
    });
    canvases.forEach((canvas, side) => {
      const size = Math.max(120, canvas.clientWidth), scale = Math.min(2, window.devicePixelRatio || 1);
      canvas.width = canvas.height = Math.round(size * scale);
      const pen = canvas.getContext("2d"), unit = canvas.width / 2 / radius * 0.94, middle = canvas.width / 2;
      const values = side ? protein.predicted : protein.label, parts = [];
      for (let i = 0; i < n; i++) {
        parts.push([points[i][2] + 0.01, i, true]);
        if (protein.link[i]) parts.push([(points[i][2] + points[i + 1][2]) / 2, i, false]);
      }
      parts.sort((a, b) => a[0] - b[0]);
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.lineCap = "round";
      for (const [depth, i, isNode] of parts) {
        const rgb = mix([245, 247, 249], isNode ? color(values[i], protein.palette) : [120, 128, 136], 0.45 + 0.55 * (depth / radius + 1) / 2);
        const at = k => [middle + points[k][0] * unit, middle - points[k][1] * unit];
        pen.fillStyle = pen.strokeStyle = `rgb(${rgb})`;
        pen.beginPath();
        if (isNode) pen.arc(...at(i), Math.max(2, 1.25 * unit), 0, 7), pen.fill();
        else pen.lineWidth = Math.max(1.5, 0.8 * unit), pen.moveTo(...at(i)), pen.lineTo(...at(i + 1)), pen.stroke();
      }
    });
  }
  for (const canvas of canvases) {
    let last = null;
    canvas.addEventListener("pointerdown", e => { last = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointerup", () => { last = null; });
    canvas.addEventListener("pointercancel", () => { last = null; });
    canvas.addEventListener("pointermove", e => {
      if (!last) return;
      yaw += (e.clientX - last[0]) / 90;
      pitch += (e.clientY - last[1]) / 90;
      last = [e.clientX, e.clientY];
      box.dataset.view = `${yaw.toFixed(3)} ${pitch.toFixed(3)}`;
      draw();
    });
  }
  box.dataset.view = `${yaw.toFixed(3)} ${pitch.toFixed(3)}`;
  draw();
  window.addEventListener("resize", draw);
}
const data = document.getElementById("proteins");
if (data) {
  const proteins = JSON.parse(data.textContent);
  for (const box of document.querySelectorAll(".protein")) show(box, proteins[Number(box.dataset.protein)]);
}
window.addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details")) each.open = true; });
