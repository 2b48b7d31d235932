"""Members that managers fence before they report: Albatross, and the same with planned places and fences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible, infeasible, judged
from planner_models.membership.designs import raft
from planner_models.membership.designs.counts import CountSearch, Request
from planner_models.membership.designs.decision import SAFE, conclude, lack_of_hosts
from planner_models.membership.designs.groups import Extras
from planner_models.membership.designs.reported import NO_MANAGERS
from planner_models.membership.designs.rules import current_counts, nearest_leader, spread
from planner_models.membership.plan.check import price_of
from planner_models.membership.plan.epochs import cuts_without_epoch
from planner_models.membership.plan.evaluation import evaluate
from planner_models.membership.plan.fences import border_ports, epoch_use, tabulate_fences, tabulate_naming
from planner_models.membership.plan.fencing import fence_by_kind, fence_planned, rules_of
from planner_models.membership.plan.metrics import measure
from planner_models.membership.plan.plan import FENCE_RULE, MembershipPlan, Placement
from planner_models.membership.problem.problem import Membership, Naming, Service
from planner_models.membership.problem.schema import NETWORK

GUARANTEES: Final = SAFE | {"rules", "names"}
SCOPE: Final = "fenced members"
Counts = dict[int, int]


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Effects of fences and names on a service: seconds until a fence stands, share of cuts not made."""

    fence_s: float = 0.0
    unmade_cuts: float = 0.0


def plan_fenced(problem: Membership, *, options: Options = Options()) -> Decision[MembershipPlan]:
    """Fence members before they are reported, as Albatross does: f+1 members, and managers over zones.

    Ports to end-hosts are fenced by application, those to switches by epoch. Each port takes an epoch, and
    each retry does again, as in Figure 5 of the paper.

    source  Leners et al. 2015, 5.3
    """
    extras, effects = _make_tables(problem, is_planned=False)
    placements, reasons = {}, []
    for service in problem.service_list:
        result = place_fenced(problem, service, effects)
        if isinstance(result, str):
            reasons.append(f"{service.name}: {result}")
        else:
            placements[service.name] = result
    if reasons:
        return Decision(plan=None, proof=infeasible(*reasons))
    return conclude(problem, placements, feasible(), guarantees=GUARANTEES, extras=extras, options=options)


