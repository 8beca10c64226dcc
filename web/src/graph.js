// SPDX-License-Identifier: Apache-2.0
// The graph as a drawing: boxes with operation, shape and format; zoom, pan, and a panel with the
// metadata of the node that was clicked.
import {h, section, svg} from './dom.js';
import {shape, shortened, text} from './format.js';
import {layout} from './layout.js';
import * as state from './state.js';

const box = {width: 236, height: 66, gapX: 34, gapY: 34};
const narrow = () => window.innerWidth < 700;

function formatText(format) {
  if (format === null || format === undefined || format === '') return '';
  if (typeof format === 'object' && !Array.isArray(format) && !format.$symbol) {
    const values = [...new Set(Object.values(format).map(text))];
    return values.length === 1 ? values[0] : Object.entries(format).map(([key, value]) => `${key} ${text(value)}`).join(', ');
  }
  // 'data_in integer 8/4, weight integer 8/6' says the family twice: 'integer 8/4, 8/6'.
  const parts = (text(format).match(/[^,(]+(\([^)]*\))?/g) || []).map((part) => part.trim().replace(/^\S+ (?=\S)/, ''));
  const families = new Set(parts.map((part) => part.split(/[ (]/)[0])), names = [...new Set(parts)];
  if (names.length === 1) return names[0];
  return families.size === 1 && parts.every((part) => part.includes(' ')) ? `${[...families][0]} ${names.map((name) => name.slice(name.indexOf(' ') + 1)).join(', ')}` : text(format);
}

// Nested values as an indented list.
function tree(value) {
  const simple = (v) => v === null || typeof v !== 'object' || v.$symbol !== undefined || v.$float !== undefined || (Array.isArray(v) && v.every((x) => x === null || typeof x !== 'object'));
  if (simple(value)) return h('span', {class: 'leaf'}, text(value));
  const entries = Array.isArray(value) ? value.map((v, i) => [String(i), v]) : Object.entries(value);
  return h('ul', {class: 'tree'}, entries.map(([key, item]) => h('li', null, h('span', {class: 'key'}, key), simple(item) ? [' ', tree(item)] : tree(item))));
}

function details(node) {
  const facts = [['kind', node.kind], ['target', node.target], ['op', node.op], ['class', node.class], ['inputs', (node.inputs || []).join(', ')], ['shape', shape(node.shape)], ['format', formatText(node.format)]]
    .filter(([, value]) => value !== null && value !== undefined && value !== '');
  return [h('h3', null, text(node.name)), h('dl', {class: 'facts'}, facts.map(([key, value]) => [h('dt', null, key), h('dd', null, text(value))])),
    node.meta ? [h('h4', null, 'Metadata'), tree(node.meta)] : null].flat().filter(Boolean);
}

// Drag to pan, pinch or control-wheel to zoom, buttons for both.
function navigate(picture, content, width, height) {
  const key = 'graph-view-' + width;
  const view = state.get(key, {scale: 1, x: 0, y: 0});
  const apply = () => {
    content.setAttribute('transform', `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.scale.toFixed(4)})`);
    state.remember(key, view);
  };
  const local = (event) => {
    const area = picture.getBoundingClientRect(), ratio = picture.viewBox.baseVal.width / area.width;
    return {x: (event.clientX - area.left) * ratio, y: (event.clientY - area.top) * ratio};
  };
  const zoom = (factor, at = {x: picture.viewBox.baseVal.width / 2, y: picture.viewBox.baseVal.height / 2}) => {
    const scale = Math.min(5, Math.max(0.1, view.scale * factor)), change = scale / view.scale;
    Object.assign(view, {scale, x: at.x - (at.x - view.x) * change, y: at.y - (at.y - view.y) * change});
    apply();
  };
  const fit = () => {
    const area = picture.viewBox.baseVal, scale = Math.min(1.15, area.width / width, (area.height - 46) / height);
    Object.assign(view, {scale, x: (area.width - width * scale) / 2, y: (area.height - 46 - height * scale) / 2});
    apply();
  };
  const pointers = new Map();
  let moved = false;
  picture.addEventListener('pointerdown', (event) => { pointers.set(event.pointerId, local(event)); moved = false; });
  picture.addEventListener('pointermove', (event) => {
    if (!pointers.has(event.pointerId)) return;
    const now = local(event), before = pointers.get(event.pointerId);
    if (!moved && Math.hypot(now.x - before.x, now.y - before.y) < 4) return;
    if (!moved) picture.setPointerCapture(event.pointerId);
    moved = true;
    const others = [...pointers.entries()].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
    if (others.length) {
      const far = (p) => Math.hypot(p.x - others[0].x, p.y - others[0].y) || 1;
      zoom(far(now) / far(before), {x: (now.x + others[0].x) / 2, y: (now.y + others[0].y) / 2});
    } else {
      view.x += now.x - before.x;
      view.y += now.y - before.y;
      apply();
    }
    pointers.set(event.pointerId, now);
  });
  for (const end of ['pointerup', 'pointercancel', 'pointerleave']) picture.addEventListener(end, (event) => pointers.delete(event.pointerId));
  picture.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 240), local(event));
  }, {passive: false});
  if (state.get(key, null)) apply(); else fit();
  return {zoom, fit, dragged: () => moved};
}

