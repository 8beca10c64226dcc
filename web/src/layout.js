// SPDX-License-Identifier: Apache-2.0
// Places a graph in layers (Sugiyama et al., 1981, without dummy nodes): the layer is the longest
// path from an input, the order within a layer the mean place of the neighbours, a few sweeps. A
// long graph is folded into columns, to be read like a newspaper.

export function layout(nodes, size) {
  const index = new Map(nodes.map((node, i) => [node.name, i]));
  const inputs = nodes.map((node) => (node.inputs || []).map((name) => index.get(name)).filter((i) => i !== undefined));
  const users = nodes.map(() => []);
  inputs.forEach((list, i) => list.forEach((from) => users[from].push(i)));
  // A node's inputs come before it in a verified graph; an edge backwards is drawn, not ranked.
  const layer = nodes.map(() => 0);
  nodes.forEach((_, i) => inputs[i].forEach((from) => { if (from < i) layer[i] = Math.max(layer[i], layer[from] + 1); }));
  const layers = [];
  layer.forEach((l, i) => (layers[l] = layers[l] || []).push(i));
  const place = nodes.map(() => 0);
  layers.forEach((list) => list.forEach((i, k) => { place[i] = k - (list.length - 1) / 2; }));
  const settle = (list, neighbours) => {
    const wish = new Map(list.map((i) => [i, neighbours[i].length ? neighbours[i].reduce((sum, j) => sum + place[j], 0) / neighbours[i].length : place[i]]));
    list.sort((a, b) => wish.get(a) - wish.get(b) || a - b);
    list.forEach((i, k) => { place[i] = k - (list.length - 1) / 2; });
  };
  for (let sweep = 0; sweep < 4; ++sweep) {
    for (const list of layers) settle(list, inputs);
    for (const list of [...layers].reverse()) settle(list, users);
  }
  const widest = Math.max(...layers.map((list) => list.length), 1);
  const breadth = widest * (size.width + size.gapX) + size.gapX, row = size.height + size.gapY;
  const columns = Math.max(1, Math.min(Math.floor(size.fitting / breadth), Math.ceil(layers.length / 6)));
  const per = Math.ceil(layers.length / columns), column = (i) => Math.floor(layer[i] / per);
  const at = nodes.map((_, i) => ({x: breadth * (column(i) + 0.5) + place[i] * (size.width + size.gapX), y: size.gapY / 2 + layer[i] % per * row}));
  const edges = [];
  inputs.forEach((list, i) => list.forEach((from) => edges.push({from, to: i, far: layer[i] - layer[from] > 1, turn: column(i) !== column(from)})));
  return {at, edges, width: breadth * columns, height: per * row};
}
