// Learned baselines: values beside quantiles of the data, and the history of the loss.
"use strict";
const baseline = (() => {
  const {plot, room, NEUTRAL} = charts;
  const MOST_DRAWN = 40;

  // Entries differ in units: each is scaled to the range of its data.
  function drawEntries(element, data, values, texts) {
    const rows = data.quantiles.slice(0, MOST_DRAWN).map((levels, entry) => {
      const [low, high] = [levels[0], levels[levels.length - 1]];
      const place = (value) => (high > low ? (value - low) / (high - low) : low === null ? NaN : 0.5);
      return {
        entry, at: place(values[entry]), levels: levels.map(place), undetermined: data.undetermined[entry],
        text: `${data.names[entry]}: ${texts[entry]}${data.undetermined[entry] ? " (undetermined)" : ""}${levels[0] === null ? "" : `\nmedian ${data.levels[entry][3]}, data from ${data.levels[entry][0]} to ${data.levels[entry].at(-1)}`}`,
      };
    });
    const width = element.clientWidth, names = room(rows.map((row) => data.names[row.entry]), width);
    const level = (index) => (row) => row.levels[index];
    plot(element, "Baseline values in the range of the data", {
      width, height: 22 * rows.length + 66, marginLeft: names.margin, marginRight: 20, marginTop: 12, marginBottom: 42,
      x: {domain: d3.extent([0, 1, ...rows.map((row) => row.at)]), label: "range of the data →", labelAnchor: "center", grid: true, tickFormat: "~%", ticks: 5},
      y: {type: "band", domain: d3.range(rows.length), label: null, tickSize: 0, padding: 0.35, tickFormat: (entry) => names.name(data.names[entry])},
      marks: [
        Plot.ruleY(rows, {x1: level(1), x2: level(5), y: "entry", stroke: NEUTRAL}),
        Plot.barX(rows, {x1: level(2), x2: level(4), y: "entry", fill: NEUTRAL, fillOpacity: 0.35, stroke: NEUTRAL}),
        Plot.tickX(rows, {x: level(3), y: "entry", stroke: "currentColor", strokeWidth: 2}),
        Plot.dot(rows, {x: "at", y: "entry", symbol: "diamond", r: 5, fill: (row) => (row.undetermined ? "var(--paper)" : data.colour), stroke: "currentColor", className: "value"}),
        charts.tip(rows, Plot.pointerY, (row) => row.text, {y: "entry", frameAnchor: "middle", preferredAnchor: "bottom"}),
      ],
    });
    if (data.names.length > rows.length) {
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = `The chart shows the first ${rows.length} entries; the table has more.`;
      element.append(note);
    }
  }

  function fillTable(body, data, texts) {
    const rows = data.names.map((name, entry) => [
      data.undetermined[entry] ? `${name} (undetermined)` : name, texts[entry], ...(data.levels?.[entry] ?? []),
    ]);
    d3.select(body).selectAll("tr").data(rows).join("tr").selectAll("td").data((row) => row).join("td").text((cell) => cell);
  }

  function drawHistory(element, data) {
    const rows = data.history.map(([x, y, text]) => ({x, y, text}));
    charts.curve(element, rows, {
      title: "History of the loss", xLabel: "evaluations of the model →", yLabel: `loss (${data.loss})`, step: true, logX: false,
    });
  }

  function start(section, data) {
    const owner = section.querySelector("[data-control=owner]"), at = (name) => section.querySelector(`[data-chart="${name}"]`);
    const redraw = () => {
      const chosen = Number(owner?.value ?? 0);
      if (data.images) {
        const figures = [charts.framed("The baseline", charts.image(data.images[chosen], "The baseline"))];
        if (data.median) figures.push(charts.framed("The median of the data", charts.image(data.median, "The median of the data")));
        at("pictures").replaceChildren(...figures);
      } else {
        if (data.quantiles) drawEntries(at("baseline"), data, data.values[chosen], data.texts[chosen]);
        fillTable(section.querySelector(".entries tbody"), data, data.texts[chosen]);
      }
      if (at("history")) drawHistory(at("history"), data);
    };
    owner?.addEventListener("change", redraw);
    return redraw;
  }
  return {start};
})();
