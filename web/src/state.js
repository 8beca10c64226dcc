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

const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

// Eight distinguishable colours, then the same with dashes.
export function stroke(index) {
  return {colour: colour('series-' + (1 + index % 8)), dash: dashes[Math.floor(index / 8) % dashes.length]};
}
