// A kernel: its source, tile IR and PTX side by side; the operations of the selected line with their layouts,
// accesses and conversions; the time lines of its loops.

import { element, replace, section, select } from "./dom.js";
import { LayoutNames, readPtx, readTile } from "./locations.js";
import { Pane } from "./panes.js";
import { loopsOf, timelineView } from "./timeline.js";
import { lineDetail } from "./line.js";
import { budgetView } from "./explanation.js";

const DEVICES = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"];

export class KernelView {
  /** data: null, or what `lilac explore` embeds: {name, text, options, tile, ptx, metadata, sources}. */
  constructor(data) {
    this.library = null;
    this.data = data;
    this.options = data?.options ?? { device: "", warps: "", stages: "" };
    this.head = element("div", {});
    this.body = element("div", {});
    this.detail = element("div", { class: "detail", "aria-live": "polite" });
    this.loops = element("div", {});
    this.budget = element("div", {});
    this.node = element("div", { class: "kernel" }, this.head, this.body, this.detail, this.loops, this.budget);
    this.drawHead();
    if (data) this.show();
    else {
      replace(this.body, element("p", { class: "note" },
        "Paste a kernel in TTIR or TTGIR, open a file, or choose an example."));
    }
  }

  connect(library) {
    this.library = library;
    this.node.querySelectorAll("[disabled]").forEach((node) => (node.disabled = false));
    if (this.data) this.explain();
  }

  /** Asks for the explanation when the page has nothing else to do; then shows the selected line with it. */
  explain() {
    this.explanation = null;
    replace(this.budget);
    replace(this.loops);
    const data = this.data;
    const run = () => {
      if (this.data !== data) return;
      this.explanation = this.library.explain(data.text, data.options);
      this.drawLoops();
      replace(this.budget, budgetView(this.explanation));
      if (this.place) this.select(this.place, null, false);
      this.node.dataset.explained = "true";
    };
    delete this.node.dataset.explained;
    (globalThis.requestIdleCallback ?? setTimeout)(run);
  }

  // ---- a kernel as input ----

  drawHead() {
    const { sources, kernels: samples } = JSON.parse(document.getElementById("samples").textContent);
    this.area = element("textarea", { id: "ttir", rows: 8, spellcheck: "false", value: this.data?.text ?? "" });
    this.area.value = this.data?.text ?? "";
    this.message = element("pre", { class: "refused", role: "alert", hidden: true });
    const set = (name) => (value) => {
      this.options[name] = value;
      this.compile();
    };
    const number = (label, name, list) => select(label, [["", "as the module says"], ...list.map((n) => [n, String(n)])],
      this.options[name] ?? "", set(name));
    const file = element("input", {
      type: "file", accept: ".ttir,.ttgir,.mlir,.txt", id: "ttir-file",
      onchange: async () => {
        if (!file.files[0]) return;
        this.area.value = await file.files[0].text();
        this.data = { name: file.files[0].name, sources: {} };
        this.compile();
      },
    });
    this.input = element("details", { open: !this.data }, element("summary", {}, "The kernel as text"),
      element("label", { for: "ttir", class: "quiet" }, "TTIR or TTGIR"), this.area,
      element("div", { class: "controls" },
        element("button", { type: "button", class: "plain", disabled: true, onclick: () => this.compile() }, "Compile"),
        element("label", { class: "field", for: "ttir-file" }, "or a file"), file,
        select("or an example", [["", "…"], ...samples.map(({ name }, i) => [i, name])], "", (i) => {
          if (i === "") return;
          this.area.value = samples[i].text;
          this.data = { name: samples[i].name, sources };
          Object.assign(this.options, { warps: samples[i].warps ?? "" });
          this.input.open = false;
          this.compile();
        })));
    replace(this.head, this.title = element("div", {}), this.input, this.message,
      element("div", { class: "controls" },
        select("device", [["", "as the module says"], ...DEVICES.map((name) => [name, name])], this.options.device ?? "",
          set("device")),
        number("warps", "warps", [1, 2, 4, 8, 16]), number("stages", "stages", [1, 2, 3, 4, 5])));
  }

