// Curves over training steps, as SVG; every call draws them anew.

import { shape } from "/parts.js";

/** series: [{id, colour, points: [[x, y], …]}]; last: the last step on the axis; scale: "share" (0 to 100 %) or "log". */
export function draw(svg, series, last, scale) {
  const width = svg.clientWidth || 400, height = svg.clientHeight || 240;
  const left = 44, right = width - 12, top = 12, bottom = height - 24;
  const drawn = series.map((one) => ({ ...one, points: one.points.filter(([, y]) => scale === "share" || y > 0) }));
  const all = drawn.flatMap((one) => one.points);
  const [low, high] = scale === "share" ? [0, 1] : range(all.map(([, y]) => Math.log10(y)));
  const across = (x) => left + (x / last) * (right - left);
  const up = (y) => bottom - (((scale === "share" ? y : Math.log10(y)) - low) / (high - low)) * (bottom - top);
  const parts = ticks(low, high, scale).flatMap(([y, label]) => [
    shape("line", { class: "grid", x1: left, x2: right, y1: up(y), y2: up(y) }),
    shape("text", { x: left - 6, y: up(y) + 4, "text-anchor": "end" }, label),
  ]);
  parts.push(shape("text", { x: left, y: height - 6 }, "0"));
  parts.push(shape("text", { x: right, y: height - 6, "text-anchor": "end" }, `step ${last.toLocaleString("en")}`));
  for (const { id, colour, points } of drawn) {
    if (!points.length) continue;
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("");
    const [x, y] = points.at(-1);
    parts.push(shape("path", { class: `curve c${colour}`, d, "data-run": id }));
    parts.push(shape("circle", { class: `dot c${colour}`, cx: across(x), cy: up(y), r: 4 }));
  }
  if (!all.length) parts.push(shape("text", { x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" }, "nothing measured yet"));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(...parts);
}

function range(exponents) {
  if (!exponents.length) return [-1, 0];
  const low = Math.min(...exponents), high = Math.max(...exponents), room = Math.max(0.2, (high - low) / 20);
  return [low - room, high + room];
}

/** Tick values and their labels: quarters of a share; or powers of ten, and multiples of them where there is room. */
function ticks(low, high, scale) {
  if (scale === "share") return [0, 0.25, 0.5, 0.75, 1].map((y) => [y, `${100 * y} %`]);
  const heads = high - low > 4 ? [1] : high - low > 1.5 ? [1, 3] : [1, 2, 5];
  const made = [];
  for (let e = Math.floor(low); e <= high; e += Math.ceil((high - low) / 8)) {
    made.push(...heads.map((head) => head * 10 ** e));
  }
  const inside = made.filter((y) => Math.log10(y) >= low && Math.log10(y) <= high);
  return inside.map((y) => [y, y >= 1e-3 && y < 1e4 ? String(+y.toPrecision(1)) : y.toExponential(0)]);
}
