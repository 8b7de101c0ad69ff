"use strict";

/* Dropped files go into the field of the form; progress comes as server-sent events. */
(() => {
  const form = document.getElementById("drop");
  if (form) {
    const field = form.querySelector("input[type=file]");
    const mark = (event, over) => {
      event.preventDefault();
      form.classList.toggle("over", over);
    };
    const status = document.getElementById("uploading");
    document.addEventListener("dragover", (event) => mark(event, true));
    document.addEventListener("dragleave", (event) => mark(event, false));
    document.addEventListener("drop", (event) => {
      mark(event, false);
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry());
      const folder = entries.find((entry) => entry?.isDirectory);
      if (folder) {
        status.textContent = `“${folder.name}” is a folder. Open it, and drop the video files in it.`;
      } else if (event.dataTransfer.files.length) {
        field.files = event.dataTransfer.files;
        form.requestSubmit();
      }
    });
    form.addEventListener("submit", () => {
      const n = field.files.length;
      status.textContent =
        n === 1 ? "Uploading 1 clip …" : `Uploading ${n} clips …`;
    });
  }

  const source = document.querySelector("[data-events]");
  if (!source || !document.querySelector("[data-case]")) return;
  const show = (element, row) => {
    const isEnded = ["done", "failed", "damaged"].includes(row.stage);
    const progress = element.querySelector(".progress");
    if (progress) progress.textContent = isEnded ? "" : row.text;
    const sentence = element.querySelector(".sentence");
    if (sentence) sentence.textContent = row.sentence;
    if (element.dataset.stage === row.stage) return;
    if ("reload" in element.dataset && (isEnded || row.stage === "shown")) {
      location.reload();
    } else if (isEnded) {
      document.getElementById("changed")?.removeAttribute("hidden");
    }
    element.dataset.stage = row.stage;
  };
  const update = (event) => {
    for (const row of JSON.parse(event.data)) {
      const element = document.querySelector(`[data-case="${row.id}"]`);
      if (element) show(element, row);
    }
  };
  /* A browser has six connections to a server: hidden pages give theirs back. */
  let events = null;
  const follow = () => {
    events?.close();
    if (document.hidden) return;
    events = new EventSource(source.dataset.events);
    events.addEventListener("message", update);
    events.addEventListener("end", () => {
      events.close();
      document.removeEventListener("visibilitychange", follow);
    });
  };
  document.addEventListener("visibilitychange", follow);
  follow();
})();
