// Follows the store: while the page is visible, asks every two seconds for what is new, and shows it.

import { draw } from "/chart.js";
import { $, brief, counted, described, element, percent } from "/parts.js";
import { offer } from "/playground.js";

const EVERY = 2000, COLOURS = 8, AT_FIRST = 4, LONGEST = 100;
const rows = new Map(), curves = new Map(), lines = new Map();
const chosen = new Map(); // id → colour
let version = 0, touched = false;

// -- receiving ---------------------------------------------------------------------------------------------

async function poll() {
  const asked = new URLSearchParams({ since: version });
  for (const id of chosen.keys()) if (stale(id)) asked.append("curve", id);
  const response = await fetch(`/api/news?${asked}`, { signal: AbortSignal.timeout(20000) });
  const news = await response.json();
  if (!response.ok) throw new Error(news.error);
  take(news);
}

// Whether a run's curve may be longer than the one at hand.
const stale = (id) => rows.get(id).state === "going" || rows.get(id).points !== curves.get(id)?.length;

function take(news) {
  if (news.anew) [rows, lines].forEach((map) => map.clear());
  for (const row of news.rows) rows.set(row.id, row);
  for (const id of news.gone) [rows, curves, chosen].forEach((map) => map.delete(id));
  for (const [id, text] of Object.entries(news.curves)) curves.set(id, JSON.parse(text));
  for (const id of chosen.keys()) if (!rows.has(id)) chosen.delete(id);
  const fresh = choose();
  $("store").textContent = news.store;
  if (version !== news.version) {
    showRows();
    offer([...rows.values()].filter((row) => row.playable));
  }
  version = news.version;
  showSweeps(news.sweeps);
  $("notes").replaceChildren(...news.notes.map((note) => element("li", note)));
  showCurves();
  const going = [...rows.values()].filter((row) => row.state === "going").length;
  status(`${rows.size} ${rows.size === 1 ? "run" : "runs"}, ${going} going · ${new Date().toLocaleTimeString()}`);
  if (fresh) again(0);
}

function status(text, lost = false) {
  $("status").textContent = text;
  $("status").className = lost ? "lost" : "";
  $("status").role = lost ? "alert" : null; // screen readers read an alert aloud: only when it matters
}

// Until the user chooses, show the curves of the runs that are going, then of those written to last. Once none is
// going, keep those shown.
function choose() {
  if (touched) return false;
  const best = ordered().filter((row) => row.points).slice(0, AT_FIRST).map((row) => row.id);
  const going = best.filter((id) => rows.get(id).state === "going");
  const wanted = chosen.size && !going.length ? [...chosen.keys()] : best;
  const fresh = wanted.filter((id) => !chosen.has(id));
  for (const id of chosen.keys()) if (!wanted.includes(id)) chosen.delete(id);
  fresh.forEach(colour);
  return fresh.length > 0;
}

function colour(id) {
  const used = new Set(chosen.values());
  const free = [...Array(COLOURS).keys()].find((c) => !used.has(c));
  if (free !== undefined) chosen.set(id, free);
}

// -- showing -----------------------------------------------------------------------------------------------

function ordered() {
  const first = (row) => (row.state === "going" ? 1 : 0);
  return [...rows.values()].sort(
    (a, b) => first(b) - first(a) || (b.written ?? 0) - (a.written ?? 0) || (b.match ?? 0) - (a.match ?? 0),
  );
}

function showRows() {
  const words = $("filter").value.toLowerCase().split(/\s+/);
  const text = (row) => `${row.name} ${row.state} ${described(row)}`.toLowerCase();
  const found = ordered().filter((row) => words.every((word) => text(row).includes(word)));
  const shown = found.slice(0, LONGEST).map((row) => fill(lines.get(row.id) ?? line(row.id), row));
  const body = $("rows");
  if (shown.length !== body.children.length || shown.some((each, i) => each !== body.children[i])) body.replaceChildren(...shown);
  const rest = found.length - shown.length;
  $("more").textContent = rest ? `And ${rest} more: say above which.` : rows.size ? "" : "The store is empty yet.";
}

function line(id) {
  const made = element("tr");
  const box = element("input", undefined, { type: "checkbox" });
  box.addEventListener("change", () => pick(id, box.checked));
  const play = element("button", "Try", { type: "button" });
  play.addEventListener("click", () => offer([...rows.values()].filter((row) => row.playable), id));
  const cells = ["td", "th", "td", "td", "td", "td", "td", "td"].map((name) => element(name));
  cells[0].append(box);
  cells[1].scope = "row";
  [1, 4, 5, 6].forEach((i) => cells[i].append(element("span"), element("small")));
  cells.slice(3, 7).forEach((cell) => cell.classList.add("figure"));
  cells[7].append(play);
  made.append(...cells);
  lines.set(id, made);
  return made;
}

