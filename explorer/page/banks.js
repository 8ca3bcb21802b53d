// The bank scope: which lanes of a warp meet in which bank, wavefront by wavefront, and lane by lane as an animation.

import { choice, element, plural, replace } from "./dom.js";
import { hue } from "./colours.js";
import { Grid } from "./grid.js";
import { BANKS, wavefrontsOf } from "./access.js";

const MOST_ROWS = 32;
const FRAME_MS = 90;

/** accesses: [{name, access}], memory: the layout of shared memory, whose elements have elementBytes bytes. */
export class BankScope {
  constructor({ accesses, memory, elementBytes, side = 0 }) {
    Object.assign(this, { accesses, memory, elementBytes, side });
    this.step = this.warp = 0;
    this.lanes = Infinity; // how many lanes the animation shows
    this.node = element("div", { class: "scope" });
    this.build();
  }

  get access() {
    return this.accesses[this.side].access;
  }

  /** Other memory or other accesses, with the same choices. */
  update({ accesses, memory }) {
    Object.assign(this, { accesses, memory });
    this.build();
  }

  build() {
    this.step = Math.min(this.step, this.access.steps - 1);
    this.warp = Math.min(this.warp, this.access.warps - 1);
    this.controls = element("div", { class: "controls" });
    this.picture = element("div", {});
    this.summary = element("div", { class: "wavefronts", "aria-live": "polite" });
    replace(this.node, this.controls, this.picture, this.summary);
    this.controls.append(choice("Access", this.accesses.map(({ name }, i) => [i, name]), this.side, (side) => {
      this.side = Number(side);
      this.build();
    }));
    if (this.access.steps > 1) this.controls.append(this.slider("instruction", "step", this.access.steps));
    if (this.access.warps > 1) this.controls.append(this.slider("warp", "warp", this.access.warps));
    this.button = element("button", { type: "button", class: "plain", onclick: () => this.play() }, "Play lane by lane");
    this.controls.append(this.button);
    this.show();
  }

  slider(label, field, count) {
    const output = element("output", {}, `${this[field]} of 0–${count - 1}`);
    return element("label", { class: "field" }, element("span", {}, label), element("input", {
      type: "range", min: 0, max: count - 1, value: this[field],
      oninput: (event) => {
        this[field] = Number(event.target.value);
        output.textContent = `${this[field]} of 0–${count - 1}`;
        this.show();
      },
    }), output);
  }

  play() {
    if (this.timer) return this.stop();
    this.button.textContent = "Stop";
    this.lanes = 0;
    this.timer = setInterval(() => {
      this.lanes++;
      this.grid.draw();
      this.drawHits();
      if (this.lanes >= this.access.activeLanes || !this.node.isConnected) this.stop();
    }, FRAME_MS);
    return undefined;
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.lanes = Infinity;
    this.button.textContent = "Play lane by lane";
    this.grid.draw();
    this.drawHits();
  }

  /** word → {lanes, turn, transaction} for this instruction. */
  served() {
    const words = new Map();
    wavefrontsOf(this.access, this.step, this.warp).forEach(({ wavefronts }, transaction) => {
      wavefronts.forEach((wavefront, turn) => {
        for (const { word, lanes } of wavefront) words.set(word, { lanes, turn, transaction });
      });
    });
    return words;
  }

  /** The elements of a word of memory: "0,4", or "0,4…" for several. */
  elementsAt(word) {
    const first = Math.floor((word * 4) / this.elementBytes), count = Math.max(1, 4 / this.elementBytes);
    const elements = [];
    for (let i = first; i < first + count; i++) {
      if (i < 2 ** this.memory.bits) elements.push(this.memory.coordinates(this.memory.element({ offset: i })));
    }
    return elements;
  }

