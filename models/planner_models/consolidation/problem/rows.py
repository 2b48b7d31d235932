"""Rows of tables, one by one.

The values of columns are typed by the tables' schema, which a type checker cannot see: pandas declares each
attribute of `itertuples` as any scalar, dates and intervals too, that no `float` takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows of a table with their values as attributes, of any type to a type checker."""
    yield from frame.itertuples()
