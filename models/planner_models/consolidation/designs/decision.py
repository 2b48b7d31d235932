"""Decisions from groups of hosts: their plan, guarantees and proof, and shortages that are proven."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, Final, ParamSpec

import numpy as np
import pandas as pd

from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.formatting import counted
from planner.options import Options
from planner.search.judged import feasible, infeasible, undecided
from planner_models.consolidation.designs.growth import grow
from planner_models.consolidation.plan.metrics import LIMITS
from planner_models.consolidation.plan.plan import ConsolidationPlan, make_plan
from planner_models.consolidation.problem.packing import HostGroup
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of

P = ParamSpec("P")
Plan = Callable[Concatenate[Consolidation, P], Decision[ConsolidationPlan]]
ALL: Final = frozenset(LIMITS)
WITHOUT_RESTART: Final = ALL - {"restart"}
"""Guarantees of designs that keep no slots."""


def find_shortage(problem: Consolidation) -> str:
    """Return why not all machines can have a host, from sums of capacities; "" where sums allow it."""
    capacity = np.array([np.minimum(shape.node.sum(axis=0), shape.whole) for shape in problem.host_shapes])
    needs = problem.count @ problem.needs
    names = ("threads", "GB of memory", *problem.resources)
    for column, name in enumerate(names):
        with np.errstate(invalid="ignore"):
            by_type = np.where(problem.most > 0, problem.most * capacity[:, column], 0.0)
        total = float(np.nan_to_num(by_type, nan=0.0, posinf=np.inf).sum())
        if needs[column] > total * (1 + 1e-9):
            return (
                f"all machines need {needs[column]:,.6g} {name}, the hosts that can be had have {total:,.6g}"
            )
    return ""


def find_lost_domain(problem: Consolidation) -> str:
    """Return why machines cannot restart after a loss, from the number of domains; "" where they may."""
    if problem.survive is None:
        return ""
    for row in rows_of(problem.survive):
        domains = {
            "zone": len(problem.zone_names),
            "rack": len({(supply.zone, supply.rack) for supply in problem.supplies}),
        }.get(str(row.domain))
        if domains is not None and domains <= int(row.losses) and problem.count.sum() > 0:
            return (
                f"no machine restarts after the loss of {counted(int(row.losses), f'{row.domain}s')}: there "
                f"{'is' if domains == 1 else 'are'} {domains}"
            )
    return ""


def refuse_shortage(plan: Plan[P]) -> Plan[P]:
    """Return the function that proves infeasibility where all must have a host and hosts are too few."""

    @functools.wraps(plan)
    def plan_or_prove(
        problem: Consolidation, /, *args: P.args, **parameters: P.kwargs
    ) -> Decision[ConsolidationPlan]:
        options = parameters.get("options")
        is_strict = isinstance(options, Options) and options.service == "all"
        reason = find_shortage(problem) if is_strict else ""
        if reason:
            return Decision(plan=None, proof=infeasible(reason))
        decision = plan(problem, *args, **parameters)
        if is_strict and decision.plan is not None and decision.plan.refused is not None:
            number = counted(int(decision.plan.refused["machines"].sum()), "machines")
            return Decision(plan=None, proof=undecided(f"the search found no host for {number}"))
        return decision

    return plan_or_prove


def decide(
    problem: Consolidation,
    groups: Sequence[HostGroup],
    refused: Mapping[int, int],
    *,
    guarantees: frozenset[str] = WITHOUT_RESTART,
    proof: Proof | None = None,
    moves: pd.DataFrame | None = None,
    may_grow: bool = True,
) -> Decision[ConsolidationPlan]:
    """Return the decision of groups of hosts; machines take free threads where they can use them."""
    grown = [
        grown_group for group in groups for grown_group in ([grow(problem, group)] if may_grow else [group])
    ]
    plan = make_plan(problem, grown, refused, moves=moves)
    return Decision(plan=plan, proof=proof or feasible(), guarantees=guarantees)