function fill(made, row) {
  const [box, name, state, steps, heldOut, match, chance, play] = made.children;
  const put = (node, text) => node.textContent !== text && (node.textContent = text);
  box.firstChild.checked = chosen.has(row.id);
  box.firstChild.disabled = !row.points;
  box.firstChild.setAttribute("aria-label", `Draw the curve of ${row.name}`);
  put(name.firstChild, row.name);
  name.firstChild.className = chosen.has(row.id) ? `swatch c${chosen.get(row.id)}` : "";
  put(name.lastChild, row.failed ?? described(row));
  put(state, row.state);
  state.className = row.state;
  put(steps, `${row.step.toLocaleString("en")} / ${row.steps.toLocaleString("en")}`);
  put(heldOut.firstChild, percent(row.validation));
  put(heldOut.lastChild, row.within ? counted(row) : "");
  put(match.firstChild, percent(row.match));
  put(match.lastChild, row.near === null ? "" : `${percent(row.near)} ${counted(row)}`);
  put(chance.firstChild, percent(row.chance ?? 1 / row.q));
  put(chance.lastChild, row.within ? `${percent(row.near_chance)} ${counted(row)}` : "");
  play.firstChild.hidden = !row.playable;
  play.firstChild.setAttribute("aria-label", `Try ${row.name} in the playground`);
  return made;
}

function pick(id, wanted) {
  touched = true;
  if (wanted) colour(id);
  else chosen.delete(id);
  showRows();
  showCurves();
  again(0);
}

function showCurves() {
  const series = (column) =>
    [...chosen].map(([id, colour]) => ({
      id, colour, points: (curves.get(id) ?? []).filter((p) => p[column] !== null).map((p) => [p[0], p[column]]),
    }));
  const accuracies = series(2), losses = series(1);
  const last = Math.max(1, ...[...chosen.keys()].map((id) => curves.get(id)?.at(-1)?.[0] ?? 0));
  draw($("accuracy"), accuracies, last, "share");
  draw($("loss"), losses, last, "log");
  const called = (id) => (rows.get(id).written ? rows.get(id).name : brief(rows.get(id))); // a cell of a sweep is named by a hash
  const said = (all, show) => all.map(({ id, points }) => `${called(id)}: ${points.length ? show(points.at(-1)[1]) : "none yet"}`).join("; ");
  const kinds = [...new Set([...chosen.keys()].map((id) => counted(rows.get(id))))];
  const told = kinds.length > 1 ? (id) => `${called(id)} (${counted(rows.get(id))})` : called;
  $("counted").textContent = `Held-out answers: ${kinds.join(" or ") || "exact"}`;
  $("accuracy").setAttribute("aria-label", `${$("counted").textContent}, by step. ${said(accuracies, percent)}`);
  $("loss").setAttribute("aria-label", `Training loss by step. ${said(losses, (y) => y.toPrecision(3))}`);
  $("legend").replaceChildren(...[...chosen].map(([id, colour]) => element("li", told(id), { class: `c${colour}` })));
}

function showSweeps(sweeps) {
  const made = sweeps.map((sweep) => {
    const box = element("div", undefined, { class: "sweep" });
    const left = sweep.cells - sweep.done - sweep.failed - sweep.going;
    const parts = [`${sweep.done} of ${sweep.cells} cells done`];
    if (sweep.going) parts.push(`${sweep.going} in training (${percent(sweep.begun / sweep.going)} of their steps)`);
    if (sweep.failed) parts.push(`${sweep.failed} failed`);
    if (left > 0) parts.push(`${left} waiting${sweep.going ? "" : " (nobody trains them now)"}`);
    const text = `${sweep.name}: ${parts.join(", ")}`;
    box.append(element("p", text), element("progress", undefined, { max: sweep.cells, value: sweep.done + sweep.failed + sweep.begun, "aria-label": text }));
    return box;
  });
  $("sweeps").replaceChildren(...made);
}

// -- polling -----------------------------------------------------------------------------------------------

let timer, busy = false;

function again(wait) {
  clearTimeout(timer);
  timer = setTimeout(go, wait);
}

async function go() {
  if (busy || document.hidden) return again(document.hidden ? EVERY : 100);
  busy = true;
  again(EVERY);
  try {
    await poll();
  } catch (error) {
    status(`No answer (${error.message}); trying again …`, true);
  } finally {
    busy = false;
  }
}

$("filter").addEventListener("input", showRows);
document.addEventListener("visibilitychange", () => document.hidden || again(0));
addEventListener("resize", showCurves);
go();
