// The markers of the library's plots. They tell absences apart in greyscale.
"use strict";
const symbols = (() => {
  const SALTIRE_CORNERS = [
    [3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1], [-3, -1], [-1, -1], [-1, -3], [1, -3], [1, -1], [3, -1],
  ];

  // Draw a closed shape from corner to corner.
  function drawShape(context, corners) {
    corners.forEach(([x, y], number) => {
      if (number === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
    context.closePath();
  }

  // A regular polygon; `turn` is the angle of its first corner.
  const polygon = (corners, turn) => ({
    draw(context, size) {
      const radius = Math.sqrt((2 * size) / (corners * Math.sin((2 * Math.PI) / corners)));
      const angles = d3.range(corners).map((corner) => turn + (2 * Math.PI * corner) / corners);
      drawShape(context, angles.map((angle) => [radius * Math.cos(angle), radius * Math.sin(angle)]));
    },
  });

  // A cross that stands on two of its arms.
  const saltire = {
    draw(context, size) {
      const arm = (1.3 * Math.sqrt(size / 20)) / Math.SQRT2;
      drawShape(context, SALTIRE_CORNERS.map(([x, y]) => [arm * (x - y), arm * (x + y)]));
    },
  };

  const SYMBOLS = {
    o: d3.symbolCircle,
    s: d3.symbolSquare,
    "^": d3.symbolTriangle,
    D: d3.symbolDiamond,
    "*": d3.symbolStar,
    P: d3.symbolCross,
    v: polygon(3, Math.PI / 2),
    h: polygon(6, 0),
    p: polygon(5, -Math.PI / 2),
    X: saltire,
  };
  return {SYMBOLS};
})();
