"""Metrics of system `consolidation`: price, hosts, throughput, moves, and restarts after losses."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.metrics import MONEY, Headline, less, more
from planner_models.consolidation.plan.losses import Outcome, replay_losses, stopped_cost
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.previous import count_moved
from planner_models.consolidation.plan.reading import Reading, read_plan
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.today import count_machines

SOURCE: Final = "Deehr et al. 2014, 1.1"

METRICS: Final = (
    less(
        "price_per_h",
        f"{MONEY}/h",
        "price of the hosts in an hour; a machine that is refused, or does not restart after the worst loss, "
        "counts hosts of its own, one in each of one more domain than are lost, times its weight",
        title="price",
    ),
    less("hosts", "hosts", "hosts that are used"),
    more(
        "score",
        "vCPUs",
        "lowest throughput of a machine with vCPUs over its weight, as vCPUs that it is equal to",
        SOURCE,
        title="lowest throughput",
    ),
    more("throughput", "vCPUs", "sum of the throughputs of all machines, as vCPUs that it is equal to"),
    less("refused", "machines", "machines without a host"),
    more("restart_share", "", "share of the lost machines that restart, in the worst loss"),
    less("not_restarted", "machines", "machines that do not restart, in the worst loss"),
    less("split_machines", "machines", "machines in several nodes"),
    less("moves", "moves", "machines that move, from one present host to another or from the plan before"),
    less("moved_gb", "GB", "memory that moves send"),
    less("move_s", "s", "time until the last move ends"),
    less("stranded_share", "", "share of the free threads that are on hosts where no listed machine fits"),
    less("idle_threads", "threads", "threads of used hosts without a vCPU, slot or helper"),
)
HEADLINE: Final = Headline(
    metric="price_per_h",
    verb="costs {}",
    then="score",
    then_words="at a lowest throughput of",
    losses={"refused": "refuses {}", "not_restarted": "does not restart {} after the worst loss"},
    worst=("refused", "not_restarted"),
    required={"restart": "not_restarted"},
    table=(
        "price_per_h",
        "hosts",
        "score",
        "throughput",
        "refused",
        "restart_share",
        "split_machines",
        "moved_gb",
    ),
)
LIMITS: Final = {
    "nodes": "overloaded nodes",
    "hosts": "overloaded hosts",
    "helpers": "hosts with too few threads for the hypervisor",
    "machines": "shapes with another number of machines",
    "shapes": "machines of another shape",
    "rules": "hosts and zones against a rule",
    "supply": "hosts beyond the supply",
    "prices": "wrong purchases",
    "restart": "losses without a restart of all machines",
    "moves": "hosts with wrong moves",
}


def measure(
    problem: Consolidation,
    plan: ConsolidationPlan,
    previous: ConsolidationPlan | None,
) -> dict[str, float | None]:
    """Return a value for every metric."""
    reading = read_plan(problem, plan)
    outcomes = replay_losses(reading)
    copies = reading.machines
    machines = copies.times[copies.first] * reading.hosts[copies.host[copies.first]]
    has_losses = problem.survive is not None and len(problem.survive) > 0
    moved = count_moves(reading, plan, previous)
    return {
        "price_per_h": price_per_h(reading, outcomes),
        "hosts": float(reading.hosts.sum()),
        "score": lowest_throughput(reading),
        "throughput": float(reading.throughput @ machines),
        "refused": float(reading.refused.sum()),
        "restart_share": min((outcome.share for outcome in outcomes), default=1.0) if has_losses else None,
        "not_restarted": (
            max((float(outcome.stopped.sum()) for outcome in outcomes), default=0.0) if has_losses else 0.0
        ),
        "split_machines": float(machines @ (copies.span > 1)),
        "moves": moved[0],
        "moved_gb": moved[1],
        "move_s": moved[2],
        "stranded_share": stranded_share(reading),
        "idle_threads": float(reading.hosts @ free_threads(reading)),
    }


def lowest_throughput(reading: Reading) -> float | None:
    """Return the lowest throughput of a machine with vCPUs over its weight; None where there is none."""
    weighted = reading.weighted[reading.machines.total_vcpus > 0]
    return float(weighted.min()) if len(weighted) else None


def count_moves(
    reading: Reading, plan: ConsolidationPlan, previous: ConsolidationPlan | None
) -> tuple[float | None, float | None, float | None]:
    """Return the moves from today, their memory, GB, and the time until the last one ends, s.

    Without a list of moves, a machine moves for each that a host has today and not in the plan; each sends
    its memory once, and the time is unknown. Without machines today, they are the moves from the plan before,
    such as that of the last hour; None without one.
    """
    problem = reading.problem
    if problem.now is None or not len(problem.now):
        moved = None if previous is None else count_moved(problem, previous, reading)
        if moved is None:
            return None, None, None
        return float(moved.sum()), float(moved @ problem.memory_gb), None
    if plan.moves is not None:
        end = plan.moves["start_s"] + plan.moves["seconds"]
        return float(len(plan.moves)), float(plan.moves["gb"].sum()), float(end.max()) if len(end) else 0.0
    hosts, machines = count_machines(problem)
    after = np.zeros(machines.shape)
    position = reading.names.get_indexer(pd.Index(hosts, dtype=object))
    after[position >= 0] = reading.per_host(reading.machines)[position[position >= 0]]
    leaving = np.maximum(machines - after, 0.0)
    return float(leaving.sum()), float((leaving @ problem.memory_gb).sum()), None


def price_per_h(reading: Reading, outcomes: list[Outcome]) -> float:
    """Return the price of the hosts, and of machines that are refused or do not restart."""
    price = float(reading.hosts @ reading.problem.price[reading.host_type])
    return price + float(reading.refused @ reading.problem.own_price) + stopped_cost(reading, outcomes)


def free_threads(reading: Reading) -> Floats:
    """Return the threads of each host without a vCPU, slot or helper, (F,)."""
    problem = reading.problem
    total = np.array([shape.node[:, 0].sum() for shape in problem.host_shapes])[reading.host_type]
    used = reading.node_use[:, :, 0].sum(axis=1)
    return np.asarray(np.maximum(total - problem.helpers[reading.host_type] - used, 0.0))


def stranded_share(reading: Reading) -> float | None:
    """Return the share of free threads on hosts where no listed machine fits; None without free threads."""
    problem = reading.problem
    free = free_threads(reading) * reading.hosts
    total = float(free.sum())
    if total <= 1e-9:
        return None
    fits = np.zeros(len(reading.hosts), dtype=bool)
    for host_type, shape in enumerate(problem.host_shapes):
        rows = np.flatnonzero(reading.host_type == host_type)
        available = shape.node[None] - reading.node_use[rows][:, : len(shape.node)]
        of_host = shape.whole[None] - reading.host_use[rows]
        for row, ways in enumerate(problem.placings[host_type]):
            if problem.count[row] <= 0:
                continue
            for way in ways:
                needed = np.array(way.node)
                fits_here = ((available + 1e-9 >= needed) | (needed == 0)).all(axis=(1, 2))
                fits[rows] |= fits_here & (of_host + 1e-9 >= np.array(way.whole)).all(axis=1)
    return float(free[~fits].sum()) / total
