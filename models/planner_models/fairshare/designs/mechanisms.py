"""The mechanisms of Pisces: fair queuing, placement, weight allocation, replica selection.

Each design fixes a placement, local weights and a rule for replicas; rates are those of the steady state
(`plan.service`).

Source: Shue, Freedman, Shaikh 2013 (Pisces), 3 and 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.fairshare.designs.decision import Previous, decide, start_from
from planner_models.fairshare.designs.fair_rates import Seed, fair_load_kops
from planner_models.fairshare.designs.moves import move_least
from planner_models.fairshare.designs.placement import complete, place_by_load, place_uniformly
from planner_models.fairshare.designs.weights import balance_shares, flow_weights, spread_evenly, swap_weights
from planner_models.fairshare.plan.fair_shares import entitlement, fair_share_kops, flat_weights, pool_levels
from planner_models.fairshare.plan.plan import (
    EVEN,
    FAIR_QUEUING,
    FIRST_COME,
    LIMITS,
    WINDOWS,
    Replicas,
    Sharing,
    sum_by_node,
)
from planner_models.fairshare.plan.service import WINDOW_ROUNDS, serve, split_evenly
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

LEAST_STEP: Final = 1e-3
"""Least swap that is executed, of the mean fair share at a node; the paper does not print its threshold."""
MOST_SLACK: Final = 0.02
ENDLESS_KOPS: Final = 1e150
MOST_SWAPS: Final = 5_000
WINDOW_S_PER_PAIR: Final = 1e-6  # CPU seconds of a round, for each resource of a tenant on a node
ALTERNATIONS: Final = 4  # of weight allocation and replica selection, until both settle

Replaced = Annotated[
    Literal["auto", "keep", "search", "moves"],
    Field(
        description="keep: replicas where they are placed; search: placed anew; moves: the least data is "
        "moved; auto: moves where replicas are placed, else search"
    ),
]
Slack = Annotated[
    float,
    Field(
        ge=0, le=10, description="utilization above the least possible that is accepted before data is moved"
    ),
]


class _Discipline(NamedTuple):
    """Order in which a node serves requests, and how routers choose replicas."""

    queueing: str
    replica_choice: str = EVEN


def serve_first_come(
    problem: SharedStore, *, seed: Seed = 0, previous: Previous = None, options: Options = Options()
) -> Decision[Sharing]:
    """Serve requests first come, first served, over uniform placement: an unmodified store."""
    problem = start_from(problem, previous)
    return _run(problem, _place_alike(problem, seed), None, _Discipline(FIRST_COME), options)


def queue_fairly(
    problem: SharedStore, *, seed: Seed = 0, previous: Previous = None, options: Options = Options()
) -> Decision[Sharing]:
    """Share each node by deficit round robin with uniform local weights, over uniform placement."""
    problem = start_from(problem, previous)
    replicas = _place_alike(problem, seed)
    return _run(
        problem,
        replicas,
        spread_evenly(contract_kops(problem), find_present(problem, replicas)),
        _Discipline(FAIR_QUEUING),
        options,
    )


def queue_by_weight(
    problem: SharedStore, *, seed: Seed = 0, previous: Previous = None, options: Options = Options()
) -> Decision[Sharing]:
    """Share each node by deficit round robin with each tenant's weight, without coordination."""
    problem = start_from(problem, previous)
    replicas = _place_alike(problem, seed)
    weight = np.where(find_present(problem, replicas), flat_weights(problem)[:, None], 0.0)
    return _run(problem, replicas, weight, _Discipline(FAIR_QUEUING), options)


def limit_rates(
    problem: SharedStore, *, seed: Seed = 0, previous: Previous = None, options: Options = Options()
) -> Decision[Sharing]:
    """Limit each replica to an equal part of its tenant's contract, whatever others leave.

    The contract is the tenant's weight over all weights, of all nodes.
    """
    problem = start_from(problem, previous)
    replicas = _place_alike(problem, seed)
    count = np.bincount(problem.tenant[replicas.partition], minlength=len(problem.tenants))
    each = contract_kops(problem) / np.maximum(count, 1)
    limit = each[problem.tenant[replicas.partition]]
    weight = sum_by_node(problem, replicas, limit)
    return _run(problem, replicas, weight, _Discipline(LIMITS), options, limit)


def place_fairly(
    problem: SharedStore, *, placement: Replaced = "auto", slack: Slack = MOST_SLACK, seed: Seed = 0,
    previous: Previous = None, options: Options = Options(),
) -> Decision[Sharing]:  # fmt: skip
    """Place partitions by their fair-share demand, then share nodes with uniform local weights."""
    problem = start_from(problem, previous)
    replicas = _place(problem, placement, slack, seed)
    return _run(
        problem,
        replicas,
        spread_evenly(contract_kops(problem), find_present(problem, replicas)),
        _Discipline(FAIR_QUEUING),
        options,
    )


