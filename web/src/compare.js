// SPDX-License-Identifier: Apache-2.0
// Several runs side by side: what differs in their options, how the results depend on it, curves
// over each other, and a table that sorts.
import {lineChart} from './chart.js';
import {choice, h, note, section, svg} from './dom.js';
import {deviation, duration, finite, mean, percent, short, text, whole} from './format.js';
import {axes, best, options, points} from './runs.js';
import * as state from './state.js';
import {table} from './table.js';
import {axisChoices, chosenAxis} from './training.js';

// Where a run was put and how it was started tell nothing about its result.
const ignored = new Set(['project', 'project_dir', 'seed', 'load', 'config', 'num_workers', 'log_level', 'plot', 'ascii', 'progress', 'quiet']);

export function differing(runs) {
  const all = runs.map(options), names = [...new Set(all.flatMap((one) => [...one.keys()]))];
  const facts = runs.map((run) => ({model: ((run.run || {}).model || {}).name, dataset: ((run.run || {}).dataset || {}).name}));
  const columns = [];
  for (const name of ['model', 'dataset'])
    if (!names.includes(name) && new Set(facts.map((fact) => text(fact[name]))).size > 1) columns.push({name, values: facts.map((fact) => fact[name])});
  for (const name of names) {
    const values = all.map((one) => one.get(name));
    if (!ignored.has(name) && new Set(values.map(text)).size > 1) columns.push({name, values});
  }
  return columns;
}

const metrics = [
  {key: 'val_acc_epoch', title: 'best validation accuracy', show: percent, up: true},
  {key: 'val_loss_epoch', title: 'best validation loss', show: short, up: false},
];

function result(run, metric) { return best(run, metric.key); }

function runTable(runs, columns) {
  const winners = metrics.map((metric) => {
    const values = runs.map((run) => result(run, metric)).filter((v) => v !== null);
    return values.length ? (metric.up ? Math.max(...values) : Math.min(...values)) : null;
  });
  const seeds = runs.map((run) => options(run).get('seed'));
  const showSeed = new Set(seeds.map(text)).size > 1;
  const hidden = state.get('hidden', new Set());
  const number = (value, show, extra) => ({content: show(value), key: finite(value), ...extra});
  const value = (v) => ({content: h('span', {class: 'differs'}, text(v)), key: finite(v) !== null ? finite(v) : text(v)});
  return table({
    id: 'run-table', caption: 'Runs; click a heading to sort', sortable: true,
    columns: [{title: 'run'}, ...columns.map((c) => ({title: c.name})), ...(showSeed ? [{title: 'seed', class: 'num'}] : []), {title: 'val accuracy', class: 'num', descending: true}, {title: 'val loss', class: 'num'},
      {title: 'test accuracy', class: 'num', descending: true}, {title: 'time', class: 'num'}, {title: 'samples/s', class: 'num', descending: true}, {title: 'status'}],
    rows: runs.map((run, i) => {
      const info = run.run || {}, mark = state.stroke(i);
      const toggle = h('label', {class: 'run-name'}, h('input', {type: 'checkbox', checked: !hidden.has(run.name), 'aria-label': `show ${run.name}`, onchange: (event) => {
        const now = new Set(state.get('hidden', new Set()));
        if (event.target.checked) now.delete(run.name); else now.add(run.name);
        state.set('hidden', now);
      }}), h('span', {class: 'swatch', style: {background: mark.colour}}), h('span', null, run.name));
      return [{content: toggle, key: run.name}, ...columns.map((c) => value(c.values[i])), ...(showSeed ? [seeds[i] === undefined ? '–' : seeds[i]] : []),
        ...metrics.map((metric, m) => number(result(run, metric), metric.show, {class: winners[m] !== null && result(run, metric) === winners[m] ? 'winner' : null})),
        number((info.evaluation || {}).accuracy, percent), number((info.speed || {}).seconds, duration), number((info.speed || {}).samples_per_second, whole), text(info.status || run.problem || '')];
    }),
  });
}

function inOrder(a, b) {
  const x = finite(a), y = finite(b);
  return x !== null && y !== null ? x - y : text(a).localeCompare(text(b), 'en', {numeric: true});
}

