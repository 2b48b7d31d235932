"""Explanation of shares: the nodes that limit tenants at each level, and changes for the lowest tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.metrics import more
from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import counted, counted_of, few
from planner.options import Options
from planner_models.fairshare.designs.fair_rates import (
    keep_reserved,
    rates_of_tenants,
    share_dominant,
    share_fairly,
)
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.group_shares import sum_groups
from planner_models.fairshare.plan.max_min import Level
from planner_models.fairshare.plan.metrics import METRICS, find_below_reserved, find_unsatisfied, measure
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
MOST_PROGRAM_PARTITIONS: Final = 2_000
MOST_GROUPS: Final = 20
FULL: Final = 1e-6  # of its capacity: a resource with no more than this free is full


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
        worst = int(wants[np.where(fair[wants] > 0, share[wants], np.inf).argmin()])
        sentences.append(
            f"Tenant {problem.tenant_names[worst]} gets least: {rate[worst]:,.4g} kops, "
            f"{share[worst]:.1%} of its fair share."
        )
    if decided.baseline is not None:
        before = measure(problem, decided.baseline, None)["min_share"]
        now = decided.metrics["min_share"]
        sentences.append(f"The least share is {now:.1%}; with {decided.baseline_name} it is {before:.1%}.")
    sentences += _tell_reserved(problem, rate)
    levels = _find_levels(problem, content, options)
    sections = [
        *_list_levels(problem, content, levels),
        *_list_groups(problem, rate, fair),
        _tabulate(problem, rate, fair),
    ]
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


def _tell_reserved(problem: SharedStore, rate: Floats) -> Iterator[str]:
    """Yield sentences on the reserved rates that hold, and the limits that hold tenants back."""
    reserved = np.flatnonzero(problem.reserved_kops > 0)
    if len(reserved):
        short = find_below_reserved(problem, rate)
        sentence = counted_of(len(reserved) - int(short.sum()), len(reserved), "reserved rates", "are")
        yield f"{sentence} kept" + (
            f"; not those of {_name(problem.tenant_names, np.flatnonzero(short))}." if short.any() else "."
        )
    is_limited = (problem.requested_kops > problem.limit_kops) & ~find_unsatisfied(problem, rate)
    limited = np.flatnonzero(is_limited)
    if len(limited):
        yield (
            f"{counted(len(limited), 'tenants', 'are')} held back by their own limit: "
            f"{_name(problem.tenant_names, limited)}."
        )


def _list_groups(problem: SharedStore, rate: Floats, fair: Floats) -> Iterator[Section]:
    """Yield the groups with sums of their tenants' rates and fair shares, the least share first."""
    if not problem.has_groups:
        return
    sums = sum_groups(problem, np.stack([rate, fair, problem.reserved_kops]))
    served, due, reserved = sums
    level = np.divide(served, due, out=np.ones_like(due), where=due > 0)
    rows = np.argsort(level, kind="stable")[:MOST_GROUPS]
    parents = problem.parent_of_group[rows]
    frame = pd.DataFrame(
        {
            "group": problem.group_names[rows],
            "part_of": [str(problem.group_names[row]) if row >= 0 else "" for row in parents],
            "weight": problem.weight_of_group[rows],
            "served": served[rows],
            "fair_share": due[rows],
            "reserved": reserved[rows],
            "level": level[rows],
        }
    )
    units = dict.fromkeys(("served", "fair_share", "reserved"), "kops")
    yield Section(
        title="Groups, the least share first",
        frame=frame if problem.has_reserved else frame.drop(columns="reserved"),
        units=units,
        note="sums over the tenants of a group and of those in it",
    )


def _find_levels(problem: SharedStore, content: Content, options: Options) -> list[Level]:
    """Return the levels of the fairest rates for the replicas, over fair shares, lowest first.

    There is none of a large problem. With several resources they are of linear programs, and the full nodes
    are those with a full resource that the level's tenants use there.
    """
    several = problem.capacity.shape[1] > 1
    if len(problem.partitions) > (MOST_PROGRAM_PARTITIONS if several else MOST_LEVEL_PARTITIONS):
        return []
    if several:
        fair = fair_share_kops(problem)
        reserved = keep_reserved(problem, content.replicas, options)
        levels = share_dominant(problem, content.replicas, options, due=fair, reserved_kops=reserved).levels
        wanting = find_unsatisfied(problem, rates_of_tenants(problem, content.replicas, content.kops))
        return [
            Level(value, limited, np.flatnonzero(find_full(problem, content, limited).any(axis=1)))
            for value, tenants in levels
            if len(limited := tenants[wanting[tenants]])
        ]
    return [level for level in share_fairly(problem, content.replicas).levels if len(level.tenants)]


def find_full(problem: SharedStore, content: Content, tenants: Ints) -> Bools:
    """Return the resources of nodes that are full and that these tenants use there, (N, R)."""
    partition, node = content.replicas
    owner = problem.tenant[partition]
    use = problem.per_op[owner]
    load, asked = np.zeros_like(problem.capacity), np.zeros_like(problem.capacity)
    np.add.at(load, node, content.kops[:, None] * use)
    here = np.isin(owner, tenants) & (problem.demand_kops[partition] > 0)
    np.add.at(asked, node[here], use[here])
    return np.asarray((asked > 0) & (load >= problem.capacity * (1 - FULL)) & (problem.capacity > 0))


def _name_full(problem: SharedStore, content: Content, level: Level) -> str:
    """Return the names of a level's full nodes; with several resources, those that are full there."""
    if not len(level.nodes):
        return BELOW
    if problem.capacity.shape[1] == 1:
        return _name(problem.node_names, level.nodes)
    pairs = np.argwhere(find_full(problem, content, level.tenants)).tolist()
    return few([f"{problem.node_names[n]} ({problem.resource_names[r]})" for n, r in pairs], MOST_NAMES)


def _list_levels(problem: SharedStore, content: Content, levels: list[Level]) -> Iterator[Section]:
    """Yield the tenants and the full nodes of each level."""
    rows = [
        (
            level.level,
            len(level.tenants),
            _name(problem.tenant_names, level.tenants),
            len(level.nodes),
            _name_full(problem, content, level),
        )
        for level in levels[:MOST_LEVELS]
    ]
    if rows:
        columns = ["level", "tenants", "such_as", "full_nodes", "these_nodes"]
        yield Section(
            title="Levels",
            frame=pd.DataFrame(rows, columns=columns),
            note="no plan with these replicas serves a tenant of a level more without serving one below "
            "less: " + ("linear programs" if problem.capacity.shape[1] > 1 else "minimum cuts"),
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
