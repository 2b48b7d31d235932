"""Eiger's protocol as a simulation of events: logical clocks, read-only and write-only transactions.

A client sends to servers of its datacenter; writes are copied to the other datacenters and wait there for
their dependencies (Lloyd et al. 2013, sections 3 to 5). A checker judges the history of a run by itself.
"""
