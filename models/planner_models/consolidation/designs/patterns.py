"""Column generation over patterns of hosts, with a bound for all plans; never worse than best fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import gap_of, infeasible, judged
from planner.search.tolerances import STATED_GAP
from planner_models.consolidation.designs.bundles import keep_one_host, pin_groups, place_remaining
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

SLOTS: Final = "slots of each shape"
"""Plans that bounds cover where losses are survived: without free capacity that several shapes share."""
CLOSE: Final = 2e-4
"""Gap at which no further plan is looked for, where none is asked for."""
PLACED_FACTOR: Final = 2.0
"""Price of a refused machine over that which plans are compared by, where a search is to place more."""
SMALL_PRICE: Final = 1e-3
"""Price of hosts that cost nothing over the smallest other one, where a search is to fill few of them."""


@refuse_shortage
def plan(problem: Consolidation, *, options: Options = Options()) -> Decision[ConsolidationPlan]:
    """Find the cheapest hosts for all machines by column generation, with a bound for all plans.

    Where a problem names losses, hosts hold slots in which all machines restart. Ends at `options.gap`, or at
    a time limit with the incumbent and its bound.
    """
    reason = find_lost_domain(problem)
    if reason:
        return Decision(plan=None, proof=infeasible(reason))
    found = search(problem, options)
    proof = judged(
        "min",
        found.best.price,
        min(found.bound, found.best.price),
        gap=gap_of(options, default=STATED_GAP),
        metric="price_per_h",
        bound_scope=SLOTS if Master(problem).survives.any() else None,
        backend=found.backend or None,
        is_cut=found.is_cut,
    )
    return Decision(plan=found.best.decision.plan, proof=proof, guarantees=found.best.decision.guarantees)


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """The cheapest hosts that were found, and a price that no plan is below.

    is_cut  whether a time limit ended the search
    """

    best: Judged
    bound: float
    backend: str
    is_cut: bool


def search(problem: Consolidation, options: Options) -> Found:
    """Return the cheapest hosts by column generation, or by best fit where these are cheaper."""
    deadline = Deadline.of(options)
    best = judge(problem, *_with_slots(problem, *_best_fit(problem)))
    pinned = pin_groups(problem)
    if options.time_limit_s is not None:
        options = replace(options, time_limit_s=options.time_limit_s / len(pinned))
    results = [generate(item, options) for item in pinned]
    close = gap_of(options, default=CLOSE)
    bound = min(round_up(problem, result.bound) for result in results)
    for groups in chain(*(result.plans for result in results), _list_priced(pinned, options)):
        trial = judge(problem, *_with_slots(problem, *_complete(problem, groups)))
        best = min(best, trial, key=lambda item: item.key)
        if best.key[0] == 0 and best.key[2] == 0 and best.price - bound <= close * best.price:
            break
    for groups in _list_placed(pinned, deadline, options) if best.key[2] > 0 else ():
        trial = judge(problem, *_with_slots(problem, *_complete(problem, groups)))
        best = min(best, trial, key=lambda item: item.key)
    is_cut = any(result.is_cut for result in results)
    return Found(best=best, bound=bound, backend=results[0].backend, is_cut=is_cut)


def _list_priced(problems: Sequence[Consolidation], options: Options) -> Iterator[list[HostGroup]]:
    """Yield plans in which hosts that cost nothing have a small price, so that the search fills them."""
    for problem in problems:
        if (problem.price == 0).any():
            small = SMALL_PRICE * float(problem.price[problem.price > 0].min(initial=np.inf))
            price = np.where(problem.price > 0, problem.price, small if np.isfinite(small) else 1.0)
            priced = replace(problem, hosts=problem.hosts.assign(price_per_h=price))
            yield from generate(priced, options).plans


def _list_placed(
    problems: Sequence[Consolidation], deadline: Deadline, options: Options
) -> Iterator[list[HostGroup]]:
    """Yield plans in which a refused machine counts more, so that machines are placed at the same price."""
    for problem in problems:
        if deadline.is_over:
            return
        dearer = replace(problem)
        dearer.__dict__["own_price"] = PLACED_FACTOR * problem.own_price
        yield from generate(dearer, options).plans


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """Hosts, their decision and price, and the key of comparison: violations, price, refused, throughput."""

    groups: list[HostGroup]
    decision: Decision[ConsolidationPlan]
    price: float
    key: tuple[int, float, int, float]


def judge(
    problem: Consolidation, groups: list[HostGroup], refused: dict[int, int], has_slots: bool
) -> Judged:
    """Return the decision of hosts with its price."""
    decision = decide(problem, groups, refused, guarantees=ALL if has_slots else WITHOUT_RESTART)
    assert decision.plan is not None
    metrics = measure(problem, decision.plan, None)
    violations = check(problem, decision.plan).of_limits(WITHOUT_RESTART)
    price = metrics["price_per_h"] or 0.0
    key = (len(violations), price, int(metrics["refused"] or 0.0), -(metrics["score"] or 0.0))
    return Judged(groups=groups, decision=decision, price=price, key=key)


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
    packer = place_remaining(problem, groups, -surplus)
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
