"""Designs for groups that do not fit: their switches flood them, or forward them by their processors.

Each switch decides by itself, as no other switch depends on it: the extra traffic of flooding, and the
traffic of processors, are sums over switches and the groups that have no entry there. So the entries of a
full table are best given to the groups of the largest values, switch by switch, which is exact.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.formatting import number
from planner.options import Options
from planner.search.judged import feasible, infeasible, judged
from planner_models.multicast.designs.partitioned import METRIC
from planner_models.multicast.plan.overflow import (
    FLOOD,
    SLOW_PATH,
    Overflow,
    flooded_mbps,
    passing_shares,
    select_entries,
)
from planner_models.multicast.plan.plan import Channels, build_plan, round_robin_partitions
from planner_models.multicast.plan.switch_groups import StoredPairs, stored_pairs
from planner_models.multicast.problem.problem import Multicast

WITH_FLOODING: Final = "an entry or flooding of each group at each of its switches"
WITH_PROCESSORS: Final = "an entry or the processor for each group at each of its switches"
SHOWN_REASONS: Final = 5

Choose = Annotated[
    Literal["arrival", "value"],
    Field(
        description="groups with an entry in a full table: arrival: the first; value: those of which the "
        "switch would flood, or its processor forward, the most traffic"
    ),
]


def flood_without_entry(
    problem: Multicast,
    *,
    choose: Choose = "arrival",
    options: Options = Options(),  # noqa: ARG001
) -> Decision[Channels]:
    """Store groups at all switches that may get them; full ones flood the others to hosts of their tenant.

    The bound is the host traffic of the best entries in each table, which `value` chooses.
    """
    copies, partition, stored = _store_everywhere(problem)
    extra = flooded_mbps(problem, partition, np.full(len(partition), copies), stored.switch, stored.group)
    by_value = select_entries(problem, stored, extra)
    selected = by_value if choose == "value" else select_entries(problem, stored, np.zeros(len(extra)))
    served = float(problem.rate_mbps @ (1 + problem.member_counts))
    objective, bound = (served + float(extra[~entries].sum()) for entries in (selected, by_value))
    proof = judged("min", objective, min(bound, objective), metric=METRIC, bound_scope=WITH_FLOODING)
    return Decision(plan=_plan_without(problem, copies, stored, selected, FLOOD), proof=proof)


def forward_by_processor(
    problem: Multicast, *, choose: Choose = "arrival", options: Options = Options()
) -> Decision[Channels]:
    """Store groups at all switches that may get them; the processor of a full switch forwards the others.

    With service `all`, entries are chosen by value, which is the least traffic of each processor; where that
    is more than it forwards there is no plan.
    """
    copies, partition, stored = _store_everywhere(problem)
    served_by_all = options.service == "all"
    value = np.zeros(len(stored.switch))
    if choose == "value" or served_by_all:
        held = np.full(len(partition), copies)
        share = passing_shares(problem, partition, held, stored.switch, stored.group)
        value = problem.rate_mbps[stored.group] * share
    selected = select_entries(problem, stored, value)
    plan = _plan_without(problem, copies, stored, selected, SLOW_PATH)
    pairs = plan.overflow_pairs(problem)
    if served_by_all and pairs is not None and (pairs.dropped > 0).any():
        reasons = _describe_overload(problem, pairs)
        return Decision(plan=None, proof=infeasible(*reasons, metric=METRIC, bound_scope=WITH_PROCESSORS))
    served = float(problem.rate_mbps @ (1 + problem.member_counts))
    return Decision(plan=plan, proof=feasible(served, metric=METRIC))


def _store_everywhere(problem: Multicast) -> tuple[int, Ints, StoredPairs]:
    """Return copies and partition of all groups, without partitioning, and the pairs that need an entry."""
    copies = problem.whole_copies
    partition = round_robin_partitions(problem, copies)
    return copies, partition, stored_pairs(problem, partition, np.full(len(partition), copies))


def _plan_without(
    problem: Multicast, copies: int, stored: StoredPairs, selected: Bools, handling: str
) -> Channels:
    """Return the plan of all groups in which the pairs that are not selected have no entry."""
    switch, group = stored.switch[~selected], stored.group[~selected]
    order = np.lexsort((group, switch))
    overflow = pd.DataFrame(
        {
            "switch": pd.Categorical.from_codes(switch[order], problem.wiring.switches),
            "group": pd.Categorical.from_codes(group[order], problem.group_names),
            "handling": handling,
        }
    )
    everyone = np.ones(len(problem.groups), dtype=bool)
    return build_plan(problem, everyone, copies, overflow=overflow)


def _describe_overload(problem: Multicast, pairs: Overflow) -> list[str]:
    """Return a line for each of the processors that drop most."""
    load = pairs.processor_mbps
    over = [row for row in np.argsort(-load, kind="stable").tolist() if pairs.dropped[row] > 0]
    return [
        f"processor: {problem.wiring.switches[row]} has to forward {number(load[row])} of "
        f"{number(problem.processor_mbps)} Mbit/s at least"
        for row in over[:SHOWN_REASONS]
    ]
