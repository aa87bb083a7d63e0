// Axes: ticks that can be told apart, and room for names. Ticks are the only numbers that scripts write.
"use strict";
const axes = (() => {
  const LETTER = 7;  // approximate width of a letter in pixels
  const NAMES_SHARE = 0.42;  // share of a chart's width that names may take
  const MOST_DECADES = 9;
  const TICK_WIDTH = 90;  // pixels between ticks of a linear axis
  const POWER_WIDTH = 44;  // pixels between powers of ten

  // Leave out the middle of a long text, because names often differ at their ends.
  function shorten(text, letters) {
    if (text.length <= letters) return text;
    const end = Math.floor((letters - 1) / 2);
    const start = Math.max(1, letters - 1 - end);
    const ending = end > 0 ? text.slice(-end) : "";
    return `${text.slice(0, start)}…${ending}`;
  }

  // Room for names: as much as the longest needs, up to a share of the width.
  function room(names, width) {
    const most = Math.floor((width * NAMES_SHARE) / LETTER);
    const longest = d3.max(names, (name) => name.length) ?? 1;
    const letters = Math.min(most, longest);
    return {margin: Math.ceil(letters * LETTER) + 14, letters, name: (text) => shorten(text, letters)};
  }

  // Whether all names fit beside a chart of this width without shortening.
  function fit(names, width) {
    return d3.max(names, (name) => name.length) * LETTER <= NAMES_SHARE * width;
  }

  // Ticks of a linear axis, with enough decimals to tell them apart.
  function ticks([low, high], width) {
    const count = Math.max(2, Math.min(7, width / TICK_WIDTH));
    return {ticks: d3.ticks(low, high, count), tickFormat: d3.format(formatOfTicks(low, high, count))};
  }

  function formatOfTicks(low, high, count) {
    const step = d3.tickStep(low, high, count) || 1;
    const largest = Math.max(Math.abs(low), Math.abs(high));
    const plain = largest < 1e6 && (step >= 1e-6 || largest >= 0.001);
    if (plain) return `.${d3.precisionFixed(step)}f`;
    return `.${Math.max(0, d3.precisionRound(step, largest) - 1)}e`;
  }

  // Ticks of a logarithmic axis: powers of ten, and their multiples by 2 and 5 if there are few.
  function decades(values) {
    const [low, high] = d3.extent(values);
    const first = Math.floor(Math.log10(low));
    const last = Math.ceil(Math.log10(high));
    const step = Math.max(1, Math.ceil((last - first) / MOST_DECADES));
    const powers = d3.range(first, last + 1, step).map((power) => 10 ** power);
    const isInside = (tick) => tick >= low * 0.999 && tick <= high * 1.001;
    let found = powers.filter(isInside);
    if (found.length < 3) found = powers.flatMap((power) => [power, 2 * power, 5 * power]).filter(isInside);
    if (found.length === 0) found = [low, high];
    return {ticks: found, tickFormat: d3.format("~g")};
  }

  // Ticks of a scale that is logarithmic beyond the usual size: 0, and powers of ten on both sides, not too close.
  function powers([low, high], usual, width) {
    const last = Math.log10(d3.max([-low, high]));
    const first = Math.min(Math.ceil(Math.log10(usual)), Math.floor(last));
    const sides = low < 0 && high > 0 ? 2 : 1;
    const step = Math.max(1, Math.ceil(((last - first + 1) * sides * POWER_WIDTH) / width));
    const sizes = d3.range(first, last + 1, step).map((power) => 10 ** power);
    let found = ticksOnBothSides(sizes, low, high);
    if (found.length < 4) found = ticksOnBothSides(sizes.flatMap((size) => [size, 5 * size]), low, high);
    return {ticks: found, tickFormat: d3.format("~g")};
  }

  function ticksOnBothSides(sizes, low, high) {
    const all = [...sizes.map((size) => -size), 0, ...sizes];
    return all.filter((tick) => tick >= low && tick <= high);
  }

  // The vertical axis with a number at each tick: by default the library omits some on logarithmic scales.
  function numbered(axis, unit = "") {
    return Plot.axisY(axis.ticks, {text: (value) => axis.tickFormat(value) + unit});
  }

  return {decades, fit, numbered, powers, room, shorten, ticks, LETTER};
})();
