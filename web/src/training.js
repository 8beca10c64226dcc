// SPDX-License-Identifier: Apache-2.0
// The parts of a training run: key figures, curves, options, model summary, machine.
import {lineChart} from './chart.js';
import {choice, h, note, section} from './dom.js';
import {date, duration, finite, percent, shape, short, text, whole} from './format.js';
import {axes, best, curve, points} from './runs.js';
import * as state from './state.js';
import {table} from './table.js';

function tile(label, value, detail) {
  if (value === null || value === undefined || value === '–') return null;
  return h('div', {class: 'tile'}, h('div', {class: 'tile-label'}, label), h('div', {class: 'tile-value'}, value), detail ? h('div', {class: 'tile-detail'}, detail) : null);
}

export function figures(run) {
  const info = run.run || {}, evaluation = info.evaluation || {}, speed = info.speed || {};
  const epoch = finite((info.best || {}).epoch) !== null ? `epoch ${info.best.epoch}` : null;
  const before = finite(((info.transform || {}).accuracy || {}).before), after = finite(((info.transform || {}).accuracy || {}).after);
  const change = before !== null && after !== null ? `${after >= before ? '+' : '−'}${(100 * Math.abs(after - before)).toFixed(2)} points` : null;
  const tiles = [
    tile('Best validation accuracy', percent(best(run, 'val_acc_epoch')), epoch),
    tile('Best validation loss', short(best(run, 'val_loss_epoch')), epoch),
    tile(evaluation.split ? `Accuracy, ${text(evaluation.split)} split` : 'Accuracy', percent(evaluation.accuracy), finite(evaluation.loss) !== null ? `loss ${short(evaluation.loss)}` : null),
    tile('Accuracy before', percent(before)), tile('Accuracy after', percent(after), change),
    tile('Parameters', whole((info.model || {}).parameters), (info.model || {}).name ? text(info.model.name) : null),
    tile('Time', duration(speed.seconds)),
    tile('Samples per second', finite(speed.samples_per_second) !== null ? whole(speed.samples_per_second) : null, finite(speed.steps_per_second) !== null ? `${whole(speed.steps_per_second)} steps/s` : null),
  ].filter(Boolean);
  return tiles.length ? h('div', {class: 'tiles', id: 'figures'}, tiles) : null;
}

const known = [
  {id: 'chart-loss', title: 'Loss', step: 'train_loss_step', mean: 'train_loss_epoch', validation: 'val_loss_epoch', log: true},
  {id: 'chart-accuracy', title: 'Accuracy', step: 'train_acc_step', mean: 'train_acc_epoch', validation: 'val_acc_epoch'},
];

export function chosenAxis(available, usual = 'step') {
  const wanted = state.get('axis', usual);
  return available.some(([key]) => key === wanted) ? wanted : 'step';
}

export function axisChoices(available, axis) {
  return h('div', {class: 'choices'},
    available.length > 1 ? choice('x axis', available, axis, (value) => state.set('axis', value)) : null,
    choice('loss axis', [[false, 'linear'], [true, 'log']], state.get('log', false), (value) => state.set('log', value)),
    h('span', {class: 'hint'}, 'drag to zoom, double-click to reset'));
}

export function curves(run) {
  if (!(run.curves || []).length) return null;
  const available = axes(run), axis = chosenAxis(available);
  const used = new Set(['learning_rate', 'seconds', 'epoch', 'step']);
  const charts = known.map((one) => {
    const series = [];
    const add = (key, name, colour, extra) => {
      used.add(key);
      const values = points(run, key, axis);
      if (values) series.push({name, ...values, colour, ...extra});
    };
    add(one.step, 'train, per step', state.colour('series-1'), {faint: true, width: 1, points: false});
    add(one.mean, 'train, epoch mean', state.colour('series-1'));
    add(one.validation, 'validation, per epoch', state.colour('series-2'), {width: 2.5});
    return lineChart({id: one.id, title: one.title, xLabel: axis, series, share: 'run', log: one.log && state.get('log', false)});
  });
  const small = (key, title, id, colour) => lineChart({id, title, xLabel: axis, height: 210, share: 'run', series: [{name: title.toLowerCase(), ...points(run, key, axis), colour: state.colour(colour)}]});
  if (curve(run, 'learning_rate')) charts.push(small('learning_rate', 'Learning rate', 'chart-rate', 'series-5'));
  for (const other of run.curves) if (!used.has(other.key)) charts.push(small(other.key, other.key, null, 'series-3'));
  return section('curves', 'Curves', axisChoices(available, axis), h('div', {class: 'charts'}, charts),
    run.thinned ? note(`${whole(run.rows)} logged rows; the curves are thinned for display and keep every extreme.`) : null, epochTable(run));
}

