// Opens the part of the page that the URL fragment names: the answers of one cell, or one clip in the player.
"use strict";

(() => {
  const data = document.getElementById("season-clips");
  const clips = data ? JSON.parse(data.textContent) : {};
  let shown = null;

  function watch(name) {
    const card = document.getElementById("watch");
    card.hidden = false;
    document.getElementById("watch-title").textContent = clips[name].title;
    if (shown !== name) {
      document.getElementById("player").replaceChildren();
      unreelPlayer.mount(document.getElementById("player"), clips[name]);
      shown = name;
    }
    document.getElementById("watch-title").focus();
    card.scrollIntoView({ block: "start" });
  }

  function follow() {
    const name = decodeURIComponent(location.hash.slice(1));
    if (Object.hasOwn(clips, name)) {
      watch(name);
      return;
    }
    const part = name ? document.getElementById(name) : null;
    if (part instanceof HTMLDetailsElement) {
      part.open = true;
      part.scrollIntoView({ block: "start" });
    }
  }

  window.addEventListener("hashchange", follow);
  // A second click on the same clip does not change the URL.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#clip-"]');
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  follow();
})();
