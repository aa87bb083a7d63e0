// Explanations: charts and table of the chosen sample.
"use strict";
const explanation = (() => {
  const {bars, columns, curve, number, plus, withError, image, framed} = charts;
  const MOST_BARS = 20, MOST_INTERACTIONS = 15, MOST_ROWS = 200;

  const ranked = (values) => d3.range(values.length).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));

  function members(names, set) {
    return names.filter((_, player) => Math.floor(set / 2 ** player) % 2 === 1);
  }

  function named(players) {
    const shown = players.length > 3 ? [...players.slice(0, 3), `${players.length - 3} more`] : players;
    return {players: shown, name: shown.join(" & ")};
  }

  // A bar for each of the largest players, and one for the sum of all others.
  function shapleyRows(data, values, errors) {
    const order = ranked(values), first = order.slice(0, order.length > MOST_BARS + 1 ? MOST_BARS : order.length);
    const rows = first.map((player) => ({
      name: data.names[player], value: values[player], error: errors?.[player],
      text: `${data.names[player]}\n${withError(plus(values[player]), errors?.[player])}`,
    }));
    const others = order.slice(first.length);
    if (others.length) {
      const value = d3.sum(others, (player) => values[player]);
      rows.push({name: `${others.length} others`, value, others: true, text: `${others.length} others together\n${plus(value)}`});
    }
    return rows;
  }

  function drawShapley(element, data, sample, context) {
    if (context !== "") {
      const rows = shapleyRows(data, sample.orders[context]);
      return bars(element, rows, {title: `Shapley values with ${context} other players present`, label: "adds to the value →"});
    }
    const rows = shapleyRows(data, sample.values, sample.errors);
    // A waterfall: from all absent, player by player, to all present.
    let from = sample.base;
    for (const row of rows) [row.from, from] = [from, from + row.value];
    const lines = [{at: sample.base, text: "v(∅)"}, {at: sample.output, text: "v(N)"}];
    bars(element, rows, {title: "Shapley values, from v(∅) to v(N)", label: "value →", lines});
  }

  function drawInteractions(element, data, sample, order) {
    const sets = sample.effects.map(([set, effect, unsure]) => ({players: members(data.names, set), effect, unsure}));
    const rows = sets.filter((set) => set.players.length <= order).slice(0, MOST_INTERACTIONS).map((set) => ({
      ...named(set.players), value: set.effect, hollow: set.unsure,
      text: `${set.players.join(" & ")}\n${plus(set.effect)}, order ${set.players.length}${set.unsure ? "; within rounding error" : ""}`,
    }));
    bars(element, rows, {title: `Strongest interactions of up to ${order} players`, label: "effect U →"});
  }

  function drawPictures(element, data, sample) {
    const {width, height, labels} = data.picture;
    const figures = [["The sample", image(sample.image, "The sample")]];
    if (sample.standIn) figures.push(["All players absent", image(sample.standIn, "The stand-in")]);
    const holders = figures.map(([title, picture]) => framed(title, picture));
    element.replaceChildren(...holders);
    if (!labels) return;
    const holder = document.createElement("div");
    element.append(framed("Shapley values", holder));
    const most = d3.max(sample.values, Math.abs) || 1;
    const places = d3.rollups(labels.map((player, index) => ({player, x: index % width, y: Math.floor(index / width)})).filter((one) => one.player >= 0),
      (pixels) => ({x: d3.mean(pixels, (pixel) => pixel.x) + 0.5, y: d3.mean(pixels, (pixel) => pixel.y) + 0.5}), (pixel) => pixel.player)
      .map(([player, place]) => ({...place, text: `${data.names[player]}\n${plus(sample.values[player])}`}));
    const side = holder.clientWidth;
    const shade = (sign) => labels.map((player) => (player >= 0 && sign * sample.values[player] > 0 ? Math.abs(sample.values[player]) / most : 0));
    charts.plot(holder, "Shapley values of the players, over the sample", {
      width: side, height: (side * height) / width, margin: 0,
      x: {domain: [0, width], axis: null}, y: {domain: [height, 0], axis: null},
      marks: [
        Plot.image([sample.image], {x: width / 2, y: height / 2, src: (address) => address, width: side, height: (side * height) / width, opacity: 0.25, imageRendering: "pixelated", preserveAspectRatio: "none"}),
        ...[1, -1].map((sign) => heat(shade(sign), width, height, sign)),
        charts.tip(places, Plot.pointer, (place) => place.text, {x: "x", y: "y", maxRadius: 200}),
      ],
    });
  }

  // A layer of one colour whose opacity follows the values. Runs of equal pixels become one rectangle.
  function heat(shades, width, height, sign) {
    const runs = [];
    for (let y = 0; y < height; y++) {
      for (let x = 0, from = 0; x < width; x++) {
        const here = shades[y * width + x];
        if (x + 1 < width && shades[y * width + x + 1] === here) continue;
        if (here > 0) runs.push({x1: from, x2: x + 1, y1: y, y2: y + 1, here});
        from = x + 1;
      }
    }
    return Plot.rect(runs, {x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: sign > 0 ? charts.RAISES : charts.LOWERS, fillOpacity: (run) => 0.85 * run.here, className: "heat", shapeRendering: "crispEdges"});
  }

  const entries = (value) => (value == null ? "–" : Array.isArray(value) ? value.map(number).join(", ") : number(value));

  function fillTable(body, data, sample) {
    const standIns = sample.standIns ?? data.standIns;
    const rows = ranked(sample.values).slice(0, MOST_ROWS).map((player, rank) => {
      const cells = [rank + 1, data.names[player], withError(plus(sample.values[player]), sample.errors?.[player])];
      if (!data.picture) cells.push(entries(sample.inputs?.[player]), entries(standIns?.[player]));
      return cells;
    });
    const left = data.names.length - rows.length;
    if (left > 0) rows.push(["…", `${left} more players`, "", "", ""].slice(0, rows[0].length));
    d3.select(body).selectAll("tr").data(rows).join("tr").selectAll("td").data((row) => row).join("td").text((cell) => cell);
  }

  function draw(section, data, chosen) {
    const sample = data.samples[chosen.sample], at = (name) => section.querySelector(`[data-chart="${name}"]`);
    section.querySelector(".reading").textContent =
      `Sample ${chosen.sample}: ${sample.reading}`;
    drawShapley(at("shapley"), data, sample, chosen.context);
    if (sample.effects) {
      drawInteractions(at("interactions"), data, sample, chosen.order);
      const total = d3.sum(sample.profile) || 1;
      columns(at("profile"), sample.profile.map((strength) => strength / total), {title: "Strength by order", label: "share of Σ|U|"});
    }
    if (sample.curve) {
      const rows = data.counts.map((count, index) => ({x: count, y: sample.curve[index]}));
      curve(at("curve"), rows, {
        title: "Number of interactions needed", xLabel: "strongest interactions used →", yLabel: "error", level: 0.05, percent: true,
        text: (row) => `${d3.format(",")(row.x)} strongest: error ${d3.format(".2%")(row.y)}`,
      });
    }
    if (data.overall) {
      const rows = shapleyRows(data, data.overall).filter((row) => !row.others);
      bars(at("overall"), rows, {title: "Mean |Shapley value|", label: "mean |Shapley value| →", signs: false});
    }
    if (data.picture) drawPictures(at("pictures"), data, sample);
    fillTable(section.querySelector(".players tbody"), data, sample);
  }

  function start(section, data) {
    const control = (name) => section.querySelector(`[data-control="${name}"]`);
    const sample = control("sample"), steps = section.querySelectorAll("[data-step]");
    const redraw = () => {
      for (const step of steps) step.disabled = !data.samples[Number(sample.value) + Number(step.dataset.step)];
      draw(section, data, {sample: Number(sample.value), context: control("context")?.value ?? "", order: Number(control("order")?.value)});
    };
    for (const step of steps) step.addEventListener("click", () => {
      sample.value = String(Number(sample.value) + Number(step.dataset.step));
      redraw();
    });
    for (const select of section.querySelectorAll("select")) select.addEventListener("change", redraw);
    return redraw;
  }
  return {start};
})();
