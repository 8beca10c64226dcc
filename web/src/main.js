// SPDX-License-Identifier: Apache-2.0
// Reads the data in the page and draws it: one run, several, or a list; again whenever the reader
// chooses something, and, when served by `ch view`, whenever the data changed.
import 'uplot/dist/uPlot.min.css';
import './style.css';
import {forgetCharts} from './chart.js';
import {comparison} from './compare.js';
import {h, note} from './dom.js';
import {evaluation} from './evaluation.js';
import {date, text} from './format.js';
import {graph} from './graph.js';
import {list, statusBadge} from './list.js';
import * as state from './state.js';
import {about, curves, figures, modelSummary, optionTable} from './training.js';
import {costs} from './costs.js';
import {beforeAfter, histograms, layers, missingNote, passes} from './transform.js';

let data = JSON.parse(document.getElementById('mase-data').textContent);
let trouble = null;

function single(run) {
  const transform = (run.run || {}).transform || {};
  return [missingNote(run), figures(run), curves(run), evaluation(run), graph(transform), histograms(transform), layers(transform), beforeAfter(transform), costs(transform), passes(run), modelSummary(run), optionTable(run), about(run)];
}

function header() {
  const runs = data.runs || [], info = runs.length === 1 && data.view === 'runs' ? runs[0].run || {} : {};
  const facts = [info.kind && text(info.kind), info.model && info.model.name && text(info.model.name), info.dataset && info.dataset.name && text(info.dataset.name), info.started && date(info.started)].filter(Boolean);
  const count = data.view === 'runs' && runs.length > 1 ? `${runs.length} runs compared` : null;
  return h('header', {class: 'top'},
    h('div', {class: 'title'}, data.home ? h('a', {href: data.home, class: 'home', 'aria-label': 'all runs'}, '←') : null, h('h1', null, data.title || 'Run'), statusBadge(info.status)),
    h('p', {class: 'subtitle'}, count || facts.join(' · ')),
    h('div', {class: 'tools'},
      h('button', {type: 'button', id: 'theme', onclick: () => state.set('theme', state.theme() === 'dark' ? 'light' : 'dark')}, state.theme() === 'dark' ? 'Light' : 'Dark'),
      h('button', {type: 'button', onclick: () => window.print()}, 'Print')));
}

function navigation(parts) {
  const links = parts.filter((part) => part && part.id && part.tagName === 'SECTION').map((part) => h('a', {href: '#' + part.id}, part.querySelector('h2').textContent));
  return links.length > 2 ? h('nav', {'aria-label': 'parts of this page'}, links) : null;
}

function draw(forcedTheme) {
  state.applyTheme(typeof forcedTheme === 'string' ? forcedTheme : null);
  forgetCharts();
  const runs = data.runs || [];
  const open = new Set([...document.querySelectorAll('details[open] > summary')].map((summary) => summary.textContent));
  const parts = (data.view === 'list' ? list(data) : runs.length === 1 ? single(runs[0]) : runs.length ? comparison(runs, data.sweep) : [note('This run is gone.')]).flat().filter(Boolean);
  const main = h('main', null, trouble ? h('p', {class: 'note trouble', role: 'status'}, trouble) : null, parts);
  for (const summary of main.querySelectorAll('details > summary')) if (open.has(summary.textContent)) summary.parentNode.open = true;
  const focus = document.activeElement && document.activeElement.id;
  document.body.replaceChildren(header(), ...[navigation(parts), main].filter(Boolean),
    h('footer', null, data.generator || 'ch', data.live ? ', live' : ''));
  if (focus) {
    const again = document.getElementById(focus);
    if (again) again.focus();
    if (again && again.type === 'search') again.setSelectionRange(again.value.length, again.value.length);
  }
}

async function poll() {
  let next = null, failure = null;
  try {
    const answer = await fetch(data.live.url, {cache: 'no-store'});
    if (answer.ok) next = await answer.json();
    else failure = answer.status === 404 ? 'This run is gone: its folder was removed or renamed. What you see is its last state.' : `The server answered ${answer.status}.`;
  } catch (error) {
    failure = 'The server does not answer. The page shows the last state and keeps trying.';
  }
  if (failure !== trouble || (next && next.digest !== data.digest)) {
    trouble = failure;
    if (next) data = next;
    const y = window.scrollY;
    draw();
    window.scrollTo(0, y);
  }
  setTimeout(poll, 1000 * (data.live.seconds || 2));
}

state.onChange(() => { const y = window.scrollY; draw(); window.scrollTo(0, y); });
if (window.matchMedia) matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw());
// Paper is white: charts are drawn again in the light colours.
window.addEventListener('beforeprint', () => draw('light'));
window.addEventListener('afterprint', () => draw());
draw();
if (data.live) setTimeout(poll, 1000 * (data.live.seconds || 2));