// Runs that share every differing option but the seed.
function groups(runs, columns) {
  const found = new Map();
  runs.forEach((run, i) => {
    const key = columns.map((c) => text(c.values[i])).join(' · ');
    if (!found.has(key)) found.set(key, {label: columns.map((c) => `${c.name} ${text(c.values[i])}`).join(', '), values: columns.map((c) => c.values[i]), runs: []});
    found.get(key).runs.push(run);
  });
  return [...found.values()].sort((a, b) => {
    for (let i = 0; i < columns.length; ++i) {
      const order = inOrder(a.values[i], b.values[i]);
      if (order) return order;
    }
    return 0;
  });
}

const distinct = (values) => [...new Map(values.map((v) => [text(v), v])).values()];
const ordered = (values) => distinct(values).sort(inOrder);

// One small chart per option: the result against its values, a line for each setting of the others.
function effect(all, columns, index, metric) {
  const values = ordered(all.map((group) => group.values[index]));
  if (values.length < 2) return null;
  const others = distinct(all.map((group) => columns.map((c, k) => k === index ? '' : `${c.name} ${text(group.values[k])}`).filter(Boolean).join(', ')));
  const width = 380, height = 230, left = 58, right = 14, top = 12, bottom = 34;
  const points = all.map((group) => {
    const numbers = group.runs.map((run) => result(run, metric)).filter((v) => v !== null);
    return numbers.length ? {at: values.findIndex((v) => text(v) === text(group.values[index])), other: columns.map((c, k) => k === index ? '' : `${c.name} ${text(group.values[k])}`).filter(Boolean).join(', '), mean: mean(numbers), deviation: deviation(numbers), count: numbers.length} : null;
  }).filter(Boolean);
  if (points.length < 2) return null;
  let low = Math.min(...points.map((p) => p.mean - p.deviation)), high = Math.max(...points.map((p) => p.mean + p.deviation));
  const margin = (high - low) * 0.08 || 0.01;
  low -= margin;
  high += margin;
  const x = (i) => left + (i + 0.5) * (width - left - right) / values.length, y = (v) => top + (high - v) / (high - low) * (height - top - bottom);
  const ticks = [0, 1, 2, 3].map((i) => low + (high - low) * (i + 0.5) / 4);
  return h('figure', {class: 'effect'}, h('figcaption', null, 'Effect of ', h('strong', null, columns[index].name)),
    svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Effect of ${columns[index].name}: ` + points.map((p) => `${text(values[p.at])}${p.other ? ' with ' + p.other : ''}: ${metric.show(p.mean)}`).join('; ')},
      ticks.map((t) => [svg('line', {x1: left, x2: width - right, y1: y(t), y2: y(t), class: 'grid-line'}), svg('text', {x: left - 6, y: y(t) + 4, 'text-anchor': 'end', class: 'tick'}, metric.show(t, metric.show === percent ? 1 : 3))]),
      values.map((v, i) => svg('text', {x: x(i), y: height - 14, 'text-anchor': 'middle', class: 'tick strong'}, text(v))),
      others.map((other, k) => {
        const mine = points.filter((p) => p.other === other).sort((a, b) => a.at - b.at), mark = state.stroke(k), shift = others.length > 1 ? (k - (others.length - 1) / 2) * Math.min(9, 60 / others.length) : 0;
        return svg('g', {style: {color: mark.colour}}, svg('path', {class: 'effect-line', d: mine.map((p, i) => `${i ? 'L' : 'M'}${x(p.at) + shift} ${y(p.mean)}`).join('')}),
          mine.map((p) => [p.deviation > 0 ? svg('line', {x1: x(p.at) + shift, x2: x(p.at) + shift, y1: y(p.mean - p.deviation), y2: y(p.mean + p.deviation), class: 'error-bar'}) : null,
            svg('circle', {cx: x(p.at) + shift, cy: y(p.mean), r: 4.5, class: 'dot'}, svg('title', null, `${columns[index].name} ${text(values[p.at])}${p.other ? ', ' + p.other : ''}: ${metric.show(p.mean)}${p.count > 1 ? ` ± ${metric.show(p.deviation)} over ${p.count} runs` : ''}`))]));
      })),
    others.length > 1 ? h('ul', {class: 'legend inline'}, others.map((other, k) => h('li', null, h('span', {class: 'swatch', style: {background: state.stroke(k).colour}}), other))) : null);
}

// Two options against each other, as a coloured table.
function heat(all, columns, a, b, metric) {
  const rows = ordered(all.map((group) => group.values[a])), heads = ordered(all.map((group) => group.values[b]));
  const at = (r, c) => {
    const numbers = all.filter((group) => text(group.values[a]) === text(r) && text(group.values[b]) === text(c)).flatMap((group) => group.runs.map((run) => result(run, metric))).filter((v) => v !== null);
    return numbers.length ? {mean: mean(numbers), deviation: deviation(numbers), count: numbers.length} : null;
  };
  const cells = rows.map((r) => heads.map((c) => at(r, c)));
  const numbers = cells.flat().filter(Boolean).map((cell) => cell.mean);
  if (!numbers.length) return null;
  const low = Math.min(...numbers), high = Math.max(...numbers);
  const goodness = (v) => high > low ? (metric.up ? (v - low) / (high - low) : (high - v) / (high - low)) : 0.5;
  return h('figure', {class: 'heat'}, h('figcaption', null, h('strong', null, columns[a].name), ' (down) and ', h('strong', null, columns[b].name), ' (across)'),
    h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${columns[a].name} and ${columns[b].name}`}, h('table', {class: 'matrix'},
      h('thead', null, h('tr', null, h('td', null), heads.map((c) => h('th', {scope: 'col'}, text(c))))),
      h('tbody', null, rows.map((r, i) => h('tr', null, h('th', {scope: 'row'}, text(r)), cells[i].map((cell) => {
        if (!cell) return h('td', {class: 'cell'}, '–');
        const good = goodness(cell.mean);
        return h('td', {class: 'cell' + (good > 0.45 ? ' strong' : '') + (good === 1 ? ' winner' : ''), style: {'--share': good.toFixed(3)}}, metric.show(cell.mean), cell.count > 1 ? h('small', null, `± ${metric.show(cell.deviation)}`) : null);
      })))))));
}

