const byId = (id) => document.getElementById(id);
const make = (tag, attributes, ...inside) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside); // strings become text, never HTML
  return element;
};
const literal = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;"); // plotly interprets some HTML

// ---- charts: drawn when they come into view, in the page's colours ----

const COLOURS = ["#e8743b", "#3b6fb6", "#2a9d8f", "#a34a7d", "#b8952a", "#6e7781"];
const DASHES = [["solid", "solid"], ["dash", "dashed"], ["dot", "dotted"]]; // plotly's names and CSS's
const waiting = new Map();
const drawn = new Set();
const ink = () => getComputedStyle(document.body).color;
const looks = () => {
  const axis = { gridcolor: "rgba(128,128,128,.22)", linecolor: "rgba(128,128,128,.6)", zeroline: false, automargin: true,
    ticks: "outside", ticklen: 5, tickcolor: "rgba(0,0,0,0)" }; // unseen ticks keep the labels of two axes apart
  const round = { gridcolor: axis.gridcolor, linecolor: axis.gridcolor };
  return {
    layout: {
      font: { family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 13, color: ink() },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: COLOURS,
      margin: { l: 54, r: 12, t: 12, b: 46 }, hoverlabel: { font: { size: 13 } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 12 } },
      xaxis: axis, yaxis: axis, polar: { angularaxis: round, radialaxis: round },
    },
  };
};
function draw(place, spec) {
  const layout = { ...spec.layout, template: looks() };
  Plotly.react(place, spec.data, layout, { displayModeBar: false, responsive: true, scrollZoom: false });
  drawn.add(place);
}
const watcher = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) if (isIntersecting) drawWaiting(target);
}, { rootMargin: "400px" });
function drawWaiting(place) {
  const spec = waiting.get(place);
  if (!spec) return;
  clear(place);
  draw(place, spec);
}
function clear(place) { // of what waits to be drawn in it, and of what was drawn
  waiting.delete(place);
  watcher.unobserve(place);
  if (drawn.delete(place)) Plotly.purge(place);
}
function show(place, spec) { // at once if it was drawn before, else when it comes into view
  if (drawn.has(place)) return draw(place, spec);
  waiting.set(place, spec);
  watcher.observe(place);
}
for (const place of document.querySelectorAll("[data-chart]")) show(place, data.charts[place.dataset.chart]);

// ---- light, dark and print ----

const root = document.documentElement;
const preference = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.style.colorScheme || (preference.matches ? "dark" : "light")) === "dark";
function recolour(colour) {
  for (const place of drawn) Plotly.relayout(place, { "font.color": colour });
}
function setScheme(scheme) {
  if (scheme) root.style.colorScheme = scheme;
  byId("theme").setAttribute("aria-pressed", isDark());
  recolour(ink());
}
const remembered = (() => { try { return localStorage.getItem("auxmod-scheme"); } catch { return null; } })();
setScheme(remembered);
byId("theme").addEventListener("click", () => {
  setScheme(isDark() ? "light" : "dark");
  try { localStorage.setItem("auxmod-scheme", root.style.colorScheme); } catch { /* a page opened as a file may have no storage */ }
});
preference.addEventListener("change", () => setScheme(null));
addEventListener("beforeprint", () => { [...waiting.keys()].forEach(drawWaiting); recolour("#1f2328"); });
addEventListener("afterprint", () => recolour(ink()));

// ---- the runs, each identified by its index in the list ----

const runs = data.runs;
const count = runs.settings.length;
const percent = (share) => (share == null ? "–" : `${(100 * share).toFixed(1)} %`);
const shown = (value) => Array.isArray(value) ? value.map(shown).join(", ") || "–"
  : typeof value === "number" ? String(Number(value.toPrecision(6))) : value === "" ? "–" : String(value);
const pair = (s) => s.method + (s.k == null ? "" : ` K = ${s.k}, r = ${shown(s.r)}`);
function describe(at, seeds = `seed ${runs.settings[at].seed}`) {
  const s = runs.settings[at];
  return `${pair(s)} · ${s.embedding} · N = ${s.n}, q = ${s.q} · ${s.samples.toLocaleString("en")} samples · ${seeds}`;
}
const named = (s, name) => // whether `pair` already tells this setting
  ["method", "k", "r"].includes(name) || (["moduli", "weights"].includes(name) && (s.k != null || s.moduli.length === 1));
