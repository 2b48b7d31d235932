// What a picture shows of its scene at the moment: values, what is gone or new, and the words for each element.

const NODE_LIMIT = 100; // percent of what a node can carry
const PLAIN_WIDTH = 0.45; // of the widest, where links have none

class State extends Elements {
  // data: what all frames have in common; frame: one moment of it, which for a picture without frames is all of it
  constructor(data, scene, frame = data) {
    super();
    this.data = data;
    this.frame = frame;
    this.scene = scene;
    const [links, nodes] = [scene.tails.length, scene.names.length];
    this.values = numbers(frame.values, links);
    this.nodeValues = numbers(frame.nodeValues, nodes);
    this.was = numbers(data.was, links);
    this.now = numbers(data.now, links);
    this.nodeWas = numbers(data.nodeWas, nodes);
    this.nodeNow = numbers(data.nodeNow, nodes);
    this.widthCode = numbers(data.width, links);
    this.linkNotes = (frame.notes ?? "").split("\n");
    this.placeNotes = (frame.nodeNotes ?? "").split("\n");
    this.isDifference = data.colours === "difference";
    this.gone = frame.gone;
    this.isGone = flags(frame.gone, scene.tails.length);
    this.isGoneNode = flags(frame.goneNodes, scene.names.length);
    this.isNew = flags(data.new ?? [], scene.tails.length);
    this.marks = new Set(frame.marks ?? []);
    this.band = this.values.map((value) => band(value, data.edges));
    this.nodeBand = this.nodeValues ? this.nodeValues.map((value) => band(value, frame.nodeEdges ?? data.nodeEdges)) : null;
    this.lost = numbered(frame.lost);
    this.added = numbered(frame.added); // what a plan buys, by link
    this.isBuilt = flags(frame.built ?? [], links);
    this.nodeLost = numbered(frame.nodeLost);
    this.nodeLostAs = numbered(frame.nodeLostAs); // how, where it is not just lost
    this.limit = data.hasLimit && !this.isDifference ? data.edges[data.edges.length - 1] : Infinity;
    this.asides = scene.asides((i) => this.width(i));
    this.#order();
    this.#choosePills();
  }

  // Width of a link's strip, pixels.
  width(i) {
    const share = this.widthCode ? this.data.widths[this.widthCode[i]] : PLAIN_WIDTH;
    return 1.3 + 2.4 * share + (this.isEmphasised(i) ? 1.2 : 0);
  }

  // Links that could be built, and are not.
  isUnbuilt(i) {
    return this.widthCode !== null && this.data.widths[this.widthCode[i]] === 0 && this.values[i] === null;
  }

  // Links that are overloaded, or that change much.
  isEmphasised(i) {
    return this.isDifference ? this.band[i] === 0 || this.band[i] === 4 : this.isOver(i);
  }

  #order() {
    const { scene, values, frame } = this;
    const weight = (i) => (this.isDifference ? Math.abs(values[i] ?? 0) : values[i] ?? -1);
    this.targets = scene.targets.map((target) => ({
      ...target,
      most: Math.max(...target.links.map(weight)),
      isGone: target.links.some((i) => this.isGone[i] || this.isNew[i]),
    }));
    this.nodes = scene.names.map((name, node) => ({ kind: "node", node, element: scene.geometry.nodes.element?.[node] ?? name }));
    const rank = (node) => scene.degree[node] + 100 * (this.data.sizes?.[node] ?? 0);
    this.order = [...scene.names.keys()].sort((a, b) => rank(b) - rank(a) || a - b);
    this.listed = [
      ...[...this.targets].sort((a, b) => b.isGone - a.isGone || b.most - a.most),
      ...this.order.map((node) => this.nodes[node]),
    ];
    const ends = (i) => [scene.tails[i], scene.heads[i]];
    const changed = [...this.gone.slice(0, 40), ...(this.data.new ?? []).slice(0, 40)];
    const named = [this.data.selected, ...this.marks].map((name) => this.find(name)).filter(Boolean);
    this.important = [
      ...frame.goneNodes,
      ...changed.flatMap(ends),
      ...named.flatMap((target) => (target.kind === "node" ? [target.node] : target.links.flatMap(ends))),
      ...[...this.nodeLost.keys()].sort((a, b) => this.#amountAt("nodes", b) - this.#amountAt("nodes", a)),
    ];
  }

