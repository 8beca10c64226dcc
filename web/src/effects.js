// SPDX-License-Identifier: Apache-2.0
// How a result depends on the options that were varied: a small chart for each, and a map for each two.
import {choice, h, note, section, svg} from './dom.js';
import {fileName, percent, shortened, text} from './format.js';
import {distinct, groups, measured, ordered, sameData, spoken, summary} from './groups.js';
import {ticks} from './scale.js';
import * as state from './state.js';

const settingText = (columns, group, without) => columns.map((c, k) => without.includes(k) ? '' : `${c.name} ${fileName(group.values[k])}`).filter(Boolean).join(', ');

// Names at the right ends of lines, moved down until they do not touch.
function apart(labels, top, bottom) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, k) => { label.y = Math.max(label.y, k ? labels[k - 1].y + 12 : top); });
  for (let k = labels.length - 1; k >= 0; --k) labels[k].y = Math.min(labels[k].y, k === labels.length - 1 ? bottom : labels[k + 1].y - 12);
  return labels;
}

// The result against one option's values, a line for each setting of the others.
function effect(all, columns, index, metric, colours) {
  const values = ordered(all.map((group) => group.values[index]));
  if (values.length < 2) return null;
  const points = all.map((group) => {
    const found = summary(group.runs, metric.of);
    return found && {...found, at: values.findIndex((v) => text(v) === text(group.values[index])), other: settingText(columns, group, [index]), group};
  }).filter(Boolean);
  if (points.length < 2) return null;
  const others = distinct(points.map((p) => p.other)), named = others.length > 1 && others.length <= 12;
  const width = 420, height = 240, left = 58, right = named ? 118 : 16, top = 12, bottom = 40, spread = (p) => p.deviation || 0;
  let low = Math.min(...points.map((p) => p.mean - spread(p))), high = Math.max(...points.map((p) => p.mean + spread(p)));
  const margin = (high - low) * 0.08 || 0.01;
  low -= margin;
  high += margin;
  const x = (i) => left + (i + 0.5) * (width - left - right) / values.length, y = (v) => top + (high - v) / (high - low) * (height - top - bottom);
  // A line has the colour its runs have elsewhere; where they have several, its points do.
  const chosen = colours.column ? columns.findIndex((c) => c.name === colours.column.name) : -1;
  const colourOf = (p) => colours.column ? chosen < 0 ? 'var(--muted)' : colours.ofValue(p.group.values[chosen]) : p.group.runs.length === 1 ? colours.colour(p.group.indices[0]) : 'var(--ink)';
  const step = Math.min(9, 60 / others.length);
  const lines = others.map((other, k) => ({other, mine: points.filter((p) => p.other === other).sort((a, b) => a.at - b.at), shift: others.length > 1 ? (k - (others.length - 1) / 2) * step : 0}));
  const labels = named ? apart(lines.map(({other, mine}) => ({other, shown: columns.length > 2 ? columns.map((c, k) => k === index ? null : fileName(mine[0].group.values[k])).filter((v) => v !== null).join(', ') : other, y: y(mine[mine.length - 1].mean), colour: chosen >= 0 && chosen !== index ? colourOf(mine[0]) : 'var(--ink)'})), top + 6, height - bottom) : [];
  return h('figure', {class: 'effect'}, h('figcaption', null, 'Effect of ', h('strong', null, columns[index].name)),
    svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Effect of ${columns[index].name}: ` + points.map((p) => `${text(values[p.at])}${p.other ? ' with ' + p.other : ''}: ${spoken(p, metric.show)}`).join('; ')},
      ticks(low, high, 4).map((t) => [svg('line', {x1: left, x2: width - right, y1: y(t), y2: y(t), class: 'grid-line'}), svg('text', {x: left - 6, y: y(t) + 4, 'text-anchor': 'end', class: 'tick'}, metric.show === percent ? `${Number((100 * t).toPrecision(6))} %` : metric.show(t))]),
      values.map((v, i) => svg('text', {x: x(i), y: height - 20, 'text-anchor': 'middle', class: 'tick strong'}, shortened(fileName(v), Math.floor(70 / Math.sqrt(values.length))), svg('title', null, text(v)))),
      svg('text', {x: (left + width - right) / 2, y: height - 4, 'text-anchor': 'middle', class: 'tick'}, columns[index].name),
      lines.map(({mine, shift}) => svg('g', null, svg('path', {class: 'effect-line', style: {stroke: chosen >= 0 && chosen !== index ? colourOf(mine[0]) : 'var(--muted)'}, d: mine.map((p, i) => `${i ? 'L' : 'M'}${x(p.at) + shift} ${y(p.mean)}`).join('')}),
        mine.map((p) => svg('g', {style: {color: colourOf(p)}}, p.deviation ? svg('line', {x1: x(p.at) + shift, x2: x(p.at) + shift, y1: y(p.mean - p.deviation), y2: y(p.mean + p.deviation), class: 'error-bar'}) : null,
          svg('circle', {cx: x(p.at) + shift, cy: y(p.mean), r: 4.5, class: 'dot'}, svg('title', null, `${columns[index].name} ${text(values[p.at])}${p.other ? ', ' + p.other : ''}: ${spoken(p, metric.show)} (n = ${p.count})`)))))),
      labels.map((label) => svg('text', {x: width - right + 6, y: label.y + 4, class: 'tick', style: {fill: label.colour}}, shortened(label.shown, 19), svg('title', null, label.other)))));
}

// Two options against each other. A cell that lacks some of the others' settings would compare unlike
// with unlike: it is left empty.
function heat(all, columns, a, b, metric) {
  const rows = ordered(all.map((group) => group.values[a])), heads = ordered(all.map((group) => group.values[b])), others = distinct(all.map((group) => settingText(columns, group, [a, b])));
  const at = (r, c) => {
    const mine = all.filter((group) => text(group.values[a]) === text(r) && text(group.values[b]) === text(c)), found = mine.map((group) => summary(group.runs, metric.of)).filter(Boolean), count = found.reduce((sum, one) => sum + one.count, 0);
    if (!count) return null;
    if (found.length < others.length || new Set(found.map((one) => one.count)).size > 1) return {count, unbalanced: `${found.length} of ${others.length} settings of the other options, ${count} runs`};
    return {count, mean: found.reduce((sum, one) => sum + one.mean, 0) / found.length, deviation: found.length === 1 ? found[0].deviation : null};
  };
  const cells = rows.map((r) => heads.map((c) => at(r, c))), numbers = cells.flat().filter((cell) => cell && !cell.unbalanced).map((cell) => cell.mean);
  if (!numbers.length) return null;
  const low = Math.min(...numbers), high = Math.max(...numbers), goodness = (v) => high > low ? (metric.up ? (v - low) / (high - low) : (high - v) / (high - low)) : 0.5;
  return h('figure', {class: 'heat'}, h('figcaption', null, h('strong', null, columns[a].name), ' (down) and ', h('strong', null, columns[b].name), ' (across)', others.length > 1 ? h('span', {class: 'muted'}, `, mean over ${others.length} settings of the rest`) : null),
    h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${columns[a].name} and ${columns[b].name}`}, h('table', {class: 'matrix'},
      h('thead', null, h('tr', null, h('td', null), heads.map((c) => h('th', {scope: 'col', title: text(c)}, fileName(c))))),
      h('tbody', null, rows.map((r, i) => h('tr', null, h('th', {scope: 'row', title: text(r)}, fileName(r)), cells[i].map((cell) => {
        if (!cell) return h('td', {class: 'cell', title: 'no run'}, '–');
        if (cell.unbalanced) return h('td', {class: 'cell unbalanced', title: `left out: ${cell.unbalanced}`}, '–', h('small', null, `n = ${cell.count}, unbalanced`));
        const good = goodness(cell.mean);
        return h('td', {class: 'cell' + (good > 0.45 ? ' strong' : '') + (good === 1 ? ' winner' : ''), style: {'--share': good.toFixed(3)}}, metric.show(cell.mean), h('small', null, `${cell.deviation !== null ? `± ${metric.show(cell.deviation)}, ` : ''}n = ${cell.count}`));
      })))))));
}

export function effects(runs, columns, colours) {
  const known = measured(runs), metric = known[state.get('metric', 0)] || known[0];
  const all = groups(runs, columns);
  if (!metric || !columns.length || columns.length > 4 || all.length < 2) return null;
  const pictures = columns.map((_, i) => effect(all, columns, i, metric, colours)).filter(Boolean);
  const heats = [];
  for (let a = 0; a < columns.length; ++a) for (let b = a + 1; b < columns.length; ++b) heats.push(heat(all, columns, a, b, metric));
  if (!pictures.length) return null;
  return section('effects', 'What the options do', h('div', {class: 'choices'}, choice('result', known.map((m, i) => [i, m.title]), known.indexOf(metric), (value) => state.set('metric', value))),
    h('div', {class: 'effects'}, pictures, heats),
    all.some((group) => group.runs.length > 1) ? note('n: runs in a point or cell. Bars and ± are standard deviations over runs that differ in nothing but the seed.') : null,
    sameData(runs) ? null : note('The runs were measured on different data: differences between them are not those of the options alone.'));
}
