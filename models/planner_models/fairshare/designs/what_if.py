"""Explanation of shares: the nodes that limit tenants at each level, and changes for the lowest tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.metrics import more
from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import counted, counted_of, few
from planner.options import Options
from planner_models.fairshare.designs.fair_rates import share_fairly
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.max_min import Level
from planner_models.fairshare.plan.metrics import METRICS, find_unsatisfied, measure
from planner_models.fairshare.plan.plan import Content, Sharing, read_plan
from planner_models.fairshare.problem.adjustments import adjust
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

LARGER: Final = 1.5
LESS_WEIGHT: Final = 0.5
MOST_NAMES: Final = 5
BUSY: Final = 0.95  # utilization above which a faster node is tried
MOST_LEVELS: Final = 12
BELOW: Final = "nodes of lower levels"
MOST_LEVEL_PARTITIONS: Final = 300_000


def explain(
    problem: SharedStore,
    decided: Decided,
    *,
    upgrades: Annotated[
        int,
        Field(ge=0, description="full nodes that are tried with half as much rate, or memory, again"),
    ] = 3,
    heaviest: Annotated[int, Field(ge=0, description="tenants that are tried with half their weight")] = 3,
    options: Options = Options(),
) -> Explanation:
    """Explain shares: tenants below their fair share, the full nodes of each level, and useful changes.

    Tried are faster nodes, nodes with more memory where replicas do not fit, and lower weights.

    Changes are ranked by the least level: a faster node raises fair shares too.
    """
    plan: Sharing = decided.decision.plan  # type: ignore[assignment]
    content = read_plan(problem, plan)
    owner = problem.tenant[content.replicas.partition]
    rate = add_up(owner, weights=content.kops, minlength=len(problem.tenants))
    fair = fair_share_kops(problem)
    wants = np.flatnonzero(find_unsatisfied(problem, rate))
    sentences = [f"{counted_of(len(wants), len(rate), 'tenants', 'want')} more than they get."]
    if len(wants):
        share = np.divide(rate, fair, out=np.zeros_like(rate), where=fair > 0)
        worst = int(wants[share[wants].argmin()])
        sentences.append(
            f"Tenant {problem.tenant_names[worst]} gets least: {rate[worst]:,.4g} kops, "
            f"{share[worst]:.1%} of its fair share."
        )
    if decided.baseline is not None:
        before = measure(problem, decided.baseline, None)["min_share"]
        now = decided.metrics["min_share"]
        sentences.append(f"The least share is {now:.1%}; with {decided.baseline_name} it is {before:.1%}.")
    levels = _find_levels(problem, content)
    sections = [*_list_levels(problem, levels), _tabulate(problem, rate, fair)]
    again = Reoptimization(
        decided,
        metric=next(metric_of for metric_of in METRICS if metric_of.name == "least_level_kops"),
        measure=measure,
        options=options,
    )
    for more_of, what, changes in (
        ("rate", "faster node", list(_faster(problem, content, levels, upgrades))),
        ("memory", "larger node", list(_larger(problem, content, upgrades))),
    ):
        if changes and len(wants):
            trials = again.solve_all(changes)
            sentences.append(again.sentence(trials, what=what))
            title = f"Nodes with 50% more {more_of}, solved again"
            sections.append(again.section(trials, title=title, units={"more_memory": "GB"}))
    if len(wants):
        sections += _weigh_less(problem, decided, rate, heaviest, options, sentences)
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


def _find_levels(problem: SharedStore, content: Content) -> list[Level]:
    """Return the levels of the fairest rates for the replicas, over fair shares, lowest first.

    There is none of a large problem, and of one with several resources.
    """
    if problem.capacity.shape[1] > 1 or len(problem.partitions) > MOST_LEVEL_PARTITIONS:
        return []
    return [level for level in share_fairly(problem, content.replicas).levels if len(level.tenants)]


def _list_levels(problem: SharedStore, levels: list[Level]) -> Iterator[Section]:
    """Yield the tenants and the full nodes of each level."""
    rows = [
        (
            level.level,
            len(level.tenants),
            _name(problem.tenant_names, level.tenants),
            len(level.nodes),
            _name(problem.node_names, level.nodes) if len(level.nodes) else BELOW,
        )
        for level in levels[:MOST_LEVELS]
    ]
    if rows:
        columns = ["level", "tenants", "such_as", "full_nodes", "these_nodes"]
        yield Section(
            title="Levels",
            frame=pd.DataFrame(rows, columns=columns),
            note="no plan with these replicas serves a tenant of a level more without serving one below "
            "less: minimum cuts",
        )


def _name(names: np.ndarray, rows: np.ndarray) -> str:
    return few([str(name) for name in names[rows]], MOST_NAMES)


def _faster(
    problem: SharedStore, content: Content, levels: list[Level], limit: int
) -> Iterator[Change[SharedStore]]:
    """Yield full nodes with more rate: those of the lowest level first, by the requests that they lack."""
    nth = np.full(len(problem.nodes), len(levels))
    for k in reversed(range(len(levels))):
        nth[levels[k].nodes] = k
    load = add_up(content.replicas.node, weights=content.kops, minlength=len(problem.nodes))
    rate = problem.rate_kops
    full = np.divide(load, rate, out=np.zeros_like(rate), where=rate > 0)
    partition, node = content.replicas
    served = add_up(partition, weights=content.kops, minlength=len(problem.partitions))
    unmet = add_up(node, weights=(problem.demand_kops - served)[partition], minlength=len(rate))
    busy = np.flatnonzero(full > BUSY)
    for n in busy[np.lexsort((-unmet[busy], nth[busy]))][:limit].tolist():
        name = str(problem.node_names[n])
        yield Change(name=f"node {name}", problem=adjust(problem, rate_factors={name: LARGER}))


def _larger(problem: SharedStore, content: Content, limit: int) -> Iterator[Change[SharedStore]]:
    """Yield the fullest nodes with more memory, of those that not every replica fits in besides."""
    partition, node = content.replicas
    used = add_up(node, weights=problem.size_gb[partition], minlength=len(problem.nodes))
    memory = problem.memory_gb
    full = np.divide(used, memory, out=np.zeros_like(memory), where=memory > 0)
    largest = float(problem.size_gb.max(initial=0.0))
    for n in np.argsort(-full, kind="stable")[:limit].tolist():
        if memory[n] > 0 and memory[n] - used[n] < largest:
            name = str(problem.node_names[n])
            yield Change(
                name=f"node {name}",
                problem=adjust(problem, memory_factors={name: LARGER}),
                facts={"more_memory": (LARGER - 1) * float(memory[n])},
            )


def _weigh_less(
    problem: SharedStore,
    decided: Decided,
    rate: np.ndarray,
    limit: int,
    options: Options,
    sentences: list[str],
) -> Iterator[Section]:
    """Yield the tenants with the highest rates and the gain of others if these weigh half as much."""

    def measure_others(
        changed: SharedStore,
        plan: Sharing,
        previous: Sharing | None,  # noqa: ARG001
    ) -> Mapping[str, float | None]:
        content = read_plan(changed, plan)
        owner = changed.tenant[content.replicas.partition]
        now = add_up(owner, weights=content.kops, minlength=len(rate))
        others = changed.weight == problem.weight
        return {gain.name: float((now - rate)[others].sum())}

    gain = more("others_gain_kops", "kops", "further requests that are served, of all other tenants")
    again = Reoptimization[SharedStore](
        replace(decided, metrics={**decided.metrics, gain.name: 0.0}),
        metric=gain,
        measure=measure_others,
        options=options,
    )
    changes = []
    for t in np.argsort(-rate, kind="stable")[:limit].tolist():
        name, weight = str(problem.tenant_names[t]), float(problem.weight[t])
        lower = adjust(problem, weights={name: LESS_WEIGHT * weight})
        changes.append(Change(name=f"tenant {name}", problem=lower, facts={"weight_now": weight}))
    trials = [trial for trial in again.solve_all(changes) if trial.gain is not None]
    if not trials:
        return
    best, gained = trials[0], trials[0].gain or 0.0
    tried = f"Of {counted(len(trials), 'tenants')} tried with half their weight, "
    sentences.append(
        f"{tried}{best.change.name} costs others most: they get {gained:,.4g} kops more."
        if gained > 0
        else f"{tried}none leaves others more."
    )
    rows = [
        {"change": trial.change.name, **trial.change.facts, "others_gain": trial.gain} for trial in trials
    ]
    yield Section(
        title="Tenants with half their weight, solved again",
        frame=pd.DataFrame(rows),
        units={"others_gain": "kops"},
        note="further requests of all other tenants together",
    )
