// Return the texts of a page whose contrast with their background is below WCAG 2.1 AA (4.5, or 3 for large text).
const parse = color => color.match(/[\d.]+/g).map(Number);
const light = color => {
  const [r, g, b] = color.map(x => x / 255).map(x => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
// Return the color behind an element, with translucent layers mixed.
const behind = element => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    const color = parse(getComputedStyle(e).backgroundColor);
    layers.push([color.slice(0, 3), color.length < 4 ? 1 : color[3]]);
    if (color.length < 4 || color[3] === 1) break;
  }
  return layers.reverse().reduce((under, [color, alpha]) => under.map((x, i) => x * (1 - alpha) + color[i] * alpha), [255, 255, 255]);
};
const shown = e => {
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  return box.width > 1 && box.height > 1 && style.visibility === "visible" && e.checkVisibility({ opacityProperty: true });
};
return [...document.querySelectorAll("body *")]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && shown(e))
  .filter(e => !["SCRIPT", "STYLE", "OPTION", "NOSCRIPT"].includes(e.tagName) && !e.closest("math, svg"))
  .map(e => {
    const style = getComputedStyle(e), under = behind(e), color = parse(style.color);
    const mixed = color.slice(0, 3).map((x, i) => x * (color[3] ?? 1) + under[i] * (1 - (color[3] ?? 1)));
    const [a, b] = [light(mixed), light(under)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    return [`${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 20)}`, (a + 0.05) / (b + 0.05), large ? 3 : 4.5];
  })
  .filter(([, ratio, least]) => ratio < least);
