"""Helpers that write network files from tables."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.errors import InputError
from planner.io.file_replacement import replace_file
from planner_models.traffic.problem.readers import Tables
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.table_building import to_floats


def require_endpoints(tables: Tables) -> None:
    """Raise InputError unless every link and demand ends at nodes, and every node has a label."""
    nodes = tables["nodes"]["node"]
    faults = FileErrors("tables")
    for row in np.flatnonzero((nodes == "").to_numpy()):
        faults.add(f"nodes row {row + 1}", ": node is empty")
    for table, columns in (("links", ("tail", "head")), ("demands", ("source", "target"))):
        for column in columns:
            values = tables[table][column]
            for row in np.flatnonzero(~values.isin(nodes).to_numpy()):
                value, rule = str(values.iloc[row]), f"{column} must be a node"
                fault = f": {column} is '{shorten(value)}', must be a node"
                faults.add(f"{table} row {row + 1}", fault, rule=rule, near=(value, nodes))
    faults.raise_if_any()


def optional_column(table: pd.DataFrame, column: str, default: float) -> Floats:
    """Return a column as an array, filled with `default` where it is absent."""
    return to_floats(table[column]) if column in table else np.full(len(table), default)


def format_decimal(value: float, *, exponent: int = 0) -> str:
    """Format `value` times 10**exponent exactly, in plain decimals; whole numbers without a point."""
    return format(Decimal(repr(float(value))).scaleb(exponent).normalize(), "f")


def write_text(text: str, path: Path) -> None:
    """Write UTF-8 text to a file as a whole or not at all; InputError where it cannot be written."""
    path = Path(path)
    try:
        with replace_file(path) as partial:
            partial.write_bytes(text.encode())
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise InputError(f"{path.name}: character {bad!r} has no place in UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
