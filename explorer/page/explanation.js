// What `lilac explain --json` says of a kernel: the budget of a block, and of a line its plans, the reasons of its
// conversions, and the plans that were not chosen.

import { element, plural, section, table } from "./dom.js";
import { baseName } from "./locations.js";

const number = (value) => Math.round(value).toLocaleString("en");

/** The place of an operation, as of lines of the texts. */
export function placeOf(explanation, operation) {
  if (!operation?.source) return null;
  const [file, line] = operation.source;
  return `${baseName(explanation.files[file].name)}:${line}`;
}

// ---- the budget ----

export function budgetView({ budget }) {
  const roofs = budget.roofs.filter(({ clocks }) => clocks > 0).sort((a, b) => b.clocks - a.clocks);
  const most = Math.max(...roofs.map(({ clocks }) => clocks), 1);
  return section("Budget of a block",
    element("p", {}, `${plural(budget.resident_blocks, "block")} resident on a multiprocessor, limited by `
      + `${budget.limited_by}. ${budget.registers} registers a thread${budget.registers_estimated ? " (estimated)" : ""}, `
      + `${number(budget.shared_bytes)} bytes of shared memory. `
      + (budget.exact ? "All counts are exact." : "Trip counts or branches that are not known are estimated.")),
    element("h4", {}, `Clocks of a block if one unit alone mattered; ${budget.bound} is the largest`),
    element("ul", { class: "roofs" }, roofs.map(({ name, clocks }) => element("li", {},
      element("span", { class: "name" }, name),
      element("span", { class: `bar${name === budget.bound ? " bound" : ""}`, style: `width:${(46 * clocks) / most}%` }),
      element("span", { class: "value" }, number(clocks))))),
    element("details", {}, element("summary", {}, "All counts"),
      table(["counter", "of a block"], Object.entries(budget.counts).filter(([, value]) => typeof value === "number")
        .map(([name, value]) => [name.replaceAll("_", " "), number(value)]), { class: "numbers" })));
}

// ---- a line ----

export function whyView(explanation, place) {
  const operations = explanation.operations.filter((operation) => placeOf(explanation, operation) === place
    && (operation.plans.length > 0 || operation.reason || operation.vector_limits));
  if (operations.length === 0) return null;
  return section("Plans and prices", operations.map((operation) => operationView(explanation, operation)));
}

function operationView(explanation, operation) {
  const { name, executions, cycles, plans, vector_limits: limits } = operation;
  return element("div", { class: "plan" },
    element("h4", {}, `${name}: ${number(cycles)} clocks`
      + (executions === 1 ? "" : `, executed ${number(executions)} times${operation.certain ? "" : " (estimated)"}`)),
    reasonOf(explanation, operation),
    limits ? element("p", {}, limits) : null,
    plans.map((plan) => (plan.text.length > 600
      ? element("details", {}, element("summary", {}, `The plan of the ${plan.kind} in words`),
        element("pre", { tabindex: "0" }, plan.text))
      : element("pre", { tabindex: "0" }, plan.text.trimEnd()))),
    alternatives(operation));
}

function reasonOf(explanation, { reason }) {
  if (!reason) return null;
  const name = (index) => {
    const operation = explanation.operations[index - 1];
    const place = placeOf(explanation, operation);
    return operation ? `${operation.name}${place ? ` (${place})` : ""}` : "nothing that was found";
  };
  return element("dl", {},
    element("dt", {}, `The layout it comes from is that of ${name(reason.made_by)}`),
    element("dd", {}, reason.why_made ?? "", " ", element("code", {}, reason.made_in ?? "")),
    element("dt", {}, `The layout it goes to is that of ${name(reason.used_by)}`),
    element("dd", {}, reason.why_used ?? "", " ", element("code", {}, reason.used_in ?? "")));
}

function alternatives({ cycles, alternatives: others }) {
  if (others.length === 0) return null;
  return table(["not chosen", "clocks", ""], others.map(({ name, cycles: price, refused, saved, operation }) => [
    operation ? `${name} ${operation}` : name, price === null ? "–" : number(price),
    refused ?? (saved > 0 ? `saves ${number(saved)}` : price >= cycles ? `${number(price - cycles)} more` : ""),
  ]), { class: "wide" });
}
