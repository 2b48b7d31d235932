"""Graph algorithms on arrays, which know no system: paths, trees, flows, matchings, heaps, indices."""
