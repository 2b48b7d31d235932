"""Rules on who serves whom: clusters forbidden to some clients, and clients pinned to some clusters.

A row of either table names clients by location, network and content, and clusters by CDN and name;
`*` is any. Pinned clients are served by clusters of the rows that pin them and by no others, whatever
the CDNs offer. A cluster that is forbidden to clients never serves them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Ints
from planner.contract.tables import row_name

ANY: Final = "*"
CLIENTS: Final = ("location", "isp", "content")
CLUSTERS: Final = ("cdn", "cluster")


@dataclass(frozen=True, kw_only=True, eq=False)
class RestrictionClasses:
    """S classes of clients that the same rules name; clients without a rule are class 0.

    of_row     (R,) the class of each row of clients
    permitted  (S, C) False where a cluster is forbidden to a class
    pinned     (S, C) True where a class is pinned to a cluster
    is_pinned  (S,) whether a class is pinned at all, be it to clusters that have failed
    """

    of_row: Ints
    permitted: Bools
    pinned: Bools
    is_pinned: Bools

    def allowed(self, offered: Bools, restriction_class: Ints) -> Bools:
        """Return the `offered` clusters that may serve groups (G,) of those classes, a mask (G, C)."""
        if len(self.permitted) == 1:
            return offered
        is_pinned = self.is_pinned[restriction_class, np.newaxis]
        reachable = np.where(is_pinned, self.pinned[restriction_class], offered)
        allowed: Bools = np.logical_and(reachable, self.permitted[restriction_class])
        return allowed


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleMatches:
    """Rows of an assignment by the rules that name their clients, each (rows,) of bool.

    pinned     clients are pinned, here or elsewhere
    misplaced  clients are pinned, and to other clusters
    forbidden  clients are in a cluster that is forbidden to them
    """

    pinned: Bools
    misplaced: Bools
    forbidden: Bools


def classify_clients(
    clients: pd.DataFrame, clusters: pd.DataFrame, pinned: pd.DataFrame | None, forbidden: pd.DataFrame | None
) -> RestrictionClasses:
    """Return the classes of clients that the same rules name."""
    rules = [
        (kind, _matches(clients, rule, CLIENTS), _matches(clusters, rule, CLUSTERS))
        for kind, table in (("pinned", pinned), ("forbidden", forbidden))
        for rule in _records(table)
    ]
    if not rules:
        none = np.zeros((1, len(clusters)), dtype=bool)
        return RestrictionClasses(
            of_row=np.zeros(len(clients), dtype=np.int64), permitted=~none, pinned=none, is_pinned=none[:, 0]
        )
    no_rule = np.zeros((1, len(rules)), dtype=bool)
    by_row = np.vstack([no_rule, np.array([rows for _, rows, _ in rules]).T])
    classes, of_row = np.unique(by_row, axis=0, return_inverse=True)  # without a rule sorts first
    named = {kind: np.zeros((len(classes), len(clusters)), dtype=bool) for kind in ("pinned", "forbidden")}
    for index, (kind, _, cluster) in enumerate(rules):
        named[kind][np.ix_(classes[:, index], cluster)] = True
    is_pin = np.array([kind == "pinned" for kind, _, _ in rules])
    return RestrictionClasses(
        of_row=of_row.ravel()[1:].astype(np.int64),
        permitted=~named["forbidden"],
        pinned=named["pinned"],
        is_pinned=np.atleast_1d(classes[:, is_pin].any(axis=1)),
    )


def match_rules(
    assignments: pd.DataFrame,
    clusters: pd.DataFrame,
    pinned: pd.DataFrame | None,
    forbidden: pd.DataFrame | None,
) -> RuleMatches:
    """Return the pinned, misplaced and forbidden rows of an assignment."""
    frame = assignments[[*CLIENTS, "cluster"]].assign(
        cdn=assignments["cluster"].map(clusters.set_index("cluster")["cdn"])
    )
    is_pinned, in_place, is_forbidden = (np.zeros(len(frame), dtype=bool) for _ in range(3))
    for rule in _records(pinned):
        named = _matches(frame, rule, CLIENTS)
        is_pinned |= named
        in_place |= named & _matches(frame, rule, CLUSTERS)
    for rule in _records(forbidden):
        is_forbidden |= _matches(frame, rule, (*CLIENTS, *CLUSTERS))
    has_clients = assignments["clients"].to_numpy(float) > 0
    return RuleMatches(
        pinned=is_pinned, misplaced=is_pinned & ~in_place & has_clients, forbidden=is_forbidden & has_clients
    )


def select_rules(table: pd.DataFrame | None, clusters: pd.DataFrame) -> pd.DataFrame | None:
    """Return the rules that name some of these clusters; None where there are none."""
    if table is None:
        return None
    rows = [_matches(clusters, rule, CLUSTERS).any() for rule in _records(table)]
    selected = table[np.array(rows, dtype=bool)].reset_index(drop=True)
    return selected if len(selected) else None


def unmatched_rules(
    rules: Mapping[str, pd.DataFrame | None], clients: pd.DataFrame, clusters: pd.DataFrame
) -> Iterator[str]:
    """Yield a fault for each rule of the tables `pinned` and `forbidden` that matches nothing."""
    for name, table in rules.items():
        for index, rule in enumerate(_records(table)):
            assert table is not None
            for frame, columns, missing in ((clients, CLIENTS, "clients"), (clusters, CLUSTERS, "cluster")):
                if not _matches(frame, rule, columns).any():
                    names = ", ".join(f"{column} '{rule[column]}'" for column in columns)
                    yield f"{row_name(table, name, index)}: {names} is no {missing} of the problem"


def _records(table: pd.DataFrame | None) -> list[dict[Hashable, Any]]:
    return [] if table is None else table.to_dict("records")


def _matches(frame: pd.DataFrame, rule: Mapping[Hashable, Any], columns: tuple[str, ...]) -> Bools:
    """Return the rows of the frame that a rule names by those columns, a mask (rows,)."""
    matches = np.ones(len(frame), dtype=bool)
    for column in columns:
        if rule[column] != ANY:
            matches &= (frame[column] == rule[column]).to_numpy()
    return matches
