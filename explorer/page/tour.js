// A tour of shared memory for any pair of layouts: why row-major memory has conflicts, what an exclusive or changes,
// and how linear algebra finds a memory layout that has none.

import { element, plural, replace, section, table } from "./dom.js";
import { BankScope } from "./banks.js";
import { accessOf, withVector } from "./access.js";
import { Layout } from "./layouts.js";
import { bitMatrix } from "./cells.js";
import { memoryType, tensorType } from "./question.js";
import * as swizzles from "./swizzle.js";

const set = (vectors, layout) => (vectors.length === 0 ? "∅" : `{${vectors.map((v) => layout.direction(v)).join(", ")}}`);
const span = (vectors, layout) => (vectors.length === 0 ? "{0}" : `span${set(vectors, layout)}`);
const line = (...children) => element("p", { class: "algebra" }, ...children);
const text = (...children) => element("p", {}, ...children);

export class Tour {
  /** question: {library, a, b, source, target (types), elementType, mostBytes} */
  constructor(question) {
    Object.assign(this, question);
    this.elementBytes = this.a.elementBits / 8;
    this.node = element("div", { class: "tour" });
    this.answer = this.library.swizzle(this.source, this.target, { vector: this.mostBytes });
    const derived = swizzles.derive(this.a, this.b, this.elementBytes, this.mostBytes);
    const derivedCount = swizzles.count(derived, swizzles.togglesOf(derived));
    this.derived = derived;
    this.derivedTotal = derivedCount.total;
    this.libraryTotal = this.answer.store.wavefronts + this.answer.load.wavefronts;
    const memory = new Layout({ offset: this.answer.memory.offset }, this.a.shape, this.a.elementBits);
    this.libraryMemory = memory;
    this.steps = this.libraryTotal < this.derivedTotal ? swizzles.adopt(derived, memory) : derived;
    this.best = swizzles.togglesOf(this.steps);
    this.toggles = this.best;
    replace(this.node, this.setting(), this.rowMajor(), this.workbench(), this.algebra(), this.result());
  }

  setting() {
    const { a, b, steps } = this;
    const share = (layout, name) => span(layout.columns[name] ?? [], a);
    return section("The question",
      text(`A tensor of ${a.shape.join("×")} elements of ${a.elementBits} bits is stored to shared memory in layout A and`
        + ` loaded in layout B. Shared memory has 32 banks of 4 bytes. A bank serves one word in a clock; lanes of one`
        + ` access that need different words of one bank wait for each other, and each turn is a wavefront.`),
      text("Only the memory layout is open: the place of each element. A layout is a linear map over F₂, so each bit of"
        + " an index stands for a direction in the tensor. The directions of this pair are:"),
      table(["", "registers", "lanes", "warps"], [
        ["A stores", share(a, "register"), share(a, "lane"), share(a, "warp")],
        ["B loads", share(b, "register"), share(b, "lane"), share(b, "warp")],
      ], { class: "wide" }),
      text(`The ${steps.dimension} bits of an offset are, from the lowest: the vector of one access, the bank, and the`
        + " segment, a row of all banks (128 bytes)."));
  }

  rowMajor() {
    const units = Array.from({ length: this.a.bits }, (_, bit) => 2 ** bit);
    const memory = new Layout({ offset: [] }, this.a.shape, this.a.elementBits);
    memory.columns.offset = units;
    const accesses = this.accesses(memory);
    const [store, load] = accesses.map(({ access }) => access);
    const worst = store.wavefrontsOfTransaction >= load.wavefrontsOfTransaction ? ["store", store] : ["load", load];
    return section("Row-major memory",
      text(`Without a swizzle the offset is the element's number. Storing takes ${plural(store.wavefronts, "wavefront")},`
        + ` loading ${plural(load.wavefronts, "wavefront")}. `,
        worst[1].wavefrontsOfTransaction > 1
          ? `A transaction of the ${worst[0]} takes ${worst[1].wavefrontsOfTransaction}.`
          : "There is no conflict: this pair does not need a swizzle."),
      new BankScope({ accesses, memory, elementBytes: this.elementBytes, side: worst[0] === "load" ? 1 : 0 }).node);
  }

  accesses(memory) {
    const access = (layout) => accessOf(withVector(layout, memory, this.elementBytes, this.mostBytes), memory,
      this.elementBytes, this.mostBytes);
    return [{ name: "A stores", access: access(this.a) }, { name: "B loads", access: access(this.b) }];
  }

  // ---- one-bit toggles ----

  workbench() {
    this.scopeNode = element("div", {});
    this.toggleNode = element("div", {});
    this.verdict = element("div", { class: "verdict", "aria-live": "polite" });
    const buttons = element("div", { class: "controls" },
      this.button("No swizzle", () => swizzles.noToggles(this.steps)),
      this.button("The row's number", () => swizzles.classicToggles(this.steps)),
      this.button("The derived one", () => this.best),
      this.button("Another optimal one", () => swizzles.anotherMember(this.steps, this.best)));
    this.setToggles(this.toggles);
    return section("One bit at a time",
      text("Each row below is a bit of the segment, each column a bit of the bank. A set cell adds the direction of the"
        + " bank to that of the segment: the offset's bank is then an exclusive or. The small number is the count of"
        + " wavefronts, of both accesses together, after that one cell is changed."),
      buttons, this.toggleNode, this.verdict, this.scopeNode);
  }

