// Mounts the player, and makes every button with a time seek to it.
"use strict";

(() => {
  const place = document.getElementById("player");
  const spec = document.getElementById("player-spec");
  if (!place || !spec) return;
  const player = unreelPlayer.mount(place, JSON.parse(spec.textContent));
  for (const button of document.querySelectorAll("button[data-seek-us]")) {
    button.addEventListener("click", () => {
      player.video.pause();
      player.seek(Number(button.dataset.seekUs));
      place.scrollIntoView({ block: "nearest" });
    });
  }
})();
