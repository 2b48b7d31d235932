"""Simulation of sites, queues and controllers in time."""
