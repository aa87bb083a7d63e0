// Audits: charts of all absences, with the chosen one highlighted. Each absence has one colour and symbol throughout.
"use strict";
const audit = (() => {
  const {plot, tip, FONT, NEUTRAL, SOFT} = charts;
  const {SYMBOLS} = symbols;
  const NONE = "";  // the choice that highlights no absence
  const FAR_APART = 20;  // a scale is logarithmic if a figure exceeds this many times the usual size
  const FAR_LENGTHS = 10;  // the scale of lengths is logarithmic if their ratio exceeds this
  const FAINT = 0.22;  // opacity of absences that are not chosen
  const SHOWN_LETTER = 6.8;  // width of a letter of a figure in pixels
  const NARROW_CELL = 60;  // pixels; the names below narrower cells are slanted
  const SMALL_CELL = 30;  // pixels; the numbers in narrower cells are small

  const isChosen = (chosen, method) => chosen !== NONE && Number(chosen) === method;
  const opacityOf = (chosen, method) => (chosen === NONE || isChosen(chosen, method) ? 1 : FAINT);
  const colourOf = (data, method) => data.looks[method][0];
  const symbolOf = (data, method) => SYMBOLS[data.looks[method][1]];

  // One figure of each absence, with two standard errors. `levels` are lines, {at, text}, dashed except at 0. `dots` are
  // further values, {method, value}. `isLength` selects a scale of lengths; `usual` is the size of usual figures.
  function drawFigure(element, data, chosen, key, {label, levels = [], dots = [], isLength = false, usual = null}) {
    if (!element) return;  // nothing was measured
    const width = element.clientWidth;
    const names = axes.room(data.methods, width);
    const rows = figureRows(data, key);
    const known = rows.filter((row) => Number.isFinite(row.value));
    const lines = levels.filter((level) => level.at != null);
    const side = d3.max(rows, (row) => row.shown.length) * SHOWN_LETTER + 18;
    const inner = Math.max(60, width - names.margin - side);
    const ends = [
      ...known.flatMap((row) => [row.value, row.low, row.high]),
      ...dots.map((dot) => dot.value),
      ...lines.map((line) => line.at),
    ];
    const scale = isLength ? scaleOfLengths(known, ends, inner) : scaleOf(usual ?? medianSize(known), ends, inner);
    const {domain, start, ...axis} = scale;
    plot(element, `${label} of each absence with two standard errors`, {
      width,
      height: Math.max(30, Math.min(46, 200 / rows.length)) * rows.length + 76,
      marginLeft: names.margin,
      marginRight: side,
      marginTop: 24,
      marginBottom: 42,
      x: {domain, grid: true, label, labelAnchor: "center", ...axis},
      y: {
        type: "band",
        domain: d3.range(rows.length),
        padding: 0.3,
        label: null,
        tickSize: 0,
        tickFormat: (method) => names.name(data.methods[method]),
      },
      marks: [
        data.recommended ? bestMark(domain) : null,
        ...levelMarks(lines),
        ...valueMarks(data, chosen, known, start, dots),
        ...shownMarks(data, chosen, rows),
      ],
    });
  }

  // A row for each absence: its figure, the ends of its whisker, and the figure as shown.
  function figureRows(data, key) {
    const [lows, highs] = data.whiskers[key];
    return data.methods.map((_, method) => {
      const value = data.values[key][method] ?? NaN;
      return {
        method,
        value,
        low: lows[method] ?? value,
        high: highs[method] ?? value,
        shown: data.figures[key][method],
      };
    });
  }

  const medianSize = (rows) => d3.median(rows, (row) => Math.abs(row.value)) ?? 0;

  // The background of the recommended absence, which is the first.
  function bestMark([low, high]) {
    return Plot.barX([0], {
      x1: low,
      x2: high,
      y: 0,
      fill: "var(--shade)",
      insetTop: -4,
      insetBottom: -4,
      className: "best",
    });
  }

  // Lines at levels, with their names above them, placed so that they do not overlap.
  function levelMarks(lines) {
    const [first, last] = d3.extent(lines, (line) => line.at);
    const anchor = (line) => {
      if (lines.length < 2 || first === last) return "middle";
      return line.at === first ? "end" : "start";
    };
    const rules = lines.map(({at}) => {
      const isZero = at === 0;
      return Plot.ruleX([at], {
        stroke: NEUTRAL,
        strokeDasharray: isZero ? null : "4 3",
        className: isZero ? "zero" : "level",
      });
    });
    const names = lines.map((line) =>
      Plot.text([line.at], {
        x: line.at,
        text: [line.text],
        frameAnchor: "top",
        dy: -14,
        fill: SOFT,
        textAnchor: anchor(line),
      }),
    );
    return [...rules, ...names];
  }

  // A bar, a whisker and a symbol for each absence, and a line for each further value.
  function valueMarks(data, chosen, known, start, dots) {
    const opacity = (row) => opacityOf(chosen, row.method);
    return [
      Plot.barX(known, {
        x1: start,
        x2: "value",
        y: "method",
        fill: (row) => colourOf(data, row.method),
        fillOpacity: (row) => 0.3 * opacity(row),
        className: "bar",
      }),
      Plot.tickX(dots, {x: "value", y: "method", stroke: NEUTRAL, strokeOpacity: 0.6, className: "sample"}),
      Plot.ruleY(known, {
        x1: "low",
        x2: "high",
        y: "method",
        stroke: NEUTRAL,
        strokeWidth: 1.5,
        strokeOpacity: opacity,
        className: "whisker",
      }),
      ...known.map((row) =>
        Plot.dot([row], {
          x: "value",
          y: "method",
          fill: colourOf(data, row.method),
          symbol: symbolOf(data, row.method),
          r: 5,
          opacity: opacity(row),
          className: "dot",
        }),
      ),
    ];
  }

  // The figures beside the chart, and tips.
  function shownMarks(data, chosen, rows) {
    const linesOf = (row) => [data.methods[row.method], row.shown];
    return [
      Plot.text(rows, {
        y: "method",
        text: "shown",
        frameAnchor: "right",
        textAnchor: "start",
        dx: 10,
        className: "shown",
        fillOpacity: (row) => opacityOf(chosen, row.method),
      }),
      tip(rows, Plot.pointerY, linesOf, {y: "method", frameAnchor: "middle", preferredAnchor: "bottom"}),
    ];
  }

  // A scale from 0, logarithmic beyond the usual size if some figures are far larger.
  function scaleOf(usual, ends, width) {
    const domain = d3.extent([0, ...ends]);
    if (domain[0] === domain[1]) domain[1] += 1;
    if (usual > 0 && d3.max(ends, Math.abs) > FAR_APART * usual) {
      return {domain, start: 0, type: "symlog", constant: usual, ...axes.powers(domain, usual, width)};
    }
    return {domain, start: 0, type: "linear", ...axes.ticks(domain, width)};
  }

  // A scale of numbers of interactions: from 0, or logarithmic from 1 if they are far apart.
  function scaleOfLengths(known, ends, width) {
    const [least, most] = d3.extent(known, (row) => row.value);
    if (most > FAR_LENGTHS * least) {
      const domain = [Math.min(1, d3.min(ends)), d3.max(ends)];
      return {domain, start: domain[0], type: "log", ...axes.decades(domain)};
    }
    const domain = [0, d3.max(ends) ?? 1];
    return {domain, start: 0, type: "linear", ...axes.ticks(domain, width)};
  }

  // A line of points, {x, y, lines}, for each absence over numbers of players. `thin` are further lines, one for each
  // absence, or none; `level` is a number to compare with; `log` makes the vertical scale logarithmic.
  function drawLines(element, data, chosen, {title, xLabel, yLabel, lines, thin = [], level = null, log = false}) {
    if (!element) return;  // nothing was measured
    const width = element.clientWidth;
    const points = lines.flat();
    const levels = level === null ? [] : [level];
    const ys = [...points.map((point) => point.y), ...thin.flat().map((point) => point.y), ...levels];
    const scale = points.length ? scaleOfLines(ys, level, log) : {options: {type: "linear"}, axis: {ticks: []}};
    plot(element, title, {
      width,
      height: 310,
      marginLeft: 56,
      marginTop: 24,
      marginBottom: 42,
      x: {label: xLabel, labelAnchor: "center", ticks: wholeTicks(points, width), tickFormat: "d"},
      y: {...scale.options, label: yLabel, grid: true, ticks: scale.axis.ticks},
      marks: [
        points.length ? axes.numbered(scale.axis) : null,
        points.length && levels.length ? levelMark(levels) : null,
        ...thin.map((line, method) => thinMark(data, chosen, line, method)),
        ...lines.flatMap((line, method) => lineMarks(data, chosen, line, method)),
        tip(points, Plot.pointer, (point) => point.lines, {x: "x", y: "y"}),
      ],
    });
  }

  function levelMark(levels) {
    return Plot.ruleY(levels, {stroke: NEUTRAL, strokeDasharray: "4 3", className: "level"});
  }

  // The whole numbers at which the horizontal axis has ticks.
  function wholeTicks(points, width) {
    if (points.length === 0) return [];
    const [low, high] = d3.extent(points, (point) => point.x);
    return d3.ticks(low, high, Math.min(10, high - low, width / 40)).filter(Number.isInteger);
  }

  function thinMark(data, chosen, line, method) {
    return Plot.line(line, {
      x: "x",
      y: "y",
      stroke: colourOf(data, method),
      strokeWidth: 1.2,
      strokeDasharray: "1 3",
      opacity: opacityOf(chosen, method),
      className: "thin",
    });
  }

  function lineMarks(data, chosen, line, method) {
    const colour = colourOf(data, method);
    const opacity = opacityOf(chosen, method);
    const strokeWidth = isChosen(chosen, method) ? 2.8 : 1.5;
    return [
      Plot.line(line, {x: "x", y: "y", stroke: colour, strokeWidth, opacity, className: "line"}),
      Plot.dot(line, {x: "x", y: "y", fill: colour, symbol: symbolOf(data, method), r: 3.4, opacity}),
    ];
  }

  // The vertical scale of lines: logarithmic if requested, or beyond twice the level if some points are far above it.
  function scaleOfLines(ys, level, log) {
    const [low, high] = d3.extent(ys);
    if (log) return {options: {type: "log", domain: [low, high]}, axis: axes.decades(ys)};
    const domain = [Math.min(0, low), high];
    if (level > 0 && high > 0.5 * FAR_APART * level) {
      return {options: {type: "symlog", constant: 2 * level, domain}, axis: axes.powers(domain, 2 * level, 400)};
    }
    return {options: {type: "linear", domain}, axis: axes.ticks(domain, 500)};
  }

  // The drawable points of a line for each absence; `word` says in tips what a number of players means.
  function linesOf(data, {values, texts}, xs, word, isDrawn) {
    return values.map((ys, method) => {
      const points = ys.map((y, index) => ({
        x: xs[index],
        y: y ?? NaN,
        lines: [`${data.methods[method]}, ${word} ${xs[index]}`, texts[method][index]],
      }));
      return points.filter((point) => isDrawn(point.y));
    });
  }

  function drawMasking(element, data, chosen) {
    const scores = (line) => linesOf(data, line, data.sizes, "players present:", Number.isFinite);
    drawLines(element, data, chosen, {
      title: "Score of masked samples by the number of present players",
      xLabel: "present players",
      yLabel: `score, ${data.unit}`,
      lines: scores(data.scores),
      thin: data.recalibrated ? scores(data.recalibrated) : [],
      level: data.prior,
    });
  }

  function drawOrders(element, data, chosen) {
    const count = data.orders.values[0]?.length ?? 0;
    drawLines(element, data, chosen, {
      title: "Strength by order of each absence",
      xLabel: "order: players in the interaction",
      yLabel: "mean |U| / |v(N) − v(∅)|",
      lines: linesOf(data, data.orders, d3.range(1, count + 1), "order", (y) => y > 0),
      log: true,
    });
  }

  // A table of the rank correlation between each pair of absences; darker is closer to 1.
  function drawAgreement(element, data, chosen) {
    const count = data.methods.length;
    const width = Math.min(element.clientWidth, 130 * count + 200);
    const names = axes.room(data.methods, width);
    const side = (width - names.margin - 10) / count;
    const below = side < NARROW_CELL ? names.margin * 0.75 : 26;
    const band = {type: "band", domain: d3.range(count), label: null, tickSize: 0, padding: 0.04};
    plot(element, "Rank correlation of Shapley values between absences", {
      width,
      height: Math.min(46, side) * count + below + 14,
      marginLeft: names.margin,
      marginRight: 10,
      marginTop: 8,
      marginBottom: below,
      x: {...band, ...namesBelow(data.methods, names, side)},
      y: {...band, tickFormat: (method) => names.name(data.methods[method])},
      marks: agreementMarks(data, chosen, side),
    });
  }

  // The names below the cells: slanted if cells are narrow, otherwise as long as a cell is wide.
  function namesBelow(methods, names, side) {
    if (side < NARROW_CELL) return {tickFormat: (method) => names.name(methods[method]), tickRotate: -45};
    const letters = Math.floor(side / axes.LETTER);
    return {tickFormat: (method) => axes.shorten(methods[method], letters), tickRotate: 0};
  }

  function agreementMarks(data, chosen, side) {
    const {values, texts} = data.agreement;
    const cells = values.flatMap((row, first) =>
      row.map((value, second) => ({row: first, column: second, value, text: texts[first][second]})),
    );
    const isSetOff = (cell) => chosen === NONE || isChosen(chosen, cell.row) || isChosen(chosen, cell.column);
    const darkness = (cell) => {
      if (cell.value === null) return 0;
      return 0.85 * (isSetOff(cell) ? 1 : 0.25) * ((cell.value + 1) / 2) ** 2.5;
    };
    const linesOfCell = (cell) => [`${data.methods[cell.row]} and ${data.methods[cell.column]}`, cell.text];
    return [
      Plot.cell(cells, {x: "column", y: "row", fill: "currentColor", fillOpacity: darkness, className: "cell"}),
      Plot.text(cells, {
        x: "column",
        y: "row",
        fontSize: side < SMALL_CELL ? 9 : FONT,
        text: "text",
        fill: (cell) => (isSetOff(cell) && cell.value > 0.75 ? "var(--paper)" : "currentColor"),
      }),
      tip(cells, Plot.pointer, linesOfCell, {x: "column", y: "row"}),
    ];
  }

  // R of the samples of the chosen absence, one by one.
  function dotsOf(data, chosen) {
    if (chosen === NONE) return [];
    const values = (data.perSample[chosen] ?? []).filter((value) => value !== null);
    return values.map((value) => ({method: Number(chosen), value}));
  }

  function draw(section, data, chosen) {
    const at = (name) => section.querySelector(`[data-chart="${name}"]`);
    const figure = (key, options) => drawFigure(at(key), data, chosen, key, options);
    figure("leak", {
      label: `leak, ${data.unit} →`,
      usual: data.inventionLimit,
      levels: [{at: data.leakLimit, text: "counts as a leak"}],
    });
    figure("invention", {
      label: `invention, ${data.unit} →`,
      usual: data.inventionLimit,
      levels: [{at: data.inventionLimit, text: "all there is to know"}],
    });
    figure("score", {label: `score, ${data.unit} →`, levels: [{at: data.prior, text: "prior"}]});
    figure("length", {label: "interactions needed →", isLength: true});
    figure("distance", {label: "distance →", levels: [{at: 1, text: "the data"}]});
    figure("R", {
      label: "R →",
      levels: [{at: 0, text: "noise"}, {at: data.unmasked, text: "unmasked"}],
      dots: dotsOf(data, chosen),
    });
    figure("strength", {label: "Σ|U| →"});
    drawMasking(at("masking"), data, chosen);
    drawOrders(at("orders"), data, chosen);
    drawAgreement(at("agreement"), data, chosen);
  }

  // Highlight the chosen absence's column in tables.
  function markColumn(section, chosen) {
    for (const row of section.querySelectorAll(".all tr")) {
      [...row.cells].forEach((cell, column) => cell.classList.toggle("chosen", isChosen(chosen, column - 1)));
    }
  }

  function drawSymbol(place, data) {
    const method = Number(place.dataset.symbol);
    const svg = d3.create("svg").attr("viewBox", "-7 -7 14 14").attr("aria-hidden", "true");
    svg.append("path").attr("d", d3.symbol(symbolOf(data, method), 70)()).attr("fill", colourOf(data, method));
    place.replaceChildren(svg.node());
  }

  function start(section, data) {
    const radios = [...section.querySelectorAll("input[type=radio]")];
    for (const place of section.querySelectorAll("[data-symbol]")) drawSymbol(place, data);
    const redraw = () => {
      const chosen = radios.find((radio) => radio.checked)?.value ?? NONE;
      draw(section, data, chosen);
      markColumn(section, chosen);
    };
    for (const radio of radios) radio.addEventListener("change", redraw);
    return redraw;
  }

  return {start};
})();