  show() {
    const access = this.access;
    this.words = this.served();
    const rows = Math.max(1, Math.ceil((2 ** this.memory.bits * this.elementBytes) / (4 * BANKS)));
    const touched = [...new Set([...this.words.keys()].map((word) => Math.floor(word / BANKS)))].sort((a, b) => a - b);
    this.rows = rows <= MOST_ROWS ? Array.from({ length: rows }, (_, i) => i) : touched.slice(0, 2 * MOST_ROWS);
    this.grid = new Grid({
      label: `Shared memory: ${this.rows.length} rows of 32 banks, with the words of instruction ${this.step}`,
      rows: this.rows.length, columns: BANKS, size: 26,
      rowHead: (row) => String(this.rows[row]),
      cell: (row, column) => this.cell(this.rows[row] * BANKS + column),
      describe: (row, column) => this.describe(this.rows[row] * BANKS + column),
      hint: "Columns are banks, rows are segments of 128 bytes. Words that one instruction accesses have the number of"
        + " the lane; a frame marks words that share a bank with another one.",
    });
    this.hits = element("div", { class: "hits", "aria-hidden": "true" });
    replace(this.picture, this.grid.node);
    this.grid.node.querySelector(".scroll").append(this.hits);
    this.drawHits();
    this.drawSummary(access);
  }

  cell(word) {
    const elements = this.elementsAt(word);
    if (elements.length === 0) return null;
    const served = this.words.get(word);
    const lanes = served ? served.lanes.filter((lane) => lane < this.lanes) : [];
    if (lanes.length === 0) return { text: elements[0].join(","), faint: true };
    return {
      fill: hue(lanes[0], this.access.activeLanes),
      text: lanes.length > 1 ? `t${lanes[0]}+${lanes.length - 1}` : `t${lanes[0]}`,
      mark: this.inConflict(word, served),
    };
  }

  inConflict(word, { transaction }) {
    for (const [other, served] of this.words) {
      if (other !== word && other % BANKS === word % BANKS && served.transaction === transaction) return true;
    }
    return false;
  }

  describe(word) {
    const elements = this.elementsAt(word).map((at) => `(${at.join(", ")})`).join(" ");
    const served = this.words.get(word);
    const place = `bank ${word % BANKS}, segment ${Math.floor(word / BANKS)}: element ${elements || "none"}`;
    if (!served) return place;
    return `${place}; lane ${served.lanes.join(", ")} in wavefront ${served.turn + 1} of transaction ${served.transaction + 1}`;
  }

  drawHits() {
    const counts = new Array(BANKS).fill(0);
    for (const [word, { lanes, transaction }] of this.words) {
      if (transaction === 0 && lanes.some((lane) => lane < this.lanes)) counts[word % BANKS]++;
    }
    const most = Math.max(...counts, 1);
    replace(this.hits, counts.map((count) => element("span", {
      class: count > 1 ? "bad" : "", style: `height:${Math.round((30 * count) / Math.max(most, 2))}px`,
      title: `${count}`,
    })));
  }

  drawSummary(access) {
    const transactions = wavefrontsOf(access, this.step, this.warp);
    const counts = transactions.map(({ wavefronts }) => wavefronts.length);
    const sum = counts.reduce((a, b) => a + b, 0);
    const list = transactions.slice(0, 8).map(({ first, wavefronts }, i) => element("li", {},
      `transaction ${i + 1}, lanes ${first}–${first + access.transactionLanes - 1}: `,
      element("b", { class: wavefronts.length > 1 ? "bad" : "good" }, plural(wavefronts.length, "wavefront")),
      wavefronts.length > 1 ? ` — ${this.firstConflict(wavefronts)}` : ""));
    replace(this.summary,
      element("p", {}, `${this.accesses[this.side].name}: instruction ${this.step} accesses ${access.bytes} bytes a lane`
        + ` in ${plural(transactions.length, "transaction")}: ${plural(sum, "wavefront")}. All ${access.instructions}`
        + ` instructions: ${plural(access.wavefronts, "wavefront")}.`),
      element("ul", {}, list));
  }

  firstConflict(wavefronts) {
    const { bank, lanes } = wavefronts[1][0];
    const other = wavefronts[0].find((entry) => entry.bank === bank);
    return `lanes ${other.lanes[0]} and ${lanes[0]} meet in bank ${bank}`;
  }
}
