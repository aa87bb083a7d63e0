// The heat map of an image: an area for each player is drawn over it, coloured by the player's value.
"use strict";
const heatMap = (() => {
  const MOST_NUMBERS = 25;  // values are written on up to this many players
  const STRONGEST = 0.9;  // opacity of the largest value
  const NO_PLAYER = -1;  // the label of pixels that are always present

  // The picture with its scale below; `textOf` returns the value of a player as shown.
  function draw(element, data, sample, textOf) {
    const most = Math.max(...sample.values.map(Math.abs));
    const holder = charts.framed("Shapley values over the sample", drawHeat(data, sample, most, textOf));
    holder.append(colourScale(most > 0 ? [`−${sample.most}`, "0", `+${sample.most}`] : ["0", "0", "0"]));
    element.replaceChildren(holder);
  }

  function colourScale(texts) {
    const scale = document.createElement("div");
    scale.className = "scale";
    for (const text of texts) {
      const end = document.createElement("span");
      end.textContent = text;
      scale.append(end);
    }
    return scale;
  }

  function drawHeat(data, sample, most, textOf) {
    const {width, height} = data.picture;
    const svg = d3
      .create("svg")
      .attr("viewBox", `0 0 ${width} ${height}`)
      .attr("role", "img")
      .attr("class", "heat")
      .attr("aria-label", "Shapley values of the players, over the sample");
    svg
      .append("image")
      .attr("href", sample.image)
      .attr("width", width)
      .attr("height", height)
      .attr("preserveAspectRatio", "none");
    svg.append("rect").attr("width", width).attr("height", height).attr("class", "veil");
    data.areas ??= areas(data.picture);  // the same for all samples
    for (const area of data.areas) {
      const value = sample.values[area.player];
      const opacity = most > 0 ? (STRONGEST * Math.abs(value)) / most : 0;
      const isUnsure = Boolean(sample.undetermined?.includes(area.player));
      const title = `${data.names[area.player]}: ${textOf(area.player)}${isUnsure ? ", not determined" : ""}`;
      drawArea(svg, area, value, isUnsure ? 0 : opacity, title).classed("unsure", isUnsure);
    }
    if (data.areas.length <= MOST_NUMBERS) {
      for (const area of data.areas) writeOnArea(svg, area, textOf(area.player));
    }
    return svg.node();
  }

  function drawArea(svg, {player, fill, edge}, value, opacity, title) {
    const cell = svg.append("g").attr("class", "cell");
    charts.tie(cell.node(), [player]);
    cell
      .append("path")
      .attr("d", fill)
      .attr("class", value >= 0 ? "adds" : "takes")
      .attr("fill-opacity", opacity);
    cell.append("path").attr("d", edge).attr("class", "edge");
    cell.append("title").text(title);
    return cell;
  }

  function writeOnArea(svg, {x, y, size}, text) {
    const fontSize = Math.min(0.2 * size, (1.3 * size) / text.length);
    svg.append("text").attr("x", x).attr("y", y).attr("font-size", fontSize).text(text);
  }

  // The area of each player: its pixels as a path with a part for each run, its edge, its middle and its size.
  function areas({width, height, labels}) {
    const labelAt = (x, y) => (x >= 0 && x < width && y >= 0 && y < height ? labels[y * width + x] : NO_PLAYER);
    const byPlayer = new Map();
    for (let y = 0; y < height; y++) {
      let runStart = 0;
      for (let x = 0; x < width; x++) {
        const player = labelAt(x, y);
        if (labelAt(x - 1, y) !== player) runStart = x;
        if (!byPlayer.has(player)) byPlayer.set(player, {player, fill: "", edge: "", pixels: []});
        const area = byPlayer.get(player);
        area.pixels.push([x + 0.5, y + 0.5]);
        area.edge += edgeOfPixel(labelAt, x, y);
        if (labelAt(x + 1, y) !== player) area.fill += `M${runStart} ${y}H${x + 1}v1H${runStart}z`;
      }
    }
    byPlayer.delete(NO_PLAYER);
    return [...byPlayer.values()].map(withMiddle);
  }

  // The sides of a pixel beyond which another player begins, as parts of a path.
  function edgeOfPixel(labelAt, x, y) {
    const player = labelAt(x, y);
    let edge = "";
    if (labelAt(x - 1, y) !== player) edge += `M${x} ${y}v1`;
    if (labelAt(x + 1, y) !== player) edge += `M${x + 1} ${y}v1`;
    if (labelAt(x, y - 1) !== player) edge += `M${x} ${y}h1`;
    if (labelAt(x, y + 1) !== player) edge += `M${x} ${y + 1}h1`;
    return edge;
  }

  function withMiddle({player, fill, edge, pixels}) {
    const x = d3.mean(pixels, (pixel) => pixel[0]);
    const y = d3.mean(pixels, (pixel) => pixel[1]);
    return {player, fill, edge, x, y, size: Math.sqrt(pixels.length)};
  }

  return {draw};
})();
