// The player of a picture with frames: play, a slider, and the curve of a metric with a marker.

const FRAME_MS = 600;
const CURVE_HEIGHT = 92;
const SVG = "http://www.w3.org/2000/svg";

class Player {
  static all = new Set();

  constructor(parent, show) {
    Player.all.add(this);
    this.show = show;
    this.frame = 0;
    this.element = make("div", { className: "player" }, parent);
    const row = make("div", { className: "controls" }, this.element);
    this.button = make("button", { type: "button" }, row);
    this.slider = make("input", { type: "range", min: 0, step: 1 }, row);
    this.label = make("output", { className: "moment" }, row);
    this.note = make("div", { className: "note" }, this.element);
    this.curve = make("div", { className: "curve" }, this.element);
    this.button.addEventListener("click", () => this.#toggle());
    this.slider.addEventListener("input", () => {
      this.#stopAll();
      this.go(Number(this.slider.value));
    });
    this.#showButton();
  }

  bind(data) {
    this.data = data;
    this.slider.max = data.frames.length - 1;
    this.slider.setAttribute("aria-label", "Moment");
    this.#drawCurve();
    this.#set(Math.min(this.frame, data.frames.length - 1));
  }

  // players on one clock go to the same moment
  go(frame) {
    this.#set(frame);
    for (const other of this.#others()) other.#set(Math.min(frame, other.data.frames.length - 1));
  }

  #others() {
    const { clock } = this.data;
    return clock ? [...Player.all].filter((one) => one !== this && one.element.isConnected && one.data?.clock === clock) : [];
  }

  #set(frame) {
    this.frame = frame;
    const { label, note } = this.data.frames[frame];
    this.slider.value = frame;
    this.slider.setAttribute("aria-valuetext", [label, note, this.#figure(frame)].filter(Boolean).join(", "));
    this.label.textContent = label;
    this.note.textContent = note;
    this.element.dataset.frame = String(frame);
    this.#moveMarker();
    this.show(frame);
  }

  close() {
    Player.all.delete(this);
    this.#stop();
    this.element.remove();
  }

  #toggle() {
    if (this.timer) return this.#stop();
    for (const other of this.#others()) other.#stop();
    if (this.frame === this.data.frames.length - 1) this.go(0);
    let due = performance.now() + FRAME_MS;
    const tick = (now) => {
      if (!this.element.isConnected) return this.#stop();
      if (now >= due) {
        due = now + FRAME_MS;
        this.go(this.frame + 1);
      }
      if (this.frame >= this.data.frames.length - 1) return this.#stop();
      this.timer = requestAnimationFrame(tick);
    };
    this.timer = requestAnimationFrame(tick);
    this.#showButton();
  }

  #stopAll() {
    for (const one of [this, ...this.#others()]) one.#stop();
  }

  #stop() {
    cancelAnimationFrame(this.timer);
    this.timer = null;
    this.#showButton();
  }

  #showButton() {
    const words = this.timer ? "Pause" : "Play";
    this.button.textContent = this.timer ? "❚❚" : "▶";
    this.button.title = words;
    this.button.setAttribute("aria-label", words);
  }

  #figure(frame) {
    const { curve } = this.data;
    return curve ? `${curve.label} ${curve.texts[frame]} ${curve.unit}`.trim() : "";
  }

  #drawCurve() {
    this.curve.replaceChildren();
    const { curve } = this.data;
    this.marker = null;
    if (!curve) return;
    this.caption = make("div", { className: "caption" }, this.curve);
    const known = curve.values.filter((value) => value !== null);
    const [low, high] = [Math.min(0, ...known), Math.max(...known, curve.largest ?? 0, 0) || 1];
    const count = Math.max(1, curve.values.length - 1);
    this.place = (i) => [(1000 * i) / count, curve.values[i] === null ? null : 86 - (76 * (curve.values[i] - low)) / (high - low || 1)];
    const svg = shape("svg", { viewBox: `0 0 1000 ${CURVE_HEIGHT}`, preserveAspectRatio: "none" }, this.curve);
    svg.setAttribute("aria-hidden", "true");
    let path = "";
    let isOpen = false;
    curve.values.forEach((_, i) => {
      const [x, y] = this.place(i);
      if (y !== null) path += `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      isOpen = y !== null;
    });
    shape("line", { class: "axis", x1: 0, x2: 1000, y1: 86, y2: 86 }, svg);
    shape("path", { class: "line", d: path }, svg);
    this.marker = shape("line", { class: "marker", y1: 2, y2: 90 }, svg);
    const ends = make("div", { className: "ends" }, this.curve);
    make("span", { textContent: this.data.frames[0].label }, ends);
    make("span", { textContent: this.data.frames.at(-1).label }, ends);
    svg.addEventListener("pointerdown", (event) => {
      this.#stopAll();
      const box = svg.getBoundingClientRect();
      this.go(clamp(Math.round((count * (event.clientX - box.left)) / box.width), 0, curve.values.length - 1));
    });
  }

  #moveMarker() {
    if (!this.marker) return;
    const [x] = this.place(this.frame);
    this.marker.setAttribute("x1", x);
    this.marker.setAttribute("x2", x);
    this.caption.textContent = this.#figure(this.frame);
  }
}

function shape(tag, attributes, parent) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent.append(element);
  return element;
}
