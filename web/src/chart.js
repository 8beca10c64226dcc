// SPDX-License-Identifier: Apache-2.0
// Line charts with uPlot: built when their place on the page has a width, resized with it. Lines carry
// their names at their right end.
import uPlot from 'uplot';
import {h} from './dom.js';
import {short, shortened} from './format.js';
import {increments, logTicks, spansDecades, wholeIncrements} from './scale.js';
import * as state from './state.js';

const alive = new Set();
const font = '12px system-ui, sans-serif', labelHeight = 14;

// Charts of the page before a redraw; their observers would keep them alive.
export function forgetCharts() {
  for (const chart of alive) chart.stop();
  alive.clear();
}

function bounds(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (value !== null && Number.isFinite(value)) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// 'auto' is a logarithm where the values span decades; a chart with values that have none is linear.
function isLogarithmic(series, wanted) {
  const values = series.flatMap((one) => one.y).filter((v) => v !== null && Number.isFinite(v));
  if (wanted === false || wanted === 'linear' || !values.every((v) => v > 0)) return false;
  return wanted === true || wanted === 'log' || spansDecades(values);
}

// Names that series share (all runs of one setting) are written once, at the end of the middle one.
function endLabels(series) {
  const labels = new Map();
  for (const one of series) {
    if (one.label === null) continue;
    const text = one.label || one.name, key = text + '\0' + one.colour;
    let last = one.y.length - 1;
    while (last >= 0 && (one.y[last] === null || !Number.isFinite(one.y[last]))) --last;
    if (last < 0) continue;
    if (!labels.has(key)) labels.set(key, {text, colour: one.colour, ends: []});
    labels.get(key).ends.push(one.y[last]);
  }
  return withoutNames([...labels.values()]);
}

// learning_rate=1e-2,batch_size=32,seed=0 is longer than the room there is: of settings with the same names the values
// that differ are enough, and the legend has all of them.
function withoutNames(labels) {
  const parts = labels.map((one) => one.text.split(',')), name = (part) => part.slice(0, part.indexOf('='));
  const alike = labels.length > 1 && parts.every((own) => own.length === parts[0].length && own.every((part, i) => part.includes('=') && name(part) === name(parts[0][i])));
  if (!alike) return labels;
  const differs = parts[0].map((part, i) => parts.some((own) => own[i] !== part));
  return labels.map((one, l) => ({...one, text: parts[l].filter((_, i) => differs[i]).map((part) => part.slice(part.indexOf('=') + 1)).join(', ')}));
}

// As many digits as tell neighbouring ticks apart.
function digitsOf(splits) {
  const shown = splits.filter((t) => t !== null && Number.isFinite(t));
  const step = Math.min(...shown.slice(1).map((t, i) => Math.abs(t - shown[i]))), largest = Math.max(...shown.map(Math.abs));
  return step > 0 && largest > 0 && Number.isFinite(step) ? Math.max(3, Math.min(12, Math.ceil(Math.log10(largest / step)) + 1)) : 3;
}

function drawLabels(u, labels, room) {
  const ratio = devicePixelRatio || 1, {left, top, width, height} = u.bbox, context = u.ctx;
  const placed = labels.map((one) => ({...one, y: u.valToPos([...one.ends].sort((a, b) => a - b)[one.ends.length >> 1], 'y', true)}))
    .filter((one) => Number.isFinite(one.y)).sort((a, b) => a.y - b.y);
  const gap = labelHeight * ratio;
  if (!placed.length || placed.length * gap > height + gap) return;  // more than fit: the legend and the colours' key remain
  placed.forEach((one, i) => { one.y = Math.max(one.y, i ? placed[i - 1].y + gap : top + gap / 3); });
  for (let i = placed.length - 1; i >= 0; --i) placed[i].y = Math.min(placed[i].y, i === placed.length - 1 ? top + height : placed[i + 1].y - gap);
  context.save();
  context.font = `${12 * ratio}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  for (const one of placed) {
    context.fillStyle = one.colour;
    context.fillText(shortened(one.text, Math.floor(room / 6.2)), left + width + 6 * ratio, one.y);
  }
  context.restore();
}

// series: [{name, x, y, colour, width, dash, points, faint, label}]; y may hold null (a gap); label null: no name at the end.
export function lineChart({id, title, xLabel, wholeX = false, series, height = 280, legend = true, log = false, share, format = short}) {
  series = series.filter((one) => one.x.length > 0 && one.y.some((v) => v !== null));
  if (!series.length) return null;
  const logarithmic = isLogarithmic(series, log), labels = endLabels(series);
  const room = (width) => width < 420 ? 0 : Math.min(width * 0.3, 12 + 6.4 * Math.max(0, ...labels.map((one) => one.text.length)));
  // As tall as the chart will be, so that a redraw does not move the page.
  const place = h('div', {class: 'plot', style: {'min-height': `${height + (legend ? 24 : 0)}px`}});
  const figure = h('figure', {class: 'chart', id, role: 'group', 'aria-label': title},
    h('figcaption', null, title, logarithmic ? h('span', {class: 'muted'}, ' (log axis)') : null), place,
    h('p', {class: 'sr'}, series.map((one) => {
      const [low, high] = bounds(one.y);
      return `${one.name}: ${one.x.length} points, from ${format(low)} to ${format(high)}. `;
    })));
  const data = uPlot.join(series.map((one) => [one.x, one.y]));
  const axis = {
    stroke: state.colour('muted'), grid: {stroke: state.colour('grid'), width: 1}, ticks: {stroke: state.colour('grid'), width: 1, size: 5},
    font, labelFont: font,
  };
  const range = (u, low, high) => {
    if (low === null || high === null) return [0, 1];
    if (logarithmic) return [low / 1.15, high * 1.15];
    const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [low >= 0 && low - margin < 0 ? 0 : low - margin, high + margin];
  };
  const options = (width) => ({
    width, height,
    padding: [10, Math.max(14, room(width)), 0, 0],
    legend: {show: legend, live: true, markers: {width: 0, fill: (u, i) => i ? series[i - 1].colour : 'transparent'}},
    cursor: {drag: {x: true, y: false}, focus: {prox: 24}, sync: share ? {key: share} : undefined, points: {size: 7}},
    focus: {alpha: 0.35},
    scales: {x: {time: false}, y: {distr: logarithmic ? 3 : 1, range}},
    axes: [{...axis, label: xLabel, labelSize: 20, size: 34, incrs: wholeX ? wholeIncrements : increments, values: (u, splits) => splits.map((t) => short(t, 6))},
           {...axis, size: 62, incrs: increments, ...(logarithmic ? {splits: (u, i, low, high) => logTicks(low, high), filter: (u, splits) => splits} : {}),
            values: (u, splits) => splits.map((t) => t === null ? '' : format(t, logarithmic ? 3 : digitsOf(splits), true))}],
    series: [{label: xLabel || 'x', value: (u, v) => v === null ? '–' : short(v, 6)}, ...series.map((one) => ({
      label: one.name, stroke: one.colour, width: one.width || 2, dash: one.dash && one.dash.length ? one.dash : undefined,
      alpha: one.faint ? 0.4 : 1,
      points: {show: one.points === true || (one.points === undefined && one.x.length <= 40), size: 5, fill: one.colour},
      value: (u, v) => v === null || v === undefined ? '–' : format(v, 5),
    }))],
    hooks: {
      draw: [(u) => { if (room(u.width)) drawLabels(u, labels, room(u.width)); }],
      setScale: [(u, key) => {
        if (key !== 'x' || !id) return;
        const {min, max} = u.scales.x, low = data[0][0], high = data[0][data[0].length - 1];
        state.remember('zoom-' + id, min > low || max < high ? [min, max] : null);
      }],
    },
  });
  let plot = null;
  const build = (width) => {
    const zoom = id && state.get('zoom-' + id, null);
    plot = new uPlot(options(width), data, place);
    figure.chart = plot;  // for the tests, and for the curious in the console
    if (zoom) plot.setScale('x', {min: zoom[0], max: zoom[1]});
  };
  const observer = new ResizeObserver((entries) => {
    const width = Math.floor(entries[0].contentRect.width);
    if (width < 50) return;
    if (!plot) build(width);
    else if (plot.width !== width) plot.setSize({width, height});
  });
  observer.observe(place);
  alive.add({stop: () => { observer.disconnect(); if (plot) plot.destroy(); }});
  return figure;
}
