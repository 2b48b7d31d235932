// The component of a picture's values: it hands them to the code that came with the geometry.

export default function showValues({ data, parentElement, setTriggerValue }) {
  const select = (kind, name) => setTriggerValue("picked", { kind, name });
  REGISTRY.pending.set(data.key, { data, root: parentElement, select });
  REGISTRY.update?.(data.key);
  return () => {
    REGISTRY.pictures.delete(parentElement);
    if (REGISTRY.pending.get(data.key)?.root === parentElement) REGISTRY.pending.delete(data.key);
  };
}
