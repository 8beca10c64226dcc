// SPDX-License-Identifier: Apache-2.0
// Tables: plain ones, and ones that sort when a heading is clicked.
import {h} from './dom.js';
import * as state from './state.js';

const plain = (cell) => cell === null || typeof cell !== 'object' || cell instanceof Node;

function cellNode(cell) {
  const {content, ...rest} = plain(cell) ? {content: cell} : cell;
  return h('td', {class: rest.class, style: rest.style, title: rest.title}, content === null || content === undefined ? '–' : content);
}

function sortKey(cell) {
  if (plain(cell)) return cell instanceof Node ? cell.textContent : cell;
  return cell.key !== undefined ? cell.key : cell.content instanceof Node ? cell.content.textContent : cell.content;
}

// Numbers before texts, what is missing last, whatever the direction.
function compare(a, b, direction) {
  const missing = (v) => v === null || v === undefined || v === '' || v === '–' || Number.isNaN(v);
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const x = Number(a), y = Number(b);
  const numeric = [!Number.isNaN(x), !Number.isNaN(y)];
  if (numeric[0] && numeric[1]) return direction * (x - y);
  if (numeric[0] || numeric[1]) return numeric[0] ? -1 : 1;
  return direction * String(a).localeCompare(String(b), 'en', {numeric: true});
}

// columns: [{title, class, descending}], rows: [[cell]] where a cell is text, a number, a node, or
// {content, key, class, title, style}. `id` names the table, so that its order survives a redraw. The first column
// stays in sight when the table is moved sideways, unless `fixed` is false.
export function table({id, columns, rows, sortable = false, fixed = true, caption, rowAttributes}) {
  const body = h('tbody');
  const heads = columns.map((column, index) => {
    if (!sortable) return h('th', {scope: 'col', class: column.class}, column.title);
    return h('th', {scope: 'col', class: column.class, 'aria-sort': 'none'},
      h('button', {type: 'button', class: 'sort', onclick: () => {
        const old = state.get('sort-' + id, null);
        const first = column.descending ? -1 : 1;
        state.remember('sort-' + id, {index, direction: old && old.index === index ? -old.direction : first});
        order();
      }}, column.title));
  });
  function order() {
    const by = state.get('sort-' + id, null);
    const indices = rows.map((_, i) => i);
    if (sortable && by && by.index < columns.length)
      indices.sort((a, b) => compare(sortKey(rows[a][by.index]), sortKey(rows[b][by.index]), by.direction) || a - b);
    body.replaceChildren(...indices.map((i) => h('tr', rowAttributes ? rowAttributes(i) : null, rows[i].map((cell, c) => {
      const node = cellNode(cell);
      if (columns[c] && columns[c].class) node.classList.add(...columns[c].class.split(' '));
      return node;
    }))));
    heads.forEach((head, i) => {
      if (sortable) head.setAttribute('aria-sort', by && by.index === i ? (by.direction > 0 ? 'ascending' : 'descending') : 'none');
    });
  }
  order();
  return h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption || 'table'},
    h('table', {id, class: fixed ? 'fixed' : null}, caption ? h('caption', null, caption) : null, h('thead', null, h('tr', null, heads)), body));
}
