// Charts in a common look, drawn by Observable Plot. Text from data only becomes text nodes.
"use strict";
const charts = (() => {
  const RAISES = "var(--raises)", LOWERS = "var(--lowers)", NEUTRAL = "var(--neutral)", SOFT = "var(--soft)";
  // Each absence has a colour and a symbol. Symbols tell absences apart in grey.
  const COLOURS = ["var(--lowers)", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "currentColor"];
  const hexagon = {
    draw(context, size) {
      const radius = Math.sqrt(size / 2.6);
      for (let corner = 0; corner < 6; corner++) {
        const turn = (corner * Math.PI) / 3;
        context[corner ? "lineTo" : "moveTo"](radius * Math.cos(turn), radius * Math.sin(turn));
      }
      context.closePath();
    },
  };
  const {symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolStar, symbolCross, symbolWye} = d3;
  // One more than colours, so that pairs of colour and symbol repeat late.
  const SYMBOLS = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolStar, symbolCross, hexagon, symbolWye];
  const look = (number) => ({colour: COLOURS[number % COLOURS.length], symbol: SYMBOLS[number % SYMBOLS.length]});
  const FONT = 12, LETTER = 7, BESIDE = 58, MOST_TICKS = 9;

  // Three digits, in full up to a million, as `written` of the library does.
  function writer(sign) {
    const short = d3.format(`${sign}.3~g`), full = d3.format(`${sign}.0f`);
    return (value) => (value == null ? "–" : (Math.abs(value) >= 1000 && Math.abs(value) < 1e6 ? full : short)(value));
  }
  const number = writer(""), plus = writer("+");
  const withError = (text, error) => (error ? `${text} ± ${number(error)}` : text);
  const shorten = (text, letters) => (text.length > letters ? `${text.slice(0, Math.max(1, letters - 1))}…` : text);
  // Shorten the name of a set such that a part of each player remains.
  function shortenSet(players, letters) {
    const joined = (most) => players.map((name) => shorten(name, most)).join(" & ");
    let most = d3.max(players, (name) => name.length);
    while (most > 3 && joined(most).length > letters) most--;
    return shorten(joined(most), letters);
  }
  const colourOf = (value) => (value >= 0 ? RAISES : LOWERS);

  // Room for names: as much as the longest needs, up to a share of the width.
  function room(names, width) {
    const most = Math.floor((width * 0.42) / LETTER);
    const letters = Math.min(most, d3.max(names, (name) => name.length) ?? 1);
    return {margin: Math.ceil(letters * LETTER) + 14, letters, name: (text) => shorten(text, letters)};
  }

  // A scale with room for the numbers beside the bars.
  function padded([low, high], sides, width) {
    const left = sides.includes(-1) ? BESIDE : 4, right = sides.includes(1) ? BESIDE : 4;
    const unit = (high - low || 1) / Math.max(width - left - right, 60);
    return [low - left * unit, high + right * unit];
  }

  // Ticks of a logarithmic axis: powers of ten, and their multiples by 2 and 5 if there are few.
  function decades(values) {
    const [low, high] = d3.extent(values);
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const powers = d3.range(first, last + 1, Math.max(1, Math.ceil((last - first) / MOST_TICKS))).map((power) => 10 ** power);
    const inside = (tick) => tick >= low * 0.999 && tick <= high * 1.001;
    const few = powers.filter(inside).length < 3;
    return (few ? powers.flatMap((power) => [power, 2 * power, 5 * power]) : powers).filter(inside);
  }

  function plot(element, title, options) {
    const svg = Plot.plot({style: {fontSize: `${FONT}px`, background: "transparent"}, ariaLabel: title, ...options});
    svg.setAttribute("role", "img");
    element.replaceChildren(svg);
  }

  // Wrap text into lines that fit on a phone.
  function wrap(text, letters = 24) {
    const lines = [""];
    for (const word of text.split(" ").flatMap((word) => word.match(new RegExp(`.{1,${letters}}`, "gsu")) ?? [""])) {
      const last = lines[lines.length - 1];
      if (last && last.length + word.length + 1 > letters) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines.join("\n");
  }

  // A tip with the text of the nearest mark; `near` is the direction in which it is searched.
  function tip(rows, near, text, channels) {
    const title = (row) => text(row).split("\n").map((line) => wrap(line)).join("\n");
    return Plot.tip(rows, near({...channels, title, fontSize: FONT, lineHeight: 1.25, lineWidth: 40}));
  }

  // Rows {name, value, error, from, text, hollow}: a bar of length `value` that starts at `from` (default 0).
  function bars(element, rows, {title, label, lines = [], signs = true}) {
    const width = element.clientWidth;
    const names = room(rows.map((row) => row.name), width);
    const start = (row) => row.from ?? 0, end = (row) => start(row) + row.value;
    const ends = rows.flatMap((row) => [start(row), end(row), end(row) + 2 * (row.error ?? 0), end(row) - 2 * (row.error ?? 0)]);
    const levels = lines.length ? lines.map((line) => line.at) : [0], halo = {stroke: "var(--paper)", strokeWidth: 3};
    const sides = rows.map((row) => (row.value < 0 ? -1 : 1));
    const [left, right] = d3.extent(levels);
    const y = (_, index) => index;
    plot(element, title, {
      width, height: 22 * rows.length + 74, marginLeft: names.margin, marginRight: 8, marginTop: 24, marginBottom: 42,
      x: {domain: padded(d3.extent([...ends, ...levels]), sides, width - names.margin - 8), grid: true, label, labelAnchor: "center", ticks: Math.max(3, Math.min(7, width / 90)), tickFormat: number},
      y: {type: "band", domain: d3.range(rows.length), label: null, tickFormat: (index) => shortenSet(rows[index].players ?? [rows[index].name], names.letters), tickSize: 0, padding: 0.22},
      marks: [
        Plot.ruleX(levels, {stroke: NEUTRAL, strokeDasharray: lines.length ? "3 3" : null}),
        // The left name ends at its line and the right name begins at its line, so they do not overlap.
        ...lines.map((line, index) => Plot.text([line], {x: "at", text: "text", frameAnchor: "top", dy: -14, fill: SOFT, textAnchor: (left < right ? line.at === left : index === 0) ? "end" : "start"})),
        Plot.barX(rows, {
          x1: start, x2: end, y, className: "bar",
          fill: (row) => (row.hollow ? "transparent" : signs ? colourOf(row.value) : NEUTRAL),
          stroke: (row) => (signs ? colourOf(row.value) : NEUTRAL),
        }),
        rows.some((row) => row.error)
          ? Plot.ruleY(rows, {x1: (row) => end(row) - 2 * row.error, x2: (row) => end(row) + 2 * row.error, y, className: "whisker", stroke: "currentColor"})
          : null,
        ...[-1, 1].map((side) =>
          Plot.text(rows, {
            filter: (row) => (row.value < 0) === (side < 0),
            x: (row) => end(row) + side * 2 * (row.error ?? 0), y, dx: 5 * side, textAnchor: side < 0 ? "end" : "start",
            text: (row) => (signs ? plus(row.value) : number(row.value)), fill: "currentColor", ...halo,
          }),
        ),
        tip(rows, Plot.pointerY, (row) => row.text, {y, frameAnchor: "middle", preferredAnchor: "bottom"}),
      ],
    });
  }

  function columns(element, values, {title, label, first = 1}) {
    const width = element.clientWidth;
    const rows = values.map((value, index) => ({order: index + first, value}));
    plot(element, title, {
      width, height: 250, marginLeft: 50, marginTop: 24, marginBottom: 42,
      x: {label: "order: players in the interaction", labelAnchor: "center", tickFormat: "d"},
      y: {label, grid: true, tickFormat: "~%", ticks: 5},
      marks: [
        Plot.barY(rows, {x: "order", y: "value", fill: NEUTRAL, className: "bar"}),
        Plot.ruleY([0], {stroke: NEUTRAL}),
        tip(rows, Plot.pointerX, (row) => `order ${row.order}: ${d3.format(".1%")(row.value)}`, {x: "order", y: "value"}),
      ],
    });
  }

  // A falling curve on logarithmic axes, with a level to compare with.
  function curve(element, rows, {title, xLabel, yLabel, level, step, text, logX = true, percent = false}) {
    const width = element.clientWidth;
    const shown = rows.filter((row) => row.y > 0);
    const log = shown.length > 1 && d3.max(shown, (row) => row.y) > 20 * d3.min(shown, (row) => row.y);
    plot(element, title, {
      width, height: 250, marginLeft: 62, marginTop: 24, marginRight: 24, marginBottom: 42,
      x: {type: logX ? "log" : "linear", label: xLabel, labelAnchor: "center", ticks: logX ? decades(shown.map((row) => row.x)) : Math.max(2, Math.min(6, width / 110)), tickFormat: "~s"},
      y: {type: log ? "log" : "linear", label: yLabel, grid: true, ticks: log ? decades(shown.map((row) => row.y)) : 5, tickFormat: percent ? (share) => `${number(100 * share)}%` : number},
      marks: [
        level ? Plot.ruleY([level], {stroke: NEUTRAL, strokeDasharray: "3 3"}) : null,
        Plot.line(shown, {x: "x", y: "y", stroke: LOWERS, curve: step ? "step-after" : "linear"}),
        shown.length <= 40 ? Plot.dot(shown, {x: "x", y: "y", fill: LOWERS, r: 3}) : null,
        tip(shown, Plot.pointerX, text, {x: "x", y: "y"}),
      ],
    });
  }

  function image(address, title) {
    const picture = document.createElement("img");
    picture.alt = title;
    picture.src = address;
    return picture;
  }

  function framed(title, content) {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    caption.textContent = title;
    figure.append(caption, content);
    return figure;
  }

  return {bars, columns, decades, curve, plot, tip, room, look, number, plus, withError, image, framed, FONT, NEUTRAL, SOFT, LOWERS, RAISES};
})();