  /** Compiles the text in the page. A refusal shows its diagnostics; what was shown before stays. */
  compile() {
    if (!this.library || this.area.value.trim() === "") return;
    const text = this.area.value, options = { ...this.options };
    try {
      const tile = this.library.compile(text, "tile", options);
      const ptx = this.library.compile(text, "ptx", options);
      const metadata = JSON.parse(this.library.compile(text, "json", options));
      this.data = { name: "kernel", sources: {}, ...this.data, text, options, tile, ptx, metadata };
      this.message.hidden = true;
    } catch (error) {
      this.message.textContent = error.message;
      this.message.hidden = false;
      return;
    }
    this.show();
    this.explain();
  }

  // ---- the panes ----

  show() {
    const { data } = this;
    this.tile = readTile(data.tile);
    const names = new LayoutNames();
    this.tile.forEach((line) => (line.text = names.shorten(line.text)));
    this.names = names;
    const source = this.sourceLines();
    const choose = (line, pane) => this.select(line.place, pane);
    this.panes = [
      new Pane({ title: "Source", note: source.note, style: source.style, lines: source.lines, choose }),
      new Pane({ title: "Tile IR", note: "layouts are numbered", style: "tile", lines: this.tile, choose }),
      new Pane({ title: "PTX", note: data.metadata.target, style: "ptx", lines: readPtx(data.ptx), choose }),
    ];
    this.drawTitle();
    replace(this.body, element("div", { class: "panes" }, this.panes.map(({ node }) => node)));
    replace(this.detail);
    this.place = null;
    const first = this.tile.find(({ raw, place }) => place && / tt\.(load|dot)|warp_group_dot|descriptor_load/.test(raw));
    if (first) this.select(first.place);
  }

  /** The user's program where its text is known, else the TTIR. */
  sourceLines() {
    const [file, text] = Object.entries(this.data.sources ?? {})[0] ?? [];
    if (!file) {
      const lines = readTile(this.data.text);
      return { lines, style: "tile", note: this.data.name };
    }
    const used = new Set(this.tile.map(({ place }) => place));
    const lines = text.split("\n").map((line, i) => {
      const place = `${file}:${i + 1}`;
      return { number: i + 1, text: line, place: used.has(place) ? place : null };
    });
    return { lines, style: "python", note: file };
  }

  drawTitle() {
    const m = this.data.metadata;
    const asked = m.num_warps === m.asked_warps ? "" : ` in place of ${m.asked_warps}`;
    const facts = [
      [m.target, "device"], [m.num_warps, `warps${asked}`], [m.num_stages, "stages"],
      [m.shared?.toLocaleString("en") ?? "–", "bytes of shared memory"],
      [m.conversions.count, m.conversions.count === 1 ? "layout conversion" : "layout conversions"],
      [m.accesses.count, m.accesses.count === 1 ? "access to global memory" : "accesses to global memory"],
    ];
    replace(this.title, element("h2", {}, m.name),
      element("p", { class: "facts" }, facts.map(([value, what]) =>
        element("span", {}, element("b", {}, String(value)), ` ${what}`))));
  }

  /** Shows what belongs to a place; `scroll`: also scrolls the panes other than `from` to it. */
  select(place, from = null, scroll = true) {
    this.place = place;
    for (const pane of this.panes) pane.show(place, !scroll || pane === from);
    replace(this.detail, lineDetail({
      library: this.library, place, metadata: this.data.metadata, text: this.sourceText(place), tile: this.tile,
      definitions: this.definitions(), explanation: this.explanation,
    }));
  }

  sourceText(place) {
    const [file, line] = place.split(":");
    return this.data.sources?.[file]?.split("\n")[Number(line) - 1]?.trim() ?? "";
  }

  /** Names of layouts that the tile IR defines. */
  definitions() {
    return this.tile.filter(({ raw }) => /^#[\w$.-]+ = #t/.test(raw) && !raw.includes("shared_memory")).map(({ raw }) => raw);
  }

  drawLoops() {
    const loops = loopsOf(this.explanation);
    replace(this.loops, loops.map((loop) => section(`Time line of the loop at ${loop.place ?? "an unknown line"}`,
      timelineView(loop, (place) => place && this.select(place)))));
  }
}
