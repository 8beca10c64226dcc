// SPDX-License-Identifier: Apache-2.0
// Elements from plain values. Text always enters as a text node: no name can become markup.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

// A titled part of the page; with no content it is left out.
export function section(id, title, ...content) {
  const inside = content.flat(Infinity).filter(Boolean);
  if (!inside.length) return null;
  return h('section', {id, class: 'card', 'aria-labelledby': id + '-title'}, h('h2', {id: id + '-title'}, title), ...inside);
}

export function note(...content) { return h('p', {class: 'note'}, ...content); }

// A row of buttons of which one is chosen.
export function choice(label, options, chosen, choose) {
  return h('div', {class: 'choice', role: 'group', 'aria-label': label},
    h('span', {class: 'choice-label'}, label),
    options.map(([value, text]) => h('button', {
      type: 'button', 'aria-pressed': String(value === chosen), onclick: () => choose(value),
    }, text)));
}

// A long name breaks at its commas, nowhere else: learning_rate=1e-2,seed=0.
export function breakable(name) {
  return h('span', null, String(name).split(/(?<=,)/).map((part) => h('span', {class: 'part'}, part)));
}