def swap(
    problem: SharedStore, *, placement: Replaced = "auto", slack: Slack = MOST_SLACK, seed: Seed = 0,
    previous: Previous = None, options: Options = Options(),
) -> Decision[Sharing]:  # fmt: skip
    """Place partitions by fair-share demand, then exchange local weights between pairs of tenants."""
    problem = start_from(problem, previous)
    replicas = _place(problem, placement, slack, seed)
    weight = allocate_by_swaps(
        problem,
        replicas,
        demand_at_nodes(problem, replicas, split_evenly(replicas, len(problem.partitions))),
    )
    return _run(problem, replicas, weight, _Discipline(FAIR_QUEUING), options)


def exchange_by_flow(
    problem: SharedStore, *, placement: Replaced = "auto", slack: Slack = MOST_SLACK, seed: Seed = 0,
    previous: Previous = None, options: Options = Options(),
) -> Decision[Sharing]:  # fmt: skip
    """Place partitions by fair-share demand, then exchange local weights among all tenants by flows."""
    problem = start_from(problem, previous)
    replicas = _place(problem, placement, slack, seed)
    demand = demand_at_nodes(problem, replicas, split_evenly(replicas, len(problem.partitions)))
    return _run(
        problem, replicas, allocate_by_flow(problem, replicas, demand), _Discipline(FAIR_QUEUING), options
    )


def select_replicas(
    problem: SharedStore, *, placement: Replaced = "auto", slack: Slack = MOST_SLACK, seed: Seed = 0,
    previous: Previous = None, options: Options = Options(),
) -> Decision[Sharing]:  # fmt: skip
    """Place partitions by fair-share demand, and let routers choose replicas by latency."""
    deadline = Deadline.of(options)
    problem = start_from(problem, previous)
    replicas = _place(problem, placement, slack, seed)
    weight = spread_evenly(contract_kops(problem), find_present(problem, replicas))
    return _run(problem, replicas, weight, _Discipline(FAIR_QUEUING, WINDOWS), options, deadline=deadline)


def combine(
    problem: SharedStore,
    *,
    placement: Replaced = "auto",
    slack: Slack = MOST_SLACK,
    exchange: Annotated[
        Literal["flow", "swap"],
        Field(description="how local weights are exchanged: by maximum flow or by swaps"),
    ] = "flow",
    seed: Seed = 0,
    previous: Previous = None,
    options: Options = Options(),
) -> Decision[Sharing]:
    """Place partitions, exchange local weights and let routers choose replicas: all mechanisms of Pisces."""
    deadline = Deadline.of(options)
    problem = start_from(problem, previous)
    replicas = _place(problem, placement, slack, seed)
    weight = spread_evenly(contract_kops(problem), find_present(problem, replicas))
    split = split_evenly(replicas, len(problem.partitions))
    allocate = allocate_by_flow if exchange == "flow" else allocate_by_swaps
    for _ in range(ALTERNATIONS):
        served = serve(
            problem, replicas, split, weight, queueing=FAIR_QUEUING, replica_choice=WINDOWS, deadline=deadline
        )
        split = served.split
        weight = allocate(problem, replicas, demand_at_nodes(problem, replicas, split))
    return _run(problem, replicas, weight, _Discipline(FAIR_QUEUING, WINDOWS), options, deadline=deadline)


def tell_window_time(problem: SharedStore, parameters: Mapping[str, Any], limit_s: float) -> str:  # noqa: ARG001
    """Return the reason for which a time limit is too short for routers of replicas; "" if it may suffice.

    The plan is measured with the same rounds for two changes of demand.
    """
    nodes, resources = problem.capacity.shape
    replicas = add_up(problem.tenant, problem.wanted_replicas.astype(float), len(problem.tenants))
    pairs = int(np.minimum(replicas, nodes).sum())
    seconds = 3 * WINDOW_ROUNDS * WINDOW_S_PER_PAIR * pairs * resources
    if seconds <= limit_s:
        return ""
    return (
        f"{WINDOW_ROUNDS} rounds in which routers choose replicas, for the plan and two changes of demand, "
        f"take about {seconds:.0f} s over {pairs:,} pairs of tenant and node; the time limit is {limit_s:g} s"
    )


# --- parts ----------------------------------------------------------------------------------


