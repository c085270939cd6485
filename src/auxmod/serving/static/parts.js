// Helpers for the other scripts. Text is only ever set as text: nothing in a file becomes markup.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function made(node, attributes, text) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

export const element = (name, text, attributes = {}) => made(document.createElement(name), attributes, text);
export const shape = (name, attributes, text) => made(document.createElementNS(SVG, name), attributes, text);

/** 0.98765 → 98.8 %; a small share keeps one digit, rather than round to 0.0 %; not known is –. */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  return share === 0 || share >= 0.0005 ? `${(100 * share).toFixed(1)} %` : `${Number((100 * share).toPrecision(1))} %`;
}

/** What a run's curve and held-out figure count: of a large q near answers, since few are exact. */
export const counted = (row) => (row.within ? `within ${row.within}·q` : "exact");

export function brief(row) {
  const pair = row.k === null ? "" : ` K=${row.k} r=${row.r}`;
  return `${row.method} N=${row.n} q=${row.q}${pair} seed ${row.seed}`;
}

export const described = (row) => `${brief(row)}, ${row.embedding}, ${row.samples.toLocaleString("en")} samples`;