  button(label, make) {
    return element("button", { type: "button", class: "plain", onclick: () => this.setToggles(make()) }, label);
  }

  setToggles(toggles) {
    this.toggles = toggles;
    const now = swizzles.count(this.steps, toggles);
    this.now = now;
    this.drawToggles(now.total);
    this.drawVerdict(now);
    const given = { accesses: this.accesses(now.memory), memory: now.memory, elementBytes: this.elementBytes };
    if (this.scope) this.scope.update(given);
    else this.scope = new BankScope(given);
    if (!this.scope.node.isConnected) replace(this.scopeNode, this.scope.node);
    if (this.algebraNode) this.drawAlgebra();
  }

  drawToggles(total) {
    const { steps, toggles } = this;
    const plain = swizzles.plainSegments(steps);
    if (plain.length === 0 || steps.banks.length === 0) {
      replace(this.toggleNode, text("The tensor fits into one segment: there is nothing to choose."));
      return;
    }
    const next = swizzles.neighbours(steps, toggles);
    const focus = document.activeElement?.dataset?.toggle;
    replace(this.toggleNode, table(["segment \\ bank", ...steps.banks.map((bank) => this.a.direction(bank))],
      plain.map((segment, i) => [this.a.direction(segment), ...steps.banks.map((bank, j) => element("button", {
        type: "button", class: `toggle ${next[i][j] < total ? "better" : next[i][j] > total ? "worse" : ""}`,
        "aria-pressed": String(toggles[i][j]), "data-toggle": `${i},${j}`,
        "aria-label": `add ${this.a.direction(bank)} to segment ${this.a.direction(segment)}; then ${next[i][j]} wavefronts`,
        onclick: () => {
          const changed = this.toggles.map((row) => [...row]);
          changed[i][j] = !changed[i][j];
          this.setToggles(changed);
        },
      }, element("b", {}, toggles[i][j] ? "1" : "0"), element("small", {}, String(next[i][j]))))]),
      { class: "toggles" }));
    if (focus) this.toggleNode.querySelector(`[data-toggle="${focus}"]`)?.focus();
  }

  drawVerdict({ store, load, memory, a, b }) {
    const bound = this.answer.lower_bound;
    const met = store.wavefronts + load.wavefronts <= bound.store + bound.load;
    const check = [["A", a, store], ["B", b, load]].map(([name, layout, access]) => {
      const type = tensorType(layout, this.elementType);
      const { status, out } = this.library.run(["conflicts", "--json", type, memoryType(memory, this.elementType)]);
      if (status !== 0 || this.mostBytes < 16) return null; // the library uses the widest accesses of the device
      const counted = JSON.parse(out);
      return counted.wavefronts === access.wavefronts && counted.simulated_wavefronts === access.wavefronts
        ? `${name}: ${counted.simulated_wavefronts}` : `${name} differs`;
    }).filter((entry) => entry !== null);
    replace(this.verdict,
      element("strong", { class: met ? "good" : "bad" },
        `${store.wavefronts} + ${load.wavefronts} wavefronts`),
      ` store + load. No memory layout takes fewer than ${bound.store} + ${bound.load}.`,
      check.length > 0 ? ` Counted by the simulator: ${check.join(", ")}.` : "");
  }

  // ---- the algebra ----

  algebra() {
    this.algebraNode = element("div", {});
    this.drawAlgebra();
    return section("The algebra", this.algebraNode);
  }