def contract_kops(problem: SharedStore) -> Floats:
    """Return the contract of each tenant, (T,): its fair share if all tenants wanted without end."""
    endless = np.full(len(problem.tenants), ENDLESS_KOPS)
    if problem.has_groups or problem.has_reserved:
        return fair_share_kops(problem, demand_kops=endless)
    total = problem.capacity.sum(axis=0)
    level = pool_levels(problem, demand_kops=endless, capacity=total)
    return np.where(np.isfinite(level), level, 0.0) * entitlement(problem)


def _place_alike(problem: SharedStore, seed: int) -> Replicas:
    """Return the replicas where they are placed, or a uniform placement where none is."""
    if problem.placed is not None and len(problem.placed):
        return complete(problem, fair_load_kops(problem))
    return place_uniformly(problem, seed=seed)


def _place(problem: SharedStore, placement: str, slack: float, seed: int) -> Replicas:
    load = fair_load_kops(problem)
    has_places = problem.placed is not None and len(problem.placed) > 0
    if placement == "keep":
        return complete(problem, load)
    if placement == "moves" or (placement == "auto" and has_places):
        return move_least(problem, load, slack=slack, seed=seed).replicas
    return place_by_load(problem, load, seed=seed)


def find_present(problem: SharedStore, replicas: Replicas) -> Bools:
    """Return whether a tenant has a replica on a node, (T, N)."""
    return sum_by_node(problem, replicas, np.ones(len(replicas.node))) > 0


def demand_at_nodes(problem: SharedStore, replicas: Replicas, split: Floats) -> Floats:
    """Return the part of its fair share that each tenant wants at each node, (T, N), if nodes serve it.

    split    (K,) part of its partition's requests that each replica gets

    Latency 1 / (share - demand) is a cost only where shares exceed demands (3.2), so no node is overloaded.
    """
    rate = fair_share_kops(problem)
    owner = problem.tenant[replicas.partition]
    demand = problem.share_of_tenant[replicas.partition] * rate[owner] * split
    return fit_nodes(problem, sum_by_node(problem, replicas, demand))


def fit_nodes(problem: SharedStore, at_nodes: Floats) -> Floats:
    """Return the demand at nodes, (T, N), lowered in proportion where a node cannot serve it."""
    load = at_nodes.sum(axis=0)
    fits = np.minimum(np.divide(problem.rate_kops, load, out=np.ones_like(load), where=load > 0), 1.0)
    return np.asarray(at_nodes * fits)


def allocate_by_swaps(
    problem: SharedStore,
    replicas: Replicas,
    demand: Floats,
    *,
    share: Floats | None = None,
    most: int = MOST_SWAPS,
) -> Floats:
    """Return local weights after swaps between pairs of tenants, (T, N).

    demand  (T, N) part of its fair share that each tenant wants at each node
    share   (T, N) weights to start from; default: fair shares spread over nodes
    """
    present = find_present(problem, replicas)
    due = fair_share_kops(problem)
    first = spread_evenly(due, present) if share is None else np.where(present, share, 0.0)
    share = balance_shares(first, due, problem.rate_kops)
    step = LEAST_STEP * float(share[present].mean()) if present.any() else 0.0
    return np.maximum(swap_weights(share, demand, present, least_step=step, most=most).share, 0.0)


def allocate_by_flow(problem: SharedStore, replicas: Replicas, demand: Floats) -> Floats:
    """Return local weights with the largest least slack, by maximum flows, (T, N)."""
    due, present = fair_share_kops(problem), find_present(problem, replicas)
    share = flow_weights(due, problem.rate_kops, demand, present).share
    more = np.where(present, np.maximum(share - demand, 0.0), 0.0)  # never less than the demand there
    remaining, requested = np.maximum(problem.rate_kops - demand.sum(axis=0), 0.0), more.sum(axis=0)
    fits = np.minimum(np.divide(remaining, requested, out=np.ones_like(remaining), where=requested > 0), 1.0)
    floor = LEAST_STEP * spread_evenly(due, present)
    return np.where(present, np.maximum(demand + more * fits, floor), 0.0)


def _run(
    problem: SharedStore,
    replicas: Replicas,
    weight: Floats | None,
    discipline: _Discipline,
    options: Options,
    limits: Floats | None = None,
    deadline: Deadline = NEVER,
) -> Decision[Sharing]:
    """Return the decision of the served rates; routers that choose replicas stop at a deadline."""
    local = np.zeros((len(problem.tenants), len(problem.nodes))) if weight is None else weight
    served = serve(
        problem,
        replicas,
        split_evenly(replicas, len(problem.partitions)),
        local,
        queueing=discipline.queueing,
        replica_choice=discipline.replica_choice,
        most_kops=limits,
        deadline=deadline,
    )
    return decide(
        problem,
        replicas,
        served,
        local,
        options=options,
        queueing=discipline.queueing,
        replica_choice=discipline.replica_choice,
        backend="steady state",
    )
