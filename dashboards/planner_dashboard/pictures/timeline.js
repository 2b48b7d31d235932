// Activities over time, a lane for each place: a Gantt chart.

const AXIS_PX = 34;
const BUTTONS_PX = 54; // at the right edge
const LANE_PX = { least: 12, most: 34, usual: 26, track: 16 };
const MAX_TIME_ZOOM = 400;

// What part of the time is seen, and of the lanes where they do not fit.
class TimeView {
  constructor() {
    this.width = this.height = 0;
    this.isFitted = true;
  }

  bind(start, end) {
    if (this.first === start && this.last === end) return;
    [this.first, this.last] = [start, end > start ? end : start + 1];
    this.fit();
  }

  get gutter() {
    return this.gutterWidth ?? 90;
  }

  get across() {
    return Math.max(10, this.width - this.gutter - BUTTONS_PX);
  }

  resize(width, height) {
    [this.width, this.height] = [width, height];
    if (this.isFitted) this.fit();
    else this.confine();
  }

  fit() {
    this.isFitted = true;
    [this.start, this.end] = [this.first, this.last];
  }

  x(time) {
    return this.gutter + ((time - this.start) / (this.end - this.start)) * this.across;
  }

  time(x) {
    return this.start + ((x - this.gutter) / this.across) * (this.end - this.start);
  }

  zoomBy(factor, px = this.gutter + this.across / 2) {
    const at = this.time(px);
    const span = Math.max((this.end - this.start) / factor, (this.last - this.first) / MAX_TIME_ZOOM);
    const share = (at - this.start) / (this.end - this.start);
    [this.start, this.end] = [at - share * span, at + (1 - share) * span];
    this.isFitted = false;
    this.confine();
  }

  moveBy(dx) {
    const by = (dx / this.across) * (this.end - this.start);
    this.start -= by;
    this.end -= by;
    this.isFitted = false;
    this.confine();
  }

  confine() {
    const span = Math.min(this.end - this.start, this.last - this.first);
    this.start = clamp(this.start, this.first, this.last - span);
    this.end = this.start + span;
  }

  reveal(start, end) {
    if (end < this.start || start > this.end) {
      this.moveBy(((this.start + this.end) / 2 - (start + end) / 2) * (this.across / (this.end - this.start)));
    }
  }
}

class TimelineState extends Elements {
  constructor(data) {
    super();
    this.data = data;
    const { lane, track, start, end, what } = data.bars;
    this.bars = lane.map((_, i) => ({ bar: i, lane: lane[i], track: track[i], start: start[i], end: end[i], what: what[i], element: data.elements[data.bars.element[i]] ?? "" }));
    this.listed = [...this.bars].sort((a, b) => a.lane - b.lane || a.start - b.start);
    this.lanes = data.lanes.map(() => []);
    this.listed.forEach((bar) => this.lanes[bar.lane].push(bar));
    const times = [...start, ...end, ...(data.before?.start ?? []), ...(data.before?.end ?? [])];
    this.first = times.reduce((least, time) => Math.min(least, time), times[0] ?? 0);
    this.last = times.reduce((most, time) => Math.max(most, time), times[0] ?? 1);
  }

  find(element) {
    return element ? this.bars.find((bar) => bar.element === element) : undefined;
  }

  kindOf() {
    return this.data.kind;
  }

  title(bar) {
    return `${this.data.laneWord} ${this.data.lanes[bar.lane]}`;
  }

  facts(bar) {
    const time = (value) => `${figure(value)} ${this.data.unit}`.trim();
    return [
      [this.data.whatWord, this.data.whats[bar.what], false],
      ["from", time(bar.start), false],
      ["to", time(bar.end), false],
      ["lasts", time(Number((bar.end - bar.start).toPrecision(4))), false],
    ];
  }

  notes(bar) {
    return [this.data.notes[this.data.bars.note[bar.bar]]].filter(Boolean);
  }

  summary() {
    return `${this.data.title}: ${this.bars.length} activities in ${this.data.lanes.length} lanes`;
  }
}

class Timeline extends Board {
  constructor(root) {
    super(root, new TimeView(), "timeline");
  }

