// SPDX-License-Identifier: Apache-2.0
// The runs under a folder, for `ch view`: links to their pages, a filter, and a selection to compare.
import {breakable, choice, h, note, section} from './dom.js';
import {date, duration, finite, percent, pointsOf, short, text} from './format.js';
import {accuracyOn, dataName, evaluations} from './runs.js';
import * as state from './state.js';
import {table} from './table.js';

export function statusBadge(status) {
  const kind = {finished: 'good', running: 'busy', failed: 'bad', diverged: 'bad', interrupted: 'warn'}[status] || '';
  return status ? h('span', {class: 'badge ' + kind}, text(status)) : null;
}

// Every word must occur in the run's name, kind, status, model or data.
function matches(run, words) {
  const info = run.run || {}, all = [run.name, run.id, info.kind, info.status, (info.model || {}).name, dataName(run)].map((v) => v ? text(v).toLowerCase() : '').join(' ');
  return words.every((word) => all.includes(word));
}

function nameCell(run, chosen) {
  const box = h('input', {type: 'checkbox', checked: chosen.has(run.id), 'aria-label': `compare ${run.name}`, onchange: (event) => {
    const now = new Set(state.get('chosen', new Set()));
    if (event.target.checked) now.add(run.id); else now.delete(run.id);
    state.set('chosen', now);
  }});
  return {content: h('span', {class: 'run-name'}, box, h('a', {href: 'run?run=' + encodeURIComponent(run.id), title: run.id}, breakable(run.name))), key: run.name};
}

export function list(data) {
  const runs = data.runs || [];
  if (!runs.length) return [section('runs', 'Runs', note('No runs here yet. The page looks again every few seconds.'))];
  const chosen = state.get('chosen', new Set());
  const links = runs.filter((run) => chosen.has(run.id)).map((run) => 'run=' + encodeURIComponent(run.id));
  const kinds = [...new Set(runs.map((run) => text((run.run || {}).kind || '')).filter(Boolean))].sort(), kind = state.get('kind', '');
  const words = state.get('filter', '').toLowerCase().split(/\s+/).filter(Boolean);
  const shown = runs.filter((run) => (!kind || text((run.run || {}).kind || '') === kind) && matches(run, words));
  const number = (value, show) => ({content: finite(value) === null ? '' : show(value), key: finite(value)});
  const transformed = (run) => ((run.run || {}).transform || {}).accuracy || {};
  // A column that no run of the list fills is left out.
  const columns = [
    {title: 'validation accuracy, best epoch', cell: (run) => number(((run.run || {}).best || {}).val_acc_epoch, percent), descending: true},
    {title: 'validation loss, best epoch', cell: (run) => number(((run.run || {}).best || {}).val_loss_epoch, short)},
    {title: 'test accuracy', cell: (run) => number(accuracyOn(run, 'test'), percent), descending: true},
    {title: 'other accuracy', cell: (run) => {
      const found = [...evaluations(run)].filter(([split]) => split !== 'test' && split !== 'validation');
      return found.length ? {content: found.map(([split, one]) => `${percent(one.accuracy)} (${split === 'unnamed' ? 'split not recorded' : split})`).join(', '), key: finite(found[0][1].accuracy)} : number(null);
    }, descending: true},
    {title: 'before', cell: (run) => number(transformed(run).before, percent), descending: true},
    {title: 'after', cell: (run) => number(transformed(run).after, percent), descending: true},
    {title: 'change', cell: (run) => ({...number(finite(transformed(run).after) === null ? null : finite(transformed(run).after) - finite(transformed(run).before), () => pointsOf(transformed(run).before, transformed(run).after))}), descending: true},
  ].filter((column) => runs.some((run) => column.cell(run).key !== null));
  const rows = shown.map((run) => {
    const info = run.run || {};
    return [nameCell(run, chosen), ...columns.map((column) => column.cell(run)), text((info.model || {}).name || ''), dataName(run), text(info.kind || ''), {content: statusBadge(info.status) || '', key: text(info.status || '')},
      date(info.started), number((info.speed || {}).seconds, duration), run.problem ? text(run.problem) : ''];
  });
  const field = h('input', {type: 'search', id: 'filter', placeholder: 'name, model, data, status', 'aria-label': 'show only runs with these words', value: state.get('filter', ''), oninput: (event) => state.set('filter', event.target.value)});
  return [section('runs', 'Runs', h('div', {class: 'choices'}, h('label', {class: 'choice'}, h('span', {class: 'choice-label'}, 'filter'), field),
    kinds.length > 1 ? choice('kind', [['', 'all'], ...kinds.map((one) => [one, one])], kind, (value) => state.set('kind', value)) : null,
    links.length > 1 ? h('a', {class: 'button', id: 'compare', href: 'run?' + links.join('&')}, `Compare ${links.length} runs`) : h('span', {class: 'hint'}, 'Tick two or more runs to compare them.')),
  table({id: 'run-list', caption: `${shown.length === runs.length ? runs.length : `${shown.length} of ${runs.length}`} runs under ${data.folder || data.title}${columns.some((column) => column.title === 'before') ? '; before and after: accuracy of a transformed network' : ''}`, sortable: true, rows,
    columns: [{title: 'run'}, ...columns.map(({title, descending}) => ({title, class: 'num', descending})), {title: 'model'}, {title: 'data set'}, {title: 'kind'}, {title: 'status'}, {title: 'started', descending: true}, {title: 'time', class: 'num'}, {title: ''}]}))];
}
