// A network ready to draw: decoded outlines, links with their places beside each other, and what can be selected.

class Scene {
  constructor(id, geometry) {
    this.id = id;
    this.geometry = geometry;
    this.isMap = Boolean(geometry.land);
    this.x = geometry.x;
    this.y = geometry.y;
    this.names = geometry.nodes.name;
    this.labels = geometry.nodes.label ?? geometry.nodes.name;
    this.groups = geometry.nodes.groups ?? [];
    this.tails = geometry.links.tail;
    this.heads = geometry.links.head;
    this.bounds = bounds(this.x, this.y);
    this.limits = geometry.limits ?? null;
    this.linksAt = this.names.map(() => []);
    this.tails.forEach((tail, i) => {
      this.linksAt[tail].push(i);
      this.linksAt[this.heads[i]].push(i);
    });
    this.degree = Uint32Array.from(this.linksAt, (links) => links.length);
    this.#pair();
    this.#outline();
    this.boxes = this.isMap ? [] : this.#groupBoxes();
  }

  // Find the links between the same two nodes, and those that are one element.
  #pair() {
    const pairs = new Map();
    const count = this.names.length;
    this.tails.forEach((tail, i) => {
      const head = this.heads[i];
      const key = tail < head ? tail * count + head : head * count + tail;
      if (!pairs.has(key)) pairs.set(key, []);
      pairs.get(key).push(i);
    });
    this.pairs = [...pairs.values()];
    this.pairOf = new Uint32Array(this.tails.length);
    this.targets = [];
    this.targetOf = new Uint32Array(this.tails.length);
    this.pairs.forEach((links, pair) => {
      const targets = new Map();
      for (const i of links) {
        this.pairOf[i] = pair;
        const element = this.geometry.links.element[i];
        if (!targets.has(element)) {
          targets.set(element, this.targets.length);
          this.targets.push({ kind: "link", element, links: [] });
        }
        this.targetOf[i] = targets.get(element);
        this.targets[targets.get(element)].links.push(i);
      }
    });
  }

  // Distances of strips from the line between their nodes, to the right of each link's direction.
  asides(width) {
    const asides = new Float64Array(this.tails.length);
    for (const links of this.pairs) {
      if (links.length === 1) continue;
      const reached = new Map(); // by the tail, that is by direction
      for (const i of links) {
        const half = width(i) / 2;
        asides[i] = (reached.get(this.tails[i]) ?? 0.5) + half;
        reached.set(this.tails[i], asides[i] + half + 1);
      }
    }
    return asides;
  }

  #outline() {
    if (!this.isMap) return;
    const { coastStep: step, limits } = this.geometry;
    const [west, north, east, south] = limits;
    const across = Math.round((east - west) / step);
    const down = Math.round((south - north) / step);
    const isEdge = (a, b) =>
      (a[0] === b[0] && (a[0] <= 0 || a[0] >= across)) || (a[1] === b[1] && (a[1] <= 0 || a[1] >= down));
    this.land = new Path2D();
    this.coast = new Path2D();
    for (const text of this.geometry.land) {
      const ring = decode(text);
      trace(this.land, ring, west, north, step, () => true);
      this.land.closePath();
      trace(this.coast, [...ring, ring[0]], west, north, step, (a, b) => !isEdge(a, b));
    }
    this.borders = new Path2D();
    for (const text of this.geometry.borders) trace(this.borders, decode(text), west, north, step, () => true);
  }

  #groupBoxes() {
    return this.groups.map((name, group) => {
      const nodes = [...this.names.keys()].filter((i) => this.geometry.nodes.group[i] === group);
      return { name, box: bounds(nodes.map((i) => this.x[i]), nodes.map((i) => this.y[i])), count: nodes.length };
    });
  }
}

function bounds(xs, ys) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  xs.forEach((x, i) => {
    box[0] = Math.min(box[0], x);
    box[1] = Math.min(box[1], ys[i]);
    box[2] = Math.max(box[2], x);
    box[3] = Math.max(box[3], ys[i]);
  });
  return xs.length ? box : [0, 0, 1, 1];
}

// Points of a line: steps in characters of five bits (payload.py writes them).
function decode(text) {
  const points = [];
  let place = 0;
  let [x, y] = [0, 0];
  const next = () => {
    let [value, shift, bits] = [0, 0, 32];
    while (bits >= 32) {
      bits = text.charCodeAt(place++) - 63;
      value |= (bits & 31) << shift;
      shift += 5;
    }
    return value & 1 ? ~(value >> 1) : value >> 1;
  };
  while (place < text.length) {
    x += next();
    y += next();
    points.push([x, y]);
  }
  return points;
}

function trace(path, points, west, north, step, isDrawn) {
  points.forEach((point, i) => {
    const [x, y] = [west + point[0] * step, north + point[1] * step];
    if (i && isDrawn(points[i - 1], point)) path.lineTo(x, y);
    else path.moveTo(x, y);
  });
}
