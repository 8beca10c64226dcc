// SPDX-License-Identifier: Apache-2.0
// The runs under a folder, for `ch view`: links to their pages, and a selection to compare.
import {h, note, section} from './dom.js';
import {date, duration, finite, percent, short, text} from './format.js';
import * as state from './state.js';
import {table} from './table.js';

export function statusBadge(status) {
  const kind = {finished: 'good', running: 'busy', failed: 'bad', diverged: 'bad', interrupted: 'warn'}[status] || '';
  return status ? h('span', {class: 'badge ' + kind}, text(status)) : null;
}

export function list(data) {
  const runs = data.runs || [];
  if (!runs.length) return [section('runs', 'Runs', note('No runs here yet. The page looks again every few seconds.'))];
  const chosen = state.get('chosen', new Set());
  const links = runs.filter((run) => chosen.has(run.id)).map((run) => 'run=' + encodeURIComponent(run.id));
  const rows = runs.map((run) => {
    const info = run.run || {}, found = info.best || {};
    const number = (value, show) => ({content: show(value), key: finite(value)});
    return [{content: h('input', {type: 'checkbox', checked: chosen.has(run.id), 'aria-label': `compare ${run.name}`, onchange: (event) => {
      const now = new Set(state.get('chosen', new Set()));
      if (event.target.checked) now.add(run.id); else now.delete(run.id);
      state.set('chosen', now);
    }}), key: chosen.has(run.id) ? 1 : 0}, {content: h('a', {href: 'run?run=' + encodeURIComponent(run.id)}, run.name), key: run.name}, text(info.kind || ''), {content: statusBadge(info.status) || '', key: text(info.status || '')},
    text((info.model || {}).name || ''), text((info.dataset || {}).name || ''), date(info.started), number(found.val_acc_epoch, percent), number(found.val_loss_epoch, short), number((info.evaluation || {}).accuracy, percent), number((info.speed || {}).seconds, duration), run.problem ? text(run.problem) : ''];
  });
  return [section('runs', 'Runs', h('div', {class: 'choices'}, links.length > 1 ? h('a', {class: 'button', id: 'compare', href: 'run?' + links.join('&')}, `Compare ${links.length} runs`) : h('span', {class: 'hint'}, 'Tick two or more runs to compare them.')),
    table({id: 'run-list', caption: `Runs under ${data.title}`, sortable: true, rows,
      columns: [{title: ''}, {title: 'run'}, {title: 'kind'}, {title: 'status'}, {title: 'model'}, {title: 'data set'}, {title: 'started', descending: true}, {title: 'val accuracy', class: 'num', descending: true}, {title: 'val loss', class: 'num'}, {title: 'accuracy', class: 'num', descending: true}, {title: 'time', class: 'num'}, {title: ''}]}))];
}
