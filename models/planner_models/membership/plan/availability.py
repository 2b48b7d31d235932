"""Exact distribution of the members and managers that are up: convolution up the tree of sites.

Members of different hosts fail separately, those below a site that fails all at once. Events that several
sites share are conditioned on: their tables have an axis more, from the sites that they fail up to the site
above all of them, where it is summed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.errors import InputError
from planner_models.membership.problem.tree import SiteTree

MAX_RISKS: Final = 12
"""Shared risks that a table can be conditioned on at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveTable:
    """Probabilities of live members and managers, for K alternatives at once.

    risks  the shared risks that it is conditioned on, one axis of length 2 (up, struck) for each
    table  (K, 2, ..., 2, N + 1, G + 1) of each number of live members and live managers
    """

    risks: tuple[int, ...]
    table: Floats

    def take(self, rows: Ints) -> LiveTable:
        """Return some of the alternatives."""
        return LiveTable(risks=self.risks, table=self.table[rows])

    def with_axes(self, risks: tuple[int, ...]) -> Floats:
        """Return the table with an axis for each of these risks; of length 1 for those that it has not."""
        size = len(self.table)
        axes = tuple(2 if risk in self.risks else 1 for risk in risks)
        return self.table.reshape(size, *axes, *self.table.shape[-2:])


def none_live(members: int, managers: int) -> LiveTable:
    """Return the table of a set without members, for up to these numbers."""
    table = np.zeros((1, members + 1, managers + 1))
    table[0, 0, 0] = 1.0
    return LiveTable(risks=(), table=table)


def convolve(first: LiveTable, other: LiveTable, limits: tuple[int, int] | None = None) -> LiveTable:
    """Return the table of two sets together, alternative by alternative; one may have a single one.

    limits  the largest numbers of members and managers in `other`, beyond which its table is 0
    """
    risks = tuple(sorted({*first.risks, *other.risks}))
    table, weights = first.with_axes(risks), other.with_axes(risks)
    shape = np.broadcast_shapes(table.shape[:-2], weights.shape[:-2])
    members, managers = table.shape[-2] - 1, table.shape[-1] - 1
    result = np.zeros((*shape, members + 1, managers + 1))
    upper = (members, managers) if limits is None else limits
    for i in range(min(upper[0], members) + 1):
        for j in range(min(upper[1], managers) + 1):
            weight = weights[..., i : i + 1, j : j + 1]
            result[..., i:, j:] += table[..., : members + 1 - i, : managers + 1 - j] * weight
    return LiveTable(risks=risks, table=result)


