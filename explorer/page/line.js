// What became of one line of the user's program: operations, accesses to global memory, conversions, shared memory,
// layouts.

import { element, plural, section, table } from "./dom.js";
import { baseName, typesIn } from "./locations.js";
import { cells } from "./cells.js";
import { elementTypeOf } from "./input.js";
import { exchangeView, planView } from "./plan.js";
import { whyView } from "./explanation.js";
import { BankScope } from "./banks.js";
import { accessOf } from "./access.js";
import { Layout, parseLinear } from "./layouts.js";
import { tensorType } from "./question.js";

const MOST_OPERATIONS = 14;
const MOST_LAYOUTS = 4;

export function lineDetail(given) {
  const operations = given.tile.filter((line) => line.place === given.place && !/^[\s})]*$/.test(line.text));
  return element("div", {},
    section(`What became of ${given.place}`,
      given.text ? element("p", {}, element("code", {}, given.text)) : null,
      operationList(operations), globalAccesses(given)),
    given.explanation ? whyView(given.explanation, given.place) : null,
    given.library ? conversions(given, operations) : null,
    given.library ? sharedAccesses(given, operations) : null,
    layouts(given, operations));
}

function operationList(operations) {
  const shown = operations.slice(0, MOST_OPERATIONS).map(({ text }) => text.trim()).join("\n");
  const more = operations.length - MOST_OPERATIONS;
  return element("div", {}, element("p", { class: "quiet" }, plural(operations.length, "operation")
    + (more > 0 ? `; the first ${MOST_OPERATIONS}:` : ":")), element("pre", { tabindex: "0" }, shown));
}

const atPlace = (source, place) => source && `${baseName(source[0])}:${source[1]}` === place;

function globalAccesses({ metadata, place }) {
  const rows = metadata.accesses.each.filter(({ source }) => atPlace(source, place)).map(({ operation, loops, plan }) => [
    operation, `${plan.bytes} bytes`, `${plan.counts.instructions} (${plan.lower_bound.instructions})`,
    `${plan.counts.sectors} (${plan.lower_bound.sectors})`, `${plan.counts.lines} (${plan.lower_bound.lines})`,
    String(loops), String(plan.cycles),
  ]);
  if (rows.length === 0) return null;
  return element("div", {}, element("h4", {}, "Global memory"),
    table(["access", "of a lane", "instructions (least)", "sectors (least)", "lines (least)", "in loops", "clocks"], rows,
      { class: "numbers" }));
}

// ---- types of this kernel, written out ----

function resolve(given, type) {
  const parsed = parseLinear(type);
  if (parsed) return { type, layout: parsed };
  if (!given.library) return null;
  try {
    const layout = given.library.layout(type, given.definitions);
    return { type: layout.isMemory ? type : tensorType(layout, elementTypeOf(type)), layout };
  } catch {
    return null;
  }
}

function conversions(given, operations) {
  const found = operations.filter(({ raw }) => raw.includes("ttg.convert_layout"));
  return element("div", {}, found.slice(0, 3).map(({ raw }) => {
    const [source, target] = typesIn(raw).map((type) => resolve(given, type));
    if (!source || !target) return null;
    const options = { device: given.metadata.target };
    const plan = given.library.convert(source.type, target.type, options);
    return element("div", {},
      section("Conversion",
        planView(given.library, source.type, target.type, source.layout, target.layout, options)),
      exchangeView(plan, source.layout));
  }));
}

function sharedAccesses(given, operations) {
  const found = operations.filter(({ raw }) => /ttg\.local_(load|store|alloc)\b/.test(raw));
  return element("div", {}, found.slice(0, 3).map(({ raw, text }) => {
    const types = typesIn(raw);
    const tensor = types.find((type) => type.startsWith("tensor")), memory = types.find((type) => !type.startsWith("tensor"));
    const first = tensor && resolve(given, tensor), second = memory && resolve(given, memory);
    if (!first || !second || !second.layout.fits) return null;
    const elementBytes = Math.max(1, first.layout.elementBits / 8);
    const layout = new Layout({ offset: [] }, first.layout.shape, first.layout.elementBits);
    layout.columns.offset = second.layout.columns.offset;
    const access = accessOf(first.layout, layout, elementBytes);
    if (!access) return null;
    return section("Shared memory", element("pre", {}, text.trim()),
      new BankScope({ accesses: [{ name: "access", access }], memory: layout, elementBytes }).node);
  }));
}

function layouts(given, operations) {
  const seen = new Map();
  for (const { raw } of operations) {
    for (const type of typesIn(raw)) {
      const resolved = resolve(given, type);
      if (!resolved) continue;
      const key = JSON.stringify([resolved.layout.shape, resolved.layout.columns]);
      if (!seen.has(key)) seen.set(key, { ...resolved, name: elementTypeOf(type) });
    }
  }
  const size = ({ layout }) => layout.shape.reduce((product, extent) => product * extent, 1);
  const largest = [...seen.values()].sort((a, b) => size(b) - size(a)).slice(0, MOST_LAYOUTS);
  if (largest.length === 0) return null;
  return section("Layouts", element("div", { class: "pair" }, largest.map(({ layout, name }) =>
    cells(`${layout.shape.join("×")} ${name}${layout.isMemory ? " in memory" : ""}`, layout))));
}
