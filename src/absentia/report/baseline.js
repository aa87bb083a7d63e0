// Learned baselines: values compared with quantiles of the data, and the history of the loss.
"use strict";
const baseline = (() => {
  const {plot, tip, image, framed, NEUTRAL} = charts;
  const MOST_DRAWN = 40;  // entries in the chart
  // The places of the quantiles, from the least to the largest value.
  const LEAST = 0;
  const LOW = 1;  // 5 %
  const LOWER_QUARTER = 2;
  const MEDIAN = 3;
  const UPPER_QUARTER = 4;
  const HIGH = 5;  // 95 %
  const LARGEST = 6;

  // Entries have different units, so each is scaled to the range of its data. Categories have no range.
  function scaleOfEntry(quantiles) {
    const low = quantiles[LEAST];
    const high = quantiles[LARGEST];
    if (low === null) return () => NaN;
    if (high > low) return (value) => (value - low) / (high - low);
    return () => 0.5;
  }

  function entryRow(data, owner, entry) {
    const place = scaleOfEntry(data.quantiles[entry]);
    const doubt = data.doubts[owner][entry];
    const lines = [`${data.names[entry]}: ${data.texts[owner][entry]}${inBrackets(doubt)}`];
    const value = data.values[owner][entry];
    const [low, high] = data.ranges[owner][entry].map((end) => (end === null ? NaN : place(end)));
    const minima = data.minima[owner][entry].map((minimum) => ({entry, at: place(minimum)}));
    if (data.quantiles[entry][LEAST] !== null) {
      const levels = data.levels[entry];
      lines.push(`median ${levels[MEDIAN]}, data from ${levels[LEAST]} to ${levels[LARGEST]}`);
    }
    return {entry, at: place(value), levels: data.quantiles[entry].map(place), doubt, low, high, minima, lines};
  }

  function inBrackets(doubt) {
    return doubt ? ` (${doubt})` : "";
  }

  function drawEntries(element, data, owner) {
    const count = Math.min(data.names.length, MOST_DRAWN);
    const rows = d3.range(count).map((entry) => entryRow(data, owner, entry));
    const width = element.clientWidth;
    const names = axes.room(data.names.slice(0, count), width);
    plot(element, "Baseline values in the range of the data", {
      width,
      height: 22 * count + 66,
      marginLeft: names.margin,
      marginRight: 20,
      marginTop: 12,
      marginBottom: 42,
      x: {
        domain: d3.extent([0, 1, ...rows.map((row) => row.at)]),
        label: "range of the data →",
        labelAnchor: "center",
        grid: true,
        tickFormat: "~%",
        ticks: 5,
      },
      y: {
        type: "band",
        domain: d3.range(count),
        label: null,
        tickSize: 0,
        padding: 0.35,
        tickFormat: (entry) => names.name(data.names[entry]),
      },
      marks: entryMarks(rows, data.colour),
    });
    if (data.names.length > count) element.append(noteOn(count));
  }

  // The distribution of the data as a line, a box and the median, with the value of the baseline.
  function entryMarks(rows, colour) {
    const level = (index) => (row) => row.levels[index];
    const box = {fill: NEUTRAL, fillOpacity: 0.35, stroke: NEUTRAL};
    return [
      Plot.ruleY(rows, {x1: level(LOW), x2: level(HIGH), y: "entry", stroke: NEUTRAL}),
      Plot.barX(rows, {x1: level(LOWER_QUARTER), x2: level(UPPER_QUARTER), y: "entry", ...box}),
      Plot.tickX(rows, {x: level(MEDIAN), y: "entry", stroke: "currentColor", strokeWidth: 2}),
      Plot.ruleY(rows.filter((row) => row.high > row.low), {
        x1: "low",
        x2: "high",
        y: "entry",
        stroke: colour,
        strokeWidth: 5,
        strokeOpacity: 0.45,
      }),
      Plot.dot(rows.flatMap((row) => row.minima), {x: "at", y: "entry", symbol: "times", r: 5, stroke: colour}),
      Plot.dot(rows, {
        x: "at",
        y: "entry",
        symbol: "diamond",
        r: 5,
        fill: (row) => (row.doubt ? "var(--paper)" : colour),
        stroke: "currentColor",
        className: "value",
      }),
      tip(rows, Plot.pointerY, (row) => row.lines, {y: "entry", frameAnchor: "middle", preferredAnchor: "bottom"}),
    ];
  }

  function noteOn(count) {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = `The chart shows the first ${count} entries; the table has more.`;
    return note;
  }

  function fillTable(body, data, owner) {
    const rows = data.names.map((name, entry) => {
      const shownName = `${name}${inBrackets(data.doubts[owner][entry])}`;
      const levels = data.levels?.[entry] ?? [];
      return [shownName, data.texts[owner][entry], ...levels];
    });
    const lines = d3.select(body).selectAll("tr").data(rows).join("tr");
    lines.selectAll("td").data((row) => row).join("td").text((cell) => cell);
  }

  function drawPictures(element, data, owner) {
    const figures = [framed("The baseline", image(data.images[owner], "The baseline"))];
    if (data.median) figures.push(framed("The median of the data", image(data.median, "The median of the data")));
    element.replaceChildren(...figures);
  }

  function drawHistory(element, data) {
    const rows = data.history.map(([x, y, text]) => ({x, y, text}));
    charts.curve(element, rows, {
      title: "History of the loss",
      xLabel: "evaluations of the model →",
      yLabel: `loss (${data.loss})`,
      step: true,
      logX: false,
    });
  }

  function draw(section, data, owner) {
    const at = (name) => section.querySelector(`[data-chart="${name}"]`);
    if (data.images) {
      drawPictures(at("pictures"), data, owner);
    } else {
      if (data.quantiles) drawEntries(at("baseline"), data, owner);
      fillTable(section.querySelector(".entries tbody"), data, owner);
    }
    if (at("history")) drawHistory(at("history"), data);
  }

  function start(section, data) {
    const owner = section.querySelector("[data-control=owner]");
    const redraw = () => draw(section, data, Number(owner?.value ?? 0));
    owner?.addEventListener("change", redraw);
    return redraw;
  }

  return {start};
})();
