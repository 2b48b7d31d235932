"""Separation of metric rows: lengths of links under which the demands need more than the capacities."""

from __future__ import annotations

import numpy as np

from planner.search.tolerances import FEASIBILITY
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.network import Floats, Network
from planner_models.capacity.designs.network_design.rounding import round_row
from planner_models.capacity.designs.network_design.states import States

MAX_DENOMINATOR = 24
LENGTH_TOLERANCE = FEASIBILITY


def add_metric_row(
    instance: Instance,
    network: Network,
    states: States,
    master: Master,
    *,
    state: int,
    lengths: Floats,
    point: Floats,
) -> bool:
    """Add the rounded metric row of lengths (R,) in a state; return whether it is new.

    point  where the rounded row should be violated most
    """
    lengths = to_fractions(lengths)
    up, required = states.up[state], states.required[state]
    distance = network.demand_distances(lengths, up)
    distance = np.where((required > 0) & (instance.rate > 0), distance, 0.0)
    if not np.isfinite(distance).all():
        return False
    distance = distance * required
    on_edge = np.bincount(network.capacity_edge, weights=lengths, minlength=instance.edges) * up
    coefficients = (on_edge[instance.module_edge]) * instance.module_size
    have = float(on_edge @ instance.installed)
    row = np.zeros(master.pooled)
    if master.budget is not None:
        unit = max(float(coefficients.max(initial=0.0)), 1e-9)
        row[: master.modules] = coefficients / unit
        row[master.delivered] = -distance / unit
        return master.add_row(row, -have / unit)
    limit = float(distance @ instance.rate) - have
    if limit <= 1e-9 or not coefficients.any():
        return False
    row[: master.modules], rounded = round_row(coefficients, limit, point[: master.modules])
    return master.add_row(row, rounded)


def to_fractions(lengths: Floats) -> Floats:
    """Return lengths as fractions of a small common denominator where they are, scaled to at most 1."""
    lengths = lengths / max(float(lengths.max(initial=0.0)), 1e-12)
    for denominator in range(1, MAX_DENOMINATOR + 1):
        scaled = lengths * denominator
        whole = np.round(scaled)
        if np.abs(scaled - whole).max(initial=0.0) <= LENGTH_TOLERANCE * denominator:
            fractions: Floats = whole / denominator
            return fractions
    kept: Floats = np.where(lengths < LENGTH_TOLERANCE, 0.0, lengths)
    return kept
