"""Column generation over patterns of hosts, with a bound for all plans; never worse than best fit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import gap_of, infeasible, judged
from planner.search.tolerances import STATED_GAP
from planner_models.consolidation.designs.bundles import keep_one_host, pin_bundles, remove
from planner_models.consolidation.designs.column_generation import (
    generate,
    placed_machines,
    trim,
)
from planner_models.consolidation.designs.decision import (
    ALL,
    WITHOUT_RESTART,
    decide,
    find_lost_domain,
    refuse_shortage,
)
from planner_models.consolidation.designs.grid import common_measure
from planner_models.consolidation.designs.master import Master
from planner_models.consolidation.designs.slots import add_all_slots
from planner_models.consolidation.plan.check import check
from planner_models.consolidation.plan.metrics import measure
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import HostGroup, Packer, decreasing, pack_all
from planner_models.consolidation.problem.problem import Consolidation

CLOSE: Final = 2e-4
"""Gap at which no further plan is looked for."""


@refuse_shortage
def plan(problem: Consolidation, *, options: Options = Options()) -> Decision[ConsolidationPlan]:
    """Find the cheapest hosts for all machines by column generation, with a bound for all plans.

    Where a problem names losses, hosts hold slots in which all machines restart. Ends at `options.gap`, or at
    a time limit with the incumbent and its bound.
    """
    reason = find_lost_domain(problem)
    if reason:
        return Decision(plan=None, proof=infeasible(reason))
    best = _judge(problem, *_with_slots(problem, *_best_fit(problem)))
    bound, searches = np.inf, []
    for pinned in pin_bundles(problem):
        generated = generate(pinned, options)
        bound = min(bound, round_up(problem, generated.bound))
        searches.append(generated)
    for groups in chain.from_iterable(search.plans for search in searches):
        best = min(
            best,
            _judge(problem, *_with_slots(problem, *_complete(problem, groups))),
            key=lambda item: item.key,
        )
        if best.key[0] == 0 and best.price - bound <= CLOSE * best.price:
            break
    proof = judged(
        "min",
        best.price,
        min(bound, best.price),
        gap=gap_of(options, default=STATED_GAP),
        metric="price_per_h",
        backend=searches[0].backend or None,
        is_cut=any(search.is_cut for search in searches),
    )
    return Decision(plan=best.decision.plan, proof=proof, guarantees=best.decision.guarantees)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Judged:
    """A decision, its price, and what it is compared by: violations, price, and throughput."""

    decision: Decision[ConsolidationPlan]
    price: float
    key: tuple[int, float, float]


def _judge(
    problem: Consolidation, groups: list[HostGroup], refused: dict[int, int], has_slots: bool
) -> _Judged:
    """Return the decision of hosts with its price."""
    decision = decide(problem, groups, refused, guarantees=ALL if has_slots else WITHOUT_RESTART)
    assert decision.plan is not None
    metrics = measure(problem, decision.plan, None)
    violations = check(problem, decision.plan).of_limits(WITHOUT_RESTART)
    price = metrics["price_per_h"] or 0.0
    return _Judged(decision=decision, price=price, key=(len(violations), price, -(metrics["score"] or 0.0)))


def _best_fit(problem: Consolidation) -> tuple[list[HostGroup], dict[int, int]]:
    packer = pack_all(problem, Packer(problem), decreasing(problem))
    return packer.groups, packer.refused


def _complete(problem: Consolidation, groups: list[HostGroup]) -> tuple[list[HostGroup], dict[int, int]]:
    """Return the hosts with as many machines as there are: more become slots or leave, others join."""
    for domain, shapes in problem.bundles:
        if domain in ("host", "node"):
            groups = keep_one_host(problem, groups, shapes)
    surplus = placed_machines(problem, groups) - problem.count
    survives = Master(problem).survives
    groups = trim(problem, groups, np.where(survives, 0, np.maximum(surplus, 0)))
    groups = label_slots(problem, groups)
    packer = Packer(problem, groups=groups)
    bundled: set[int] = set()
    for domain, shapes in problem.bundles:
        rows = [int(shape) for shape in shapes if int(shape) not in bundled]
        if any(surplus[row] < 0 for row in rows):
            packer.groups = remove(problem, packer.groups, rows)
            packer.place_together(domain, rows)
        bundled |= set(rows)
    for shape in decreasing(problem):
        if surplus[shape] < 0 and shape not in bundled:
            packer.place(shape, int(-surplus[shape]))
    return packer.groups, packer.refused


def label_slots(problem: Consolidation, groups: list[HostGroup]) -> list[HostGroup]:
    """Return the hosts in which units beyond the number of machines are slots, alike in all zones."""
    placed = placed_machines(problem, groups)
    result = list(groups)
    for shape in np.flatnonzero(placed > problem.count).tolist():
        remaining = int(placed[shape] - problem.count[shape])
        zones: dict[str, int] = {}
        for group in result:
            zone = problem.supplies[group.supply].zone
            zones[zone] = zones.get(zone, 0) + group.members(shape) * group.hosts
        total = sum(zones.values())
        share = {zone: remaining * units // total for zone, units in zones.items()}
        for zone in sorted(share):
            if sum(share.values()) < remaining and share[zone] < zones[zone]:
                share[zone] += 1
        result = _label_shape(problem, result, shape, share)
    return result


def _label_shape(
    problem: Consolidation, groups: list[HostGroup], shape: int, share: dict[str, int]
) -> list[HostGroup]:
    """Return the hosts with some units of a shape in each zone as slots."""
    result: list[HostGroup] = []
    queue = list(groups)
    while queue:
        group = queue.pop(0)
        zone = problem.supplies[group.supply].zone
        copies, remaining = group.members(shape), share.get(zone, 0)
        if copies and remaining and group.hosts:
            hosts = min(group.hosts, remaining // copies) or 1
            times = min(copies, remaining)
            changed = group.split_off(hosts)
            share[zone] -= times * hosts
            for copy in [copy for copy in changed.content if copy[0] == shape]:
                taken = min(times, changed.content[copy])
                times -= taken
                changed.content[copy] -= taken
                if taken:
                    changed.slots[copy] = changed.slots.get(copy, 0) + taken
                if not changed.content[copy]:
                    del changed.content[copy]
            result.append(changed)
            queue.insert(0, group)
        elif group.hosts:
            result.append(group)
    return result


def _with_slots(
    problem: Consolidation, groups: list[HostGroup], refused: dict[int, int]
) -> tuple[list[HostGroup], dict[int, int], bool]:
    """Return the hosts with all slots, the refused machines, and whether all restart after every loss."""
    if problem.survive is None or not len(problem.survive):
        return groups, refused, True
    result = add_all_slots(problem, groups, refused)
    plan_made = decide(problem, result, refused).plan
    assert plan_made is not None
    return result, refused, not len(check(problem, plan_made).of_limits({"restart"}))


def round_up(problem: Consolidation, bound: float) -> float:
    """Return the bound as a multiple of the common measure of all prices: every plan costs one."""
    prices = np.concatenate([problem.price, problem.own_price[problem.count > 0]])
    measure_of_prices = common_measure(prices[prices > 0])
    is_exact = np.abs(prices / measure_of_prices - np.rint(prices / measure_of_prices)) < 1e-9
    if not is_exact.all():
        return bound
    return float(np.ceil(bound / measure_of_prices - 1e-6) * measure_of_prices)
