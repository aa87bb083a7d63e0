// Audits: charts of all absences, or with the chosen one set off. Each absence has one colour and symbol throughout.
"use strict";
const audit = (() => {
  const {plot, room, tip, valueOf, FONT, NEUTRAL, SOFT, SYMBOLS} = charts;
  const FAR_APART = 6;  // times the usual, above which a scale is logarithmic
  const faint = (chosen, method) => (chosen === "" || Number(chosen) === method ? 1 : 0.22);
  const colourOf = (data, method) => data.looks[method][0];
  const symbolOf = (data, method) => ({fill: colourOf(data, method), symbol: SYMBOLS[data.looks[method][1]]});

  // One figure of each absence, with two standard errors. Marks are {at, text}: dashed lines, but for 0.
  function drawFigure(element, data, chosen, {key, label, marks, dots = []}) {
    const values = data.values[key], errors = data.errors[key], texts = data.figures[key], width = element.clientWidth;
    const shown = d3.range(data.methods.length), names = room(data.methods, width);
    const rows = shown.map((method) => ({method, value: values[method] ?? NaN, error: errors[method] ?? 0, text: texts[method]}));
    const known = rows.filter((row) => Number.isFinite(row.value)), lines = marks.filter((mark) => mark.at != null);
    const side = d3.max(texts, (text) => text.length) * 6.8 + 18, inner = Math.max(60, width - names.margin - side);
    const ends = [0, ...known.flatMap((row) => [row.value - 2 * row.error, row.value + 2 * row.error]), ...dots.map((dot) => dot.value), ...lines.map((mark) => mark.at)];
    const usual = d3.median(known, (row) => Math.abs(row.value)) ?? 0;
    const far = usual > 0 && d3.max(ends, Math.abs) > FAR_APART * usual, domain = d3.extent(ends);
    if (domain[0] === domain[1]) domain[1] += 1;
    const axis = far ? powers(domain, usual, inner) : charts.ticks(domain, inner);
    const [first, last] = d3.extent(lines, (mark) => mark.at);
    plot(element, `${label} of each absence with two standard errors`, {
      width, height: Math.max(30, Math.min(46, 200 / rows.length)) * rows.length + 76, marginLeft: names.margin, marginRight: side, marginTop: 24, marginBottom: 42,
      x: {type: far ? "symlog" : "linear", ...(far ? {constant: usual} : {}), domain, grid: true, label, labelAnchor: "center", ...axis},
      y: {type: "band", domain: shown, padding: 0.3, label: null, tickSize: 0, tickFormat: (method) => names.name(data.methods[method])},
      marks: [
        ...(data.recommended ? [Plot.barX([0], {x1: domain[0], x2: domain[1], y: 0, fill: "var(--shade)", insetTop: -4, insetBottom: -4, className: "best"})] : []),
        ...lines.map((mark) => Plot.ruleX([mark.at], {stroke: NEUTRAL, strokeDasharray: mark.at === 0 ? null : "4 3", className: mark.at === 0 ? "zero" : "level"})),
        ...lines.map((mark) => Plot.text([mark.at], {x: mark.at, text: [mark.text], frameAnchor: "top", dy: -14, fill: SOFT, textAnchor: lines.length < 2 ? "middle" : mark.at === first ? (mark.at === last ? "middle" : "end") : "start"})),
        Plot.barX(known, {x1: 0, x2: "value", y: "method", fill: (row) => colourOf(data, row.method), fillOpacity: (row) => 0.3 * faint(chosen, row.method), className: "bar"}),
        Plot.tickX(dots, {x: "value", y: "method", stroke: NEUTRAL, strokeOpacity: 0.6, className: "sample"}),
        Plot.ruleY(known, {x1: (row) => row.value - 2 * row.error, x2: (row) => row.value + 2 * row.error, y: "method", stroke: NEUTRAL, strokeWidth: 1.5, strokeOpacity: (row) => faint(chosen, row.method), className: "whisker"}),
        ...known.map((row) => Plot.dot([row], {x: "value", y: "method", ...symbolOf(data, row.method), r: 5, opacity: faint(chosen, row.method), className: "dot"})),
        Plot.text(rows, {y: "method", text: "text", frameAnchor: "right", textAnchor: "start", dx: 10, className: "shown", fillOpacity: (row) => faint(chosen, row.method)}),
        tip(rows, Plot.pointerY, (row) => `${data.methods[row.method]}\n${row.text}`, {y: "method", frameAnchor: "middle", preferredAnchor: "bottom"}),
      ],
    });
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

  // A line for each absence over numbers of players.
  function drawLines(element, data, chosen, {title, xLabel, yLabel, lines, level, log}) {
    const width = element.clientWidth, points = lines.flat();
    const ys = [...points.map((point) => point.y), ...(level == null ? [] : [level])];
    const [low, high] = d3.extent(ys), far = !log && level > 0 && high > 4 * FAR_APART * level;
    const domain = log ? [low, high] : [Math.min(0, low ?? 0), high ?? 1];
    const axis = !points.length ? {ticks: []} : log ? charts.decades(ys) : far ? powers(domain, 2 * level, 400) : charts.ticks(domain, 500);
    const xs = d3.extent(points, (point) => point.x);
    plot(element, title, {
      width, height: 310, marginLeft: 56, marginTop: 24, marginBottom: 42,
      x: {label: xLabel, labelAnchor: "center", ...(points.length ? {ticks: d3.ticks(...xs, Math.min(10, xs[1] - xs[0], width / 40)).filter(Number.isInteger)} : {ticks: []}), tickFormat: "d"},
      y: {type: !points.length ? "linear" : log ? "log" : far ? "symlog" : "linear", ...(far ? {constant: 2 * level} : {}), ...(points.length ? {domain} : {}), label: yLabel, grid: true, ticks: axis.ticks},
      marks: [
        points.length ? charts.numbered(axis) : null,
        level == null || !points.length ? null : Plot.ruleY([level], {stroke: NEUTRAL, strokeDasharray: "4 3", className: "level"}),
        ...lines.flatMap((line, method) => [
          Plot.line(line, {x: "x", y: "y", stroke: colourOf(data, method), strokeWidth: chosen !== "" && Number(chosen) === method ? 2.8 : 1.5, opacity: faint(chosen, method), className: "line"}),
          Plot.dot(line, {x: "x", y: "y", ...symbolOf(data, method), r: 3.4, opacity: faint(chosen, method)}),
        ]),
        tip(points, Plot.pointer, (point) => point.text, {x: "x", y: "y"}),
      ],
    });
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
    drawFigure(at("evidence"), data, chosen, {key: "evidence", label: `leaks ← ${data.unit} at ∅ → invents`, marks: [{at: 0, text: "prior"}]});
    drawFigure(at("strength"), data, chosen, {key: "strength", label: "Σ|U| →", marks: []});
    drawFigure(at("R"), data, chosen, {key: "R", label: "R →", marks: [{at: 0, text: "noise"}, {at: data.unmasked, text: "unmasked"}], dots});
    if (at("distance")) drawFigure(at("distance"), data, chosen, {key: "distance", label: "distance →", marks: [{at: 1, text: "the data"}]});
    drawLines(at("masking"), data, chosen, {
      title: "Score of masked samples by the number of present players", xLabel: "present players", yLabel: `score, ${data.unit}`,
      lines: line(data, data.scores, data.sizes, "players present:"), level: data.prior,
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
