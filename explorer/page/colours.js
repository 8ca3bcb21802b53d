// Colours of the pictures. Hue distinguishes, and lightness agrees with the theme; texts on them have a contrast of
// 4.5 at least.

export function isDark() {
  const theme = document.documentElement.dataset.theme;
  if (theme === "print") return false;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

let palette = new Map(); // of one theme
let paletteIsDark = null;

/** The colour of number `index` of `count`: even steps around the circle of hues, neighbours alternating in
 *  lightness. Pictures call refreshColours before they draw. */
export function hue(index, count) {
  const key = count * 65536 + index;
  let colour = palette.get(key);
  if (!colour) palette.set(key, (colour = makeHue(index, count)));
  return colour;
}

function makeHue(index, count) {
  const angle = (250 + (360 * index) / Math.max(count, 1)) % 360;
  const odd = count > 8 && index % 2 === 1;
  return paletteIsDark
    ? `oklch(${odd ? 0.4 : 0.46} ${0.085} ${angle})`
    : `oklch(${odd ? 0.84 : 0.9} ${0.075} ${angle})`;
}

export function refreshColours() {
  const dark = isDark();
  if (dark !== paletteIsDark) palette = new Map();
  paletteIsDark = dark;
}

/** Values of the style sheet: "ink", "rule", "paper", "accent", "bad", "good", "faint". */
export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
