"""Sites that others can stand in for: of sites that are alike, a search of members needs only a few.

A site covers another one below the same parent where both have the same tree below, and the first is no more
often down anywhere, has as many hosts and as many leaves near the leader, and has leaves that add no more
seconds and cost no more. All members of the other one may then move to it. If a request of n members has n
sites that cover another one, one of them has no member in any plan that uses the other one, which is thus
left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.membership.plan.availability import RiskScope
from planner_models.membership.problem.tree import SiteTree

CELLS: Final = 4_000_000
"""Comparisons that are made at once."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sites below one, in order.

    number     equal for sites with the same tree below
    sites      the site itself and all in use below it
    leaves     those of them without others in them
    is_single  whether neither shared risks strike here nor the leader is here
    has_leader  whether the leader is here
    """

    number: int
    sites: list[int]
    leaves: list[int]
    is_single: bool
    has_leader: bool


@dataclass(kw_only=True, eq=False)
class Substitutes:
    """Shapes and figures of the sites in use, for one request of members.

    used      (S,) sites that may have members, or have others in them that may
    leader    leaf that must have a member; None: any
    of_leaf   (S, F) figures of leaves of which smaller is better
    size      members in all
    """

    tree: SiteTree
    scope: RiskScope
    used: Bools
    leader: int | None
    of_leaf: Floats
    size: int
    _numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    _shapes: dict[int, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._down = 1.0 - self.scope.up * self.scope.by_risk

    def shape(self, site: int) -> Shape:
        """Return the shape of a site."""
        if site not in self._shapes:
            self._shapes[site] = self._describe(site)
        return self._shapes[site]

    def _describe(self, site: int) -> Shape:
        inside = [self.shape(child) for child in self.tree.children[site] if self.used[child]]
        is_leaf = not self.tree.children[site]
        key = (-1 - int(self.tree.is_host[site]),) if is_leaf else tuple(shape.number for shape in inside)
        has_leader = site == self.leader or any(shape.has_leader for shape in inside)
        return Shape(
            number=self._numbers.setdefault(key, len(self._numbers)),
            sites=[site, *(below for shape in inside for below in shape.sites)],
            leaves=[site] if is_leaf else [leaf for shape in inside for leaf in shape.leaves],
            is_single=not has_leader
            and site not in self.scope.at_site
            and all(shape.is_single for shape in inside),
            has_leader=has_leader,
        )

    def select(self, sites: list[int]) -> list[tuple[int, bytes | None]]:
        """Return those of some sites below one parent that a best plan needs, with a key each.

        Sites with the same key have the same alternatives; those with None have others.
        """
        groups: dict[int, list[int]] = {}
        keys: dict[int, bytes | None] = {}
        for site in sites:
            shape = self.shape(site)
            if shape.has_leader:
                keys[site] = None
            else:
                groups.setdefault(shape.number, []).append(site)
        for number, group in groups.items():
            figures = self._figures(group)
            is_single = np.array([self.shape(site).is_single for site in group])
            needed = self.size if self.leader is None else self.size - 1
            for row in select_uncovered(figures, is_single, needed).tolist():
                shared = number.to_bytes(4, "little") + figures[row].tobytes()
                keys[group[row]] = shared if is_single[row] else None
        return [(site, keys[site]) for site in sites if site in keys]

    def _figures(self, group: list[int]) -> Floats:
        """Return the figures of sites of one shape, a row each, of which smaller is better."""
        shapes = [self.shape(site) for site in group]
        below: Ints = np.array([shape.sites for shape in shapes])
        leaves: Ints = np.array([shape.leaves for shape in shapes])
        of_leaves = self.of_leaf[leaves].reshape(len(group), -1)
        return np.concatenate([self._down[below], of_leaves], axis=1)


def select_uncovered(figures: Floats, is_single: Bools, needed: int) -> Ints:
    """Return the rows that fewer than `needed` others cover, ascending.

    A row covers another one where it is single and at most as large in each column; of single rows that are
    equal the later one covers.
    """
    count = len(figures)
    if count <= needed:
        return np.arange(count)
    position = np.arange(count)
    covers = np.zeros(count, dtype=np.int64)
    step = max(1, CELLS // max(figures.size, 1))
    for first in range(0, count, step):
        rows = position[first : first + step]
        at_most = (figures[rows, None] <= figures[None]).all(axis=2)
        at_least = (figures[rows, None] >= figures[None]).all(axis=2)
        is_before = ~at_least | ~is_single[None] | (rows[:, None] > position[None])
        covers += (at_most & is_before & is_single[rows, None]).sum(axis=0)
    return np.flatnonzero(covers < needed)
