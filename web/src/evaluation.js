// SPDX-License-Identifier: Apache-2.0
// How good the classifier is: confusion matrix, precision and recall, ROC as physicists read it.
import {choice, h, note, section, svg} from './dom.js';
import {finite, number, percent, short, shortened, text, whole} from './format.js';
import {logTicks, ticks} from './scale.js';
import * as state from './state.js';
import {table} from './table.js';

// Of many classes a record has the cells that are not empty: what is taken for what most often.
function confusions(cells, className) {
  const wrong = cells.filter((cell) => Array.isArray(cell) && cell.length === 3 && cell[0] !== cell[1]).sort((a, b) => finite(b[2]) - finite(a[2]));
  return h('div', {class: 'half'}, h('h3', null, 'Most frequent confusions'), table({id: 'confusions', caption: 'Rows that were given another class',
    columns: [{title: 'true class'}, {title: 'predicted class'}, {title: 'rows', class: 'num'}], rows: wrong.slice(0, 20).map(([i, j, count]) => [className(i), className(j), whole(count)])}));
}

function confusion(matrix, className) {
  if (matrix && Array.isArray(matrix.cells)) return confusions(matrix.cells, className);
  if (!Array.isArray(matrix) || !matrix.length || !matrix.every(Array.isArray)) return null;
  const mode = state.get('confusion', 'share');
  const rows = matrix.map((row) => row.map((v) => finite(v) || 0));
  const cells = rows.map((row, i) => {
    const total = row.reduce((a, b) => a + b, 0);
    return h('tr', null, h('th', {scope: 'row'}, className(i)), row.map((count, j) => {
      const share = total ? count / total : 0;
      return h('td', {class: 'cell' + (i === j ? ' diagonal' : '') + (share > 0.45 ? ' strong' : ''), style: {'--share': share.toFixed(3)}, title: `true ${className(i)}, predicted ${className(j)}: ${whole(count)} (${percent(share, 1)})`},
        mode === 'share' ? percent(share, 1) : whole(count));
    }));
  });
  return h('div', {class: 'half'}, h('h3', null, 'Confusion matrix'),
    choice('show', [['share', 'share of row'], ['count', 'counts']], mode, (value) => state.set('confusion', value)),
    h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Confusion matrix'},
      h('table', {id: 'confusion', class: 'matrix'}, h('caption', null, 'Rows: true class. Columns: predicted class.'),
        h('thead', null, h('tr', null, h('td', null), rows[0].map((_, j) => h('th', {scope: 'col'}, className(j))))), h('tbody', null, cells))));
}

const efficiencies = [0.3, 0.5, 0.8];  // of the signal, where jet papers quote rejections

function pointsOfCurve(one) {
  if (!Array.isArray(one.fpr) || !Array.isArray(one.tpr)) return [];
  return one.fpr.map((f, k) => ({background: finite(f), signal: finite(one.tpr[k])})).filter((p) => p.background !== null && p.signal !== null);
}

// Background efficiency where the signal's is `wanted`, between the two nearest points.
function backgroundAt(points, wanted) {
  for (let i = 1; i < points.length; ++i) if (points[i].signal >= wanted) {
    const a = points[i - 1], b = points[i], span = b.signal - a.signal;
    return span > 0 ? a.background + (b.background - a.background) * (wanted - a.signal) / span : a.background;
  }
  return null;
}

// 1 / background efficiency. Where no background row is left it is only known to exceed their number;
// where fewer than ten are, it is marked as rough.
// Runs say what the whole curve has there; of older ones the points that are drawn must do.
function rejection(curve, wanted, backgroundRows) {
  const said = curve.working.find((point) => point && finite(point.signal) === wanted);
  const background = said ? finite(said.background) : backgroundAt(curve.points, wanted);
  if (background === null) return {content: '–', key: null};
  const left = backgroundRows === null ? null : background * backgroundRows;
  if (background === 0 || (left !== null && left < 1)) return backgroundRows === null ? {content: '∞', key: Infinity} : {content: `> ${whole(backgroundRows)}`, key: backgroundRows};
  const value = 1 / background;
  return {content: `${left !== null && left < 10 ? '≈ ' : ''}${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : whole(value)}`, key: value};
}

