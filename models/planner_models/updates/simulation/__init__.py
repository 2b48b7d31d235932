"""Updates in time: switches make their changes in random order and after random delays."""
