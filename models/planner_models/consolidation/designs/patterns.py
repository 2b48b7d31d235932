"""Column generation over patterns of hosts, with a bound for all plans; never worse than best fit."""

from __future__ import annotations

import numpy as np

from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import gap_of, infeasible, judged
from planner.search.tolerances import STATED_GAP
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
from planner_models.consolidation.designs.slots import add_all_slots
from planner_models.consolidation.plan.check import check
from planner_models.consolidation.plan.metrics import measure
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import HostGroup, Packer, decreasing, pack_all
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of


@refuse_shortage
def plan(problem: Consolidation, *, options: Options = Options()) -> Decision[ConsolidationPlan]:
    """Find the cheapest hosts for all machines by column generation, with a bound for all plans.

    Where a problem names losses, hosts hold slots in which all machines restart. Ends at `options.gap`, or at
    a time limit with the incumbent and its bound.
    """
    reason = find_lost_domain(problem)
    if reason:
        return Decision(plan=None, proof=infeasible(reason))
    generated, _, _ = generate(problem, options)
    bound = round_up(problem, raise_bound(problem, generated.bound))
    candidates = [
        _with_slots(problem, *_complete(problem, generated.groups)),
        _with_slots(problem, *_best_fit(problem)),
    ]
    decisions = [
        decide(problem, groups, refused, guarantees=ALL if has_slots else WITHOUT_RESTART)
        for groups, refused, has_slots in candidates
    ]
    keys = []
    for decision in decisions:
        assert decision.plan is not None
        metrics = measure(problem, decision.plan, None)
        violations = check(problem, decision.plan).of_limits(WITHOUT_RESTART)
        keys.append((len(violations), metrics["price_per_h"] or 0.0, -(metrics["score"] or 0.0)))
    best = min(range(len(keys)), key=lambda row: keys[row])
    decision = decisions[best]
    proof = judged(
        "min",
        keys[best][1],
        min(bound, keys[best][1]),
        gap=gap_of(options, default=STATED_GAP),
        metric="price_per_h",
        backend=generated.backend or None,
        is_cut=generated.is_cut,
    )
    return Decision(plan=decision.plan, proof=proof, guarantees=decision.guarantees)


def _best_fit(problem: Consolidation) -> tuple[list[HostGroup], dict[int, int]]:
    packer = pack_all(problem, Packer(problem), decreasing(problem))
    return packer.groups, packer.refused


def _complete(problem: Consolidation, groups: list[HostGroup]) -> tuple[list[HostGroup], dict[int, int]]:
    """Return the hosts with as many machines as there are: more become slots or leave, others join."""
    surplus = placed_machines(problem, groups) - problem.count
    if _survives_zones(problem):
        groups = label_slots(problem, groups)
        surplus = np.minimum(surplus, 0)
    else:
        groups = trim(problem, groups, np.maximum(surplus, 0))
    packer = Packer(problem, groups=groups)
    bundled = {int(shape) for domain, shapes in problem.bundles for shape in shapes}
    for shape in decreasing(problem):
        if surplus[shape] < 0 and shape not in bundled:
            packer.place(shape, int(-surplus[shape]))
    if bundled:
        return _best_fit(problem)
    return packer.groups, packer.refused


def _survives_zones(problem: Consolidation) -> bool:
    return problem.survive is not None and bool((problem.survive["domain"] == "zone").any())


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


def raise_bound(problem: Consolidation, bound: float) -> float:
    """Return the bound on the price with losses of hosts: those that survive are enough for all machines.

    The hosts outside of the lost domains cost at least the bound without losses, whichever domains are lost.
    Holds where all machines must restart. Column generation has the rows of zones already.
    """
    if problem.survive is None or not problem.count.sum():
        return bound
    price = problem.price[problem.most > 0]
    smallest = float(price.min(initial=np.inf))
    result = bound
    for row in rows_of(problem.survive):
        if str(getattr(row, "group", "") or "") or row.domain != "host" or bound <= 0:
            continue
        spare = int(row.losses) * (smallest if np.isfinite(smallest) else 0.0)
        result = max(result, bound + min(spare, float(problem.own_price[problem.count > 0].min())))
    return result
