"""What-if analysis of distribution trees: full links, upgrades, price changes, failures and changed trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization, Trial
from planner.formatting import agree, amount_or_number, counted, counted_of, number
from planner.options import Options
from planner_models.livevideo.plan.check import Delivery, compute_delivery
from planner_models.livevideo.plan.metrics import METRICS, OBJECTIVE, measure
from planner_models.livevideo.plan.plan import Trees, diff, moved_objects
from planner_models.livevideo.plan.presentation import find_dual_prices
from planner_models.livevideo.problem.adjustments import remove_failed
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import MOST_MBPS

SHOWN_ROWS: Final = 10
FULL: Final = 0.98  # utilization from which a link counts as full


def explain(
    problem: LiveVideo,
    decided: Decided,
    *,
    candidates: Annotated[
        int, Field(ge=0, description="largest number of upgrades, price changes and failures, each, to solve")
    ] = 5,
    upgrade: Annotated[
        float, Field(gt=0, description="capacity that an upgrade adds, as a share of the link's capacity")
    ] = 1.0,
    discount: Annotated[
        float, Field(gt=0, le=1, description="reduction of a price change, as a share of the link's cost")
    ] = 0.5,
    options: Options = Options(),
) -> Explanation:
    """Explain a plan by its full links and by solving changed problems again.

    Dual prices are those of the bound; without them links are ranked by utilization. Price changes are
    tried on the links with the highest cost of traffic, failures of the clusters that send most and of
    the link with the most load. The promised gain stands beside the gain: of an upgrade, the dual price
    times the added capacity, which later units do not reach; of a price change, the saving of the plan
    as it is.
    """
    plan: Trees = decided.decision.plan  # type: ignore[assignment]
    load = (delivery := compute_delivery(problem, plan)).load_mbps
    price = find_dual_prices(problem, decided)
    again: Reoptimization[LiveVideo] = Reoptimization(
        decided,
        metric=next(metric for metric in METRICS if metric.name == OBJECTIVE),
        measure=measure,
        options=options,
        warm=price is not None,
    )
    links, ranked, sentence = _report_full_links(problem, load, price)
    limits, sentences = [links], [sentence]
    if problem.is_unicast:
        groups, sentence = report_last_hop(problem, delivery)
        limits.append(groups)
        sentences.append(sentence)
    if problem.has_bills:
        bills, sentence = report_bills(problem, delivery)
        limits.append(bills)
        sentences.append(sentence)
    upgrades = again.solve_all(_list_upgrades(problem, ranked[:candidates], upgrade, price))
    costs = again.solve_all(_list_price_changes(problem, load, discount, candidates))
    caps = again.solve_all(_list_raised_caps(problem, load, upgrade))
    failures = again.solve_all(_list_failures(problem, load), candidates)
    sections = [
        *limits,
        again.section(upgrades, title="Upgrades", units={"added_mbps": "Mbit/s"}),
        again.section(costs, title="Price changes", units=dict.fromkeys(("cost", "new_cost"), "per Mbit/s")),
        again.section(failures, title="Failures"),
    ]
    if caps:
        sections.append(again.section(caps, title="Caps", units={"added_mbps": "Mbit/s"}))
        sentences.append(again.sentence(caps, what="higher cap"))
    if upgrades:
        sentences.append(again.sentence(upgrades, what="upgrade"))
    if costs:
        sentences.append(again.sentence(costs, what="price change"))
    if failures:
        sentences.append(_say_worst(again, failures))
    if decided.baseline is not None:
        section, sentence = _compare_trees(decided.baseline, plan, decided.baseline_name)
        sections.append(section)
        sentences.append(sentence)
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _say_worst(again: Reoptimization[LiveVideo], failures: Sequence[Trial[LiveVideo]]) -> str:
    """Return a sentence on the failure that loses most, the last one."""
    worst = failures[-1]
    loss = amount_or_number(-(worst.gain or 0.0), again.metric.unit)
    tried = counted(len(failures), "failures")
    return f"Of {tried} tried, {worst.change.name} loses most: {loss} of {again.label}."


def report_last_hop(problem: LiveVideo, delivery: Delivery) -> tuple[Section, str]:
    """Return the groups with the most unserved viewers by a unicast last hop, and a sentence on requests."""
    count = len(problem.clusters)
    clients = np.bincount(problem.group, problem.clients, minlength=count)
    served = np.bincount(problem.group, delivery.clients, minlength=count)
    last = np.flatnonzero(problem.is_last_hop)
    load = np.bincount(problem.head[last], delivery.load_mbps[last], minlength=count)
    capacity = np.bincount(problem.head[last], problem.capacity_mbps[last], minlength=count)
    viewers = problem.is_last_hop[delivery.link]
    _, edges = np.unique(
        delivery.object[viewers] * count + problem.head[delivery.link[viewers]], return_counts=True
    )
    order = np.argsort(served - clients, kind="stable")
    shown = order[clients[order] > 0][:SHOWN_ROWS]
    frame = pd.DataFrame(
        {
            "group": problem.clusters["cluster"].astype(str).to_numpy()[shown],
            "clients": clients[shown],
            "unserved_clients": (clients - served)[shown],
            "load_mbps": load[shown],
            "capacity_mbps": capacity[shown],
        }
    )
    partial = int(((delivery.clients > 0) & (delivery.clients < problem.clients)).sum())
    sentence = (
        "Each viewer takes a stream of its own over the last hop: "
        f"{counted_of(partial, len(problem.requests), 'requests', 'are')} served in part, "
        f"{counted(int((edges > 1).sum()), 'requests', 'are')} served by several edges."
    )
    section = Section(
        title="Groups by unserved clients",
        frame=frame,
        units={"load_mbps": "Mbit/s", "capacity_mbps": "Mbit/s"},
        note="load and capacity of the links into each group",
    )
    return section, sentence


def report_bills(problem: LiveVideo, delivery: Delivery) -> tuple[Section, str]:
    """Return the bills of links with their increases, and a sentence on levels and caps."""
    tariffs = problem.tariffs
    load = tariffs.load(delivery.load_mbps)
    added = tariffs.added(load)
    frame = pd.DataFrame(
        {
            "bill": tariffs.names,
            "load_mbps": load,
            "free_mbps": tariffs.low,
            "unbilled_from_mbps": np.where(np.isfinite(tariffs.high), tariffs.high, np.nan),
            "cap_mbps": np.where(np.isfinite(tariffs.cap_mbps), tariffs.cap_mbps, np.nan),
            "price": tariffs.price,
            "added": added,
            "bill_of_month": tariffs.total(load),
        }
    )
    free, unbilled = load <= tariffs.low, load > tariffs.high
    full = load >= FULL * tariffs.cap_mbps
    same, outside, capped = int(free.sum()), int((unbilled & ~free).sum()), int(full.sum())
    sentence = (
        f"{counted_of(same, len(load), 'bills')} {'stays as it is' if same == 1 else 'stay as they are'}, "
        f"{outside:,} {agree(outside, 'leave')} these windows unbilled, "
        f"{capped:,} {agree(capped, 'have')} a full cap; {number(float(added.sum()))} added to bills."
    )
    section = Section(
        title="Bills",
        frame=frame,
        units=dict.fromkeys(("load_mbps", "free_mbps", "unbilled_from_mbps", "cap_mbps"), "Mbit/s")
        | {"price": "per Mbit/s"},
        note="free: load that adds nothing, since the month's other windows are billed at that level",
    )
    return section, sentence


def _list_raised_caps(problem: LiveVideo, load: Floats, upgrade: float) -> Iterator[Change[LiveVideo]]:
    """Yield higher caps, up to the largest one, of the bills whose cap is full."""
    tariffs = problem.tariffs
    full = np.flatnonzero(tariffs.load(load) >= FULL * tariffs.cap_mbps)
    for bill in full.tolist():
        cap_mbps = float(tariffs.cap_mbps[bill])
        added = min(upgrade * cap_mbps, MOST_MBPS - cap_mbps)
        if added <= 0:  # of nothing, or beyond the largest cap
            continue
        caps = problem.bills["cap_mbps"].to_numpy(float).copy()
        caps[bill] += added
        yield Change(
            name=f"{tariffs.names[bill]} with {added:g} Mbit/s more",
            problem=replace(problem, bills=problem.bills.assign(cap_mbps=caps)),
            facts={"added_mbps": added},
        )


def _compare_trees(baseline: Trees, plan: Trees, name: str) -> tuple[Section, str]:
    """Return the trees that differ from those of another plan, and a sentence about them."""
    moved, changes = moved_objects(baseline, plan), diff(baseline, plan)
    sentence = (
        f"Compared to {name}, "
        f"{counted(len(moved), 'trees of objects in both plans', 'differ')}; "
        f"{counted(int((changes['change'] == '+').sum()), 'links of trees', 'are')} new, "
        f"{int((changes['change'] == '-').sum())} gone."
    )
    return Section(title=f"Trees that differ from {name}", frame=moved.head(SHOWN_ROWS)), sentence


def _report_full_links(
    problem: LiveVideo, load: Floats, price: Floats | None
) -> tuple[Section, list[int], str]:
    """Return the table of limiting links, all links that limit in descending order, and a sentence."""
    utilization = problem.utilization(load)
    rank = utilization if price is None else price * problem.capacity_mbps
    order = np.argsort(-rank, kind="stable")
    order = order[rank[order] > 0]
    shown = order[:SHOWN_ROWS]
    frame = pd.DataFrame(
        {
            "link": [problem.link_labels[link] for link in shown],
            "load_mbps": load[shown],
            "capacity_mbps": problem.capacity_mbps[shown],
            "utilization": utilization[shown],
        }
    )
    if price is not None:
        frame["dual_price_per_mbps"] = price[shown]
    is_full = utilization > FULL
    tiers = [problem.tiers[level] for level in np.unique(problem.level[problem.tail[is_full]])]
    sentence = f"{counted_of(int(is_full.sum()), len(load), 'links', 'are')} at least {FULL:.0%} full" + (
        f", out of tier {' and '.join(tiers)}." if tiers else "."
    )
    section = Section(
        title="Limiting links",
        frame=frame,
        units={"load_mbps": "Mbit/s", "capacity_mbps": "Mbit/s", "dual_price_per_mbps": "per Mbit/s"},
        note="dual price: gain of the first Mbit/s more" if price is not None else "",
    )
    return section, order.tolist(), sentence


def _change_link(problem: LiveVideo, link: int, column: str, value: float) -> LiveVideo:
    values = problem.links[column].to_numpy(float).copy()
    values[link] = value
    return replace(problem, links=problem.links.assign(**{column: values}))


def _list_upgrades(
    problem: LiveVideo, links: list[int], upgrade: float, price: Floats | None
) -> Iterator[Change[LiveVideo]]:
    for link in links:
        capacity = float(problem.capacity_mbps[link])
        added = upgrade * capacity
        promised = {} if price is None else {"promised_gain": float(price[link]) * added}
        yield Change(
            name=f"{problem.link_labels[link]} with {added:g} Mbit/s more",
            problem=_change_link(problem, link, "capacity_mbps", capacity + added),
            facts={"added_mbps": added, **promised},
        )


def _list_price_changes(
    problem: LiveVideo, load: Floats, discount: float, count: int
) -> Iterator[Change[LiveVideo]]:
    """Yield lower costs of the links with the highest cost of traffic."""
    spent = problem.cost_weight * problem.cost * load
    order = np.argsort(-spent, kind="stable")[:count]
    for link in order[spent[order] > 0].tolist():
        cost = float(problem.cost[link])
        new_cost = cost * (1 - discount)
        yield Change(
            name=f"{problem.link_labels[link]} at cost {new_cost:g} instead of {cost:g}",
            problem=_change_link(problem, link, "cost", new_cost),
            facts={"cost": cost, "new_cost": new_cost, "promised_gain": float(discount * spent[link])},
        )


def _list_failures(problem: LiveVideo, load: Floats) -> Iterator[Change[LiveVideo]]:
    """Yield failures of the link with the most load, and of the two clusters of each tier that send most."""
    sent = np.bincount(problem.tail, weights=load, minlength=len(problem.clusters))
    names = problem.clusters["cluster"]
    failures = [("link", problem.link_labels[int(np.argmax(load))])]
    for step in range(problem.group_level):
        clusters = np.flatnonzero(problem.level == step)
        if len(clusters) > 1:
            top = clusters[np.argsort(-sent[clusters], kind="stable")[:2]]
            failures += [("cluster", str(names.iloc[cluster])) for cluster in top.tolist()]
    for kind, name in failures:
        failed = remove_failed(problem, **{f"{kind}s": (name,)})
        yield Change(name=f"the failure of {kind} {name}", problem=failed)
