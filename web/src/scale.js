// SPDX-License-Identifier: Apache-2.0
// Axes as people draw them: ticks at 1, 2 and 5 times a power of ten, whole numbers where the values
// are, and logarithms where they span decades.

export function niceStep(span, count, whole = false) {
  const rough = span / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough)), share = rough / power;
  const step = (share <= 1.0000001 ? 1 : share <= 2.0000001 ? 2 : share <= 5.0000001 ? 5 : 10) * power;
  return whole ? Math.max(1, step) : step;
}

// Round numbers inside [low, high], about `count` of them.
export function ticks(low, high, count = 5, whole = false) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, count, whole), digits = Math.max(0, -Math.floor(Math.log10(step)) + 1), result = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) result.push(Number((i * step).toFixed(Math.min(20, digits))));
  return result;
}

// Powers of ten; with 2 and 5 between them where there are few.
export function logTicks(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), result = [];
  const wanted = Math.log10(high / low) <= 2 ? [1, 2, 5] : [1], every = Math.max(1, Math.ceil((last - first) / 7));
  for (let power = first; power <= last; power += every) for (const factor of wanted) {
    const value = Number(`${factor}e${power}`);
    if (value >= low * 0.999999 && value <= high * 1.000001) result.push(value);
  }
  return result;
}

const decades = 30;  // a ratio beyond which a linear axis hides the small values

export function spansDecades(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    if (value <= 0) return false;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return high / low >= decades;
}

// 1, 2 and 5 times every power of ten, as increments.
export const increments = [];
for (let power = -16; power <= 16; ++power) for (const factor of [1, 2, 5]) increments.push(Number(`${factor}e${power}`));
export const wholeIncrements = increments.filter((step) => step >= 1);
