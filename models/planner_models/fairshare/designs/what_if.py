"""Explanation of shares: the nodes that hold tenants back at each level, and what raises the least tenant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.options import Options
from planner_models.fairshare.designs.max_min import share_max_min
from planner_models.fairshare.plan.fair_shares import fair_share_kops, pool_level
from planner_models.fairshare.plan.metrics import METRICS, find_unsatisfied, measure
from planner_models.fairshare.plan.plan import Content, Sharing, read_plan
from planner_models.fairshare.problem.adjustments import adjust
from planner_models.fairshare.problem.problem import SharedStore, add_up

FASTER: Final = 1.5
MOST_NAMES: Final = 4
MOST_LEVELS: Final = 12
MOST_LEVEL_PARTITIONS: Final = 300_000


def explain(
    problem: SharedStore,
    decided: Decided,
    *,
    upgrades: Annotated[
        int, Field(ge=0, description="full nodes that are tried with half as much rate again")
    ] = 3,
    heaviest: Annotated[int, Field(ge=0, description="tenants that are tried with weight 1")] = 3,
    options: Options = Options(),
) -> Explanation:
    """Explain shares: who gets less than its fair share, the full nodes of each level, and what helps.

    Changes are ranked by the least level: a faster node raises fair shares too.
    """
    plan: Sharing = decided.decision.plan  # type: ignore[assignment]
    content = read_plan(problem, plan)
    owner = problem.tenant[content.replicas.partition]
    rate = add_up(owner, weights=content.kops, minlength=len(problem.tenants))
    fair = fair_share_kops(problem)
    wants = np.flatnonzero(find_unsatisfied(problem, rate))
    sentences = [f"{len(wants)} of {len(rate)} tenants want more than they get."]
    if len(wants):
        share = np.divide(rate, fair, out=np.zeros_like(rate), where=fair > 0)
        least = int(wants[share[wants].argmin()])
        sentences.append(
            f"Tenant {problem.tenant_names[least]} gets least: {rate[least]:,.4g} kops, "
            f"{share[least]:.1%} of its fair share."
        )
    if decided.baseline is not None:
        before = measure(problem, decided.baseline, None)["min_share"]
        now = decided.metrics["min_share"]
        sentences.append(f"The least share is {now:.1%}; with {decided.baseline_name} it is {before:.1%}.")
    sections = [*_levels(problem, content), _tabulate(problem, rate, fair)]
    again = Reoptimization(
        decided,
        metric=next(one for one in METRICS if one.name == "least_level_kops"),
        measure=measure,
        options=options,
    )
    for title, what, changes in (
        ("Nodes with 50% more rate, solved again", "faster node", list(_faster(problem, content, upgrades))),
        ("Tenants with weight 1, solved again", "lower weight", list(_lighter(problem, rate, heaviest))),
    ):
        if changes and len(wants):
            trials = again.solve_all(changes)
            sentences.append(again.sentence(trials, what=what))
            sections.append(again.section(trials, title=title))
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _tabulate(problem: SharedStore, rate: np.ndarray, fair: np.ndarray) -> Section:
    """Return the tenants with the least rate over their fair share."""
    level = np.divide(rate, fair, out=np.zeros_like(rate), where=fair > 0)
    wants = find_unsatisfied(problem, rate)
    rows = np.lexsort((level, ~wants))[:12]
    frame = pd.DataFrame(
        {
            "tenant": problem.tenant_names[rows],
            "served": rate[rows],
            "demand": problem.demand_of_tenant[rows],
            "fair_share": fair[rows],
            "level": level[rows],
            "wants_more": np.where(wants[rows], "yes", "no"),
        }
    )
    units = {"served": "kops", "demand": "kops", "fair_share": "kops"}
    return Section(title="Tenants, the least share first", frame=frame, units=units)


def _levels(problem: SharedStore, content: Content) -> Iterator[Section]:
    """Yield the levels of the fairest rates for the plan's replicas, with the full nodes of each."""
    if problem.capacity.shape[1] > 1 or len(problem.partitions) > MOST_LEVEL_PARTITIONS:
        return
    pool = pool_level(problem)
    rows = [
        (
            one.level / pool if pool > 0 else 0.0,
            len(one.tenants),
            _name(problem.tenant_names, one.tenants),
            len(one.nodes),
            _name(problem.node_names, one.nodes),
        )
        for one in share_max_min(problem, content.replicas).levels
        if len(one.tenants)
    ][:MOST_LEVELS]
    if rows:
        columns = ["level", "tenants", "such_as", "full_nodes", "these_nodes"]
        yield Section(
            title="Levels",
            frame=pd.DataFrame(rows, columns=columns),
            note="no plan with these replicas serves a tenant of a level more without serving one below "
            "less: minimum cuts",
        )


def _name(names: np.ndarray, rows: np.ndarray) -> str:
    shown = ", ".join(str(name) for name in names[rows[:MOST_NAMES]])
    return shown + (", ..." if len(rows) > MOST_NAMES else "")


def _faster(problem: SharedStore, content: Content, most: int) -> Iterator[Change[SharedStore]]:
    load = add_up(content.replicas.node, weights=content.kops, minlength=len(problem.nodes))
    rate = problem.rate_kops
    full = np.divide(load, rate, out=np.zeros_like(rate), where=rate > 0)
    for n in np.argsort(-full, kind="stable")[:most].tolist():
        if full[n] > 0.95:
            name = str(problem.node_names[n])
            yield Change(name=f"node {name}", problem=adjust(problem, rate_factors={name: FASTER}))


def _lighter(problem: SharedStore, rate: np.ndarray, most: int) -> Iterator[Change[SharedStore]]:
    for t in np.argsort(-rate, kind="stable")[:most].tolist():
        if problem.weight[t] > 1:
            name = str(problem.tenant_names[t])
            yield Change(
                name=f"tenant {name}",
                problem=adjust(problem, weights={name: 1.0}),
                facts={"weight_now": float(problem.weight[t])},
            )
