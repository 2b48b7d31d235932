"""Tables built from what a file holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.extensions import ExtensionArray

from planner_models.traffic.readers import Tables
from planner_models.traffic.readers.faults import Faults

RateUnit: TypeAlias = Literal["bps", "kbps", "mbps", "gbps"]

NOWHERE: Final[dict[str, NDArray[np.float64] | None]] = {"latitude": None, "longitude": None}
MBPS_EXPONENT: Final[dict[RateUnit, int]] = {"bps": -6, "kbps": -3, "mbps": 0, "gbps": 3}

log = logging.getLogger(__name__)


def frame(**columns: Sequence[str] | ExtensionArray | NDArray[np.float64] | None) -> pd.DataFrame:
    """Label columns from lists, number columns from arrays; a column that is None is left out."""
    return pd.DataFrame(
        {
            name: values if isinstance(values, np.ndarray) else pd.Series(values, dtype="str")
            for name, values in columns.items()
            if values is not None
        }
    )


def floats(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def known(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """`values`, or None where all are 0: a format that cannot leave a field out holds 0."""
    return values if values.any() else None


def complete(values: NDArray[np.float64], column: str, faults: Faults) -> NDArray[np.float64] | None:
    """`values`, or None with a warning where only some are known: a column has a value in every row."""
    missing = int(np.isnan(values).sum())
    if 0 < missing < len(values) and not faults.lines:
        log.warning("%s: %s is left out: %d of %d are missing", faults.file, column, missing, len(values))
    return None if missing else values


def position_columns(
    longitude: NDArray[np.float64],
    latitude: NDArray[np.float64],
    *,
    geographical: bool | None,
    faults: Faults,
) -> dict[str, NDArray[np.float64] | None]:
    """The columns `latitude` and `longitude`; None where they are incomplete, all 0, or not degrees.

    geographical  whether the file says that they are degrees; where it does not say (None),
                  positions within -180..180 and -90..90 are taken to be
    """
    east, north = complete(longitude, "longitude", faults), complete(latitude, "latitude", faults)
    if east is None or north is None or not (east.any() or north.any()):
        geographical = False
    elif geographical is None:
        geographical = bool((np.abs(east) <= 180).all() and (np.abs(north) <= 90).all())
    return {"latitude": north, "longitude": east} if geographical else NOWHERE


def summed(demands: pd.DataFrame) -> pd.DataFrame:
    """One demand a pair, at the place of its first: files may list several between the same nodes."""
    ends = ["source", "target"]
    if not demands.duplicated(ends).any():
        return demands
    return demands.groupby(ends, sort=False)["rate_mbps"].sum().reset_index()


def named_tables(file: str, *, nodes: pd.DataFrame, links: pd.DataFrame, demands: pd.DataFrame) -> Tables:
    """The three tables; where nothing else is said, faults found in them later name `file`."""
    made = {"nodes": nodes, "links": links, "demands": demands}
    for name, table in made.items():
        table.attrs.setdefault("where", f"{file}: {name}")
    return made
