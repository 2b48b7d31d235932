"""Rows of tables, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows of a table with their values as attributes; their types are those of valid columns."""
    yield from frame.itertuples()
