// The page: draw every section, draw again when the width changes, and open all details for printing.
"use strict";
(() => {
  const KINDS = {explanation, terms: explanation, audit, baseline};
  const PAUSE = 120;  // charts are drawn again this many milliseconds after the last change of the width

  // Prepare every section that has a script, and return the functions that draw them.
  function startSections() {
    const data = JSON.parse(document.getElementById("data").textContent);
    const redraws = [];
    for (const section of document.querySelectorAll(".result")) {
      const own = data[section.dataset.number];
      const script = KINDS[own.kind];
      if (script) redraws.push(script.start(section, own));
    }
    return redraws;
  }

  function redrawOnResize(redrawAll) {
    let width = document.body.clientWidth;
    let waiting = 0;
    addEventListener("resize", () => {
      if (document.body.clientWidth === width) return;
      width = document.body.clientWidth;
      clearTimeout(waiting);
      waiting = setTimeout(redrawAll, PAUSE);
    });
  }

  // Open all details for printing, and close them afterwards.
  function unfoldForPrinting() {
    let folded = [];
    addEventListener("beforeprint", () => {
      folded = [...document.querySelectorAll("details:not([open])")];
      for (const details of folded) details.open = true;
    });
    addEventListener("afterprint", () => {
      for (const details of folded) details.open = false;
    });
  }

  const redraws = startSections();
  const redrawAll = () => redraws.forEach((redraw) => redraw());
  redrawAll();
  redrawOnResize(redrawAll);
  unfoldForPrinting();
  document.documentElement.dataset.ready = "yes";
})();
