// SPDX-License-Identifier: Apache-2.0
// A run's numbers in the form the charts want: curves by name, x in steps, epochs or seconds.
import {finite} from './format.js';

export function curve(run, key) {
  return (run.curves || []).find((one) => one.key === key) || null;
}

function interpolate(xs, ys, x) {
  let low = 0, high = xs.length - 1;
  if (x >= xs[high]) low = Math.max(0, high - 1);
  else while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle;
  }
  const span = xs[high] - xs[low];
  return span > 0 ? ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / span : ys[low];
}

// Steps as another unit, by the rows that end each epoch (run.marks).
function convert(run, steps, axis) {
  const marks = run.marks;
  if (axis === 'step' || !marks || !marks.step.length) return steps;
  const known = axis === 'epoch' ? marks.epoch.map((_, i) => i + 1) : marks.seconds;
  const at = [0, ...marks.step], values = [0, ...known];
  return steps.map((step) => interpolate(at, values, step));
}

export function axes(run) {
  const result = [['step', 'step']], marks = run.marks;
  if (marks && marks.step.length) {
    result.push(['epoch', 'epoch']);
    if (marks.seconds.every((v) => finite(v) !== null)) result.push(['seconds', 'seconds']);
  }
  return result;
}

export function points(run, key, axis) {
  const one = curve(run, key);
  if (!one) return null;
  return {x: convert(run, one.x, axis), y: one.y.map(finite)};
}

function values(run, key) {
  const one = curve(run, key);
  return one ? one.y.map(finite).filter((v) => v !== null) : [];
}

// The best value of all epochs. What a list of runs does not show is not known there.
export function best(run, key) {
  const all = values(run, key);
  if (!all.length) return null;
  return key.includes('loss') ? Math.min(...all) : Math.max(...all);
}

// The epoch of that value.
export function bestEpoch(run, key) {
  const one = curve(run, key), marks = run.marks, found = best(run, key);
  if (!one || !marks || found === null) return null;
  const at = marks.step.indexOf(one.x[one.y.map(finite).indexOf(found)]);
  return at < 0 ? null : marks.epoch[at];
}

// The value at the epoch whose checkpoint was kept, the best by what the run monitored.
export function atBestEpoch(run, key) {
  return finite(((run.run || {}).best || {})[key]);
}

export function last(run, key) {
  const all = values(run, key);
  return all.length ? all[all.length - 1] : null;
}

// What was measured on which rows: {test: {accuracy, loss}, ...}. A record that does not say its split
// is kept as 'unnamed' and never shown as another one's.
export function evaluations(run, figure = 'accuracy') {
  const info = run.run || {}, result = new Map();
  const add = (split, found) => {
    if (found && typeof found === 'object' && finite(found[figure]) !== null) result.set(split, found);
  };
  if (info.evaluations && typeof info.evaluations === 'object') for (const [split, found] of Object.entries(info.evaluations)) add(found && typeof found.split === 'string' ? found.split : split, found);
  if (info.evaluation && typeof info.evaluation === 'object') add(typeof info.evaluation.split === 'string' && info.evaluation.split ? info.evaluation.split : 'unnamed', info.evaluation);
  return result;
}

export function accuracyOn(run, split) {
  const found = evaluations(run).get(split);
  return found ? finite(found.accuracy) : null;
}

// What tells data apart: name, variant and content.
export function dataOf(run) {
  const data = (run.run || {}).dataset || {};
  return [data.name, data.variant, data.identity].filter((v) => v !== null && v !== undefined).map(String).join(' ');
}

export function dataName(run) {
  const data = (run.run || {}).dataset || {};
  return [data.name, data.variant].filter((v) => v !== null && v !== undefined && v !== '').map(String).join(', ');
}

// The effective options, by name.
export function options(run) {
  const result = new Map();
  const info = run.run || {};
  for (const option of Array.isArray(info.options) ? info.options : [])
    if (option && typeof option.name === 'string') result.set(option.name, option.effective !== undefined ? option.effective : option.default);
  if (!result.has('seed') && info.seed !== undefined && info.seed !== null) result.set('seed', info.seed);
  return result;
}
