// SPDX-License-Identifier: Apache-2.0
// Runs that are compared: which options differ among them, which runs repeat one setting with another
// seed, and the colour each has on the whole page.
import {deviation, finite, mean, percent, short, text} from './format.js';
import {accuracyOn, atBestEpoch, best, dataName, dataOf, options} from './runs.js';
import * as state from './state.js';

// Where a run was put and how it was watched tell nothing about its result.
const ignored = new Set(['project', 'project_dir', 'seed', 'num_workers', 'log_level', 'plot', 'ascii', 'progress', 'quiet', 'debug', 'no_warnings', 'threads']);

export const metrics = [
  {title: 'best validation accuracy', column: 'best validation accuracy', of: (run) => best(run, 'val_acc_epoch'), show: percent, up: true},
  {title: 'validation accuracy at the best epoch', column: 'validation accuracy, best epoch', of: (run) => atBestEpoch(run, 'val_acc_epoch'), show: percent, up: true},
  {title: 'best validation loss', column: 'best validation loss', of: (run) => best(run, 'val_loss_epoch'), show: short, up: false},
  {title: 'test accuracy', column: 'test accuracy', of: (run) => accuracyOn(run, 'test'), show: percent, up: true},
];

// Those that at least one run has.
export function measured(runs) { return metrics.filter((metric) => runs.some((run) => metric.of(run) !== null)); }

export const sameData = (runs) => new Set(runs.map(dataOf)).size <= 1;

// The data of a run, told apart from that of the others: by content where the names are the same.
export function dataLabel(run, runs) {
  const name = dataName(run) || 'unknown data', namesakes = new Set(runs.filter((one) => dataName(one) === dataName(run)).map(dataOf));
  return namesakes.size > 1 ? `${name} ${String(((run.run || {}).dataset || {}).identity || 'unidentified').replace(/^sha256:/, '').slice(0, 8)}` : name;
}

export function differing(runs) {
  const all = runs.map(options), names = [...new Set(all.flatMap((one) => [...one.keys()]))], columns = [];
  const models = runs.map((run) => ((run.run || {}).model || {}).name);
  if (!names.includes('model') && new Set(models.map(text)).size > 1) columns.push({name: 'model', values: models});
  if (!sameData(runs)) columns.push({name: 'data set', values: runs.map((run) => dataLabel(run, runs))});
  for (const name of names) {
    const values = all.map((one) => one.get(name));
    if (!ignored.has(name) && !(name === 'dataset' && !sameData(runs)) && new Set(values.map(text)).size > 1) columns.push({name, values});
  }
  return columns;
}

export function inOrder(a, b) {
  const x = finite(a), y = finite(b);
  return x !== null && y !== null ? x - y : text(a).localeCompare(text(b), 'en', {numeric: true});
}

export const distinct = (values) => [...new Map(values.map((v) => [text(v), v])).values()];
export const ordered = (values) => distinct(values).sort(inOrder);

// Runs that share every differing option but the seed.
export function groups(runs, columns) {
  const found = new Map();
  runs.forEach((run, i) => {
    const key = columns.map((c) => text(c.values[i])).join('\0');
    if (!found.has(key)) found.set(key, {values: columns.map((c) => c.values[i]), runs: [], indices: []});
    found.get(key).runs.push(run);
    found.get(key).indices.push(i);
  });
  return [...found.values()].sort((a, b) => {
    for (let i = 0; i < columns.length; ++i) {
      const order = inOrder(a.values[i], b.values[i]);
      if (order) return order;
    }
    return 0;
  });
}

// Mean over the runs that have the figure; a deviation only where they differ in nothing but the seed.
export function summary(runs, pick) {
  const with_ = runs.filter((run) => pick(run) !== null), numbers = with_.map(pick);
  if (!numbers.length) return null;
  const seeds = with_.map((run) => options(run).get('seed')), repeated = seeds.every((seed) => seed !== undefined && seed !== null) && new Set(seeds.map(text)).size === seeds.length;
  return {mean: mean(numbers), count: numbers.length, deviation: numbers.length > 1 && repeated ? deviation(numbers) : null};
}

export function spoken(found, show) {
  return found === null ? '–' : `${show(found.mean)}${found.deviation !== null ? ` ± ${show(found.deviation)}` : ''}`;
}

// The option whose values move the result most: what curves of many runs are best coloured by.
function strongest(runs, columns) {
  const spread = columns.map((column) => {
    const means = ordered(column.values).map((value) => summary(runs.filter((_, i) => text(column.values[i]) === text(value)), metrics[0].of)).filter(Boolean).map((one) => one.mean);
    return means.length > 1 ? Math.max(...means) - Math.min(...means) : 0;
  });
  return columns.length ? columns[spread.indexOf(Math.max(...spread))].name : 'run';
}

// One colour for a run everywhere on the page: its own, or that of its value of the chosen option.
export function colouring(runs, columns) {
  const wanted = state.get('colour-by', runs.length > 8 ? strongest(runs, columns) : 'run'), column = columns.find((c) => c.name === wanted) || null;
  const values = column ? ordered(column.values) : [], at = (value) => values.findIndex((v) => text(v) === text(value));
  return {
    mode: column ? column.name : 'run', column, values,
    colour: (i) => state.paint(column ? at(column.values[i]) : i),
    ofValue: (value) => state.paint(at(value)),
    label: (i) => column ? text(column.values[i]) : runs[i].name,
  };
}
