// A matrix of dots beside bars: a row for each set of players, a column for each player that takes part.
"use strict";
const setMatrix = (() => {
  const LEFT = 6;  // margin in pixels
  const MOST_LETTERS = 18;  // in a player's name
  const SLANTED = 0.82;  // height of a slanted name as a share of its width

  // Room for the columns, with the players' names above.
  function room(names, rows, width) {
    const taking = new Set(rows.flatMap((row) => row.players));
    const shown = d3.sort(taking);
    const step = Math.max(8, Math.min(17, (0.55 * width) / shown.length));
    const letters = Math.min(MOST_LETTERS, d3.max(shown, (player) => names[player].length) ?? 1);
    const margin = Math.ceil(step * shown.length) + 14;
    const top = 26 + Math.ceil(letters * axes.LETTER * SLANTED);
    return {shown, step, letters, margin, top};
  }

  function draw(svg, names, rows, {shown, step, letters, top}) {
    const scale = svg.scale("y");
    const columns = shown.map((player, index) => ({player, x: LEFT + step * (index + 0.5)}));
    const matrix = d3.select(svg).append("g").attr("class", "matrix");
    for (const column of columns) drawName(matrix, axes.shorten(names[column.player], letters), column.x, top, step);
    rows.forEach((row, index) => {
      const y = scale.apply(index) + scale.bandwidth / 2;
      drawSet(matrix, row.players, columns, y, Math.min(5, 0.36 * step));
    });
  }

  function drawName(matrix, name, x, top, step) {
    matrix
      .append("text")
      .attr("transform", `translate(${x + 3} ${top - 8}) rotate(-60)`)
      .attr("font-size", Math.min(charts.FONT, step + 1))
      .attr("fill", "currentColor")
      .attr("text-anchor", "start")
      .text(name);
  }

  // A row of dots, black and connected for the players of the set.
  function drawSet(matrix, players, columns, y, radius) {
    const members = new Set(players);
    const [first, last] = d3.extent(columns.filter((column) => members.has(column.player)), (column) => column.x);
    const line = matrix.append("g");
    charts.tie(line.node(), players);
    line
      .append("line")
      .attr("x1", first)
      .attr("x2", last)
      .attr("y1", y)
      .attr("y2", y)
      .attr("stroke", "currentColor")
      .attr("stroke-width", 1.5);
    for (const {player, x} of columns) {
      line
        .append("circle")
        .attr("cx", x)
        .attr("cy", y)
        .attr("r", radius)
        .attr("class", members.has(player) ? "in" : "out");
    }
  }

  return {draw, room};
})();
