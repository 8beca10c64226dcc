// SPDX-License-Identifier: Apache-2.0
// What a page does beyond showing: values under the pointer, zoom, sorting, filtering, downloads, the
// dark, and, from `ch view`, following what changes. Text enters as text nodes only.
'use strict';
(() => {
const NS = 'http://www.w3.org/2000/svg';
const make = (tag, attributes, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};
const drawn = (tag, attributes) => {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const chosen = {sort: {}, filter: {}, boxes: new Set(), zoom: {}};  // kept while the page follows a run

// ---- the dark
const theme = () => document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
function tools() {
  const button = make('button', {type: 'button', id: 'theme', onclick: () => {
    document.documentElement.dataset.theme = theme() === 'dark' ? 'light' : 'dark';
    button.textContent = theme() === 'dark' ? 'Light' : 'Dark';
  }}, theme() === 'dark' ? 'Light' : 'Dark');
  document.querySelector('header.top').append(make('div', {class: 'tools'}, button, make('button', {type: 'button', onclick: () => print()}, 'Print')));
}

// ---- downloads
function save(name, type, content) {
  const link = make('a', {href: URL.createObjectURL(new Blob([content], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const fileName = (text, end) => text.trim().toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_|_$/g, '').slice(0, 60) + end;
const csv = (rows) => rows.map((row) => row.map((cell) => /[",\n]/.test(cell) ? '"' + cell.replace(/"/g, '""') + '"' : cell).join(',')).join('\n') + '\n';
// Colours and sizes come from the style sheet: a picture of its own takes them along.
function alone(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll('*')], to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((element, i) => {
    const style = getComputedStyle(element), own = to[i];
    const kept = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-weight', 'font-family'].map((name) => `${name}:${style.getPropertyValue(name)}`);
    if (element !== svg) own.setAttribute('style', kept.join(';'));
    for (const name of ['data-x', 'data-y', 'data-name', 'data-run']) own.removeAttribute(name);
  });
  const [, , width, height] = svg.getAttribute('viewBox').split(' ');
  copy.setAttribute('xmlns', NS);
  copy.setAttribute('width', width);
  copy.setAttribute('height', height);
  copy.setAttribute('style', `background:${getComputedStyle(document.documentElement).getPropertyValue('--card')}`);
  return new XMLSerializer().serializeToString(copy);
}
function chartRows(svg) {
  const rows = [['series', 'x', 'y']];
  for (const mark of svg.querySelectorAll('.marks [data-x]')) {
    const ys = mark.dataset.y.split(' '), name = mark.dataset.name || mark.querySelector('title').textContent;
    mark.dataset.x.split(' ').forEach((x, i) => rows.push([name, x, ys[i]]));
  }
  return rows;
}

// ---- charts: values under the pointer, zoom by dragging
const tip = make('div', {class: 'tip', hidden: ''});
function showTip(text, event) {
  tip.textContent = text;
  tip.hidden = !text;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + 'px';
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8)) + 'px';
}
const shortText = (v, percent) => percent ? `${Number((100 * v).toPrecision(6))} %` : Math.abs(v) >= 1e7 || (v && Math.abs(v) < 1e-4) ? v.toExponential(2) : Number(v.toPrecision(6)).toLocaleString('en-US', {maximumSignificantDigits: 6});
function readAxis(text) {
  const [kind, low, high, first, last, how] = (text || '').split(' ');
  if (kind !== 'linear' && kind !== 'log') return null;
  return {log: kind === 'log', low: +low, high: +high, first: +first, last: +last, percent: how === 'percent'};
}
const valueAt = (axis, pixel) => { const v = axis.low + (pixel - axis.first) / (axis.last - axis.first) * (axis.high - axis.low); return axis.log ? 10 ** v : v; };
function ticks(axis) {
  const span = axis.high - axis.low, rough = span / 5, power = 10 ** Math.floor(Math.log10(rough)), share = rough / power;
  let step = (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10) * power;
  const result = [];
  if (axis.log && span > 2) step = Math.max(1, Math.round(step));
  if (axis.log && span <= 2) {  // 1, 2 and 5 times powers of ten
    for (let p = Math.floor(axis.low); p <= axis.high; ++p) for (const f of [1, 2, 5]) if (p + Math.log10(f) >= axis.low && p + Math.log10(f) <= axis.high) result.push(p + Math.log10(f));
    return result;
  }
  for (let i = Math.ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step; ++i) result.push(i * step);
  return result;
}
function redraw(svg, view) {
  const {x, y} = view.axes, change = (axis, now) => (pixel) => {
    const v = axis.low + (pixel - axis.first) / (axis.last - axis.first) * (axis.high - axis.low);
    return axis.first + (v - now.low) / (now.high - now.low) * (axis.last - axis.first);
  };
  const toX = change(x, view.now.x), toY = change(y, view.now.y);
  for (const [element, kept] of view.kept) {
    if (kept.d) {
      let across = false;
      element.setAttribute('d', kept.d.replace(/-?[\d.]+/g, (n) => { across = !across; return (across ? toX : toY)(+n).toFixed(1); }));
    } else for (const [name, value] of kept.places) element.setAttribute(name, (name.includes('x') ? toX : toY)(value).toFixed(1));
  }
  const axes = svg.querySelector('.axes'), clip = view.clip;
  axes.replaceChildren();
  const add = (axis, now, across) => {
    for (const t of ticks(now)) {
      const at = now.first + (t - now.low) / (now.high - now.low) * (now.last - now.first);
      axes.append(drawn('line', across ? {x1: at, x2: at, y1: clip.y, y2: clip.y + clip.height, class: 'grid-line'} : {x1: clip.x, x2: clip.x + clip.width, y1: at, y2: at, class: 'grid-line'}));
      const text = drawn('text', across ? {x: at, y: clip.y + clip.height + 17, 'text-anchor': 'middle', class: 'tick'} : {x: clip.x - 7, y: at + 4, 'text-anchor': 'end', class: 'tick'});
      text.textContent = shortText(axis.log ? 10 ** t : t, axis.percent);
      axes.append(text);
    }
  };
  add(x, view.now.x, true);
  add(y, view.now.y, false);
}
function zoomable(svg, number) {
  const axes = {x: readAxis(svg.dataset.x), y: readAxis(svg.dataset.y)}, marks = svg.querySelector('.marks');
  if (!axes.x || !axes.y || !marks) return null;
  const clip = {x: Math.min(axes.x.first, axes.x.last), y: Math.min(axes.y.first, axes.y.last), width: Math.abs(axes.x.last - axes.x.first), height: Math.abs(axes.y.last - axes.y.first)};
  const id = 'clip-' + number, area = drawn('clipPath', {id});
  area.append(drawn('rect', {x: clip.x - 7, y: clip.y - 7, width: clip.width + 14, height: clip.height + 14}));
  svg.prepend(area);
  marks.setAttribute('clip-path', `url(#${id})`);
  const first = svg.querySelector('.axes').cloneNode(true);
  const kept = [...marks.querySelectorAll('path,circle,text')].map((element) => [element, element.hasAttribute('d') ? {d: element.getAttribute('d')} :
    {places: ['cx', 'cy', 'x', 'y'].filter((name) => element.hasAttribute(name)).map((name) => [name, +element.getAttribute(name)])}]);
  const view = {axes, clip, kept, now: {x: {...axes.x}, y: {...axes.y}}};
  const key = svg.getAttribute('aria-label').split('.')[0];
  const go = (now) => {
    view.now = now || {x: {...axes.x}, y: {...axes.y}};
    chosen.zoom[key] = now;
    redraw(svg, view);
    if (!now) svg.querySelector('.axes').replaceChildren(...first.cloneNode(true).childNodes);
  };
  if (chosen.zoom[key]) go(chosen.zoom[key]);
  let start = null, box = null;
  const place = (event) => { const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()); return {x: Math.min(clip.x + clip.width, Math.max(clip.x, p.x)), y: Math.min(clip.y + clip.height, Math.max(clip.y, p.y))}; };
  svg.addEventListener('pointerdown', (event) => { if (event.button === 0 && event.pointerType === 'mouse') start = place(event); });
  svg.addEventListener('pointermove', (event) => {
    if (!start) return;
    const p = place(event);
    if (!box) { if (Math.hypot(p.x - start.x, p.y - start.y) < 6) return; box = drawn('rect', {class: 'zoom-box'}); svg.append(box); svg.setPointerCapture(event.pointerId); }
    for (const [name, value] of [['x', Math.min(p.x, start.x)], ['y', Math.min(p.y, start.y)], ['width', Math.abs(p.x - start.x)], ['height', Math.abs(p.y - start.y)]]) box.setAttribute(name, value);
  });
  svg.addEventListener('pointerup', (event) => {
    const p = place(event), from = start, drawnBox = box;
    start = box = null;
    if (!drawnBox) return;
    drawnBox.remove();
    const part = (axis, a, b) => { const at = (pixel) => axis.low + (pixel - axis.first) / (axis.last - axis.first) * (axis.high - axis.low); return {...axis, low: Math.min(at(a), at(b)), high: Math.max(at(a), at(b))}; };
    // A flat box takes its width alone, a narrow one its height.
    const wide = Math.abs(p.x - from.x) > 8, tall = Math.abs(p.y - from.y) > 8;
    if (wide || tall) go({x: wide ? part(view.now.x, from.x, p.x) : view.now.x, y: tall ? part(view.now.y, from.y, p.y) : view.now.y});
  });
  svg.addEventListener('dblclick', () => go(null));
  return view;
}
// The point of every line that is nearest along x; or the title of what is under the pointer.
function hover(svg, view) {
  const cross = drawn('line', {class: 'crosshair', visibility: 'hidden'});
  svg.append(cross);
  const titles = new Map();
  for (const title of svg.querySelectorAll('title')) titles.set(title.parentNode, title.textContent);
  svg.addEventListener('pointermove', (event) => {
    const own = event.target.closest ? [event.target, event.target.parentNode].find((e) => titles.has(e)) : null;
    const lines = [...svg.querySelectorAll('.line[data-x]')].filter((line) => line.style.display !== 'none');
    if (!view || !lines.length || (own && !own.classList.contains('line'))) { cross.setAttribute('visibility', 'hidden'); showTip(own ? titles.get(own) : '', event); return; }
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()), clip = view.clip;
    if (at.x < clip.x - 4 || at.x > clip.x + clip.width + 4 || at.y < clip.y || at.y > clip.y + clip.height) { cross.setAttribute('visibility', 'hidden'); showTip('', event); return; }
    const found = [];
    for (const line of lines) {
      const places = line.getAttribute('d').match(/-?[\d.]+/g).map(Number);
      let best = 0;
      for (let i = 0; i < places.length; i += 2) if (Math.abs(places[i] - at.x) < Math.abs(places[best] - at.x)) best = i;
      if (Math.abs(places[best] - at.x) > 30) continue;
      found.push({far: Math.abs(places[best + 1] - at.y), pixel: places[best], name: titles.get(line), x: +line.dataset.x.split(' ')[best / 2], y: +line.dataset.y.split(' ')[best / 2]});
    }
    if (!found.length) { showTip(own ? titles.get(own) : '', event); return; }
    found.sort((a, b) => a.far - b.far);
    const near = found[0];
    for (const [name, value] of [['x1', near.pixel], ['x2', near.pixel], ['y1', clip.y], ['y2', clip.y + clip.height], ['visibility', 'visible']]) cross.setAttribute(name, value);
    showTip(found.slice(0, 6).map((one) => `${one.name} at ${shortText(one.x, view.axes.x.percent)}: ${shortText(one.y, view.axes.y.percent)}`).join('\n'), event);
  });
  svg.addEventListener('pointerleave', () => { cross.setAttribute('visibility', 'hidden'); tip.hidden = true; });
}
function charts() {
  document.querySelectorAll('figure svg').forEach((svg, number) => {
    hover(svg, zoomable(svg, number));
    const figure = svg.closest('figure');
    if (!figure.classList.contains('drawn') || figure.querySelector('.chart-tools')) return;
    const caption = figure.querySelector('figcaption'), name = caption ? caption.textContent : 'graph', box = make('div', {class: 'chart-tools'});
    if (svg.querySelector('.marks [data-x]')) box.append(make('button', {type: 'button', title: 'the figures as a table', onclick: () => save(fileName(name, '.csv'), 'text/csv', csv(chartRows(svg)))}, 'CSV'));
    box.append(make('button', {type: 'button', title: 'the picture', onclick: () => save(fileName(name, '.svg'), 'image/svg+xml', alone(svg))}, 'SVG'));
    figure.append(box);
  });
}

// ---- tables: sort by a heading, keep the rows with some words
const cellKey = (cell) => {
  const text = cell.dataset.key !== undefined ? cell.dataset.key : cell.textContent.trim();
  const plain = text.replace(/,(?=\d{3})/g, '').replace(/^[≈>]\s*/, '').replace('−', '-'), number = parseFloat(plain);
  return text === '' || text === '–' ? null : /^[-+]?[\d.]/.test(plain) && !/^\d{4}-\d\d/.test(plain) && !Number.isNaN(number) ? number : text;
};
function compare(a, b, direction) {  // what is missing last, whatever the direction
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === 'number' && typeof b === 'number') return direction * (a - b);
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return direction * a.localeCompare(b, 'en', {numeric: true});
}
function order(table, by) {
  const body = table.tBodies[0], rows = [...body.rows], keys = new Map(rows.map((row) => [row, row.cells[by.column] ? cellKey(row.cells[by.column]) : null]));
  rows.sort((a, b) => compare(keys.get(a), keys.get(b), by.direction));
  body.append(...rows);
  [...table.tHead.rows[0].cells].forEach((head, i) => head.setAttribute('aria-sort', i !== by.column ? 'none' : by.direction > 0 ? 'ascending' : 'descending'));
}
function keep(table, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), hidden = new Set();
  let left = 0;
  for (const row of table.tBodies[0].rows) {
    const all = row.textContent.toLowerCase() + ' ' + [...row.querySelectorAll('[title]')].map((e) => e.title.toLowerCase()).join(' ');
    row.hidden = !words.every((word) => all.includes(word));
    if (row.hidden) hidden.add(row.dataset.run); else ++left;
  }
  if (table.querySelector('tr[data-run]')) for (const mark of document.querySelectorAll('.marks [data-run]')) mark.style.display = hidden.has(mark.dataset.run) ? 'none' : '';
  return left;
}
function tables() {
  for (const table of document.querySelectorAll('main table.fixed')) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    const name = table.id || table.caption.textContent;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const label = head.textContent;
      head.setAttribute('aria-sort', 'none');
      head.replaceChildren(make('button', {type: 'button', class: 'sort', onclick: () => {
        const old = chosen.sort[name], first = head.classList.contains('num') && !/loss|time|LUT|error|bits|EBOP/i.test(label) ? -1 : 1;
        order(table, chosen.sort[name] = {column, direction: old && old.column === column ? -old.direction : first});
      }}, label));
    });
    if (chosen.sort[name]) order(table, chosen.sort[name]);
    const box = make('div', {class: 'table-tools'}), rows = table.tBodies[0].rows.length;
    if (rows > 7 || table.id === 'run-list') {
      const count = make('span', {class: 'muted'}), field = make('input', {type: 'search', placeholder: 'filter', 'aria-label': 'show only rows with these words', oninput: () => {
        chosen.filter[name] = field.value;
        const left = keep(table, field.value);
        count.textContent = left < rows ? `${left} of ${rows}` : '';
      }});
      if (table.id) field.id = table.id + '-filter';
      box.append(field, count);
      if (chosen.filter[name]) { field.value = chosen.filter[name]; field.dispatchEvent(new Event('input')); }
    }
    if (rows > 2) box.append(make('button', {type: 'button', title: 'the figures of this table', onclick: () => save(fileName(table.caption.textContent, '.csv'), 'text/csv', csv([...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map((cell) => cell.textContent.trim()))))}, 'CSV'));
    if (box.childNodes.length) table.parentNode.before(box);
  }
}
function boxes() {
  const form = document.getElementById('compare-form');
  if (!form) return;
  const button = make('button', {type: 'submit', id: 'compare', class: 'button', hidden: ''}), hint = make('span', {class: 'hint'}, 'Tick two or more runs to compare them.');
  const count = () => {
    const all = [...form.querySelectorAll('input[name=run]')];
    chosen.boxes = new Set(all.filter((box) => box.checked).map((box) => box.value));
    button.hidden = chosen.boxes.size < 2;
    hint.hidden = !button.hidden;
    button.textContent = `Compare ${chosen.boxes.size} runs`;
  };
  for (const box of form.querySelectorAll('input[name=run]')) { box.hidden = false; box.checked = chosen.boxes.has(box.value); box.addEventListener('change', count); }
  const tools = form.querySelector('.table-tools') || form;
  tools.append(button, hint);
  count();
}

