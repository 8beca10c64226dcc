// SPDX-License-Identifier: Apache-2.0
// The parts of a training run: key figures, curves, options, model summary, machine.
import {lineChart} from './chart.js';
import {choice, h, note, section} from './dom.js';
import {date, duration, fileName, finite, percent, percentAxis, pointsOf, shape, short, text, whole} from './format.js';
import {atBestEpoch, axes, best, bestEpoch, curve, evaluations, points} from './runs.js';
import * as state from './state.js';
import {table} from './table.js';

function tile(label, value, detail) {
  if (value === null || value === undefined || value === '–') return null;
  return h('div', {class: 'tile'}, h('div', {class: 'tile-label'}, label), h('div', {class: 'tile-value'}, value), detail ? h('div', {class: 'tile-detail'}, detail) : null);
}

export function figures(run) {
  const info = run.run || {}, speed = info.speed || {}, transform = (info.transform || {}).accuracy || {};
  const kept = finite((info.best || {}).epoch) !== null ? `epoch ${info.best.epoch}${info.best.monitor ? `, by ${text(info.best.monitor)}` : ''}` : null;
  const epoch = (key) => bestEpoch(run, key) !== null ? `epoch ${bestEpoch(run, key)}` : null;
  const accuracy = best(run, 'val_acc_epoch'), keptAccuracy = atBestEpoch(run, 'val_acc_epoch');
  const on = transform.split ? `${text(transform.split)} split` : 'split not recorded', before = finite(transform.before), after = finite(transform.after);
  // The best epoch's validation figure is shown once, also where it was measured again at the end.
  const measured = [...evaluations(run)].filter(([split, found]) => split !== 'validation' || finite(found.accuracy) !== keptAccuracy);
  const losses = [...evaluations(run, 'loss')].filter(([split, found]) => split !== 'validation' && finite(found.accuracy) === null);
  const tiles = [
    tile('Best validation accuracy', percent(accuracy), epoch('val_acc_epoch')),
    keptAccuracy !== null && keptAccuracy !== accuracy ? tile('Validation accuracy at the best epoch', percent(keptAccuracy), kept) : null,
    tile('Best validation loss', short(best(run, 'val_loss_epoch')), epoch('val_loss_epoch')),
    ...measured.map(([split, found]) => tile(split === 'unnamed' ? 'Accuracy, split not recorded' : `Accuracy on the ${split} split`, percent(found.accuracy), [finite(found.loss) !== null ? `loss ${short(found.loss)}` : null, finite(found.rows) !== null ? `${whole(found.rows)} rows` : null].filter(Boolean).join(', '))),
    ...losses.map(([split, found]) => tile(`Loss on the ${split} split`, short(found.loss), finite(found.rows) !== null ? `${whole(found.rows)} rows` : null)),
    tile('Accuracy before', percent(before), on), tile('Accuracy after', percent(after), before !== null && after !== null ? `${pointsOf(before, after)}, ${on}` : on),
    tile('Parameters', whole((info.model || {}).parameters), (info.model || {}).name ? text(info.model.name) : null),
    tile('Time', duration(speed.seconds), finite(speed.step_seconds) !== null ? `${duration(speed.step_seconds)} in steps, the rest validation and files` : null),
    tile(finite(speed.step_seconds) !== null ? 'Samples per second, steps alone' : 'Samples per second', finite(speed.samples_per_second) !== null ? whole(speed.samples_per_second) : null, finite(speed.steps_per_second) !== null ? `${whole(speed.steps_per_second)} steps/s` : null),
  ].filter(Boolean);
  return tiles.length ? h('div', {class: 'tiles', id: 'figures'}, tiles) : null;
}

const known = [
  {id: 'chart-loss', title: 'Loss', step: 'train_loss_step', mean: 'train_loss_epoch', logged: 'train_loss_logged', validation: 'val_loss_epoch'},
  {id: 'chart-accuracy', title: 'Accuracy', step: 'train_acc_step', mean: 'train_acc_epoch', logged: 'train_acc_logged', validation: 'val_acc_epoch', format: percentAxis},
];

export function chosenAxis(available, usual = 'step') {
  const wanted = state.get('axis', usual);
  return available.some(([key]) => key === wanted) ? wanted : 'step';
}

// The first epoch is called 0, and is over at 1.
export const axisLabel = (axis) => axis === 'epoch' ? 'epochs completed' : axis;

