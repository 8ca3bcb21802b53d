// Places in the user's program: what lines of TTIR, tile IR and PTX come from. A place is "file:line"; of an
// operation in a function that was inlined it is the line of the outermost call.

/** Lines of tile IR: [{text, place, raw}], the text without its location; definitions of locations are left out. */
export function readTile(text) {
  const locations = new Locations();
  const lines = text.split("\n");
  for (const line of lines) locations.define(line);
  const result = [];
  lines.forEach((raw, index) => {
    if (/^#loc\d*\s*=/.test(raw) || (raw === "" && index === lines.length - 1)) return;
    result.push({ number: index + 1, raw, text: withoutLocations(raw), place: locations.placeOf(raw) });
  });
  placeHeads(result);
  return result;
}

/** The location of an operation with regions is at its end; its first line has the same place. */
function placeHeads(lines) {
  const heads = [];
  for (const line of lines) {
    const indent = line.text.search(/\S/), start = line.text.trimStart();
    if (start.startsWith("}")) {
      while (heads.length > 0 && heads[heads.length - 1].indent > indent) heads.pop();
      if (heads.length > 0 && line.place) heads.pop().line.place ??= line.place;
    }
    if (line.place === null && /\{$/.test(start) && !start.startsWith("}")) heads.push({ indent, line });
  }
}

/** Lines of PTX, without .loc directives and the comments that repeat them. */
export function readPtx(text) {
  const files = {};
  for (const match of text.matchAll(/^\s*\.file\s+(\d+)\s+"([^"]*)"/gm)) files[match[1]] = match[2];
  const result = [];
  let place = null, after = false;
  text.split("\n").forEach((raw, index, all) => {
    const loc = /^\s*\.loc\s+(\d+)\s+(\d+)/.exec(raw);
    if (loc) {
      place = `${baseName(files[loc[1]] ?? loc[1])}:${loc[2]}`;
      return;
    }
    const comment = /^\s*\/\/ \S+:\d+:\d+$/.test(raw) && /^\s*\.loc\s/.test(all[index + 1] ?? "");
    if (comment || (raw === "" && index === all.length - 1)) return;
    if (raw === "}") after = true;
    result.push({ number: index + 1, raw, text: raw.replace(/\t/g, "    "), place: after ? null : place });
  });
  return result;
}

export const baseName = (path) => path.replace(/^.*\//, "");

class Locations {
  constructor() {
    this.named = new Map();
    this.resolved = new Map();
  }

  define(line) {
    const match = /^(#loc\d*)\s*=\s*loc\((.*)\)\s*$/.exec(line);
    if (match) this.named.set(match[1], match[2]);
  }

  /** The place of the location at the end of a line of IR. */
  placeOf(line) {
    const at = line.lastIndexOf(" loc(");
    return at < 0 || !line.endsWith(")") ? null : this.place(line.slice(at + 5, -1));
  }

  place(text, depth = 0) {
    if (depth > 32) return null;
    const known = this.resolved.get(text);
    if (known !== undefined) return known;
    const place = this.find(text.trim(), depth);
    this.resolved.set(text, place);
    return place;
  }

  find(text, depth) {
    if (this.named.has(text)) return this.place(this.named.get(text), depth + 1);
    const file = /^"([^"]*)":(\d+):\d+$/.exec(text);
    if (file) return `${baseName(file[1])}:${file[2]}`;
    const named = /^"[^"]*"\((.*)\)$/.exec(text);
    if (named) return this.place(named[1], depth + 1);
    const call = /^callsite\((.*)\)$/.exec(text);
    if (call) return this.place(splitAt(call[1]), depth + 1);
    const fused = /^fused(?:<[^>]*>)?\[(.*)\]$/.exec(text);
    if (fused) return this.place(fused[1].split(",")[0], depth + 1);
    return null;
  }
}

/** The caller in "callee at caller". */
function splitAt(text) {
  let depth = 0;
  for (let i = text.length - 1; i > 0; i--) {
    if (text[i] === ")") depth++;
    else if (text[i] === "(") depth--;
    else if (depth === 0 && text.startsWith(" at ", i)) return text.slice(i + 4);
  }
  return text;
}

/** A line of IR without its locations, those of block arguments included. */
function withoutLocations(line) {
  let text = line;
  for (;;) {
    const at = text.indexOf(" loc(");
    if (at < 0) return text;
    let depth = 0, end = at + 4;
    for (; end < text.length; end++) {
      if (text[end] === "(") depth++;
      if (text[end] === ")" && --depth === 0) break;
    }
    text = text.slice(0, at) + text.slice(end + 1);
  }
}

/** All types with a layout in a line of IR, in order. */
export function typesIn(line) {
  const types = [];
  for (const match of line.matchAll(/(tensor|!ttg\.memdesc)</g)) {
    let depth = 0, end = match.index;
    for (; end < line.length; end++) {
      if (line[end] === "<") depth++;
      if (line[end] === ">" && line[end - 1] !== "-" && --depth === 0) break;
    }
    const type = line.slice(match.index, end + 1);
    if (type.includes("#")) types.push(type);
  }
  return types;
}

/** Short names for the layouts in a text: #ttg.linear<{…}> → #1. */
export class LayoutNames {
  constructor() {
    this.names = new Map();
  }

  shorten(text) {
    return text.replace(/#(?:ttg|ttng|triton_\w+)\.\w+<\{[^{}]*\}>/g, (layout) => {
      if (!this.names.has(layout)) this.names.set(layout, `#${this.names.size + 1}`);
      return this.names.get(layout);
    });
  }
}
