"""Designs of control planes that know a part: sizes without nodes, or one class of machines first."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.consolidation.designs.bundles import place_remaining
from planner_models.consolidation.designs.column_generation import placed_machines
from planner_models.consolidation.designs.decision import decide, refuse_shortage
from planner_models.consolidation.designs.one_host import HostProgram, count_of
from planner_models.consolidation.designs.patterns import search
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import (
    HostGroup,
    Packer,
    decreasing,
    empty_group,
    has_conflict,
    pack_all,
)
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.schema import WHOLE_HOST
from planner_models.consolidation.problem.shapes import Placing

LARGE: Final = 0.5
"""Share of the largest node from which a machine is large."""
Policy = Annotated[
    Literal["none", "best_effort", "restricted", "single_numa_node"],
    Field(
        description="none: nodes in their order; best_effort: one node where it fits; restricted: no more "
        "nodes than in an empty host; single_numa_node: one node"
    ),
]


def pool_nodes(problem: Consolidation) -> Consolidation:
    """Return the problem as a scheduler observes it that knows sizes, but no nodes."""
    first = problem.nodes.drop_duplicates("host_type")
    index = pd.Index(problem.nodes["host_type"])
    total = problem.nodes.groupby(index, sort=False)[["threads", "memory_gb"]].sum()
    nodes = first.assign(
        threads=total["threads"].reindex(first["host_type"]).to_numpy(float),
        memory_gb=total["memory_gb"].reindex(first["host_type"]).to_numpy(float),
    ).reset_index(drop=True)
    capacities = problem.capacities
    if capacities is not None:
        summed = capacities.groupby(["host_type", "resource"], as_index=False, sort=False)["amount"].sum()
        capacities = summed.assign(node=WHOLE_HOST)[list(capacities.columns)]
    rules = problem.rules
    if rules is not None:
        rules = rules[rules["domain"] != "node"].reset_index(drop=True)
    return replace(problem, nodes=nodes, capacities=capacities, rules=rules)


@refuse_shortage
def plan_per_host(problem: Consolidation, *, options: Options = Options()) -> Decision[ConsolidationPlan]:
    """Choose hosts by size without their nodes, then place the machines of each host exactly.

    Machines that do not fit into the nodes of their host go to other hosts by best fit.

    source  Mukerjee 2018, 1.1 (hierarchical partitioning)
    """
    deadline = Deadline.of(options)
    in_node = np.zeros(len(problem.machines), dtype=bool)
    for domain, shapes in problem.bundles:
        in_node[shapes] |= domain == "node"  # sizes say nothing of one node for all of them
    count = np.where(in_node, 0, problem.count)
    pooled = pool_nodes(replace(problem, machines=problem.machines.assign(count=count.astype(float))))
    by_size = pack_all(pooled, Packer(pooled), decreasing(pooled))
    fixed = replace(problem, machines=problem.machines.assign(vcpus_max=problem.vcpus))
    groups: list[HostGroup] = []
    remaining = problem.count - count
    for shape, number in by_size.refused.items():
        remaining[shape] += number
    for group in by_size.groups:
        filled, refused = _fill_exactly(fixed, group, deadline, options)
        groups.append(filled)
        remaining += refused * group.hosts
    packer = place_remaining(problem, [group for group in groups if group.content], remaining)
    return decide(problem, packer.groups, packer.refused)


def _fill_exactly(
    problem: Consolidation, group: HostGroup, deadline: Deadline, options: Options
) -> tuple[HostGroup, Ints]:
    """Return hosts with as many of a group's machines as fit into their nodes, and the others of each."""
    count = count_of(problem, group)
    filled = empty_group(problem, group.supply, group.hosts)
    trial = Packer(problem, groups=[filled], may_open=False)
    for shape in decreasing(problem):
        if count[shape]:
            trial.place(shape, int(count[shape]) * group.hosts)
    if not trial.refused and len(trial.groups) == 1:
        return trial.groups[0], np.zeros(len(count), dtype=np.int64)
    filled = empty_group(problem, group.supply, group.hosts)
    host_type = problem.supplies[group.supply].host_type
    limited = replace(options, gap=0.01, time_limit_s=min(max(deadline.left_s, 0.1), 2.0))
    program = HostProgram(problem, host_type, count, limited)
    x = program.fewest_refused()
    if x is None:
        return filled, count
    refused = np.zeros(len(count), dtype=np.int64)
    for shape, number in program.fill(filled, x).items():
        refused[shape] = number
    return filled, refused


