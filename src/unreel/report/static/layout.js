// Shows tables as cards on narrow screens, and in print if they have more columns than fit on a sheet.
// LaTeX is saved from data of the page, because browsers show such a file on disk instead of saving it.
"use strict";

(() => {
  const MOST_COLUMNS = 11;
  const narrow = window.matchMedia("screen and (max-width: 30rem)");

  function setLayout(printing) {
    for (const table of document.querySelectorAll("table")) {
      const isWide = table.tHead.rows[0].cells.length > MOST_COLUMNS;
      const asCards = printing ? isWide : narrow.matches && !table.classList.contains("heat");
      table.classList.toggle("cards", asCards);
    }
  }

  const latex = JSON.parse(document.getElementById("report-latex").textContent);

  function save(event) {
    const link = event.target.closest("a[download]");
    const name = link && link.getAttribute("href").split("/").pop();
    if (!name || !(name in latex)) return;
    event.preventDefault();
    const saved = document.createElement("a");
    saved.href = URL.createObjectURL(new Blob([latex[name]], { type: "application/x-tex" }));
    saved.download = name;
    saved.click();
    setTimeout(() => URL.revokeObjectURL(saved.href), 60000);
  }

  document.addEventListener("click", save);
  window.addEventListener("beforeprint", () => {
    setLayout(true);
  });
  window.addEventListener("afterprint", () => {
    setLayout(false);
  });
  narrow.addEventListener("change", () => setLayout(false));
  setLayout(false);
})();
