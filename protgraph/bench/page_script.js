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
// Proteins: an open one is drawn in a frame of its own, by the page of `protgraph view` with the script of this page.
async function unpack(script) {
  const bytes = Uint8Array.from(atob(script.textContent), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
for (const box of document.querySelectorAll("details.protein")) {
  let frame;
  const draw = async () => {
    if (!box.open) { frame?.remove(); frame = undefined; }
    if (!box.open || frame) return;
    const made = frame = document.createElement("iframe"), program = document.getElementById("molstar").textContent;
    made.title = `3D structure of ${box.dataset.title}`;
    made.loading = "lazy";
    made.srcdoc = (await unpack(box.querySelector("script"))).replace("molstar of the report", () => program);
    if (frame === made) box.append(made); // else it was closed meanwhile
  };
  box.addEventListener("toggle", draw);
  draw();
}
window.addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details:not(.protein)")) each.open = true; });
