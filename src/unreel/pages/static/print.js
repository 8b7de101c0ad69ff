// Paper has no buttons: what is folded on the screen is unfolded for the printer, and folded again after it.
"use strict";

(() => {
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });
})();
