// Clip browser: a table with filters, and a view of one clip with its ground truth and answers.
// The index and the first page of clips are part of the report. Further pages are files next to it and are loaded on
// scrolling; details are unpacked when a clip is opened. All texts are inserted as text, not as HTML.
"use strict";

(() => {
  const PAGE = 60;
  const MOST_PRINTED = 1000;
  const MOST_SORTED = 10000;
  const PATIENCE_MS = 20000;
  const STATUS = ["right", "wrong", "unreadable", "failed"];
  const SIGNS = ["✓", "✗", "?", "!"];
  const WORST_FIRST = [3, 0, 2, 1];
  const UNASKED = 4;
  const index = JSON.parse(document.getElementById("report-index").textContent);
  const pages = index.pages;
  const loaded = new Map();
  const loading = new Map();
  const byId = new Map();
  const form = document.getElementById("filters");
  const list = document.querySelector("#list tbody");
  const heads = document.querySelector("#list thead tr");
  const kept = document.getElementById("kept");
  const left = document.getElementById("left");
  const more = document.getElementById("more");
  const found = document.getElementById("found");
  const title = document.getElementById("clip-title");
  const body = document.getElementById("clip-body");
  const unpacked = new Map();
  const text = new Intl.Collator("en", { numeric: true });
  const columns = makeColumns();
  let sorted = { by: null, down: false };
  let matching = [];
  let next = 0; // number of the first page that is not filtered yet
  let lost = ""; // page that is missing in the list because it could not be read
  let arranged = 0; // number of matching clips that are sorted by `sorted`
  let listed = 0;
  let goal = 0;
  let turn = 0; // generation of the filters; results of earlier generations are discarded
  let choice = 0; // the same for the opened clip
  let open = null;

  function make(tag, className, ...inside) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...inside.filter((part) => part !== null && part !== undefined && part !== ""));
    return element;
  }

  // Pages of clips.

  function storePage(number, page) {
    const clips = page.clips.map(([id, name, creator, kinds, answers], at) => ({
      id, name, creator, kinds, answers, place: number * index.chunk + at,
    }));
    for (const clip of clips) byId.set(clip.id, clip);
    loaded.set(number, { clips, packed: page.packed });
  }

  function fileOf(number) {
    return "clips/" + String(number + 1).padStart(4, "0") + ".html";
  }

  // A page opened from disk cannot fetch files, but it can load a page in a frame, which posts its data.
  function load(number) {
    if (!loading.has(number)) loading.set(number, loaded.has(number) ? Promise.resolve(true) : loadInFrame(number));
    return loading.get(number);
  }

  function loadInFrame(number) {
    return new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.title = "Clips of " + fileOf(number);
      const end = (page) => {
        if (!frame.isConnected) return;
        clearTimeout(timer);
        window.removeEventListener("message", handleMessage);
        frame.remove();
        const belongs = page?.made === index.made[number]; // otherwise the file belongs to another report
        if (belongs) storePage(number, page);
        else loading.delete(number);
        resolve(belongs);
      };
      const handleMessage = (event) => {
        const sameOrigin = location.protocol === "file:" || event.origin === location.origin;
        if (sameOrigin && event.source === frame.contentWindow) end(event.data);
      };
      const timer = setTimeout(() => end(null), PATIENCE_MS);
      window.addEventListener("message", handleMessage);
      // Browsers report a missing page, or one that posts nothing, as loaded too.
      frame.addEventListener("load", () => setTimeout(() => end(null), 1000));
      frame.src = fileOf(number) + "?" + index.made[number]; // avoids the cached page of an earlier report
      document.getElementById("frames").append(frame);
    });
  }

  async function find(id, page) {
    const myChoice = choice;
    const named = pages[page - 1] ? [page - 1] : [];
    for (const number of new Set([...named, ...pages.keys()])) {
      if (byId.has(id) || myChoice !== choice) break;
      await load(number);
    }
    return byId.get(id);
  }

  function seconds(us) {
    return (us / 1e6).toFixed(2) + " s";
  }

  // The filters and the URL fragment have the same state.

  function readAddress() {
    const text = location.hash.slice(1);
    return text.includes("=") ? new URLSearchParams(text) : null;
  }

  function addressOf(clip) {
    const params = new URLSearchParams({ clip: clip.id });
    if (clip.place >= index.chunk) params.set("page", Math.floor(clip.place / index.chunk) + 1);
    return params;
  }

  function writeAddress() {
    const params = open ? addressOf(open) : new URLSearchParams();
    for (const field of form.querySelectorAll("select, input")) {
      if (field.value) params.set(field.name, field.value);
    }
    const hash = params.size ? "#" + params : "#clips";
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }

  function fillChoices() {
    const add = (field, value, text) => form.elements[field].append(new Option(text, value));
    index.entrants.forEach((one, place) => add("reviewer", place, one.name));
    add("creator", "(real)", "real clips");
    for (const name of [...index.creators].sort()) add("creator", name, name);
    for (const name of [...index.kinds].sort()) add("category", name, name);
    form.elements.category.closest("label").hidden = index.kinds.length === 0;
  }

  function buildFilters() {
    const value = (name) => form.elements[name].value;
    const show = STATUS.indexOf(value("show"));
    const reviewer = value("reviewer") === "" ? -1 : Number(value("reviewer"));
    const creator = value("creator");
    const maker = creator === "(real)" ? -1 : index.creators.indexOf(creator);
    const kind = index.kinds.indexOf(value("category"));
    const name = value("name").toLowerCase();
    const mayMatch = ([creators, kinds, answers]) => {
      if (creator && !creators.includes(maker)) return false;
      if (value("category") && !kinds.includes(kind)) return false;
      if (show === -1 && reviewer === -1) return true;
      return answers.some((code) => {
        const who = Math.floor(code / STATUS.length);
        return (reviewer === -1 || who === reviewer) && (show === -1 || code % STATUS.length === show);
      });
    };
    const matches = (clip) => {
      if (creator && clip.creator !== maker) return false;
      if (value("category") && !clip.kinds.includes(kind)) return false;
      if (name && !clip.name.toLowerCase().includes(name) && !clip.id.startsWith(name)) return false;
      if (show === -1 && reviewer === -1) return true;
      return clip.answers.some(
        ([who, status]) => (reviewer === -1 || who === reviewer) && (show === -1 || status === show),
      );
    };
    return { matches, mayMatch };
  }

  // List of clips.

  function made(clip) {
    return clip.creator === -1 ? "real" : index.creators[clip.creator];
  }

  function statusOf(clip, place) {
    const answer = clip.answers.find(([who]) => who === place);
    return answer ? answer[1] : UNASKED;
  }

  function makeColumns() {
    const rankOf = (place) => (clip) => WORST_FIRST[statusOf(clip, place)] ?? UNASKED;
    return [
      { title: "Clip", order: (a, b) => text.compare(a.name, b.name) },
      { title: "Made by", order: (a, b) => text.compare(made(a), made(b)) },
      ...index.entrants.map((one, place) => ({
        title: one.name,
        place,
        order: (a, b) => rankOf(place)(a) - rankOf(place)(b),
      })),
    ];
  }

  function makeHeads() {
    for (const column of columns) {
      const button = make("button", "sort", make("span", "", column.title));
      button.type = "button";
      button.title = "Sort by " + column.title;
      const head = make("th", "place" in column ? "who" : "", button);
      head.scope = "col";
      button.addEventListener("click", () => {
        sorted = { by: column, down: sorted.by === column && !sorted.down };
        for (const each of heads.cells) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
        refresh();
        mark();
      });
      heads.append(head);
    }
    list.parentElement.style.setProperty("--n-reviewers", index.entrants.length);
  }

  function refresh() {
    turn += 1;
    matching = [];
    next = listed = arranged = 0;
    goal = PAGE;
    lost = "";
    list.replaceChildren();
    return fill();
  }

  function lengthen(by) {
    goal = listed + by;
    lost = "";
    return fill();
  }

  // Lists up to `goal` matching clips, first from the loaded pages, then from pages that it loads.
  async function fill() {
    const myTurn = turn;
    const { matches, mayMatch } = buildFilters();
    const last = sorted.by ? Math.min(pages.length, MOST_SORTED / index.chunk) : pages.length;
    for (;;) {
      for (; next < last && (loaded.has(next) || !mayMatch(pages[next])); next += 1) {
        if (loaded.has(next)) matching.push(...loaded.get(next).clips.filter(matches));
      }
      const hasMore = next < last && !lost;
      if (!sorted.by || !hasMore) listMore(last);
      if (!hasMore || (!sorted.by && listed >= goal)) return;
      const file = fileOf(next);
      found.textContent = "Reading " + file + " …";
      const read = await load(next);
      if (myTurn !== turn) return;
      if (!read) lost = file;
    }
  }

  function listMore(last) {
    if (sorted.by && arranged < matching.length) arrange();
    const fresh = matching.slice(listed, goal);
    list.append(...fresh.map(row));
    listed += fresh.length;
    more.hidden = listed >= matching.length && (next >= last || isAll());
    showCount(last);
  }

  // Sorts all matching clips again, also after a lost page was read, whose clips belong between the listed ones.
  function arrange() {
    matching.sort((a, b) => sorted.by.order(a, b) || a.place - b.place);
    if (sorted.down) matching.reverse();
    arranged = matching.length;
    listed = 0;
    list.replaceChildren();
  }

  function isAll() {
    return next >= pages.length;
  }

  function isFiltered() {
    return [...form.querySelectorAll("select, input")].some((field) => field.value);
  }

  function showCount(last) {
    const all = index.n_clips.toLocaleString("en") + (index.n_clips === 1 ? " clip" : " clips");
    const n = (isFiltered() ? matching.length : index.n_clips).toLocaleString("en");
    const checked = Math.min(index.n_clips, next * index.chunk).toLocaleString("en");
    let words = n + " of " + all;
    if (!isAll() && isFiltered()) words = "At least " + words + ", of which " + checked + " were checked";
    if (!isAll() && sorted.by && next >= last) words += "; only the first " + checked + " are sorted";
    if (lost) words += ". " + lost + ", which is next to this page, could not be read: reload this page, or create the report again";
    found.textContent = words;
  }

  function row(clip) {
    const link = make("a", "clip-name", clip.name);
    link.href = "#" + addressOf(clip);
    link.title = clip.name;
    const line = make("tr", "clip-row", make("td", "", link), make("td", "clip-made", made(clip)));
    line.append(...columns.slice(2).map((column) => sign(statusOf(clip, column.place))));
    columns.forEach((column, i) => (line.cells[i].dataset.label = column.title));
    line.dataset.clip = clip.id;
    if (open === clip) line.setAttribute("aria-current", "true");
    return line;
  }

  function sign(status) {
    if (status === UNASKED) return make("td", "who");
    const shown = make("span", "sign " + STATUS[status], SIGNS[status]);
    shown.setAttribute("aria-hidden", "true");
    shown.title = STATUS[status];
    return make("td", "who", shown, make("span", "sign-word", STATUS[status]));
  }

  function mark() {
    for (const line of list.querySelectorAll("[aria-current]")) line.removeAttribute("aria-current");
    if (!open) return;
    const at = matching.indexOf(open);
    if (at >= listed) lengthen(at + PAGE - listed);
    const line = list.querySelector('[data-clip="' + CSS.escape(open.id) + '"]');
    if (!line) return;
    line.setAttribute("aria-current", "true");
    const frame = list.closest(".list");
    const head = heads.getBoundingClientRect();
    const gap = line.getBoundingClientRect().top - head.bottom;
    if (gap < 0 || gap > frame.clientHeight - head.height - 40) frame.scrollTop += gap - frame.clientHeight / 3;
  }

  // View of one clip.

  async function detail(clip) {
    const number = Math.floor(clip.place / index.chunk);
    if (!unpacked.has(number)) unpacked.set(number, unpack(number));
    return (await unpacked.get(number))[clip.place % index.chunk];
  }

  async function unpack(number) {
    const packed = atob(loaded.get(number).packed);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  async function show(clip, { focus }) {
    choice += 1;
    open = clip;
    title.textContent = clip.name;
    writeAddress();
    mark();
    const details = await detail(clip);
    await Promise.all(details.clips.map(reach));
    if (open !== clip) return;
    body.replaceChildren(...details.clips.map((one, side) => film(one, side, details)), answers(details));
    body.dataset.clip = clip.id;
    if (focus) {
      document.getElementById("clip").scrollIntoView({ block: "start" });
      title.focus({ preventScroll: true });
    }
  }

  // Browsers can seek in a file only if its server supports range requests; otherwise the file is fetched completely.
  async function reach(one) {
    if (!one.src || one.address) return;
    one.address = one.src;
    if (!location.protocol.startsWith("http")) return;
    try {
      const head = await fetch(one.src, { method: "HEAD" });
      if (!head.ok || head.headers.get("accept-ranges") === "bytes") return;
      one.address = URL.createObjectURL(await (await fetch(one.src)).blob());
    } catch {
      one.address = one.src; // the player shows the error
    }
  }

  function film(one, side, details) {
    const part = make("div", "film");
    if (details.clips.length > 1) part.append(make("h4", "", (side ? "Shown second: " : "Shown first: ") + one.name));
    if (one.src) {
      const place = make("div");
      part.append(place);
      unreelPlayer.mount(place, spec(one, side, details));
    } else {
      part.append(make("p", "note", one.failure ? sentence(one.failure) : "No picture: " + one.absent + "."));
    }
    part.append(truth(one));
    return part;
  }

  function spec(one, side, details) {
    const shown = details.answers.map((answer) => answer.shown_us[side] || []).find((each) => each.length);
    const lanes = details.answers.filter((answer) => index.entrants[answer.entrant].places).map(lane);
    const starts = lanes.flatMap((each) => each.traces).map((trace) => trace.start_us).filter((at) => at !== null);
    return {
      src: one.address,
      title: one.name,
      width: one.width,
      height: one.height,
      duration_us: one.duration_us,
      first_us: one.first_us,
      instants: instants(one),
      tracks: [...(one.traces.length ? [people(one)] : []), ...lanes],
      shown_us: shown || [],
      opens_us: starts.length ? Math.min(...starts) : null,
    };
  }

  function instants(one) {
    if (!one.rate) return [];
    const [rate, per] = one.rate;
    return Array.from({ length: one.n_frames }, (_, i) => Math.round((i * 1e6 * per) / rate));
  }

  function people(one) {
    const traces = one.traces.map((trace) => ({
      start_us: trace.start_us,
      end_us: trace.end_us,
      boxes: trace.boxes,
      label: trace.kinds.join(", ") || "trace",
      text: trace.text,
    }));
    return { name: "People", kind: "truth", traces, note: "", failed: false };
  }

  // Timeline lane of an answer, for protocols that ask where and when.
  function lane(answer) {
    const { name } = index.entrants[answer.entrant];
    const parsed = answer.said || {};
    const known = "label" in parsed;
    const note = answer.failure ? answer.failure.reason : known ? "calls it " + parsed.label : "cannot be read";
    const traces = parsed.label !== "real" && ("box" in parsed || "start_us" in parsed) ? [claim(name, parsed)] : [];
    return { name, kind: "answer", traces, note, failed: !known };
  }

  function claim(name, parsed) {
    const start = parsed.start_us ?? null;
    const boxes = parsed.box ? [{ at_us: start ?? 0, ...parsed.box }] : [];
    return { start_us: start, end_us: null, boxes, label: name, text: parsed.explanation || "" };
  }

  function facts(pairs) {
    const rows = make("dl", "facts");
    for (const [name, value] of pairs) {
      if (value === "" || value === null || value === undefined) continue;
      rows.append(make("dt", "", name), make("dd", "", value));
    }
    return rows;
  }

  function truth(one) {
    const made = [one.creator, one.setting].filter(Boolean).join(", ");
    const rating = one.rating && one.rating.score + " of 5. " + one.rating.problem + " " + one.rating.adherence;
    const votes = one.votes && one.votes[0] + " of " + one.votes[1] + " people answered generated";
    const marks = make("ul", "marks");
    for (const trace of one.traces) {
      const span = seconds(trace.start_us) + " to " + seconds(trace.end_us);
      marks.append(make("li", "", make("b", "", trace.kinds.join(", ") || "trace"), " " + span + " ", trace.text));
    }
    return make(
      "div",
      "truth-card",
      make("h4", "", "Truth ", make("span", "badge " + one.label, one.label)),
      facts([
        ["Made by", made],
        ["Prompt", one.prompt],
        ["People's score", rating],
        ["Votes", votes],
        ["Marked", one.traces.length ? marks : ""],
        ["Group", one.group],
        ["Split", one.split],
        ["Difficulty", one.difficulty],
      ]),
    );
  }

  function answers(details) {
    const grid = make("div", "answers");
    grid.append(...details.answers.map((answer) => card(answer)));
    return make("div", "", make("h4", "", "Answers"), grid);
  }

  function card(answer) {
    const who = index.entrants[answer.entrant];
    const status = STATUS[answer.status];
    const tone = { right: "good", wrong: "bad", unreadable: "warn", failed: "failed" }[status];
    const head = make(
      "h5",
      "",
      make("span", "answer-who", who.name),
      " ",
      make("span", "badge " + tone, status),
      who.floor ? make("span", "badge kind", "baseline") : null,
    );
    const box = make("section", "answer " + status, head, make("p", "small muted", who.protocol + ", " + who.condition));
    if (answer.failure) box.append(make("p", "", sentence(answer.failure)));
    else box.append(facts(reading(answer)), raw(answer));
    const cost = spending(answer);
    if (cost) box.append(make("p", "small muted", cost));
    return box;
  }

  function sentence(failure) {
    return failure.reason + ": " + failure.detail + ". " + failure.remedy;
  }

  function reading(answer) {
    const parsed = answer.said;
    const rows = [
      ["Answer", parsed.label ?? parsed.score ?? (parsed.real && parsed.real + " is real")],
      ["Starts", parsed.start_us === undefined ? "" : seconds(parsed.start_us)],
      ["Explanation", parsed.explanation],
      ["Problem", parsed.problem],
      ["Adherence", parsed.adherence],
    ];
    (answer.meets || []).forEach((meets, i) => {
      const parts = [];
      if ("iou" in meets) parts.push("box IoU " + meets.iou.toFixed(2));
      if ("late_us" in meets) {
        const off = Math.abs(meets.late_us);
        parts.push(off ? seconds(off) + (meets.late_us > 0 ? " late" : " early") : "on time");
      }
      if ("judged" in meets) parts.push("explanation judged " + meets.judged);
      if (parts.length) rows.push([answer.meets.length > 1 ? "Compared with mark " + (i + 1) : "Compared with the mark", parts.join(", ")]);
    });
    const unread = Object.entries(answer.unread).map(([part, why]) => part.replace("_us", "") + " " + why);
    rows.push(["Unreadable", unread.join(", ")]);
    return rows;
  }

  function raw(answer) {
    const text = make("pre", "", answer.text || "(an empty text)");
    text.tabIndex = 0;
    const part = make("details", "", make("summary", "", "Raw answer"), text);
    if (answer.cut) part.append(make("p", "small muted", answer.cut.toLocaleString("en") + " more characters are in the run."));
    return part;
  }

  function spending(answer) {
    const parts = [];
    if ("input_tokens" in answer) parts.push(answer.input_tokens + " tokens in, " + answer.output_tokens + " out");
    if ("cost_usd" in answer) parts.push(answer.cost_usd.toFixed(5) + " USD");
    if ("latency_us" in answer) parts.push(seconds(answer.latency_us));
    return parts.join(", ");
  }

  // Event handlers.

  async function applyAddress(focus) {
    const params = readAddress();
    if (!params) return;
    for (const field of form.querySelectorAll("select, input")) field.value = params.get(field.name) || "";
    for (const field of form.querySelectorAll("select")) if (field.selectedIndex === -1) field.value = "";
    refresh();
    choice += 1;
    const myChoice = choice;
    const clip = params.get("clip") && (await find(params.get("clip"), Number(params.get("page"))));
    if (myChoice !== choice) return;
    if (clip) show(clip, { focus });
    else document.getElementById("clips").scrollIntoView();
  }

  async function step(by) {
    const at = open ? matching.indexOf(open) : -1;
    const [chosen, filtered] = [choice, turn];
    if (at + by >= matching.length) await lengthen(PAGE);
    if (chosen !== choice || filtered !== turn || !matching.length) return;
    const next = at === -1 ? 0 : Math.min(matching.length - 1, Math.max(0, at + by));
    show(matching[next], { focus: false });
  }

  form.addEventListener("input", () => {
    refresh();
    writeAddress();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { refresh(); writeAddress(); mark(); }));
  more.addEventListener("click", () => lengthen(PAGE));
  new IntersectionObserver((seen) => {
    if (seen.some((one) => one.isIntersecting)) lengthen(PAGE);
  }).observe(more);
  list.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (!line || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(byId.get(line.dataset.clip), { focus: window.innerWidth < 900 });
  });
  window.addEventListener("beforeprint", () => {
    lengthen(Math.max(0, MOST_PRINTED - listed));
    const chosen = [...form.querySelectorAll("select, input")].filter((field) => field.value);
    const filters = chosen.map((field) => {
      const value = field.selectedOptions ? field.selectedOptions[0].text : field.value;
      return field.labels[0].firstChild.textContent.trim() + " " + value;
    });
    kept.textContent = filters.length ? "Chosen: " + filters.join(", ") + "." : "";
    const rest = (isFiltered() ? matching.length : index.n_clips) - listed;
    left.textContent = rest > 0 ? rest.toLocaleString("en") + " more clips are in the page and in its CSV." : "";
    if (!isAll() && isFiltered()) left.textContent = "More clips may match: they are in the report's CSV.";
  });
  window.addEventListener("hashchange", () => applyAddress(true));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });

  const packed = JSON.parse(document.getElementById("report-clips-0").textContent);
  if (pages.length) storePage(0, { clips: index.clips, packed });
  fillChoices();
  makeHeads();
  refresh();
  applyAddress(true);
})();
