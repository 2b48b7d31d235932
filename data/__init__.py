"""Scenarios that ship with planner; installed as `planner_data`."""
