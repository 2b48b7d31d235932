"""Explanation of a plan: seconds down by cause, and changes that would save some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.metrics import MONEY
from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import counted, number, percent
from planner.options import Options
from planner_models.membership.designs.counts import least_down
from planner_models.membership.designs.placement import LeaderSearch
from planner_models.membership.plan.check import ServicePlan, read_plan
from planner_models.membership.plan.epochs import cuts_without_epoch
from planner_models.membership.plan.evaluation import evaluate, watchers_of
from planner_models.membership.plan.fences import epoch_use
from planner_models.membership.plan.leaders import evaluate_long_run
from planner_models.membership.plan.metrics import measure, say_places
from planner_models.membership.plan.plan import FENCE_RULE, MAJORITY_RULE
from planner_models.membership.plan.presentation import (
    CAUSE_WORDS,
    CAUSES,
    name_empty_sites,
    next_leader,
    say_leader,
    seconds_by_kind,
)
from planner_models.membership.plan.timeline import say_cut, tabulate_cut
from planner_models.membership.problem.adjustments import adjust
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import KINDS

MAX_LEAVES: Final = 400
"""Leaves up to which the design runs again for changes that are tried."""
SAVES: Final = 0.01
"""Share of the seconds down below which a change saves nothing to speak of."""


def explain(
    problem: Membership,
    decided: Decided,
    *,
    rows: Annotated[int, Field(ge=1, description="largest number of rows of a table")] = 10,
    tried: Annotated[
        int,
        Field(ge=0, description="sites whose failures are halved, and sites that get a witness, to compare"),
    ] = 2,
    options: Options = Options(),
) -> Explanation:
    """Explain the seconds down of a plan by cause, and try other numbers of members, timeouts and sites."""
    items = read_plan(problem, decided.plan)
    worst = max(items, key=lambda item: evaluate(problem, item.service, item.placement).total)
    sentences = [_say_causes(problem, worst), _say_majority(worst), *_say_sites(problem, worst)]
    sentences += [_say_leaders(problem, worst), say_cut(problem, worst)]
    sections = [_tabulate_causes(problem, worst), _tabulate_failures(problem, worst, rows)]
    sections += [section for section in (tabulate_cut(problem, worst),) if section is not None]
    if tried and len(problem.leaves) <= MAX_LEAVES:
        trial = pd.DataFrame(
            [*_try_changes(problem, decided, worst), *_try_sites(problem, decided, worst, tried, options)],
            columns=["change", "seconds_down", "price"],
        )
        if len(trial):
            sentences.append(
                _say_trial(trial, measure(problem, decided.plan, None)["down_s_per_month"] or 0.0)
            )
            units = {"seconds_down": "s", "price": MONEY}
            sections.append(Section(title="The same with one change", frame=trial.head(rows), units=units))
    return Explanation(
        sentences=tuple(sentence for sentence in sentences if sentence),
        sections=tuple(section for section in sections if len(section.frame)),
    )


def _say_causes(problem: Membership, item: ServicePlan) -> str:
    """Return the seconds down of a service, and their largest cause."""
    parts = evaluate(problem, item.service, item.placement)
    cause = max(CAUSES, key=lambda name: float(getattr(parts, name)))
    share = float(getattr(parts, cause)) / max(parts.total, 1e-300)
    sites = _say_kind(problem, item) if cause == "no_quorum" else ""
    return (
        f"{item.service.name} has {say_places(problem, item.placement)} and is down "
        f"{number(parts.total)} s a month, {percent(min(share, 1.0))} of it by {CAUSE_WORDS[cause]}{sites}."
        if parts.total > 0
        else f"{item.service.name} has {say_places(problem, item.placement)} and is never down."
    )


def _say_kind(problem: Membership, item: ServicePlan) -> str:
    """Return the kind of site whose failures most often leave no quorum, with its name where it is one."""
    seconds = seconds_by_kind(problem, item)
    if not any(seconds.values()):
        return ""
    kind = max(seconds, key=lambda name: seconds[name])
    names = [
        problem.site_names[site]
        for site in _sites_of(problem, item)
        if KINDS[int(problem.kind[site])] == kind
    ]
    which = f"of {kind} '{names[0]}'" if len(names) == 1 else f"of {kind}s"
    return f", which failures {which} cause most often"


def _say_majority(item: ServicePlan) -> str:
    """Return that an even number of voting members is no better than one less."""
    placement = item.placement
    if placement.rule != MAJORITY_RULE or placement.size % 2 or item.service.is_byzantine:
        return ""
    return (
        f"An even number of members is useless: {counted(placement.size - 1, 'members')} tolerate as many "
        "failures."
    )


def _say_sites(problem: Membership, item: ServicePlan) -> list[str]:
    """Return the sites without which there is no quorum."""
    names = [
        f"{KINDS[int(problem.kind[site])]} '{problem.site_names[site]}'"
        for site in _sites_of(problem, item)
        if next_leader(problem, item, site) is None
    ]
    if not names:
        return ["Every single site may fail: a quorum remains."]
    shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    return [f"No quorum remains while {shown} {'is' if len(names) == 1 else 'are each'} down."]


def _say_leaders(problem: Membership, item: ServicePlan) -> str:
    """Return the seconds that failures of leaders cost in the long run, where other members lead too."""
    first = evaluate(problem, item.service, item.placement)
    later = evaluate_long_run(problem, item.service, item.placement)
    seconds = [parts.detection + parts.failover for parts in (first, later)]
    if abs(seconds[1] - seconds[0]) <= SAVES * first.total:
        return ""
    name = problem.site_names[item.placement.leader]
    return (
        f"Failures of leaders cost {number(seconds[0])} s a month if '{name}' gets the role back after each "
        f"repair, and {number(seconds[1])} s if whoever took over leads on."
    )


def _sites_of(problem: Membership, item: ServicePlan) -> list[int]:
    """Return the sites of members, and those above them."""
    sites = {site for leaf in item.placement.members for site in problem.tree.paths[leaf]}
    return sorted(sites, key=lambda site: (-int(problem.kind[site]), site))


def _tabulate_causes(problem: Membership, item: ServicePlan) -> Section:
    """Return the seconds down by cause; those without quorum by the kind of site that fails."""
    parts = evaluate(problem, item.service, item.placement)
    rows = [
        (f"{kind} failures", seconds) for kind, seconds in reversed(seconds_by_kind(problem, item).items())
    ]
    rows += [(CAUSE_WORDS[cause], float(getattr(parts, cause))) for cause in CAUSES if cause != "no_quorum"]
    frame = pd.DataFrame(rows, columns=["cause", "seconds_down"])
    return Section(
        title="Time down in a month by cause",
        frame=frame,
        units={"seconds_down": "s"},
        note="Failures of several kinds at once count for each of them.",
    )


def _tabulate_failures(problem: Membership, item: ServicePlan, rows: int) -> Section:
    """Return each site with members, and who leads while it is down."""
    table = []
    for site in _sites_of(problem, item)[:rows]:
        here = sum(
            count for leaf, count in item.placement.members.items() if site in problem.tree.paths[leaf]
        )
        table.append(
            (
                problem.site_names[site],
                KINDS[int(problem.kind[site])],
                float(here),
                say_leader(problem, item, site) or "no quorum",
            )
        )
    frame = pd.DataFrame(table, columns=["site", "kind", "members", "leader_while_it_is_down"])
    return Section(title="Who leads while a site is down", frame=frame)


def _try_changes(
    problem: Membership, decided: Decided, item: ServicePlan
) -> Iterator[tuple[str, float, float]]:
    """Yield seconds down and price with another timeout, and with two members more or fewer, placed again."""
    placement, service = item.placement, item.service
    factors = ((0.5, "half the timeout"), (2.0, "twice the timeout"))
    for factor, words in factors if watchers_of(problem, placement) else ():
        timeout = max(placement.timeout_s * factor, placement.interval_s)
        changed = replace(placement, timeout_s=timeout)
        price = float(measure(problem, decided.plan, None)["price"] or 0.0)
        yield words, evaluate(problem, service, changed).total, price
    yield from _try_epochs(problem, decided, item)
    if placement.rule != MAJORITY_RULE:
        return
    for size in (placement.size - 2, placement.size + 2):
        if size < (3 * service.faults + 1 if service.is_byzantine else 1):
            continue
        search = LeaderSearch(problem, service, size=size, value=least_down)
        result = search.run()
        if result is not None:
            yield f"{counted(size, 'members')} placed again", result.down_s, result.price


def _try_epochs(
    problem: Membership, decided: Decided, item: ServicePlan
) -> Iterator[tuple[str, float, float]]:
    """Yield seconds down and price with one more bit of epochs, where members are fenced and named."""
    naming, frame = problem.name_bits, decided.plan.naming
    if item.placement.rule != FENCE_RULE or naming is None or frame is None or not len(frame):
        return
    bits, per_cut = (int(frame[name].iloc[0]) for name in ("bits_of_epoch", "epochs_per_cut"))
    unmade = cuts_without_epoch(bits + 1, epoch_use(naming, per_cut))
    changed = replace(item.placement, unmade_cuts=unmade)
    price = float(measure(problem, decided.plan, None)["price"] or 0.0)
    yield "one more bit of epochs", evaluate(problem, item.service, changed).total, price


def _try_sites(
    problem: Membership, decided: Decided, item: ServicePlan, tried: int, options: Options
) -> Iterator[tuple[str, float, float]]:
    """Yield seconds down and price with a witness more, or half the failures of a site, decided again."""
    tree = problem.tree
    trials = [
        (f"a witness at {name}", adjust(problem, witnesses=(name,)))
        for name in name_empty_sites(problem)[:tried]
        if item.placement.rule == MAJORITY_RULE
    ]
    sites = sorted(_sites_of(problem, item), key=lambda site: -float(tree.down[site]))[:tried]
    names = [problem.site_names[site] for site in sites]
    trials += [(f"half the failures of {name}", adjust(problem, rate_sites={name: 0.5})) for name in names]
    for words, better in trials:
        decision = decided.design.run(better, options=options, parameters=decided.parameters)
        if decision.plan is not None:
            metrics = measure(better, decision.plan, None)
            yield words, metrics["down_s_per_month"] or 0.0, metrics["price"] or 0.0


def _say_trial(trial: pd.DataFrame, down_s: float) -> str:
    """Return the change that saves most."""
    first = trial.iloc[int(np.argmin(trial["seconds_down"].to_numpy(float)))]
    saved = down_s - float(first["seconds_down"])
    if saved <= SAVES * down_s:
        return "None of the changes that were tried saves more than 1% of the time down."
    return f"With {first['change']}, {number(saved)} s of {number(down_s)} s a month are saved."