  show(scene, data, select) {
    this.select = select;
    this.data = data;
    const state = new TimelineState(data);
    this.view.bind(state.first, state.last);
    this.resize();
    this.become(state);
  }

  // Activities at the same time lie below each other in their lane.
  get usualPx() {
    return Math.max(LANE_PX.usual, LANE_PX.track * this.data.tracks);
  }

  heightFor() {
    const rows = this.data.before ? 1.35 : 1;
    return clamp(AXIS_PX + 8 + this.data.lanes.length * this.usualPx * rows, 120, Math.max(this.data.height, AXIS_PX + 8 + this.data.lanes.length * LANE_PX.least));
  }

  colour(what) {
    const { groups } = this.palette;
    if (this.data.whats.length <= groups.length) return groups[what % groups.length];
    const isDark = this.palette === PALETTES.dark;
    return `hsl(${(what * 137.508) % 360} ${42 + (what % 3) * 8}% ${isDark ? 58 + (what % 2) * 10 : 36 + (what % 2) * 10}%)`;
  }

  get lanePx() {
    return Math.min(Math.max(LANE_PX.most * 1.4, this.usualPx), (this.view.height - AXIS_PX - 8) / Math.max(1, this.data.lanes.length));
  }

  // Left, top, width and height of a bar; those of the plan before lie in the lower part of their lane.
  box(bar, isBefore = false) {
    const { view, lanePx } = this;
    const room = this.data.before ? lanePx * 0.68 : lanePx;
    const left = view.x(bar.start);
    const top = 6 + bar.lane * lanePx + (isBefore ? room : 1);
    const wide = Math.max(1, view.x(bar.end) - left);
    const { tracks } = this.data;
    const high = (isBefore ? lanePx - room - 3 : room - 3) / tracks;
    return [left, top + bar.track * high, wide, Math.max(1, high - (tracks > 1 ? 1 : 0))];
  }

  paint() {
    const c = this.prepare();
    const { view, palette, state, data, lanePx } = this;
    c.font = `13px ${this.font}`;
    view.gutterWidth = clamp(Math.max(...data.lanes.map((name) => c.measureText(name).width)) + 22, 44, view.width * 0.3);
    c.fillStyle = palette.land;
    c.fillRect(0, 0, view.width, view.height);
    this.paintAxis(c);
    c.save();
    c.beginPath();
    c.rect(view.gutter, 0, view.across, view.height - AXIS_PX);
    c.clip();
    if (data.before) {
      c.globalAlpha = 0.45;
      data.before.lane.forEach((lane, i) => {
        const bar = { lane, track: data.before.track[i], start: data.before.start[i], end: data.before.end[i] };
        c.fillStyle = this.colour(data.before.what[i]);
        c.fillRect(...this.box(bar, true));
      });
      c.globalAlpha = 1;
    }
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.font = `600 12px ${this.font}`;
    const hot = [];
    for (const bar of state.bars) {
      const box = this.box(bar);
      if (box[0] > view.width || box[0] + box[2] < view.gutter) continue;
      c.fillStyle = this.colour(bar.what);
      c.fillRect(...box);
      if (box[2] > 4) {
        c.fillStyle = palette.land;
        c.fillRect(box[0] + box[2] - 1, box[1], 1, box[3]);
      }
      const name = data.whats[bar.what];
      if (box[3] >= 12 && box[2] > 22) {
        const left = Math.max(box[0], view.gutter) + 5;
        if (left + c.measureText(name).width < box[0] + box[2] - 4) {
          c.fillStyle = palette.land;
          c.fillText(name, left, box[1] + box[3] / 2 + 0.5);
        }
      }
      if (this.isHot(bar)) hot.push(box);
    }
    c.strokeStyle = palette.ink;
    c.lineWidth = 2.2;
    for (const [x, y, wide, high] of hot) c.strokeRect(x - 1, y - 1, wide + 2, high + 2);
    c.restore();
    c.font = `13px ${this.font}`;
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.fillStyle = palette.ink;
    const every = Math.max(1, Math.ceil(15 / lanePx));
    data.lanes.forEach((name, i) => i % every === 0 && c.fillText(this.fitted(c, name), view.gutter - 8, 6 + (i + 0.5) * lanePx));
  }

