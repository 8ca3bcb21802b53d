// A tensor with the owner of each element: coloured by lane, warp or register.

import { choice, element, replace } from "./dom.js";
import { bankOf, BANKS, segmentOf } from "./access.js";
import { hue } from "./colours.js";
import { Grid } from "./grid.js";

export const MOST_CELLS = 1 << 15;
const SHORT = { register: "r", lane: "t", warp: "w", block: "b", offset: "" };
const PLURAL = { register: "registers", lane: "lanes", warp: "warps", block: "blocks", offset: "offsets" };

/** The last two dimensions as rows and columns; of a tensor with one dimension of several elements, rows of 32. */
export function tableOf(layout, slice = 0) {
  const { shape } = layout;
  const count = shape.reduce((product, size) => product * size, 1);
  if (shape.filter((size) => size > 1).length <= 1) {
    const columns = Math.min(32, count);
    return { rows: count / columns, columns, slices: 1, number: (row, column) => row * columns + column };
  }
  const [rows, columns] = shape.slice(-2);
  const slices = shape.slice(0, -2).reduce((product, size) => product * size, 1);
  return { rows, columns, slices, number: (row, column) => (slice * rows + row) * columns + column };
}

export function describeOwner(layout, index) {
  return Object.entries(layout.split(index))
    .filter(([name]) => layout.columns[name].length > 0 || name === "offset")
    .map(([name, value]) => `${name} ${value}`).join(", ");
}

/** What may colour the cells: the inputs; of memory, banks and segments. */
function coloursOf(layout, names) {
  if (layout.isMemory && layout.elementBits >= 8) return [["bank", "banks"], ["segment", "segments"]];
  return names.map((name) => [name, PLURAL[name] ?? name]);
}

function colour(layout, parts, chosen) {
  const byte = (parts.offset ?? 0) * (layout.elementBits / 8);
  if (chosen === "bank") return hue(bankOf(byte), BANKS);
  if (chosen === "segment") {
    return hue(segmentOf(byte), Math.max(1, segmentOf(layout.size("offset") * (layout.elementBits / 8))));
  }
  return hue(parts[chosen] ?? 0, layout.size(chosen));
}

/** A figure of a layout with a choice of what colours it. `hover(number or null)` hears of elements; the node's
 *  show(number) marks an element. */
export function cells(title, layout, { hover = () => {}, by = null } = {}) {
  if (!layout.fits || layout.shape.reduce((a, b) => a * b, 1) > MOST_CELLS * 16) {
    return element("p", { class: "note" }, `${title}: too large to draw.`);
  }
  const owners = layout.owners();
  const names = layout.inputs.filter((name) => layout.columns[name].length > 0);
  const kinds = coloursOf(layout, names);
  let chosen = by ?? (names.includes("lane") ? "lane" : kinds[0]?.[0] ?? layout.inputs[0]);
  let slice = 0, shown = null;
  const body = element("div", {});
  const table = () => tableOf(layout, slice);
  let shownTable = table();

  function cell(row, column) {
    const number = shownTable.number(row, column), owner = owners[number];
    if (owner < 0) return { text: "·" };
    const parts = layout.split(owner), fill = colour(layout, parts, chosen), mark = shown === number;
    if (grid.cellSize < 16) return { fill, mark };
    return {
      fill,
      mark,
      text: names.map((name) => `${SHORT[name] ?? name}${parts[name]}`).slice(-3).reverse().join(" ")
        .replace(/^(\S+ \S+) /, "$1\n"),
    };
  }

  function describe(row, column) {
    const number = table().number(row, column), owner = owners[number];
    const where = `element (${layout.coordinates(number).join(", ")})`;
    if (owner < 0) return `${where}: nothing holds it`;
    const copies = layout.copyBits > 0 ? `, ${2 ** layout.copyBits} copies` : "";
    return `${where}: ${describeOwner(layout, owner)}${copies}`;
  }

  let grid = null;
  function draw() {
    const { rows, columns } = table();
    grid = new Grid({
      label: `${title}: a table of ${rows} by ${columns} elements, coloured by ${chosen}`,
      rows, columns, cell, describe,
      hint: "Point at an element, or use the arrow keys.",
      hover: (at) => hover(at ? table().number(at.row, at.column) : null),
    });
    replace(body, grid.node);
  }
  draw();
  const controls = element("div", { class: "controls" });
  if (kinds.length > 1) {
    controls.append(element("span", { class: "quiet" }, "colour"),
      choice(`Colour of ${title}`, kinds, chosen, (value) => {
        chosen = value;
        grid.label = grid.label.replace(/coloured by \w+/, `coloured by ${chosen}`);
        grid.canvas.setAttribute("aria-label", grid.label);
        grid.draw();
      }));
  }
  if (table().slices > 1) {
    controls.append(element("label", { class: "field" }, element("span", {}, "slice"), element("input", {
      type: "number", min: 0, max: table().slices - 1, value: 0,
      oninput: (event) => {
        slice = Math.min(table().slices - 1, Math.max(0, Number(event.target.value) || 0));
        shownTable = table();
        grid.draw();
      },
    })));
  }
  const node = element("div", { class: "cells" }, element("h4", {}, title), controls, body);
  node.show = (number) => {
    if (shown === number) return;
    shown = number;
    grid.draw();
  };
  return node;
}

/** The bit matrix: a column for each input bit, a row for each bit of the tensor. */
export function bitMatrix(title, layout) {
  const columns = layout.inputs.flatMap((name) => layout.columns[name].map((column, bit) => ({ name, bit, column })));
  if (columns.length === 0 || layout.bits === 0) return null;
  const names = layout.bits > 0 ? Array.from({ length: layout.bits }, (_, bit) => layout.direction(1 << bit)) : [];
  const kinds = [...new Set(columns.map(({ name }) => name))];
  const grid = new Grid({
    label: `${title}: the bit matrix, ${layout.bits} by ${columns.length}`,
    rows: layout.bits, columns: columns.length, size: 24,
    rowHead: (row) => names[row],
    columnHead: (column) => `${SHORT[columns[column].name] || "o"}${columns[column].bit}`,
    cell: (row, column) => {
      const on = (columns[column].column >>> row) & 1;
      return { fill: on ? hue(kinds.indexOf(columns[column].name), kinds.length) : null, text: on ? "1" : "" };
    },
    describe: (row, column) => {
      const { name, bit, column: vector } = columns[column];
      return `${name} bit ${bit} adds ${layout.direction(vector)}`;
    },
    hint: "Each column is what one input bit adds to the position.",
  });
  return element("div", { class: "cells" }, element("h4", {}, title), grid.node);
}
