"""Flow records of routers and captures: read, scaled, deduplicated, and mapped to nodes and times."""
