// SPDX-License-Identifier: Apache-2.0
// Several runs side by side: how the results depend on what was varied, curves over each other, and
// tables with the results right behind the name.
import {lineChart} from './chart.js';
import {breakable, choice, h, note, section} from './dom.js';
import {effects} from './effects.js';
import {duration, fileName, finite, percentAxis, text, whole} from './format.js';
import {colouring, dataLabel, differing, groups, measured, sameData, spoken, summary} from './groups.js';
import {axes, curve, dataOf, options, points} from './runs.js';
import * as state from './state.js';
import {table} from './table.js';
import {axisChoices, axisLabel, chosenAxis} from './training.js';

const settingCell = (v) => ({content: h('span', {class: 'differs'}, fileName(v)), title: fileName(v) !== text(v) ? text(v) : null, key: finite(v) !== null ? finite(v) : text(v)});

function runTable(runs, columns, colours) {
  const known = measured(runs), comparable = sameData(runs);
  const winners = known.map((metric) => {
    const values = runs.map(metric.of).filter((v) => v !== null);
    return comparable && values.length > 1 ? (metric.up ? Math.max(...values) : Math.min(...values)) : null;
  });
  const seeds = runs.map((run) => options(run).get('seed')), showSeed = new Set(seeds.map(text)).size > 1;
  const hidden = state.get('hidden', new Set());
  const number = (value, show, extra) => ({content: show(value), key: finite(value), ...extra});
  return table({
    id: 'run-table', caption: 'Runs; click a heading to sort', sortable: true,
    columns: [{title: 'run'}, ...known.map((metric) => ({title: metric.column, class: 'num', descending: metric.up})), ...columns.map((c) => ({title: c.name})), ...(showSeed ? [{title: 'seed', class: 'num'}] : []),
      {title: 'time', class: 'num'}, {title: 'samples/s', class: 'num', descending: true}, {title: 'status'}],
    rows: runs.map((run, i) => {
      const info = run.run || {};
      const toggle = h('label', {class: 'run-name'}, h('input', {type: 'checkbox', checked: !hidden.has(run.name), 'aria-label': `show ${run.name}`, onchange: (event) => {
        const now = new Set(state.get('hidden', new Set()));
        if (event.target.checked) now.delete(run.name); else now.add(run.name);
        state.set('hidden', now);
      }}), h('span', {class: 'swatch', style: {background: colours.colour(i)}}), h('span', {title: run.folder || null}, breakable(run.name)));
      return [{content: toggle, key: run.name}, ...known.map((metric, m) => number(metric.of(run), metric.show, {class: winners[m] !== null && metric.of(run) === winners[m] ? 'winner' : null})),
        ...columns.map((c) => settingCell(c.values[i])), ...(showSeed ? [seeds[i] === undefined ? '–' : seeds[i]] : []),
        number((info.speed || {}).seconds, duration), number((info.speed || {}).samples_per_second, whole), text(info.status || run.problem || '')];
    }),
  });
}

const dashes = [[], [8, 4], [2, 3], [9, 3, 2, 3], [1, 5], [12, 6]];

// Curves over each other; runs on other data than the first are dashed.
function overlay(runs, columns, colours) {
  const hidden = state.get('hidden', new Set()), sets = [...new Set(runs.map(dataOf))];
  // Runs with different batch sizes meet at epochs, not at steps.
  const available = axes(runs.find((run) => axes(run).length === 3) || runs[0]), axis = chosenAxis(available, 'epoch');
  const modes = [['run', 'run'], ...columns.map((c) => [c.name, c.name])], whole = runs.some((run) => curve(run, 'train_loss_epoch'));
  const wanted = [['val_acc_epoch', 'Validation accuracy', 'compare-accuracy', percentAxis], [whole ? 'train_acc_epoch' : 'train_acc_logged', whole ? 'Training accuracy, epoch mean' : 'Training accuracy, mean of logged steps', 'compare-train-accuracy', percentAxis],
    ['val_loss_epoch', 'Validation loss', 'compare-loss'], [whole ? 'train_loss_epoch' : 'train_loss_logged', whole ? 'Training loss, epoch mean' : 'Training loss, mean of logged steps', 'compare-train'], ['learning_rate', 'Learning rate', 'compare-rate']];
  const charts = wanted.map(([key, title, id, format]) => {
    const series = [];
    runs.forEach((run, i) => {
      const data = hidden.has(run.name) ? null : points(run, key, axis);
      if (!data) return;
      const set = sets.indexOf(dataOf(run));
      series.push({name: run.name, ...data, colour: colours.colour(i), dash: dashes[set % dashes.length], width: colours.column ? 1.6 : 2, points: false, label: colours.label(i) + (set ? ` · ${dataLabel(run, runs)}` : '')});
    });
    return lineChart({id, title, xLabel: axisLabel(axis), wholeX: axis !== 'seconds', series, share: 'compare', legend: !colours.column && series.length <= 12, log: format ? false : key.includes('loss') ? state.get('log', 'auto') : 'auto', height: key === 'learning_rate' ? 200 : 290, ...(format ? {format} : {})});
  }).filter(Boolean);
  if (!charts.length) return null;
  return section('curves', 'Curves', h('div', {class: 'choices'}, columns.length ? choice('colour by', modes, colours.mode, (value) => state.set('colour-by', value)) : null), axisChoices(available, axis),
    colours.column ? h('ul', {class: 'legend inline', id: 'colour-key'}, colours.values.map((v) => h('li', null, h('span', {class: 'swatch', style: {background: colours.ofValue(v)}}), `${colours.column.name} ${fileName(v)}`))) : null,
    h('div', {class: 'charts'}, charts));
}

