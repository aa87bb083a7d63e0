// Explanations: the answer, its picture, charts and table of the chosen sample. Hovering shows where players are.
"use strict";
const explanation = (() => {
  const {bars, columns, curve, image, framed, tie} = charts;
  const MOST_INTERACTIONS = 15;
  const SMALL_ERROR = 5;  // percent; rebuilt values with a smaller error count as correct

  const NOT_DETERMINED = "not determined";

  const withError = (shown, error) => (error === undefined ? shown : `${shown} ± ${error}`);
  const isUnsure = (sample, player) => Boolean(sample.undetermined?.includes(player));

  // Show or hide a remark below a chart.
  function remark(element, name, isShown) {
    element.parentElement.querySelector(`.${name}`).hidden = !isShown;
  }

  // The name of a player, with its input if it has a single one.
  function nameWithInput(data, sample, player) {
    if (!data.single[player]) return data.names[player];
    return `${data.names[player]} = ${sample.inputs[player]}`;
  }

  function playerRow(name, {player, value, shown, error, shownError, unsure = false}) {
    const lines = [name, withError(shown, shownError)];
    if (unsure) lines.push(NOT_DETERMINED);
    return {name, players: [player], value, shown, error, unsure, lines};
  }

  // The value of a player as shown; empty if it is not among the first.
  function textOf(sample, player) {
    const row = sample.ranked.find(([other]) => other === player);
    return row ? row[1] : "";
  }

  function drawShapley(element, data, sample, context) {
    if (context === "") drawWaterfall(element, data, sample);
    else drawContext(element, data, sample, Number(context));
  }

  // Values with a number of other players present, the largest first.
  function drawContext(element, data, sample, context) {
    const values = sample.orders.values[context];
    const texts = sample.orders.texts[context];
    const errors = sample.orders.errors?.[context];
    const unsure = new Set(sample.orders.undetermined?.[context]);
    const rows = data.names.map((_, player) => {
      const error = errors?.[player] || undefined;
      const shownError = error ? sample.orders.errorTexts[context][player] : undefined;
      const value = values[player] ?? NaN;
      const name = nameWithInput(data, sample, player);
      return playerRow(name, {player, value, shown: texts[player], error, shownError, unsure: unsure.has(player)});
    });
    rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const largest = rows.slice(0, sample.bars);
    const title = `Shapley values with ${sample.orders.orders[context]} other players present`;
    remark(element, "unsure", largest.some((row) => row.unsure));
    bars(element, largest, {title, label: "adds to the value →"});
  }

  // From all absent, player by player, to all present.
  function drawWaterfall(element, data, sample) {
    const rows = sample.ranked.slice(0, sample.bars).map(([player, shown, shownError]) => {
      const value = sample.values[player];
      const error = sample.errors?.[player];
      const unsure = isUnsure(sample, player);
      return playerRow(nameWithInput(data, sample, player), {player, value, shown, error, shownError, unsure});
    });
    remark(element, "unsure", rows.some((row) => row.unsure));
    if (sample.others) rows.push(rowOfOthers(sample.others));
    let level = sample.base;
    for (const row of rows) {
      row.from = level;
      level += row.value;
    }
    const levels = [
      {at: sample.base, text: `all absent: ${sample.ends[0]}`},
      {at: sample.output, text: `all present: ${sample.ends[1]}`},
    ];
    bars(element, rows, {title: "Shapley values, from v(∅) to v(N)", label: "value →", levels});
  }

  function rowOfOthers({count, value, shown}) {
    return {name: `${count} others`, value, shown, lines: [`${count} others together`, shown]};
  }

  function drawInteractions(element, data, sample, order) {
    const {sets, hollow} = interactionsUpTo(sample.effects, order);
    const rows = sets.slice(0, MOST_INTERACTIONS).map((set) => interactionRow(data.names, set));
    remark(element, "hollow", hollow);
    remark(element, "near", rows.some((row) => row.estimated && row.hollow && !row.unsure));
    remark(element, "unsure", rows.some((row) => row.unsure));
    element.parentElement.querySelector(".fit").textContent = sample.fit ? ` ${sample.fit}` : "";
    const names = rows.map((row) => row.name);
    const areUnique = new Set(names).size === names.length;
    const asNames = areUnique && axes.fit(names, element.clientWidth);
    const title = `Strongest interactions of up to ${order} players`;
    bars(element, rows, {title, label: `effect ${data.symbol} →`, columns: asNames ? null : data.names});
  }

  // Sets of at most this many players, strongest first: all estimated ones, otherwise those beyond rounding error, or
  // all if none are.
  function interactionsUpTo(effects, order) {
    const estimated = Boolean(effects.errors);
    const near = new Set(effects.hollow);
    const unsure = new Set(effects.undetermined);
    const sets = effects.sets.map((players, place) => ({
      players,
      estimated,
      value: effects.values[place],
      shown: effects.texts[place],
      error: effects.errors?.[place] ?? undefined,
      shownError: effects.errors?.[place] ? effects.errorTexts[place] : undefined,
      hollow: near.has(place),
      unsure: unsure.has(place),
    }));
    const small = sets.filter((set) => set.players.length <= order);
    if (estimated) return {sets: small, hollow: false};
    const sure = small.filter((set) => !set.hollow);
    if (sure.length) return {sets: sure, hollow: false};
    return {sets: small, hollow: true};
  }

  function interactionRow(names, set) {
    const name = set.players.map((player) => names[player]).join(" & ");
    const effect = withError(set.shown, set.shownError);
    return {...set, name, lines: [name, `${effect}, order ${set.players.length}${doubtOf(set)}`]};
  }

  // What to know about the effect of a set that is hollow or dotted.
  function doubtOf({estimated, hollow, unsure}) {
    if (unsure) return `; ${NOT_DETERMINED}`;
    if (!hollow) return "";
    return estimated ? "; within two standard errors" : "; within rounding error";
  }

  function drawCurve(element, data, sample) {
    const {values, texts, counts = data.counts} = sample.curve;
    const rows = counts.map((count, index) => ({
      x: count,
      y: values[index] ?? NaN,
      text: `${count} strongest: error ${texts[index]} %`,
    }));
    curve(element, rows, {
      title: "Number of interactions needed",
      xLabel: "strongest interactions used →",
      yLabel: "error",
      level: SMALL_ERROR,
      least: 0.01,
      unit: " %",
    });
  }

  function drawOverall(element, data) {
    const rows = data.overall.map((row) => playerRow(data.names[row.player], row));
    remark(element, "unsure", rows.some((row) => row.unsure));
    bars(element, rows, {title: "Mean |Shapley value|", label: "mean |Shapley value| →", signs: false});
  }

  function drawPictures(element, sample) {
    const figures = [framed("The sample", image(sample.image, "The sample"))];
    if (sample.standIn) figures.push(framed("All players absent", image(sample.standIn, "The stand-in")));
    element.replaceChildren(...figures);
  }

  // The tokens in order, each coloured by its value.
  function drawSentence(element, data, sample) {
    const most = Math.max(...sample.values.map(Math.abs)) || 1;
    const texts = new Map(sample.ranked.map(([player, shown, error]) => [player, withError(shown, error)]));
    const tokens = data.names.map((name, player) => {
      const value = sample.values[player];
      const token = drawToken(name, player, value, Math.abs(value) / most, texts.get(player) ?? "");
      if (isUnsure(sample, player)) {
        token.classList.add("unsure");
        token.title += `, ${NOT_DETERMINED}`;
      }
      return token;
    });
    element.replaceChildren(...tokens.flatMap((token) => [token, " "]));
  }

  function drawToken(name, player, value, strength, text) {
    const token = document.createElement("span");
    token.className = `token ${value >= 0 ? "adds" : "takes"}`;
    token.style.setProperty("--strength", `${Math.round(100 * strength)}%`);
    token.textContent = name;
    token.title = `${name}: ${text}`;
    tie(token, [player]);
    return token;
  }

  function fillTable(body, data, sample) {
    const rows = sample.ranked.map(([player, shown, error], rank) => {
      const mark = isUnsure(sample, player) ? `, ${NOT_DETERMINED}` : "";
      const cells = [rank + 1, data.names[player], withError(shown, error) + mark];
      if (sample.inputs) cells.push(sample.inputs?.[player] ?? "–", sample.standIns?.[player] ?? "–");
      return cells;
    });
    const left = data.names.length - rows.length;
    if (left > 0) rows.push(["…", `${left} more players`, "", "", ""].slice(0, rows[0].length));
    const lines = d3.select(body).selectAll("tr").data(rows).join("tr");
    lines.selectAll("td").data((row) => row).join("td").text((cell) => cell);
    lines.each(function (_, rank) {
      tie(this, sample.ranked[rank]?.slice(0, 1));
    });
  }

  // Hovering over a player's bar, row, area or token highlights everything that belongs to it.
  function link(section) {
    const playersOf = (element) => new Set(element.dataset.players.split(" "));
    const light = (event) => {
      const hovered = event.target.closest?.("[data-players]");
      const chosen = hovered && playersOf(hovered);
      for (const element of section.querySelectorAll("[data-players]")) {
        element.classList.toggle("lit", Boolean(chosen) && isNested(playersOf(element), chosen));
      }
    };
    section.addEventListener("pointerover", light);
    section.addEventListener("pointerleave", light);
  }

  const isSubset = (part, whole) => [...part].every((player) => whole.has(player));
  const isNested = (some, others) => isSubset(some, others) || isSubset(others, some);

  function draw(section, data, chosen) {
    const sample = data.samples[chosen.sample];
    const at = (name) => section.querySelector(`[data-chart="${name}"]`);
    section.querySelector(".answer").textContent = sample.answer;
    if (data.picture) drawPictures(at("pictures"), sample);
    if (data.picture?.labels) heatMap.draw(at("heat"), data, sample, (player) => textOf(sample, player));
    if (data.text) drawSentence(at("sentence"), data, sample);
    if (sample.values) drawShapley(at("shapley"), data, sample, chosen.context);
    if (sample.effects) drawInteractions(at("interactions"), data, sample, chosen.order);
    if (sample.shares) columns(at("profile"), sample.shares, {title: "Strength by order", label: `share of Σ|${data.symbol}|`});
    if (sample.curve) drawCurve(at("curve"), data, sample);
    if (data.overall) drawOverall(at("overall"), data);
    if (sample.values) fillTable(section.querySelector(".players tbody"), data, sample);
  }

  function start(section, data) {
    const control = (name) => section.querySelector(`[data-control="${name}"]`);
    const sampleControl = control("sample");
    const steps = section.querySelectorAll("[data-step]");
    const chosenSample = () => Number(sampleControl?.value ?? 0);
    const redraw = () => {
      for (const step of steps) step.disabled = !data.samples[chosenSample() + Number(step.dataset.step)];
      draw(section, data, {
        sample: chosenSample(),
        context: control("context")?.value ?? "",
        order: Number(control("order")?.value),
      });
    };
    for (const step of steps) {
      step.addEventListener("click", () => {
        sampleControl.value = String(chosenSample() + Number(step.dataset.step));
        redraw();
      });
    }
    for (const select of section.querySelectorAll("select")) select.addEventListener("change", redraw);
    link(section);
    return redraw;
  }

  return {start};
})();