  #amountAt(kind, i) {
    return this.frame.losses?.[kind]?.[i] ?? 0;
  }

  // What is lost at nodes and links, by amount; the percentages of the highest overloads, or the largest changes.
  #choosePills() {
    const { nodes = {}, links = {} } = this.isDifference ? {} : this.frame.losses ?? {};
    this.losses = [
      ...Object.entries(nodes).map(([i, amount]) => ({ node: Number(i), amount, text: this.nodeLost.get(Number(i)), words: this.lostAs(Number(i)).split(" (")[0] })),
      ...Object.entries(links).map(([i, amount]) => ({ link: Number(i), amount, text: this.lost.get(Number(i)), words: "lost" })),
    ];
    const isLabelled = new Set(Object.keys(links).map(Number));
    this.pills = [];
    this.values.forEach((value, link) => {
      if (value === null || isLabelled.has(link)) return;
      if (this.isDifference ? this.isEmphasised(link) : value >= PILL_FROM * this.limit) {
        const sign = this.isDifference && value > 0 ? "+" : "";
        const shown = this.isDifference ? figure(value, 3) : figure(value);
        const unit = this.isDifference ? this.data.unitOfChange : this.data.unit;
        const text = unit === "%" ? `${shown}%` : `${shown} ${unit}`.trim();
        this.pills.push({ link, text: `${sign}${text}`.replace("-", "−"), rank: Math.abs(value) });
      }
    });
    this.pills.sort((a, b) => b.rank - a.rank);
    const { tails, heads } = this.scene;
    const named = [...this.losses.filter((loss) => loss.link !== undefined), ...this.pills].slice(0, MAX_PILLS);
    for (const { link } of named) this.important.push(tails[link], heads[link]);
  }

  find(element) {
    if (!element) return undefined;
    return this.targets.find((target) => target.element === element) ?? this.nodes.find((node) => node.element === element);
  }

  isOver(i) {
    return this.values[i] !== null && this.values[i] > this.limit;
  }

  // Links with a higher number are drawn above the others.
  drawingOrder(i) {
    if (this.isNew[i]) return 9;
    return this.isDifference ? Math.abs(this.band[i] - 2) : this.band[i] + 1;
  }

  hasDirection(i) {
    return this.data.directed && this.values[i] !== 0;
  }

  colour(palette, i) {
    return this.isNew[i] ? palette.ink : this.band[i] < 0 ? palette.unknown : palette[this.data.colours][this.band[i]];
  }

  nodeColour(palette, i) {
    return this.nodeBand && this.nodeBand[i] >= 0 ? palette[this.data.colours][this.nodeBand[i]] : null;
  }

  kindOf(target) {
    return target.kind === "node" ? this.scene.geometry.nodeKind : this.scene.geometry.linkKind;
  }

  title(target) {
    const { labels, tails, heads } = this.scene;
    if (target.kind === "node") return labels[target.node];
    const [first] = target.links;
    const isOneWay = this.data.directed && target.links.every((i) => tails[i] === tails[first]);
    return `${labels[tails[first]]} ${isOneWay ? "→" : "–"} ${labels[heads[first]]}`;
  }

  amount(value, unit = this.data.unit) {
    if (value === null || value === undefined) return "unknown";
    return unit ? `${figure(value)} ${unit}` : figure(value);
  }

  // Rows of words, figure and whether it is bad.
  facts(target) {
    return target.kind === "node" ? this.#nodeFacts(target.node) : this.#linkFacts(target);
  }

  // How users lose something at a node: "lost", "not served (capacity)".
  lostAs(node) {
    return this.nodeLostAs.get(node) ?? "lost";
  }

  #nodeFacts(i) {
    const { scene, data } = this;
    const rows = [];
    if (this.isGoneNode[i]) rows.push(["state", "failed", true]);
    if ((data.newNodes ?? []).includes(i)) rows.push(["state", "new", false]);
    if (this.isDifference && this.nodeNow && this.nodeNow[i] !== null) {
      rows.push(["load", this.#change(this.nodeWas[i], this.nodeNow[i], "%"), false]);
    } else if (this.nodeValues && this.nodeValues[i] !== null) {
      rows.push(["load", this.amount(this.nodeValues[i], "%"), this.nodeValues[i] > NODE_LIMIT]);
    }
    if (this.nodeLost.has(i)) rows.push([this.lostAs(i), this.nodeLost.get(i), true]);
    const { group } = scene.geometry.nodes;
    if (group && scene.groups[group[i]]) rows.push(["group", scene.groups[group[i]], false]);
    rows.push(["links", String(scene.degree[i]), false]);
    return rows;
  }

  #linkFacts(target) {
    const { scene, data } = this;
    const rows = [];
    for (const i of target.links) {
      const to = data.directed ? `→ ${scene.labels[scene.heads[i]]}` : data.value;
      const was = this.was?.[i] ?? null;
      if (this.isGone[i]) rows.push([to, this.isDifference || !scene.geometry.linkKind ? "gone" : "failed", true]);
      else if (this.isNew[i]) rows.push([to, `new, ${this.amount(this.now[i])}`, false]);
      else if (this.isDifference) rows.push([to, this.#change(was, this.now[i]), false]);
      else if (this.values[i] !== null) rows.push([to, this.amount(this.values[i]), this.isOver(i)]);
      if (!this.isDifference && was !== null && was !== this.values[i]) rows.push(["before", this.amount(was), false]);
      if (this.lost.has(i)) rows.push(["lost", this.lost.get(i), true]);
      if (this.added.has(i)) rows.push([this.isBuilt[i] ? "bought, a new link" : "bought", this.added.get(i), false]);
    }
    if (this.widthCode) {
      const texts = [...new Set(target.links.map((i) => data.widthTexts[this.widthCode[i]]))];
      rows.push(["capacity", texts.join(", "), false]);
    }
    return rows;
  }

  #change(was, now, unit = this.data.unit) {
    return was === now ? this.amount(now, unit) : `${this.amount(was, unit)} → ${this.amount(now, unit)}`;
  }

  notes(target) {
    if (target.kind === "node") return [this.placeNotes[target.node]].filter(Boolean);
    return [...new Set(target.links.map((i) => this.linkNotes[i]).filter(Boolean))];
  }

  summary() {
    return `${this.frame.title ?? this.data.title}: ${this.scene.names.length} nodes and ${this.scene.tails.length} links, by ${this.data.value}`;
  }
}

// Figures between commas, as payload.py writes them; null where there are none at all.
function numbers(text, count) {
  if (text === undefined) return null;
  return count ? text.split(",").map((figure) => (figure === "" ? null : Number(figure))) : [];
}

function flags(places, count) {
  const found = new Uint8Array(count);
  places.forEach((place) => (found[place] = 1));
  return found;
}

function numbered(texts) {
  return new Map(Object.entries(texts ?? {}).map(([place, text]) => [Number(place), text]));
}

function band(value, edges) {
  if (value === null) return -1;
  let found = 0;
  edges.forEach((edge, i) => {
    if (i === edges.length - 1 ? value > edge : value >= edge) found = i + 1;
  });
  return found;
}

// A figure with about four digits, as planner.formatting.number writes it.
function figure(value, digits = Math.abs(value) >= 100 ? 3 : 4) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(digits)));
}