class RiskScope:
    """The risks that strike several of the sites in use, and the site above all that each one fails.

    up       (S,) probability that a site is up by itself; 1 for rows of hosts, which fail separately
    by_risk  (S,) probability that no risk strikes that fails only this one of the sites in use
    """

    def __init__(self, tree: SiteTree, used: Bools, always_up: Bools | None = None) -> None:
        """Find the risks of sites in use.

        used       (S,) whether members may be at a site or below it
        always_up  (S,) sites that never fail by themselves; None: none
        """
        is_sure = tree.is_host if always_up is None else tree.is_host | always_up
        self.up = np.where(is_sure, 1.0, 1.0 - tree.down)
        self.by_risk = np.ones(len(tree.parent))
        self.at_site: dict[int, list[int]] = {}
        self.closed_at: dict[int, list[int]] = {}
        self.down = tree.risk_down
        for risk in range(len(tree.risk_down)):
            sites = np.flatnonzero(tree.risk_sites[risk] & used).tolist()
            if len(sites) == 1:
                self.by_risk[sites[0]] *= 1.0 - tree.risk_down[risk]
            elif sites and tree.risk_down[risk] > 0:
                for site in sites:
                    self.at_site.setdefault(site, []).append(risk)
                common = set.intersection(*(set(tree.paths[site]) for site in sites))
                above = next((site for site in tree.paths[sites[0]] if site in common), -1)
                self.closed_at.setdefault(above, []).append(risk)

    def pass_up(self, site: int, live: LiveTable) -> LiveTable:
        """Return the table of a site with its own failures: none of its members is up while it is down.

        raises  InputError where too many risks are open at once
        """
        risks = tuple(sorted({*live.risks, *self.at_site.get(site, [])}))
        if len(risks) > MAX_RISKS:
            raise InputError(
                f"shared_risks: {len(risks)} risks fail sites in different parts of the tree; at most "
                f"{MAX_RISKS} can be considered together"
            )
        table = live.with_axes(risks)
        up = np.full((1, *(1 for _ in risks), 1, 1), self.up[site] * self.by_risk[site])
        for risk in self.at_site.get(site, []):
            axis = [1] * up.ndim
            axis[1 + risks.index(risk)] = 2
            up = up * np.array([1.0, 0.0]).reshape(axis)
        result = table * up
        result[..., 0, 0] += (1.0 - up)[..., 0, 0]
        return self.close(site, LiveTable(risks=risks, table=result))

    def close(self, site: int, live: LiveTable) -> LiveTable:
        """Return the table with the risks summed that no site outside is failed by; -1: above all sites."""
        for risk in self.closed_at.get(site, []):
            if risk not in live.risks:
                continue
            axis = 1 + live.risks.index(risk)
            up, struck = (np.take(live.table, state, axis=axis) for state in (0, 1))
            remaining = tuple(other for other in live.risks if other != risk)
            share = self.down[risk]
            live = LiveTable(risks=remaining, table=(1.0 - share) * up + share * struck)
        return live


def used_sites(tree: SiteTree, leaves: Mapping[int, int]) -> Bools:
    """Return whether each site, (S,), is one of some leaves or above it."""
    used = np.zeros(len(tree.parent), dtype=bool)
    for leaf, count in leaves.items():
        if count:
            used[list(tree.paths[leaf])] = True
    return used


def live_distribution(
    tree: SiteTree,
    members: Mapping[int, int],
    managers: Mapping[int, int] | None = None,
    *,
    always_up: Bools | None = None,
) -> Floats:
    """Return the probability of each number of live members and live managers, (N + 1, G + 1).

    members    number of members by leaf; those of a row of hosts are on a host each
    managers   the same of managers, on hosts of their own
    always_up  (S,) sites that never fail by themselves; None: none
    """
    managers = managers or {}
    used = used_sites(tree, members) | used_sites(tree, managers)
    scope = RiskScope(tree, used, always_up)
    sizes = sum(members.values()), sum(managers.values())

    def live_below(site: int) -> LiveTable:
        live = none_live(*sizes)
        if not tree.children[site]:
            return live_at_leaf(tree, scope, site, (members.get(site, 0), managers.get(site, 0)), sizes)
        for child in tree.children[site]:
            if used[child]:
                live = convolve(live, live_below(child))
        return scope.pass_up(site, live)

    live = none_live(*sizes)
    for site in tree.children[-1]:
        if used[site]:
            live = convolve(live, live_below(site))
    return np.asarray(scope.close(-1, live).table[0])


def live_at_leaf(
    tree: SiteTree, scope: RiskScope, leaf: int, counts: tuple[int, int], sizes: tuple[int, int]
) -> LiveTable:
    """Return the table of members and managers at one leaf: a host each, or all in one site.

    A risk that fails a row of hosts fails all of them.
    """
    live = none_live(*sizes)
    if not tree.is_host[leaf]:
        table = np.zeros_like(live.table)
        table[0, counts[0], counts[1]] = 1.0
        return scope.pass_up(leaf, LiveTable(risks=(), table=table))
    up = 1.0 - tree.down[leaf]
    for role, count in enumerate(counts):
        single = np.zeros_like(live.table)
        single[0, 0, 0] = 1.0 - up
        for _ in range(count):
            single[(0, 1, 0) if role == 0 else (0, 0, 1)] = up
            live = convolve(live, LiveTable(risks=(), table=single), (1 - role, role))
    return scope.pass_up(leaf, live)
