// The workbench: two layouts, and everything that the library says about them.

import { choice, element, plural, replace, section, select } from "./dom.js";
import { bitMatrix, cells } from "./cells.js";
import { elementTypeOf, readLayout, Unreadable } from "./input.js";
import { exchangeView, planView } from "./plan.js";
import { BankScope } from "./banks.js";
import { accessOf } from "./access.js";
import { tensorType } from "./question.js";
import { Layout } from "./layouts.js";
import { Tour } from "./tour.js";
import { PAIRS } from "./examples.js";

const WAIT_MS = 350;

export class Workbench {
  constructor(library) {
    this.library = library;
    this.vector = 16;
    this.view = "tour";
    this.result = element("div", { class: "results" });
    this.fields = [this.field("a", "Layout A"), this.field("b", "Layout B")];
    this.example = select("Example", PAIRS.map(({ name }, i) => [i, name]), 0, (i) => this.open(PAIRS[i]));
    this.views = choice("View", [["layouts", "Layouts"], ["conversion", "Conversion"], ["tour", "Bank tour"]], this.view,
      (view) => {
        this.view = view;
        this.show();
      });
    this.width = select("Widest access", [4, 8, 16].map((bytes) => [bytes, `${bytes} bytes`]), 16, (bytes) => {
      this.vector = Number(bytes);
      this.show();
    });
    this.node = element("div", { class: "workbench" },
      element("h2", { class: "hidden-title" }, "Two layouts"),
      element("div", { class: "inputs" }, this.fields.map(({ node }) => node)),
      element("div", { class: "controls bar" }, this.example, this.width, this.views),
      this.result);
  }

  field(name, label) {
    const area = element("textarea", {
      id: `layout-${name}`, rows: 4, spellcheck: "false", autocomplete: "off",
      oninput: () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.show(), WAIT_MS);
      },
    });
    const message = element("p", { class: "message", role: "status" });
    area.setAttribute("aria-describedby", `message-${name}`);
    message.id = `message-${name}`;
    return { area, message, node: element("div", { class: "input" }, element("label", { for: area.id }, label), area, message) };
  }

  open({ a, b, vector, view }) {
    if (view) this.views.choose((this.view = view));
    [this.fields[0].area.value, this.fields[1].area.value] = [a, b];
    this.vector = vector ?? this.vector;
    this.width.querySelector("select").value = String(this.vector);
    this.show();
  }

  /** Reads one field; null with a message where it is no layout. */
  read({ area, message }) {
    try {
      const { type, definitions, isMemory } = readLayout(area.value, this.library);
      const layout = this.library.layout(type, definitions);
      message.textContent = "";
      area.removeAttribute("aria-invalid");
      // Written out, so that the names are not needed any more.
      const text = isMemory ? type : tensorType(layout, elementTypeOf(type));
      return { type: text, given: type, definitions, layout, isMemory: layout.isMemory };
    } catch (error) {
      message.textContent = error instanceof Unreadable ? error.message : String(error.message);
      area.setAttribute("aria-invalid", "true");
      return null;
    }
  }

  show() {
    const [first, second] = this.fields.map((field) => this.read(field));
    if (!first || !second) return;
    try {
      replace(this.result, this.answer(first, second));
    } catch (error) {
      replace(this.result, element("pre", { class: "refused", role: "alert" }, String(error.message)));
    }
  }

  answer(first, second) {
    if (this.view === "layouts") return this.layouts(first, second);
    if (first.isMemory && second.isMemory) {
      return element("p", { class: "note" }, "Both are layouts of memory. Give a tensor for its bank conflicts.");
    }
    if (first.isMemory || second.isMemory) {
      return first.isMemory ? this.conflicts(second, first) : this.conflicts(first, second);
    }
    if (this.view === "conversion") return this.conversion(first, second);
    return new Tour({
      library: this.library, a: first.layout, b: second.layout, source: first.type, target: second.type,
      elementType: elementTypeOf(first.type), mostBytes: this.vector,
    }).node;
  }

  layouts(first, second) {
    const figures = [];
    const hover = (number) => figures.forEach((figure) => figure.show?.(number));
    const same = first.layout.shape.join() === second.layout.shape.join();
    for (const [name, { layout }] of [["Layout A", first], ["Layout B", second]]) {
      figures.push(cells(name, layout, { hover: same ? hover : () => {} }));
    }
    return element("div", {},
      section("Who holds which element", element("div", { class: "pair" }, figures)),
      section("Bit matrices", element("div", { class: "pair" }, bitMatrix("Bits of A", first.layout),
        bitMatrix("Bits of B", second.layout))),
      section("As text", ...[["A", first], ["B", second]].map(([name, { given, definitions }]) => element("dl", {},
        element("dt", {}, `${name}, linear`),
        element("dd", {}, element("code", {}, this.library.linearText(given, definitions))),
        element("dt", {}, `${name}, CuTe`),
        element("dd", {}, element("code", {}, this.library.cute(given, definitions) ?? "none"))))));
  }

  conversion(first, second) {
    const options = this.vector < 16 ? { vector: this.vector } : {};
    const plan = this.library.convert(first.type, second.type, options);
    return element("div", {},
      section("Conversion from A to B", planView(this.library, first.type, second.type, first.layout, second.layout, options)),
      exchangeView(plan, first.layout));
  }

  conflicts(tensor, memory) {
    const answer = this.library.conflicts(tensor.type, memory.type);
    const elementBytes = tensor.layout.elementBits / 8;
    const layout = new Layout({ offset: [] }, tensor.layout.shape, tensor.layout.elementBits);
    layout.columns.offset = memory.layout.columns.offset;
    const access = accessOf(tensor.layout, layout, elementBytes);
    const agrees = access && access.wavefronts === answer.wavefronts; // not where memory is padded
    const scope = agrees ? new BankScope({ accesses: [{ name: "access", access }], memory: layout, elementBytes }).node
      : element("p", { class: "note" }, "The picture shows memory without padding only.");
    return section("Bank conflicts",
      element("p", { class: "lead" }, `${plural(answer.instructions, "instruction")},`
        + ` ${plural(answer.wavefronts, "wavefront")} by formula, ${answer.simulated_wavefronts} on the simulator;`
        + ` ${plural(answer.conflicts, "conflict")} in a transaction.`), scope);
  }
}
