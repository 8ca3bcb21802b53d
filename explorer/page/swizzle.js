// The algorithm for an optimal swizzle (section 5.4 of the paper), step by step, for any pair of layouts, and the
// family of swizzles that exclusive ors make of one.
//
// Directions are numbers of elements (layouts.js). A memory layout has the directions of its vector, of its banks
// and of its segments: the bits of the offset from the lowest.

import { apply, Basis, extension, intersection, solver } from "./f2.js";
import { accessOf, withVector } from "./access.js";
import { Layout } from "./layouts.js";

const ROW_BYTES = 128;
const log2 = (number) => Math.round(Math.log2(number));

/** All steps. `mostBytes`: the widest access of a thread. */
export function derive(a, b, elementBytes, mostBytes) {
  const steps = { a, b, elementBytes, mostBytes, dimension: a.bits };
  const part = (layout, name) => extension([], (layout.columns[name] ?? []).filter((column) => column !== 0));
  steps.aRegister = part(a, "register");
  steps.bRegister = part(b, "register");
  steps.aThread = part(a, "lane");
  steps.bThread = part(b, "lane");
  const common = intersection(steps.aRegister, steps.bRegister);
  steps.common = common;
  chooseVector(steps, Math.max(0, log2(mostBytes / elementBytes)));
  const v = steps.vector.length;
  const rowBits = Math.max(0, log2(ROW_BYTES / (elementBytes * 2 ** v)));
  steps.bankBits = Math.min(rowBits, steps.dimension - v);
  steps.segmentBits = steps.dimension - v - steps.bankBits;
  steps.dropped = log2(Math.max(1, (elementBytes * 2 ** v) / 4));
  splitThreads(steps, a, b);
  chooseSegments(steps);
  chooseBanks(steps);
  return steps;
}

/** Directions of the common registers that no thread of either side moves along: accesses must be aligned. */
function chooseVector(steps, most) {
  const inputs = (layout) => ["lane", "warp", "block"].flatMap((name) => layout.columns[name] ?? []);
  const threads = extension([], [...inputs(steps.a), ...inputs(steps.b)].filter((column) => column !== 0));
  steps.vector = [];
  for (const direction of steps.common) {
    if (steps.vector.length < most && extension([...threads, ...steps.vector], [direction]).length > 0) {
      steps.vector.push(direction);
    }
  }
  steps.threads = threads;
}

/** The direction in the complement of the vector that contains all threads, equal to `direction` modulo the vector. */
function aligned(steps, directions) {
  const units = Array.from({ length: steps.dimension }, (_, bit) => 2 ** bit);
  const rest = [...steps.threads, ...extension([...steps.vector, ...steps.threads], units)];
  const coordinates = solver([...rest, ...steps.vector]);
  return directions.map((direction) => apply(rest, coordinates(direction) & (2 ** rest.length - 1)));
}

/** The lanes of one transaction, modulo the directions of the vector. */
function splitThreads(steps, a, b) {
  const lanes = (layout) => {
    const columns = layout.columns.lane ?? [];
    return columns.slice(0, Math.max(0, columns.length - steps.dropped));
  };
  const modulo = new Basis(steps.vector);
  const clean = (vectors) => extension(steps.vector, vectors.map((vector) => modulo.remainder(vector)));
  steps.aBank = clean(lanes(a));
  steps.bBank = clean(lanes(b));
  steps.shared = intersection(steps.aBank, steps.bBank);
  steps.onlyA = extension(steps.shared, steps.aBank);
  steps.onlyB = extension(steps.shared, steps.bBank);
}

function chooseSegments(steps) {
  const { segmentBits, vector, aBank, bBank } = steps;
  const pairs = Math.min(steps.onlyA.length, steps.onlyB.length);
  steps.sums = [];
  for (let i = 0; i < pairs; i++) steps.sums.push(steps.onlyA[i] ^ steps.onlyB[i]);
  const units = Array.from({ length: steps.dimension }, (_, bit) => 2 ** bit);
  steps.complement = extension([...vector, ...aBank, ...bBank], units);
  steps.free = [...steps.sums, ...steps.complement];
  steps.segments = steps.free.slice(0, segmentBits);
  // Where these are too few, segments of A's or B's own lanes: conflicts that no layout avoids.
  const rest = extension([...vector, ...steps.segments], [...steps.aBank, ...steps.bBank, ...units]);
  steps.padded = rest.slice(0, segmentBits - steps.segments.length);
  steps.segments = aligned(steps, [...steps.segments, ...steps.padded]);
}

function chooseBanks(steps) {
  const units = Array.from({ length: steps.dimension }, (_, bit) => 2 ** bit);
  steps.banks = aligned(steps, extension([...steps.vector, ...steps.segments], units));
}

/** The memory layout with these segments. */
export function memoryOf(steps, segments = steps.segments) {
  const offset = [...steps.vector, ...steps.banks, ...segments];
  const memory = new Layout({ offset: [] }, steps.a.shape, steps.a.elementBits);
  memory.columns.offset = offset;
  return memory;
}

/** Segments without an exclusive or: for each segment of the derivation one direction that completes the vector and
 *  the banks. */
export function plainSegments(steps) {
  const units = Array.from({ length: steps.dimension }, (_, bit) => 2 ** bit);
  return extension([...steps.vector, ...steps.banks], units);
}

/** toggles[segment][bank]: is the bank's direction added to the segment's? */
export function segmentsOf(steps, toggles) {
  return plainSegments(steps).map((segment, i) =>
    steps.banks.reduce((sum, bank, j) => (toggles[i][j] ? sum ^ bank : sum), segment));
}

