"""The formal model of system `brokering` in Pyomo: the broker's integer program as printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.arrays import Floats, Ints32
from planner.options import Service
from planner_models.brokering.problem.problem import Brokering

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Brokering, service: Service = "best") -> pyo.ConcreteModel:
    """Build the program of Fig. 3.10 of Mukerjee 2018, with one variable for each client and bid.

    service  "all": as printed; "best": a client may be shed, S_r in {0, 1}, at a cost above that of all

    maximize    wp sum Performance(m) U_{r,m} - wc sum Cost(m) Bitrate(r) U_{r,m}
    subject to  U_{r,m} in {0, 1}
                sum over m of U_{r,m} = 1                     every client is served once
                sum over r of Bitrate(r) U_{r,m} <= Capacity(l)   at each cluster l

    Readings: Performance is the negative score, since a smaller score is better; Cost times Bitrate
    is the cost of an hour. As printed, a client's performance counts once whatever its bitrate,
    while its cost is by the bit; with `performance_per = "bit"` performance is times Bitrate too, and
    with "location" the Bitrate of costs is the mean of the client's location.
    The objective is the negative of the metric "objective".
    """
    import pyomo.environ as pyo  # imported late: slow to load

    groups, sheds = problem.groups, service == "best"
    group = np.repeat(np.arange(len(groups.count)), groups.count).tolist()  # of each client
    bitrate, capacity = groups.bitrate_mbps.tolist(), problem.residual_mbps.tolist()
    allowed = problem.allowed & ~np.isnan(problem.price[groups.location])
    matchings = [np.flatnonzero(row).tolist() for row in allowed]  # of each group

    def fits(m: pyo.ConcreteModel, c: int) -> Any:
        load = [bitrate[group[r]] * m.U[r, c] for r in m.Clients if (r, c) in m.RM]
        return sum(load) <= capacity[c] if load else pyo.Constraint.Skip

    def once(m: pyo.ConcreteModel, r: int) -> Any:
        shed = m.S[r] if sheds else 0
        return sum(m.U[r, c] for c in matchings[group[r]]) + shed == 1

    m = pyo.ConcreteModel("content brokering")
    m.Clients = pyo.Set(initialize=range(len(group)))
    m.Clusters = pyo.Set(initialize=range(len(capacity)))
    m.RM = pyo.Set(initialize=[(r, c) for r in m.Clients for c in matchings[group[r]]], dimen=2)
    m.U = pyo.Var(m.RM, domain=pyo.Binary)
    m.S = pyo.Var(m.Clients if sheds else [], domain=pyo.Binary)
    m.once = pyo.Constraint(m.Clients, rule=once)
    m.capacity = pyo.Constraint(m.Clusters, rule=fits)
    wp, wc = problem.terms.performance_weight, problem.terms.cost_weight
    performance, cost = _find_performance(problem), _find_cost(problem)
    unserved_cost = _find_unserved_cost(problem, matchings, performance, cost)
    m.goal = pyo.Objective(
        expr=wp * sum(performance[group[r]][c] * m.U[r, c] for r, c in m.RM)
        - wc * sum(cost[group[r]][c] * m.U[r, c] for r, c in m.RM)
        - unserved_cost * sum(m.S.values()),
        sense=pyo.maximize,
    )
    return m


def _find_unserved_cost(
    problem: Brokering, matchings: list[list[int]], performance: list[list[float]], cost: list[list[float]]
) -> float:
    """Return a cost above that of all clients, each in the most expensive cluster of its group."""
    wp, wc = problem.terms.performance_weight, problem.terms.cost_weight
    largest = [
        max((wc * cost[g][c] - wp * performance[g][c] for c in row), default=0.0)
        for g, row in enumerate(matchings)
    ]
    return 1.0 + float(np.dot(largest, problem.groups.count))


def _find_performance(problem: Brokering) -> list[list[float]]:
    """Return the performance of a client of each group in each cluster; larger is better."""
    groups = problem.groups
    score: Floats = problem.score[groups.location]
    is_per_bit = problem.terms.performance_per == "bit"
    factor = groups.bitrate_mbps if is_per_bit else np.ones(len(groups.count))
    performance: list[list[float]] = (-factor[:, None] * score).tolist()
    return performance


def _find_cost(problem: Brokering) -> list[list[float]]:
    """Return the cost of an hour of a client of each group in each cluster."""
    groups = problem.groups
    priced_mbps = problem.priced_bitrate_mbps(groups.location, groups.bitrate_mbps)
    hourly = problem.terms.units_per_mbps_hour * priced_mbps
    cost: list[list[float]] = (hourly[:, None] * problem.price[groups.location]).tolist()
    return cost


def clients_by_group(problem: Brokering, m: pyo.ConcreteModel) -> Ints32:
    """Return the clients of each group in each cluster, and of those shed, (G, C + 1), in a solved model."""
    groups = problem.groups
    group = np.repeat(np.arange(len(groups.count)), groups.count)
    clients = np.zeros((len(groups.count), len(problem.clusters) + 1), dtype=np.int32)
    for (r, c), value in m.U.extract_values().items():
        clients[group[r], c] += round(value or 0.0)
    for r, value in m.S.extract_values().items():
        clients[group[r], -1] += round(value or 0.0)
    return clients
