// Texts side by side with linked selection: choosing a line marks the lines of all texts from the same place in the
// user's program.

import { element } from "./dom.js";

const CHUNK = 100; // lines that the browser lays out together, and that are coloured, when they come into view

/** The pane of each list of lines. All lines have colours on paper. */
const PANES = new WeakMap();
window.addEventListener("beforeprint", () => {
  for (const list of document.querySelectorAll(".pane .lines")) PANES.get(list)?.colourAll();
});

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const escape = (text) => text.replace(/[&<>]/g, (c) => ESCAPES[c]);

const STYLES = {
  tile: [/(\/\/.*)|("[^"]*")|(%[\w#:]+)|(#[\d]+)|\b((?:tt|ttg|ttng|arith|scf|math|cf)\.\w+)/g, "s", "s", "u", "mark", "b"],
  ptx: [/(\/\/.*)|("[^"]*")|(%\w+)|(\x00)|(^\s*(?:@!?%?\w+\s+)?[a-z][\w.:]*)/g, "s", "s", "u", "mark", "b"],
  python: [/(#.*)|("[^"]*"|'[^']*')|(\x00)|(\x00)|\b(def|for|in|if|else|return|range|import|while|and|or|not)\b/g,
    "s", "s", "u", "mark", "b"],
};

function highlight(text, style) {
  const [pattern, ...tags] = STYLES[style];
  let html = "", at = 0;
  for (const match of text.matchAll(pattern)) {
    const group = match.slice(1).findIndex((part) => part !== undefined);
    html += escape(text.slice(at, match.index));
    html += `<${tags[group]}>${escape(match[0])}</${tags[group]}>`;
    at = match.index + match[0].length;
  }
  return html + escape(text.slice(at));
}

export class Pane {
  /** lines: [{number, text, place}]; choose(line) hears of a selected line. */
  constructor({ title, note = "", style, lines, choose }) {
    Object.assign(this, { lines, choose, style });
    this.byPlace = new Map();
    this.list = element("div", {
      class: "lines", tabindex: "0", role: "listbox", "aria-label": title,
      onclick: (event) => this.click(event), onkeydown: (event) => this.key(event),
    });
    this.node = element("div", { class: "pane" }, element("h3", {}, title, element("span", { title: note }, note)), this.list);
    this.title = title;
    const rows = lines.map(({ number, text, place }, i) =>
      `<div id="${this.id(i)}"${place ? ` role="option" data-place="${escape(place)}"` : ' role="presentation"'}`
      + ` data-i="${i}"><i>${number}</i>${escape(text)}</div>`);
    let html = "";
    for (let i = 0; i < rows.length; i += CHUNK) {
      const part = rows.slice(i, i + CHUNK);
      html += `<section role="presentation" style="contain-intrinsic-height:${18 * part.length}px">${part.join("")}</section>`;
    }
    this.list.innerHTML = html;
    this.rows = [...this.list.querySelectorAll("[data-i]")];
    this.colourInView();
    lines.forEach(({ place }, i) => {
      if (!place) return;
      if (!this.byPlace.has(place)) this.byPlace.set(place, []);
      this.byPlace.get(place).push(i);
    });
    this.current = -1;
  }

  /** Colours the first lines now and others when they come close to the view or are printed: a kernel has many
   * thousands, and each word that has a colour is an element. */
  colourInView() {
    this.observer = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) this.colour(target);
    }, { root: this.list, rootMargin: "100% 0px" });
    for (const part of this.list.children) this.observer.observe(part);
    if (this.list.firstChild) this.colour(this.list.firstChild);
    PANES.set(this.list, this);
  }

  colourAll() {
    for (const part of this.list.children) this.colour(part);
  }

  colour(part) {
    if (part.dataset.coloured) return;
    part.dataset.coloured = "1";
    this.observer.unobserve(part);
    for (const row of part.children) {
      const { number, text } = this.lines[Number(row.dataset.i)];
      row.innerHTML = `<i>${number}</i>${highlight(text, this.style)}`;
    }
  }

  id(i) {
    return `${this.title.replace(/\W+/g, "-").toLowerCase()}-${i}`;
  }

  click(event) {
    const row = event.target.closest("[data-place]");
    if (row) this.select(Number(row.dataset.i));
  }

  select(index) {
    this.mark(index);
    this.choose(this.lines[index], this);
  }

  mark(index) {
    this.rows[this.current]?.classList.remove("current");
    this.current = index;
    this.rows[index]?.classList.add("current");
    this.list.setAttribute("aria-activedescendant", this.id(index));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && this.current >= 0) return this.select(this.current);
    if (!step) return undefined;
    event.preventDefault();
    let index = this.current + step;
    while (this.lines[index] && !this.lines[index].place) index += step;
    if (!this.lines[index]) return undefined;
    this.select(index);
    return this.rows[index].scrollIntoView({ block: "nearest" });
  }

  /** Marks the lines from a place, and scrolls to the first unless the choice was made here. */
  show(place, here) {
    for (const row of this.list.querySelectorAll(".selected")) {
      row.classList.remove("selected");
      row.removeAttribute("aria-selected");
    }
    const indices = this.byPlace.get(place) ?? [];
    for (const i of indices) {
      this.rows[i].classList.add("selected");
      this.rows[i].setAttribute("aria-selected", "true");
    }
    if (!here && indices.length > 0) {
      this.rows[this.current]?.classList.remove("current");
      this.current = indices[0];
      const top = this.rows[indices[0]].getBoundingClientRect().top - this.list.getBoundingClientRect().top;
      this.list.scrollTop += top - this.list.clientHeight / 3;
    }
  }
}