function effects(runs, columns) {
  const metric = metrics[state.get('metric', 0)];
  const all = groups(runs, columns);
  if (!columns.length || columns.length > 4 || all.length < 2) return null;
  const pictures = columns.map((_, i) => effect(all, columns, i, metric)).filter(Boolean);
  const heats = [];
  for (let a = 0; a < columns.length; ++a) for (let b = a + 1; b < columns.length; ++b) heats.push(heat(all, columns, a, b, metric));
  if (!pictures.length) return null;
  const repeated = all.some((group) => group.runs.length > 1);
  return section('effects', 'What the options do', h('div', {class: 'choices'}, choice('result', metrics.map((m, i) => [i, m.title]), state.get('metric', 0), (value) => state.set('metric', value))),
    h('div', {class: 'effects'}, pictures, heats), repeated ? note('Points and cells are means over runs that differ only in their seed; bars and ± are standard deviations.') : null);
}

// The option whose values move the result most: what curves of many runs are best coloured by.
function strongest(runs, columns) {
  const spread = columns.map((column) => {
    const means = ordered(column.values).map((value) => {
      const numbers = runs.filter((_, i) => text(column.values[i]) === text(value)).map((run) => result(run, metrics[0])).filter((v) => v !== null);
      return numbers.length ? mean(numbers) : null;
    }).filter((v) => v !== null);
    return means.length > 1 ? Math.max(...means) - Math.min(...means) : 0;
  });
  return columns.length ? columns[spread.indexOf(Math.max(...spread))].name : 'run';
}

