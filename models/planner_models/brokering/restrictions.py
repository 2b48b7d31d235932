"""Who may not be served from where: clusters forbidden to some clients, and clients pinned to some.

A row of either table names clients by location, network and content, and clusters by CDN and name;
`*` is any. Pinned clients are served by clusters of the rows that pin them and by no others, whatever
the CDNs offer: a contract says so. A cluster that is forbidden to clients never serves them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.tables import file_name, row_name

ANY: Final = "*"
CLIENTS: Final = ("location", "isp", "content")
CLUSTERS: Final = ("cdn", "cluster")


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Clients that the same rows of both tables name; those that no row names are share 0.

    of_row  (R,) the share of each row of clients
    may     (S, C) False where a cluster is forbidden to a share
    pinned  (S, C) True where a share is pinned to a cluster; a row without any is not pinned
    """

    of_row: NDArray[np.int64]
    may: NDArray[np.bool_]
    pinned: NDArray[np.bool_]

    def allowed(self, offered: NDArray[np.bool_], share: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(G, C) which clusters may serve groups of those shares (G,), of what is on `offered` to each."""
        if len(self.may) == 1:
            return offered
        held = np.any(self.pinned, axis=1)
        reached = np.where(held[share][:, np.newaxis], self.pinned[share], offered)
        allowed: NDArray[np.bool_] = np.logical_and(reached, self.may[share])
        return allowed


def shares(
    clients: pd.DataFrame,
    clusters: pd.DataFrame,
    pinned: pd.DataFrame | None,
    forbidden: pd.DataFrame | None,
) -> Shares:
    """The shares of clients, by which rows name them."""
    named = [
        (which, _named(clients, row, CLIENTS), _named(clusters, row, CLUSTERS))
        for which, table in (("pinned", pinned), ("forbidden", forbidden))
        if table is not None
        for row in table.to_dict("records")
    ]
    if not named:
        nobody = np.zeros((1, len(clusters)), dtype=bool)
        return Shares(of_row=np.zeros(len(clients), dtype=np.int64), may=~nobody, pinned=nobody)
    by_row = np.vstack([np.zeros((1, len(named)), dtype=bool), np.array([rows for _, rows, _ in named]).T])
    kinds, of_row = np.unique(by_row, axis=0, return_inverse=True)  # nobody's rule sorts first
    where = {which: np.zeros((len(kinds), len(clusters)), dtype=bool) for which in ("pinned", "forbidden")}
    for place, (which, _, reached) in enumerate(named):
        where[which][np.ix_(kinds[:, place], reached)] = True
    return Shares(of_row=of_row.ravel()[1:].astype(np.int64), may=~where["forbidden"], pinned=where["pinned"])


def _named(frame: pd.DataFrame, row: Mapping[Hashable, Any], columns: tuple[str, ...]) -> NDArray[np.bool_]:
    """(rows of frame,) True where all columns are as the row says."""
    named = np.ones(len(frame), dtype=bool)
    for column in columns:
        if row[column] != ANY:
            named &= (frame[column] == row[column]).to_numpy()
    return named


def obeyed(
    assignments: pd.DataFrame,
    clusters: pd.DataFrame,
    pinned: pd.DataFrame | None,
    forbidden: pd.DataFrame | None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """(rows of assignments,) whose clients are pinned; which of those are elsewhere; forbidden ones."""
    frame = assignments[[*CLIENTS, "cluster"]].assign(
        cdn=assignments["cluster"].map(clusters.set_index("cluster")["cdn"])
    )
    bound, kept, wrong = (np.zeros(len(frame), dtype=bool) for _ in range(3))
    for row in () if pinned is None else pinned.to_dict("records"):
        clients = _named(frame, row, CLIENTS)
        bound |= clients
        kept |= clients & _named(frame, row, CLUSTERS)
    for row in () if forbidden is None else forbidden.to_dict("records"):
        wrong |= _named(frame, row, CLIENTS) & _named(frame, row, CLUSTERS)
    some = assignments["clients"].to_numpy(float) > 0
    return bound, bound & ~kept & some, wrong & some


def faults(which: str, table: pd.DataFrame, clients: pd.DataFrame, clusters: pd.DataFrame) -> Iterator[str]:
    """Rows that name nobody, or no cluster of those CDNs."""
    for place, row in enumerate(table.to_dict("records")):
        for frame, columns, what in (
            (clients, CLIENTS, "no clients"),
            (clusters, CLUSTERS, "no cluster"),
        ):
            if not _named(frame, row, columns).any():
                told = ", ".join(f"{column} '{row[column]}'" for column in columns)
                yield f"{row_name(table, which, place)}: {told} is {what} of the problem"


def naming(table: pd.DataFrame | None, clusters: pd.DataFrame) -> pd.DataFrame | None:
    """The rows that name some of these clusters; None where there are none."""
    if table is None:
        return None
    rows = [_named(clusters, row, CLUSTERS).any() for row in table.to_dict("records")]
    kept = table[np.array(rows, dtype=bool)].reset_index(drop=True)
    return kept if len(kept) else None


def hopeless(
    shared: Shares,
    offered: NDArray[np.bool_],
    clients: pd.DataFrame,
    location: NDArray[np.int64],
    pinned: pd.DataFrame | None,
    forbidden: pd.DataFrame | None,
) -> Iterator[str]:
    """Clients that the rules leave no cluster."""
    rows = np.flatnonzero((shared.of_row > 0) & (clients["clients"].to_numpy(float) > 0))
    pairs, first = np.unique(location[rows] * len(shared.may) + shared.of_row[rows], return_index=True)
    place, share = pairs // len(shared.may), pairs % len(shared.may)
    tables = [
        file_name(table, name)
        for table, name in ((pinned, "pinned"), (forbidden, "forbidden"))
        if table is not None
    ]
    for one in np.flatnonzero(~shared.allowed(offered[place], share).any(axis=1)).tolist():
        row = clients.iloc[int(rows[first[one]])]
        who = f"{row['location']}/{row['isp']}/{row['content']}"
        yield f"{' and '.join(tables)}: no cluster is left to serve {who}"
