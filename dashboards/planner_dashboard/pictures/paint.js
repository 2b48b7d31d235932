// Draws a scene with its values on a canvas.

const MAX_PILLS = 5;
const BUTTONS = { wide: 48, high: 114 }; // at the right, above the names
const NAME_AREA = 3800; // square pixels for each name
const MAX_NAMES = 140;
const FEW_LINKS = 80; // names keep clear of all of them; else of those of their node
const PILL_FROM = 1.5; // times the limit

class Painter {
  paint(context, scene, state, view, look) {
    Object.assign(this, { context, scene, state, view, look, palette: look.palette });
    const density = Math.sqrt((view.width * view.height) / Math.max(1, scene.names.length)) * view.zoom;
    this.thickness = clamp(density / 42, 0.32, 1.15);
    this.buttons = [view.width - BUTTONS.wide, 0, view.width, BUTTONS.high];
    this.taken = [];
    this.#ground();
    if (!scene.isMap) this.#boxes();
    this.px = scene.x.map((x) => (x - view.x) * view.scale + view.width / 2);
    this.py = scene.y.map((y) => (y - view.y) * view.scale + view.height / 2);
    this.#links();
    this.#gone();
    this.#nodes();
    this.#marks();
    this.#pills();
    this.#names();
  }

  #ground() {
    const { context: c, view, scene, palette } = this;
    c.fillStyle = scene.isMap ? palette.sea : palette.land;
    c.fillRect(0, 0, view.width, view.height);
    if (!scene.isMap) return;
    c.save();
    c.translate(view.width / 2 - view.x * view.scale, view.height / 2 - view.y * view.scale);
    c.scale(view.scale, view.scale);
    c.fillStyle = palette.land;
    c.fill(scene.land);
    c.lineJoin = "round";
    c.strokeStyle = palette.coast;
    c.lineWidth = 0.9 / view.scale;
    c.stroke(scene.coast);
    c.strokeStyle = palette.border;
    c.lineWidth = 1 / view.scale;
    c.setLineDash([4 / view.scale, 3 / view.scale]);
    c.stroke(scene.borders);
    c.restore();
  }

  #boxes() {
    const { context: c, view, scene, palette } = this;
    const margin = 26 * this.thickness;
    for (const { name, box, count } of scene.boxes) {
      if (!name || !count) continue;
      const [left, top] = view.toScreen(box[0], box[1]);
      const [right, bottom] = view.toScreen(box[2], box[3]);
      c.beginPath();
      c.roundRect(left - margin, top - margin, right - left + 2 * margin, bottom - top + 2 * margin, 10);
      c.fillStyle = palette.sea;
      c.fill();
      c.strokeStyle = palette.box;
      c.lineWidth = 1;
      c.stroke();
      c.font = `600 12px ${this.look.font}`;
      c.textAlign = "left";
      c.textBaseline = "bottom";
      c.fillStyle = palette.muted;
      if (c.measureText(name).width < right - left + 2 * margin + 40) {
        c.fillText(name, left - margin + 4, top - margin - 2);
        this.taken.push([left - margin, top - margin - 16, left - margin + c.measureText(name).width, top - margin]);
      }
    }
  }

  // End points of a link's strip on the screen.
  strip(i) {
    const { scene, px, py } = this;
    const [tail, head] = [scene.tails[i], scene.heads[i]];
    const [dx, dy] = [px[head] - px[tail], py[head] - py[tail]];
    const length = Math.hypot(dx, dy) || 1;
    const aside = this.state.asides[i] * this.thickness;
    const [ax, ay] = [(-dy / length) * aside, (dx / length) * aside];
    return [px[tail] + ax, py[tail] + ay, px[head] + ax, py[head] + ay, length];
  }

  isSeen([x0, y0, x1, y1]) {
    const { width, height } = this.view;
    return Math.max(x0, x1) > -8 && Math.min(x0, x1) < width + 8 && Math.max(y0, y1) > -8 && Math.min(y0, y1) < height + 8;
  }

  #links() {
    const { context: c, scene, state, palette } = this;
    const layers = new Map(); // strips of one colour and width are drawn together
    const arrows = new Map();
    const emphasis = [];
    const bought = [];
    const unbuilt = new Path2D();
    for (let i = 0; i < scene.tails.length; i++) {
      if (state.isGone[i]) continue;
      const strip = this.strip(i);
      if (!this.isSeen(strip)) continue;
      const colour = state.colour(palette, i);
      const width = state.width(i) * this.thickness;
      if (state.isUnbuilt(i) && !this.look.isHot(scene.targetOf[i], i)) {
        unbuilt.moveTo(strip[0], strip[1]);
        unbuilt.lineTo(strip[2], strip[3]);
        continue;
      }
      if (state.added.has(i)) bought.push({ strip, width, isBuilt: state.isBuilt[i] });
      const key = `${String(state.drawingOrder(i)).padStart(2, "0")}|${width.toFixed(1)}|${colour}`;
      if (!layers.has(key)) layers.set(key, { colour, width, path: new Path2D() });
      layers.get(key).path.moveTo(strip[0], strip[1]);
      layers.get(key).path.lineTo(strip[2], strip[3]);
      if (strip[4] > 46 && state.hasDirection(i)) {
        if (!arrows.has(colour)) arrows.set(colour, new Path2D());
        arrow(arrows.get(colour), strip, width);
      }
      if (this.look.isHot(scene.targetOf[i], i)) emphasis.push({ strip, width });
    }
    c.lineCap = "butt";
    c.strokeStyle = palette.muted;
    c.lineWidth = 1;
    c.setLineDash([2, 5]);
    c.stroke(unbuilt);
    for (const { strip, width, isBuilt } of bought) {
      c.strokeStyle = palette.bought;
      c.lineWidth = width + 5 * this.thickness;
      c.setLineDash(isBuilt ? [9, 4] : []);
      c.beginPath();
      c.moveTo(strip[0], strip[1]);
      c.lineTo(strip[2], strip[3]);
      c.stroke();
    }
    c.setLineDash([]);
    for (const { strip, width } of emphasis) {
      c.strokeStyle = palette.ink;
      c.lineWidth = width + 4;
      c.beginPath();
      c.moveTo(strip[0], strip[1]);
      c.lineTo(strip[2], strip[3]);
      c.stroke();
    }
    for (const key of [...layers.keys()].sort()) {
      const { colour, width, path } = layers.get(key);
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.stroke(path);
    }
    for (const [colour, path] of arrows) {
      c.fillStyle = colour;
      c.fill(path);
    }
  }

  #gone() {
    const { context: c, scene, state, palette } = this;
    const done = new Set();
    const crosses = [];
    // where links are no elements, such as flows, those that are not there have not failed
    const failed = scene.geometry.linkKind ? state.gone : [];
    for (const i of failed) {
      const pair = scene.pairOf[i];
      if (done.has(pair)) continue;
      done.add(pair);
      const isWhole = scene.pairs[pair].every((other) => state.isGone[other]);
      const [tail, head] = [scene.tails[i], scene.heads[i]];
      const line = isWhole ? [this.px[tail], this.py[tail], this.px[head], this.py[head]] : this.strip(i);
      if (!this.isSeen(line)) continue;
      const isHot = this.look.isHot(scene.targetOf[i], i);
      c.strokeStyle = palette.ink;
      c.lineWidth = isHot ? 3 : 1.8;
      c.setLineDash([2, 4]);
      c.beginPath();
      c.moveTo(line[0], line[1]);
      c.lineTo(line[2], line[3]);
      c.stroke();
      crosses.push([(line[0] + line[2]) / 2, (line[1] + line[3]) / 2]);
    }
    c.setLineDash([]);
    this.crosses = crosses;
  }

  #nodes() {
    const { context: c, scene, state, palette } = this;
    const { group } = scene.geometry.nodes;
    const size = state.data.sizes;
    const plain = new Path2D();
    this.radius = new Float32Array(scene.names.length);
    const base = Math.max(1.2, 3.7 * this.thickness);
    for (let i = 0; i < scene.names.length; i++) {
      const radius = size ? Math.max(base * 0.8, 10 * size[i] * Math.min(1, this.thickness)) : state.nodeBand ? base * 1.5 : base;
      this.radius[i] = radius;
      const [x, y] = [this.px[i], this.py[i]];
      if (!this.isSeen([x, y, x, y])) continue;
      const isHot = this.look.isHotNode(i);
      const colour = state.nodeColour(palette, i);
      const ofGroup = !colour && group && scene.groups[group[i]] && scene.isMap && scene.groups.length > 1;
      if (!colour && !ofGroup && !isHot && !state.isGoneNode[i]) {
        plain.moveTo(x + radius, y);
        plain.arc(x, y, radius, 0, 7);
        continue;
      }
      c.beginPath();
      c.arc(x, y, isHot ? radius + 2 : radius, 0, 7);
      c.fillStyle = colour ?? (ofGroup ? palette.groups[group[i] % palette.groups.length] : palette.paper);
      c.fill();
      c.strokeStyle = isHot ? palette.ink : colour || ofGroup ? palette.paper : palette.ink;
      c.lineWidth = isHot ? 2.4 : 1.2;
      if (state.isGoneNode[i]) {
        c.strokeStyle = palette.ink;
        c.setLineDash([2, 2]);
        this.crosses.push([x, y]);
      }
      c.stroke();
      c.setLineDash([]);
    }
    c.fillStyle = palette.paper;
    c.fill(plain);
    c.strokeStyle = palette.ink;
    c.lineWidth = Math.max(0.6, 1.4 * Math.min(1, this.thickness));
    c.stroke(plain);
  }

  #marks() {
    const { context: c, state, palette } = this;
    for (const i of state.nodeLost.keys()) {
      const [x, y, radius] = [this.px[i], this.py[i], this.radius[i] + 3];
      if (!this.isSeen([x, y, x, y])) continue;
      c.beginPath();
      c.arc(x, y, radius, 0, 7);
      c.strokeStyle = palette.lost;
      c.lineWidth = 2;
      c.stroke();
    }
    const size = this.crosses.length > 12 ? 5 : 9;
    for (const [x, y] of this.crosses) {
      c.beginPath();
      c.arc(x, y, size, 0, 7);
      c.fillStyle = palette.ink;
      c.fill();
      c.strokeStyle = palette.land;
      c.lineWidth = size / 4.5;
      const arm = size * 0.36;
      c.beginPath();
      c.moveTo(x - arm, y - arm);
      c.lineTo(x + arm, y + arm);
      c.moveTo(x + arm, y - arm);
      c.lineTo(x - arm, y + arm);
      c.stroke();
      this.taken.push([x - size - 2, y - size - 2, x + size + 2, y + size + 2]);
    }
  }

  // Losses by amount; where none is, overloads and changes in the places that remain.
  #pills() {
    const { context: c, state, view } = this;
    c.font = `700 12px ${this.look.font}`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    const losses = state.losses.map((loss) => ({ ...loss, ...this.#pointOf(loss) })).filter(({ x, y }) => this.isSeen([x, y, x, y]));
    const widthOf = (text) => c.measureText(text).width + 12;
    const units = state.frame.losses?.units ?? [];
    const taken = [...this.taken, this.buttons];
    this.labels = placeLabels(losses, { units, widthOf, taken, left: 0, right: view.width });
    for (const { text, box } of this.labels) this.#pill(text, box);
    for (const { link, text } of state.pills.slice(0, 4 * MAX_PILLS)) {
      if (this.labels.length >= MAX_PILLS) break;
      const strip = this.strip(link);
      if (strip[4] < 12) continue;
      const [x, y] = [(strip[0] + strip[2]) / 2, (strip[1] + strip[3]) / 2];
      const half = widthOf(text) / 2;
      const box = [x - half, y - HALF_HEIGHT, x + half, y + HALF_HEIGHT];
      if (!this.isSeen(box) || this.#isTaken(box)) continue;
      this.#pill(text, box);
      this.labels.push({ text, box, losses: [], amount: 0 });
    }
  }

  #pointOf({ node, link }) {
    if (node !== undefined) return { x: this.px[node], y: this.py[node], radius: this.radius[node] };
    const strip = this.strip(link);
    return { x: (strip[0] + strip[2]) / 2, y: (strip[1] + strip[3]) / 2, radius: 0 };
  }

  #pill(text, box) {
    const { context: c, palette } = this;
    c.beginPath();
    c.roundRect(box[0], box[1], box[2] - box[0], box[3] - box[1], HALF_HEIGHT);
    c.fillStyle = palette.lost;
    c.fill();
    c.fillStyle = palette.land;
    c.fillText(text, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2 + 0.5);
    this.taken.push(box);
  }

  #isTaken(box) {
    return this.taken.some((other) => overlaps(other, box));
  }

  #names() {
    const { context: c, scene, state, palette, view } = this;
    c.font = `600 ${view.width < 500 ? 12 : 13}px ${this.look.font}`;
    c.textAlign = "left";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    const grid = new Cells(64);
    const discs = new Cells(64); // nodes: only the names of what is changed may cover others
    const important = new Set(state.important);
    this.taken.forEach((box) => grid.add(box));
    grid.add(this.buttons);
    for (let i = 0; i < scene.names.length; i++) {
      const [x, y, r] = [this.px[i], this.py[i], Math.max(0.5, this.radius[i] - 1)];
      discs.add([x - r, y - r, x + r, y + r]);
    }
    const first = [...state.important, ...state.order];
    const done = new Set();
    const most = clamp((view.width * view.height) / NAME_AREA, 20, MAX_NAMES);
    let drawn = 0;
    for (const i of first) {
      if (drawn > most) break;
      if (done.has(i)) continue;
      done.add(i);
      const [x, y, r] = [this.px[i], this.py[i], this.radius[i] + 4];
      if (x < 0 || y < 0 || x > view.width || y > view.height) continue;
      const wide = c.measureText(scene.labels[i]).width;
      const places = [
        [x + r, y], [x - r - wide, y], [x - wide / 2, y - r - 6], [x - wide / 2, y + r + 6],
        [x + r - 2, y - 11], [x + r - 2, y + 11], [x - r - wide + 2, y - 11], [x - r - wide + 2, y + 11],
      ];
      const boxes = places.map(([left, middle]) => [left - 1, middle - 7, left + wide + 1, middle + 7]);
      const isFree = (box) => box[0] > 2 && box[2] < view.width - 2 && box[1] > 2 && box[3] < view.height - 2 && !grid.hits(box);
      const free = boxes.filter(isFree);
      const clear = free.filter((one) => !discs.hits(one));
      const near = scene.tails.length <= FEW_LINKS ? scene.tails.keys() : scene.linksAt[i];
      const strips = clear.length > 1 ? Array.from(near, (link) => this.strip(link)) : [];
      const isCrossed = (one) => strips.some((strip) => crosses(strip, one));
      const box = clear.find((one) => !isCrossed(one)) ?? clear[0] ?? (important.has(i) ? free[0] : undefined);
      if (box) {
        const [left, middle] = [box[0] + 1, box[1] + 7];
        c.strokeStyle = scene.isMap ? palette.land : palette.sea;
        c.lineWidth = 3.4;
        c.strokeText(scene.labels[i], left, middle);
        c.fillStyle = palette.ink;
        c.fillText(scene.labels[i], left, middle);
        grid.add(box);
        drawn++;
      }
    }
  }
}

