// A picture on the page: canvas, legend, tooltip, list of elements; mouse, touch and keyboard.
// NetworkPicture and Timeline add what they draw: paint, hit, where, reveal, heightFor, showLegend.

const HIT_PX = 7;
const TOUCH_PX = 16;
const MAX_LISTED = 200;

// Words for the elements of a picture; its users add find, listed, summary, kindOf, title, facts and notes.
class Elements {
  canSelect(target) {
    return Boolean(this.kindOf(target) && target.element);
  }

  sentence(target) {
    const facts = this.facts(target).map(([words, amount]) => `${words} ${amount}`);
    return [`${this.title(target)}: ${facts.join(", ")}`, ...this.notes(target)].join(". ").replaceAll("→", "to");
  }
}

class Board {
  constructor(root, view, roleWords) {
    this.view = view;
    this.roleWords = roleWords;
    this.build(root);
    this.focused = null;
    this.hovered = null;
    this.listen();
  }

  build(root) {
    const style = make("style", {}, root);
    style.textContent = STYLE;
    this.element = make("div", { className: "picture" }, root);
    this.probe = make("div", { className: "theme-probe" }, this.element);
    const head = make("div", { className: "head" }, this.element);
    this.title = make("div", { className: "title" }, head);
    this.legend = make("ul", { className: "legend" }, head);
    this.frame = make("div", { className: "frame" }, this.element);
    this.canvas = make("canvas", { tabIndex: 0 }, this.frame);
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", this.roleWords);
    this.buttons = make("div", { className: "buttons" }, this.frame);
    for (const [text, words, act] of [
      ["+", "Zoom in", () => this.view.zoomBy(1.6)],
      ["−", "Zoom out", () => this.view.zoomBy(1 / 1.6)],
      ["⤢", "Show all", () => this.view.fit()],
    ]) {
      const button = make("button", { type: "button", textContent: text, title: words }, this.buttons);
      button.setAttribute("aria-label", words);
      button.addEventListener("click", () => {
        act();
        this.draw();
      });
    }
    this.hint = make("div", { className: "hint" }, this.frame);
    this.below = make("div", {}, this.element);
    this.tip = make("div", { className: "tip", hidden: true }, this.element);
    this.live = make("div", { className: "unseen" }, this.element);
    this.live.setAttribute("aria-live", "polite");
    this.list = make("div", { className: "unseen" }, this.element);
  }

  become(state) {
    const element = this.focused?.element;
    this.state = state;
    this.focused = element ? state.find(element) ?? null : null;
    this.hover(null);
    this.describe();
    this.draw();
  }

  resize() {
    const width = this.frame.clientWidth;
    if (!width || !this.data) return;
    const height = this.heightFor(width);
    this.canvas.style.height = `${height}px`;
    this.view.resize(width, height);
  }