// What differs first; what all runs share is folded away.
function optionDifferences(runs, columns) {
  const all = runs.map(options), names = [...new Set(all.flatMap((one) => [...one.keys()]))];
  if (!names.length || runs.length > 12) return null;
  const differ = new Set(columns.map((c) => c.name)), shared = names.filter((name) => !differ.has(name) && new Set(all.map((one) => text(one.get(name)))).size === 1), apart = names.filter((name) => !shared.includes(name));
  apart.sort((a, b) => differ.has(b) - differ.has(a));
  const shown = (one, name) => ({content: one.has(name) && one.get(name) !== null ? fileName(one.get(name)) : '–', title: one.has(name) ? text(one.get(name)) : null});
  return section('options', 'Options',
    apart.length ? table({id: 'option-compare', caption: 'Options that differ', columns: [{title: 'option'}, ...runs.map((run) => ({title: run.name}))],
      rows: apart.map((name) => [h('code', null, name), ...all.map((one) => ({...shown(one, name), class: differ.has(name) ? 'changed' : null}))])}) : note('All options are the same.'),
    shared.length ? h('details', null, h('summary', null, `${shared.length} options that all runs share`), table({id: 'option-shared', caption: 'Options that all runs share', columns: [{title: 'option'}, {title: 'value'}], rows: shared.map((name) => [h('code', null, name), shown(all[0], name)])})) : null);
}

// One row for each setting, over its seeds.
function settings(runs, columns) {
  const all = groups(runs, columns), known = measured(runs);
  if (!columns.length || !all.some((group) => group.runs.length > 1)) return null;
  const over = (group, pick, show) => {
    const found = summary(group.runs, pick);
    return {content: spoken(found, show), key: found ? found.mean : null};
  };
  const setting = (group) => ({content: h('span', {class: 'setting'}, columns.map((c, k) => h('span', null, `${c.name} `, h('span', {class: 'differs'}, fileName(group.values[k]))))), key: group.values.map(text).join(' ')});
  return section('settings', 'Settings, over seeds', table({id: 'setting-table', caption: 'Mean over the runs of each setting; ± is the standard deviation over seeds; click a heading to sort', sortable: true,
    columns: [{title: 'setting'}, ...known.map((metric) => ({title: metric.column, class: 'num', descending: metric.up})), {title: 'n', class: 'num'}, {title: 'time', class: 'num'}],
    rows: all.map((group) => [setting(group), ...known.map((metric) => over(group, metric.of, metric.show)), group.runs.length, over(group, (run) => finite(((run.run || {}).speed || {}).seconds), duration)])}));
}

function dataNotice(runs) {
  if (sameData(runs)) return null;
  const sets = new Map();
  for (const run of runs) sets.set(dataLabel(run, runs), (sets.get(dataLabel(run, runs)) || 0) + 1);
  return h('p', {class: 'note trouble', id: 'data-notice'}, h('strong', null, 'Different data: '), [...sets].map(([name, count]) => `${name} (${count === 1 ? '1 run' : `${count} runs`})`).join(', '), '. Figures are not comparable across them; curves on other data than the first run’s are dashed.');
}

export function comparison(runs, sweep) {
  const columns = differing(runs), colours = colouring(runs, columns);
  const failed = sweep && Array.isArray(sweep.failed) ? sweep.failed : [];
  return [dataNotice(runs),
    failed.length ? section('failed', 'Failed runs', h('ul', null, failed.map((one) => h('li', null, h('code', null, text(one.name)), ' ', text(one.cause))))) : null,
    effects(runs, columns, colours), overlay(runs, columns, colours), settings(runs, columns), section('runs', 'Runs', runTable(runs, columns, colours)), optionDifferences(runs, columns)];
}
