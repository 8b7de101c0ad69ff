// Tables as cards where the screen is narrow, and on paper where they have more columns than a sheet is wide;
// what lies behind headings is opened for print.
"use strict";

(() => {
  const MOST_COLUMNS = 11;
  const narrow = window.matchMedia("screen and (max-width: 30rem)");
  let opened = [];

  function lay(printing) {
    for (const table of document.querySelectorAll("table")) {
      const isWide = table.tHead.rows[0].cells.length > MOST_COLUMNS;
      table.classList.toggle("cards", printing ? isWide : narrow.matches);
    }
  }

  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
    lay(true);
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    lay(false);
  });
  narrow.addEventListener("change", () => lay(false));
  lay(false);
})();