function epochTable(run) {
  const columns = [['train_loss_epoch', 'train loss (mean)'], ['train_acc_epoch', 'train accuracy (mean)'], ['val_loss_epoch', 'validation loss'], ['val_acc_epoch', 'validation accuracy']]
    .filter(([key]) => curve(run, key));
  const marks = run.marks || {epoch: []};
  if (!columns.length || !marks.epoch.length) return null;
  const byStep = columns.map(([key]) => new Map(curve(run, key).x.map((x, i) => [x, curve(run, key).y[i]])));
  return h('details', null, h('summary', null, 'Numbers per epoch'), table({
    id: 'epochs', caption: 'Numbers per epoch', columns: [{title: 'epoch', class: 'num'}, ...columns.map(([, title]) => ({title, class: 'num'}))],
    rows: marks.epoch.map((epoch, i) => [epoch, ...byStep.map((values) => short(values.get(marks.step[i]), 5))]),
  }));
}

export function optionTable(run) {
  const options = (run.run || {}).options;
  if (!Array.isArray(options) || !options.length) return null;
  const shown = (value) => value === null || value === undefined ? '' : text(value);
  return section('options', 'Options', table({
    id: 'option-table', caption: 'Where each option came from; changed ones are marked', sortable: true,
    columns: ['option', 'default', 'config', 'flag', 'effective'].map((title) => ({title})),
    rows: options.filter(Boolean).map((option) => [h('code', null, text(option.name)), shown(option.default), shown(option.config), shown(option.flag),
      {content: shown(option.effective), class: shown(option.effective) !== shown(option.default) ? 'changed' : null}]),
  }));
}

export function modelSummary(run) {
  const rows = (run.run || {}).summary;
  if (!Array.isArray(rows) || !rows.length) return null;
  const total = (key) => rows.reduce((sum, row) => sum + (finite((row || {})[key]) || 0), 0);
  const bold = (value) => h('strong', null, value);
  return section('summary', 'Model', table({
    id: 'summary-table', caption: 'Layers of the network',
    columns: [{title: 'layer'}, {title: 'type'}, {title: 'input'}, {title: 'output'}, {title: 'parameters', class: 'num'}, {title: 'MACs', class: 'num'}],
    rows: [...rows.filter(Boolean).map((row) => [h('code', null, text(row.layer)), text(row.type), shape(row.input_shape), shape(row.output_shape), whole(row.parameters), whole(row.macs)]),
      [bold('total'), '', '', '', bold(whole(total('parameters'))), bold(whole(total('macs')))]],
  }));
}

export function about(run) {
  const info = run.run || {}, rows = [];
  const add = (label, value) => { if (value !== null && value !== undefined && value !== '' && value !== '–') rows.push([label, value]); };
  const words = (list) => list.filter((v) => v !== null && v !== undefined && v !== '').map(text).join(', ');
  const data = info.dataset || {}, machine = info.machine || {};
  add('folder', run.folder);
  if (Array.isArray(info.command)) add('command', h('code', null, info.command.map(text).join(' ')));
  add('started', date(info.started));
  add('finished', date(info.finished));
  if (finite(info.seed) !== null) add('seed', String(info.seed));
  add('data set', words([data.name, data.variant]));
  add('rows', ['train', 'validation', 'test'].filter((s) => finite(data[s + '_rows']) !== null).map((s) => `${s} ${whole(data[s + '_rows'])}`).join(', '));
  add('notice', data.notice && text(data.notice));
  add('identity', data.identity && h('code', null, text(data.identity)));
  add('machine', words([machine.cpu, machine.cores ? `${text(machine.cores)} cores` : null, machine.system]));
  add('version', info.version && text(info.version));
  if (info.best && info.best.path) add('best checkpoint', h('code', null, text(info.best.path)));
  if (!rows.length) return null;
  return section('about', 'About this run', h('dl', {class: 'facts'}, rows.map(([label, value]) => [h('dt', null, label), h('dd', null, value)])));
}
