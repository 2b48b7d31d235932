// The two components of a picture: this one brings the code and what seldom changes; values.js brings the values.

const MAX_SCENES = 12;

function update(key) {
  const wanted = REGISTRY.pending.get(key);
  if (!wanted) return;
  const { data, root, select } = wanted;
  const scene = REGISTRY.scenes.get(data.id);
  if (!scene) return; // it comes soon
  const kind = data.bars ? Timeline : NetworkPicture;
  let picture = REGISTRY.pictures.get(root);
  if (!(picture instanceof kind)) {
    picture?.element.remove();
    picture = new kind(root);
    REGISTRY.pictures.set(root, picture);
  }
  picture.show(scene, data, select);
}

REGISTRY.update = update;

export default function showGeometry({ data: { key, id, geometry } }) {
  const scene = REGISTRY.scenes.get(id) ?? (geometry ? new Scene(id, JSON.parse(geometry)) : { id });
  REGISTRY.scenes.delete(id); // the latest comes last
  REGISTRY.scenes.set(id, scene);
  if (REGISTRY.scenes.size > MAX_SCENES) REGISTRY.scenes.delete(REGISTRY.scenes.keys().next().value);
  update(key);
}