function backgroundRows(found, i) {
  const matrix = found.confusion, support = found.support;
  if (Array.isArray(support)) return support.reduce((sum, rows, k) => k === i ? sum : sum + (finite(rows) || 0), 0);
  if (!Array.isArray(matrix) || !matrix.every(Array.isArray) || !matrix[i]) return null;
  return matrix.reduce((sum, row, k) => k === i ? sum : sum + row.reduce((a, v) => a + (finite(v) || 0), 0), 0);
}

function rocCurves(found) {
  return (Array.isArray(found.roc) ? found.roc : []).filter((one) => one && typeof one === 'object').map((one, i) => ({name: text(one.class), auc: finite(one.auc), points: pointsOfCurve(one), working: Array.isArray(one.working_points) ? one.working_points : [], background: backgroundRows(found, i), colour: state.paint(i)}));
}

// Signal efficiency to the right, background efficiency upwards on a logarithmic axis: lower is better.
function roc(all) {
  const curves = all.filter((one) => one.points.length);
  if (!curves.length) return null;
  const log = state.get('roc-log', true), width = 330, height = 300, left = 68, right = 44, top = 10;
  const least = Math.min(...curves.flatMap((one) => one.points.map((p) => p.background).filter((v) => v > 0)), 0.1), floor = Math.max(1e-6, 10 ** Math.floor(Math.log10(least)));
  const x = (v) => left + v * width, y = (v) => top + (log ? Math.log10(1 / Math.max(v, floor)) / Math.log10(1 / floor) : 1 - v) * height;
  const line = (one) => one.points.map((p) => log && p.background < floor ? null : [x(p.signal), y(p.background)]).filter(Boolean).map(([a, b], k) => `${k ? 'L' : 'M'}${a.toFixed(2)} ${b.toFixed(2)}`).join('');
  const names = curves.map((one) => `${one.name}: area under the curve ${one.auc === null ? 'unknown' : one.auc.toFixed(3)}`), across = ticks(0, 1, 5), up = log ? logTicks(floor, 1) : across;
  const chance = Array.from({length: 41}, (_, k) => k / 40).filter((v) => v > 0).map((v, k) => `${k ? 'L' : 'M'}${x(v).toFixed(1)} ${y(v).toFixed(1)}`).join('');
  // Names stand where the curves are apart: at half the signal, moved until they do not touch.
  const anchor = (one) => one.points.find((p) => p.signal >= 0.5 && p.background >= floor) || {signal: 1, background: 1};
  const labels = curves.map((one) => ({one, from: anchor(one), at: y(anchor(one).background)})).sort((a, b) => a.at - b.at);
  labels.forEach((label, k) => { label.at = Math.max(label.at, k ? labels[k - 1].at + 13 : top + 8); });
  const picture = svg('svg', {viewBox: `0 0 ${width + left + right} ${height + top + 44}`, class: 'roc', role: 'img', 'aria-label': 'ROC curves. ' + names.join(', ')},
    across.map((t) => [svg('line', {x1: x(t), x2: x(t), y1: top, y2: top + height, class: 'grid-line'}), svg('text', {x: x(t), y: top + height + 16, 'text-anchor': 'middle', class: 'tick'}, `${Math.round(100 * t)} %`)]),
    up.map((t) => [svg('line', {x1: x(0), x2: x(1), y1: y(t), y2: y(t), class: 'grid-line'}), svg('text', {x: left - 6, y: y(t) + 4, 'text-anchor': 'end', class: 'tick'}, `${Number((100 * t).toPrecision(3))} %`)]),
    svg('path', {d: chance, class: 'chance'}),
    svg('text', {x: x(0.5), y: top + height + 36, 'text-anchor': 'middle', class: 'tick'}, 'signal efficiency (true positive rate)'),
    svg('text', {x: 12, y: top + height / 2, 'text-anchor': 'middle', class: 'tick', transform: `rotate(-90 12 ${top + height / 2})`}, 'background efficiency (false positive rate)'),
    curves.map((one, i) => svg('path', {d: line(one), class: 'roc-line', style: {stroke: one.colour}}, svg('title', null, names[i]))),
    labels.map(({one, from, at}) => [svg('line', {x1: x(from.signal), y1: y(from.background), x2: x(1) + 4, y2: Math.min(at, top + height), class: 'leader', style: {stroke: one.colour}}), svg('text', {x: x(1) + 7, y: Math.min(at, top + height) + 4, class: 'tick strong', style: {fill: one.colour}}, shortened(one.name, 6))]));
  return h('div', {class: 'half'}, h('h3', null, 'ROC, each class against the rest'), choice('background axis', [[true, 'log'], [false, 'linear']], log, (value) => state.set('roc-log', value)), picture,
    h('p', {class: 'small'}, 'The dashed line is chance.'));
}

