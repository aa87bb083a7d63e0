// Charts in a common look, drawn by Observable Plot. Text from data only becomes text nodes. Python writes all numbers
// that are shown; this script writes the ticks of axes alone.
"use strict";
const charts = (() => {
  const RAISES = "var(--raises)", LOWERS = "var(--lowers)", NEUTRAL = "var(--neutral)", SOFT = "var(--soft)";
  const polygon = (corners, turn) => ({
    draw(context, size) {
      const radius = Math.sqrt((2 * size) / (corners * Math.sin((2 * Math.PI) / corners)));
      for (let corner = 0; corner < corners; corner++) {
        const angle = turn + (2 * Math.PI * corner) / corners;
        context[corner ? "lineTo" : "moveTo"](radius * Math.cos(angle), radius * Math.sin(angle));
      }
      context.closePath();
    },
  });
  const saltire = {
    draw(context, size) {
      const arm = Math.sqrt(size / 20), turned = (x, y) => [arm * (x - y), arm * (x + y)];
      [[3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1], [-3, -1], [-1, -1], [-1, -3], [1, -3], [1, -1], [3, -1]].forEach(([x, y], corner) =>
        context[corner ? "lineTo" : "moveTo"](...turned(x, y).map((place) => place / Math.SQRT2 * 1.3)));
      context.closePath();
    },
  };
  // The markers of the library's plots. They tell absences apart in grey.
  const SYMBOLS = {
    o: d3.symbolCircle, s: d3.symbolSquare, "^": d3.symbolTriangle, D: d3.symbolDiamond, "*": d3.symbolStar, P: d3.symbolCross,
    v: polygon(3, Math.PI / 2), h: polygon(6, 0), p: polygon(5, -Math.PI / 2), X: saltire,
  };
  const FONT = 12, LETTER = 7, MOST_TICKS = 9;

  // The number that a text shows.
  const valueOf = (text) => (text === "–" ? NaN : Number(text.replace("−", "-").replaceAll(",", "")));
  const shorten = (text, letters) => {
    if (text.length <= letters) return text;
    const end = Math.floor((letters - 1) / 2);  // the middle is left out, because names often differ at their ends
    return `${text.slice(0, Math.max(1, letters - 1 - end))}…${end > 0 ? text.slice(-end) : ""}`;
  };
  const colourOf = (value) => (value >= 0 ? RAISES : LOWERS);

  // Room for names: as much as the longest needs, up to a share of the width.
  function room(names, width) {
    const most = Math.floor((width * 0.42) / LETTER);
    const letters = Math.min(most, d3.max(names, (name) => name.length) ?? 1);
    return {margin: Math.ceil(letters * LETTER) + 14, letters, name: (text) => shorten(text, letters)};
  }

  // A scale with room for the texts beside the bars.
  function padded([low, high], rows, width) {
    const beside = (side) => LETTER * (d3.max(rows.filter((row) => (row.value < 0) === side < 0), (row) => row.shown.length) ?? 0) + 8;
    const left = beside(-1), right = beside(1);
    const unit = (high - low || 1) / Math.max(width - left - right, 60);
    return [low - left * unit, high + right * unit];
  }

  // Ticks of a linear axis, with as many decimals as tell them apart.
  function ticks([low, high], width) {
    const count = Math.max(2, Math.min(7, width / 90)), step = d3.tickStep(low, high, count) || 1;
    const largest = Math.max(Math.abs(low), Math.abs(high));
    const plain = largest < 1e6 && (step >= 1e-6 || largest >= 0.001);
    return {ticks: d3.ticks(low, high, count), tickFormat: d3.format(plain ? `.${d3.precisionFixed(step)}f` : `.${Math.max(0, d3.precisionRound(step, largest) - 1)}e`)};
  }

  // Ticks of a logarithmic axis: powers of ten, and their multiples by 2 and 5 if there are few.
  function decades(values) {
    const [low, high] = d3.extent(values);
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const powers = d3.range(first, last + 1, Math.max(1, Math.ceil((last - first) / MOST_TICKS))).map((power) => 10 ** power);
    const inside = (tick) => tick >= low * 0.999 && tick <= high * 1.001;
    const few = powers.filter(inside).length < 3;
    const found = (few ? powers.flatMap((power) => [power, 2 * power, 5 * power]) : powers).filter(inside);
    return {ticks: found.length ? found : [low, high], tickFormat: d3.format("~g")};
  }

  // The vertical axis with a number at each tick: of its own accord the library leaves some out on logarithmic scales.
  const numbered = (axis, unit = "") => Plot.axisY(axis.ticks, {text: (value) => axis.tickFormat(value) + unit});

  function plot(element, title, options) {
    const svg = Plot.plot({style: {fontSize: `${FONT}px`, background: "transparent"}, ariaLabel: title, ...options});
    svg.setAttribute("role", "img");
    element.replaceChildren(svg);
    return svg;
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

  // Rows {name, value, shown, error, from, text, hollow, players}: a bar of length `value` that starts at `from`
  // (default 0), with the text `shown` beside it. Without room for names, dots in a matrix show the players of each row.
  function bars(element, rows, {title, label, lines = [], signs = true, columns = null}) {
    const width = element.clientWidth;
    const names = columns ? matrixRoom(columns, rows, width) : room(rows.map((row) => row.name), width);
    const start = (row) => row.from ?? 0, end = (row) => start(row) + row.value;
    const far = (row, side) => end(row) + 2 * side * (row.error ?? 0);
    const levels = lines.length ? lines.map((line) => line.at) : [0], halo = {stroke: "var(--paper)", strokeWidth: 3};
    const ends = rows.flatMap((row) => [start(row), far(row, -1), far(row, 1)]);
    const inner = width - names.margin - 8, top = names.top ?? (lines.length ? 38 : 24);
    const domain = padded(d3.extent([...ends, ...levels]), rows, inner);
    const y = (_, index) => index;
    const svg = plot(element, title, {
      width, height: 22 * rows.length + 50 + top, marginLeft: names.margin, marginRight: 8, marginTop: top, marginBottom: 42,
      x: {domain, grid: true, label, labelAnchor: "center", ...ticks(domain, inner)},
      y: {type: "band", domain: d3.range(rows.length), label: null, tickFormat: (index) => (columns ? "" : names.name(rows[index].name)), tickSize: 0, padding: 0.22},
      marks: [
        Plot.barX(rows, {x1: () => domain[0], x2: () => domain[1], y, fill: "transparent", className: "row"}),
        Plot.ruleX(levels, {stroke: NEUTRAL, strokeDasharray: lines.length ? "3 3" : null, className: "level"}),
        // Each name has a row of its own above the bars, and lies on the side of its line where there is room.
        ...lines.map((line, index) => Plot.text([line], {x: "at", text: "text", frameAnchor: "top", dy: 14 * index - 30, fill: SOFT, textAnchor: 2 * line.at < domain[0] + domain[1] ? "start" : "end"})),
        Plot.barX(rows, {
          x1: start, x2: end, y, className: "bar",
          fill: (row) => (row.hollow ? "transparent" : signs ? colourOf(row.value) : NEUTRAL),
          stroke: (row) => (signs ? colourOf(row.value) : NEUTRAL),
        }),
        rows.some((row) => row.error)
          ? Plot.ruleY(rows, {filter: (row) => row.error, x1: (row) => far(row, -1), x2: (row) => far(row, 1), y, className: "whisker", stroke: "currentColor"})
          : null,
        ...[-1, 1].map((side) =>
          Plot.text(rows, {
            filter: (row) => (row.value < 0) === (side < 0), className: "shown",
            x: (row) => far(row, side), y, dx: 5 * side, textAnchor: side < 0 ? "end" : "start", text: "shown", fill: "currentColor", ...halo,
          }),
        ),
        tip(rows, Plot.pointerY, (row) => row.text, {y, frameAnchor: "middle", preferredAnchor: "bottom"}),
      ],
    });
    if (columns) drawMatrix(svg, columns, rows, names);
    for (const kind of ["row", "bar"]) svg.querySelectorAll(`.${kind} rect`).forEach((bar, index) => tie(bar, rows[index].players));
  }

  // Room for a column of dots for each player that takes part, with the players' names above.
  function matrixRoom(columns, rows, width) {
    const shown = d3.range(columns.length).filter((player) => rows.some((row) => row.players.includes(player)));
    const step = Math.max(8, Math.min(17, (0.55 * width) / shown.length));
    const letters = Math.min(18, d3.max(shown, (player) => columns[player].length) ?? 1);
    return {shown, step, letters, margin: Math.ceil(step * shown.length) + 14, top: 26 + Math.ceil(letters * LETTER * 0.82)};
  }

  function drawMatrix(svg, columns, rows, {shown, step, letters, top}) {
    const y = svg.scale("y"), radius = Math.min(5, 0.36 * step), at = new Map(shown.map((player, index) => [player, 6 + step * (index + 0.5)]));
    const matrix = d3.select(svg).append("g").attr("class", "matrix");
    for (const player of shown) {
      matrix.append("text").attr("transform", `translate(${at.get(player) + 3} ${top - 8}) rotate(-60)`).attr("font-size", Math.min(FONT, step + 1))
        .attr("fill", "currentColor").attr("text-anchor", "start").text(shorten(columns[player], letters));
    }
    rows.forEach((row, index) => {
      const middle = y.apply(index) + y.bandwidth / 2, line = matrix.append("g");
      tie(line.node(), row.players);
      const [first, last] = d3.extent(row.players, (player) => at.get(player));
      line.append("line").attr("x1", first).attr("x2", last).attr("y1", middle).attr("y2", middle).attr("stroke", "currentColor").attr("stroke-width", 1.5);
      for (const player of shown) {
        line.append("circle").attr("cx", at.get(player)).attr("cy", middle).attr("r", radius).attr("class", row.players.includes(player) ? "in" : "out");
      }
    });
  }

  // Mark what belongs to players, so that hovering over one shows the others.
  function tie(element, players) {
    if (players?.length) element.dataset.players = players.join(" ");
  }

  function columns(element, texts, {title, label}) {
    const width = element.clientWidth, shown = (text) => text.replace(/^–$/, "0");
    const rows = texts.map((text, index) => ({order: index + 1, value: valueOf(shown(text)) / 100, text}));
    const every = Math.ceil((rows.length * 26) / Math.max(width - 70, 60));
    plot(element, title, {
      width, height: 250, marginLeft: 50, marginTop: 24, marginBottom: 42,
      x: {label: "order: players in the interaction", labelAnchor: "center", tickFormat: (order) => ((order - 1) % every ? "" : `${order}`)},
      y: {label, grid: true, tickFormat: "~%", ticks: 5},
      marks: [
        Plot.barY(rows, {x: "order", y: "value", fill: NEUTRAL, className: "bar"}),
        Plot.ruleY([0], {stroke: NEUTRAL}),
        tip(rows, Plot.pointerX, (row) => `order ${row.order}: ${row.text} %`, {x: "order", y: "value"}),
      ],
    });
  }

  // A falling curve, with a level to compare with. Rows are {x, y, text}.
  function curve(element, rows, {title, xLabel, yLabel, level, least = 0, step, logX = true, percent = false}) {
    const width = element.clientWidth;
    const known = rows.filter((row) => Number.isFinite(row.y)), above = known.filter((row) => row.y > least);
    const log = above.length > 1 && d3.max(above, (row) => row.y) > 20 * d3.min(above, (row) => row.y);
    const shown = log ? above : known, ys = [...shown.map((row) => row.y), ...(level ? [level] : [])];
    const domain = log ? d3.extent(ys) : [Math.min(0, d3.min(ys) ?? 0), d3.max(ys) ?? 1];
    const axis = log ? decades(ys) : ticks(domain, 400);
    plot(element, title, {
      width, height: 250, marginLeft: 62, marginTop: 24, marginRight: 24, marginBottom: 42,
      x: {type: logX ? "log" : "linear", label: xLabel, labelAnchor: "center", ...(logX ? {ticks: decades(shown.map((row) => row.x)).ticks} : {ticks: Math.max(2, Math.min(6, width / 110))}), tickFormat: "~s"},
      y: {type: log ? "log" : "linear", domain, label: yLabel, grid: true, ticks: axis.ticks},
      marks: [
        numbered(axis, percent ? " %" : ""),
        level && shown.length ? Plot.ruleY([level], {stroke: NEUTRAL, strokeDasharray: "3 3", className: "level"}) : null,
        level && shown.length ? Plot.text([level], {y: level, text: [`${level}${percent ? " %" : ""}`], frameAnchor: "right", dy: -8, fill: SOFT}) : null,
        Plot.line(shown, {x: "x", y: "y", stroke: LOWERS, curve: step ? "step-after" : "linear"}),
        shown.length <= 40 ? Plot.dot(shown, {x: "x", y: "y", fill: LOWERS, r: 3}) : null,
        tip(shown, Plot.pointerX, (row) => row.text, {x: "x", y: "y"}),
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

  return {bars, columns, curve, decades, framed, image, numbered, plot, room, shorten, ticks, tie, tip, valueOf, FONT, LETTER, NEUTRAL, SOFT, LOWERS, RAISES, SYMBOLS};
})();
