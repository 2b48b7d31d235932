"""Nodes of a network: their columns, their rows by name, and errors of references to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.table import label, number
from planner.contract.tables import FEW_ROWS, TEXT, file_name, report_unknown_names, row_name, shorten_faults
from planner_models.networks import table_names

NODE_COLUMNS: Final = {
    "node": label("its name", other_names=table_names.NODE),
    "latitude": number(
        "degrees north",
        at_least=-90,
        at_most=90,
        optional=True,
        confused_with="longitude",
        other_names=("lat",),
    ),
    "longitude": number(
        "degrees east", at_least=-180, at_most=180, optional=True, other_names=("lon", "lng", "long")
    ),
    "x": number("place in a drawing, from left to right", optional=True),
    "y": number("place in a drawing, upwards", optional=True),
}
"""Columns of a table of nodes."""


def nodes_of_links(*links: pd.DataFrame) -> pd.DataFrame:
    """Return the table of nodes that are ends of links; one without a name where there are none."""
    ends = [frame[end] for frame in links for end in ("tail", "head") if end in frame]
    names: list[str] = pd.unique(pd.concat(ends, ignore_index=True)).tolist() if ends else []
    return pd.DataFrame({"node": names or ["-"]})  # the fault of the links themselves is reported


def find_names(index: pd.Index, names: pd.Series) -> Ints:
    """Return the place of each name among the known ones, -1 where it is none; looks categories up once."""
    if isinstance(names.dtype, pd.CategoricalDtype):
        code_rows = index.get_indexer(pd.Index(names.cat.categories.astype(str)))
        return np.append(code_rows, -1).astype(np.int64)[names.cat.codes.to_numpy()]  # a blank has code -1
    texts = names if names.dtype == TEXT else names.astype(str)
    if len(index) + len(texts) <= FEW_ROWS and index.is_unique:
        rows = {name: row for row, name in enumerate(index.tolist())}
        return np.array([rows.get(name, -1) for name in texts.tolist()], dtype=np.int64)
    return index.get_indexer(pd.Index(texts)).astype(np.int64)


def find_bad_ends(
    frame: pd.DataFrame, table: str, ends: tuple[str, str], index: pd.Index, rows: tuple[Ints, Ints]
) -> Iterator[str]:
    """Yield a fault for each end that is no node, and for each row with the same node at both ends.

    ends    columns of both ends, such as tail and head
    rows  (R,) nodes of both by row, -1 for unknown ones
    """
    for column, row in zip(ends, rows, strict=True):
        if (row < 0).any():
            yield from report_unknown_names(frame, table, column, index, "no node of the network")
    start, end = ends
    same = np.flatnonzero(rows[0] == rows[1])  # or both unknown
    if not len(same):
        return
    loops = same[frame[start].iloc[same].to_numpy() == frame[end].iloc[same].to_numpy()].tolist()
    faults = [
        f"{row_name(frame, table, row)}: {start} and {end} are both '{frame[start].iloc[row]}', must differ"
        for row in loops
    ]
    yield from shorten_faults(faults, file_name(frame, table), f"where {start} and {end} are the same")