function varied(settings) { // the settings that differ between runs of one method, unless `pair` already tells them
  const methods = new Set(settings.map((s) => s.method)).size;
  return Object.keys(settings[0] ?? {}).filter((name) => !settings.every((s) => named(s, name))
    && new Set(settings.map((s) => JSON.stringify([s.method, s[name]]))).size > methods);
}
function labels(chosen) { // labels that tell the chosen runs apart
  const settings = chosen.map((at) => runs.settings[at]), names = varied(settings);
  const paired = new Set(settings.map(pair)).size > 1;
  const made = settings.map((s) => [...(paired ? [pair(s)] : []), ...names.map((name) => `${name} ${shown(s[name])}`)].join(", "));
  return chosen.map((at, i) => (made[i] && made.indexOf(made[i]) === made.lastIndexOf(made[i]) ? made[i] : runs.run[at].name));
}

const chosen = new Set(data.chosen);
function drawChosen() {
  const all = [...chosen], names = labels(all);
  const colour = (i) => COLOURS[i % COLOURS.length], dash = (i) => DASHES[Math.floor(i / COLOURS.length) % DASHES.length];
  const look = (i) => ({ name: literal(names[i]), line: { color: colour(i), dash: dash(i)[0], width: 2.5 } });
  byId("legend").replaceChildren(...(count > 1 ? names : []).map((name, i) => {
    const mark = make("i", { "aria-hidden": "true" });
    mark.style.borderTop = `3px ${dash(i)[1]} ${colour(i)}`;
    return make("li", {}, mark, name);
  }));
  const chance = [...new Set(all.map((at) => runs.figures[at].chance))].filter((share) => share != null)
    .map((share) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: 100 * share, y1: 100 * share, line: { color: "#8b949e", width: 1, dash: "dot" } }));
  const place = (id, traces, title) => {
    const room = byId(id), bare = !traces.some((trace) => trace.x.length);
    if (bare) clear(room);
    room.classList.toggle("empty", bare);
    if (bare) return void (room.textContent = chosen.size ? "Not recorded for these runs." : "No run is ticked.");
    if (!drawn.has(room)) room.textContent = "";
    const whole = id !== "curves" && Math.max(...traces.map((trace) => trace.x.length)) < 13 ? { dtick: 1 } : {};
    const axes = { xaxis: { title: { text: title }, rangemode: id === "curves" ? "tozero" : "normal", ...whole }, yaxis: { title: { text: "match (%)" }, range: [-2, 102] } };
    show(room, { data: traces, layout: { ...axes, shapes: chance, showlegend: false } });
  };
  const line = { type: "scatter", mode: "lines+markers", marker: { size: 5 } };
  place("curves", all.map((at, i) => ({ ...line, ...look(i), x: runs.curves[at][0], y: runs.curves[at][1] })), "training steps");
  for (const [id, title] of [["wraps", "wraps"], ["zeros", "zeros"]])
    place(id, all.map((at, i) => ({
      ...line, ...look(i), x: runs[id][at].map(([bucket]) => bucket), y: runs[id][at].map(([, samples, right]) => 100 * right / samples),
      customdata: runs[id][at].map(([, samples]) => samples), hovertemplate: `%{x} ${title}: %{y:.1f} % of %{customdata:,} inputs<extra></extra>`,
    })), title);
}
drawChosen();

function facts(title, values, write = shown) {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  if (!kept.length) return "";
  const rows = kept.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, write(value, name))));
  return make("table", { class: "facts" }, make("caption", {}, title), make("tbody", {}, ...rows));
}
const figure = (value, name) => (name === "test inputs" ? value.toLocaleString("en") : percent(value));
const everything = (at) => make("div", { class: "columns" },
  make("div", {}, facts("Run", runs.run[at]), facts("Figures", runs.figures[at], figure), facts("Where it was made", runs.made[at])),
  make("div", {}, facts("Configuration", runs.settings[at])));

// ---- one run's page ----

if (byId("origin-facts")) byId("origin-facts").append(everything(0));

// ---- the list of runs ----

