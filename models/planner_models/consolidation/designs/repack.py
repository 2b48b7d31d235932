"""Hosts to empty from the present placement: the most that is saved within a budget of moved memory.

Hosts are emptied one by one, those with least memory for their price first, where all their machines fit on
the others by best fit. A bound is the largest saving of hosts whose memory is within the budget, and of hosts
whose machines the others can hold in sum.
"""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible, gap_of, judged
from planner.search.tolerances import STATED_GAP
from planner_models.consolidation.designs.decision import WITHOUT_RESTART, decide, refuse_shortage
from planner_models.consolidation.designs.one_host import count_of
from planner_models.consolidation.designs.slots import add_all_slots
from planner_models.consolidation.designs.warm import continue_plan, keep_machines
from planner_models.consolidation.designs.waves import Move, can_move, schedule
from planner_models.consolidation.plan.metrics import measure
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import (
    HostGroup,
    Packer,
    copy_of,
    decreasing,
    has_conflict,
    pack_all,
)
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import Placing, make_placing
from planner_models.consolidation.problem.today import Today, read_today

DEFAULT_BUDGET: Final = 0.02
MAX_FOLLOWED: Final = 5_000
"""Hosts of a plan before up to which some are emptied."""
Budget = Annotated[
    float, Field(ge=0, le=1, description="share of all memory that may move, beside what must")
]


class Hosts:
    """Present hosts as arrays of free amounts, (hosts, nodes, D) and (hosts, D)."""

    def __init__(self, problem: Consolidation, groups: list[HostGroup]) -> None:
        """Take the free amounts of groups of one host each."""
        self.problem, self.groups = problem, groups
        nodes = max((len(group.free_node) for group in groups), default=1)
        self.free = np.full((len(groups), nodes, problem.dimensions), -1.0)
        self.free_whole = np.zeros((len(groups), problem.dimensions))
        self.host_type = np.array(
            [problem.supplies[group.supply].host_type for group in groups], dtype=np.int64
        )
        self.supply = np.array([group.supply for group in groups], dtype=np.int64)
        self.breaks_rules = False
        self.open = np.array([bool(group.content) for group in groups], dtype=bool)
        self._domain = [
            np.array([getattr(problem.supplies[group.supply], domain) for group in groups], dtype=object)
            for domain, _ in problem.area_members
        ]
        for row in range(len(groups)):
            self.refresh(row)

    @property
    def guarantees(self) -> frozenset[str]:
        """Constraints that plans of these hosts keep: not the rules that machines break today and may not."""
        return WITHOUT_RESTART - {"rules"} if self.breaks_rules else WITHOUT_RESTART

    def refresh(self, row: int) -> None:
        """Read the free amounts of a host again."""
        group = self.groups[row]
        self.free[row, : len(group.free_node)] = group.free_node
        self.free_whole[row] = group.free_whole

    def find(self, shape: int, allowed: Bools) -> tuple[int, int] | None:
        """Return the host with the least free threads that holds a machine, and the way; None for none."""
        best: tuple[float, int, int] | None = None
        usable = allowed & self.problem.is_supplied[shape][self.supply] & self._below_limits(shape)
        if self.problem.has_host_conflicts:
            usable &= np.array([not has_conflict(self.problem, group, shape) for group in self.groups])
        for host_type in np.unique(self.host_type[usable]).tolist():
            rows = np.flatnonzero(usable & (self.host_type == host_type))
            ways = enumerate(self.problem.placings[host_type][shape])
            for _, same_span in groupby(ways, key=lambda item: item[1].span):
                choices = [self._least_free(rows, index, way) for index, way in same_span]
                fitting = [choice for choice in choices if choice is not None]
                if fitting:
                    best = min(fitting) if best is None else min(best, *fitting)
                    break
        return None if best is None else best[1:]

    def _least_free(self, rows: Ints, index: int, way: Placing) -> tuple[float, int, int] | None:
        """Return free threads, host and way of the fullest host that holds a machine; None for none."""
        needed = np.array(way.node)
        free = self.free[rows][:, : len(needed)]
        fits = ((free + 1e-9 >= needed) | (needed == 0)).all(axis=(1, 2))
        fits &= (self.free_whole[rows] + 1e-9 >= np.array(way.whole)).all(axis=1)
        if not fits.any():
            return None
        threads = self.free[rows[fits], :, 0].clip(min=0.0).sum(axis=1)
        return float(threads.min()), int(rows[fits][np.argmin(threads)]), index

    def _below_limits(self, shape: int) -> Bools:
        """Return whether rules of zones and racks allow one more machine of a shape on each host."""
        allowed = np.ones(len(self.groups), dtype=bool)
        limits = self.problem.domain_limits
        for row, limit in enumerate(limits):
            if limit.machines[shape]:
                allowed &= self._members(row) < limit.most
        for row, conflict in enumerate(self.problem.area_conflicts):
            first = len(limits) + 2 * row
            if conflict.machines[shape]:
                allowed &= self._members(first + 1) == 0
            if conflict.others[shape]:
                allowed &= self._members(first) == 0
        return allowed

    def _members(self, row: int) -> Floats:
        """Return the members of a group of `area_members` in the zone or rack of each host."""
        machines = self.problem.area_members[row][1]
        members = [
            sum(times for (shape, _, _), times in group.content.items() if machines[shape])
            for group in self.groups
        ]
        total = pd.Series(members, dtype=float).groupby(self._domain[row]).transform("sum")
        return np.asarray(total.to_numpy(float))

    def put(self, row: int, shape: int, way_index: int) -> None:
        """Place a machine on a host."""
        way = self.problem.placings[int(self.host_type[row])][shape][way_index]
        self.groups[row].add(copy_of(shape, way), way)
        self.refresh(row)


