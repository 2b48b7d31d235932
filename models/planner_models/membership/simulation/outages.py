"""Outages in time: drawn from failures, or read from a table of events, as intervals of members.

Each member has intervals in which it is down: those of its host, of all sites above it, and of risks that
strike one of them. Those that overlap are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.units import MONTH_S
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.tree import SiteTree

MARGIN: Final = 6.0
"""Standard deviations by which more outages are drawn than are expected."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outages:
    """Intervals of outages, ascending by owner and start.

    owner       (I,) number of what is down
    start, end  (I,) seconds from the beginning
    """

    owner: Ints
    start: Floats
    end: Floats

    def __len__(self) -> int:
        return len(self.owner)

    @classmethod
    def none(cls) -> Outages:
        """Return no outages."""
        return cls(owner=np.zeros(0, dtype=np.int64), start=np.zeros(0), end=np.zeros(0))

    def owned_by(self, owners: Ints) -> Outages:
        """Return the outages of each of some owners, which then have their positions as numbers."""
        if len(owners) and (np.diff(owners) == 1).all():
            return self._owned_from(int(owners[0]), int(owners[-1]))
        first = np.searchsorted(self.owner, owners, side="left")
        count = np.searchsorted(self.owner, owners, side="right") - first
        rows = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        return Outages(
            owner=np.repeat(np.arange(len(owners)), count), start=self.start[rows], end=self.end[rows]
        )

    def _owned_from(self, first: int, last: int) -> Outages:
        """Return the outages of owners with consecutive numbers: a view of the arrays."""
        rows = slice(*np.searchsorted(self.owner, [first, last + 1]).tolist())
        return Outages(owner=self.owner[rows] - first, start=self.start[rows], end=self.end[rows])

    def renamed(self, names: Ints) -> Outages:
        """Return the outages with other numbers of owners, not in order."""
        return Outages(owner=names[self.owner], start=self.start, end=self.end)


def draw_outages(rate: Floats, repair_s: Floats, horizon_s: float, rng: np.random.Generator) -> Outages:
    """Draw the outages of some elements: exponential times of operation, then a repair of fixed length.

    rate  failures in a month of operation
    """
    per_s = rate / MONTH_S
    mean = horizon_s * per_s
    count = np.where(rate > 0, np.ceil(mean + MARGIN * np.sqrt(mean) + MARGIN), 0).astype(np.int64)
    owner = np.repeat(np.arange(len(rate)), count)
    if not len(owner):
        return Outages.none()
    step = rng.exponential(1.0, len(owner)) / per_s[owner] + repair_s[owner]
    total = np.cumsum(step)
    before = np.concatenate([[0.0], total])[np.concatenate([[0], np.cumsum(count)[:-1]])]
    end = total - np.repeat(before, count)
    start = end - repair_s[owner]
    is_within = (start < horizon_s) & (repair_s[owner] > 0)
    return Outages(owner=owner[is_within], start=start[is_within], end=np.minimum(end[is_within], horizon_s))


def join_outages(parts: Sequence[Outages], horizon_s: float) -> Outages:
    """Return the union of outages of each owner: intervals that touch or overlap are one."""
    owner, start, end = (
        np.concatenate([getattr(outages, name) for outages in parts]) for name in ("owner", "start", "end")
    )
    if not len(owner):
        return Outages.none()
    order = np.argsort(owner + 1j * start, kind="stable")  # by owner, then start; merges sorted pieces
    owner, start, end = owner[order], start[order], end[order]
    shift = owner * (2.0 * horizon_s)
    latest = np.maximum.accumulate(end + shift) - shift
    is_first = np.ones(len(owner), dtype=bool)
    is_first[1:] = (owner[1:] != owner[:-1]) | (start[1:] > latest[:-1])
    first = np.flatnonzero(is_first)
    last = np.concatenate([first[1:] - 1, [len(owner) - 1]])
    return Outages(owner=owner[first], start=start[first], end=latest[last])


@dataclass(frozen=True, kw_only=True, eq=False)
class SiteOutages:
    """Outages of sites and risks; those of hosts are drawn for each host by itself.

    cuts   of sites that are no hosts, by row, with those of the risks that strike them
    hosts  of rows of hosts in a table of events, which take all hosts of the row down
    """

    cuts: Outages
    hosts: Outages