if (byId("list")) {
  const PAGE = 40;
  const said = ["embedding", "n", "q", "samples", "seed"];
  const mostHave = (name) => { // the value that more than half of the runs have, as JSON; undefined if there is none
    const times = new Map();
    for (const value of runs.settings.map((s) => JSON.stringify(s[name]))) times.set(value, (times.get(value) ?? 0) + 1);
    return [...times.keys()].find((value) => 2 * times.get(value) > count);
  };
  const others = varied(runs.settings).filter((name) => !said.includes(name));
  const usual = new Map(others.map((name) => [name, mostHave(name)]));
  const besides = (s) =>
    others.filter((name) => JSON.stringify(s[name]) !== usual.get(name) && !named(s, name)).map((name) => `${name} ${shown(s[name])}`).join(", ");
  const words = runs.run.map((run, at) => ({
    exact: new Set(Object.entries({ ...runs.settings[at], ...run }).map(([name, value]) => `${name}=${shown(value)}`.toLowerCase())),
    text: `${run.name} ${run.hash} ${describe(at)}`.toLowerCase(),
  }));
  let found = [], visible = 0;
  const over = (group) => { // the mean over the seeds that have a figure, and how many of the others are in which state
    const shares = group.map((at) => runs.figures[at].match).filter((share) => share != null);
    const states = group.filter((at) => runs.figures[at].match == null).map((at) => runs.run[at].state);
    if (group.length === 1) return states[0] ?? percent(shares[0]);
    const others = [...new Set(states)].map((state) => `${states.filter((each) => each === state).length} ${state}`);
    if (!shares.length) return others.join(", ");
    const mean = shares.reduce((a, b) => a + b) / shares.length;
    const spread = Math.sqrt(shares.reduce((sum, share) => sum + (share - mean) ** 2, 0) / (shares.length - 1));
    const figures = shares.length > 1 ? `${(100 * mean).toFixed(1)} ± ${(100 * spread).toFixed(1)} %` : percent(mean);
    return `${figures} (${[shares.length, ...others].join(", ")})`;
  };
  const folded = (summary, inside) => { // what is inside is made when it is opened
    const details = make("details", {}, summary);
    details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(...inside()); });
    return details;
  };
  const seed = (at) => folded(make("summary", {}, `seed ${runs.settings[at].seed}`, make("b", {}, over([at]))), () => [everything(at)]);
  const item = (group) => {
    const [at] = group, title = group.length === 1 ? describe(at) : describe(at, `${group.length} seeds`);
    const tick = make("input", { type: "checkbox", "aria-label": `Draw ${title}` });
    tick.checked = group.some((each) => chosen.has(each));
    tick.addEventListener("change", () => { group.forEach((each) => (tick.checked ? chosen.add(each) : chosen.delete(each))); drawChosen(); });
    const summary = make("summary", {}, make("span", {}, title, make("small", {}, besides(runs.settings[at]))), make("b", {}, over(group)));
    return make("li", {}, tick, folded(summary, () => (group.length === 1 ? [everything(at)] : group.map(seed))));
  };
  const grow = () => {
    byId("list").append(...found.slice(visible, visible + PAGE).map(item));
    visible = Math.min(found.length, visible + PAGE);
    byId("more").hidden = visible === found.length;
  };
  const search = () => {
    const asked = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const holds = ({ exact, text }) => asked.every((word) => (word.includes("=") ? exact.has(word) : text.includes(word)));
    found = data.alike.map((group) => group.filter((at) => holds(words[at]))).filter((group) => group.length);
    visible = 0;
    const those = found.flat().length;
    byId("list").replaceChildren();
    byId("found").textContent = those === count ? `${count.toLocaleString("en")} runs` : `${those.toLocaleString("en")} of ${count.toLocaleString("en")} runs`;
    grow();
  };
  byId("filter").addEventListener("input", search);
  byId("more").addEventListener("click", grow);
  search();

  // ---- the dialog with the facts behind a figure of a table ----

  const about = byId("about");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-cell]");
    if (!button) return;
    const cell = data.cells[button.dataset.cell];
    byId("about-facts").replaceChildren(facts("In percent", cell.figures), facts("What it is of", cell.facts));
    byId("about-command").textContent = cell.command;
    byId("about-runs").onclick = () => {
      const names = Object.keys(cell.facts).filter((name) => name in (runs.settings[0] ?? {}));
      byId("filter").value = names.map((name) => `${name}=${name === "method" && cell.facts.method === "expected" ? "aux" : shown(cell.facts[name])}`).join(" ");
      about.close();
      search();
      byId("runs").scrollIntoView();
      byId("filter").focus();
    };
    about.showModal();
  });
  byId("about-close").addEventListener("click", () => about.close());
}
