// A table of cells that is drawn on a canvas: tensors, banks, bit matrices. The pointer or the arrow keys select a
// cell; a line below the picture describes it, also to screen readers.

import { element } from "./dom.js";
import { ink, refreshColours } from "./colours.js";

const HEAD = 26; // width and height of the heads of rows and columns

// A picture is drawn when it comes into view.
const views = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.grid.visible = isIntersecting;
    if (isIntersecting && target.grid.stale) target.grid.draw();
  }
}, { rootMargin: "200px" });

export class Grid {
  /** {label, rows, columns, cell(row, column) → {fill, text, mark, faint} or null, describe(row, column) → string,
   *   rowHead(row), columnHead(column), size, hover(cell or null)} */
  constructor(options) {
    Object.assign(this, { size: 0, hover: () => {}, rowHead: String, columnHead: String }, options);
    this.at = null;
    this.canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": this.label });
    this.line = element("output", { class: "describes", "aria-live": "polite" });
    this.node = element("figure", { class: "grid" }, element("div", { class: "scroll" }, this.canvas), this.line);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.choose(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.choose(null));
    this.node.redraw = () => this.drawNow();
    this.node.classList.add("drawn");
    this.node.grid = this;
    this.line.textContent = this.hint ?? "";
    this.visible = false;
    this.draw();
    views.observe(this.node);
  }

  get cellSize() {
    if (this.size) return this.size;
    const most = Math.max(this.rows, this.columns);
    return most <= 16 ? 36 : most <= 32 ? 28 : most <= 64 ? 16 : most <= 128 ? 8 : 4;
  }

  draw() {
    this.canvas.style.width = `${HEAD + this.cellSize * this.columns + 1}px`;
    this.canvas.style.height = `${HEAD + this.cellSize * this.rows + 1}px`;
    this.stale = true;
    if (this.visible) this.drawNow();
  }

  drawNow() {
    this.stale = false;
    refreshColours();
    const size = this.cellSize, ratio = size >= 16 ? 2 : 1;
    this.canvas.width = (HEAD + size * this.columns + 1) * ratio;
    this.canvas.height = (HEAD + size * this.rows + 1) * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.drawHeads(context, size);
    this.marks = [];
    const colours = { ink: ink("ink"), rule: ink("rule"), accent: ink("accent"), faint: ink("faint") };
    for (let row = 0; row < this.rows; row++) {
      for (let column = 0; column < this.columns; column++) this.drawCell(context, size, row, column, colours);
    }
    if (size >= 8) this.drawRules(context, size, colours.rule);
    for (const { row, column, colour } of this.marks) this.outline(context, size, { row, column }, colour, 2);
    if (this.at) this.outline(context, size, this.at, colours.ink, 2);
  }

  drawHeads(context, size) {
    context.fillStyle = ink("quiet");
    context.font = "11px system-ui, sans-serif";
    const step = size >= 24 ? 1 : size >= 14 ? 4 : 16;
    for (let column = 0; column < this.columns; column += step) {
      context.fillText(this.columnHead(column), HEAD + size * (column + 0.5), HEAD / 2, size * step);
    }
    for (let row = 0; row < this.rows; row += step) {
      context.fillText(this.rowHead(row), HEAD / 2, HEAD + size * (row + 0.5), HEAD);
    }
  }

  drawCell(context, size, row, column, colours) {
    const cell = this.cell(row, column);
    const x = HEAD + size * column, y = HEAD + size * row;
    if (!cell) return;
    context.globalAlpha = cell.faint ? 0.28 : 1;
    if (cell.fill) {
      context.fillStyle = cell.fill;
      context.fillRect(x, y, size, size);
    }
    context.globalAlpha = 1;
    if (cell.text && size >= 16) {
      context.fillStyle = cell.faint ? colours.faint : colours.ink;
      context.font = `${size >= 28 ? 11 : 9}px ui-monospace, "DejaVu Sans Mono", monospace`;
      const lines = cell.text.split("\n");
      lines.forEach((line, i) =>
        context.fillText(line, x + size / 2, y + size / 2 + (i - (lines.length - 1) / 2) * 12, size - 3));
    }
    if (cell.mark) this.marks.push({ row, column, colour: colours.accent });
  }

  drawRules(context, size, colour) {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.beginPath();
    for (let column = 0; column <= this.columns; column++) {
      context.moveTo(HEAD + size * column + 0.5, HEAD);
      context.lineTo(HEAD + size * column + 0.5, HEAD + size * this.rows);
    }
    for (let row = 0; row <= this.rows; row++) {
      context.moveTo(HEAD, HEAD + size * row + 0.5);
      context.lineTo(HEAD + size * this.columns, HEAD + size * row + 0.5);
    }
    context.stroke();
  }

  outline(context, size, { row, column }, colour, width) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(HEAD + size * column + width / 2, HEAD + size * row + width / 2, size - width + 1,
      size - width + 1);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - HEAD) / this.cellSize);
    const row = Math.floor((event.clientY - box.top - HEAD) / this.cellSize);
    const inside = row >= 0 && column >= 0 && row < this.rows && column < this.columns;
    this.choose(inside ? { row, column } : null);
  }

  key(event) {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (event.key === "Escape") return this.choose(null);
    if (!step) return undefined;
    event.preventDefault();
    const from = this.at ?? { row: step[0] > 0 ? -1 : 0, column: step[1] > 0 ? -1 : 0 };
    return this.choose({
      row: Math.min(this.rows - 1, Math.max(0, from.row + step[0])),
      column: Math.min(this.columns - 1, Math.max(0, from.column + step[1])),
    });
  }

  choose(at) {
    if (at?.row === this.at?.row && at?.column === this.at?.column) return;
    this.at = at;
    this.line.textContent = at ? this.describe(at.row, at.column) : this.hint ?? "";
    this.draw();
    this.hover(at);
  }
}
