// SPDX-License-Identifier: Apache-2.0
// Places a graph in layers (Sugiyama et al., 1981): the layer is the longest path from an input, the
// order within a layer the mean place of the neighbours, a few sweeps. An edge over several layers gets
// a lane of its own in each, so that no line runs behind a box. A long graph is folded into columns, to
// be read like a newspaper; lines to the next column run in the gutter between.

const lane = 18;  // width an edge takes in a layer it only passes

function layersOf(nodes, inputs) {
  const layer = nodes.map(() => 0);
  // A node's inputs come before it in a verified graph; an edge backwards is drawn, not ranked.
  nodes.forEach((_, i) => inputs[i].forEach((from) => { if (from < i) layer[i] = Math.max(layer[i], layer[from] + 1); }));
  return layer;
}

export function layout(nodes, size) {
  const index = new Map(nodes.map((node, i) => [node.name, i]));
  const inputs = nodes.map((node) => (node.inputs || []).map((name) => index.get(name)).filter((i) => i !== undefined));
  const layer = layersOf(nodes, inputs), layers = [];
  const items = nodes.map((_, i) => ({width: size.width, layer: layer[i], before: [], after: [], node: true}));
  const edges = [];
  inputs.forEach((list, to) => [...new Set(list)].forEach((from) => {
    const way = [items[from]];
    for (let l = layer[from] + 1; l < layer[to]; ++l) way.push({width: lane, layer: l, before: [], after: []});
    way.push(items[to]);
    if (layer[to] > layer[from]) way.slice(1).forEach((item, k) => { item.before.push(way[k]); way[k].after.push(item); });
    edges.push({from, to, way});
  }));
  for (const item of items) (layers[item.layer] = layers[item.layer] || []).push(item);
  for (const edge of edges) for (const item of edge.way.slice(1, -1)) layers[item.layer].push(item);

  // Centres of a layer's items, packed in their order; the boxes among them are centred on zero.
  const pack = (list) => {
    let at = 0;
    for (const item of list) {
      const space = item.node ? size.gapX : 6;
      item.x = at + item.width / 2 + space / 2;
      at += item.width + space;
    }
    const boxes = list.filter((item) => item.node), middle = boxes.reduce((sum, item) => sum + item.x, 0) / boxes.length;
    for (const item of list) item.x -= middle;
  };
  layers.forEach(pack);
  const settle = (list, side) => {
    const wish = new Map(list.map((item, k) => [item, [item[side].length ? item[side].reduce((sum, one) => sum + one.x, 0) / item[side].length : item.x, k]]));
    list.sort((a, b) => wish.get(a)[0] - wish.get(b)[0] || wish.get(a)[1] - wish.get(b)[1]);
    pack(list);
  };
  for (let sweep = 0; sweep < 4; ++sweep) {
    for (const list of layers) settle(list, 'before');
    for (const list of [...layers].reverse()) settle(list, 'after');
  }

  const all = layers.flat(), left = Math.min(...all.map((item) => item.x - item.width / 2)), right = Math.max(...all.map((item) => item.x + item.width / 2));
  const breadth = right - left, row = size.height + size.gapY, margin = 30;
  const columns = Math.max(1, Math.min(Math.floor(size.fitting / (breadth + 70)), Math.ceil(layers.length / 6)));
  const per = Math.ceil(layers.length / columns), column = (item) => Math.floor(item.layer / per);
  const crossings = Array.from({length: columns + 1}, () => 0);  // lines in the gutter right of each column
  for (const edge of edges) edge.way.slice(1).forEach((item, k) => {
    if (column(item) !== column(edge.way[k]) || item.layer <= edge.way[k].layer) ++crossings[column(edge.way[k])];
  });
  const gutter = (c) => 36 + 7 * crossings[c], starts = [20];
  for (let c = 0; c < columns; ++c) starts.push(starts[c] + breadth + gutter(c));
  const depth = margin + 7 * Math.max(...crossings);
  for (const item of all) {
    item.x += starts[column(item)] - left;
    item.top = depth + item.layer % per * row;
    item.bottom = item.top + size.height;
  }

  const used = crossings.map(() => 0);
  for (const edge of edges) {
    let path = `M${edge.way[0].x} ${edge.way[0].bottom}`;
    edge.way.slice(1).forEach((item, k) => {
      const from = edge.way[k], last = k === edge.way.length - 2, end = item.top - (last ? 5 : 0);
      if (column(item) === column(from) && item.layer > from.layer) {
        const middle = (from.bottom + item.top) / 2;
        path += from.x === item.x ? `L${item.x} ${end}` : `C${from.x} ${middle} ${item.x} ${middle} ${item.x} ${end}`;
      } else {
        const c = column(from), shift = 7 * used[c]++, side = starts[c] + breadth + 18 + shift, low = from.bottom + 14 + shift, high = item.top - 14 - shift, r = 8;
        const across = side < item.x ? 1 : -1;
        path += `L${from.x} ${low - r}Q${from.x} ${low} ${from.x + r} ${low}L${side - r} ${low}Q${side} ${low} ${side} ${low - r}L${side} ${high + r}Q${side} ${high} ${side + across * r} ${high}L${item.x - across * r} ${high}Q${item.x} ${high} ${item.x} ${high + r}L${item.x} ${end}`;
      }
      if (!last) path += `L${item.x} ${item.bottom}`;
    });
    edge.path = path;
  }
  return {at: items.map((item) => ({x: item.x, y: item.top})), edges, width: starts[columns] + 10, height: depth + per * row - size.gapY + depth};
}
