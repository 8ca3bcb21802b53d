// Reads what is pasted as a layout, and writes it as a type that the library reads:
//
//   tensor<16x32xf32, #ttg.blocked<{…}>>, memdesc types       as they are
//   #b = #ttg.blocked<{…}>  on a line before                  a name, as in TTGIR
//   #ttg.blocked<{…}> 16x32xf32                                a layout alone, with the tensor
//   (16,32):(32,1), row_major(16x32)                           memory, as CuTe or lilac write it
//   tv(16x32xf32) ((4,8),(2,2)):((…),(…))                      CuTe's thread-value layout of a tensor
//   16x32xf32                                                  directions: what each bit adds
//     register = m0 m1 m2 m3
//     lane = n0 n1 n2 n3 n4
//   16x32xf32 register:4 lane:5                                a bit matrix: rows n0 n1 … m0 m1 …
//     000010000 …

import { bitNames, Layout, scalarBits } from "./layouts.js";
import { tensorType } from "./question.js";

export class Unreadable extends Error {}

/** {type, definitions: [text], isMemory} */
export function readLayout(text, library) {
  const lines = text.split("\n").map((line) => line.replace(/\/\/.*$/, "").trim()).filter((line) => line !== "");
  const definitions = lines.filter((line) => /^#[\w$.-]+\s*=/.test(line));
  const rest = lines.filter((line) => !definitions.includes(line));
  const body = rest.join(" ");
  if (body === "") throw new Unreadable("Paste a layout, or choose an example.");
  if (/^tensor\s*</.test(body) || /^!/.test(body)) return { type: body, definitions, isMemory: /memdesc/.test(body) };
  if (body.startsWith("#")) return alone(body, definitions);
  if (/^tv\s*\(/.test(body)) return { type: threadValue(body, library), definitions: [], isMemory: false };
  if (/^\d+(x\d+)*x[a-z]\w*/.test(body)) {
    return { type: /[01]{2}/.test(rest[1] ?? "") ? matrix(rest) : directions(rest), definitions: [], isMemory: false };
  }
  return { type: body, definitions, isMemory: true };
}

function alone(body, definitions) {
  const match = /^(#.*>|#[\w$.-]+)\s+((?:\d+x)+)([a-z]\w*)$/.exec(body);
  if (!match) throw new Unreadable("Write the tensor behind a layout that is alone: #ttg.blocked<{…}> 16x32xf32");
  return { type: `tensor<${match[2]}${match[3]}, ${match[1]}>`, definitions, isMemory: false };
}

function tensorOf(head) {
  const match = /^((?:\d+x)+)([a-z]\w*)/.exec(head);
  const shape = match[1].split("x").slice(0, -1).map(Number);
  if (shape.some((size) => size < 1 || (size & (size - 1)) !== 0)) {
    throw new Unreadable(`The sizes of ${match[0]} are not powers of two.`);
  }
  if (scalarBits(match[2]) === 0) throw new Unreadable(`'${match[2]}' is not an element type.`);
  return { shape, element: match[2], rest: head.slice(match[0].length).trim() };
}

function linearType({ shape, element }, columns) {
  const layout = new Layout({ register: [] }, shape, scalarBits(element));
  layout.columns = columns;
  return tensorType(layout, element);
}

function directions(lines) {
  const tensor = tensorOf(lines[0]);
  const names = bitNames(tensor.shape.map((size) => Math.round(Math.log2(size))));
  const columns = {};
  for (const line of [tensor.rest, ...lines.slice(1)].join(";").split(";").filter((part) => part.trim() !== "")) {
    const match = /^\s*(register|lane|warp|block)\s*=\s*(.*)$/.exec(line);
    if (!match) throw new Unreadable(`Expected 'register = m0 m1 …' or lane, warp, block, found '${line.trim()}'.`);
    columns[match[1]] = match[2].split(/[\s,]+/).filter((word) => word !== "").map((word) => direction(word, names));
  }
  return linearType(tensor, columns);
}

function direction(word, names) {
  if (word === "0") return 0;
  return word.split(/[⊕^+]/).reduce((sum, name) => {
    const bit = names.indexOf(name);
    if (bit < 0) throw new Unreadable(`'${name}' is not a bit of the tensor; its bits are ${names.join(" ")}.`);
    return sum ^ (1 << bit);
  }, 0);
}

function matrix(lines) {
  const tensor = tensorOf(lines[0]);
  const groups = [...tensor.rest.matchAll(/(register|lane|warp|block)\s*:\s*(\d+)/g)]
    .map((match) => [match[1], Number(match[2])]);
  const rows = lines.slice(1).map((line) => line.replace(/[\s|]/g, ""));
  const bits = tensor.shape.reduce((sum, size) => sum + Math.round(Math.log2(size)), 0);
  const width = groups.reduce((sum, [, count]) => sum + count, 0);
  if (rows.length !== bits || rows.some((row) => row.length !== width || /[^01]/.test(row))) {
    throw new Unreadable(`A bit matrix of this tensor has ${bits} rows of ${width} digits 0 and 1.`);
  }
  const columns = {};
  let at = 0;
  for (const [name, count] of groups) {
    columns[name] = Array.from({ length: count }, (_, k) =>
      rows.reduce((sum, row, bit) => (row[at + k] === "1" ? sum | (1 << bit) : sum), 0));
    at += count;
  }
  return linearType(tensor, columns);
}

/** CuTe numbers the elements of a tensor with the first dimension fastest; threads are lanes and then warps. */
function threadValue(body, library) {
  const match = /^tv\s*\(\s*(\S+?)\s*\)\s*(.*)$/.exec(body);
  if (!match) throw new Unreadable("Write tv(16x32xf32) and a CuTe layout (thread, value).");
  const tensor = tensorOf(match[1]);
  const map = library.json(["layout", "--as", "offsets", "--json", match[2]]);
  const [thread, value] = Object.values(map);
  if (!thread || !value || Object.keys(map).length > 2) throw new Unreadable("Expected two modes: (thread, value).");
  const toRowMajor = ([offset]) => {
    let number = 0;
    const coordinates = tensor.shape.map((size) => {
      const c = offset % size;
      offset = Math.floor(offset / size);
      return c;
    });
    coordinates.forEach((c, dim) => (number = number * tensor.shape[dim] + c));
    return number;
  };
  const lanes = thread.map(toRowMajor);
  return linearType(tensor, { register: value.map(toRowMajor), lane: lanes.slice(0, 5), warp: lanes.slice(5) });
}

/** The element type that a type names. */
export function elementTypeOf(type) {
  const match = /^[^<]*<(?:\d+x)+(!?[\w.]+(?:<[^<>]*>)?)/.exec(type);
  return match ? match[1] : "f32";
}
