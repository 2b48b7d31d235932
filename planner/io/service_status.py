"""Columns of users' tables that say of each link or demand whether it is in service.

Rows that are out of service, or only planned, are no part of the network as it is. They are left out, which a
note says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import pandas as pd

from planner.contract.columns import ColumnMatch, shorten_name
from planner.contract.directed_columns import ends_of
from planner.contract.table import Table
from planner.contract.tables import abbreviate
from planner.contract.units import LONGEST_NAME, plain
from planner.formatting import counted
from planner.io.sheet_rows import list_rows

NAME: Final = re.compile(
    r"(?:(?:admin|administrative|oper|operational|link|circuit|line|port|service|current|lifecycle)?"
    r"(?:status|state)|lifecycle|inservice|betriebsstatus|zustand|état|etat|estado|stato)"
)
"""Names of such columns, without case and punctuation."""
IN_SERVICE: Final = frozenset(
    {
        *("up", "active", "inservice", "live", "operational", "enabled", "lit", "ok", "production", "prod"),
        *("deployed", "installed", "working", "running", "yes", "true", "on", "online", "ready", "upup"),
        *("connected", "normal", "inuse", "aktiv", "inbetrieb", "actif", "enservice", "activo", "attivo"),
    }
)
OUT_OF_SERVICE: Final = frozenset(
    {
        *("down", "planned", "plan", "proposed", "future", "candidate", "decommissioned", "decom", "retired"),
        *("cancelled", "canceled", "inactive", "disabled", "outofservice", "notinservice", "oos", "ceased"),
        *("terminated", "removed", "deleted", "unlit", "failed", "faulty", "broken", "admindown", "off"),
        *("administrativelydown", "shutdown", "ordered", "onorder", "pending", "offline", "no", "false"),
        *("underconstruction", "construction", "notconnected", "downdown", "updown", "closed", "stillgelegt"),
        *("geplant", "außerbetrieb", "inaktiv", "ausgefallen", "planifié", "horsservice", "inactif"),
        *("planeado", "planificado", "inactivo", "fueradeservicio", "pianificato", "inattivo"),
    }
)
"""Words of cells, without case and punctuation."""


def find_status(table: Table, ignored: Iterable[str]) -> str | None:
    """Return the only ignored column with the name of a status; None without one or with several.

    Only tables whose rows have two ends, as links and demands, have one.
    """
    if ends_of(table) is None:
        return None
    named = [name for name in ignored if len(name) <= LONGEST_NAME and NAME.fullmatch(plain(name))]
    return named[0] if len(named) == 1 else None


def drop_out_of_service(
    table: Table, frame: pd.DataFrame, match: ColumnMatch, first_row: int, ignore: Sequence[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows that are in service, and a note on those that are left out.

    Rows with other words are kept, and so are all rows where none is in service, as in a list of plans.

    frame   cells under the names of the file; the index counts rows from 0
    ignore  names of columns that the user leaves out
    """
    name = find_status(table, match.ignored) if match.form == "rows" else None
    if name is None or name in ignore or name not in frame:
        return frame, []
    texts = frame[name].map(lambda cell: cell if isinstance(cell, str) else str(cell).lower())
    words = texts.map(lambda text: plain(text[:LONGEST_NAME]))
    is_out = words.isin(OUT_OF_SERVICE).to_numpy(bool)
    if not is_out.any() or is_out.all():
        return frame, []
    rows = [first_row + int(row) for row in frame.index[is_out]]
    said = " or ".join(f"'{abbreviate(text)}'" for text in list(dict.fromkeys(texts[is_out]))[:3])
    other = texts[~is_out & ~words.isin(IN_SERVICE).to_numpy(bool) & frame[name].notna().to_numpy()]
    counts_as = f"; '{abbreviate(other.iloc[0])}' counts as in service" if len(other) else ""
    column = shorten_name(name)
    left_out = f"{counted(len(rows), 'rows')} ({list_rows(rows)}) whose '{column}' is {said}"
    note = (
        f"assumed: left out {left_out}{counts_as}; to keep them, write ignore = "
        f'["{column}"] in [problem.tables.{table.name}]'
    )
    return frame[~is_out], [note]
