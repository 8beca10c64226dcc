// SPDX-License-Identifier: Apache-2.0
// How good the classifier is: confusion matrix, precision and recall, ROC per class.
import {choice, h, section, svg} from './dom.js';
import {finite, percent, short, text, whole} from './format.js';
import * as state from './state.js';
import {table} from './table.js';

function confusion(matrix, className) {
  if (!Array.isArray(matrix) || !matrix.length || !matrix.every(Array.isArray)) return null;
  const mode = state.get('confusion', 'share');
  const rows = matrix.map((row) => row.map((v) => finite(v) || 0));
  const cells = rows.map((row, i) => {
    const total = row.reduce((a, b) => a + b, 0);
    return h('tr', null, h('th', {scope: 'row'}, className(i)), row.map((count, j) => {
      const share = total ? count / total : 0;
      return h('td', {class: 'cell' + (i === j ? ' diagonal' : '') + (share > 0.45 ? ' strong' : ''), style: {'--share': share.toFixed(3)}, title: `true ${className(i)}, predicted ${className(j)}: ${whole(count)} (${percent(share, 1)})`},
        mode === 'share' ? (100 * share).toFixed(1) : whole(count));
    }));
  });
  return h('div', {class: 'half'}, h('h3', null, 'Confusion matrix'),
    choice('show', [['share', '% of row'], ['count', 'counts']], mode, (value) => state.set('confusion', value)),
    h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Confusion matrix'},
      h('table', {id: 'confusion', class: 'matrix'}, h('caption', null, 'Rows: true class. Columns: predicted class.'),
        h('thead', null, h('tr', null, h('td', null), rows[0].map((_, j) => h('th', {scope: 'col'}, className(j))))), h('tbody', null, cells))));
}

function roc(curves) {
  curves = (Array.isArray(curves) ? curves : []).filter((one) => one && Array.isArray(one.fpr) && Array.isArray(one.tpr));
  if (!curves.length) return null;
  const size = 300, left = 48, top = 10, x = (v) => left + v * size, y = (v) => top + (1 - v) * size;
  const line = (one) => one.fpr.map((f, k) => [finite(f), finite(one.tpr[k])]).filter(([a, b]) => a !== null && b !== null)
    .map(([a, b], k) => `${k ? 'L' : 'M'}${x(a).toFixed(2)} ${y(b).toFixed(2)}`).join('');
  const names = curves.map((one) => `${text(one.class)}: AUC ${short(one.auc)}`);
  const picture = svg('svg', {viewBox: `0 0 ${size + left + 14} ${size + top + 44}`, class: 'roc', role: 'img', 'aria-label': 'ROC curves. ' + names.join(', ')},
    [0, 0.25, 0.5, 0.75, 1].map((t) => [
      svg('line', {x1: x(t), x2: x(t), y1: y(0), y2: y(1), class: 'grid-line'}), svg('line', {x1: x(0), x2: x(1), y1: y(t), y2: y(t), class: 'grid-line'}),
      svg('text', {x: x(t), y: y(0) + 16, 'text-anchor': 'middle', class: 'tick'}, t), svg('text', {x: left - 6, y: y(t) + 4, 'text-anchor': 'end', class: 'tick'}, t)]),
    svg('line', {x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: 'chance'}),
    svg('text', {x: x(0.5), y: y(0) + 36, 'text-anchor': 'middle', class: 'tick'}, 'false positive rate'),
    svg('text', {x: 12, y: y(0.5), 'text-anchor': 'middle', class: 'tick', transform: `rotate(-90 12 ${y(0.5)})`}, 'true positive rate'),
    curves.map((one, i) => svg('path', {d: line(one), class: 'roc-line', style: {stroke: state.stroke(i).colour, 'stroke-dasharray': state.stroke(i).dash.join(' ')}}, svg('title', null, names[i]))));
  return h('div', {class: 'half'}, h('h3', null, 'ROC per class'), h('div', {class: 'roc-row'}, picture,
    h('ul', {class: 'legend', id: 'auc'}, curves.map((one, i) => h('li', null, h('span', {class: 'swatch', style: {background: state.stroke(i).colour}}), h('span', null, text(one.class)), h('b', null, `AUC ${finite(one.auc) === null ? '–' : one.auc.toFixed(3)}`))))));
}

function quality(found, className) {
  if (!Array.isArray(found.precision) || !Array.isArray(found.recall)) return null;
  const cell = (value) => ({content: percent(value), key: value});
  return table({
    id: 'quality', caption: 'Precision and recall per class', sortable: true,
    columns: [{title: 'class'}, {title: 'precision', class: 'num'}, {title: 'recall', class: 'num'}, {title: 'F1', class: 'num'}],
    rows: found.precision.map((given, i) => {
      const p = finite(given), r = finite(found.recall[i]);
      return [className(i), cell(p), cell(r), cell(p !== null && r !== null && p + r > 0 ? 2 * p * r / (p + r) : null)];
    }),
  });
}

export function evaluation(run) {
  const found = (run.run || {}).evaluation;
  if (!found || typeof found !== 'object') return null;
  const classes = Array.isArray(found.classes) ? found.classes : ((run.run || {}).dataset || {}).classes || [];
  const className = (i) => classes[i] !== undefined ? text(classes[i]) : String(i);
  const halves = [confusion(found.confusion, className), roc(found.roc)].filter(Boolean);
  return section('evaluation', found.split ? `Evaluation on the ${text(found.split)} split` : 'Evaluation',
    halves.length ? h('div', {class: 'halves'}, halves) : null, quality(found, className));
}
