// The playground: a model, numbers that the user types or draws, and the model's answer beside the truth.

import { $, described, element, percent, shape } from "/parts.js";

let models = new Map(), current = null, waiting, asking;

/** List the models that can be tried; with an id, select that one and move to the playground. */
export function offer(rows, id) {
  const known = [...models.keys()].join(), before = models;
  models = new Map(rows.map((row) => [row.id, row]));
  $("nothing").hidden = models.size > 0;
  $("play").hidden = models.size === 0;
  if (!models.size) return;
  const wanted = id ?? (models.has(current) ? current : rows[0].id);
  if (known !== [...models.keys()].join()) {
    $("model").replaceChildren(...rows.map((row) => element("option", row.name, { value: row.id })));
  }
  $("model").value = wanted;
  const moved = before.get(wanted)?.step !== models.get(wanted).step;
  if (wanted !== current) choose(wanted);
  else if (moved) ask(); // the run has trained on, so there may be a new checkpoint
  if (id) $("playground").focus();
}

function choose(id) {
  const { n, q } = models.get(id), old = models.get(current);
  current = id;
  $("described").textContent = described(models.get(id));
  $("hint").textContent = `Type or paste ${n} numbers from 0 to ${q - 1}, or draw them above.`;
  if (old?.n !== n || old?.q !== q || inputs().length !== n) {
    const made = [...Array(n).keys()].map((i) => element("input", undefined, {
      type: "number", min: 0, max: q - 1, step: 1, required: "", inputmode: "numeric", "aria-label": `x${i + 1}`,
    }));
    $("numbers").replaceChildren(...made);
    randomise();
  } else changed(0);
}

const inputs = () => [...$("numbers").children];
const modulus = () => models.get(current).q;

function set(values, from = 0) {
  inputs().slice(from, from + values.length).forEach((input, i) => { input.value = values[i]; });
  changed(0);
}

const randomise = () => set(inputs().map(() => Math.floor(Math.random() * modulus())));

function changed(wait = 150) {
  const all = inputs(), q = modulus();
  $("bars").setAttribute("viewBox", `0 0 ${all.length} ${q}`);
  $("bars").replaceChildren(...all.map((input, i) => {
    const tall = Math.min(q, Math.max(0, Number(input.value))) + q / 60;
    return shape("rect", { x: i + 0.1, y: q - tall, width: 0.8, height: tall });
  }));
  clearTimeout(waiting);
  waiting = setTimeout(ask, wait);
}

// -- asking ------------------------------------------------------------------------------------------------

async function ask() {
  asking?.abort();
  if (!inputs().every((input) => input.checkValidity())) {
    return say(element("p", `The numbers must be whole, from 0 to ${modulus() - 1}.`));
  }
  asking = new AbortController();
  const signal = asking.signal, slow = setTimeout(() => say(element("p", "Loading the model …")), 400);
  const body = JSON.stringify({ run: current, x: inputs().map((input) => Number(input.value)) });
  try {
    const response = await fetch("/api/answer", { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
    const answer = await response.json();
    clearTimeout(slow);
    if (response.ok) show(answer);
    else say(element("p", answer.error));
  } catch (error) {
    clearTimeout(slow);
    if (!signal.aborted) say(element("p", `No answer (${error.message}).`));
  }
}

function say(...nodes) {
  $("answer").replaceChildren(...nodes);
  $("circles").replaceChildren();
  $("classes").replaceChildren();
}

function show(answer) {
  const q = modulus(), right = answer.prediction === answer.truth;
  const verdict = right ? "right" : `wrong: the truth is ${answer.truth}`;
  say(
    element("p", "The model's answer", { class: "hint" }),
    element("strong", `${answer.prediction}`, { class: right ? "right" : "wrong" }),
    element("p", `${right ? "✓" : "✗"} ${verdict}; ${answer.value.toFixed(2)} before rounding, ${answer.error.toFixed(2)} off.`),
    element("p", `Sum ${answer.sum} = ${answer.wraps} × ${q} + ${answer.truth}`, { class: "hint" }),
  );
  $("circles").replaceChildren(...answer.circles.map(circle));
  if (!answer.classes.length) return;
  $("classes").replaceChildren(
    element("span", "Likeliest answers", { class: "heading" }),
    ...answer.classes.flatMap((each) => [
      element("span", `${each.class}`),
      element("progress", undefined, { max: 1, value: each.share, "aria-label": `${each.class}: ${percent(each.share)}` }),
      element("span", percent(each.share)),
    ]),
  );
}

// The truth is a mark across the rim. The model's point lies where the model puts it, on the circle or off it, but is
// drawn at most 1.25 from the centre.
function circle({ label, truth, point }) {
  const [x, y] = point, long = Math.max(1, Math.hypot(x, y) / 1.25);
  const turn = 2 * Math.PI * truth, angle = ((Math.atan2(y, x) / (2 * Math.PI) + 1) % 1) * 360;
  const said = `${label}: the model's angle is ${angle.toFixed(1)}°, the true one ${(360 * truth).toFixed(1)}°.`;
  const svg = shape("svg", { viewBox: "-1.35 -1.35 2.7 2.7", role: "img", "aria-label": said });
  svg.append(
    shape("circle", { class: "ring", r: 1, "stroke-width": 0.02 }),
    shape("line", { class: "truth", x1: 0.8 * Math.cos(turn), y1: -0.8 * Math.sin(turn), x2: 1.2 * Math.cos(turn), y2: -1.2 * Math.sin(turn) }),
    shape("line", { class: "ray", x1: 0, y1: 0, x2: x / long, y2: -y / long }),
    shape("circle", { class: "point", cx: x / long, cy: -y / long, r: 0.08 }),
  );
  const figure = element("figure");
  const caption = element("figcaption", label);
  caption.append(element("small", `model ${angle.toFixed(0)}°, truth ${(360 * truth).toFixed(0)}°`));
  figure.append(svg, caption);
  return figure;
}

// -- typing and drawing ------------------------------------------------------------------------------------

function drawAt(event) {
  const box = $("bars").getBoundingClientRect(), all = inputs(), q = modulus();
  const i = Math.floor(((event.clientX - box.left) / box.width) * all.length);
  const value = Math.round((1 - (event.clientY - box.top) / box.height) * (q - 1));
  if (i >= 0 && i < all.length) all[i].value = Math.min(q - 1, Math.max(0, value));
  changed();
}

$("bars").addEventListener("pointerdown", (event) => {
  $("bars").setPointerCapture(event.pointerId);
  drawAt(event);
});
$("bars").addEventListener("pointermove", (event) => event.buttons && drawAt(event));
$("numbers").addEventListener("input", () => changed());
$("numbers").addEventListener("paste", (event) => {
  const values = event.clipboardData.getData("text").match(/-?\d+/g) ?? [];
  if (values.length < 2) return;
  event.preventDefault();
  set(values, inputs().indexOf(event.target));
});
$("random").addEventListener("click", randomise);
$("zeros").addEventListener("click", () => set(inputs().map(() => 0)));
$("model").addEventListener("change", () => choose($("model").value));
$("play").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
