// Video player with boxes that follow the playhead, and a timeline whose traces are buttons.
// unreelPlayer.mount(element, spec) returns {video, seek(at_us)}. All texts are inserted as text, not as HTML.
"use strict";

const unreelPlayer = (() => {
  const MICROSECONDS = 1e6;
  const COLOURS = 6;
  const STEP_US = 100000;
  // Maximum difference of one time as rounded by the file and by the browser.
  const SLACK_US = 1500;

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function seconds(us) {
    return (us / MICROSECONDS).toFixed(2) + " s";
  }

  function percent(part) {
    return (100 * Math.min(1, Math.max(0, part))).toFixed(4) + "%";
  }

  // An inline clip becomes a blob, in which players seek faster than in a data: URL.
  function address(src) {
    const inline = /^data:([^;,]+);base64,/.exec(src);
    if (!inline) return src;
    const coded = atob(src.slice(inline[0].length));
    const bytes = Uint8Array.from(coded, (letter) => letter.charCodeAt(0));
    return URL.createObjectURL(new Blob([bytes], { type: inline[1] }));
  }

  function getInterval(trace, duration) {
    const start = trace.start_us === null ? 0 : trace.start_us;
    const end = trace.end_us === null ? Math.max(duration, start) : trace.end_us;
    return { start, end };
  }

  function isLoose(trace) {
    return trace.start_us === null || trace.end_us === null;
  }

  // Box at a time: interpolated linearly between key boxes, constant before the first and after the last.
  function boxAt(boxes, at) {
    if (boxes.length === 0) return null;
    const next = boxes.findIndex((box) => box.at_us > at);
    if (next === 0) return boxes[0];
    if (next === -1) return boxes[boxes.length - 1];
    const before = boxes[next - 1];
    const after = boxes[next];
    const share = (at - before.at_us) / (after.at_us - before.at_us);
    const between = (edge) => before[edge] + share * (after[edge] - before[edge]);
    return { x0: between("x0"), y0: between("y0"), x1: between("x1"), y1: between("y1") };
  }

  // Index of the last instant that is not after `at`.
  function lastUpTo(instants, at) {
    let low = 0;
    let high = instants.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (instants[middle] <= at) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  function when(trace) {
    const from = trace.start_us === null ? "no time given" : "from " + seconds(trace.start_us);
    return from + (trace.end_us === null ? "" : " to " + seconds(trace.end_us));
  }

  function describe(trace) {
    return trace.label + ", " + when(trace);
  }

  class Player {
    constructor(element, spec) {
      this.spec = spec;
      this.instants = spec.instants || [];
      this.duration = spec.duration_us;
      this.marks = [];
      // Most browsers use the file's own clock, which may not start at 0; some start at its first frame.
      this.origin = Math.max(0, spec.first_us);
      this.root = make("div", "player");
      this.build();
      element.replaceChildren(this.root);
      this.opens = spec.opens_us || null;
      this.listen();
      this.show(0);
    }

    build() {
      this.stage = make("div", "player-stage");
      this.stage.style.aspectRatio = this.spec.width + " / " + this.spec.height;
      this.stage.style.setProperty("--ratio", this.spec.width / this.spec.height);
      this.video = make("video", "player-video");
      this.video.playsInline = true;
      this.video.preload = "auto";
      this.video.tabIndex = -1;
      this.video.setAttribute("aria-label", this.spec.title || "The clip");
      this.video.src = address(this.spec.src);
      this.stage.append(this.video);
      this.caption = make("p", "player-said small");
      this.caption.setAttribute("aria-live", "polite");
      this.root.append(this.stage, this.controls(), this.timeline(), this.caption);
    }

    controls() {
      const row = make("div", "player-controls");
      this.playing = this.button(row, "Play", () => this.toggle());
      this.button(row, this.instants.length ? "Previous frame" : "Back 0.1 s", () => this.step(-1));
      this.button(row, this.instants.length ? "Next frame" : "On 0.1 s", () => this.step(1));
      this.sound = this.button(row, "Mute", () => {
        this.video.muted = !this.video.muted;
        this.sound.textContent = this.video.muted ? "Unmute" : "Mute";
      });
      this.clock = make("output", "player-clock number");
      this.clock.setAttribute("aria-live", "off");
      row.append(this.clock);
      return row;
    }

    button(row, text, act) {
      const button = make("button", "", text);
      button.type = "button";
      button.addEventListener("click", act);
      row.append(button);
      return button;
    }

    timeline() {
      const lines = make("div", "player-timeline");
      lines.append(make("span", "player-name small muted", "Time"), this.scrubber());
      if (this.spec.shown_us.length) {
        const n = this.spec.shown_us.length;
        const name = make("span", "player-name small muted", n + (n === 1 ? " frame" : " frames") + " sent");
        const lane = make("div", "player-lane player-ticks");
        lane.setAttribute("aria-hidden", "true");
        for (const at of this.spec.shown_us) {
          const tick = make("span", "player-tick");
          tick.style.left = percent(at / this.duration);
          lane.append(tick);
        }
        lines.append(name, lane);
      }
      let colour = 0;
      for (const track of this.spec.tracks) {
        if (track.kind === "truth" && track.traces.length === 0) continue;
        const kind = track.kind === "truth" ? "truth" : "c" + (colour++ % COLOURS);
        this.track(lines, track, kind);
      }
      return lines;
    }

    scrubber() {
      const lane = make("div", "player-lane player-scrub");
      this.range = make("input");
      this.range.type = "range";
      this.range.min = 0;
      this.range.max = this.duration;
      this.range.step = 1000;
      this.range.setAttribute("aria-label", "Position in the clip");
      this.range.addEventListener("input", () => this.seek(Number(this.range.value)));
      lane.append(this.range);
      return lane;
    }

    track(lines, track, kind) {
      const name = make("label", "player-name small " + kind);
      const shown = make("input");
      shown.type = "checkbox";
      shown.checked = true;
      name.append(shown, make("span", "player-swatch"), make("span", "player-who", track.name));
      const lane = make("div", "player-lane");
      if (track.traces.length === 0) {
        const tone = track.failed ? " failed" : "";
        lane.append(make("span", "player-none small muted" + tone, track.note || "no position and no time"));
      }
      for (const trace of track.traces) this.trace(lane, trace, { kind, shown, who: track.name });
      shown.addEventListener("change", () => this.show(this.at));
      lines.append(name, lane);
    }

    trace(lane, trace, { kind, shown, who }) {
      const { start, end } = getInterval(trace, this.duration);
      const button = make("button", "player-trace " + kind, trace.label);
      button.type = "button";
      button.title = describe(trace);
      button.setAttribute("aria-label", who + ": " + describe(trace) + ". Go there");
      button.classList.toggle("loose", isLoose(trace));
      button.style.left = percent(start / this.duration);
      button.style.width = percent((Math.min(end, this.duration) - start) / this.duration);
      button.addEventListener("click", () => {
        this.video.pause();
        this.seek(this.firstFrom(start));
        this.caption.textContent = who + ", " + when(trace) + ": " + (trace.text || trace.label);
      });
      lane.append(button);
      const box = make("div", "player-box " + kind);
      box.classList.toggle("loose", isLoose(trace));
      // The timeline shows the label; the picture has space for the name only.
      box.append(make("span", "player-caption", kind === "truth" ? trace.label : who));
      box.setAttribute("aria-hidden", "true");
      box.hidden = true;
      this.stage.append(box);
      this.marks.push({ trace, start, end, button, box, shown });
    }

    listen() {
      const video = this.video;
      video.addEventListener("play", () => (this.playing.textContent = "Pause"));
      video.addEventListener("pause", () => (this.playing.textContent = "Play"));
      video.addEventListener("error", () => {
        this.caption.textContent = "This browser cannot play the clip.";
      });
      const now = () => Math.max(0, Math.round(video.currentTime * MICROSECONDS) - this.origin);
      if ("requestVideoFrameCallback" in video) {
        const follow = (_now, frame) => {
          const at = Math.round(frame.mediaTime * MICROSECONDS);
          if (at + SLACK_US < this.origin) this.origin = 0;
          this.show(at - this.origin);
          if (!this.begun) this.begin();
          video.requestVideoFrameCallback(follow);
        };
        video.requestVideoFrameCallback(follow);
        // After two quick seeks, Chromium may show the last frame without an event.
        const settle = () => video.paused && !video.seeking && this.begun && this.show(now());
        video.addEventListener("seeked", () => requestAnimationFrame(() => requestAnimationFrame(settle)));
      } else {
        const follow = () => {
          this.show(now());
          if (!this.begun) this.begin();
          if (!video.paused) requestAnimationFrame(follow);
        };
        for (const event of ["loadeddata", "seeked", "play", "timeupdate"]) video.addEventListener(event, follow);
      }
      video.addEventListener("durationchange", () => this.begun && this.begin());
      this.stage.addEventListener("click", () => this.toggle());
    }

    // Seeks to the initial position when the first frame has shown the file's clock. A browser that does not
    // know the length yet may stop before it; then the seek is repeated.
    begin() {
      this.begun = true;
      if (this.opens !== null && this.at < this.firstFrom(this.opens)) this.go(this.firstFrom(this.opens));
    }

    toggle() {
      if (this.video.paused) this.video.play();
      else this.video.pause();
    }

    step(by) {
      this.video.pause();
      if (!this.instants.length) return this.seek(this.at + by * STEP_US);
      const now = lastUpTo(this.instants, this.at);
      return this.seek(this.instants[Math.min(this.instants.length - 1, Math.max(0, now + by))]);
    }

    seek(at) {
      this.opens = null;
      this.go(at);
    }

    // Seeks to the middle of the frame that is shown at that time, because its edges may be rounded.
    go(at) {
      let aim = Math.min(Math.max(0, at), this.duration);
      if (this.instants.length) {
        const now = lastUpTo(this.instants, aim + SLACK_US);
        const from = this.instants[now];
        aim = (from + (this.instants[now + 1] ?? Math.max(this.duration, from))) / 2;
      } else {
        aim = Math.min(aim + SLACK_US, this.duration);
      }
      this.video.currentTime = (this.origin + aim) / MICROSECONDS;
    }

    // First frame of a trace: the frame that is shown at its start may begin before it.
    firstFrom(start) {
      return this.instants.find((at) => at + SLACK_US >= start) ?? start;
    }

    show(at) {
      const known = this.instants.length ? this.instants[lastUpTo(this.instants, at + SLACK_US)] : at;
      this.at = known;
      this.root.dataset.atUs = known;
      this.range.value = known;
      this.range.setAttribute("aria-valuetext", seconds(known));
      this.clock.textContent = seconds(known) + " / " + seconds(this.duration);
      this.root.style.setProperty("--at", percent(known / this.duration));
      for (const mark of this.marks) {
        const now = known + SLACK_US >= mark.start && known < mark.end;
        mark.button.classList.toggle("now", now);
        const box = now && mark.shown.checked ? boxAt(mark.trace.boxes, known) : null;
        mark.box.hidden = box === null;
        if (box !== null) this.place(mark.box, box);
      }
    }

    place(element, box) {
      element.style.left = percent(box.x0);
      element.style.top = percent(box.y0);
      element.style.width = percent(box.x1 - box.x0);
      element.style.height = percent(box.y1 - box.y0);
      element.classList.toggle("under", box.y0 < 0.1);
      element.classList.toggle("leftwards", box.x0 > 0.6);
    }
  }

  return {
    mount(element, spec) {
      const player = new Player(element, spec);
      return { video: player.video, seek: (at) => player.seek(at) };
    },
  };
})();
