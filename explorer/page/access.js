// The model of shared memory: 32 banks of 4 bytes. It is the model of the library (lilac/plan.h); `lilac conflicts`
// counts the same wavefronts by formula and on the simulator, and the tests compare both with this one.

import { apply, Basis, extension, inverse } from "./f2.js";
import { Layout } from "./layouts.js";

export const BANKS = 32;
const BANK_BYTES = 4;
const ROW_BYTES = BANKS * BANK_BYTES;

/** How a warp accesses memory: byte offsets of each step, lane and warp bit.
 *  {bytes, step, lane, warp, stepRegisters, vectorRegisters, transactionLanes, instructions …} */
export function accessOf(layout, memory, elementBytes, mostBytes = 16) {
  const back = inverse(memory.columns.offset, memory.bits);
  if (!back) return null;
  const offset = (column) => apply(back, column);
  const registers = distinct(layout.columns.register).map((bit) => [bit, offset(layout.columns.register[bit])]);
  const lane = layout.columns.lane.map(offset), warp = (layout.columns.warp ?? []).map(offset);
  const vector = [];
  for (;;) { // the register bits at offsets 1, 2, 4 … as long as everything else is aligned
    const next = registers.findIndex(([, at]) => at === 2 ** vector.length);
    const size = 2 ** (vector.length + 1);
    if (next < 0 || size * elementBytes > mostBytes) break;
    const others = [...registers.filter((_, i) => i !== next).map(([, at]) => at), ...lane, ...warp];
    if (others.some((at) => at % size !== 0)) break;
    vector.push(registers.splice(next, 1)[0]);
  }
  return describe({
    bytes: elementBytes * 2 ** vector.length,
    vectorRegisters: vector.map(([bit]) => bit),
    stepRegisters: registers.map(([bit]) => bit),
    step: registers.map(([, at]) => at * elementBytes),
    lane: lane.map((at) => at * elementBytes),
    warp: warp.map((at) => at * elementBytes),
    matrix: false,
  });
}

/** The same layout with another basis of its registers, which is a renaming of registers: one whose first bits are
 *  the longest vector that the memory allows. */
export function withVector(layout, memory, elementBytes, mostBytes = 16) {
  const back = inverse(memory.columns.offset, memory.bits);
  const offset = (column) => apply(back, column);
  const registers = layout.columns.register.map(offset), span = new Basis(registers);
  const others = [...layout.columns.lane, ...(layout.columns.warp ?? [])].map(offset);
  const vector = [];
  for (let next = 1; 2 * next * elementBytes <= mostBytes && span.has(next); next *= 2) {
    if (others.some((at) => at % (2 * next) !== 0)) break;
    vector.push(next);
  }
  const aligned = registers.map((at) => at - (at % 2 ** vector.length));
  const result = new Layout({ register: [] }, layout.shape, layout.elementBits);
  result.inputs = layout.inputs;
  result.columns = { ...layout.columns,
    register: [...vector, ...extension(vector, aligned)].map((at) => apply(memory.columns.offset, at)) };
  return result;
}

/** Register bits that are no copies of others. */
function distinct(columns) {
  const basis = new Basis();
  return columns.map((_, bit) => bit).filter((bit) => basis.add(columns[bit]));
}

/** An access of the JSON of `lilac convert --json`: its offsets are in elements. A matrix instruction has
 *  transactions of the 8 lanes that supply the addresses of a matrix's rows. */
export function accessFromPlan(plan, elementBytes) {
  const matrix = plan.instruction !== "vector";
  return describe({
    bytes: matrix ? 16 : plan.bytes,
    step: plan.step.map((at) => at * elementBytes),
    lane: plan.lane.map((at) => at * elementBytes),
    warp: plan.warp.map((at) => at * elementBytes),
    matrices: plan.matrices,
    instruction: plan.instruction,
    matrix,
  });
}

function describe(access) {
  const words = Math.max(1, access.bytes / BANK_BYTES);
  const lanes = access.matrix ? 8 * (access.matrices ?? 1) : 2 ** access.lane.length;
  access.words = words;
  access.activeLanes = lanes;
  access.transactionLanes = access.matrix ? 8 : Math.min(lanes, Math.max(1, BANKS / words));
  access.transactions = lanes / access.transactionLanes;
  access.steps = 2 ** access.step.length;
  access.warps = 2 ** access.warp.length;
  access.wavefrontsOfTransaction = formula(access);
  access.instructions = access.steps * access.warps;
  access.wavefronts = access.instructions * access.transactions * access.wavefrontsOfTransaction;
  return access;
}

/** Lemma 9.4, extended to narrow elements: with S the span of the words that the lanes of a transaction and the
 *  words of a vector reach, one bank serves 2^(dim S − dim bank(S)) of them. */
function formula(access) {
  const laneBits = Math.log2(access.transactionLanes);
  const words = access.lane.slice(0, laneBits).map((at) => Math.floor(at / BANK_BYTES));
  for (let word = 1; word < access.words; word *= 2) words.push(word);
  const span = new Basis(words);
  const banks = new Basis(words.map((word) => word % BANKS));
  return 2 ** (span.dimension - banks.dimension);
}

/** The byte address of a lane with instruction number `step` of a warp. */
export function addressOf(access, step, lane, warp = 0) {
  return apply(access.step, step) ^ apply(access.lane, lane) ^ apply(access.warp, warp);
}

/** One instruction of a warp, lane by lane: the transactions, each with its wavefronts, each with what every bank
 *  serves: [{lanes, wavefronts: [[{bank, word, lanes}, …], …]}]. */
export function wavefrontsOf(access, step, warp = 0) {
  const transactions = [];
  for (let first = 0; first < access.activeLanes; first += access.transactionLanes) {
    const banks = new Map(); // bank → word → lanes
    for (let lane = first; lane < first + access.transactionLanes; lane++) {
      const address = addressOf(access, step, lane, warp);
      for (let w = 0; w < access.words; w++) {
        const word = Math.floor(address / BANK_BYTES) + w, bank = word % BANKS;
        if (!banks.has(bank)) banks.set(bank, new Map());
        const served = banks.get(bank);
        if (!served.has(word)) served.set(word, []);
        served.get(word).push(lane);
      }
    }
    const wavefronts = [];
    for (const [bank, served] of banks) {
      [...served].forEach(([word, lanes], turn) => {
        (wavefronts[turn] ??= []).push({ bank, word, lanes });
      });
    }
    transactions.push({ first, wavefronts });
  }
  return transactions;
}

export const bankOf = (byte) => Math.floor(byte / BANK_BYTES) % BANKS;
export const segmentOf = (byte) => Math.floor(byte / ROW_BYTES);
