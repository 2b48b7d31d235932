// The picture of a network.

class NetworkPicture extends Board {
  constructor(root) {
    super(root, new View(), "network picture");
    this.painter = new Painter();
  }

  show(scene, data, select) {
    this.select = select;
    const isNewScene = this.scene?.id !== scene.id;
    if (isNewScene) {
      const sameBounds = this.scene && String(this.scene.bounds) === String(scene.bounds) && this.scene.isMap === scene.isMap;
      this.scene = scene;
      if (!sameBounds) this.view.bind(scene.bounds, scene.limits);
      this.hovered = this.focused = null;
    }
    this.data = data;
    this.resize();
    if (!data.frames) {
      this.player?.close();
      this.player = null;
      this.become(new State(data, scene));
      return;
    }
    this.player ??= new Player(this.below, (frame) => this.become(new State(this.data, this.scene, this.data.frames[frame])));
    this.player.bind(data);
  }

  heightFor(width) {
    return Math.min(this.data.height, Math.max(320, Math.round(width * 1.2)));
  }

  paint() {
    const { scene, state } = this;
    const look = {
      palette: this.palette,
      font: this.font,
      isHot: (place) => this.isHot(state.targets[place]),
      isHotNode: (node) => this.isHot(state.nodes[node]),
    };
    this.painter.paint(this.prepare(), scene, state, this.view, look);
    const covered = coverageText(this.painter.labels, state.isDifference ? null : state.frame.losses);
    if (this.coverage.textContent !== covered) this.coverage.textContent = covered;
  }

  isHot(target) {
    return super.isHot(target) || this.state.marks.has(target.element);
  }

  showLegend() {
    const { data } = this.state;
    this.legendPalette = this.palette;
    this.legendState = this.state;
    this.title.textContent = this.state.frame.title ?? data.title;
    this.legend.replaceChildren();
    const item = make("li", {}, this.legend);
    const bands = make("div", { className: "bands" }, item);
    const isColoured = this.state.nodeBand || this.state.values.some((value) => value !== null);
    const labels = isColoured ? data.labels : [];
    labels.forEach((label, i) => {
      const one = make("span", { className: "band" }, bands);
      const bar = make("span", { className: "bar" }, one);
      bar.style.height = `${3 + 1.25 * i}px`;
      if (this.state.isDifference) bar.style.height = `${4 + 2 * Math.abs(i - 2)}px`;
      bar.style.background = this.palette[data.colours][i];
      const isEnd = i === 0 || i === data.labels.length - 1;
      one.append(isEnd ? `${label} ${data.unitOfChange ?? data.unit}` : label);
    });
    const goneLinks = this.state.isDifference || this.scene.geometry.linkKind ? this.state.gone : [];
    if (goneLinks.length || this.state.frame.goneNodes.length) this.sign(this.state.isDifference ? "gone" : "failed", "⊗", this.palette.ink);
    if (this.state.added.size) this.sign("bought", "━", this.palette.bought);
    if (this.state.frame.built?.length) this.sign("bought, a new link", "╍", this.palette.bought);
    if (this.scene.tails.some((_, i) => this.state.isUnbuilt(i))) this.sign("can be built", "┈", this.palette.muted);
    if (data.new?.length) this.sign("new", "━", this.palette.ink);
    const isOtherScale = this.state.nodeBand && String(this.state.frame.nodeEdges) !== String(data.edges);
    if (isOtherScale && !this.state.isDifference) this.sign("nodes by load: under 40, 60, 80, 100 %, over", "●", this.palette.bands[2]);
    const verbs = new Map(); // of each reason: one sign, as all have the same ring
    for (const node of this.state.nodeLost.keys()) {
      const [verb, why = ""] = this.state.lostAs(node).split(" (");
      verbs.set(why, [...(verbs.get(why) ?? []), verb]);
    }
    for (const [why, said] of verbs) {
      this.sign(`${this.state.frame.losses?.noun ?? "demand"} ${joinVerbs(said)} here${why ? ` (${why}` : ""}`, "◯", this.palette.lost);
    }
    this.coverage = make("li", { className: "sign coverage" }, this.legend);
    const isTouch = matchMedia("(pointer: coarse)").matches;
    const move = isTouch ? "two fingers zoom and move" : "drag to move";
    const words = [];
    if (data.framesLeftOut) words.push(`${data.framesLeftOut} moments between those are not shown`);
    if (data.leftOut) words.push(`${data.leftOut.toLocaleString("en-US")} links with smaller values are not drawn`);
    words.push(this.state.listed.some((target) => this.state.canSelect(target)) ? `${isTouch ? "Tap" : "Click"} a line or a place to select it · ${move}` : move);
    this.hint.textContent = words.join(" · ");
  }

  // The element at a point of the screen, nodes before links; null where there is none.
  hit(x, y, reach = HIT_PX) {
    const { painter, scene, state } = this;
    if (!painter.px) return null;
    let [best, least] = [null, Infinity];
    for (let i = 0; i < scene.names.length; i++) {
      const away = Math.hypot(painter.px[i] - x, painter.py[i] - y) - painter.radius[i];
      if (away < least && away < reach * 0.6) [best, least] = [state.nodes[i], away];
    }
    if (best) return best;
    for (let i = 0; i < scene.tails.length; i++) {
      const [x0, y0, x1, y1] = painter.strip(i);
      const [dx, dy] = [x1 - x0, y1 - y0];
      const share = clamp(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1), 0, 1);
      const away = Math.hypot(x0 + share * dx - x, y0 + share * dy - y);
      if (away < least && away < reach) [best, least] = [state.targets[scene.targetOf[i]], away];
    }
    return best;
  }

  // Where an element is on the screen.
  where(target) {
    const { painter, scene } = this;
    if (target.kind === "node") return [painter.px[target.node], painter.py[target.node]];
    const strip = painter.strip(target.links[0]);
    const [tail, head] = [scene.tails[target.links[0]], scene.heads[target.links[0]]];
    if (target.links.length > 1) return [(painter.px[tail] + painter.px[head]) / 2, (painter.py[tail] + painter.py[head]) / 2];
    return [(strip[0] + strip[2]) / 2, (strip[1] + strip[3]) / 2];
  }

  // Move the view so that an element is seen; return where it is on the screen.
  reveal(target) {
    const [x, y] = this.plane(target);
    this.view.reveal(x, y);
    return this.view.toScreen(x, y);
  }

  plane(target) {
    const { scene } = this;
    if (target.kind === "node") return [scene.x[target.node], scene.y[target.node]];
    const [tail, head] = [scene.tails[target.links[0]], scene.heads[target.links[0]]];
    return [(scene.x[tail] + scene.x[head]) / 2, (scene.y[tail] + scene.y[head]) / 2];
  }
}
