// The time line of a pipelined loop: which asynchronous copies and products are in flight while others execute.
//
// It follows from the events that `lilac explain --json` lists for each loop, and from the rules of the operations: a
// copy may end no later than the wait that completes it. Order is exact, lengths are not times.

import { element } from "./dom.js";
import { hue, ink, refreshColours } from "./colours.js";
import { placeOf } from "./explanation.js";

const ITERATIONS = 5;
const ARRIVALS = new Set(["ttng.arrive_barrier"]); // of threads: waits for them wait for no copy

/** Loops with products or waits for copies: [{place, before: [event], body: [event], buffers}]; an event is {kind, place,
 *  pending, completes}. `before` are the events in front of all loops. `buffers` is not null where other warps start the
 *  copies (ttg.warp_specialize): so many may be in flight, and `before` then has the first ones. */
export function loopsOf(explanation) {
  const operation = (number) => explanation.operations[number - 1];
  const event = ({ operation: number, kind, pending, buffer, waits_for: waitsFor }) => ({
    number, buffer, pending: pending ?? 0, place: placeOf(explanation, operation(number)),
    kind: kind === "box" ? "copy" : kind,
    synchronous: operation(number).name === "tt.dot",
    waitsFor, completes: waitsFor.some((other) => !ARRIVALS.has(operation(other).name)),
  });
  const all = explanation.timeline.map(({ loop, events }) => ({ loop, body: events.map(event) }));
  const outside = all.filter(({ loop }) => loop === null).flatMap(({ body }) => body);
  const loops = all.filter(({ loop }) => loop !== null).map(({ loop, body }) => {
    const { operation: head } = explanation.loops[loop];
    return { head, place: placeOf(explanation, operation(head)), body, buffers: null,
      before: outside.filter(({ number }) => number < head) };
  });
  return loops.map((loop) => loop.body.some(({ kind }) => kind === "copy") ? loop : fedBy(explanation, loop, loops))
    .filter((loop) => loop !== null && loop.body.some(({ kind, completes }) =>
      ["product", "wait copies"].includes(kind) || (kind === "wait mbarrier" && completes)));
}

/** A loop whose copies other warps start in a loop of their own; null: it is none. The first copies fill the buffers, each
 *  later one begins when the loop has released the buffer of an earlier iteration. */
function fedBy(explanation, loop, loops) {
  const wait = loop.body.find(({ kind, completes }) => kind === "wait mbarrier" && completes);
  const released = loop.body.filter(({ kind }) => kind === "arrive").map(({ number }) => number);
  if (!wait || released.length === 0) return null;
  const copies = loops.filter((other) => other !== loop
    && other.body.some(({ kind, waitsFor }) => kind === "wait mbarrier" && waitsFor.some((number) => released.includes(number))))
    .flatMap(({ body }) => body.filter(({ kind, number }) => kind === "copy" && wait.waitsFor.includes(number)));
  const copy = copies[copies.length - 1];
  const buffers = copy && explanation.buffers.find(({ operation: number }) => number === copy.buffer)?.count;
  return buffers ? { ...loop, buffers, before: Array.from({ length: buffers }, () => copy) } : null;
}

/** Bars of a loop: {kind, start, end, iteration, place}, in slots of events; those that begin in front of the
 *  loop have negative starts. */
export function barsOf({ before, body, buffers }) {
  const slots = [...before.map((event) => ({ event, iteration: -1 }))];
  for (let k = 0; k < ITERATIONS; k++) body.forEach((event) => slots.push({ event, iteration: k }));
  const bars = [], copies = [], products = [];
  let open = null; // a group of copies that is not committed yet
  const groupBy = [...before, ...body].some(({ kind }) => kind === "expect") ? "expect" : "commit";
  slots.forEach(({ event, iteration }, slot) => {
    if (buffers && (event.kind === "copy" || event.kind === "arrive")) { // the buffer is free for the next copy
      bars.push({ kind: "copy", start: slot, iteration, place: before[0].place, end: null });
      copies.push(bars[bars.length - 1]);
      return;
    }
    if (buffers && event.kind === "wait mbarrier" && event.completes) copies.shift().end = slot + 0.5;
    if (event.kind === "copy" && groupBy === "commit") open ??= { start: slot, place: event.place };
    if (event.kind === groupBy) {
      const bar = { kind: "copy", start: open?.start ?? slot, iteration, place: open?.place ?? event.place, end: null };
      open = null;
      bars.push(bar);
      copies.push(bar);
    }
    if (event.kind === "product") {
      const bar = { kind: "product", start: slot, iteration, place: event.place,
        end: event.synchronous ? slot + 1 : null };
      bars.push(bar);
      if (!event.synchronous) products.push(bar);
    }
    if (event.kind === "wait copies" && groupBy === "commit") finish(copies, event.pending, slot);
    if (!buffers && event.kind === "wait mbarrier" && event.completes) finish(copies, Math.max(0, copies.length - 1), slot);
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
    const when = bar.iteration < 0 ? "before the loop" : `in iteration ${bar.iteration}`;
    const x = left + bar.start * unit;
    const name = `<text x="${x + 5}" y="${y(bar) + 15}" font-size="11" fill="${ink("ink")}">${label}</text>`;
    parts.push(`<g data-bar="${i}" style="cursor:pointer"><title>${label} that is issued ${when}</title>`
      + `<rect x="${x}" y="${y(bar)}" width="${barWidth}" height="${height}" rx="3"`
      + ` fill="${hue(bar.kind === "copy" ? 0 : 3, 6)}" stroke="${ink("rule")}"/>${barWidth > 50 ? name : ""}</g>`);
  });
  return `<svg viewBox="0 0 ${width} ${bottom}" width="${width}" height="${bottom}" font-family="system-ui, sans-serif">`
    + `${parts.join("")}</svg>`;
}

export function timelineView(loop, choose) {
  const model = barsOf(loop), { bars } = model;
  const copies = depthOf(model);
  const summary = `Up to ${copies} groups of copies are in flight in an iteration.`
    + (loop.buffers ? ` Other warps start them, as soon as one of the ${loop.buffers} buffers is free.` : "");
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
