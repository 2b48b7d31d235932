"""Matchings that switches keep all the time: the best by a minimum-cost flow, divided among the switches.

With m_ij switches that connect rack i to j, of the k that there are, min(D_ij, m_ij r_ij) is delivered: the
first switches of a pair deliver r_ij each, the last one the rest of D_ij. So with x_ij of the former and
y_ij of the latter

    maximize    sum_ij r_ij x_ij + (D_ij - r_ij floor(D_ij / r_ij)) y_ij
    subject to  sum_j x_ij + y_ij <= k,  sum_i x_ij + y_ij <= k,  x_ij <= floor(D_ij / r_ij),  y_ij <= 1

whose vertices are integer. A bipartite multigraph of degree k consists of k matchings (Koenig).
"""

from __future__ import annotations

import numpy as np

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner_models.circuits.plan.plan import IDLE


def choose_steady(demand_mbps: Floats, link_mbps: Floats, count: int) -> tuple[Ints, float]:
    """Return the (count, n) matchings that deliver the most together, direct, and what they deliver, Mbit/s.

    demand_mbps, link_mbps  (n, n) demand, and rate of a circuit
    """
    racks = len(demand_mbps)
    source, target = np.nonzero((demand_mbps > 0) & (link_mbps > 0))
    if not count or not len(source):
        return np.full((count, racks), IDLE, dtype=np.int64), 0.0
    demand, rate = demand_mbps[source, target], link_mbps[source, target]
    full = np.minimum(np.floor(demand / rate * (1 + 1e-12)), count)
    rest = np.where(full < count, np.maximum(demand - full * rate, 0.0), 0.0)
    m = ProgramBuilder(sense="maximize", name="matchings that stay")
    x = m.variables("full", len(source), upper=full, cost=rate / rate.max())
    y = m.variables("last", len(source), upper=1.0, cost=rest / rate.max())
    m.constrain("sends", (x + y).sum_by(source, racks), upper=count)
    m.constrain("receives", (x + y).sum_by(target, racks), upper=count)
    solution = backends.solve(m.build(), Options(algorithm="simplex"))
    if solution.x is None:
        raise RuntimeError("matchings that stay: a program that is always feasible has no solution")
    switches = np.zeros((racks, racks), dtype=np.int64)
    switches[source, target] = np.round(x.values(solution.x) + y.values(solution.x))
    delivered = float(np.minimum(demand_mbps, switches * link_mbps).sum())
    return divide(switches, count), delivered


def divide(switches: Ints, count: int) -> Ints:
    """Return (count, n) matchings of (n, n) numbers of circuits; rows and columns sum to at most count."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    real, idle = switches.copy(), np.zeros_like(switches)
    missing_out, missing_in = count - real.sum(axis=1), count - real.sum(axis=0)
    row = column = 0
    while row < len(real) and column < len(real):  # idle ports, so that all racks have as many
        number = min(missing_out[row], missing_in[column])
        idle[row, column] += number
        missing_out[row] -= number
        missing_in[column] -= number
        row, column = row + int(missing_out[row] == 0), column + int(missing_out[row] > 0)
    matchings: Ints = np.full((count, len(real)), IDLE, dtype=np.int64)
    for matching in matchings:
        source, target = linear_sum_assignment(real + idle > 0, maximize=True)
        is_real = real[source, target] > 0
        real[source[is_real], target[is_real]] -= 1
        idle[source[~is_real], target[~is_real]] -= 1
        matching[source[is_real]] = target[is_real]
    return matchings
