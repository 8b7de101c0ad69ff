// In a frame of the report, a page of clips posts its data to the report; otherwise it is a readable list.
"use strict";

(() => {
  if (window.parent === window) return;
  const page = JSON.parse(document.getElementById("report-page").textContent);
  // Pages opened from disk have no origin, and web pages cannot frame them.
  window.parent.postMessage(page, location.protocol === "file:" ? "*" : location.origin);
})();