@refuse_shortage
def plan(
    problem: Consolidation,
    *,
    budget: Budget = DEFAULT_BUDGET,
    options: Options = Options(),
    previous: Decision[ConsolidationPlan] | None = None,
) -> Decision[ConsolidationPlan]:
    """Empty the most expensive hosts from the present placement, with moved memory within a budget.

    Machines on hosts that are drained or too full, and those without a host, get one first; this memory is
    beside the budget. Machines that rules keep together stay where they are. The plan lists the moves in
    waves. Without a present placement, it begins with the plan before, such as that of the last hour. Without
    one, or where machines that are together have no host, it is best fit.
    """
    if not has_today(problem) and previous is not None and previous.plan is not None:
        return _follow(problem, previous.plan, budget, options)
    if not has_today(problem):
        packer = pack_all(problem, Packer(problem), decreasing(problem))
        return decide(problem, packer.groups, packer.refused)
    deadline = Deadline.of(options)
    today, hosts, refused = begin(problem)
    machines = machines_on(problem, hosts)
    stays = _machines_that_stay(problem, today, hosts)
    in_use = machines.sum(axis=1) > 0
    limit = budget * float(problem.memory_gb @ problem.count)
    movable = can_leave(problem, today)
    saving = bound_saving(problem, hosts, stays, in_use, movable, limit)
    bound = float(problem.price[hosts.host_type] @ in_use) - saving
    rows = _candidates(problem, hosts, stays, movable, in_use)
    empty_hosts(problem, hosts, rows, limit, deadline)
    groups = _with_slots(problem, hosts, refused)
    moves = list_moves(problem, today, groups)
    decision = decide(
        problem,
        groups,
        refused,
        moves=schedule(problem, moves, today.hosts),
        guarantees=hosts.guarantees,
    )
    assert decision.plan is not None
    price = measure(problem, decision.plan, None)["price_per_h"] or 0.0
    if refused or problem.survive is not None:
        return Decision(plan=decision.plan, proof=feasible(price), guarantees=decision.guarantees)
    proof = judged(
        "min",
        price,
        min(bound, price),
        gap=gap_of(options, default=STATED_GAP),
        metric="price_per_h",
        bound_scope=f"moves of at most {budget:.3g} of the memory",
        is_cut=deadline.is_over,
    )
    return Decision(plan=decision.plan, proof=proof, guarantees=decision.guarantees)