@refuse_shortage
def plan_big_first(
    problem: Consolidation,
    *,
    large: Annotated[
        float, Field(gt=0, le=1, description="share of the largest node from which a machine is large")
    ] = LARGE,
    options: Options = Options(),
) -> Decision[ConsolidationPlan]:
    """Plan large machines first as if they were alone, then fill their hosts with the small ones by best fit.

    source  Mukerjee 2018, 1.1 (priority ranking)
    """
    capacity = np.max([shape.node.max(axis=0) for shape in problem.host_shapes], axis=0)
    share = (problem.needs[:, :2] / np.maximum(capacity[:2], 1e-300)).max(axis=1)
    is_large = share >= large
    groups: list[HostGroup] = []
    if bool((is_large & (problem.count > 0)).any()) and not problem.rules_of_areas:
        count = np.where(is_large, problem.count, 0).astype(float)
        alone = replace(problem, machines=problem.machines.assign(count=count), survive=None)
        groups = search(alone, options).best.groups
    placed = placed_machines(problem, groups)
    packer = Packer(problem, groups=groups)
    if problem.rules_of_areas:
        packer = pack_all(problem, packer, decreasing(problem))
    else:
        for shape in decreasing(problem):
            packer.place(shape, int(problem.count[shape] - placed[shape]))
    return decide(problem, packer.groups, packer.refused)


class Scheduler(Packer):
    """Chooses hosts by their free sums, as a scheduler that knows no nodes; the host admits or refuses.

    policy  of the host's Topology Manager
    """

    def __init__(self, problem: Consolidation, policy: str, *, may_open: bool = True) -> None:
        """Begin without hosts."""
        super().__init__(problem, rule="spread", may_open=may_open)
        self.policy = policy

    def _select(self, shape: int) -> int | None:
        allowed = self.problem.is_supplied[shape]
        fitting = (
            row
            for row, group in enumerate(self.groups)
            if allowed[group.supply] and self.capacity_of_domains(group, shape) > 0
            and self._fits_by_size(group, shape)
        )  # fmt: skip
        return min(fitting, key=lambda row: (-self.free_share(self.groups[row]), row), default=None)

    def _batch(self, supply: int, shape: int, hosts: int) -> int:
        """Return one host where a full one still has the free sums of a machine, which it then refuses."""
        group = empty_group(self.problem, supply, 1)
        self._fill_host(group, shape, max(int(self.problem.count[shape]), 1))
        return 1 if self._fits_by_size(group, shape) else hosts

    def _fits_by_size(self, group: HostGroup, shape: int) -> bool:
        """Return whether the free sums of a host suffice for a machine."""
        if has_conflict(self.problem, group, shape):
            return False
        needs = self.problem.needs[shape]
        for column, need in enumerate(needs.tolist()):
            free = min(sum(node[column] for node in group.free_node), group.free_whole[column])
            if need > free + 1e-9 * (1 + need):
                return False
        return True

    def find_placing(self, group: HostGroup, shape: int) -> Placing | None:
        """Return the way in which the host admits a machine; None where it refuses it."""
        if has_conflict(self.problem, group, shape):
            return None
        host_type = self.problem.supplies[group.supply].host_type
        ways = self.problem.placings[host_type][shape]
        fewest = min((way.span for way in ways), default=1)
        largest = {"single_numa_node": 1, "restricted": fewest}.get(self.policy, len(group.free_node))
        fitting = [way for way in ways if way.span <= largest and way.fits(group.free_node, group.free_whole)]
        if self.policy == "none" or not fitting:
            return fitting[0] if fitting else None
        span = fitting[0].span
        return min(
            (way for way in fitting if way.span == span),
            key=lambda way: sum(
                group.free_node[node][0] for node, vcpus in enumerate(way.vcpus) if vcpus > 0
            ),
        )


@refuse_shortage
def plan_topology_manager(
    problem: Consolidation,
    *,
    policy: Policy = "single_numa_node",
    options: Options = Options(),  # noqa: ARG001 - tells a strict service
) -> Decision[ConsolidationPlan]:
    """Schedule machines by size, and let the host's Topology Manager admit or refuse each.

    The scheduler knows no nodes: a machine that its host refuses is scheduled to the same host again, and
    stays refused.

    source  Kubernetes, Control Topology Management Policies on a node; kubernetes/kubernetes#84869
    """
    scheduler = pack_all(problem, Scheduler(problem, policy), sorted(decreasing(problem)))
    return decide(problem, scheduler.groups, scheduler.refused, may_grow=False)
