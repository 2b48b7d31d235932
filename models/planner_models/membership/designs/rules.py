"""Rules of thumb: places as guides recommend them, and the members of today."""

from __future__ import annotations

import itertools
from typing import Final

from planner_models.membership.plan.evaluation import commit_time_ms
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import LEADER, MANAGER

ZONES: Final = 3
"""Zones of one region over which guides spread members; with fewer of them, all regions take turns."""


def spread(problem: Membership, count: int) -> dict[int, int]:
    """Return up to so many members over the zones of the region with most of them, then over all others.

    Zones take turns, and hosts within a zone. Where no region has three zones, or one for each member, the
    regions take turns. Lost sites have none.
    """
    zones = _open_zones(problem)
    regions = sorted(zones, key=lambda site: -len(zones[site]))
    groups = [list(zones[region].values()) for region in regions]
    if groups and len(groups[0]) < min(ZONES, count):
        rows = itertools.zip_longest(*groups)
        groups = [[leaves for row in rows for leaves in row if leaves is not None]]
    counts: dict[int, int] = {}
    for group in groups:
        for leaf in _turns(problem, group):
            if sum(counts.values()) >= count:
                return counts
            counts[leaf] = counts.get(leaf, 0) + 1
    return counts


def _open_zones(problem: Membership) -> dict[int, dict[int, list[int]]]:
    """Return the leaves that may have members, by region and zone."""
    zones: dict[int, dict[int, list[int]]] = {}
    for leaf in problem.leaves.tolist():
        if problem.tree.capacity[leaf] and not (problem.is_lost[leaf] or problem.is_witness[leaf]):
            region, zone = problem.site_above(leaf, "region"), problem.site_above(leaf, "zone")
            zones.setdefault(region, {}).setdefault(zone, []).append(leaf)
    return zones


def _turns(problem: Membership, zones: list[list[int]]) -> list[int]:
    """Return leaves in the order in which members take them: a zone after another, a host after another."""
    by_zone = []
    for leaves in zones:
        rounds = max(int(problem.tree.capacity[leaf]) for leaf in leaves)
        by_zone.append(
            [leaf for turn in range(rounds) for leaf in leaves if turn < problem.tree.capacity[leaf]]
        )
    rows = itertools.zip_longest(*by_zone)
    return [leaf for row in rows for leaf in row if leaf is not None]


def current_counts(
    problem: Membership, service: Service
) -> tuple[dict[int, int], dict[int, int], int | None]:
    """Return today's members and managers by site, and the site of today's leader; empty without any."""
    rows = problem.current_members(service.name)
    members: dict[int, int] = {}
    managers: dict[int, int] = {}
    leader: int | None = None
    if rows is None:
        return members, managers, leader
    for name, role, number in zip(rows["site"].astype(str), rows["role"], rows["count"], strict=True):
        site = problem.row_of(name)
        counts = managers if role == MANAGER else members
        counts[site] = counts.get(site, 0) + int(number)
        if role == LEADER:
            leader = site
    return members, managers, leader


def nearest_leader(problem: Membership, members: dict[int, int], quorum: int) -> int:
    """Return the site of the member with the shortest time to a quorum of those that may lead."""
    may_lead = [site for site in sorted(members) if not problem.is_witness[site]]
    return min(may_lead, key=lambda site: commit_time_ms(problem, members, site, quorum))


def practice_members(problem: Membership, service: Service, count: int) -> tuple[dict[int, int], int | None]:
    """Return the members of today and the site of their leader; without any, those that guides recommend."""
    members, _, leader = current_counts(problem, service)
    return (members, leader) if members else (spread(problem, count), None)