def _follow(
    problem: Consolidation, previous: ConsolidationPlan, budget: float, options: Options
) -> Decision[ConsolidationPlan]:
    """Return the hosts of a plan before after machines joined and left, and hosts were emptied."""
    packer = continue_plan(problem, keep_machines(problem, previous))
    groups = packer.groups
    if not problem.bundles and sum(group.hosts for group in groups) <= MAX_FOLLOWED:
        single = [group.split_off(1) for group in groups for _ in range(group.hosts)]
        hosts = Hosts(problem, single)
        machines = machines_on(problem, hosts)
        every = np.ones(len(problem.machines), dtype=bool)
        rows = _candidates(problem, hosts, machines, every, machines.sum(axis=1) > 0)
        limit = budget * float(problem.memory_gb @ problem.count)
        empty_hosts(problem, hosts, rows, limit, Deadline.of(options))
        groups = [group for group in hosts.groups if group.content]
    if problem.survive is not None and len(problem.survive):
        groups = add_all_slots(problem, groups, packer.refused)
    return decide(problem, groups, packer.refused)


def has_today(problem: Consolidation) -> bool:
    """Return whether a present placement is known, with all machines that are together."""
    if not problem.has_present or problem.now is None or not len(problem.now):
        return False
    bundled = _together(problem)
    return not bundled.any() or not read_today(problem).homeless[bundled].any()


def _together(problem: Consolidation) -> Bools:
    """Return whether each shape is together with others, (M,)."""
    bundled = np.zeros(len(problem.machines), dtype=bool)
    for _, shapes in problem.bundles:
        bundled[shapes] = True
    return bundled


def can_leave(problem: Consolidation, today: Today) -> Bools:
    """Return whether a machine of each shape may leave its host, (M,)."""
    return np.asarray(can_move(problem, today.hosts) & ~_together(problem))


def _with_slots(problem: Consolidation, hosts: Hosts, refused: dict[int, int]) -> list[HostGroup]:
    """Return the hosts in use, with slots for the losses that a problem names."""
    groups = [group for group in hosts.groups if group.content]
    if problem.survive is None or not len(problem.survive):
        return groups
    return add_all_slots(problem, groups, refused)


def begin(problem: Consolidation) -> tuple[Today, Hosts, dict[int, int]]:
    """Return today's placement, its hosts with machines that had none, and those that are refused.

    A machine that may not move, and cannot stay, has no host in the plan. One that breaks a rule of zones or
    conflicts today stays where no other host has a place for it.
    """
    today = read_today(problem)
    hosts = Hosts(problem, today.groups)
    held = np.where(problem.at_once <= 0, today.displaced, 0)
    refused = _settle(problem, hosts, today.homeless - held)
    for shape in np.flatnonzero(held).tolist():
        refused[shape] = refused.get(shape, 0) + int(held[shape])
    for shape in sorted(refused):
        refused[shape] -= _leave(
            problem, today, hosts, shape, min(refused[shape], int(today.displaced[shape]))
        )
    return today, hosts, {shape: number for shape, number in refused.items() if number}


def _leave(problem: Consolidation, today: Today, hosts: Hosts, shape: int, number: int) -> int:
    """Leave machines that break rules on their hosts of today, which have space; return their number."""
    position = {group.name: row for row, group in enumerate(hosts.groups)}
    left = 0
    for row, name in enumerate(today.hosts):
        host = position.get(name)
        while host is not None and left < number:
            group = hosts.groups[host]
            if group.members(shape) >= today.machines[row, shape]:
                break
            ways = enumerate(problem.placings[int(hosts.host_type[host])][shape])
            way = next((way for way, item in ways if item.fits(group.free_node, group.free_whole)), None)
            if way is None:
                break
            hosts.put(host, shape, way)
            hosts.open[host] = hosts.breaks_rules = True
            left += 1
    return left


def machines_on(problem: Consolidation, hosts: Hosts) -> Ints:
    """Return the machines of each shape on each host, (hosts, M)."""
    counts = [count_of(problem, group) for group in hosts.groups]
    return np.array(counts, dtype=np.int64).reshape(len(hosts.groups), len(problem.machines))


