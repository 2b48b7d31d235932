// What a picture shows of its scene at the moment: values, what is gone, and the words for each element.

class State {
  constructor(data, scene) {
    this.data = data;
    this.scene = scene;
    this.values = data.values;
    this.gone = data.gone;
    this.isGone = flags(data.gone, scene.tails.length);
    this.isGoneNode = flags(data.goneNodes, scene.names.length);
    this.band = this.values.map((value) => band(value, data.edges));
    this.nodeBand = data.nodeValues ? data.nodeValues.map((value) => band(value, data.edges)) : null;
    this.lost = numbered(data.lost);
    this.nodeLost = numbered(data.nodeLost);
    this.limit = data.hasLimit ? data.edges[data.edges.length - 1] : Infinity;
    this.asides = scene.asides((i) => this.width(i));
    this.#order();
  }

  // Width of a link's strip, pixels.
  width(i) {
    return this.scene.width(i) + (this.isOver(i) ? 1.2 : 0);
  }

  #order() {
    const { scene, values } = this;
    const most = (target) => Math.max(...target.links.map((i) => values[i] ?? -1));
    this.targets = scene.targets.map((target) => ({ ...target, most: most(target) }));
    const isGone = (target) => target.links.some((i) => this.isGone[i]);
    this.nodes = scene.names.map((name, node) => ({ kind: "node", node, element: name }));
    this.listed = [
      ...[...this.targets].sort((a, b) => isGone(b) - isGone(a) || b.most - a.most),
      ...scene.order.map((node) => this.nodes[node]),
    ];
    this.pills = [];
    for (const [node, text] of this.nodeLost) this.pills.push({ node, text: `${text} lost`, rank: Infinity });
    values.forEach((value, link) => {
      if (value !== null && value >= PILL_FROM * this.limit) this.pills.push({ link, text: `${figure(value)}${this.data.unit === "%" ? "%" : ""}`, rank: value });
    });
    this.pills.sort((a, b) => b.rank - a.rank);
    const ends = (i) => [scene.tails[i], scene.heads[i]];
    this.important = [
      ...this.data.goneNodes,
      ...this.gone.slice(0, 40).flatMap(ends),
      ...(this.find(this.data.selected)?.links ?? []).flatMap(ends),
      ...this.nodeLost.keys(),
      ...this.pills.slice(0, MAX_PILLS).flatMap(({ link }) => (link === undefined ? [] : ends(link))),
    ];
  }

  find(element) {
    if (!element) return undefined;
    return this.targets.find((target) => target.element === element) ?? this.nodes.find((node) => node.element === element);
  }

  isOver(i) {
    return this.values[i] !== null && this.values[i] > this.limit;
  }

  hasDirection(i) {
    return this.values[i] === null || this.values[i] > 0;
  }

  colour(palette, i) {
    return palette.bands[Math.max(0, this.band[i])];
  }

  canSelect(target) {
    const kind = target.kind === "node" ? this.scene.geometry.nodeKind : this.scene.geometry.linkKind;
    return Boolean(kind && target.element);
  }

  kindOf(target) {
    return target.kind === "node" ? this.scene.geometry.nodeKind : this.scene.geometry.linkKind;
  }

  title(target) {
    const { labels, tails, heads } = this.scene;
    if (target.kind === "node") return labels[target.node];
    const [first] = target.links;
    const isOneWay = target.links.every((i) => tails[i] === tails[first]);
    return `${labels[tails[first]]} ${isOneWay ? "→" : "–"} ${labels[heads[first]]}`;
  }

  amount(value) {
    if (value === null || value === undefined) return "unknown";
    return this.data.unit ? `${figure(value)} ${this.data.unit}` : figure(value);
  }

  // Rows of words, figure and whether it is bad.
  facts(target) {
    const { scene, data } = this;
    const rows = [];
    if (target.kind === "node") {
      const i = target.node;
      if (this.isGoneNode[i]) rows.push(["state", "failed", true]);
      if (data.nodeValues && data.nodeValues[i] !== null) rows.push([data.value, this.amount(data.nodeValues[i]), data.nodeValues[i] > this.limit]);
      if (this.nodeLost.has(i)) rows.push(["lost", this.nodeLost.get(i), true]);
      const { group } = scene.geometry.nodes;
      if (group && scene.groups[group[i]]) rows.push(["group", scene.groups[group[i]], false]);
      rows.push(["links", String(scene.degree[i]), false]);
      return rows;
    }
    for (const i of target.links) {
      const to = `→ ${scene.labels[scene.heads[i]]}`;
      if (this.isGone[i]) rows.push([to, "failed", true]);
      else if (this.values[i] !== null) rows.push([to, this.amount(this.values[i]), this.isOver(i)]);
      const was = data.was?.[i];
      if (was !== undefined && was !== null && was !== this.values[i]) rows.push(["before", this.amount(was), false]);
      if (this.lost.has(i)) rows.push(["lost", this.lost.get(i), true]);
    }
    const widths = scene.geometry.links;
    if (widths.width) {
      const texts = [...new Set(target.links.map((i) => widths.widthTexts[widths.widthText[i]]))];
      rows.push(["capacity", texts.join(", "), false]);
    }
    return rows;
  }

  notes(target) {
    if (target.kind === "node") return [this.data.nodeNotes[target.node]].filter(Boolean);
    return [...new Set(target.links.map((i) => this.data.notes[i]).filter(Boolean))];
  }

  sentence(target) {
    const facts = this.facts(target).map(([words, amount]) => `${words.replace("→", "to")} ${amount}`);
    return [`${this.title(target).replace("→", "to")}: ${facts.join(", ")}`, ...this.notes(target)].join(". ");
  }
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
function figure(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(Math.abs(value) >= 100 ? 3 : 4)));
}