  drawAlgebra() {
    const s = this.derived, a = this.a;
    const segments = swizzles.segmentsOf(this.steps, this.toggles);
    const rowBits = s.vector.length + s.bankBits;
    const names = (vectors) => set(vectors, a);
    replace(this.algebraNode,
      text("A conflict is a direction that leads both from a lane to another lane of the same transaction and from a"
        + " segment to another segment of the same bank. So the number of wavefronts is the number of elements of the"
        + " intersection of two subspaces (Lemma 9.4)."),
      line("Segments now: ", names(segments)),
      this.lemma("A", this.now.a, this.now.store), this.lemma("B", this.now.b, this.now.load),
      element("h4", {}, "Section 5.4, step by step"),
      element("ol", { class: "steps" },
        step("Vector", `Directions that are registers on both sides can be contiguous:`
          + ` ${span(s.aRegister, a)} ∩ ${span(s.bRegister, a)} = ${span(s.common, a)}. An access has at most`
          + ` ${s.mostBytes} bytes, so the vector is ${names(s.vector)}.`),
        step("Sizes", `${2 ** s.vector.length} elements of ${s.elementBytes} bytes in a vector; ${s.bankBits} bits of the`
          + ` bank, ${s.segmentBits} bits of the segment: ${s.dimension} = ${s.vector.length} + ${s.bankBits}`
          + ` + ${s.segmentBits}.`),
        step("Transactions", s.dropped === 0
          ? "An access of at most 4 bytes a lane is one transaction of all lanes."
          : `Accesses of ${s.elementBytes * 2 ** s.vector.length} bytes have ${2 ** s.dropped} transactions: the last`
            + ` ${plural(s.dropped, "lane bit")} of each side cannot conflict and are left out.`),
        step("Shared and own lanes", `A: ${names(s.aBank)}, B: ${names(s.bBank)}. Both: I = ${names(s.shared)}. Only A: E = `
          + `${names(s.onlyA)}. Only B: F = ${names(s.onlyB)}. A segment in a direction of I would be a conflict on both sides.`),
        step("Sums", `One direction of E plus one of F is in neither span: H = ${names(s.sums)}.`),
        step("Complement", `Directions outside both spans: C = ${names(s.complement)}.`),
        step("Segments", s.padded.length === 0
          ? `${s.segmentBits} of H and C: ${names(s.segments)}. No transaction has a conflict.`
          : `H and C have ${s.free.length} of the ${s.segmentBits} directions needed; ${names(s.padded)} must be lanes' own.`),
        step("Banks", `Any completion to a basis: ${names(s.banks)}.`)),
      element("h4", {}, "Three swizzles"), this.comparison(),
      this.libraryTotal < this.derivedTotal ? text(`This derivation reaches ${this.derivedTotal} wavefronts. The plan of`
        + ` the library reaches ${this.libraryTotal}: for elements narrower than a bank it chooses the words as well, and`
        + ` each side may have a vector of its own. The toggles above are those of the library's memory.`) : null,
      rowBits > 0 && this.now.memory.bits <= 16 ? bitMatrix("The memory layout now", this.now.memory) : null);
  }

  /** No exclusive or, that of textbooks, and the derived one: their conflicts as subspaces. */
  comparison() {
    const rows = [["none", swizzles.noToggles(this.steps)], ["the row's number", swizzles.classicToggles(this.steps)],
      ["derived", this.best]];
    const space = (layout, access, memory) => {
      const directions = swizzles.conflictSpace(this.derived, layout, access, memory);
      return `${span(directions, this.a)}: ${access.wavefronts}`;
    };
    return table(["exclusive or with", "segments", "A stores: wavefronts", "B loads: wavefronts"], rows.map(([name, toggles]) => {
      const { memory, a, b, store, load } = swizzles.count(this.steps, toggles);
      return [name, set(swizzles.segmentsOf(this.steps, toggles), this.a), space(a, store, memory), space(b, load, memory)];
    }), { class: "wide" });
  }

  lemma(name, layout, access) {
    const space = swizzles.conflictSpace(this.derived, layout, access, this.now.memory);
    return line(`span(segments) ∩ span(lanes of a transaction of ${name}) = ${span(space, this.a)}: `
      + `2^${space.length} = ${plural(access.wavefrontsOfTransaction, "wavefront")}`);
  }

  // ---- the result ----

  share({ size, of, least, sampled }) {
    if (of <= 1) return "";
    return `Of ${sampled ? `${of.toLocaleString("en")} random` : `the ${of.toLocaleString("en")}`} settings of the toggles`
      + ` above, ${size.toLocaleString("en")} reach ${plural(least, "wavefront")}.`;
  }

  result() {
    const { answer } = this;
    const rows = [
      ["offset", element("code", {}, answer.offset ?? "–")],
      ["bits of the offset", element("code", {}, answer.bits.map((bit, i) => `${i}: ${bit}`).join(", "))],
      ["Triton", element("code", {}, answer.named ?? "has no name for it")],
      ["CuTe", element("code", {}, answer.cute ?? "has no swizzle for it")],
    ];
    const size = swizzles.familySize(this.steps) ?? swizzles.familySample(this.steps, this.best);
    const unswizzled = answer.unswizzled;
    return section("The closed form and the family",
      text("The library's memory layout for this pair:"),
      table(["", ""], rows, { class: "wide plain-head" }),
      table(["memory", "store", "load"], [
        ...(unswizzled ? [["row-major", String(unswizzled.store), String(unswizzled.load)]] : []),
        ["this layout", String(answer.store.wavefronts), String(answer.load.wavefronts)],
        ["simulated", String(answer.simulated.store), String(answer.simulated.load)],
        ["least possible", String(answer.lower_bound.store), String(answer.lower_bound.load)],
      ], { class: "numbers" }),
      text(`The family: 2^${answer.family_bits} choices of segments (rounded down) reach these wavefronts, over any order`
        + " of the vector and of the segments.",
        ` ${this.share(size)}`));
  }
}

function step(title, content) {
  return element("li", {}, element("b", {}, `${title}. `), content);
}