/** The toggles whose segments span, with the vector, what the derived segments span. Null: there are none. */
export function togglesOf(steps) {
  const plain = plainSegments(steps);
  const basis = [...steps.vector, ...steps.banks, ...plain];
  const coordinates = solver(basis);
  const v = steps.vector.length, b = steps.banks.length, s = plain.length;
  // Rows: the derived segments in coordinates (banks | plain segments); reduced so that the second part is 1.
  const rows = steps.segments.map((segment) => {
    const c = coordinates(segment);
    return { banks: (c >>> v) & (2 ** b - 1), plain: c >>> (v + b) };
  });
  for (let i = 0; i < s; i++) {
    const pivot = rows.findIndex((row, at) => at >= i && (row.plain >>> i) & 1);
    if (pivot < 0) return null;
    [rows[i], rows[pivot]] = [rows[pivot], rows[i]];
    rows.forEach((row, at) => {
      if (at !== i && (row.plain >>> i) & 1) {
        row.banks ^= rows[i].banks;
        row.plain ^= rows[i].plain;
      }
    });
  }
  return rows.map((row) => steps.banks.map((_, j) => ((row.banks >>> j) & 1) === 1));
}

export function noToggles(steps) {
  return plainSegments(steps).map(() => steps.banks.map(() => false));
}

/** The textbook's: the number of the row is added to the bank, bit by bit. */
export function classicToggles(steps) {
  const first = steps.banks.findIndex((bank) => !steps.vector.includes(bank));
  return plainSegments(steps).map((_, i) => steps.banks.map((__, j) => j === first + i));
}

/** Wavefronts of storing A and loading B through a memory with these toggles, and the layouts with the registers
 *  renamed for its vectors. */
export function count(steps, toggles) {
  const memory = memoryOf(steps, segmentsOf(steps, toggles));
  const [a, b] = [steps.a, steps.b].map((layout) => withVector(layout, memory, steps.elementBytes, steps.mostBytes));
  const store = accessOf(a, memory, steps.elementBytes, steps.mostBytes);
  const load = accessOf(b, memory, steps.elementBytes, steps.mostBytes);
  return { memory, a, b, store, load, total: store.wavefronts + load.wavefronts };
}

/** Directions that lead from a lane to another one of the same transaction and from a segment to another one of the
 *  same bank: as many wavefronts as this space has elements. Bytes of one word are the same place. */
export function conflictSpace(steps, layout, access, memory) {
  const place = Math.max(0, 2 - log2(steps.elementBytes));
  const modulo = new Basis(memory.columns.offset.slice(0, place));
  const low = log2(ROW_BYTES / steps.elementBytes);
  const clean = (vectors) => extension([], vectors.map((vector) => modulo.remainder(vector)).filter((v) => v !== 0));
  const reached = [...layout.columns.lane.slice(0, log2(access.transactionLanes)),
    ...access.vectorRegisters.map((bit) => layout.columns.register[bit])];
  return intersection(clean(memory.columns.offset.slice(low)), clean(reached));
}

/** The count after each single toggle: [segment][bank] → wavefronts. */
export function neighbours(steps, toggles) {
  return toggles.map((row, i) => row.map((_, j) => {
    const changed = toggles.map((other) => [...other]);
    changed[i][j] = !changed[i][j];
    return count(steps, changed).total;
  }));
}

/** How many settings of the toggles reach the fewest wavefronts: exact where there are at most 2^limit settings,
 *  else null. */
export function familySize(steps, limit = 12) {
  const s = plainSegments(steps).length, b = steps.banks.length;
  if (s * b > limit) return null;
  let least = Infinity, size = 0;
  for (let setting = 0; setting < 2 ** (s * b); setting++) {
    const toggles = Array.from({ length: s }, (_, i) =>
      Array.from({ length: b }, (_, j) => ((setting >>> (i * b + j)) & 1) === 1));
    const { total } = count(steps, toggles);
    if (total < least) [least, size] = [total, 0];
    if (total === least) size++;
  }
  return { size, of: 2 ** (s * b), least };
}

/** The same for random settings, always the same ones. */
export function familySample(steps, best, of = 1000) {
  const least = count(steps, best).total;
  let size = 0, seed = 1;
  for (let k = 0; k < of; k++) {
    const toggles = best.map((row) => row.map(() => {
      seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
      return ((seed >> 16) & 1) === 1;
    }));
    if (count(steps, toggles).total <= least) size++;
  }
  return { size, of, least, sampled: true };
}

/** Another setting that reaches the fewest wavefronts: a random walk over optimal settings. */
export function anotherMember(steps, best, random = Math.random) {
  const { total } = count(steps, best);
  const s = best.length, b = steps.banks.length;
  for (let attempt = 0; attempt < 400; attempt++) {
    const toggles = best.map((row) => row.map((on) => (attempt < 200 ? random() < 0.5 : on)));
    for (let k = 0; k < 3 && s * b > 0; k++) {
      const i = Math.floor(random() * s), j = Math.floor(random() * b);
      toggles[i][j] = !toggles[i][j];
    }
    if (count(steps, toggles).total <= total) return toggles;
  }
  return best;
}

/** The same steps with another memory layout in place of the derived one: that of the library, where the lengths of
 *  the vectors differ from those of section 5.4. */
export function adopt(steps, memory) {
  const low = Math.min(log2(ROW_BYTES / steps.elementBytes), memory.bits);
  const columns = memory.columns.offset;
  return { ...steps, vector: [], banks: columns.slice(0, low), segments: columns.slice(low) };
}