// A link to something folded away opens it.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
  if (target) target.scrollIntoView({block: 'nearest'});
}

// ---- following a run
let shown = document.querySelector('main').outerHTML, trouble = null;
async function follow() {
  let failure = null;
  try {
    const answer = await fetch(location.href, {cache: 'no-store'});
    if (answer.ok) {
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html'), main = next.querySelector('main');
      if (main.outerHTML !== shown) {
        shown = main.outerHTML;
        const open = new Set([...document.querySelectorAll('main details[open] > summary')].map((s) => s.textContent)), focus = document.activeElement && document.activeElement.id, y = scrollY;
        document.querySelector('main').replaceWith(document.adoptNode(main));
        document.querySelector('header.top').replaceWith(document.adoptNode(next.querySelector('header.top')));
        for (const summary of document.querySelectorAll('main details > summary')) if (open.has(summary.textContent)) summary.parentNode.open = true;
        start();
        const again = focus && document.getElementById(focus);
        if (again) { again.focus(); if (again.type === 'search') again.setSelectionRange(again.value.length, again.value.length); }
        scrollTo(0, y);
      }
    } else failure = answer.status === 404 ? 'This run is gone: its folder was removed or renamed. What you see is its last state.' : `The server answered ${answer.status}.`;
  } catch (error) {
    failure = 'The server does not answer. The page shows the last state and keeps trying.';
  }
  if (failure !== trouble) {
    trouble = failure;
    const old = document.getElementById('trouble');
    if (old) old.remove();
    if (failure) document.querySelector('main').prepend(make('p', {class: 'trouble', id: 'trouble', role: 'status'}, failure));
  }
  setTimeout(follow, 1000 * document.documentElement.dataset.live);
}

function start() {
  tools();
  charts();
  tables();
  boxes();
}
start();
document.body.append(tip);
addEventListener('hashchange', unfold);
unfold();
if (document.documentElement.dataset.live) setTimeout(follow, 1000 * document.documentElement.dataset.live);
})();
