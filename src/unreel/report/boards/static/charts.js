// Draws each chart when it is scrolled near the viewport, and all others before printing. Colours are variables of
// the style sheet, so that charts follow light and dark mode and are printed for white paper.
// Expressions are interpreted, not compiled, so that the page's content security policy can forbid eval.
"use strict";

const unreelCharts = (() => {
  const NARROW = 520;
  const PAPER = 660;
  const PAINTED = /(fill|stroke)="var\((--[\w-]+)\)"/g;
  const drawn = new Map();
  let printing = false;

  function variable(name) {
    return "var(" + name + ")";
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Colours are written as "$--name". Data stays unchanged, because a model may have such a name.
  function paint(value) {
    if (typeof value === "string") return value.startsWith("$--") ? variable(value.slice(1)) : value;
    if (Array.isArray(value)) return value.map(paint);
    if (value === null || typeof value !== "object") return value;
    const painted = {};
    for (const [key, inner] of Object.entries(value)) {
      painted[key] = key === "values" || key === "domain" || key === "sort" ? inner : paint(inner);
    }
    return painted;
  }

  function look(width) {
    const narrow = width < NARROW;
    const text = { labelColor: variable("--ink"), titleColor: variable("--muted") };
    return {
      background: null,
      font: getComputedStyle(document.body).fontFamily,
      view: { stroke: null },
      axis: {
        ...text,
        gridColor: variable("--line"),
        domainColor: variable("--line"),
        tickColor: variable("--line"),
        labelFontSize: narrow ? 11 : 12.5,
        titleFontSize: narrow ? 11 : 12,
        titleFontWeight: "normal",
      },
      axisX: { labelFlush: false, tickCount: narrow ? 3 : 6, labelLimit: narrow ? 66 : 140 },
      axisY: { labelLimit: narrow ? 108 : 250, tickCount: 5 },
      axisDiscrete: { domain: false, ticks: false, labelPadding: 8 },
      legend: {
        ...text,
        orient: "bottom",
        direction: narrow ? "vertical" : "horizontal",
        columns: narrow ? 1 : 3,
        labelLimit: narrow ? 220 : 260,
        labelFontSize: narrow ? 11 : 12.5,
        symbolOpacity: 1,
        symbolSize: 90,
      },
    };
  }

  function makeTip() {
    const tip = document.createElement("div");
    tip.className = "tip small";
    tip.setAttribute("aria-hidden", "true");
    tip.hidden = true;
    document.body.append(tip);
    return tip;
  }

  const tip = makeTip();

  function point(_handler, event, _item, value) {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = typeof value === "object" ? value.tip : value;
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = event.clientY + 16 + "px";
  }

  async function draw(element, spec) {
    const before = drawn.get(element);
    if (before) before.finalize();
    const width = printing ? PAPER : element.clientWidth;
    const quiet = vega.logger(vega.Error);
    const full = { ...paint(spec), width, config: look(width) };
    const compiled = vegaLite.compile(full, { logger: quiet }).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: vega.expressionInterpreter,
      renderer: "svg",
      container: element,
      logger: quiet,
      hover: true,
    });
    view.tooltip(point);
    drawn.set(element, view);
    await view.runAsync();
    // The chart has one label; otherwise screen readers read each part.
    for (const part of element.querySelectorAll("svg")) {
      part.setAttribute("aria-hidden", "true");
      part.setAttribute("focusable", "false");
    }
    element.dataset.width = width;
    element.dataset.drawn = "yes";
  }

  // The saved picture has its own background, so that it is legible on pages of any colour.
  async function save(element, spec) {
    if (!drawn.has(element)) await draw(element, spec);
    const view = drawn.get(element).background(variable("--card"));
    const text = (await view.toSVG()).replace(PAINTED, (_, part, name) => `${part}="${colour(name)}"`);
    const picture = new Blob([text], { type: "image/svg+xml" });
    view.background(null);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(picture);
    link.download = element.dataset.chart + ".svg";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  function start() {
    const specs = JSON.parse(document.getElementById("report-charts").textContent);
    const near = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting || drawn.has(entry.target)) continue;
          draw(entry.target, specs[entry.target.dataset.chart]);
        }
      },
      { rootMargin: "600px" },
    );
    const redraw = (toPaper) => {
      printing = toPaper;
      const all = document.querySelectorAll("[data-chart]");
      for (const element of toPaper ? all : drawn.keys()) draw(element, specs[element.dataset.chart]);
    };
    const resized = new ResizeObserver((entries) => {
      for (const { target } of printing ? [] : entries) {
        const stale = drawn.has(target) && Number(target.dataset.width) !== target.clientWidth;
        if (stale && target.dataset.drawn) draw(target, specs[target.dataset.chart]);
      }
    });
    for (const element of document.querySelectorAll("[data-chart]")) {
      near.observe(element);
      resized.observe(element);
    }
    for (const button of document.querySelectorAll("[data-save]")) {
      const element = document.querySelector(`[data-chart="${button.dataset.save}"]`);
      button.addEventListener("click", () => save(element, specs[button.dataset.save]));
      button.hidden = false;
    }
    window.addEventListener("beforeprint", () => redraw(true));
    window.addEventListener("afterprint", () => redraw(false));
  }

  return { start };
})();

unreelCharts.start();
