// SPDX-License-Identifier: Apache-2.0
// Numbers and values as people read them. ch writes what JSON lacks as {"$float": "nan"} and
// {"$symbol": "torch.float32"}.

export function number(value) {
  if (typeof value === 'number') return value;
  if (value && typeof value === 'object' && typeof value.$float === 'string')
    return value.$float === 'inf' ? Infinity : value.$float === '-inf' ? -Infinity : NaN;
  return null;
}

export function finite(value) {
  const n = number(value);
  return n !== null && Number.isFinite(n) ? n : null;
}

export function short(value, digits = 4) {
  const n = number(value);
  if (n === null) return '–';
  if (!Number.isFinite(n)) return Number.isNaN(n) ? 'NaN' : n > 0 ? '∞' : '−∞';
  if (n === 0) return '0';
  const size = Math.abs(n);
  if (size < 1e-3 || size >= 1e7) return n.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, 'e');
  if (Number.isInteger(n)) return whole(n);
  return String(Number(n.toPrecision(digits)));
}

export function whole(value) {
  const n = finite(value);
  return n === null ? '–' : Math.round(n).toLocaleString('en-US');
}

// As base/figure.h rounds: halves away from zero, also those of a float's seven digits.
export function rounded(n, digits) {
  const power = 10 ** digits, scaled = Number((n * power).toPrecision(Math.abs(n * power) <= 1e4 ? 7 : 12));
  return (Math.sign(scaled) * Math.round(Math.abs(scaled)) / power).toFixed(digits);
}

export function percent(value, digits = 2) {
  const n = finite(value);
  return n === null ? '–' : rounded(100 * n, digits) + ' %';
}

// A share on an axis, where ticks are round, or under the pointer.
export function percentAxis(value, digits, tick) {
  const n = finite(value);
  return n === null ? '–' : tick ? `${Number((100 * n).toPrecision(6))} %` : percent(n);
}

// The difference of two shares.
export function pointsOf(before, after) {
  const a = finite(before), b = finite(after);
  return a === null || b === null ? '–' : `${b >= a ? '+' : '−'}${rounded(100 * Math.abs(b - a), 2)} points`;
}

export function shortened(value, letters) {
  const all = Array.from(text(value));
  return all.length > letters ? all.slice(0, Math.max(1, letters - 1)).join('') + '…' : all.join('');
}

// A path stands for its file: /a/b/best.ckpt is shown as best.ckpt.
export function fileName(value) {
  const whole = text(value);
  return /^[^\s]*\/[^/\s]+\/?$/.test(whole) ? whole.replace(/\/$/, '').replace(/^.*\//, '') : whole;
}

export function duration(value) {
  const n = finite(value);
  if (n === null) return '–';
  if (n < 1) return (1000 * n).toFixed(0) + ' ms';
  if (n < 60) return n.toFixed(1) + ' s';
  const total = Math.round(n), hours = Math.floor(total / 3600), minutes = Math.floor(total / 60) % 60;
  const two = (x) => String(x).padStart(2, '0');
  return hours ? `${hours} h ${two(minutes)} min` : `${minutes} min ${two(total % 60)} s`;
}

export function date(text) {
  if (typeof text !== 'string') return '–';
  return text.replace('T', ' ').replace(/(\.\d+)?(Z|[+-]\d\d:?\d\d)?$/, '');
}

// Any value on one line.
export function text(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (Number.isInteger(value)) return String(value);
  if (number(value) !== null) return short(value, 6);
  if (Array.isArray(value)) return '[' + value.map(text).join(', ') + ']';
  if (typeof value.$symbol === 'string') return value.$symbol;
  return Object.entries(value).map(([key, item]) => `${key}: ${text(item)}`).join(', ');
}

export function shape(value) {
  if (Array.isArray(value)) {
    if (value.every((item) => number(item) !== null)) return value.map((item) => String(number(item))).join(' × ');
    return value.map(shape).join(', ');
  }
  return value === null || value === undefined ? '' : text(value);
}

export function mean(values) { return values.reduce((sum, v) => sum + v, 0) / values.length; }

export function deviation(values) {
  if (values.length < 2) return 0;
  const m = mean(values);
  return Math.sqrt(values.reduce((sum, v) => sum + (v - m) ** 2, 0) / (values.length - 1));
}
