// SPDX-License-Identifier: Apache-2.0
// The parts of a transform: histograms against what each format can represent, error per layer,
// before/after, and what each pass did.
import {choice, h, note, section, svg} from './dom.js';
import {duration, finite, percent, short, text, whole} from './format.js';
import {ticks} from './scale.js';
import * as state from './state.js';
import {table} from './table.js';

function saturation(one) {
  let total = 0, outside = 0;
  one.counts.forEach((count, i) => {
    const middle = (one.edges[i] + one.edges[i + 1]) / 2, n = finite(count) || 0;
    total += n;
    if ((one.lowest !== null && middle < one.lowest) || (one.largest !== null && middle > one.largest)) outside += n;
  });
  return total ? outside / total : 0;
}

function readable(raw) {
  if (!raw || !Array.isArray(raw.edges) || !Array.isArray(raw.counts) || raw.edges.length !== raw.counts.length + 1 || !raw.counts.length) return null;
  const edges = raw.edges.map(finite);
  if (edges.some((e) => e === null)) return null;
  return {...raw, edges, lowest: finite(raw.lowest), largest: finite(raw.largest)};
}

// The format's own numbers under the axis: a tick each, or a band where they lie closer than two pixels.
function gridMarks(one, x, from, to, y) {
  const grid = (Array.isArray(one.grid) ? one.grid.map(finite).filter((v) => v !== null && v >= from && v <= to) : []).map(x);
  if (!grid.length) return null;
  const marks = [];
  let begin = grid[0], path = '';
  for (let i = 0; i < grid.length; ++i) {
    const last = i + 1 === grid.length;
    if (!last && grid[i + 1] - grid[i] < 2) continue;
    if (grid[i] - begin > 2) marks.push(svg('rect', {x: begin, y, width: grid[i] - begin, height: 6, class: 'grid-band'}));
    else path += `M${grid[i].toFixed(2)} ${y}v6`;
    if (!last) begin = grid[i + 1];
  }
  if (path) marks.push(svg('path', {d: path, class: 'grid-mark'}));
  return svg('g', {class: 'grid-marks', 'data-marks': grid.length}, marks);
}

