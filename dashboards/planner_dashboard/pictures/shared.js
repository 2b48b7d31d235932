// What the two components of all pictures on a page share.
const REGISTRY = (globalThis[Symbol.for("planner.pictures")] ??= { scenes: new Map(), pending: new Map(), pictures: new Map() });
