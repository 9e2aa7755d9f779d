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
window.addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details")) each.open = true; });