function histogram(one, log) {
  const width = 330, height = 128, base = height - 30, first = one.edges[0], last = one.edges[one.edges.length - 1], span = last - first || 1;
  // Part of an unused range is shown; a far wider format is drawn to the edge.
  const low = one.lowest !== null && one.lowest < first ? Math.max(one.lowest, first - span * 0.35) : first;
  const constant = first === last ? Math.max(Math.abs(first) * 0.5, 0.5) : 0;  // one value: show its surroundings
  const high = one.largest !== null && one.largest > last ? Math.min(one.largest, last + span * 0.35) : last;
  const from = low - constant, to = high + constant;
  const x = (v) => 6 + (Math.min(to, Math.max(from, v)) - from) / (to - from || 1) * (width - 12);
  const scaled = (count) => log ? Math.log10(1 + count) : count;
  const peak = Math.max(...one.counts.map((c) => scaled(finite(c) || 0)), 1e-9);
  const known = one.lowest !== null || one.largest !== null;
  const begin = x(one.lowest === null ? from : one.lowest), end = x(one.largest === null ? to : one.largest);
  const share = finite(one.saturation) !== null ? one.saturation : saturation(one);
  const label = `${text(one.node)} ${text(one.operand)}`, codes = finite(one.codes), used = finite(one.codes_used);
  const usage = codes !== null && used !== null ? `${whole(used)} of ${whole(codes)} codes used` : null;
  const marks = known ? gridMarks(one, x, from, to, base + 1) : null;
  return h('figure', {class: 'histogram', 'data-node': text(one.node), 'data-operand': text(one.operand)},
    h('figcaption', null, h('span', null, h('strong', null, text(one.node)), ' ', text(one.operand)),
      known ? h('span', {class: 'badge ' + (share > 0.01 ? 'bad' : share > 0 ? 'warn' : 'good')}, share > 0 ? `${share < 0.0001 ? '< 0.01 %' : percent(share)} saturated` : 'no saturation') : null),
    svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${label}: values from ${short(first)} to ${short(last)}` + (known ? `, representable ${short(one.lowest)} to ${short(one.largest)}, ${percent(share)} saturated` : '') + (usage ? `, ${usage}` : '')},
      known ? [svg('rect', {x: begin, y: 4, width: Math.max(1, end - begin), height: base - 4, class: 'range'}),
        marks || svg('rect', {x: begin, y: base + 1, width: Math.max(1, end - begin), height: 3, class: 'range-bar'})] : null,
      one.counts.map((count, i) => {
        const n = finite(count) || 0;
        if (n <= 0) return null;
        const middle = (one.edges[i] + one.edges[i + 1]) / 2, tall = Math.max(1, scaled(n) / peak * (base - 8));
        const lost = (one.lowest !== null && middle < one.lowest) || (one.largest !== null && middle > one.largest);
        return svg('rect', {x: x(one.edges[i]), y: base - tall, width: Math.max(constant ? 5 : 0.6, x(one.edges[i + 1]) - x(one.edges[i]) - 0.4), height: tall, class: lost ? 'bar lost' : 'bar'},
          svg('title', null, `${short(one.edges[i])} to ${short(one.edges[i + 1])}: ${whole(n)}${lost ? ' (saturated)' : ''}`));
      }),
      ticks(from, to, 4).map((t) => svg('text', {x: Math.min(width - 14, Math.max(14, x(t))), y: height - 6, 'text-anchor': 'middle', class: 'tick'}, short(t, 3)))),
    h('p', {class: 'small'}, [usage, known ? `representable ${short(one.lowest)} … ${short(one.largest)}` : null, `seen ${short(first)} … ${short(last)}`].filter(Boolean).join('; ')));
}

export function histograms(transform) {
  const all = (Array.isArray(transform.histograms) ? transform.histograms : []).map(readable).filter(Boolean);
  if (!all.length) return null;
  const log = state.get('histogram-log', false);
  return section('histograms', 'Values against representable ranges',
    h('div', {class: 'choices'}, choice('counts', [[false, 'linear'], [true, 'log']], log, (value) => state.set('histogram-log', value)),
      h('span', {class: 'keys'}, h('i', {class: 'key-bar'}), 'kept', h('i', {class: 'key-lost'}), 'saturated', h('i', {class: 'key-range'}), 'representable', h('i', {class: 'key-grid'}), 'the format’s numbers')),
    h('div', {class: 'histograms'}, all.map((one) => histogram(one, log))));
}

function bars(title, rows, shown, bad) {
  const values = rows.map(([, value]) => finite(value)).filter((v) => v !== null);
  if (!values.length) return null;
  const peak = Math.max(...values.map(Math.abs), 1e-300);
  return h('div', {class: 'half'}, h('h3', null, title), h('div', {class: 'bars', role: 'list'}, rows.map(([name, value]) => {
    const n = finite(value);
    return h('div', {class: 'bar-row', role: 'listitem'}, h('span', {class: 'bar-name', title: name}, name),
      h('span', {class: 'bar-track'}, h('span', {class: 'bar-fill' + (n !== null && bad(n) ? ' bad' : ''), style: {width: (n === null ? 0 : 100 * Math.abs(n) / peak).toFixed(2) + '%'}})), h('span', {class: 'bar-value'}, shown(value)));
  })));
}

export function layers(transform) {
  const rows = (Array.isArray(transform.layers) ? transform.layers : []).filter((row) => row && row.node !== undefined);
  if (!rows.length) return null;
  const pick = (key) => rows.map((row) => [text(row.node), row[key]]);
  const cell = (value, show) => ({content: show(value), key: finite(value)});
  const db = (value) => finite(value) === null ? short(value) : `${value.toFixed(1)} dB`;
  return section('layers', 'Error per layer', h('div', {class: 'halves'},
    bars('SQNR (higher is better)', pick('sqnr_db'), db, (v) => v < 10), bars('Output error', pick('output_error'), short, () => false), bars('Weight error', pick('weight_error'), short, () => false)),
  table({id: 'layer-table', caption: 'Error per layer', sortable: true,
    columns: [{title: 'layer'}, ...['SQNR', 'output error', 'weight error', 'cosine', 'saturated'].map((title) => ({title, class: 'num'}))],
    rows: rows.map((row) => [h('code', null, text(row.node)), cell(row.sqnr_db, db), cell(row.output_error, short), cell(row.weight_error, short), cell(row.cosine, (v) => short(v, 6)), cell(row.saturation, percent)])}));
}

export function beforeAfter(transform) {
  const rows = (Array.isArray(transform.before_after) ? transform.before_after : []).filter(Array.isArray);
  if (rows.length < 2) return null;
  const [head, ...body] = rows, width = Math.max(...rows.map((row) => row.length));
  const changed = head.findIndex((title) => /^(changed|different)$/i.test(text(title)));
  return section('before-after', 'Before and after', table({id: 'before-after-table', caption: 'What changed', sortable: true,
    columns: Array.from({length: width}, (_, i) => ({title: head[i] === undefined ? '' : text(head[i])})),
    rows: body.map((row) => Array.from({length: width}, (_, i) => row[i] === undefined ? '' : text(row[i]))),
    rowAttributes: changed < 0 ? null : (i) => ({class: /^(true|1|yes)$/i.test(text(body[i][changed])) ? 'changed-row' : null})}));
}

export function passes(run) {
  const results = (Array.isArray(run.results) ? run.results : []).filter((one) => one && typeof one === 'object');
  if (!results.length) return null;
  const nothing = (value) => value === null || value === undefined || (typeof value === 'object' && !Object.keys(value).length);
  return section('passes', 'Passes', h('ol', {class: 'passes'}, results.map((one) => {
    const head = [h('code', null, text(one.pass)), h('span', {class: 'badge ' + (one.changed ? 'good' : '')}, one.changed ? 'changed' : 'unchanged'), h('span', {class: 'muted'}, duration(one.seconds))];
    return h('li', null, nothing(one.result) ? h('div', {class: 'pass-line'}, head) : h('details', null, h('summary', {class: 'pass-line'}, head), h('pre', null, JSON.stringify(one.result, null, 2))));
  })));
}

export function missingNote(run) {
  return run.problem ? note(h('strong', null, 'Could not read all of this run: '), text(run.problem)) : null;
}