def _machines_that_stay(problem: Consolidation, today: Today, hosts: Hosts) -> Ints:
    """Return the machines of today on each host that need not leave it, (hosts, M)."""
    position = {name: row for row, name in enumerate(today.hosts)}
    rows = [position[group.name] for group in hosts.groups]
    present = today.machines[rows] if rows else np.zeros((0, len(problem.machines)), dtype=np.int64)
    return np.minimum(present, machines_on(problem, hosts))


def _settle(problem: Consolidation, hosts: Hosts, homeless: Ints) -> dict[int, int]:
    """Place machines without a host, on hosts in use first; return those that are refused."""
    refused: dict[int, int] = {}
    for shape in decreasing(problem):
        for _ in range(int(homeless[shape])):
            choice = hosts.find(shape, hosts.open) or hosts.find(shape, ~hosts.open)
            if choice is None:
                refused[shape] = refused.get(shape, 0) + 1
                continue
            hosts.put(choice[0], shape, choice[1])
            hosts.open[choice[0]] = True
    return refused


def _memory_of(problem: Consolidation, machines: Ints) -> Floats:
    return np.asarray(machines @ problem.memory_gb)


def _candidates(problem: Consolidation, hosts: Hosts, stays: Ints, movable: Bools, in_use: Bools) -> Ints:
    """Return the hosts that can be emptied, those with least memory of today for their price first."""
    memory = _memory_of(problem, stays)
    price = problem.price[hosts.host_type]
    fixed = (stays[:, ~movable] > 0).any(axis=1)
    rows = np.flatnonzero(in_use & ~fixed & (price > 0))
    return rows[np.argsort(memory[rows] / price[rows], kind="stable")]


def empty_hosts(
    problem: Consolidation, hosts: Hosts, rows: Ints, limit_gb: float, deadline: Deadline
) -> None:
    """Empty hosts in an order, one by one, while the memory of their machines is within a limit."""
    spent = 0.0
    machines = machines_on(problem, hosts)
    memory = _memory_of(problem, machines)
    received = np.zeros(len(hosts.groups), dtype=bool)
    for row in rows.tolist():
        if deadline.is_over:
            return
        if received[row] or spent + memory[row] > limit_gb * (1 + 1e-9):
            continue
        taken = _move_all(problem, hosts, row, machines[row])
        if taken:
            spent += float(memory[row])
            received[list(taken)] = True


def _move_all(problem: Consolidation, hosts: Hosts, row: int, machines: Ints) -> set[int]:
    """Move all machines of a host to others in use; return these, or nothing where some do not fit."""
    allowed = hosts.open.copy()
    allowed[row] = False
    group = hosts.groups[row]
    content = dict(group.content)
    host_type = problem.supplies[group.supply].host_type
    _empty(problem, hosts, row)
    steps: list[tuple[int, int, int]] = []
    order = sorted(np.flatnonzero(machines).tolist(), key=lambda shape: -float(problem.vcpus[shape]))
    for shape in order:
        for _ in range(int(machines[shape])):
            choice = hosts.find(shape, allowed)
            if choice is None:
                for target, its_shape, way in reversed(steps):
                    _take_back(problem, hosts, target, its_shape, way)
                for copy, times in content.items():
                    group.add(copy, make_placing(problem, host_type, *copy), times)
                hosts.refresh(row)
                return set()
            hosts.put(choice[0], shape, choice[1])
            steps.append((choice[0], shape, choice[1]))
    hosts.open[row] = False
    return {target for target, _, _ in steps}


def _empty(problem: Consolidation, hosts: Hosts, row: int) -> None:
    """Take all machines off a host."""
    group = hosts.groups[row]
    host_type = problem.supplies[group.supply].host_type
    for copy, times in group.content.items():
        make_placing(problem, host_type, *copy).take(group.free_node, group.free_whole, -times)
    group.content = {}
    hosts.refresh(row)


