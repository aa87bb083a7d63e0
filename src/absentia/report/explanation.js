// Explanations: the answer, its picture, charts and table of the chosen sample. Hovering shows where players are.
"use strict";
const explanation = (() => {
  const {bars, columns, curve, image, framed, tie, valueOf, LETTER} = charts;
  const MOST_INTERACTIONS = 15, MOST_NUMBERS = 25;

  const members = (names, set) => d3.range(names.length).filter((player) => Math.floor(set / 2 ** player) % 2 === 1);

  function playerRow(data, sample, player, shown, value, error) {
    const name = data.single[player] && sample ? `${data.names[player]} = ${sample.inputs[player]}` : data.names[player];
    return {name, players: [player], value, shown: shown.split(" ± ")[0], error, text: `${name}\n${shown}`};
  }

  // Bars of values with a number of other players present, the largest first.
  function contextRows(data, sample, context) {
    const rows = sample.orders[context].map((shown, player) => playerRow(data, sample, player, shown, valueOf(shown)));
    return rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, sample.bars);
  }

  function drawShapley(element, data, sample, context) {
    if (context !== "") {
      return bars(element, contextRows(data, sample, context), {title: `Shapley values with ${context} other players present`, label: "adds to the value →"});
    }
    const rows = sample.ranked.slice(0, sample.bars).map(([player, shown]) => playerRow(data, sample, player, shown, sample.values[player], sample.errors?.[player]));
    if (sample.others) {
      const [count, value, shown] = sample.others;
      rows.push({name: `${count} others`, value, shown, text: `${count} others together\n${shown}`});
    }
    // A waterfall: from all absent, player by player, to all present.
    let from = sample.base;
    for (const row of rows) [row.from, from] = [from, from + row.value];
    const lines = [{at: sample.base, text: `all absent: ${sample.ends[0]}`}, {at: sample.output, text: `all present: ${sample.ends[1]}`}];
    bars(element, rows, {title: "Shapley values, from v(∅) to v(N)", label: "value →", lines});
  }

  function drawInteractions(element, data, sample, order) {
    const sets = sample.effects.map(([set, shown, unsure]) => ({players: members(data.names, set), shown, unsure}));
    const some = sets.filter((set) => set.players.length <= order), sure = some.filter((set) => !set.unsure);
    const rows = (sure.length ? sure : some).slice(0, MOST_INTERACTIONS).map((set) => {
      const name = set.players.map((player) => data.names[player]).join(" & ");
      return {
        name, players: set.players, value: valueOf(set.shown), shown: set.shown, hollow: set.unsure,
        text: `${name}\n${set.shown}, order ${set.players.length}${set.unsure ? "; within rounding error" : ""}`,
      };
    });
    const fits = d3.max(rows, (row) => row.name.length) * LETTER <= 0.42 * element.clientWidth;
    element.parentElement.querySelector(".hollow").hidden = sure.length > 0;
    const unique = new Set(rows.map((row) => row.name)).size === rows.length;
    bars(element, rows, {title: `Strongest interactions of up to ${order} players`, label: "effect U →", columns: fits && unique ? null : data.names});
  }

  function drawPictures(element, data, sample) {
    const figures = [framed("The sample", image(sample.image, "The sample"))];
    if (sample.standIn) figures.push(framed("All players absent", image(sample.standIn, "The stand-in")));
    element.replaceChildren(...figures);
  }

  function drawHeat(element, data, sample) {
    const scale = document.createElement("div");
    scale.className = "scale";
    const most = Math.max(...sample.values.map(Math.abs));
    for (const text of most > 0 ? [`−${sample.most}`, "0", `+${sample.most}`] : ["0", "0", "0"]) {
      const end = document.createElement("span");
      end.textContent = text;
      scale.append(end);
    }
    const holder = framed("Shapley values over the sample", heat(data, sample, most));
    holder.append(scale);
    element.replaceChildren(holder);
  }

  // The image, and over it an area for each player whose colour is as strong as its value.
  function heat(data, sample, most) {
    const {width, height} = data.picture;
    const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("class", "heat").attr("aria-label", "Shapley values of the players, over the sample");
    svg.append("image").attr("href", sample.image).attr("width", width).attr("height", height).attr("preserveAspectRatio", "none");
    svg.append("rect").attr("width", width).attr("height", height).attr("class", "veil");
    data.areas ??= areas(data.picture);
    for (const {player, fill, edge} of data.areas) {
      const value = sample.values[player], area = svg.append("g").attr("class", "cell");
      tie(area.node(), [player]);
      area.append("path").attr("d", fill).attr("class", value >= 0 ? "adds" : "takes").attr("fill-opacity", most > 0 ? 0.9 * Math.abs(value) / most : 0);
      area.append("path").attr("d", edge).attr("class", "edge");
      area.append("title").text(`${data.names[player]}: ${textOf(sample, player)}`);
    }
    if (data.areas.length <= MOST_NUMBERS) {
      for (const {player, x, y, size} of data.areas) {
        const text = textOf(sample, player);
        svg.append("text").attr("x", x).attr("y", y).attr("font-size", Math.min(0.2 * size, (1.3 * size) / text.length)).text(text);
      }
    }
    return svg.node();
  }

  const textOf = (sample, player) => sample.ranked.find(([other]) => other === player)?.[1].split(" ± ")[0] ?? "";

  // The pixels of each player as a path, the edge around them, and their middle. The path has one part for each run.
  function areas({width, height, labels}) {
    const at = (x, y) => (x >= 0 && x < width && y >= 0 && y < height ? labels[y * width + x] : -1);
    const found = new Map();
    for (let y = 0; y < height; y++) {
      for (let x = 0, from = 0; x < width; x++) {
        const player = at(x, y);
        const one = found.get(player) ?? found.set(player, {player, fill: "", edge: "", pixels: []}).get(player);
        one.pixels.push([x + 0.5, y + 0.5]);
        if (at(x - 1, y) !== player) { one.edge += `M${x} ${y}v1`; from = x; }
        if (at(x + 1, y) !== player) { one.edge += `M${x + 1} ${y}v1`; one.fill += `M${from} ${y}H${x + 1}v1H${from}z`; }
        if (at(x, y - 1) !== player) one.edge += `M${x} ${y}h1`;
        if (at(x, y + 1) !== player) one.edge += `M${x} ${y + 1}h1`;
      }
    }
    found.delete(-1);
    return [...found.values()].map(({pixels, ...one}) => ({...one, x: d3.mean(pixels, ([x]) => x), y: d3.mean(pixels, ([, y]) => y), size: Math.sqrt(pixels.length)}));
  }

  // The tokens in their order, each with a colour as strong as its value.
  function drawSentence(element, data, sample) {
    const most = Math.max(...sample.values.map(Math.abs)) || 1, texts = new Map(sample.ranked);
    element.replaceChildren(...data.names.flatMap((name, player) => {
      const token = document.createElement("span"), value = sample.values[player];
      token.className = `token ${value >= 0 ? "adds" : "takes"}`;
      token.style.setProperty("--strength", `${Math.round((100 * Math.abs(value)) / most)}%`);
      token.textContent = name;
      token.title = `${name}: ${texts.get(player) ?? ""}`;
      tie(token, [player]);
      return [token, " "];
    }));
  }

  function fillTable(body, data, sample) {
    const standIns = sample.standIns;
    const rows = sample.ranked.map(([player, shown], rank) => {
      const cells = [rank + 1, data.names[player], shown];
      if (!data.picture) cells.push(sample.inputs?.[player] ?? "–", standIns?.[player] ?? "–");
      return cells;
    });
    const left = data.names.length - rows.length;
    if (left > 0) rows.push(["…", `${left} more players`, "", "", ""].slice(0, rows[0].length));
    const lines = d3.select(body).selectAll("tr").data(rows).join("tr");
    lines.selectAll("td").data((row) => row).join("td").text((cell) => cell);
    lines.each(function (_, rank) { tie(this, sample.ranked[rank]?.slice(0, 1)); });
  }

  // Hovering over a player's bar, row, area or token sets off all that belongs to it.
  function link(section) {
    const playersOf = (element) => new Set(element.dataset.players.split(" "));
    const light = (event) => {
      const over = event.target.closest?.("[data-players]"), chosen = over && playersOf(over);
      for (const one of section.querySelectorAll("[data-players]")) {
        const own = chosen && playersOf(one);
        one.classList.toggle("lit", Boolean(own) && ([...own].every((player) => chosen.has(player)) || [...chosen].every((player) => own.has(player))));
      }
    };
    section.addEventListener("pointerover", light);
    section.addEventListener("pointerleave", light);
  }

  function draw(section, data, chosen) {
    const sample = data.samples[chosen.sample], at = (name) => section.querySelector(`[data-chart="${name}"]`);
    section.querySelector(".answer").textContent = sample.answer;
    if (data.picture) drawPictures(at("pictures"), data, sample);
    if (data.picture?.labels) drawHeat(at("heat"), data, sample);
    if (data.text) drawSentence(at("sentence"), data, sample);
    drawShapley(at("shapley"), data, sample, chosen.context);
    if (sample.effects) {
      drawInteractions(at("interactions"), data, sample, chosen.order);
      columns(at("profile"), sample.shares, {title: "Strength by order", label: "share of Σ|U|"});
    }
    if (sample.curve) {
      const rows = data.counts.map((count, index) => ({x: count, y: valueOf(sample.curve[index]), text: `${count} strongest: error ${sample.curve[index]} %`}));
      curve(at("curve"), rows, {title: "Number of interactions needed", xLabel: "strongest interactions used →", yLabel: "error", level: 5, least: 0.01, percent: true});
    }
    if (data.overall) {
      const rows = data.overall.map(([player, shown]) => playerRow(data, null, player, shown, ...shown.split(" ± ").map(valueOf)));
      bars(at("overall"), rows, {title: "Mean |Shapley value|", label: "mean |Shapley value| →", signs: false});
    }
    fillTable(section.querySelector(".players tbody"), data, sample);
  }

  function start(section, data) {
    const control = (name) => section.querySelector(`[data-control="${name}"]`);
    const sample = control("sample"), steps = section.querySelectorAll("[data-step]"), number = () => Number(sample?.value ?? 0);
    const redraw = () => {
      for (const step of steps) step.disabled = !data.samples[number() + Number(step.dataset.step)];
      draw(section, data, {sample: number(), context: control("context")?.value ?? "", order: Number(control("order")?.value)});
    };
    for (const step of steps) step.addEventListener("click", () => {
      sample.value = String(number() + Number(step.dataset.step));
      redraw();
    });
    for (const select of section.querySelectorAll("select")) select.addEventListener("change", redraw);
    link(section);
    return redraw;
  }
  return {start};
})();
