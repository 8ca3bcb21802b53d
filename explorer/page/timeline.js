// The time line of a pipelined loop: which asynchronous copies and products are in flight while others execute.
//
// It follows from the rules of the operations: a copy may end no later than the wait that completes it. Order is
// exact, lengths are not times.

import { element } from "./dom.js";
import { hue, ink, refreshColours } from "./colours.js";

const ITERATIONS = 5;
const KINDS = [
  ["copy", /ttg\.async_copy_global_to_local|ttng\.async_tma_copy_global_to_local/],
  ["commit", /ttg\.async_commit_group/],
  ["wait copies", /ttg\.async_wait/],
  ["wait barrier", /ttng\.wait_barrier/],
  ["expect", /ttng\.barrier_expect/],
  ["product", /ttng\.warp_group_dot (?!_)|tt\.dot /],
  ["wait products", /ttng\.warp_group_dot_wait/],
];

function eventOf({ text, place, raw }) {
  for (const [kind, pattern] of KINDS) {
    if (!pattern.test(raw)) continue;
    const pending = /(?:num|pendings) = (\d+)/.exec(raw);
    return { kind, place, text: text.trim(), pending: pending ? Number(pending[1]) : 0, synchronous: / tt\.dot /.test(raw) };
  }
  return null;
}

const indent = (line) => line.text.length - line.text.trimStart().length;

/** Loops with asynchronous operations: [{line, place, before: [event], body: [event]}]; `before` are the events in
 *  front of the loop that no wait in front of it completes. */
export function loopsOf(lines) {
  const loops = [];
  lines.forEach((line, start) => {
    if (!/\bscf\.for\b/.test(line.text)) return;
    const end = lines.findIndex((other, i) => i > start && indent(other) <= indent(line) && other.text.trim().startsWith("}"));
    const inside = lines.slice(start + 1, end);
    const own = inside.filter((other) => indent(other) === indent(line) + 2); // not those of inner loops
    const body = own.map(eventOf).filter((event) => event !== null);
    if (!body.some(({ kind }) => kind === "copy" || kind === "commit" || kind === "expect")) return;
    const before = lines.slice(0, start).filter((other) => indent(other) <= indent(line)).map(eventOf)
      .filter((event) => event !== null);
    loops.push({ line, place: line.place, before, body });
  });
  return loops;
}

/** Bars of a loop: {kind, start, end, iteration, place, text}, in slots of events; those that begin in front of the
 *  loop have negative starts. */
export function barsOf({ before, body }) {
  const slots = [...before.map((event) => ({ event, iteration: -1 }))];
  for (let k = 0; k < ITERATIONS; k++) body.forEach((event) => slots.push({ event, iteration: k }));
  const bars = [], copies = [], products = [];
  let open = null; // a group of copies that is not committed yet
  const groupBy = [...before, ...body].some(({ kind }) => kind === "expect") ? "expect" : "commit";
  slots.forEach(({ event, iteration }, slot) => {
    if (event.kind === "copy" && groupBy === "commit") open ??= { start: slot, place: event.place, text: event.text };
    if (event.kind === groupBy) {
      const bar = { kind: "copy", start: open?.start ?? slot, iteration, place: open?.place ?? event.place,
        text: open?.text ?? event.text, end: null };
      open = null;
      bars.push(bar);
      copies.push(bar);
    }
    if (event.kind === "product") {
      const bar = { kind: "product", start: slot, iteration, place: event.place, text: event.text,
        end: event.synchronous ? slot + 1 : null };
      bars.push(bar);
      if (!event.synchronous) products.push(bar);
    }
    if (event.kind === "wait copies" && groupBy === "commit") finish(copies, event.pending, slot);
    if (event.kind === "wait barrier" && groupBy === "expect") finish(copies, Math.max(0, copies.length - 1), slot);
    if (event.kind === "wait products") finish(products, event.pending, slot);
  });
  for (const bar of bars) bar.end ??= slots.length;
  return { bars, slots, first: before.length };
}

/** All but the last `pending` of a queue end. */
function finish(queue, pending, slot) {
  while (queue.length > pending) queue.shift().end = slot + 0.5;
}

/** The most copies in flight at any time after the first iteration. */
export function depthOf({ bars, first }) {
  let most = 0;
  for (const { start } of bars) {
    if (start < first) continue;
    most = Math.max(most, bars.filter((bar) => bar.kind === "copy" && bar.start <= start && bar.end > start).length);
  }
  return most;
}

function drawBars(loop, { bars, slots, first }) {
  refreshColours();
  const unit = Math.max(14, Math.min(40, 1000 / slots.length)), height = 22, left = 8, top = 26;
  const rows = [];
  for (const bar of bars) { // the first free row of its kind
    let row = rows.findIndex((other) => other.kind === bar.kind && other.end <= bar.start);
    if (row < 0) row = rows.push({ kind: bar.kind, end: 0 }) - 1;
    rows[row].end = bar.end;
    bar.row = row;
  }
  const order = rows.map((row, i) => i).sort((a, b) => (rows[a].kind < rows[b].kind ? -1 : 1) || a - b);
  const y = (bar) => top + order.indexOf(bar.row) * (height + 4);
  const width = left + slots.length * unit + 8, bottom = top + rows.length * (height + 4) + 8;
  const parts = [];
  for (let k = 0; k < ITERATIONS; k++) {
    const x = left + (first + k * loop.body.length) * unit;
    parts.push(`<line x1="${x}" y1="4" x2="${x}" y2="${bottom}" stroke="${ink("rule")}"/>`,
      `<text x="${x + 4}" y="16" font-size="11" fill="${ink("quiet")}">iteration ${k}</text>`);
  }
  if (first > 0) parts.push(`<text x="${left}" y="16" font-size="11" fill="${ink("quiet")}">before</text>`);
  bars.forEach((bar, i) => {
    const label = bar.kind === "copy" ? "copy" : "product";
    const barWidth = Math.max(6, (bar.end - bar.start) * unit - 3);
    parts.push(`<g data-bar="${i}" style="cursor:pointer"><title>${label} that is issued ${bar.iteration < 0 ? "before the loop"
      : `in iteration ${bar.iteration}`}</title><rect x="${left + bar.start * unit}" y="${y(bar)}" width="${barWidth}"`
      + ` height="${height}" rx="3" fill="${hue(bar.kind === "copy" ? 0 : 3, 6)}" stroke="${ink("rule")}"/>`
      + (barWidth > 50 ? `<text x="${left + bar.start * unit + 5}" y="${y(bar) + 15}" font-size="11" fill="${ink("ink")}">${label}</text>` : "")
      + "</g>");
  });
  return `<svg viewBox="0 0 ${width} ${bottom}" width="${width}" height="${bottom}" font-family="system-ui, sans-serif">${parts.join("")}</svg>`;
}

export function timelineView(loop, choose) {
  const model = barsOf(loop), { bars } = model;
  const copies = depthOf(model);
  const summary = `Up to ${copies} groups of copies are in flight in an iteration.`;
  const figure = element("div", {
    class: "scroll drawn", role: "img", "aria-label": `Time line of the loop at ${loop.place ?? "an unknown line"}. ${summary}`,
    onclick: (event) => {
      const bar = event.target.closest("[data-bar]");
      if (bar) choose(bars[Number(bar.dataset.bar)].place);
    },
  });
  figure.redraw = () => (figure.innerHTML = drawBars(loop, model));
  figure.redraw();
  return element("div", { class: "timeline" },
    element("p", {}, `${summary} A bar lasts from its issue to the wait that completes it; its length is an order of`
      + " operations, not a time."), figure);
}
