"""Failures of sites and of shared risks by analysis: members stay where they are, and the next one leads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.failure_analysis import (
    FailureAnalysis,
    FailureOutcome,
    FailureStudy,
    PossibleFailure,
    PossibleFailures,
)
from planner.contract.studies import Section
from planner.errors import InputError
from planner.options import Options, Restoration
from planner_models.membership.plan.check import ServicePlan, read_plan
from planner_models.membership.plan.evaluation import commit_time_ms, decision_ms
from planner_models.membership.plan.fences import fence_metrics
from planner_models.membership.plan.joining import join_metrics
from planner_models.membership.plan.metrics import measure_services
from planner_models.membership.plan.plan import (
    AGREEMENT_RULES,
    QUORUM_RULES,
    REACTION_RULE,
    MembershipPlan,
    Placement,
)
from planner_models.membership.problem.drawing import SITE
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import KINDS

RISK: Final = "shared risk"
RISKS: Final = "risks"
KIND_OF_SET: Final = {f"{kind}s": kind for kind in KINDS}
SETS: Final = dict.fromkeys(KIND_OF_SET, SITE) | {RISKS: RISK}


def live_placement(problem: Membership, placement: Placement, is_down: Bools) -> Placement | None:
    """Return the placement with the next leader while sites are down, (S,); None where none may lead.

    The members that are down stay members. Where reports of failures are definitive, a single member may
    lead while a majority of managers is up.
    """
    paths = problem.tree.paths
    alive = {site: count for site, count in placement.members.items() if not is_down[list(paths[site])].any()}
    if not _may_serve(placement, sum(alive.values()), _live_managers(problem, placement, is_down)):
        return None
    if placement.leader in alive:
        return placement
    may_lead = [site for site in sorted(alive) if not problem.is_witness[site]]
    if not may_lead:
        return None
    leader = min(may_lead, key=lambda site: (commit_time_ms(problem, alive, site, placement.quorum), site))
    return replace(placement, leader=leader)


def _name_leader(problem: Membership, placement: Placement | None) -> str:
    """Return the name of the leader's site, or words where none may serve or members agree in rounds."""
    if placement is None:
        return "none"
    is_agreement = placement.rule in AGREEMENT_RULES
    return "nobody, a quorum agrees" if is_agreement else problem.site_names[placement.leader]


def _live_managers(problem: Membership, placement: Placement, is_down: Bools) -> int:
    paths = problem.tree.paths
    return sum(count for site, count in placement.managers.items() if not is_down[list(paths[site])].any())


def _may_serve(placement: Placement, live: int, reporting: int) -> bool:
    """Return whether a service is up with a number of live members and live managers."""
    if placement.rule in QUORUM_RULES:
        return live >= placement.quorum
    if placement.rule == REACTION_RULE:
        return live >= 1
    majority = sum(placement.managers.values()) // 2 + 1
    return live == placement.size or (live >= 1 and reporting >= majority)


