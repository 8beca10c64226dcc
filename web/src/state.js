// SPDX-License-Identifier: Apache-2.0
// What the reader chose on this page (axis, colours, hidden runs), kept while the page redraws.

const chosen = new Map();
let redraw = () => {};

export function onChange(action) { redraw = action; }

export function get(key, fallback) { return chosen.has(key) ? chosen.get(key) : fallback; }

export function set(key, value) {
  chosen.set(key, value);
  redraw();
}

// Without redrawing: for what the page shows already.
export function remember(key, value) { chosen.set(key, value); }

// The theme follows the system until the reader chooses; pages from disk may not store anything.
export function theme() {
  const wanted = get('theme', null);
  if (wanted) return wanted;
  return window.matchMedia && matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

export function applyTheme(forced) { document.documentElement.dataset.theme = forced || theme(); }

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

const chosenColours = 8;

// One palette that never repeats: eight colours chosen by hand, then hues a golden angle apart, three
// lightnesses in turn. Lines carry their names as well, since no eye tells thirty colours apart.
export function paint(index) {
  if (index < chosenColours) return colour('series-' + (1 + index));
  const hue = (index * 137.508 + 20) % 360, level = index % 3;
  const [saturation, lightness] = document.documentElement.dataset.theme === 'dark' ? [60 + 8 * level, 62 + 8 * level] : [58 - 6 * level, 30 + 9 * level];
  return `hsl(${hue.toFixed(1)} ${saturation}% ${lightness}%)`;
}