function quality(found, className, curves) {
  const counted = Array.isArray(found.precision) && Array.isArray(found.recall), classes = counted ? found.precision.length : curves.length;
  if (!classes) return null;
  const cell = (value) => ({content: percent(value), key: value});
  return [table({
    id: 'quality', caption: 'Each class against the rest', sortable: true,
    columns: [{title: 'class'}, ...(counted ? ['precision', 'recall', 'F1'].map((title) => ({title, class: 'num', descending: true})) : []),
      ...(curves.length ? [{title: 'AUC', class: 'num', descending: true}, ...efficiencies.map((e) => ({title: `1/εB at εS = ${Math.round(100 * e)} %`, class: 'num', descending: true}))] : [])],
    rows: Array.from({length: classes}, (_, i) => {
      const p = counted ? finite(found.precision[i]) : null, r = counted ? finite(found.recall[i]) : null, curve = curves[i];
      return [counted ? className(i) : curve.name, ...(counted ? [cell(p), cell(r), cell(p !== null && r !== null && p + r > 0 ? 2 * p * r / (p + r) : null)] : []),
        ...(curves.length ? [{content: curve && curve.auc !== null ? curve.auc.toFixed(4) : '–', key: curve ? curve.auc : null, class: 'auc'}, ...efficiencies.map((e) => curve ? rejection(curve, e, curve.background) : '–')] : [])];
    }),
  }), curves.length ? note('1/εB: background rejection, the number of background rows for each one that is kept while the cut keeps the share εS of the signal. ≈: from fewer than ten background rows; >: none was left.') : null];
}

// What a task measures beside accuracy and loss (MAE, RMSE, R2, balanced accuracy), under its own name.
const shownElsewhere = new Set(['accuracy', 'loss', 'rows', 'split', 'classes', 'confusion', 'precision', 'recall', 'support', 'roc']);
const metricNames = {mae: 'MAE', rmse: 'RMSE', mse: 'MSE', r2: 'R²', balanced_accuracy: 'balanced accuracy'};

function otherMetrics(found) {
  const rows = [];
  for (const [key, value] of Object.entries(found)) {
    if (shownElsewhere.has(key)) continue;
    const share = /accuracy|top/.test(key), show = (v) => share ? percent(v) : short(v, 5);
    if (number(value) !== null) rows.push([metricNames[key] || key.replace(/_/g, ' '), show(value)]);
    else if (key === 'top_k' && value && typeof value === 'object') for (const [k, v] of Object.entries(value)) rows.push([`accuracy among the first ${k} (ties count against it)`, percent(v)]);
  }
  return rows.length ? h('dl', {class: 'facts', id: 'metrics'}, rows.map(([label, value]) => [h('dt', null, label), h('dd', null, value)])) : null;
}

export function evaluation(run) {
  const found = (run.run || {}).evaluation;
  if (!found || typeof found !== 'object') return null;
  const classes = Array.isArray(found.classes) ? found.classes : ((run.run || {}).dataset || {}).classes || [];
  const className = (i) => classes[i] !== undefined ? text(classes[i]) : String(i);
  const curves = rocCurves(found).map((one) => ({...one, name: /^\d+$/.test(one.name) && classes.length ? className(Number(one.name)) : one.name}));
  const halves = [confusion(found.confusion, className), roc(curves)].filter(Boolean);
  return section('evaluation', found.split ? `Evaluation on the ${text(found.split)} split` : 'Evaluation (split not recorded)',
    halves.length ? h('div', {class: 'halves'}, halves) : null, quality(found, className, curves), otherMetrics(found));
}
