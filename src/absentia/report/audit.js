// Audits: charts of all absences, or with the chosen one set off. Each absence has one colour and symbol throughout.
"use strict";
const audit = (() => {
  const {plot, room, tip, valueOf, FONT, NEUTRAL, SOFT, SYMBOLS} = charts;
  const FAR_APART = 20;  // times the usual, above which a scale is logarithmic
  const FAR_LENGTHS = 10;  // ratio of lengths, above which their scale is logarithmic
  const faint = (chosen, method) => (chosen === "" || Number(chosen) === method ? 1 : 0.22);
  const colourOf = (data, method) => data.looks[method][0];
  const symbolOf = (data, method) => ({fill: colourOf(data, method), symbol: SYMBOLS[data.looks[method][1]]});

  // One figure of each absence, with two standard errors. Marks are {at, text}: dashed lines, but for 0.
  function drawFigure(element, data, chosen, {key, label, marks = [], dots = [], log = false, usual = null}) {
    if (!element) return;  // nothing was measured
    const width = element.clientWidth;
    const texts = data.figures[key];
    const [lows, highs] = data.whiskers[key];
    const shown = d3.range(data.methods.length);
    const names = room(data.methods, width);
    const rows = shown.map((method) => {
      const value = data.values[key][method] ?? NaN;
      return {method, value, low: lows[method] ?? value, high: highs[method] ?? value, text: texts[method]};
    });
    const known = rows.filter((row) => Number.isFinite(row.value));
    const lines = marks.filter((mark) => mark.at != null);
    const side = d3.max(texts, (text) => text.length) * 6.8 + 18;
    const inner = Math.max(60, width - names.margin - side);
    const ends = [...known.flatMap((row) => [row.value, row.low, row.high]), ...dots.map((dot) => dot.value), ...lines.map((mark) => mark.at)];
    const {domain, start, ...scale} = log ? scaleOfLengths(known, ends, inner) : scaleOf(usual ?? medianSize(known), ends, inner);
    const [first, last] = d3.extent(lines, (mark) => mark.at);
    const anchor = (mark) => {
      if (lines.length < 2 || first === last) return "middle";
      return mark.at === first ? "end" : "start";
    };
    const colour = (row) => colourOf(data, row.method);
    const opacity = (row) => faint(chosen, row.method);
    plot(element, `${label} of each absence with two standard errors`, {
      width, height: Math.max(30, Math.min(46, 200 / rows.length)) * rows.length + 76,
      marginLeft: names.margin, marginRight: side, marginTop: 24, marginBottom: 42,
      x: {domain, grid: true, label, labelAnchor: "center", ...scale},
      y: {type: "band", domain: shown, padding: 0.3, label: null, tickSize: 0, tickFormat: (method) => names.name(data.methods[method])},
      marks: [
        ...(data.recommended ? [Plot.barX([0], {x1: domain[0], x2: domain[1], y: 0, fill: "var(--shade)", insetTop: -4, insetBottom: -4, className: "best"})] : []),
        ...lines.map((mark) => Plot.ruleX([mark.at], {stroke: NEUTRAL, strokeDasharray: mark.at === 0 ? null : "4 3", className: mark.at === 0 ? "zero" : "level"})),
        ...lines.map((mark) => Plot.text([mark.at], {x: mark.at, text: [mark.text], frameAnchor: "top", dy: -14, fill: SOFT, textAnchor: anchor(mark)})),
        Plot.barX(known, {x1: start, x2: "value", y: "method", fill: colour, fillOpacity: (row) => 0.3 * opacity(row), className: "bar"}),
        Plot.tickX(dots, {x: "value", y: "method", stroke: NEUTRAL, strokeOpacity: 0.6, className: "sample"}),
        Plot.ruleY(known, {x1: "low", x2: "high", y: "method", stroke: NEUTRAL, strokeWidth: 1.5, strokeOpacity: opacity, className: "whisker"}),
        ...known.map((row) => Plot.dot([row], {x: "value", y: "method", ...symbolOf(data, row.method), r: 5, opacity: opacity(row), className: "dot"})),
        Plot.text(rows, {y: "method", text: "text", frameAnchor: "right", textAnchor: "start", dx: 10, className: "shown", fillOpacity: opacity}),
        tip(rows, Plot.pointerY, (row) => `${data.methods[row.method]}\n${row.text}`, {y: "method", frameAnchor: "middle", preferredAnchor: "bottom"}),
      ],
    });
  }

  const medianSize = (rows) => d3.median(rows, (row) => Math.abs(row.value)) ?? 0;

  // A scale from 0, which is logarithmic beyond the usual if some figures are far larger.
  function scaleOf(usual, ends, width) {
    const domain = d3.extent([0, ...ends]);
    if (domain[0] === domain[1]) domain[1] += 1;
    if (usual > 0 && d3.max(ends, Math.abs) > FAR_APART * usual) {
      return {domain, start: 0, type: "symlog", constant: usual, ...powers(domain, usual, width)};
    }
    return {domain, start: 0, type: "linear", ...charts.ticks(domain, width)};
  }

  // A scale of numbers of interactions: from 0, or logarithmic from 1 if they are far apart.
  function scaleOfLengths(known, ends, width) {
    const [least, most] = d3.extent(known, (row) => row.value);
    if (!(most > FAR_LENGTHS * least)) {
      const domain = [0, d3.max(ends) ?? 1];
      return {domain, start: 0, type: "linear", ...charts.ticks(domain, width)};
    }
    const domain = [Math.min(1, d3.min(ends)), d3.max(ends)];
    return {domain, start: domain[0], type: "log", ...charts.decades(domain)};
  }

  // Ticks of a scale that is logarithmic beyond the usual: 0 and powers of ten on both sides, not too close.
  function powers([low, high], usual, width) {
    const last = Math.log10(d3.max([-low, high])), first = Math.min(Math.ceil(Math.log10(usual)), Math.floor(last));
    const step = Math.max(1, Math.ceil(((last - first + 1) * (low < 0 && high > 0 ? 2 : 1) * 44) / width));
    const sizes = d3.range(first, last + 1, step).map((power) => 10 ** power);
    const inside = (some) => [...some.map((size) => -size), 0, ...some].filter((tick) => tick >= low && tick <= high);
    const few = inside(sizes).length < 4;
    return {ticks: inside(few ? sizes.flatMap((size) => [size, 5 * size]) : sizes), tickFormat: d3.format("~g")};
  }

  // A line for each absence over numbers of players; `thin` are further lines, one for each absence, or none.
  function drawLines(element, data, chosen, {title, xLabel, yLabel, lines, thin = [], level, log}) {
    if (!element) return;  // nothing was measured
    const width = element.clientWidth;
    const points = lines.flat();
    const ys = [...points, ...thin.flat()].map((point) => point.y).concat(level == null ? [] : [level]);
    const scale = scaleOfLines(ys, level, log, points.length);
    const xs = d3.extent(points, (point) => point.x);
    const steps = points.length ? d3.ticks(...xs, Math.min(10, xs[1] - xs[0], width / 40)).filter(Number.isInteger) : [];
    plot(element, title, {
      width, height: 310, marginLeft: 56, marginTop: 24, marginBottom: 42,
      x: {label: xLabel, labelAnchor: "center", ticks: steps, tickFormat: "d"},
      y: {...scale.options, label: yLabel, grid: true, ticks: scale.axis.ticks},
      marks: [
        points.length ? charts.numbered(scale.axis) : null,
        level == null || !points.length ? null : Plot.ruleY([level], {stroke: NEUTRAL, strokeDasharray: "4 3", className: "level"}),
        ...thin.map((line, method) => Plot.line(line, {x: "x", y: "y", stroke: colourOf(data, method), strokeWidth: 1.2, strokeDasharray: "1 3", opacity: faint(chosen, method), className: "thin"})),
        ...lines.flatMap((line, method) => [
          Plot.line(line, {x: "x", y: "y", stroke: colourOf(data, method), strokeWidth: chosen !== "" && Number(chosen) === method ? 2.8 : 1.5, opacity: faint(chosen, method), className: "line"}),
          Plot.dot(line, {x: "x", y: "y", ...symbolOf(data, method), r: 3.4, opacity: faint(chosen, method)}),
        ]),
        tip(points, Plot.pointer, (point) => point.text, {x: "x", y: "y"}),
      ],
    });
  }

  // The vertical scale of lines: logarithmic if wanted, or beyond twice the level if some points are far above it.
  function scaleOfLines(ys, level, log, count) {
    if (!count) return {options: {type: "linear"}, axis: {ticks: []}};
    const [low, high] = d3.extent(ys);
    if (log) return {options: {type: "log", domain: [low, high]}, axis: charts.decades(ys)};
    const domain = [Math.min(0, low), high];
    if (level > 0 && high > 0.5 * FAR_APART * level) {
      return {options: {type: "symlog", constant: 2 * level, domain}, axis: powers(domain, 2 * level, 400)};
    }
    return {options: {type: "linear", domain}, axis: charts.ticks(domain, 500)};
  }

  const line = (data, rows, xs, word, positive) => rows.map((texts, method) =>
    texts.map((text, index) => ({x: xs[index], y: valueOf(text), text: `${data.methods[method]}, ${word} ${xs[index]}\n${text}`}))
      .filter((point) => (positive ? point.y > 0 : Number.isFinite(point.y))));

  function drawAgreement(element, data, chosen) {
    const width = Math.min(element.clientWidth, 130 * data.methods.length + 200), count = data.methods.length;
    const names = room(data.methods, width), side = (width - names.margin - 10) / count, small = side < 30;
    const cells = data.agreement.flatMap((texts, row) => texts.map((text, column) => ({row, column, text, value: valueOf(text)})));
    const shown = (cell) => (chosen === "" || Number(chosen) === cell.row || Number(chosen) === cell.column ? 1 : 0.25);
    const below = side < 60 ? names.margin * 0.75 : 26, letters = Math.floor(side / 7);
    plot(element, "Rank correlation of Shapley values between absences", {
      width, height: Math.min(46, side) * count + below + 14, marginLeft: names.margin, marginRight: 10, marginTop: 8, marginBottom: below,
      x: {type: "band", domain: d3.range(count), label: null, tickFormat: (method) => (side < 60 ? names.name(data.methods[method]) : charts.shorten(data.methods[method], letters)), tickRotate: side < 60 ? -45 : 0, tickSize: 0, padding: 0.04},
      y: {type: "band", domain: d3.range(count), label: null, tickFormat: (method) => names.name(data.methods[method]), tickSize: 0, padding: 0.04},
      marks: [
        Plot.cell(cells, {x: "column", y: "row", fill: "currentColor", fillOpacity: (cell) => (Number.isNaN(cell.value) ? 0 : 0.85 * shown(cell) * ((cell.value + 1) / 2) ** 2.5), className: "cell"}),
        Plot.text(cells, {x: "column", y: "row", fontSize: small ? 9 : FONT, text: "text", fill: (cell) => (shown(cell) === 1 && cell.value > 0.75 ? "var(--paper)" : "currentColor")}),
        tip(cells, Plot.pointer, (cell) => `${data.methods[cell.row]} and ${data.methods[cell.column]}\n${cell.text}`, {x: "column", y: "row"}),
      ],
    });
  }

  function draw(section, data, chosen) {
    const at = (name) => section.querySelector(`[data-chart="${name}"]`);
    const dots = chosen === "" ? [] : (data.perSample[chosen] ?? []).filter((value) => value != null).map((value) => ({method: Number(chosen), value}));
    const figure = (key, options) => drawFigure(at(key), data, chosen, {key, ...options});
    figure("leak", {label: `leak, ${data.unit} →`, usual: data.inventionLimit, marks: [{at: data.leakLimit, text: "counts as a leak"}]});
    figure("invention", {label: `invention, ${data.unit} →`, usual: data.inventionLimit, marks: [{at: data.inventionLimit, text: "all there is to know"}]});
    figure("score", {label: `score, ${data.unit} →`, marks: [{at: data.prior, text: "prior"}]});
    figure("length", {label: "interactions needed →", log: true});
    figure("distance", {label: "distance →", marks: [{at: 1, text: "the data"}]});
    figure("R", {label: "R →", marks: [{at: 0, text: "noise"}, {at: data.unmasked, text: "unmasked"}], dots});
    figure("strength", {label: "Σ|U| →"});
    drawLines(at("masking"), data, chosen, {
      title: "Score of masked samples by the number of present players", xLabel: "present players", yLabel: `score, ${data.unit}`,
      lines: line(data, data.scores, data.sizes, "players present:"), level: data.prior,
      thin: line(data, data.recalibrated ?? [], data.sizes, "players present:"),
    });
    drawLines(at("orders"), data, chosen, {
      title: "Strength by order of each absence", xLabel: "order: players in the interaction", yLabel: "mean |U| / |v(N) − v(∅)|",
      lines: line(data, data.orders, d3.range(1, (data.orders[0]?.length ?? 0) + 1), "order", true), log: true,
    });
    drawAgreement(at("agreement"), data, chosen);
  }

  function start(section, data) {
    const radios = section.querySelectorAll("input[type=radio]");
    for (const place of section.querySelectorAll("[data-symbol]")) drawSymbol(place, data, Number(place.dataset.symbol));
    const redraw = () => {
      const chosen = [...radios].find((radio) => radio.checked)?.value ?? "";
      draw(section, data, chosen);
      for (const row of section.querySelectorAll(".all tr")) {
        [...row.cells].forEach((cell, column) => cell.classList.toggle("chosen", chosen !== "" && column === Number(chosen) + 1));
      }
    };
    for (const radio of radios) radio.addEventListener("change", redraw);
    return redraw;
  }

  function drawSymbol(place, data, method) {
    const svg = d3.create("svg").attr("viewBox", "-7 -7 14 14").attr("aria-hidden", "true");
    svg.append("path").attr("d", d3.symbol(SYMBOLS[data.looks[method][1]], 70)()).attr("fill", colourOf(data, method));
    place.replaceChildren(svg.node());
  }
  return {start};
})();