export function graph(transform) {
  const nodes = (Array.isArray(transform.nodes) ? transform.nodes : []).filter((node) => node && typeof node.name === 'string');
  if (!nodes.length) return null;
  const placed = layout(nodes, {...box, fitting: narrow() ? 300 : 1000});
  const panel = h('aside', {class: 'panel', id: 'node-panel', 'aria-live': 'polite'});
  const groups = new Map();
  let controls = null;
  const select = (name) => {
    const node = nodes.find((one) => one.name === name);
    state.remember('graph-node', node ? name : null);
    for (const [key, group] of groups) group.classList.toggle('chosen', key === name);
    panel.replaceChildren(...(node ? details(node) : [h('p', {class: 'note'}, 'Choose a node to see its metadata.')]));
  };
  const drawn = nodes.map((node, i) => {
    const {x, y} = placed.at[i], format = formatText(node.format), kind = ['placeholder', 'output', 'get_attr'].includes(node.kind) ? node.kind : 'call';
    const group = svg('g', {class: `node ${kind}${format ? ' quantised' : ''}`, transform: `translate(${x - box.width / 2} ${y})`, tabindex: '0', role: 'button',
      'aria-label': `${node.name}, ${text(node.class || node.op || node.kind)}, ${shape(node.shape)} ${format}`, 'data-node': node.name,
      onclick: () => { if (!controls.dragged()) select(node.name); },
      onkeydown: (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); select(node.name); } }},
    svg('rect', {width: box.width, height: box.height, rx: 9, class: 'body'}), svg('rect', {width: 5, height: box.height - 18, x: 8, y: 9, rx: 2.5, class: 'stripe'}),
    svg('text', {x: 22, y: 21, class: 'name'}, shortened(node.name, 26)),
    svg('text', {x: 22, y: 38, class: 'type'}, shortened(node.class || node.op || node.kind || '', 28)),
    svg('text', {x: 22, y: 55, class: 'shape'}, shortened(shape(node.shape), format ? 10 : 28)),
    format ? svg('g', {transform: `translate(${box.width - 10} 45)`}, svg('rect', {x: -7 - 5.9 * Math.min(22, format.length), width: 7 + 5.9 * Math.min(22, format.length) + 1, height: 15, rx: 7, class: 'chip'}),
      svg('text', {x: -4, y: 11, 'text-anchor': 'end', class: 'format'}, shortened(format, 22))) : null,
    svg('title', null, [node.name, text(node.target || ''), shape(node.shape), format].filter(Boolean).join('\n')));
    groups.set(node.name, group);
    return group;
  });
  const wires = placed.edges.map((edge) => svg('path', {d: edge.path, class: 'edge', 'data-from': nodes[edge.from].name, 'data-to': nodes[edge.to].name, 'marker-end': 'url(#arrow)'}));
  const content = svg('g', null, wires, drawn);
  const width = Math.max(narrow() ? 300 : 620, Math.min(1100, placed.width + 20)), height = Math.round(Math.min(narrow() ? 2400 : 1500, Math.max(320, placed.height + 56)));
  const picture = svg('svg', {class: 'graph', viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': `Graph of ${nodes.length} nodes`},
    svg('defs', null, svg('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse'}, svg('path', {d: 'M0 0L8 4L0 8z', class: 'arrow'}))), content);
  controls = navigate(picture, content, placed.width, placed.height);
  select(state.get('graph-node', null));
  const button = (label, sign, action) => h('button', {type: 'button', 'aria-label': label, title: label, onclick: action}, sign);
  return section('graph', 'Graph', h('div', {class: 'graph-row'},
    h('div', {class: 'graph-box'}, h('div', {class: 'graph-tools'}, button('zoom in', '+', () => controls.zoom(1.3)), button('zoom out', '−', () => controls.zoom(1 / 1.3)), button('fit', '⤢', () => controls.fit())), picture), panel),
  h('p', {class: 'hint'}, 'Click a node for its metadata; drag to move, pinch or Ctrl + wheel to zoom.'));
}
