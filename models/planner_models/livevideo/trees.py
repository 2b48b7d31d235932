"""Plans of system `livevideo`: for each object the links that carry it, which form trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError
from planner.tables import Table, label, number, validate
from planner_models.livevideo.problem import LiveVideo

TREES: Final = Table(
    name="trees",
    about="an object on a link that carries it",
    columns={
        "channel": label("its channel"),
        "bitrate_kbps": number("its bitrate, kbit/s", more_than=0),
        "tail": label("cluster that sends it"),
        "head": label("cluster that receives it"),
    },
    key=("channel", "bitrate_kbps", "tail", "head"),
    may_be_empty=True,
)
WAITS: Final = Table(
    name="waits",
    about="clients that have waited for a decision before they were served, where any have",
    columns={
        "group": label("their client group"),
        "channel": label("the channel they asked for"),
        "bitrate_kbps": number("the bitrate they asked for, kbit/s", more_than=0),
        "waited_s": number("how long, s", at_least=0),
    },
    key=("group", "channel", "bitrate_kbps"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (TREES, WAITS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trees:
    """Distribution trees.

    trees  one row a link and object: channel, bitrate_kbps, tail, head
    waits  group, channel, bitrate_kbps, waited_s of those who waited for a decision; None: nobody
    """

    trees: pd.DataFrame
    waits: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The table `trees`, and `waits` where somebody waited."""
        return {"trees": self.trees, **({} if self.waits is None else {"waits": self.waits})}


def plan_of(problem: LiveVideo, item: NDArray[np.int64], link: NDArray[np.int64]) -> Trees:
    """The plan in which the i-th object crosses the i-th link, sorted by object and tier."""
    order = np.lexsort((link, problem.level[problem.tail[link]], item))
    item, link = item[order], link[order]
    return Trees(
        trees=pd.DataFrame(
            {
                "channel": problem.objects["channel"].to_numpy()[item],
                "bitrate_kbps": problem.objects["bitrate_kbps"].to_numpy(float)[item],
                "tail": problem.links["tail"].to_numpy()[link],
                "head": problem.links["head"].to_numpy()[link],
            }
        )
    )


def rows_of(problem: LiveVideo, plan: Trees) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The object and the link of each row; -1 for unknown."""
    trees = plan.trees
    return (
        problem.objects_of(trees["channel"], trees["bitrate_kbps"]),
        problem.links_of(trees["tail"], trees["head"]),
    )


def waits_of(problem: LiveVideo, requests: NDArray[np.int64], waited_s: float) -> pd.DataFrame:
    """A table `waits` in which those of some requests, by row, have waited."""
    asked = problem.requests.iloc[requests]
    return asked[["group", "channel", "bitrate_kbps"]].assign(waited_s=waited_s).reset_index(drop=True)


def from_tables(problem: LiveVideo, tables: Mapping[str, pd.DataFrame]) -> Trees:  # noqa: ARG001
    """The plan in the tables `trees` and `waits`; InputError with every fault of the tables."""
    if "trees" not in tables:
        raise InputError("trees: the plan has no such table")
    found = {
        table.name: validate(
            table, tables[table.name], where=tables[table.name].attrs.get("where")
        ).reset_index(drop=True)
        for table in PLAN_TABLES
        if table.name in tables
    }
    return Trees(**found)


def diff(before: Trees, after: Trees) -> pd.DataFrame:
    """The links that trees gain and lose: channel, bitrate_kbps, tail, head, change ("+" or "-")."""
    both = before.trees.merge(after.trees, how="outer", indicator=True)
    moved = both[both["_merge"] != "both"]
    change = np.where(moved["_merge"] == "right_only", "+", "-")
    return moved.drop(columns="_merge").assign(change=change).reset_index(drop=True)


def moved_objects(before: Trees, after: Trees) -> pd.DataFrame:
    """The objects carried by both plans whose trees differ: channel, bitrate_kbps, gained, lost."""
    key = ["channel", "bitrate_kbps"]
    changes = diff(before, after)
    common = before.trees[key].drop_duplicates().merge(after.trees[key].drop_duplicates())
    counts = (
        changes.assign(gained=changes["change"] == "+", lost=changes["change"] == "-")
        .groupby(key, as_index=False)[["gained", "lost"]]
        .sum()
    )
    return common.merge(counts)