  draw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      if (!this.state || !this.view.width) return;
      this.readTheme();
      this.paint();
      this.element.dataset.drawn = String(Number(this.element.dataset.drawn ?? 0) + 1);
    });
  }

  // Set the canvas to the size of the view, in the pixels of the screen.
  prepare() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.view.width * ratio), Math.round(this.view.height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  isHot(target) {
    const { selected } = this.state.data;
    return Boolean(target && ((selected && target.element === selected) || target === this.hovered || target === this.focused));
  }

  readTheme() {
    const style = getComputedStyle(this.element);
    const [red, green, blue] = (getComputedStyle(this.probe).color.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
    this.palette = PALETTES[0.3 * red + 0.59 * green + 0.11 * blue < 128 ? "dark" : "light"];
    this.font = style.fontFamily || "sans-serif";
    for (const name of ["sea", "land", "box", "ink", "muted", "paper", "lost"]) this.element.style.setProperty(`--${name}`, this.palette[name]);
    if (this.legendPalette !== this.palette || this.legendState !== this.state) this.showLegend();
  }

  sign(words, sign, colour) {
    const item = make("li", { className: "sign" }, this.legend);
    const mark = make("span", { textContent: sign }, item);
    mark.style.color = colour;
    item.append(words);
  }

  // Text alternative: a label, and a list of elements, the most important first.
  describe() {
    const { state } = this;
    this.canvas.setAttribute(
      "aria-label",
      `${state.summary()}. Arrow keys move to the nearest element, Page Down and Page Up to the next and the previous, ` +
        "Enter selects, Escape clears, plus and minus zoom, 0 shows all.",
    );
    const list = document.createElement("ul");
    for (const target of state.listed.slice(0, MAX_LISTED)) make("li", { textContent: state.sentence(target) }, list);
    this.list.replaceChildren(list);
    if (state.listed.length > MAX_LISTED) make("p", { textContent: `and ${state.listed.length - MAX_LISTED} more` }, this.list);
  }

  listen() {
    new ResizeObserver(() => {
      this.resize();
      this.draw();
    }).observe(this.frame);
    this.probe.addEventListener("transitionend", () => this.draw());
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button) return;
      this.drag = { x: event.clientX, y: event.clientY, moved: 0 };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch") return;
      if (this.drag) {
        const [dx, dy] = [event.clientX - this.drag.x, event.clientY - this.drag.y];
        this.drag.moved += Math.abs(dx) + Math.abs(dy);
        if (this.drag.moved > 4) {
          canvas.classList.add("dragged");
          this.view.moveBy(dx, dy);
          [this.drag.x, this.drag.y] = [event.clientX, event.clientY];
          this.hover(null);
          this.draw();
        }
        return;
      }
      const [x, y] = this.point(event);
      this.hover(this.hit(x, y), x, y);
    });
    const end = (event) => {
      canvas.classList.remove("dragged");
      this.wasDragged = Boolean(this.drag && this.drag.moved > 4);
      this.drag = null;
      if (event.type === "pointercancel") this.wasDragged = false;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => !this.drag && this.hover(null));
    canvas.addEventListener("click", (event) => {
      if (this.wasDragged) return;
      const [x, y] = this.point(event);
      const target = this.hit(x, y, event.pointerType === "touch" ? 16 : HIT_PX);
      if (event.pointerType === "touch") this.hover(target, x, y);
      this.focused = target;
      if (!target && this.state.data.placing) {
        this.select("place", this.view.toPlane(x, y).map((value) => value.toFixed(2)).join(" "));
        return;
      }
      this.pick(target);
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !this.hasFocus()) return;
      event.preventDefault();
      const [x, y] = this.point(event);
      this.view.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0022)), x, y);
      this.hover(null);
      this.draw();
    }, { passive: false });
    this.listenToTouch();
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => {
      this.focused = null;
      this.hover(null);
      this.draw();
    });
  }

  hasFocus() {
    return this.canvas.getRootNode().activeElement === this.canvas;
  }

  listenToTouch() {
    const middle = ([a, b]) => {
      const box = this.canvas.getBoundingClientRect();
      return {
        x: (a.clientX + b.clientX) / 2 - box.left,
        y: (a.clientY + b.clientY) / 2 - box.top,
        apart: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY),
      };
    };
    let last = null;
    const start = (event) => {
      if (event.touches.length !== 2) return;
      event.preventDefault();
      last = middle(event.touches);
    };
    const move = (event) => {
      if (event.touches.length !== 2 || !last) return;
      event.preventDefault();
      const now = middle(event.touches);
      this.view.moveBy(now.x - last.x, now.y - last.y);
      this.view.zoomBy(now.apart / last.apart, now.x, now.y);
      last = now;
      this.hover(null);
      this.draw();
    };
    this.canvas.addEventListener("touchstart", start, { passive: false });
    this.canvas.addEventListener("touchmove", move, { passive: false });
    this.canvas.addEventListener("touchend", (event) => event.touches.length < 2 && (last = null));
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  hover(target, x, y) {
    if (target === this.hovered && !target) return;
    const isNew = target !== this.hovered;
    this.hovered = target;
    this.canvas.classList.toggle("over", Boolean(target));
    this.showTip(target, x, y);
    if (isNew) this.draw();
  }

  showTip(target, x, y) {
    this.tip.hidden = !target;
    if (!target) return;
    const { state } = this;
    this.tip.replaceChildren();
    make("b", { textContent: state.title(target) }, this.tip);
    for (const [words, amount, isBad] of state.facts(target)) {
      const row = make("div", { className: isBad ? "bad" : "" }, this.tip);
      make("span", { textContent: words }, row);
      make("span", { textContent: amount }, row);
    }
    for (const note of state.notes(target)) make("p", { textContent: note }, this.tip);
    if (state.canSelect(target)) make("p", { className: "act", textContent: this.isByKey ? "Enter to select" : "click to select" }, this.tip);
    const [left, top] = [this.frame.offsetLeft + x, this.frame.offsetTop + y];
    const { offsetWidth: wide, offsetHeight: high } = this.tip;
    const right = left + 16 + wide <= this.element.clientWidth ? left + 16 : left - 16 - wide;
    this.tip.style.left = `${clamp(right, 4, this.element.clientWidth - wide - 4)}px`;
    this.tip.style.top = `${top + 16 + high <= this.element.clientHeight ? top + 16 : Math.max(0, top - 16 - high)}px`;
  }

  pick(target) {
    if (!target) {
      if (this.state.data.selected) this.select("", "");
      return;
    }
    if (this.state.canSelect(target)) this.select(this.state.kindOf(target), target.element);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const acts = {
      "+": () => this.view.zoomBy(1.6),
      "=": () => this.view.zoomBy(1.6),
      "-": () => this.view.zoomBy(1 / 1.6),
      0: () => this.view.fit(),
      Enter: () => this.focused && this.pick(this.focused),
      " ": () => this.focused && this.pick(this.focused),
      PageDown: () => this.step(1),
      PageUp: () => this.step(-1),
      Home: () => this.focus(this.state.listed[0]),
      End: () => this.focus(this.state.listed.at(-1)),
      Escape: () => {
        this.focused = null;
        this.hover(null);
        if (this.state.data.selected) this.select("", "");
      },
    };
    if (ways[event.key]) this.go(...ways[event.key]);
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault();
    this.draw();
  }

  current() {
    return this.focused ?? this.state.find(this.state.data.selected) ?? null;
  }

  step(by) {
    const place = this.state.listed.findIndex((target) => target === this.current());
    const count = this.state.listed.length;
    this.focus(this.state.listed[place < 0 ? (by > 0 ? 0 : count - 1) : (place + by + count) % count]);
  }

  // Move to the nearest element in a direction of the screen.
  go(dx, dy) {
    const from = this.current();
    if (!from) return this.focus(this.state.listed[0]);
    const [x, y] = this.where(from);
    let [best, least] = [null, Infinity];
    for (const target of this.state.listed) {
      if (target === from) continue;
      const [tx, ty] = this.where(target);
      const along = (tx - x) * dx + (ty - y) * dy;
      const across = Math.abs((tx - x) * dy) + Math.abs((ty - y) * dx);
      if (along < 0.5 || across > 1.5 * along) continue;
      const far = along + 2 * across;
      if (far < least) [best, least] = [target, far];
    }
    if (best) this.focus(best);
  }

  focus(target) {
    if (!target) return;
    this.focused = target;
    const [sx, sy] = this.reveal(target);
    this.isByKey = true;
    this.showTip(target, sx, sy);
    this.isByKey = false;
    this.live.textContent = this.state.sentence(target) + (this.state.canSelect(target) ? ". Enter selects it." : "");
  }
}

function make(tag, attributes, parent) {
  const element = Object.assign(document.createElement(tag), attributes);
  parent.append(element);
  return element;
}