def _take_back(problem: Consolidation, hosts: Hosts, row: int, shape: int, way_index: int) -> None:
    way = problem.placings[int(hosts.host_type[row])][shape][way_index]
    group, copy = hosts.groups[row], copy_of(shape, way)
    group.content[copy] -= 1
    if not group.content[copy]:
        del group.content[copy]
    way.take(group.free_node, group.free_whole, -1)
    hosts.refresh(row)


def bound_saving(
    problem: Consolidation, hosts: Hosts, stays: Ints, in_use: Bools, movable: Bools, limit_gb: float
) -> float:
    """Return the price in an hour that no set of emptied hosts saves more than.

    The memory of today on emptied hosts is within the limit, and in each dimension the hosts in use hold all
    machines, those that are empty today too. Both are knapsacks without whole numbers.
    """
    rows = _candidates(problem, hosts, stays, movable, in_use)
    price = problem.price[hosts.host_type]
    best = _fractional(price[rows], _memory_of(problem, stays)[rows], limit_gb)
    capacity = np.array([np.minimum(shape.node.sum(axis=0), shape.whole) for shape in problem.host_shapes])[
        hosts.host_type
    ]
    needed = machines_on(problem, hosts).sum(axis=0) @ problem.needs
    is_fixed = in_use.copy()
    is_fixed[rows] = False
    for column in range(2 + len(problem.resources)):
        if np.isfinite(capacity[:, column]).all():
            missing = float(needed[column] - capacity[is_fixed, column].sum())
            cover = _cheapest_cover(price[~is_fixed], capacity[~is_fixed, column], missing)
            best = min(best, float(price[in_use].sum() - price[is_fixed].sum()) - cover)
    return max(best, 0.0)


def _fractional(value: Floats, weight: Floats, limit: float) -> float:
    """Return the value of a knapsack without whole numbers."""
    order = np.argsort(weight / np.maximum(value, 1e-300), kind="stable")
    total = np.cumsum(weight[order])
    inside = total <= limit
    gain = float(value[order][inside].sum())
    following = int(inside.sum())
    if following < len(order):
        before = float(total[following - 1]) if following else 0.0
        row = order[following]
        gain += max(limit - before, 0.0) / float(weight[row]) * float(value[row])
    return gain


def _cheapest_cover(price: Floats, capacity: Floats, needed: float) -> float:
    """Return the least price of hosts, parts of which count, with some capacity in sum."""
    order = np.argsort(price / np.maximum(capacity, 1e-300), kind="stable")
    total, cost = 0.0, 0.0
    for row in order.tolist():
        if total >= needed:
            break
        share = min(1.0, (needed - total) / capacity[row]) if capacity[row] > 0 else 0.0
        total, cost = total + float(capacity[row]) * share, cost + float(price[row]) * share
    return cost


def list_moves(problem: Consolidation, today: Today, groups: list[HostGroup]) -> list[Move]:
    """Return the moves from today's hosts to those of a plan; machines without a host just start."""
    position = {name: row for row, name in enumerate(today.hosts)}
    after = np.zeros(today.machines.shape, dtype=np.int64)
    for group in groups:
        after[position[group.name]] += count_of(problem, group)
    moves = []
    for shape in range(len(problem.machines)):
        difference = after[:, shape] - today.machines[:, shape]
        targets = [row for row in np.flatnonzero(difference > 0) for _ in range(int(difference[row]))]
        sources = [row for row in np.flatnonzero(difference < 0) for _ in range(-int(difference[row]))]
        moves += [
            Move(shape=shape, source=today.hosts[source], target=today.hosts[target])
            for source, target in zip(sources, targets, strict=False)
        ]
    return moves


def trade_off(problem: Consolidation, budgets: list[float], options: Options = Options()) -> pd.DataFrame:
    """Return price and moved memory for several budgets, as shares of all memory."""
    rows = []
    for budget in budgets:
        decision = plan(problem, budget=budget, options=options)
        assert decision.plan is not None
        metrics = measure(problem, decision.plan, None)
        rows.append((budget, metrics["moved_gb"], metrics["price_per_h"], decision.proof.bound))
    return pd.DataFrame(rows, columns=["budget", "moved_gb", "price_per_h", "bound"])
