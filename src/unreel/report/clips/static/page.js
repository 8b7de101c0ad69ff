// A page of clips in a frame of the report tells it what it holds; on its own it is a list for people.
"use strict";

(() => {
  if (window.parent === window) return;
  const told = JSON.parse(document.getElementById("report-page").textContent);
  // Pages from disk have no origin of their own, and nothing from the web may frame them.
  window.parent.postMessage(told, location.protocol === "file:" ? "*" : location.origin);
})();
