"""Least-cost network design: which capacity to buy so that all demands fit, also under failures."""