def draw_site_outages(tree: SiteTree, used: Bools, horizon_s: float, rng: np.random.Generator) -> SiteOutages:
    """Draw the outages of sites in use, (S,), and of the risks that strike them."""
    rate = np.where(used & ~tree.is_host, tree.rate, 0.0)
    of_sites = draw_outages(rate, tree.repair_s, horizon_s, rng)
    of_risks = draw_outages(tree.risk_rate, tree.risk_repair_s, horizon_s, rng)
    struck = [
        Outages(
            owner=np.full(len(hit), site, dtype=np.int64), start=of_risks.start[hit], end=of_risks.end[hit]
        )
        for risk in range(len(tree.risk_rate))
        for site in np.flatnonzero(tree.risk_sites[risk] & used).tolist()
        for hit in [np.flatnonzero(of_risks.owner == risk)]
    ]
    return SiteOutages(cuts=join_outages([of_sites, *struck], horizon_s), hosts=Outages.none())


def read_site_outages(problem: Membership, horizon_s: float) -> SiteOutages:
    """Return the outages of a table of events: from `down` to the next `up` of the site, or to the end."""
    intervals = {"down": [], "host": []}  # type: dict[str, list[tuple[int, float, float]]]
    for site, start, end in recorded_intervals(problem, "down", horizon_s):
        intervals["host" if problem.tree.is_host[site] else "down"].append((site, start, end))
    cuts, hosts = (
        Outages(
            owner=np.array([row[0] for row in rows], dtype=np.int64),
            start=np.array([row[1] for row in rows]),
            end=np.array([row[2] for row in rows]),
        )
        for rows in intervals.values()
    )
    return SiteOutages(cuts=join_outages([cuts], horizon_s), hosts=join_outages([hosts], horizon_s))


def recorded_intervals(problem: Membership, what: str, horizon_s: float) -> list[tuple[int, float, float]]:
    """Return site, start and end of each `down` or `pause` of the table of events, until the next `up`."""
    events = problem.events if problem.events is not None else pd.DataFrame()
    opened: dict[int, float] = {}
    intervals = []
    rows = zip(events["at_s"], events["site"].astype(str), events["what"], strict=True)
    for at_s, name, event in rows:
        site = problem.row_of(name)
        if event == what:
            opened.setdefault(site, float(at_s))
        elif event == "up" and site in opened:
            intervals.append((site, opened.pop(site), min(float(at_s), horizon_s)))
    intervals += [(site, start, horizon_s) for site, start in opened.items()]
    return sorted(interval for interval in intervals if interval[1] < interval[2])


def outages_of_members(
    tree: SiteTree,
    leaves: Ints,
    sites: SiteOutages,
    horizon_s: float,
    rng: np.random.Generator | None,
) -> tuple[Outages, Outages]:
    """Return the outages of members at leaves, (N,): all of them, and those that cut it off.

    rng  draws outages of the host of each member; None: those of the table of events
    """
    cut = join_outages(
        [
            sites.cuts.owned_by(np.array(level)).renamed(np.array(rows))
            for level, rows in _levels(tree, leaves)
        ],
        horizon_s,
    )
    if rng is None:
        stopped = sites.hosts.owned_by(leaves)
    else:
        rate = np.where(tree.is_host[leaves], tree.rate[leaves], 0.0)
        stopped = draw_outages(rate, tree.repair_s[leaves], horizon_s, rng)
    return join_outages([cut, stopped], horizon_s), cut


def _levels(tree: SiteTree, leaves: Ints) -> list[tuple[list[int], list[int]]]:
    """Return the sites above each member that are no hosts, level by level, with the members' numbers."""
    levels: dict[int, tuple[list[int], list[int]]] = {}
    for number, leaf in enumerate(leaves.tolist()):
        above = [site for site in tree.paths[leaf] if not tree.is_host[site]]
        for depth, site in enumerate(above):
            sites, rows = levels.setdefault(depth, ([], []))
            sites.append(site)
            rows.append(number)
    return list(levels.values()) or [([], [])]


def used_of(tree: SiteTree, leaves: Mapping[int, int] | Ints) -> Bools:
    """Return whether each site, (S,), is one of some leaves or above it."""
    used = np.zeros(len(tree.parent), dtype=bool)
    for leaf in leaves:
        used[list(tree.paths[int(leaf)])] = True
    return used
