// Audits: charts of all absences, or of the chosen one.
"use strict";
const audit = (() => {
  const {plot, room, look, number, tip, FONT, NEUTRAL, SOFT} = charts;
  // If the largest |R| is above this, the scale is logarithmic beyond 1 to separate the small ones.
  const FAR_APART = 4;
  const faint = (chosen, method) => (chosen === "" || Number(chosen) === method ? 1 : 0.22);

  function drawRemoval(element, data, chosen) {
    const width = element.clientWidth, shown = d3.range(data.measured);
    const names = room(shown.map((method) => data.methods[method]), width);
    const rows = shown.map((method) => ({
      method, R: data.R[method], error: data.errors[method] ?? 0,
      text: `${data.methods[method]}\nR = ${charts.withError(number(data.R[method]), data.errors[method])}`,
    }));
    const dots = chosen === "" ? [] : (data.perSample[chosen] ?? []).map((R) => ({method: Number(chosen), R}));
    const ends = [...rows.flatMap((row) => [row.R - 2 * row.error, row.R + 2 * row.error]), ...dots.map((dot) => dot.R)];
    const far = d3.max(ends, Math.abs) > FAR_APART;
    plot(element, "R of each absence with two standard errors", {
      width, height: 30 * rows.length + 76, marginLeft: names.margin, marginRight: 24, marginTop: 24, marginBottom: 42,
      x: {type: far ? "symlog" : "linear", grid: true, nice: true, label: "R: effects left or added →", labelAnchor: "center", ticks: far ? powers(ends) : Math.max(3, Math.min(7, width / 90)), tickFormat: charts.number},
      y: {type: "band", domain: shown, padding: 0.3, label: null, tickSize: 0, tickFormat: (method) => names.name(data.methods[method])},
      marks: [
        Plot.ruleX([0], {stroke: NEUTRAL}),
        Plot.ruleX([data.unmasked], {stroke: NEUTRAL, strokeDasharray: "4 3"}),
        ...[["noise", 0, data.unmasked], ["unmasked", data.unmasked, 0]].map(([text, at, other], index) =>
          Plot.text([at], {x: at, text: [text], frameAnchor: "top", dy: -14, fill: SOFT, textAnchor: at < other || (at === other && !index) ? "end" : "start"})),
        Plot.tickX(dots, {x: "R", y: "method", stroke: NEUTRAL, strokeOpacity: 0.6, className: "sample"}),
        Plot.ruleY(rows, {x1: (row) => row.R - 2 * row.error, x2: (row) => row.R + 2 * row.error, y: "method", stroke: NEUTRAL, strokeWidth: 1.5, strokeOpacity: (row) => faint(chosen, row.method)}),
        ...rows.map((row) => Plot.dot([row], {x: "R", y: "method", ...symbolOf(row.method), r: 5, opacity: faint(chosen, row.method), className: "dot"})),
        tip(rows, Plot.pointerY, (row) => row.text, {y: "method", frameAnchor: "middle", preferredAnchor: "bottom"}),
      ],
    });
  }

  const powers = (values) => {
    const [low, high] = d3.extent([...values, 0]);
    const sizes = d3.range(0, Math.ceil(Math.log10(d3.max([-low, high]))) + 1).map((power) => 10 ** power);
    const ticks = (some) => [...some.map((size) => -size), 0, ...some].filter((tick) => tick >= low && tick <= high);
    return ticks(sizes).length > 3 ? ticks(sizes) : ticks(sizes.flatMap((size) => [size, 2 * size, 5 * size]));
  };
  const symbolOf = (method) => ({fill: look(method).colour, symbol: look(method).symbol});

  function drawOrders(element, data, chosen) {
    const width = element.clientWidth;
    const lines = data.orders.map((strengths, method) =>
      strengths.map((strength, index) => ({method, order: index + 1, strength})).filter((point) => point.strength > 0));
    const points = lines.flat();
    plot(element, "Strength by order of each absence", {
      width, height: 310, marginLeft: 62, marginTop: 24, marginBottom: 42,
      x: {label: "order: players in the interaction", labelAnchor: "center", ticks: d3.range(1, (data.orders[0]?.length ?? 1) + 1), tickFormat: "d"},
      y: {type: points.length ? "log" : "linear", label: "mean |U| / |v(N) − v(∅)|", grid: true, ticks: points.length ? charts.decades(points.map((point) => point.strength)) : 5, tickFormat: number},
      marks: [
        ...lines.flatMap((line, method) => [
          Plot.line(line, {x: "order", y: "strength", stroke: look(method).colour, strokeWidth: chosen !== "" && Number(chosen) === method ? 2.6 : 1.3, opacity: faint(chosen, method), className: "line"}),
          Plot.dot(line, {x: "order", y: "strength", ...symbolOf(method), r: 3.4, opacity: faint(chosen, method)}),
        ]),
        tip(points, Plot.pointer, (point) => `${data.methods[point.method]}, order ${point.order}\n${number(point.strength)}`, {x: "order", y: "strength"}),
      ],
    });
  }

  function drawAgreement(element, data, chosen) {
    const width = element.clientWidth, count = data.methods.length;
    const names = room(data.methods, width), side = (width - names.margin - 10) / count;
    const cells = data.agreement.flatMap((line, row) => line.map((value, column) => ({row, column, value})));
    const digits = d3.format(side < 34 ? ".1f" : ".2f");
    const shown = (cell) => (chosen === "" || Number(chosen) === cell.row || Number(chosen) === cell.column ? 1 : 0.25);
    plot(element, "Rank correlation of Shapley values between absences", {
      width, height: Math.min(46, side) * count + names.margin * 0.75 + 14, marginLeft: names.margin, marginRight: 10, marginTop: 8, marginBottom: names.margin * 0.75,
      x: {type: "band", domain: d3.range(count), label: null, tickFormat: (method) => names.name(data.methods[method]), tickRotate: -45, tickSize: 0, padding: 0.04},
      y: {type: "band", domain: d3.range(count), label: null, tickFormat: (method) => names.name(data.methods[method]), tickSize: 0, padding: 0.04},
      marks: [
        Plot.cell(cells, {x: "column", y: "row", fill: "currentColor", fillOpacity: (cell) => (cell.value == null ? 0 : 0.85 * shown(cell) * ((cell.value + 1) / 2) ** 2.5), className: "cell"}),
        Plot.text(cells, {x: "column", y: "row", fontSize: side < 34 ? 10 : FONT, text: (cell) => (cell.value == null ? "–" : digits(cell.value)), fill: (cell) => (shown(cell) === 1 && cell.value > 0.75 ? "var(--paper)" : "currentColor")}),
        tip(cells, Plot.pointer, (cell) => `${data.methods[cell.row]} and ${data.methods[cell.column]}\n${number(cell.value)}`, {x: "column", y: "row"}),
      ],
    });
  }

  function start(section, data) {
    const radios = section.querySelectorAll("input[type=radio]"), at = (name) => section.querySelector(`[data-chart="${name}"]`);
    for (const place of section.querySelectorAll("[data-symbol]")) drawSymbol(place, Number(place.dataset.symbol));
    const redraw = () => {
      const chosen = [...radios].find((radio) => radio.checked)?.value ?? "";
      for (const panel of section.querySelectorAll(".method")) panel.hidden = panel.dataset.method !== chosen;
      drawRemoval(at("removal"), data, chosen);
      drawOrders(at("orders"), data, chosen);
      drawAgreement(at("agreement"), data, chosen);
    };
    for (const radio of radios) radio.addEventListener("change", redraw);
    return redraw;
  }

  function drawSymbol(place, method) {
    const svg = d3.create("svg").attr("viewBox", "-7 -7 14 14").attr("aria-hidden", "true");
    svg.append("path").attr("d", d3.symbol(look(method).symbol, 70)()).attr("fill", look(method).colour);
    place.replaceChildren(svg.node());
  }
  return {start};
})();
