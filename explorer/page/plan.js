// A conversion between two layouts: the plan of the library, what it costs, and what moves where.

import { element, plural, section, table } from "./dom.js";
import { BankScope } from "./banks.js";
import { accessFromPlan } from "./access.js";
import { hue } from "./colours.js";
import { solver } from "./f2.js";
import { Grid } from "./grid.js";
import { Layout } from "./layouts.js";

const KINDS = {
  none: "Nothing moves: both layouts are equal.",
  registers: "Registers change their order within each thread; no instruction exchanges data.",
  shuffles: "Threads of a warp exchange registers by shuffles.",
  shared: "Elements go through shared memory.",
  cluster: "Elements go through the shared memory of a cluster of blocks.",
};

export function planView(library, source, target, a, b, options = {}) {
  const plan = library.convert(source, target, options);
  const explanation = library.explainConversion(source, target, options);
  return element("div", {},
    element("p", { class: "lead" }, KINDS[plan.kind] ?? plan.kind, " ", costOf(plan)),
    costTable(plan),
    movePicture(a, b),
    element("details", {}, element("summary", {}, "The plan in words"), element("pre", { tabindex: "0" }, explanation)));
}

function costOf(plan) {
  return `About ${plan.cycles} clocks of a multiprocessor. ${plan.correct && plan.as_planned
    ? "The simulator executed it: every register of every thread has its element, and all counts are as planned."
    : "The simulator disagrees with the plan."}`;
}

export function costTable(plan) {
  const { instructions, wavefronts, lower_bound: bound } = plan;
  const rows = [
    ["stores to shared memory", instructions.store, wavefronts.store, bound.store],
    ["loads from shared memory", instructions.load, wavefronts.load, bound.load],
    ["shuffles", instructions.shuffle], ["selects", instructions.select], ["byte permutes", instructions.permute],
    ["barriers", instructions.barrier],
  ].filter(([, count]) => count > 0).map((row) => [0, 1, 2, 3].map((i) => (row[i] ?? "").toLocaleString("en")));
  if (rows.length === 0) return null;
  return table(["", "instructions", "wavefronts", "least possible"], rows, { class: "numbers" });
}

/** The shared-memory exchange of a plan: its memory layout, and its accesses in the bank scope. */
export function exchangeOf(plan, a) {
  const step = plan.steps.find((candidate) => candidate.memory);
  if (!step) return null;
  const elementBytes = Math.max(1, a.elementBits / 8);
  const memory = new Layout({ offset: step.memory.offset }, a.shape, a.elementBits);
  return {
    memory, elementBytes,
    accesses: [
      { name: `store (${step.store.instruction})`, access: accessFromPlan(step.store, elementBytes) },
      { name: `load (${step.load.instruction})`, access: accessFromPlan(step.load, elementBytes) },
    ],
  };
}

export function exchangeView(plan, a) {
  const exchange = exchangeOf(plan, a);
  if (!exchange || !exchange.memory.fits) return null;
  return section("Shared memory", new BankScope(exchange).node);
}

/** What moves: for each bit of the source's index, the bits of the target's index that hold its direction. */
function movePicture(a, b) {
  if (!a.fits || !b.fits) return null;
  const rows = bitsOf(b), columns = bitsOf(a);
  const inverse = solver(rows.map(({ column }) => column));
  const cells = columns.map(({ column }) => inverse(column) ?? 0);
  const kinds = ["register", "lane", "warp", "block"];
  const grid = new Grid({
    label: "What moves: bits of the source's index across, bits of the target's index down",
    rows: rows.length, columns: columns.length, size: 28,
    rowHead: (row) => rows[row].short, columnHead: (column) => columns[column].short,
    cell: (row, column) => {
      const on = (cells[column] >>> row) & 1;
      const stays = on && rows[row].name === columns[column].name && rows[row].bit === columns[column].bit;
      return {
        fill: on ? hue(kinds.indexOf(rows[row].name), 4) : null,
        text: on ? (stays ? "=" : rows[row].name === columns[column].name ? "↕" : "→") : "",
      };
    },
    describe: (row, column) => {
      const from = columns[column], to = rows.filter((_, i) => (cells[column] >>> i) & 1);
      return `${from.name} bit ${from.bit} (${a.direction(from.column)}) goes to `
        + (to.map(({ name, bit }) => `${name} bit ${bit}`).join(" ⊕ ") || "nowhere");
    },
    hint: "Columns: bits of the source's index; rows: where they go in the target. = stays, ↕ moves within its kind,"
      + " → changes its kind.",
  });
  const kindsThatMove = columns.filter((_, i) => !rows.some((row, j) => cells[i] === 1 << j
    && row.name === columns[i].name && row.bit === columns[i].bit));
  return element("div", { class: "cells" }, element("h4", {}, "What moves"),
    element("p", { class: "quiet" }, `${plural(kindsThatMove.length, "bit")} of ${columns.length} change their place.`),
    grid.node);
}

function bitsOf(layout) {
  const short = { register: "r", lane: "t", warp: "w", block: "b" };
  return layout.inputs.flatMap((name) => layout.columns[name].map((column, bit) => (
    { name, bit, column, short: `${short[name] ?? name}${bit}` })));
}

