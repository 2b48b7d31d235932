"""Simulation of a cache in time: packets, idle entries, changes of rules, and masks planned again."""
