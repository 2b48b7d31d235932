"""Formal model of system `livevideo` in Pyomo: Fig. 4.8 of Mukerjee 2018, with its gaps filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.arrays import Ints
from planner_models.livevideo.plan.plan import Trees, build_plan
from planner_models.livevideo.problem.problem import LiveVideo

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: LiveVideo) -> pyo.ConcreteModel:
    """Return the integer program of Fig. 4.8, over every link and every requested object.

    maximize    ws sum_{l in LAS, o} Priority_o Request_{l,o} Serves_{l,o}
                - wc sum_{l, o} Cost_l Bitrate_o Serves_{l,o}
    subject to  Serves_{l,o} binary
                sum_o Bitrate_o Serves_{l,o} <= Capacity_l
                sum_{l' in InLinks(l)} Serves_{l',o} >= Serves_{l,o}

    Additions to the printed program:

    sources     a link out of a source has no links in, so its last constraint would read 0 >= Serves:
                it is left out where the source holds the object; where it does not, Serves is 0
    duplicates  the sum over links in lets two of them deliver the same object, at no loss where
                they cost nothing: it is limited to 1, so that links form trees
    dummies     the links LAS that leave the groups carry no cost and have no capacity
    ladders     where clients accept lower bitrates, each is served at one of them at most:
                Takes_{r,o} <= sum_{l in InLinks(group of r)} Serves_{l,o} and sum_o Takes_{r,o} <= 1
                for request r, in place of Serves on the dummy links
    multiplicity  Request is the number of clients, not 0 or 1
    units       Bitrate and Capacity in Mbit/s, Cost per Mbit/s: in kbit/s a path of cost 60 at
                30 Mbit/s would cost 1.8 million, far beyond the printed service weight of 1,000
    rules       pinned objects and links are 1, forbidden ones 0
    bills       Billed_b is what the window adds to bill b beyond Low_b, and Unbilled_b is 1 where its load is
                above High_b (see `Tariffs`): sum_{l on b, o} Bitrate_o Serves_{l,o} <= Low_b + Billed_b
                + M Unbilled_b, Billed_b >= (High_b - Low_b) Unbilled_b, and at most Cap_b;
                wc Price_b Billed_b is taken off the objective
    last hop    where it is unicast, Serves on a link into a group is a number of viewers, at most those of
                the request if the edge receives the object, else 0; Takes is the number of clients served
    """
    import pyomo.environ as pyo  # slow to import

    m = pyo.ConcreteModel("live video")
    steps = {
        (q, o): value for q, o, value in zip(*(column.tolist() for column in problem.steps), strict=True)
    }
    m.L = pyo.Set(initialize=range(len(problem.links)))
    m.R = pyo.Set(initialize=range(len(problem.requests)))
    m.steps = pyo.Set(dimen=2, initialize=list(steps))  # requests and the objects that they accept
    pinned_objects = [int(o) for o in problem.pinned_links[:, 0]]
    m.O = pyo.Set(initialize=sorted({*(o for _, o in steps), *pinned_objects}))
    streams = _add_variables(problem, m)
    into = _list_links_in(problem)
    bitrate, capacity = problem.bitrate_mbps.tolist(), problem.capacity_mbps.tolist()
    m.capacity = pyo.Constraint(
        m.L, rule=lambda m, link: sum(bitrate[o] * m.serves[link, o] for o in m.O) <= capacity[link]
    )
    _send_only_received(problem, m, into)
    _serve_requests(problem, m, into)
    m.once = pyo.Constraint(
        range(len(problem.clusters)),
        m.O,
        rule=lambda m, v, o: (
            sum(m.serves[link, o] for link in into[v]) <= streams.get((into[v][0], o), 1)
            if len(into[v]) > 1
            else pyo.Constraint.Skip
        ),
    )
    _keep_rules(problem, m)
    cost = problem.cost.tolist()
    service = sum(value / m.takes[r, o].ub * m.takes[r, o] for (r, o), value in steps.items())
    spent = sum(cost[link] * bitrate[o] * m.serves[link, o] for link in m.L for o in m.O)
    added = _pay_bills(problem, m)
    m.value = pyo.Objective(expr=service - problem.cost_weight * (spent + added), sense=pyo.maximize)
    return m


def _pay_bills(problem: LiveVideo, m: pyo.ConcreteModel) -> Any:
    """Add bills and caps of links together to a model; return the increase of all bills."""
    import pyomo.environ as pyo

    tariffs = problem.tariffs
    of_link, bitrate = tariffs.of_link.tolist(), problem.bitrate_mbps.tolist()
    m.B = pyo.Set(initialize=sorted({bill for bill in of_link if bill >= 0}))
    price, low, high, cap = (column.tolist() for column in tariffs[2:])
    capacity = tariffs.load(problem.capacity_mbps).tolist()
    m.traffic = pyo.Expression(
        m.B,
        rule=lambda m, b: sum(
            bitrate[o] * m.serves[link, o] for link in m.L if of_link[link] == b for o in m.O
        ),
    )
    m.billed = pyo.Var(m.B, domain=pyo.NonNegativeReals)
    m.unbilled = pyo.Var(m.B, domain=pyo.Binary)
    m.cap = pyo.Constraint(
        m.B, rule=lambda m, b: m.traffic[b] <= cap[b] if np.isfinite(cap[b]) else pyo.Constraint.Skip
    )
    m.level = pyo.Constraint(
        m.B, rule=lambda m, b: m.traffic[b] <= low[b] + m.billed[b] + capacity[b] * m.unbilled[b]
    )
    m.burst = pyo.Constraint(
        m.B,
        rule=lambda m, b: (
            m.billed[b] >= (high[b] - low[b]) * m.unbilled[b] if np.isfinite(high[b]) else m.unbilled[b] == 0
        ),
    )
    return sum(price[b] * m.billed[b] for b in m.B)


def _add_variables(problem: LiveVideo, m: pyo.ConcreteModel) -> dict[tuple[int, int], float]:
    """Add the variables to a model; return the viewers of links into groups, as `count_streams`."""
    import pyomo.environ as pyo

    streams = count_streams(problem)
    m.serves = pyo.Var(
        m.L,
        m.O,
        domain=lambda _, link, o: pyo.NonNegativeIntegers if (link, o) in streams else pyo.Binary,
        bounds=lambda _, link, o: (0, streams.get((link, o), 1)),
    )
    clients = problem.clients.tolist() if problem.is_unicast else [1.0] * len(problem.requests)
    m.takes = pyo.Var(
        m.steps,
        domain=pyo.NonNegativeIntegers if problem.is_unicast else pyo.Binary,
        bounds=lambda _, r, _o: (0, clients[r]),
    )
    return streams


def count_streams(problem: LiveVideo) -> dict[tuple[int, int], float]:
    """Return the viewers of each link into a group and object, where the last hop is unicast; else none."""
    if not problem.is_unicast:
        return {}
    requested = {
        (group, o): clients
        for group, o, clients in zip(
            problem.group.tolist(), problem.object.tolist(), problem.clients.tolist(), strict=True
        )
    }
    heads = problem.head.tolist()
    return {
        (link, o): requested.get((heads[link], o), 0.0)
        for link in np.flatnonzero(problem.is_last_hop).tolist()
        for o in range(len(problem.objects))
    }


def _list_links_in(problem: LiveVideo) -> list[list[int]]:
    """Return the links into each cluster."""
    into: list[list[int]] = [[] for _ in range(len(problem.clusters))]
    for link, v in enumerate(problem.head.tolist()):
        into[v].append(link)
    return into


def _send_only_received(problem: LiveVideo, m: pyo.ConcreteModel, into: list[list[int]]) -> None:
    """Add to a model that a cluster sends an object only where it receives it, or is a source of it."""
    import pyomo.environ as pyo

    tail, level = problem.tail.tolist(), problem.level.tolist()
    at_source = {
        int(s): set(np.flatnonzero(problem.is_at_source[:, i]).tolist())
        for i, s in enumerate(problem.sources)
    }

    def received(m: pyo.ConcreteModel, link: int, o: int) -> Any:
        v = tail[link]
        if level[v] == 0:
            return pyo.Constraint.Skip if o in at_source[v] else m.serves[link, o] == 0
        received_at = sum(m.serves[other, o] for other in into[v])
        if problem.is_unicast and problem.is_last_hop[link]:
            received_at *= m.serves[link, o].ub
        return received_at >= m.serves[link, o]

    m.received = pyo.Constraint(m.L, m.O, rule=received)


def _serve_requests(problem: LiveVideo, m: pyo.ConcreteModel, into: list[list[int]]) -> None:
    """Add to a model that a request takes one bitrate at most, which its group receives."""
    import pyomo.environ as pyo

    group = problem.group.tolist()
    accepted: list[list[int]] = [[] for _ in group]
    for r, o in m.steps:
        accepted[r].append(o)

    def at_group(m: pyo.ConcreteModel, r: int, o: int) -> Any:
        return sum(m.serves[link, o] for link in into[group[r]]) >= m.takes[r, o]

    def one_bitrate(m: pyo.ConcreteModel, r: int) -> Any:
        if len(accepted[r]) == 1:
            return pyo.Constraint.Skip
        return sum(m.takes[r, o] for o in accepted[r]) <= 1

    m.at_group = pyo.Constraint(m.steps, rule=at_group)
    m.one_bitrate = pyo.Constraint(m.R, rule=one_bitrate)


def _keep_rules(problem: LiveVideo, m: pyo.ConcreteModel) -> None:
    """Add the rules of the problem to a model: pinned objects and links are 1, forbidden ones 0."""
    import pyomo.environ as pyo

    m.rules = pyo.ConstraintList()
    for o, link in problem.pinned_links.tolist():
        m.rules.add(m.serves[link, o] >= 1)
    for q in problem.pinned_requests.tolist():
        served = m.takes[q, int(problem.object[q])]
        m.rules.add(served == served.ub)
    if problem.forbidden_pairs is not None:
        for o, link in np.argwhere(problem.forbidden_pairs).tolist():
            if o in m.O:
                m.rules.add(m.serves[link, o] == 0)


def read_plan(problem: LiveVideo, m: pyo.ConcreteModel) -> Trees:
    """Return the trees of a solved model."""
    streams = {
        (o, link): round(value)
        for (link, o), value in m.serves.extract_values().items()
        if value and value > 0.5
    }
    on: Ints = np.array(list(streams), dtype=np.int64).reshape(-1, 2)
    return build_plan(problem, on[:, 0], on[:, 1], np.array(list(streams.values()), dtype=float))
