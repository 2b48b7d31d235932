"""The tree of sites as arrays, with failures that several sites share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.units import MONTH_S
from planner_models.membership.problem.schema import KINDS

MONTHS_PER_YEAR: Final = 365 / 30


def unavailability(fails_per_month: Floats, repair_s: Floats) -> Floats:
    """Return the share of time that is down with failures per month of operation, and a time to repair."""
    down = fails_per_month * repair_s
    return np.asarray(down / (MONTH_S + down))


@dataclass(frozen=True, kw_only=True, eq=False)
class SiteTree:
    """Sites, each after the one that it is in.

    parent      (S,) row of the site above; -1 without
    kind        (S,) number in `KINDS`
    rate        (S,) failures in a month
    down        (S,) share of time that the site itself is down
    repair_s    (S,) time that a failure lasts, s
    capacity    (S,) members that it can have; 0 for sites with others in them
    risk_down   (R,) share of time that a shared risk has struck
    risk_rate   (R,) events in a month
    risk_repair_s  (R,) time that one lasts, s
    risk_sites  (R, S) whether it fails a site
    """

    parent: Ints
    kind: Ints
    rate: Floats
    down: Floats
    repair_s: Floats
    capacity: Ints
    risk_down: Floats
    risk_rate: Floats
    risk_repair_s: Floats
    risk_sites: Bools

    @cached_property
    def children(self) -> list[list[int]]:
        """(S + 1) rows of the sites in each; the last one has those without a site above."""
        rows: list[list[int]] = [[] for _ in range(len(self.parent) + 1)]
        for site, above in enumerate(self.parent.tolist()):
            rows[above].append(site)
        return rows

    @cached_property
    def leaves(self) -> Ints:
        """Rows of the sites without others in them."""
        return np.array([s for s in range(len(self.parent)) if not self.children[s]], dtype=np.int64)

    @cached_property
    def paths(self) -> list[tuple[int, ...]]:
        """(S) each site and those above it, from below."""
        paths: list[tuple[int, ...]] = [()] * len(self.parent)
        for site in self.order:
            above = int(self.parent[site])
            paths[site] = (site,) if above < 0 else (site, *paths[above])
        return paths

    @cached_property
    def order(self) -> list[int]:
        """Rows of the sites, each after the one that it is in."""
        rows, stack = [], list(reversed(self.children[-1]))
        while stack:
            site = stack.pop()
            rows.append(site)
            stack += reversed(self.children[site])
        return rows

    @cached_property
    def leaf_rate(self) -> Floats:
        """(S,) failures in a month of a member at a site, by all sites above it and all risks."""
        of_site = self.rate + self.risk_rate @ self.risk_sites
        return np.array([of_site[list(path)].sum() for path in self.paths])

    @cached_property
    def is_host(self) -> Bools:
        """(S,) whether a site is a host: its failures stop processes, and do not cut them off."""
        return np.asarray(self.kind == KINDS.index("host"))
