// Questions to the library, each one a command line. Equal questions are asked once.

import { Layout, typeFacts } from "./layouts.js";

export class Refusal extends Error {}

export class Library {
  constructor(command) {
    this.command = command;
    this.answers = new Map();
  }

  run(words, input = "") {
    const key = JSON.stringify([words, input]);
    if (!this.answers.has(key)) {
      if (this.answers.size > 500) this.answers.clear();
      this.answers.set(key, this.command.run(words, input));
    }
    return this.answers.get(key);
  }

  /** Standard output of a command; throws what it reported where it refused. Status 3, a failed check of the
   *  command itself, is an error as well. */
  text(words, input = "") {
    const { status, out, err } = this.run(words, input);
    if (status !== 0) throw new Refusal(err.trim() || `lilac stopped with status ${status}`);
    return out;
  }

  json(words, input = "") {
    return JSON.parse(this.text(words, input));
  }

  /** The linear layout of a type; `definitions` are those of names that it uses. */
  layout(type, definitions = []) {
    const inputs = this.json(["layout", "--json", ...definitions, type]);
    const facts = typeFacts(type) ?? shapeOf(inputs);
    return new Layout(inputs, facts.shape, facts.elementBits);
  }

  linearText(type, definitions = []) {
    return this.text(["layout", ...definitions, type]).trim();
  }

  /** The CuTe layout, or null where there is none. */
  cute(type, definitions = []) {
    const { status, out } = this.run(["layout", "--as", "cute", ...definitions, type]);
    return status === 0 ? out.trim() : null;
  }

  convert(source, target, options = {}) {
    return this.json(["convert", "--json", ...optionWords(options), source, target]);
  }

  explainConversion(source, target, options = {}) {
    return this.text(["convert", ...optionWords(options), source, target]);
  }

  swizzle(source, target, options = {}) {
    const { vector, device } = options;
    return this.json(["swizzle", "--json", ...optionWords({ vector, device }), source, target]);
  }

  /** Wavefronts by formula and by simulation. */
  conflicts(tensor, memory) {
    return this.json(["conflicts", "--json", tensor, memory]);
  }

  explain(text, options = {}) {
    return this.json(["explain", "-", "--json", ...compileWords(options)], text);
  }

  compile(text, emit, options = {}) {
    return this.text(["compile", "-", "--emit", emit, ...compileWords(options)], text);
  }
}

function optionWords({ through, vector, device }) {
  return [
    ...(through ? ["--through", through] : []),
    ...(vector ? ["--vector", String(vector)] : []),
    ...(device ? ["--target", device] : []),
  ];
}

export function compileWords({ device, warps, stages }) {
  return [
    ...(device ? ["--target", device] : []),
    ...(warps ? ["--num-warps", String(warps)] : []),
    ...(stages ? ["--num-stages", String(stages)] : []),
  ];
}

/** A memory layout that is written out states no shape: that of its image. */
function shapeOf(inputs) {
  const largest = [];
  for (const column of Object.values(inputs).flat()) {
    column.forEach((c, dim) => (largest[dim] = (largest[dim] ?? 0) | c));
  }
  return { shape: largest.map((bits) => 2 ** (32 - Math.clz32(bits))), elementBits: 0 };
}

/** A memdesc type of a memory layout of this page. */
export function memoryType(memory, elementType) {
  const columns = memory.columns.offset.map((column) => `[${memory.coordinates(column).join(", ")}]`);
  return `!ttg.memdesc<${memory.shape.join("x")}x${elementType}, #ttg.shared_linear<{offset = [${columns.join(", ")}],`
    + " block = []}, alignment = 16>, #ttg.shared_memory>";
}

/** A tensor type of a distributed layout of this page. #ttg.linear has directions along one dimension only. */
export function tensorType(layout, elementType) {
  const parts = ["register", "lane", "warp", "block"]
    .map((name) => [name, (layout.columns[name] ?? []).map((column) => layout.coordinates(column))]);
  const along = parts.every(([, columns]) => columns.every((column) => column.filter((c) => c !== 0).length <= 1
    && column.every((c) => (c & (c - 1)) === 0)));
  const inputs = parts.map(([name, columns]) => `${name} = [${columns.map((c) => `[${c.join(", ")}]`).join(", ")}]`);
  return `tensor<${layout.shape.join("x")}x${elementType}, #ttg.${along ? "linear" : "generic_linear"}<{${inputs.join(", ")}}>>`;
}