// Boxes by the cells of a grid that they lie in.
class Cells {
  constructor(size) {
    this.size = size;
    this.cells = new Map();
  }

  *#cells(box) {
    for (let i = Math.floor(box[0] / this.size); i <= Math.floor(box[2] / this.size); i++) {
      for (let j = Math.floor(box[1] / this.size); j <= Math.floor(box[3] / this.size); j++) yield i * 100003 + j;
    }
  }

  add(box) {
    for (const cell of this.#cells(box)) {
      if (!this.cells.has(cell)) this.cells.set(cell, []);
      this.cells.get(cell).push(box);
    }
  }

  hits(box) {
    for (const cell of this.#cells(box)) {
      if (this.cells.get(cell)?.some((other) => overlaps(other, box))) return true;
    }
    return false;
  }
}

// Whether a line from (x0, y0) to (x1, y1) goes through a box.
function crosses([x0, y0, x1, y1], [left, top, right, bottom]) {
  let [from, to] = [0, 1]; // the part of the line that is in the box
  for (const [start, step, low, high] of [[x0, x1 - x0, left, right], [y0, y1 - y0, top, bottom]]) {
    if (step === 0) {
      if (start < low || start > high) return false;
      continue;
    }
    const ends = [(low - start) / step, (high - start) / step];
    from = Math.max(from, Math.min(...ends));
    to = Math.min(to, Math.max(...ends));
  }
  return from <= to;
}

function overlaps(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

function arrow(path, [x0, y0, x1, y1, length], width) {
  const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
  const size = 2.6 + width;
  const [x, y] = [x0 + (x1 - x0) * 0.58, y0 + (y1 - y0) * 0.58];
  path.moveTo(x + ux * size, y + uy * size);
  path.lineTo(x - ux * size * 0.8 - uy * size * 0.75, y - uy * size * 0.8 + ux * size * 0.75);
  path.lineTo(x - ux * size * 0.8 + uy * size * 0.75, y - uy * size * 0.8 - ux * size * 0.75);
  path.closePath();
}
