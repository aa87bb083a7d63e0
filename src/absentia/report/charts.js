// Charts in a common look, drawn by Observable Plot. Text from data only becomes text nodes. Python writes all numbers
// that are shown, except for the ticks of axes.
"use strict";
const charts = (() => {
  const RAISES = "var(--raises)";
  const LOWERS = "var(--lowers)";
  const NEUTRAL = "var(--neutral)";
  const SOFT = "var(--soft)";
  const PAPER = "var(--paper)";
  const FONT = 12;  // pixels
  const TIP_LETTERS = 24;  // letters in a line, so that tips fit on a phone
  const ROW = 22;  // height of a bar with its space, in pixels
  const RIGHT = 8;  // margin in pixels
  const BOTTOM = 42;
  const FAR_APART = 20;  // a scale is logarithmic if the ratio of its values exceeds this
  const MOST_DOTS = 40;  // on a curve

  const colourOf = (value) => (value >= 0 ? RAISES : LOWERS);

  function plot(element, title, options) {
    const style = {fontSize: `${FONT}px`, background: "transparent"};
    const svg = Plot.plot({style, ariaLabel: title, ...options});
    svg.setAttribute("role", "img");
    element.replaceChildren(svg);
    return svg;
  }

  // Break a text into lines of at most this many letters.
  function wrap(text, letters = TIP_LETTERS) {
    const piece = new RegExp(`.{1,${letters}}`, "gsu");
    const words = text.split(" ").flatMap((word) => word.match(piece) ?? [""]);
    const lines = [""];
    for (const word of words) {
      const last = lines[lines.length - 1];
      if (!last) lines[lines.length - 1] = word;
      else if (last.length + word.length + 1 > letters) lines.push(word);
      else lines[lines.length - 1] = `${last} ${word}`;
    }
    return lines;
  }

  // A tip with the lines of the nearest mark; `near` is the direction of the search.
  function tip(rows, near, linesOf, channels) {
    const title = (row) => linesOf(row).flatMap((line) => wrap(line)).join("\n");
    return Plot.tip(rows, near({...channels, title, fontSize: FONT, lineHeight: 1.25, lineWidth: 40}));
  }

  const startOf = (row) => row.from ?? 0;
  const endOf = (row) => startOf(row) + row.value;
  // The end of two standard errors on one side: −1 or 1.
  const whiskerEnd = (row, side) => endOf(row) + 2 * side * (row.error ?? 0);
  const isOnSide = (row, side) => (row.value < 0) === (side < 0);
  const placeOf = (_, index) => index;

  // Bars below each other. Rows are {name, players, value, shown, error, from, lines, hollow, unsure}: a bar of length `value`
  // that starts at `from` (default 0), with the text `shown` beside it and `lines` in its tip. `levels` are named
  // vertical lines, {at, text}. With `columns`, the names of all players, a matrix of dots replaces the names of rows.
  function bars(element, rows, {title, label, levels = [], signs = true, columns = null}) {
    const width = element.clientWidth;
    const names = columns ? setMatrix.room(columns, rows, width) : axes.room(rows.map((row) => row.name), width);
    const inner = width - names.margin - RIGHT;
    const top = names.top ?? (levels.length ? 38 : 24);
    const domain = domainOfBars(rows, levels, inner);
    const svg = plot(element, title, {
      width,
      height: ROW * rows.length + 50 + top,
      marginLeft: names.margin,
      marginRight: RIGHT,
      marginTop: top,
      marginBottom: BOTTOM,
      x: {domain, grid: true, label, labelAnchor: "center", ...axes.ticks(domain, inner)},
      y: {
        type: "band",
        domain: d3.range(rows.length),
        label: null,
        tickFormat: (index) => (columns ? "" : names.name(rows[index].name)),
        tickSize: 0,
        padding: 0.22,
      },
      marks: [
        rowMark(rows, domain),
        ...levelMarks(levels, domain),
        barMark(rows, signs),
        whiskerMark(rows),
        besideMark(rows, -1),
        besideMark(rows, 1),
        tip(rows, Plot.pointerY, (row) => row.lines, {y: placeOf, frameAnchor: "middle", preferredAnchor: "bottom"}),
      ],
    });
    if (columns) setMatrix.draw(svg, columns, rows, names);
    tieAll(svg.querySelectorAll(".row rect"), rows);
    const drawn = svg.querySelectorAll(".bar rect");
    tieAll(drawn, rows);
    drawn.forEach((bar, index) => {
      if (rows[index].unsure) bar.setAttribute("stroke-dasharray", "2 2");
    });
  }

  // The range of the bars and levels, with room for the texts beside the bars.
  function domainOfBars(rows, levels, width) {
    const ends = rows.flatMap((row) => [startOf(row), whiskerEnd(row, -1), whiskerEnd(row, 1)]);
    const marked = levels.length ? levels.map((level) => level.at) : [0];
    const [low, high] = d3.extent([...ends, ...marked]);
    const left = roomBeside(rows, -1);
    const right = roomBeside(rows, 1);
    const unit = (high - low || 1) / Math.max(width - left - right, 60);
    return [low - left * unit, high + right * unit];
  }

  function roomBeside(rows, side) {
    const texts = rows.filter((row) => isOnSide(row, side)).map((row) => row.shown);
    return axes.LETTER * (d3.max(texts, (text) => text.length) ?? 0) + 8;
  }

  // The background of each row, which is highlighted when the pointer is over its players.
  function rowMark(rows, [low, high]) {
    return Plot.barX(rows, {x1: () => low, x2: () => high, y: placeOf, fill: "transparent", className: "row"});
  }

  // Each name has its own row above the bars, on the side of its line that has room.
  function levelMarks(levels, [low, high]) {
    if (levels.length === 0) return [Plot.ruleX([0], {stroke: NEUTRAL, strokeDasharray: null, className: "level"})];
    const places = levels.map((level) => level.at);
    const names = levels.map((level, index) =>
      Plot.text([level], {
        x: "at",
        text: "text",
        frameAnchor: "top",
        dy: 14 * index - 30,
        fill: SOFT,
        textAnchor: 2 * level.at < low + high ? "start" : "end",
      }),
    );
    return [Plot.ruleX(places, {stroke: NEUTRAL, strokeDasharray: "3 3", className: "level"}), ...names];
  }

  function barMark(rows, signs) {
    const colour = (row) => (signs ? colourOf(row.value) : NEUTRAL);
    return Plot.barX(rows, {
      x1: startOf,
      x2: endOf,
      y: placeOf,
      className: "bar",
      fill: (row) => (row.hollow || row.unsure ? "transparent" : colour(row)),
      stroke: (row) => (row.unsure ? NEUTRAL : colour(row)),
    });
  }

  function whiskerMark(rows) {
    if (!rows.some((row) => row.error)) return null;
    return Plot.ruleY(rows, {
      filter: (row) => row.error,
      x1: (row) => whiskerEnd(row, -1),
      x2: (row) => whiskerEnd(row, 1),
      y: placeOf,
      className: "whisker",
      stroke: "currentColor",
    });
  }

  // The texts beside the bars that end on one side.
  function besideMark(rows, side) {
    return Plot.text(rows, {
      filter: (row) => isOnSide(row, side),
      className: "shown",
      x: (row) => whiskerEnd(row, side),
      y: placeOf,
      dx: 5 * side,
      textAnchor: side < 0 ? "end" : "start",
      text: "shown",
      fill: "currentColor",
      stroke: PAPER,
      strokeWidth: 3,
    });
  }

  // Mark what belongs to players, so that hovering over one shows the others.
  function tie(element, players) {
    if (players?.length) element.dataset.players = players.join(" ");
  }

  function tieAll(elements, rows) {
    elements.forEach((element, index) => tie(element, rows[index].players));
  }

  // A column for each order; values are in percent, with texts for their tips.
  function columns(element, {values, texts}, {title, label}) {
    const width = element.clientWidth;
    const rows = values.map((value, index) => ({order: index + 1, value: (value ?? 0) / 100, text: texts[index]}));
    const every = Math.ceil((rows.length * 26) / Math.max(width - 70, 60));  // orders from one labelled tick to the next
    plot(element, title, {
      width,
      height: 250,
      marginLeft: 50,
      marginTop: 24,
      marginBottom: BOTTOM,
      x: {
        label: "order: players in the interaction",
        labelAnchor: "center",
        tickFormat: (order) => ((order - 1) % every ? "" : `${order}`),
      },
      y: {label, grid: true, tickFormat: "~%", ticks: 5},
      marks: [
        Plot.barY(rows, {x: "order", y: "value", fill: NEUTRAL, className: "bar"}),
        Plot.ruleY([0], {stroke: NEUTRAL}),
        tip(rows, Plot.pointerX, (row) => [`order ${row.order}: ${row.text} %`], {x: "order", y: "value"}),
      ],
    });
  }

  // A falling curve, with a level for comparison. Rows are {x, y, text}. Points up to `least` have no logarithm.
  function curve(element, rows, {title, xLabel, yLabel, level, least = 0, step, logX = true, unit = ""}) {
    const width = element.clientWidth;
    const {shown, type, domain, axis} = scaleOfCurve(rows, level, least);
    const hasLevel = level && shown.length;
    plot(element, title, {
      width,
      height: 250,
      marginLeft: 62,
      marginTop: 24,
      marginRight: 24,
      marginBottom: BOTTOM,
      x: {
        type: logX ? "log" : "linear",
        label: xLabel,
        labelAnchor: "center",
        ticks: logX ? axes.decades(shown.map((row) => row.x)).ticks : Math.max(2, Math.min(6, width / 110)),
        tickFormat: "~s",
      },
      y: {type, domain, label: yLabel, grid: true, ticks: axis.ticks},
      marks: [
        axes.numbered(axis, unit),
        ...(hasLevel ? levelOfCurve(level, unit) : []),
        Plot.line(shown, {x: "x", y: "y", stroke: LOWERS, curve: step ? "step-after" : "linear"}),
        shown.length <= MOST_DOTS ? Plot.dot(shown, {x: "x", y: "y", fill: LOWERS, r: 3}) : null,
        tip(shown, Plot.pointerX, (row) => [row.text], {x: "x", y: "y"}),
      ],
    });
  }

  // A horizontal line at a level, with its number.
  function levelOfCurve(level, unit) {
    return [
      Plot.ruleY([level], {stroke: NEUTRAL, strokeDasharray: "3 3", className: "level"}),
      Plot.text([level], {y: level, text: [`${level}${unit}`], frameAnchor: "right", dy: -8, fill: SOFT}),
    ];
  }

  // The points of a curve that can be drawn, and its vertical scale: logarithmic if they are far apart.
  function scaleOfCurve(rows, level, least) {
    const known = rows.filter((row) => Number.isFinite(row.y));
    const above = known.filter((row) => row.y > least);
    const levels = level ? [level] : [];
    if (above.length > 1 && d3.max(above, (row) => row.y) > FAR_APART * d3.min(above, (row) => row.y)) {
      const values = [...above.map((row) => row.y), ...levels];
      return {shown: above, type: "log", domain: d3.extent(values), axis: axes.decades(values)};
    }
    const values = [...known.map((row) => row.y), ...levels];
    const domain = [Math.min(0, d3.min(values) ?? 0), d3.max(values) ?? 1];
    return {shown: known, type: "linear", domain, axis: axes.ticks(domain, 400)};
  }

  function image(address, title) {
    const picture = document.createElement("img");
    picture.alt = title;
    picture.src = address;
    return picture;
  }

  function framed(title, content) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = title;
    figure.append(caption, content);
    return figure;
  }

  return {bars, columns, curve, framed, image, plot, tie, tip, FONT, NEUTRAL, SOFT};
})();