  fitted(c, name) {
    const most = this.view.gutter - 14;
    if (c.measureText(name).width <= most) return name;
    let short = name;
    while (short.length > 1 && c.measureText(`${short}…`).width > most) short = short.slice(0, -1);
    return `${short}…`;
  }

  paintAxis(c) {
    const { view, palette, data } = this;
    const bottom = view.height - AXIS_PX;
    const span = view.end - view.start;
    const rough = (span / view.across) * 90;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    c.strokeStyle = palette.box;
    c.fillStyle = palette.muted;
    c.lineWidth = 1;
    c.textAlign = "center";
    c.textBaseline = "top";
    c.font = `12px ${this.font}`;
    const last = Math.floor((view.end + 1e-9 * span) / step);
    const right = view.gutter + view.across + 8; // of all labels: the buttons begin there
    for (let i = Math.ceil(view.start / step); i <= last; i++) {
      const x = view.x(i * step);
      c.beginPath();
      c.moveTo(x, 0);
      c.lineTo(x, bottom);
      c.stroke();
      const digits = Math.max(0, -Math.floor(Math.log10(step)));
      const value = (i * step).toLocaleString("en-US", { maximumFractionDigits: digits });
      const text = i === last ? `${value} ${data.unit}`.trim() : value;
      const middle = Math.min(x, right - c.measureText(text).width / 2);
      if (x > view.gutter - 1) c.fillText(text, middle, bottom + 6);
    }
  }

  showLegend() {
    this.legendPalette = this.palette;
    this.legendState = this.state;
    const { data } = this;
    this.title.textContent = data.title;
    this.legend.replaceChildren();
    if (data.whats.length > 1 && data.whats.length <= this.palette.groups.length) {
      make("li", { className: "what", textContent: data.whatWord }, this.legend);
      data.whats.forEach((name, i) => this.sign(name, "■", this.colour(i)));
    } else make("li", { textContent: `${data.lanes.length} lanes by ${data.laneWord} · colours: ${data.whatWord}` }, this.legend);
    if (data.before) this.sign("faint: before", "■", this.palette.muted);
    this.hint.textContent = "";
  }

  hit(x, y) {
    const lane = Math.floor((y - 6) / this.lanePx);
    const time = this.view.time(x);
    const near = (4 * (this.view.end - this.view.start)) / this.view.across;
    if (x < this.view.gutter) return null;
    let [best, least, row] = [null, near, Infinity];
    for (const bar of this.state.lanes[lane] ?? []) {
      const away = Math.max(0, bar.start - time, time - bar.end);
      const [, top, , high] = this.box(bar);
      const aside = Math.max(0, top - y, y - top - high);
      if (away < near && (aside < row || (aside === row && away < least))) [best, least, row] = [bar, away, aside];
    }
    return best;
  }

  where(bar) {
    const [left, top, wide, high] = this.box(bar);
    return [left + wide / 2, top + high / 2];
  }

  reveal(bar) {
    this.view.reveal(bar.start, bar.end);
    const [x, y] = this.where(bar);
    return [clamp(x, this.view.gutter, this.view.width), y];
  }

  // Left and right move within the lane, up and down to the activity at about the same time.
  go(dx, dy) {
    const from = this.current();
    if (!from) return this.focus(this.state.listed[0]);
    if (dx) {
      const lane = this.state.lanes[from.lane];
      return this.focus(lane[lane.indexOf(from) + dx]);
    }
    const middle = (from.start + from.end) / 2;
    for (let lane = from.lane + dy; lane >= 0 && lane < this.state.lanes.length; lane += dy) {
      const bars = this.state.lanes[lane];
      if (!bars.length) continue;
      const away = (bar) => Math.max(0, bar.start - middle, middle - bar.end);
      return this.focus(bars.reduce((best, bar) => (away(bar) < away(best) ? bar : best)));
    }
    return undefined;
  }
}
