// SPDX-License-Identifier: Apache-2.0
// Line charts with uPlot: built when their place on the page has a width, resized with it.
import uPlot from 'uplot';
import {h} from './dom.js';
import {short} from './format.js';
import * as state from './state.js';

const alive = new Set();

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

const positive = (series) => series.every((one) => one.y.every((v) => v === null || v > 0));

// series: [{name, x, y, colour, width, dash, points, faint}]; y may hold null (a gap).
export function lineChart({id, title, xLabel, series, height = 280, legend = true, log = false, share, format = short}) {
  series = series.filter((one) => one.x.length > 0 && one.y.some((v) => v !== null));
  if (!series.length) return null;
  // As tall as the chart will be, so that a redraw does not move the page.
  const place = h('div', {class: 'plot', style: {'min-height': `${height + (legend ? 24 : 0)}px`}});
  const figure = h('figure', {class: 'chart', id, role: 'group', 'aria-label': title},
    h('figcaption', null, title), place,
    h('p', {class: 'sr'}, series.map((one) => {
      const [low, high] = bounds(one.y);
      return `${one.name}: ${one.x.length} points, from ${short(low)} to ${short(high)}. `;
    })));
  const data = uPlot.join(series.map((one) => [one.x, one.y]));
  const axis = {
    stroke: state.colour('muted'), grid: {stroke: state.colour('grid'), width: 1}, ticks: {stroke: state.colour('grid'), width: 1, size: 5},
    font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif',
  };
  const options = (width) => ({
    width, height,
    padding: [10, 14, 0, 0],
    legend: {show: legend, live: true, markers: {width: 0, fill: (u, i) => i ? series[i - 1].colour : 'transparent'}},
    cursor: {drag: {x: true, y: false}, focus: {prox: 24}, sync: share ? {key: share} : undefined, points: {size: 7}},
    focus: {alpha: 0.35},
    scales: {x: {time: false}, y: log && positive(series) ? {distr: 3} : {range: (u, low, high) => {
      if (low === null || high === null) return [0, 1];
      const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
      return [low >= 0 && low - margin < 0 ? 0 : low - margin, high + margin];
    }}},
    axes: [{...axis, label: xLabel, labelSize: 20, size: 34, values: (u, ticks) => ticks.map((t) => short(t, 3))},
           {...axis, size: 62, values: (u, ticks) => ticks.map((t) => t === null ? '' : format(t, 3))}],
    series: [{label: xLabel || 'x', value: (u, v) => v === null ? '–' : short(v, 6)}, ...series.map((one) => ({
      label: one.name, stroke: one.colour, width: one.width || 2, dash: one.dash && one.dash.length ? one.dash : undefined,
      alpha: one.faint ? 0.4 : 1,
      points: {show: one.points === true || (one.points === undefined && one.x.length <= 40), size: 5, fill: one.colour},
      value: (u, v) => v === null || v === undefined ? '–' : format(v, 5),
    }))],
    hooks: {setScale: [(u, key) => {
      if (key !== 'x' || !id) return;
      const {min, max} = u.scales.x, low = data[0][0], high = data[0][data[0].length - 1];
      state.remember('zoom-' + id, min > low || max < high ? [min, max] : null);
    }]},
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
