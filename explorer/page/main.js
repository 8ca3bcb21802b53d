// The page: its parts as tabs, the theme, the keyboard, and the library.

import { element, replace } from "./dom.js";
import { load, unpack } from "./wasi.js";
import { Library } from "./question.js";
import { Workbench } from "./workbench.js";
import { KernelView } from "./kernel.js";
import { PAIRS } from "./examples.js";
import { Layout } from "./layouts.js";
import { readLayout } from "./input.js";
import { accessOf, wavefrontsOf, withVector } from "./access.js";
import { barsOf, depthOf, loopsOf } from "./timeline.js";
import { hue, ink } from "./colours.js";
import * as f2 from "./f2.js";
import * as swizzles from "./swizzle.js";
import * as questions from "./question.js";

const main = document.getElementById("main");
const help = document.getElementById("help");
const embedded = JSON.parse(document.getElementById("kernel").textContent);
const KEYS = [
  ["1, 2", "the kernel, the workbench"], ["t", "theme: light, dark, that of the system"],
  ["↑ ↓", "in a text: the line before or after that has a counterpart"], ["Enter", "in a text: select the line"],
  ["arrows", "in a picture: the cell beside; Escape leaves it"], ["?", "this list"],
];

const parts = {};
let current = null;

function redraw() {
  document.querySelectorAll(".drawn").forEach((node) => node.redraw());
}

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.textContent = `Theme: ${theme}`;
  redraw();
}

const themes = ["system", "light", "dark"];
let theme = 0;
const nextTheme = () => setTheme(themes[(theme = (theme + 1) % themes.length)]);
const themeButton = element("button", { type: "button", class: "plain", onclick: nextTheme }, "Theme: system");
const helpButton = element("button", { type: "button", class: "plain", onclick: () => showHelp() }, "Keys");
replace(document.getElementById("header-end"), themeButton, helpButton);

function showHelp() {
  replace(help, element("h2", { id: "help-title" }, "Keys"),
    element("table", {}, element("tbody", {}, KEYS.map(([key, what]) => element("tr", {},
      element("th", { scope: "row" }, element("kbd", {}, key)), element("td", {}, what))))),
    element("form", { method: "dialog" }, element("button", { class: "plain" }, "Close")));
  help.showModal();
}

function open(name) {
  if (current === name) return;
  current = name;
  for (const [key, { tab, node }] of Object.entries(parts)) {
    tab.setAttribute("aria-selected", String(key === name));
    tab.tabIndex = key === name ? 0 : -1;
    node.hidden = key !== name;
  }
  parts[name].start?.();
  parts[name].start = null;
}

function addPart(name, title, node, start) {
  const tab = element("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `part-${name}`, onclick: () => open(name),
  }, title);
  const panel = element("div", { id: `part-${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}`, hidden: true }, node);
  document.getElementById("tabs").append(tab);
  main.append(panel);
  parts[name] = { tab, node: panel, start };
}

document.getElementById("tabs").addEventListener("keydown", (event) => {
  const names = Object.keys(parts), step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = names[(names.indexOf(current) + step + names.length) % names.length];
  open(next);
  parts[next].tab.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const index = Number(event.key) - 1;
  if (Object.keys(parts)[index]) open(Object.keys(parts)[index]);
  else if (event.key === "t") nextTheme();
  else if (event.key === "?") showHelp();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let beforePrint = null;
addEventListener("beforeprint", () => {
  beforePrint = document.documentElement.dataset.theme ?? null;
  document.documentElement.dataset.theme = "print";
  redraw();
});
addEventListener("afterprint", () => {
  if (beforePrint === null) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = beforePrint;
  redraw();
});

async function start() {
  const kernel = new KernelView(embedded);
  const bench = element("div", {}, element("p", { class: "note" }, "Loading the library …"));
  addPart("kernel", "Kernel", kernel.node);
  addPart("workbench", "Layouts", bench);
  open(embedded ? "kernel" : "workbench");
  document.documentElement.dataset.shown = String(Math.round(performance.now()));
  await new Promise((resolve) => setTimeout(resolve)); // the browser paints what is there
  try {
    const library = new Library(await load(await unpack(document.getElementById("wasm").textContent.trim())));
    kernel.connect(library);
    const workbench = new Workbench(library);
    replace(bench, workbench.node);
    const first = () => workbench.open(PAIRS[0]);
    if (current === "workbench") first();
    else parts.workbench.start = first;
    // For the console, and for tests.
    const model = { Layout, readLayout, accessOf, withVector, wavefrontsOf, barsOf, depthOf, loopsOf, hue, ink, f2, swizzles,
      questions };
    globalThis.lilac = { library, workbench, kernel, redraw, model, examples: PAIRS };
  } catch (error) {
    replace(bench, element("p", { class: "refused", role: "alert" }, `The library did not start: ${error.message}`));
  }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