@dataclass(frozen=True, kw_only=True, eq=False)
class MembersInFailures:
    """Analysis of a plan with its members in place.

    is_down    (F, S) whether a failure takes a site down
    of_fences  metrics of fences and of groups, which no failure changes
    """

    problem: Membership
    items: Sequence[ServicePlan]
    failures: Sequence[PossibleFailure]
    is_down: Bools
    of_fences: dict[str, float | None]

    @property
    def about(self) -> str:
        """The reaction to a failure, in one sentence."""
        return "members stay where they are, and the nearest live one to a quorum leads"

    @cached_property
    def members_hit(self) -> Floats:
        """(F,) members and managers that each failure takes down."""
        counts = np.zeros(len(self.problem.sites))
        for item in self.items:
            for numbers in (item.placement.members, item.placement.managers):
                for site, count in numbers.items():
                    counts[site] += count
        below = np.zeros((len(counts), len(counts)), dtype=bool)
        for site in np.flatnonzero(counts).tolist():
            below[site, list(self.problem.tree.paths[site])] = True
        used = np.flatnonzero(counts)
        hit = self.is_down @ below[used].T.astype(float) > 0
        return np.asarray(hit @ counts[used])

    def busiest_first(self) -> Ints:
        """Return the failures by row, those of most members first."""
        return np.argsort(-self.members_hit, kind="stable")

    def evaluate(self, rows: Ints) -> tuple[list[FailureOutcome], list[tuple[int, list[str]]]]:
        """Return the outcomes of some failures, and who leads each service then."""
        untouched = measure_services(self.problem, self.items) | self.of_fences
        outcomes, leaders = [], []
        for row in rows.tolist():
            if not self.members_hit[row]:
                outcomes.append(FailureOutcome(metrics=untouched, figures={"live_members": self._size}))
                continue
            metrics, live, names = self._fail(self.is_down[row])
            outcomes.append(FailureOutcome(metrics=metrics, figures={"live_members": live}))
            leaders.append((row, names))
        return outcomes, leaders

    @property
    def _size(self) -> float:
        return float(sum(item.placement.size for item in self.items))

    def _fail(self, is_down: Bools) -> tuple[Mapping[str, float | None], float, list[str]]:
        """Return the metrics while sites are down, the live members, and the leader of each service."""
        tree = self.problem.tree
        failed = replace(self.problem)
        failed.__dict__["tree"] = replace(tree, down=np.where(is_down, 1.0, tree.down))
        items, names, live = [], [], 0
        for item in self.items:
            alive = {
                site: count
                for site, count in item.placement.members.items()
                if not is_down[list(tree.paths[site])].any()
            }
            live += sum(alive.values())
            placement = live_placement(self.problem, item.placement, is_down)
            names.append(_name_leader(self.problem, placement))
            if placement is None:
                items.append(item)
                continue
            commit = decision_ms(self.problem, replace(placement, members=alive))
            items.append(replace(item, placement=placement, commit_ms=commit))
        return measure_services(failed, items) | self.of_fences, float(live), names

    def conclude(self, parts: Sequence[list[tuple[int, list[str]]]]) -> Sequence[Section]:
        """Return the leader of each service while a site with members is down."""
        pairs = sorted(itertools.chain(*parts))
        rows = [(self.failures[row].name, *names) for row, names in pairs]
        if not rows:
            return ()
        names = [item.service.name for item in self.items]
        columns = ["failure", *(f"leader of {name}" for name in names)]
        return (Section(title="Who leads then", frame=pd.DataFrame(rows, columns=columns)),)


def find_failures(problem: Membership, names: Sequence[str]) -> PossibleFailures:
    """Return the failures of sets: of all sites of a kind, and of shared risks."""
    failures, is_down = [], []
    tree = problem.tree
    for name in names:
        if name == RISKS:
            for risk, label in enumerate(problem.risk_names):
                sites = tree.risk_sites[risk]
                lost = tuple(problem.site_names[site] for site in np.flatnonzero(sites).tolist())
                failures.append(PossibleFailure(kind=RISK, name=label, adjustments={"lost": lost}))
                is_down.append(sites)
            continue
        for site in np.flatnonzero(problem.kind == KINDS.index(KIND_OF_SET[name])).tolist():
            label = problem.site_names[site]
            failures.append(PossibleFailure(kind=SITE, name=label, adjustments={"lost": (label,)}))
            is_down.append(np.arange(len(problem.sites)) == site)
    return PossibleFailures(
        failures=failures, data=np.array(is_down, dtype=bool).reshape(-1, len(tree.parent))
    )


def default_sets(problem: Membership) -> Sequence[str]:
    """Return the sets that a problem has failures of."""
    kinds = [name for name, kind in KIND_OF_SET.items() if (problem.kind == KINDS.index(kind)).any()]
    return [*reversed(kinds), *([RISKS] if problem.risk_names else [])]


def analyse_failures(
    problem: Membership,
    plan: MembershipPlan,
    design: str | None,
    parameters: Mapping[str, Any],  # noqa: ARG001 - the signature of an analysis
    failures: PossibleFailures,
    restoration: Restoration | None,
    options: Options,  # noqa: ARG001
) -> FailureAnalysis | None:
    """Return the analysis of failures; None where the design places members again (reoptimize).

    raises  InputError for restorations of traffic, and where a plan made elsewhere would be decided again
    """
    if restoration == "reoptimize" and design is not None:
        return None
    if restoration not in (None, "none"):
        raise InputError(
            f"restoration is {restoration}, must be none (members stay) or reoptimize (a design places them "
            "again)"
        )
    return MembersInFailures(
        problem=problem,
        items=read_plan(problem, plan),
        failures=failures.failures,
        is_down=failures.data,
        of_fences=fence_metrics(problem, plan) | join_metrics(problem, plan),
    )


FAILURES: Final = FailureStudy[Membership](
    sets=SETS,
    default=default_sets,
    find=find_failures,
    analyse=analyse_failures,
    figures={"live_members": ("Live members", "members")},
)
