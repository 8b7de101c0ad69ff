// Mounts the players of a task when it is opened: a page may hold hundreds of clips.
"use strict";

(() => {
  const specs = JSON.parse(document.getElementById("disputes").textContent);

  function mount(section) {
    const found = specs[Number(section.dataset.place)];
    const stage = section.querySelector(".stage");
    if (!section.open || section.dataset.mounted || !found || !found.length) return;
    section.dataset.mounted = "yes";
    stage.replaceChildren(
      ...found.map((spec) => {
        const place = document.createElement("div");
        unreelPlayer.mount(place, spec);
        return place;
      }),
    );
  }

  for (const section of document.querySelectorAll("details.dispute")) {
    section.addEventListener("toggle", () => mount(section));
    mount(section);
  }
})();
