"""The systems that planner ships: one folder each, found through the entry points of setup.cfg."""
