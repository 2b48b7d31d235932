"""Builders of the tables nodes, links and demands from the contents of a file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pandas.api.extensions import ExtensionArray

from planner.arrays import Floats
from planner_models.traffic.problem.readers import Tables
from planner_models.traffic.problem.readers.file_errors import FileErrors

RateUnit: TypeAlias = Literal["bps", "kbps", "mbps", "gbps"]

NO_POSITION: Final[dict[str, Floats | None]] = {"latitude": None, "longitude": None}
MBPS_EXPONENT: Final[dict[RateUnit, int]] = {"bps": -6, "kbps": -3, "mbps": 0, "gbps": 3}

log = logging.getLogger(__name__)


def build_table(**columns: Sequence[str] | ExtensionArray | Floats | None) -> pd.DataFrame:
    """Build a table: columns of labels from lists, of numbers from arrays; None leaves a column out."""
    return pd.DataFrame(
        {
            name: values if isinstance(values, np.ndarray) else pd.Series(values, dtype="str")
            for name, values in columns.items()
            if values is not None
        }
    )


def to_floats(values: ArrayLike) -> Floats:
    """Return the values as an array of float64."""
    return np.asarray(values, dtype=np.float64)


def drop_all_zero(values: Floats) -> Floats | None:
    """Return `values`, or None where all are 0: formats without optional fields write 0 for unknown."""
    return values if values.any() else None


def drop_incomplete(values: Floats, column: str, faults: FileErrors) -> Floats | None:
    """Return `values`, or None, with a warning, where some are missing: a column is complete or absent."""
    missing = int(np.isnan(values).sum())
    if 0 < missing < len(values) and not faults.lines:
        log.warning("%s: %s is left out: %d of %d are missing", faults.file, column, missing, len(values))
    return None if missing else values


def position_columns(
    longitude: Floats, latitude: Floats, *, geographical: bool | None, faults: FileErrors
) -> dict[str, Floats | None]:
    """Return the columns `latitude` and `longitude`; None where incomplete, all 0, or not degrees.

    geographical  whether the file declares degrees; if it declares nothing (None), positions within
                  -180..180 and -90..90 are taken for degrees
    """
    east, north = (
        drop_incomplete(longitude, "longitude", faults),
        drop_incomplete(latitude, "latitude", faults),
    )
    if east is None or north is None or not (east.any() or north.any()):
        geographical = False
    elif geographical is None:
        geographical = bool((np.abs(east) <= 180).all() and (np.abs(north) <= 90).all())
    return {"latitude": north, "longitude": east} if geographical else NO_POSITION


def sum_duplicates(demands: pd.DataFrame) -> pd.DataFrame:
    """Return one demand for each pair of nodes, in the row of its first; files may list several."""
    ends = ["source", "target"]
    if not demands.duplicated(ends).any():
        return demands
    return demands.groupby(ends, sort=False)["rate_mbps"].sum().reset_index()


def named_tables(file: str, *, nodes: pd.DataFrame, links: pd.DataFrame, demands: pd.DataFrame) -> Tables:
    """Return the three tables, labelled so that faults found in them later name `file`."""
    tables = {"nodes": nodes, "links": links, "demands": demands}
    for name, table in tables.items():
        table.attrs.setdefault("where", f"{file}: {name}")
    return tables
