"""Picture of sites: regions on a map with their members, and the round-trip times between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import counted, number
from planner_models.membership.problem.problem import Membership

SITE: Final = "site"
MAX_LINKS: Final = 60
"""Pairs of sites that are drawn; the shortest ones, where there are more."""


def draw(problem: Membership) -> Sequence[Drawing]:
    """Draw the sites with their round-trip times."""
    return (draw_sites(problem, "Sites and round-trip times", {}, {}),)


def draw_sites(
    problem: Membership,
    title: str,
    members: Mapping[int, int],
    notes: Mapping[int, str],
    leaders: Sequence[int] = (),
) -> NetworkMap:
    """Return the map of regions, or of zones where there is a single region; links are round-trip times.

    members  number of members by leaf
    notes    further words by drawn site
    leaders  leaves of leaders
    """
    kind = "region"
    if len({problem.site_above(leaf, kind) for leaf in problem.leaves.tolist()}) == 1:
        kind = "zone"
    leaf_site = {leaf: problem.site_above(leaf, kind) for leaf in problem.leaves.tolist()}
    sites = sorted(set(leaf_site.values()))
    count = dict.fromkeys(sites, 0)
    for leaf, number_here in members.items():
        count[leaf_site[leaf]] += number_here
    leading = {leaf_site[leaf] for leaf in leaders}
    nodes = pd.DataFrame(
        {
            "node": [problem.site_names[site] for site in sites],
            "size": [1.0 + count[site] for site in sites],
            "note": [_note(count[site], notes.get(site, "")) for site in sites],
            "label": [
                _label(problem.site_names[site], count[site], is_leading=site in leading) for site in sites
            ],
            **_positions(problem, sites),
        }
    )
    return NetworkMap(
        title=title,
        nodes=nodes,
        links=_links(problem, sites, leaf_site, {site for site in sites if count[site]}),
        value="round-trip time",
        unit="ms",
        directed=False,
        node_kind=SITE,
    )


def _note(members: int, note: str) -> str:
    """Return the members of a site and a further note in words."""
    return "; ".join(text for text in (counted(members, "members") if members else "", note) if text)


def _label(name: str, members: int, *, is_leading: bool) -> str:
    """Return the name of a site with its members: `us-east: 2 members, leads`."""
    if not members:
        return name
    return f"{name}: {counted(members, 'members')}" + (", leads" if is_leading else "")


def _positions(problem: Membership, sites: list[int]) -> dict[str, Floats]:
    """Return columns of places: degrees where all sites have them, else a circle."""
    if "latitude" in problem.sites and "longitude" in problem.sites:
        latitude, longitude = (
            problem.sites[name].to_numpy(float)[sites] for name in ("latitude", "longitude")
        )
        if not (np.isnan(latitude) | np.isnan(longitude)).any():
            return {"latitude": latitude, "longitude": longitude}
    angle = 2 * np.pi * np.arange(len(sites)) / max(len(sites), 1)
    return {"x": np.sin(angle), "y": np.cos(angle)}


def _links(problem: Membership, sites: list[int], leaf_site: dict[int, int], used: set[int]) -> pd.DataFrame:
    """Return the pairs of sites with their round-trip time: those with members first, then the shortest."""
    first_leaf = {site: leaf for leaf, site in reversed(list(leaf_site.items()))}
    numbers, rtt = problem.leaf_number, problem.delay_matrix.rtt_ms
    rows = []
    for index, tail in enumerate(sites):
        for head in sites[index + 1 :]:
            time = float(rtt[numbers[first_leaf[tail]], numbers[first_leaf[head]]])
            is_used = tail in used and head in used
            rows.append((not is_used, time, problem.site_names[tail], problem.site_names[head]))
    if used:
        rows = [row for row in rows if not row[0]]
    frame = pd.DataFrame(sorted(rows)[:MAX_LINKS], columns=["other", "value", "tail", "head"])
    notes = [f"{number(time)} ms" for time in frame["value"]]
    return frame[["tail", "head", "value"]].assign(note=notes)
