// Elements of the page.

/** element("button", {class: "wide", onclick: f}, "text", child, …); properties that start with "on" are listeners. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** A row of buttons of which one is chosen. */
export function choice(label, options, chosen, change) {
  const group = element("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const buttons = options.map(([value, text]) => element("button", {
    type: "button", role: "radio", "data-value": value, onclick: () => set(value, true),
  }, text));
  function set(value, tell) {
    buttons.forEach((button) => {
      const on = button.dataset.value === String(value);
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    });
    if (tell) change(value);
  }
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = buttons.findIndex((button) => button.getAttribute("aria-checked") === "true");
    const next = buttons[(at + step + buttons.length) % buttons.length];
    set(next.dataset.value, true);
    next.focus();
  });
  group.append(...buttons);
  set(chosen, false);
  group.choose = (value) => set(value, false);
  return group;
}

export function select(label, options, chosen, change) {
  const list = element("select", { onchange: () => change(list.value) },
    options.map(([value, text]) => element("option", { value, selected: String(value) === String(chosen) }, text)));
  list.value = String(chosen);
  return element("label", { class: "field" }, element("span", {}, label), list);
}

/** A table. One of many columns may scroll sideways on a narrow screen, by the keyboard too. */
export function table(heads, rows, properties = {}) {
  const scrolls = heads.length > 3 && !rows.flat().some((cell) => cell instanceof HTMLButtonElement);
  return element("table", { ...(scrolls ? { tabindex: "0" } : {}), ...properties },
    element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell, i) =>
      element(i === 0 ? "th" : "td", i === 0 ? { scope: "row" } : {}, cell))))));
}

export function section(title, ...children) {
  const id = `section-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return element("section", { class: "card", "aria-labelledby": id }, element("h3", { id }, title), ...children);
}

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
