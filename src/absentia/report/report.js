// The page: draw every section, draw again when the width changes, and open all details for printing.
"use strict";
(() => {
  const kinds = {explanation, audit, baseline};
  const data = JSON.parse(document.getElementById("data").textContent);
  const sections = [...document.querySelectorAll(".result")].filter((section) => kinds[data[section.dataset.number].kind]);
  const redraws = sections.map((section) => {
    const own = data[section.dataset.number];
    return kinds[own.kind].start(section, own);
  });
  for (const redraw of redraws) redraw();

  let width = document.body.clientWidth, waiting = 0;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => redraws.forEach((redraw) => redraw()), 120);
  });

  // Open all details for printing, and close them afterwards.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
  document.documentElement.dataset.ready = "yes";
})();