export function axisChoices(available, axis) {
  return h('div', {class: 'choices'},
    available.length > 1 ? choice('x axis', available, axis, (value) => state.set('axis', value)) : null,
    choice('loss axis', [['auto', 'auto'], ['linear', 'linear'], ['log', 'log']], state.get('log', 'auto'), (value) => state.set('log', value)),
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
    add(one.step, 'train, per step', state.paint(0), {faint: true, width: 1, points: false, label: null});
    // Means over all batches where the run wrote them; otherwise over the steps it logged, and said so.
    used.add(one.logged);
    if (curve(run, one.mean)) add(one.mean, 'train, epoch mean', state.paint(0), {label: 'train'});
    else add(one.logged, 'train, mean of logged steps', state.paint(0), {label: 'train (logged)'});
    add(one.validation, 'validation, per epoch', state.paint(1), {width: 2.5, label: 'validation'});
    return lineChart({id: one.id, title: one.title, xLabel: axisLabel(axis), wholeX: axis !== 'seconds', series, share: 'run', log: one.format ? false : state.get('log', 'auto'), ...(one.format ? {format: one.format} : {})});
  });
  const small = (key, title, id, index) => lineChart({id, title, xLabel: axisLabel(axis), wholeX: axis !== 'seconds', height: 210, share: 'run', log: 'auto', series: [{name: title.toLowerCase(), ...points(run, key, axis), colour: state.paint(index), label: null}]});
  if (curve(run, 'learning_rate')) charts.push(small('learning_rate', 'Learning rate', 'chart-rate', 4));
  for (const other of run.curves) if (!used.has(other.key)) charts.push(small(other.key, other.key, null, 2));
  return section('curves', 'Curves', axisChoices(available, axis), h('div', {class: 'charts'}, charts),
    run.thinned ? note(`${whole(run.rows)} logged rows; the curves are thinned for display and keep every extreme.`) : null, epochTable(run));
}

function epochTable(run) {
  const columns = [['train_loss_epoch', 'train loss', short], ['train_loss_logged', 'train loss (logged steps)', short], ['val_loss_epoch', 'validation loss', short],
    ['train_acc_epoch', 'train accuracy', percent], ['train_acc_logged', 'train accuracy (logged steps)', percent], ['val_acc_epoch', 'validation accuracy', percent]].filter(([key]) => curve(run, key) && !(key.endsWith('_logged') && curve(run, key.replace('_logged', '_epoch'))));
  const marks = run.marks || {epoch: []};
  if (!columns.length || !marks.epoch.length) return null;
  const byStep = columns.map(([key]) => new Map(curve(run, key).x.map((x, i) => [x, curve(run, key).y[i]])));
  return h('details', null, h('summary', null, 'Numbers per epoch'), table({
    id: 'epochs', caption: 'Numbers per epoch', columns: [{title: 'epoch', class: 'num'}, ...columns.map(([, title]) => ({title, class: 'num'}))],
    rows: marks.epoch.map((epoch, i) => [epoch, ...byStep.map((values, k) => columns[k][2](values.get(marks.step[i])))]),
  }));
}

// What was set comes first; what was left at its default is folded away.
export function optionTable(run) {
  const options = ((run.run || {}).options || []);
  if (!Array.isArray(options) || !options.length) return null;
  const shown = (value) => value === null || value === undefined ? '' : text(value);
  const given = (option) => shown(option.effective) !== shown(option.default) || shown(option.flag) !== '' || shown(option.config) !== '';
  const path = (value) => ({content: fileName(shown(value)), title: fileName(shown(value)) !== shown(value) ? shown(value) : null});
  const changed = options.filter((option) => option && given(option)), rest = options.filter((option) => option && !given(option));
  const from = (option) => shown(option.flag) !== '' ? 'flag' : shown(option.config) !== '' ? 'config' : '';
  return section('options', 'Options',
    changed.length ? table({id: 'option-table', caption: 'Options that were set', sortable: true, columns: ['option', 'value', 'default', 'set by'].map((title) => ({title})),
      rows: changed.map((option) => [h('code', null, text(option.name)), {...path(option.effective), class: shown(option.effective) !== shown(option.default) ? 'changed' : null}, path(option.default), from(option)])}) : note('Nothing was set: every option has its default.'),
    rest.length ? h('details', null, h('summary', null, `${rest.length} options at their defaults`), table({id: 'default-table', caption: 'Options at their defaults', sortable: true, columns: ['option', 'value'].map((title) => ({title})),
      rows: rest.map((option) => [h('code', null, text(option.name)), path(option.effective)])})) : null);
}

export function modelSummary(run) {
  const rows = (run.run || {}).summary;
  if (!Array.isArray(rows) || !rows.length) return null;
  const total = (key) => rows.reduce((sum, row) => sum + (finite((row || {})[key]) || 0), 0);
  const bold = (value) => h('strong', null, value);
  return section('summary', 'Model', table({
    id: 'summary-table', caption: 'Layers of the network',
    columns: [{title: 'layer'}, {title: 'type'}, {title: 'input'}, {title: 'output'}, {title: 'parameters', class: 'num'}, {title: 'MACs per sample', class: 'num'}],
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