def plan_fenced_planned(
    problem: Membership,
    *,
    trials: Annotated[
        int, Field(ge=0, le=1_000_000, description="largest number of places that are tried for a service")
    ] = 2_000,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Search places of fenced members and of their managers, and fence each port by its best granularity.

    The bound takes managers as always up. A cut takes one epoch, after its last fence stands; bits that no
    application needs are bits of epochs.
    """
    deadline = Deadline.of(options)
    extras, effects = _make_tables(problem, is_planned=True)
    placements, bounds, reasons = {}, [], []
    for service in problem.service_list:
        search = FencedSearch(problem, service, effects, trials=trials, deadline=deadline)
        result = raft.place(problem, service) if service.is_byzantine else search.run()
        if isinstance(result, str):
            reasons.append(f"{service.name}: {result}")
        else:
            placements[service.name] = result
            bounds.append(0.0 if service.is_byzantine else search.bound_s)
    if reasons:
        return Decision(plan=None, proof=infeasible(*reasons))
    decision = conclude(
        problem, placements, feasible(), guarantees=GUARANTEES, extras=extras, options=options
    )
    if decision.plan is None:
        return decision
    down = measure(problem, decision.plan, None)["down_s_per_month"] or 0.0
    proof = judged(
        "min",
        down,
        min(float(np.mean(bounds)), down),
        metric="down_s_per_month",
        bound_scope=SCOPE,
        is_cut=deadline.is_over,
    )
    return replace(decision, proof=proof)


def _make_tables(problem: Membership, *, is_planned: bool) -> tuple[Extras, Effects]:
    """Return the fences and names of a design, with their effects on a service."""
    ports, naming = border_ports(problem), problem.name_bits
    fences, names, fence_s, unmade = None, None, 0.0, 0.0
    if ports is not None:
        by = fence_planned(ports) if is_planned else fence_by_kind(ports)
        fences = tabulate_fences(problem, ports, by)
        fence_s = float((rules_of(ports, by) * ports.rule_ms[ports.switch]).max(initial=0.0)) / 1e3
    if naming is not None:
        bits, per_cut = naming.bits_of_epoch, naming.ports_per_cut * (1 + naming.retries)
        if is_planned:
            bits, per_cut = naming.bits_of_epoch + _spare_bits(problem, naming), 1
        bits_of_app = naming.bits_of_app - (bits - naming.bits_of_epoch)
        names = tabulate_naming(naming, bits_of_epoch=bits, bits_of_app=bits_of_app, epochs_per_cut=per_cut)
        unmade = cuts_without_epoch(bits, epoch_use(naming, per_cut))
    return Extras(fences=fences, naming=names), Effects(fence_s=fence_s, unmade_cuts=unmade)


def _spare_bits(problem: Membership, naming: Naming) -> int:
    """Return the bits of applications that the port with most of them does not need; 0 without ports."""
    if problem.ports is None or not len(problem.ports):
        return 0
    applications = max(float(problem.ports["applications"].max()), 1.0)
    return max(naming.bits_of_app - math.ceil(math.log2(applications)), 0)


def place_fenced(problem: Membership, service: Service, effects: Effects) -> Placement | str:
    """Return f+1 members and managers over the zones of a region, or the reason why there are none."""
    if service.is_byzantine:
        return raft.place(problem, service)
    if service.managers == 0:
        return NO_MANAGERS
    members = spread(problem, service.pair)
    if sum(members.values()) < service.pair:
        return lack_of_hosts(sum(members.values()), service.pair)
    _, managers, _ = current_counts(problem, service)
    managers = managers or spread(problem, service.managers)
    return make_fenced(problem, members, managers, nearest_leader(problem, members, 1), effects)


def make_fenced(
    problem: Membership, members: Counts, managers: Counts, leader: int, effects: Effects
) -> Placement:
    """Return the placement of fenced members, watched by their switches."""
    watcher = problem.watcher(NETWORK)
    return Placement(
        members=members,
        managers=managers,
        leader=leader,
        rule=FENCE_RULE,
        quorum=1,
        kind=NETWORK,
        interval_s=watcher.interval_s,
        timeout_s=watcher.timeout_s,
        **vars(effects),
    )


class FencedSearch:
    """Local search of the places of members and managers of one service, from the best ones by themselves."""

    def __init__(
        self, problem: Membership, service: Service, effects: Effects, *, trials: int, deadline: Deadline
    ) -> None:
        """Prepare a search of at most some trials."""
        self.problem, self.service, self.effects = problem, service, effects
        self.trials, self.deadline = trials, deadline
        self.allowed = (problem.tree.capacity > 0) & ~problem.is_lost & ~problem.is_witness
        self.leaves = [leaf for leaf in problem.leaves.tolist() if self.allowed[leaf]]
        self.bound_s = 0.0

    def run(self) -> Placement | str:
        """Return the best placement found, or the reason why there is none; `bound_s` is then a bound."""
        if self.service.managers == 0:
            return NO_MANAGERS
        size, managers = self.service.pair, self.service.managers
        members, no_member_s = self._best_counts(size, 1)
        of_managers, _ = self._best_counts(managers, managers // 2 + 1)
        if members is None or of_managers is None:
            return lack_of_hosts(int(self.problem.tree.capacity[self.leaves].sum()), max(size, managers))
        self.bound_s = no_member_s + min(self._watching_s(leaf) for leaf in self.leaves)
        best = self._with_leader(members, of_managers)
        return self._improve(best)

    def _best_counts(self, size: int, quorum: int) -> tuple[Counts | None, float]:
        """Return the numbers of members that are most often enough, and their seconds without enough."""
        sites = len(self.problem.sites)
        request = Request(
            size=size,
            quorum=quorum,
            quorum_near=0,
            allowed=self.allowed,
            near=np.ones(sites, dtype=bool),
            seconds=np.zeros(sites),
            price=self.problem.price,
        )
        choice = CountSearch(self.problem.tree, request).run()
        return (None, 0.0) if choice is None else (choice.counts, choice.quorum_s)

    def _watching_s(self, leader: int) -> float:
        """Return the seconds down in a month by detection, failovers and false alarms of a leader."""
        alone = make_fenced(self.problem, {leader: 1}, {leader: 1}, leader, Effects())
        down = evaluate(self.problem, self.service, alone)
        return down.detection + down.failover + down.false_alarms

    def _with_leader(self, members: Counts, managers: Counts) -> tuple[tuple[float, float], Placement]:
        """Return the placement with the best leader, with its value: price over the limit, seconds down."""
        leader = min(sorted(members), key=lambda site: (self._watching_s(site), site))
        placement = make_fenced(self.problem, members, managers, leader, self.effects)
        limit = self.service.price_limit
        over = 0.0 if limit is None else max(price_of(self.problem, placement) - limit, 0.0)
        return (over, evaluate(self.problem, self.service, placement).total), placement

    def _improve(self, best: tuple[tuple[float, float], Placement]) -> Placement:
        """Move single members and managers while this improves."""
        remaining, is_better = self.trials, True
        while is_better and remaining > 0 and not self.deadline.is_over:
            is_better = False
            for members, managers in itertools.islice(self._moves(best[1]), remaining):
                remaining -= 1
                trial = self._with_leader(members, managers)
                if trial[0] < (best[0][0], best[0][1] * (1 - 1e-9)):
                    best, is_better = trial, True
                    break
                if self.deadline.is_over:
                    break
        return best[1]

    def _moves(self, placement: Placement) -> Iterator[tuple[Counts, Counts]]:
        """Yield the numbers of members and managers with one of them at another site."""
        members, managers = dict(placement.members), dict(placement.managers)
        for site, other in itertools.product(sorted(members), self.leaves):
            if moved := self._move(members, site, other):
                yield moved, managers
        for site, other in itertools.product(sorted(managers), self.leaves):
            if moved := self._move(managers, site, other):
                yield members, moved

    def _move(self, counts: Counts, site: int, other: int) -> Counts | None:
        """Return the counts with one moved; None where it is there already, or no host is free."""
        if site == other or counts.get(other, 0) >= self.problem.tree.capacity[other]:
            return None
        moved = {**counts, other: counts.get(other, 0) + 1, site: counts[site] - 1}
        return {leaf: count for leaf, count in moved.items() if count}