// Curves coloured by run or by the value of an option.
function overlay(runs, columns) {
  const hidden = state.get('hidden', new Set());
  // Runs with different batch sizes meet at epochs, not at steps.
  const available = axes(runs.find((run) => axes(run).length === 3) || runs[0]), axis = chosenAxis(available, 'epoch');
  const modes = [['run', 'run'], ...columns.map((c) => [c.name, c.name])], wanted = state.get('colour-by', runs.length > 8 ? strongest(runs, columns) : 'run');
  const mode = modes.some(([key]) => key === wanted) ? wanted : 'run';
  const column = columns.find((c) => c.name === mode), values = column ? ordered(column.values) : [];
  const charts = [['val_acc_epoch', 'Validation accuracy', 'compare-accuracy'], ['val_loss_epoch', 'Validation loss', 'compare-loss'], ['train_loss_epoch', 'Training loss, epoch mean', 'compare-train'], ['learning_rate', 'Learning rate', 'compare-rate']].map(([key, title, id]) => {
    const series = [];
    runs.forEach((run, i) => {
      const data = hidden.has(run.name) ? null : points(run, key, axis);
      if (!data) return;
      const mark = column ? state.stroke(values.findIndex((v) => text(v) === text(column.values[i]))) : state.stroke(i);
      series.push({name: run.name, ...data, colour: mark.colour, dash: mark.dash, width: column ? 1.6 : 2, points: false});
    });
    return lineChart({id, title, xLabel: axis, series, share: 'compare', legend: !column && series.length <= 12, log: key.includes('loss') && state.get('log', false), height: key === 'learning_rate' ? 200 : 290});
  }).filter(Boolean);
  if (!charts.length) return null;
  return section('curves', 'Curves', h('div', {class: 'choices'}, columns.length ? choice('colour by', modes, mode, (value) => state.set('colour-by', value)) : null), axisChoices(available, axis),
    column ? h('ul', {class: 'legend inline', id: 'colour-key'}, values.map((v, k) => h('li', null, h('span', {class: 'swatch', style: {background: state.stroke(k).colour}}), `${column.name} ${text(v)}`))) : null,
    h('div', {class: 'charts'}, charts));
}

function optionDifferences(runs, columns) {
  const all = runs.map(options), names = [...new Set(all.flatMap((one) => [...one.keys()]))];
  if (!names.length || runs.length > 12) return null;
  const differ = new Set(columns.map((c) => c.name));
  return section('options', 'Options', table({id: 'option-compare', caption: 'Options of each run; differences are marked', columns: [{title: 'option'}, ...runs.map((run) => ({title: run.name}))],
    rows: [...names].sort((a, b) => differ.has(b) - differ.has(a)).map((name) => [h('code', null, name), ...all.map((one) => ({content: one.has(name) ? text(one.get(name)) : '–', class: differ.has(name) ? 'changed' : null}))])}));
}

// One row for each setting, over its seeds.
function settings(runs, columns) {
  const all = groups(runs, columns);
  if (!columns.length || !all.some((group) => group.runs.length > 1)) return null;
  const over = (group, pick, show) => {
    const numbers = group.runs.map(pick).filter((v) => v !== null);
    return numbers.length ? {content: `${show(mean(numbers))}${numbers.length > 1 ? ` ± ${show(deviation(numbers))}` : ''}`, key: mean(numbers)} : '–';
  };
  return section('settings', 'Settings, over seeds', table({id: 'setting-table', caption: 'Mean ± standard deviation over the runs of each setting; click a heading to sort', sortable: true,
    columns: [...columns.map((c) => ({title: c.name})), {title: 'runs', class: 'num'}, {title: 'val accuracy', class: 'num', descending: true}, {title: 'val loss', class: 'num'}, {title: 'test accuracy', class: 'num', descending: true}, {title: 'time', class: 'num'}],
    rows: all.map((group) => [...group.values.map((v) => ({content: h('span', {class: 'differs'}, text(v)), key: finite(v) !== null ? finite(v) : text(v)})), group.runs.length,
      ...metrics.map((metric) => over(group, (run) => result(run, metric), metric.show)), over(group, (run) => finite(((run.run || {}).evaluation || {}).accuracy), percent), over(group, (run) => finite(((run.run || {}).speed || {}).seconds), duration)])}));
}

export function comparison(runs, sweep) {
  const columns = differing(runs);
  const failed = sweep && Array.isArray(sweep.failed) ? sweep.failed : [];
  return [
    failed.length ? section('failed', 'Failed runs', h('ul', null, failed.map((one) => h('li', null, h('code', null, text(one.name)), ' ', text(one.cause))))) : null,
    effects(runs, columns), overlay(runs, columns), settings(runs, columns), section('runs', 'Runs', runTable(runs, columns)), optionDifferences(runs, columns)];
}
