"""Simulation of system `fairshare`: requests of closed-loop tenants in queues of nodes."""
