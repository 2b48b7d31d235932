"""What limits distribution trees: full links, the upgrade that pays most, the loss that hurts most."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.system import Decided, Explanation, Section
from planner_models.livevideo import dns
from planner_models.livevideo.adjust import without
from planner_models.livevideo.check import delivered
from planner_models.livevideo.columns import Priced
from planner_models.livevideo.measure import OBJECTIVE, measure
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, diff, moved_objects

SHOWN: Final = 10


def explain(
    problem: LiveVideo,
    decided: Decided,
    *,
    candidates: Annotated[
        int, Field(ge=0, description="most upgrades, price changes and losses, each, that are solved for")
    ] = 5,
    upgrade: Annotated[
        float, Field(gt=0, description="what an upgrade adds, as a share of the link's capacity")
    ] = 1.0,
    discount: Annotated[
        float, Field(gt=0, le=1, description="what a price change takes off, as a share of a link's cost")
    ] = 0.5,
    previous: Trees | None = None,
    options: Options = Options(),
) -> Explanation:
    """Full links and their prices; upgrades, price changes and losses verified by deciding again; what moved.

    Prices are those at which the bound was proven; designs without prices are asked by how full
    their links are. The losses tried are the clusters that carry most, and the fullest link; the price
    changes, the links on which most is spent. An upgrade is worth its price times what it adds at
    first, and ever less after; a lower cost is worth at least what the plan as it is saves. What is
    promised and what is gained stand side by side. Decisions stop at a gap: a change smaller than that
    gap says nothing, and is so marked.

    previous  the plan to compare to; default: a content delivery network with DNS answers of 30 seconds
    """
    plan: Trees = decided.decision.plan  # type: ignore[assignment]
    load = delivered(problem, plan).load_mbps
    price = _prices(problem, decided)
    limits, busiest, sentences = _limits(problem, load, price)
    again = _Again(problem, decided, options)
    upgrades, told = _upgrades(again, busiest[:candidates], upgrade, price)
    costs, more = _costs(again, load, candidates, discount)
    sections = [limits, upgrades, costs]
    sentences += [*told, *more]

    losses = []
    for kind, name in _weakest(problem, load)[:candidates]:
        try:
            less = without(problem, links=(name,)) if kind == "link" else without(problem, clusters=(name,))
        except InputError:
            losses.append((kind, name, -again.worth))  # nothing is left that could be served
            continue
        losses.append((kind, name, again.gained(less)))
    sections.append(
        Section(
            title="Losses",
            frame=pd.DataFrame(losses, columns=["what", "name", "gained"]),
            note="if it fails, by deciding again",
        )
    )
    if losses:
        worst = min(losses, key=lambda row: row[2])
        sentences.append(f"Losing {worst[0]} {worst[1]} hurts most of the losses tried: {worst[2]:,.6g}")
    before, name = previous, "the previous plan"
    if before is None:
        before, name = dns.distribute(problem).plan, "a CDN with DNS answers of 30 s"
    if before is not None:
        moved, changes = moved_objects(before, plan), diff(before, plan)
        sections.append(Section(title=f"Trees that differ from {name}", frame=moved.head(SHOWN)))
        sentences.append(
            f"Against {name}: {len(moved)} trees of objects that both carry differ, "
            f"{int((changes['change'] == '+').sum())} links gained, "
            f"{int((changes['change'] == '-').sum())} lost"
        )
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


class _Again:
    """The same design on changed problems.

    worth  of the plan that is explained
    noise  gap of that plan: gains below it may come from deciding anew, not from the change
    """

    def __init__(self, problem: LiveVideo, decided: Decided, options: Options) -> None:
        self.problem, self.decided, self.options = problem, decided, options
        self.worth = measure(problem, decided.decision.plan, None)[OBJECTIVE] or 0.0  # type: ignore[arg-type]
        self.noise = abs(self.worth) * max(decided.decision.proof.gap or 0.0, 1e-9)

    def gained(self, problem: LiveVideo) -> float:
        """What the plan on another problem is worth more."""
        given: dict[str, Any] = dict(self.decided.parameters)
        before = self.decided.decision if isinstance(self.decided.decision, Priced) else None
        plan = self.decided.design.decide(problem, options=self.options, previous=before, **given).plan
        return (0.0 if plan is None else (measure(problem, plan, None)[OBJECTIVE] or 0.0)) - self.worth

    def with_links(self, column: str, values: np.ndarray) -> float:
        """What the plan gains if the links have other values in a column."""
        return self.gained(replace(self.problem, links=self.problem.links.assign(**{column: values})))

    def doubt(self, gained: float) -> str:
        """Words to add to a gain that says little."""
        return "" if gained > self.noise else ", which is less than the gap of the plan"


def _upgrades(
    again: _Again, links: list[int], upgrade: float, price: np.ndarray | None
) -> tuple[Section, list[str]]:
    """What more capacity of each link gains."""
    labels = again.problem.link_labels
    rows = []
    for link in links:
        capacity = again.problem.capacity_mbps.copy()
        added = upgrade * capacity[link]
        capacity[link] += added
        gained = again.with_links("capacity_mbps", capacity)
        promised = price[link] * added if price is not None else None
        rows.append((labels[link], added, promised, gained, gained > again.noise))
    rows.sort(key=lambda row: -row[3])
    section = Section(
        title="Upgrades",
        frame=pd.DataFrame(rows, columns=["link", "added_mbps", "promised", "gained", "clear"]),
        units={"added_mbps": "Mbit/s"},
        note="promised: price times what is added; gained: by deciding again; clear: beyond the gap",
    )
    if not rows:
        return section, []
    name, added, _, gained, _ = rows[0]
    sentences = [
        f"{name} with {added:g} Mbit/s more gains most of the upgrades tried: {gained:,.6g}"
        + again.doubt(gained)
    ]
    if worth := [f"{row[0]} ({row[3]:,.4g})" for row in rows if row[4]]:
        sentences.append("Links worth upgrading, and what each gains alone: " + ", ".join(worth))
    return section, sentences


def _costs(again: _Again, load: np.ndarray, candidates: int, discount: float) -> tuple[Section, list[str]]:
    """What lower costs of the links on which most is spent gain."""
    problem = again.problem
    spent = problem.cost_weight * problem.cost * load
    order = np.argsort(-spent, kind="stable")[:candidates]
    rows = []
    for link in order[spent[order] > 0].tolist():
        cost = problem.cost.copy()
        cost[link] *= 1 - discount
        gained = again.with_links("cost", cost)
        terms = (float(problem.cost[link]), float(cost[link]), float(discount * spent[link]))
        rows.append((problem.link_labels[link], *terms, gained, gained > again.noise))
    rows.sort(key=lambda row: -row[4])
    section = Section(
        title="Price changes",
        frame=pd.DataFrame(rows, columns=["link", "cost", "cost_then", "promised", "gained", "clear"]),
        units={"cost": "per Mbit/s", "cost_then": "per Mbit/s"},
        note="promised: what the plan as it is saves; gained: by deciding again; clear: beyond the gap",
    )
    if not rows:
        return section, []
    name, now, then, _, gained, _ = rows[0]
    return section, [
        f"{name} at {then:g} instead of {now:g} gains most of the price changes tried: {gained:,.6g}"
        + again.doubt(gained)
    ]


def _prices(problem: LiveVideo, decided: Decided) -> np.ndarray | None:
    """(L,) objective per Mbit/s of each link's capacity; None where the design knows no prices."""
    if not isinstance(decided.decision, Priced):
        return None
    known = decided.decision.prices
    return np.array([known.get((label, 0.0), 0.0) for label in problem.link_labels])


