"""Exhaustive enumeration of failures, by code of its own: the oracle of availability and of placement."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pandas as pd

from planner_models.membership import Membership

MONTH_S = 30 * 86_400.0


def share_down(fails_per_month: float, repair_s: float) -> float:
    return fails_per_month * repair_s / (MONTH_S + fails_per_month * repair_s)


def live_probabilities(problem: Membership, members: Mapping[str, int]) -> dict[int, float]:
    """Return the probability of each number of live members, over all combinations of failures."""
    sites = problem.sites.set_index("site")
    risks = {} if problem.shared_risks is None else dict(list(problem.shared_risks.groupby("risk")))
    elements: list[tuple[str, str, float]] = []
    for name, row in sites.iterrows():
        down = share_down(row["fails_per_month"], row["repair_s"])
        if row["kind"] == "host":
            elements += [("host", f"{name}/{unit}", down) for unit in range(members.get(str(name), 0))]
        else:
            elements.append(("site", str(name), down))
    for name, rows in risks.items():
        first = rows.iloc[0]
        elements.append(("risk", str(name), share_down(first["fails_per_month"], first["repair_s"])))
    result: dict[int, float] = {}
    for failed, weight in _states(elements):
        lost = {name for kind, name in failed if kind == "site"}
        for kind, name in failed:
            lost |= set(risks[name]["site"].astype(str)) if kind == "risk" else set()
        live = 0
        for name, count in members.items():
            if any(site in lost for site in _path(sites, name)):
                continue
            is_host = sites.loc[name, "kind"] == "host"
            stopped = sum(("host", f"{name}/{unit}") in failed for unit in range(count)) if is_host else 0
            live += count - stopped
        result[live] = result.get(live, 0.0) + weight
    return result


def _states(elements: list[tuple[str, str, float]]) -> Iterator[tuple[set[tuple[str, str]], float]]:
    for state in itertools.product([False, True], repeat=len(elements)):
        weight = 1.0
        for is_down, (_, _, down) in zip(state, elements, strict=True):
            weight *= down if is_down else 1 - down
        if weight > 0:
            pairs = zip(state, elements, strict=True)
            yield {(kind, name) for is_down, (kind, name, _) in pairs if is_down}, weight


def _path(sites: pd.DataFrame, name: str) -> Iterator[str]:
    while name:
        yield name
        name = str(sites.loc[name, "parent"])


def placements(problem: Membership, size: int) -> Iterator[dict[str, int]]:
    """Yield all numbers of members at sites that can have them."""
    leaves = [problem.site_names[leaf] for leaf in problem.leaves.tolist()]
    limits = [min(int(problem.tree.capacity[leaf]), size) for leaf in problem.leaves.tolist()]
    for counts in itertools.product(*(range(limit + 1) for limit in limits)):
        if sum(counts) == size:
            yield {name: count for name, count in zip(leaves, counts, strict=True) if count}
