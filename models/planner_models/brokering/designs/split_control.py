"""Split control of a market: a slow global decision for all clients, and fast local deviations from it.

The global decision is made on the market as it was before (`problem.earlier`), and has priority. Local
control observes the market as it is now, and deviates only for clients that an event concerns: their
cluster is lost or overloaded, they have none, or their score has risen by more than a tolerance.
Deviations use the capacity that the global decision leaves.

source  Mukerjee 2018, 1.1 (hierarchical partitioning, choice between the global and a local decision) and
        1.2.2 (C3: each client deviates; Pytheas: local clusters adjust the decision for a group of clients).
        The text says who deviates, and when; which clients leave, and where they go, are readings of it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.formatting import counted
from planner.options import Options
from planner.search.judged import undecided
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan import billing, plan
from planner_models.brokering.plan.check import is_overloaded, read_assignment
from planner_models.brokering.plan.metrics import cap_groups, count_by_group, relieve
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.plan.transportation import TransportationProblem, transportation_problem
from planner_models.brokering.problem.problem import Brokering

KIND: Final = list(plan.KEY[:-1])

Tolerance = Annotated[
    float,
    Field(
        ge=0, description="relative rise of a score since the global decision, above which clients deviate"
    ),
]
Windows = Annotated[
    int,
    Field(
        ge=1,
        description="windows from one global decision to the next; in those between, clients only deviate",
    ),
]
Deviate = Callable[[Brokering, TransportationProblem, Ints, Options], Ints]
"""(problem, its transportation problem, clients by group and cluster, options) -> clients then."""


def assign_by_client(
    problem: Brokering,
    *,
    tolerance: Tolerance = 0.2,
    windows: Windows = 1,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign clients by a global decision, from which each client deviates after an event.

    One after the other, clients that an event concerns take the cheapest cluster with capacity for them.

    returns  Decision with an Assignment on the market as it is now; no bound is proven
    source   Mukerjee 2018, 1.2.2 (C3)
    """
    return _assign(problem, _deviate_by_client, tolerance, windows, options, previous)


def assign_by_group(
    problem: Brokering,
    *,
    tolerance: Tolerance = 0.2,
    windows: Windows = 1,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign clients by a global decision, which a local controller for each country adjusts after an event.

    A country that an event concerns assigns all its clients again at the least objective, in the capacity
    that the others leave; those with the most traffic first.

    returns  Decision with an Assignment on the market as it is now; no bound is proven
    source   Mukerjee 2018, 1.2.2 (Pytheas); that clients of a country are a group is a reading
    """
    return _assign(problem, _deviate_by_country, tolerance, windows, options, previous)


def _assign(
    problem: Brokering,
    deviate: Deviate,
    tolerance: float,
    windows: int,
    options: Options,
    previous: Decision[Assignment] | None,
) -> Decision[Assignment]:
    transport = transportation_problem(problem)
    last = None if previous is None else previous.plan
    if last is not None and billing.count_windows(last) % windows:
        assigned, backend = _keep_clients(problem, last), None
    else:
        earlier = problem if problem.earlier is None else problem.earlier
        decision = assignment.assign(earlier, options=replace(options, service="best"))
        if decision.plan is None:
            return decision
        backend = decision.proof.backend
        assigned = count_by_group(problem, read_assignment(problem, decision.plan))
        assigned[_is_worse(problem, earlier, tolerance)] = 0
    assigned = deviate(problem, transport, assigned, options)
    shed = transport.count - assigned.sum(axis=1)
    if options.service == "all" and shed.any():
        unserved = counted(int(shed.sum()), "clients")
        reason = f"local deviations from the global decision leave {unserved} without a cluster"
        return Decision(plan=None, proof=undecided(reason, metric="objective"))
    result = plan.from_groups(problem, sp.csr_array(np.column_stack([assigned, shed])))
    made = Decision(
        plan=result,
        proof=assignment.unproven(problem, result, backend),
        guarantees=None if problem.limits is None else assignment.WITHOUT_LIMITS,
    )
    return billing.add_traffic_history(problem, made, previous)


def _is_worse(problem: Brokering, earlier: Brokering, tolerance: float) -> Bools:
    """Return the mask of groups and clusters, (G, C), with a score now above that of the global decision."""
    rises = problem.score > (1 + tolerance) * earlier.score
    return np.asarray(rises[problem.groups.location])


def _keep_clients(problem: Brokering, last: Assignment) -> Ints:
    """Return the clients of each group that stay in the clusters of the last plan, (G, C).

    Clients of lost clusters have none, and so have new ones. Of a kind with fewer clients than before, the
    first ones of the plan stay.
    """
    frame = last.assignments[last.assignments["cluster"].isin(problem.clusters["cluster"])]
    frame = frame[frame["location"].isin(problem.locations["location"])]
    location = problem.location_index.get_indexer(pd.Index(frame["location"]))
    cluster = problem.cluster_index.get_indexer(pd.Index(frame["cluster"]))
    frame = frame[problem.offered[location, cluster]]
    total = problem.clients.groupby(KIND)["clients"].sum().rename("total")
    frame = frame.join(total, on=KIND)
    before = frame.groupby(KIND)["clients"].cumsum() - frame["clients"]
    stays = np.clip(frame["total"].fillna(0.0) - before, 0.0, frame["clients"])
    frame = frame.assign(clients=stays)[[*plan.KEY, "clients"]]
    carried = Assignment(assignments=frame[frame["clients"] > 0].reset_index(drop=True))
    return count_by_group(problem, read_assignment(problem, carried))


def _deviate_by_client(
    problem: Brokering,
    transport: TransportationProblem,
    assigned: Ints,
    options: Options,  # noqa: ARG001 - the signature of Deviate
) -> Ints:
    return relieve(transport, assigned, cap_groups(problem))[0]


def _deviate_by_country(
    problem: Brokering, transport: TransportationProblem, assigned: Ints, options: Options
) -> Ints:
    """Assign the clients of each country again that an event concerns."""
    bitrate = transport.bitrate_mbps
    countries, country = np.unique(problem.country.astype(str), return_inverse=True)
    of_group = country[problem.groups.location]
    traffic = np.bincount(of_group, weights=bitrate * transport.count, minlength=len(countries))
    assigned = assigned.copy()
    for unit in np.argsort(-traffic, kind="stable"):
        members = of_group == unit
        if not _has_event(problem, transport, assigned, members):
            continue
        others = bitrate[~members] @ assigned[~members]
        market = problem.with_client_counts(np.where(country[problem.location] == unit, problem.count, 0))
        market = market.with_clusters(background_mbps=problem.background_mbps + others)
        decision = assignment.assign(market, method="flow", options=replace(options, service="best"))
        if decision.plan is not None:
            assigned[members] = count_by_group(problem, read_assignment(problem, decision.plan))[members]
    return assigned


def _has_event(problem: Brokering, transport: TransportationProblem, assigned: Ints, members: Bools) -> bool:
    """Return whether some of these groups, (G,), have no cluster, or have one that is overloaded."""
    if (assigned[members].sum(axis=1) < transport.count[members]).any():
        return True
    return bool(assigned[members][:, is_overloaded(problem, transport.bitrate_mbps @ assigned)].any())