def _limits(
    problem: LiveVideo, load: np.ndarray, price: np.ndarray | None
) -> tuple[Section, list[int], list[str]]:
    share = load / problem.capacity_mbps
    key = share if price is None else price * problem.capacity_mbps
    order = np.argsort(-key, kind="stable")
    order = order[key[order] > 0]
    shown = order[:SHOWN]
    frame = pd.DataFrame(
        {
            "link": [problem.link_labels[link] for link in shown],
            "load_mbps": load[shown],
            "capacity_mbps": problem.capacity_mbps[shown],
            "utilization": share[shown],
        }
    )
    if price is not None:
        frame["price_per_mbps"] = price[shown]
    tight = int((share > 0.98).sum())
    where = [
        problem.tiers[level] for level in sorted(set(problem.level[problem.tail[share > 0.98]].tolist()))
    ]
    sentence = f"{tight} of {len(load)} links are full to 98%" + (
        f", out of tier {' and '.join(where)}" if where else ""
    )
    section = Section(
        title="Links that limit",
        frame=frame,
        units={"load_mbps": "Mbit/s", "capacity_mbps": "Mbit/s", "price_per_mbps": "per Mbit/s"},
        note="price: what one Mbit/s more is worth, at first" if price is not None else "",
    )
    return section, [int(link) for link in order], [sentence]


def _weakest(problem: LiveVideo, load: np.ndarray) -> list[tuple[str, str]]:
    """The clusters that send most, by tier in turn, and the link that carries most."""
    sent = np.bincount(problem.tail, weights=load, minlength=len(problem.clusters))
    names = problem.clusters["cluster"]
    found = [("link", problem.link_labels[int(np.argmax(load))])]
    for step in range(len(problem.tiers) - 1):
        at = np.flatnonzero(problem.level == step)
        top = at[np.argsort(-sent[at], kind="stable")[:2]]
        found += [("cluster", str(names.iloc[cluster])) for cluster in top.tolist() if len(at) > 1]
    return found
