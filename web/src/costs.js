// SPDX-License-Identifier: Apache-2.0
// What the network costs before and after, one row a quantity, with how many times less or more.
import {h, section} from './dom.js';
import {finite, short, text, whole} from './format.js';
import {table} from './table.js';

// Names as people say them, with the unit; what is not listed keeps its own.
const names = {
  macs: 'Multiply-accumulates (MACs)', flops: 'Floating-point operations (FLOPs)', bitops: 'Bit operations (BitOPs)', ebops: 'Effective bit operations per sample (EBOPs)', ebops_exact: 'Effective bit operations per sample, exact (EBOPs)',
  operand_bits: 'Operand bits (the labs’ “BitOPs”)', weight_bits: 'Weights, bits', weight_memory_bits: 'Weights and constants, bits', activation_memory_bits: 'Activations, bits', average_weight_bits: 'Bits per weight, average',
  average_activation_bits: 'Bits per activation, average', memory_density: 'Memory density against float32', parameters: 'Parameters',
};
const upIsGood = new Set(['memory_density']);

function named(key) {
  if (names[key]) return names[key];
  const words = key.replace(/_/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function amount(value) {
  const n = finite(value);
  return n === null ? text(value) : Number.isInteger(n) ? whole(n) : short(n);
}

function ratio(before, after) {
  const a = finite(before), b = finite(after);
  if (a === null || b === null || a < 0 || b < 0) return {content: '', key: null};
  if (a === b) return {content: 'same', key: 1};
  if (a === 0 || b === 0) return {content: '', key: null};
  return {content: b < a ? `${short(a / b, 3)}× less` : `${short(b / a, 3)}× more`, key: b / a};
}

function plainTable(rows) {
  const [head, ...body] = rows;
  return table({id: 'cost-table', caption: 'Costs', columns: head.map((title) => ({title: text(title)})), rows: body.map((row) => row.map(text))});
}

export function costs(transform) {
  const given = transform.costs;
  if (!given || typeof given !== 'object') return null;
  if (Array.isArray(given)) return given.length && given.every(Array.isArray) ? section('costs', 'Costs', plainTable(given)) : null;
  const record = (value) => value && typeof value === 'object' && !Array.isArray(value) && value.$symbol === undefined && value.$float === undefined;
  const nested = Object.entries(given).filter(([, value]) => record(value)), flat = Object.entries(given).filter(([, value]) => !record(value) && !Array.isArray(value));
  if (!nested.length && !flat.length) return null;
  // {before: {flops}, after: {flops}} and {flops: {before, after}} both read best with one row a quantity.
  const sides = nested.length > 0 && nested.every(([name]) => /^(before|after|original|transformed|quantized)$/i.test(name));
  const keys = [...new Set(nested.flatMap(([, value]) => Object.keys(value).filter((key) => !Array.isArray(value[key]))))];
  const heads = sides ? nested.map(([name]) => name) : keys;
  const quantities = sides ? keys.map((key) => [key, nested.map(([, value]) => value[key])]) : nested.map(([name, value]) => [name, keys.map((key) => value[key])]);
  const batch = quantities.find(([key]) => key === 'batch_size'), batchSize = batch ? finite(batch[1][0]) : null, two = heads.length === 2;
  const rows = quantities.filter(([key]) => key !== 'batch_size').map(([key, values]) => {
    const change = two ? ratio(values[0], values[1]) : null;
    if (change && change.key !== null && change.key !== 1) change.class = (change.key < 1) !== upIsGood.has(key) ? 'better' : 'worse';
    return [{content: named(key), title: key}, ...values.map((value) => ({content: value === undefined ? '–' : amount(value), key: finite(value)})), ...(two ? [change] : [])];
  });
  const caption = batchSize === null ? 'Costs' : batchSize === 1 ? 'Costs for one sample' : `Costs for a batch of ${whole(batchSize)}`;
  return section('costs', 'Costs', rows.length ? table({id: 'cost-table', caption, columns: [{title: 'quantity'}, ...heads.map((title) => ({title, class: 'num'})), ...(two ? [{title: 'ratio', class: 'num'}] : [])], rows}) : null,
    flat.length ? h('dl', {class: 'facts', id: 'cost-list'}, flat.map(([key, value]) => [h('dt', null, named(key)), h('dd', null, amount(value))])) : null);
}
