// A linear layout: labelled input bits, each with the coordinates of the tensor that it adds.
//
// The element at (m, n) has the number m · columns + n: the last dimension is the fastest. Bits of this number
// have names, n0 n1 … m0 m1 …, in which directions of the tensor are written.

import { apply, Basis, MOST_BITS } from "./f2.js";

const LETTERS = { 1: ["i"], 2: ["m", "n"], 3: ["l", "m", "n"] };

export class Layout {
  /** From the JSON of `lilac layout --json`: {"register": [[0, 1], …], …}, and the shape. */
  constructor(inputs, shape, elementBits = 0) {
    this.shape = shape;
    this.elementBits = elementBits;
    this.dimBits = shape.map((size) => Math.round(Math.log2(size)));
    this.bits = this.dimBits.reduce((sum, bits) => sum + bits, 0);
    this.inputs = Object.keys(inputs);
    this.columns = {};
    for (const name of this.inputs) this.columns[name] = inputs[name].map((c) => this.number(c));
  }

  get isMemory() {
    return this.inputs.includes("offset");
  }

  get fits() {
    return this.bits <= MOST_BITS && this.all.length <= MOST_BITS;
  }

  /** The columns of all inputs, the first input lowest. */
  get all() {
    return this.inputs.flatMap((name) => this.columns[name]);
  }

  size(name) {
    return this.columns[name] ? 2 ** this.columns[name].length : 1;
  }

  /** The number of the element at these coordinates. */
  number(coordinates) {
    return coordinates.reduce((sum, c, dim) => sum * 2 ** this.dimBits[dim] + c, 0);
  }

  coordinates(number) {
    const result = [];
    for (let dim = this.shape.length - 1; dim >= 0; dim--) {
      result[dim] = number % this.shape[dim];
      number = Math.floor(number / this.shape[dim]);
    }
    return result;
  }

  /** The element that an input index {register, lane, …} holds. */
  element(index) {
    let sum = 0;
    for (const name of this.inputs) sum ^= apply(this.columns[name], index[name] ?? 0);
    return sum;
  }

  /** For each element the lowest input index that holds it, or -1; all inputs in one number. */
  owners() {
    if (this.ownersOf) return this.ownersOf;
    const owners = new Int32Array(2 ** this.bits).fill(-1);
    const columns = this.all;
    const count = 2 ** columns.length;
    let element = 0;
    owners[0] = 0;
    for (let i = 1; i < count; i++) { // Gray code: one column changes
      element ^= columns[31 - Math.clz32(i & -i)];
      const gray = i ^ (i >>> 1);
      if (owners[element] < 0 || gray < owners[element]) owners[element] = gray;
    }
    this.ownersOf = owners;
    return owners;
  }

  /** An input index in one number as {register, lane, warp, …}. */
  split(index) {
    const result = {};
    for (const name of this.inputs) {
      const bits = this.columns[name].length;
      result[name] = index & (2 ** bits - 1);
      index >>>= bits;
    }
    return result;
  }

  /** log2 of the number of times that each element is held. */
  get copyBits() {
    return this.all.length - new Basis(this.all).dimension;
  }

  /** "m0⊕n1" */
  direction(vector) {
    return nameDirection(vector, this.dimBits);
  }
}

export function bitNames(dimBits) {
  const letters = LETTERS[dimBits.length] ?? dimBits.map((_, dim) => `d${dim}.`);
  const names = [];
  for (let dim = dimBits.length - 1; dim >= 0; dim--) {
    for (let bit = 0; bit < dimBits[dim]; bit++) names.push(`${letters[dim]}${bit}`);
  }
  return names;
}

export function nameDirection(vector, dimBits) {
  const names = bitNames(dimBits);
  const terms = names.filter((_, bit) => (vector >>> bit) & 1);
  return terms.length === 0 ? "0" : terms.reverse().join("⊕");
}

/** The layout of a type that is written with linear layouts, without the library. Null: it is another one. */
export function parseLinear(type) {
  const match = /^(?:tensor|!ttg\.memdesc)<((?:\d+x)+)(.*?),\s*#ttg\.(?:shared_|generic_)?linear<\{(.*)\}>/.exec(type);
  if (!match) return null;
  const shape = match[1].split("x").slice(0, -1).map(Number);
  const inputs = {};
  for (const part of match[3].matchAll(/(\w+)\s*=\s*(\[(?:\[[^\]]*\]|[\s,])*\])/g)) {
    inputs[part[1]] = JSON.parse(part[2]);
  }
  return new Layout(inputs, shape, scalarBits(match[2]));
}

export function scalarBits(text) {
  if (text.includes("ptr<")) return 64;
  const match = /^(?:f|bf|i|tf|u|si|ui)(\d+)/.exec(text.trim());
  return match ? Number(match[1]) : 0;
}

/** The shape and the element bits that a type states. */
export function typeFacts(type) {
  const match = /<((?:\d+x)+)([^,>]*)/.exec(type);
  if (!match) return null;
  return { shape: match[1].split("x").slice(0, -1).map(Number), elementBits: scalarBits(match[2]) };
}
