// Which part of the plane is seen: scale in pixels per unit, and the point in the middle.

const MAX_ZOOM = 24; // times the scale at which the whole network fits
const MARGIN_PX = 44;

class View {
  constructor() {
    this.width = this.height = 0;
    this.isFitted = true;
  }

  // bounds and limits: [west, north, east, south]; limits are null where nothing is drawn below the network
  bind(bounds, limits) {
    this.bounds = bounds;
    this.limits = limits;
    this.fit();
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    if (this.isFitted) this.fit();
    else this.confine();
  }

  fit() {
    this.isFitted = true;
    if (!this.bounds || !this.width) return;
    const [west, north, east, south] = this.bounds;
    const margin = Math.min(MARGIN_PX, this.width / 9);
    // a map goes on below the buttons; other networks end beside them
    const aside = this.limits ? 0 : Math.max(0, BUTTONS.wide - margin / 2);
    const across = (this.width - 2 * margin - aside) / Math.max(east - west, 1);
    const down = (this.height - 2 * margin) / Math.max(south - north, 1);
    this.fitted = Math.min(across, down, 0.6);
    this.scale = this.fitted;
    this.x = (west + east) / 2 + aside / 2 / this.scale;
    this.y = (north + south) / 2;
    this.confine();
  }

  get zoom() {
    return this.scale / this.fitted;
  }

  least() {
    let least = this.fitted * 0.75;
    if (this.limits) {
      const [west, north, east, south] = this.limits;
      least = Math.max(least, this.width / (east - west), this.height / (south - north));
    }
    return Math.min(least, this.fitted);
  }

  confine() {
    this.scale = Math.max(this.least(), Math.min(this.scale, this.fitted * MAX_ZOOM));
    const [west, north, east, south] = this.limits ?? this.bounds;
    const [halfWide, halfHigh] = this.limits ? [this.width / 2 / this.scale, this.height / 2 / this.scale] : [0, 0];
    this.x = clamp(this.x, west + halfWide, east - halfWide);
    this.y = clamp(this.y, north + halfHigh, south - halfHigh);
  }

  zoomBy(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toPlane(px, py);
    this.scale = Math.max(this.least(), Math.min(this.scale * factor, this.fitted * MAX_ZOOM));
    this.x = x - (px - this.width / 2) / this.scale;
    this.y = y - (py - this.height / 2) / this.scale;
    this.isFitted = false;
    this.confine();
  }

  moveBy(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.isFitted = false;
    this.confine();
  }

  // Move so that a point of the plane is seen.
  reveal(x, y) {
    const [px, py] = this.toScreen(x, y);
    const inside = px > 30 && py > 30 && px < this.width - 30 && py < this.height - 30;
    if (!inside) this.moveBy(this.width / 2 - px, this.height / 2 - py);
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  toPlane(px, py) {
    return [(px - this.width / 2) / this.scale + this.x, (py - this.height / 2) / this.scale + this.y];
  }
}

function clamp(value, low, high) {
  return low > high ? (low + high) / 2 : Math.max(low, Math.min(value, high));
}
