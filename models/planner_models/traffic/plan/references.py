"""Links and classes that rows of a plan's tables name; PlanRejected where the problem has none."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.errors import PlanRejected
from planner_models.traffic.problem.problem import Traffic


def require_classes(problem: Traffic, table: pd.DataFrame, name: str) -> None:
    """Raise PlanRejected where demands have classes and a plan's table does not say which."""
    if not problem.has_classes:
        return
    if "class" not in table:
        raise PlanRejected(f"{name}: column 'class' is missing; demands have classes")
    unknown = np.flatnonzero(problem.find_classes(table) == -1)
    if len(unknown):
        row = int(unknown[0])
        raise PlanRejected(f"{name} row {row + 1}: class '{table['class'].iloc[row]}' is no class of demands")


def require_links(
    problem: Traffic, tail: Iterable[str], head: Iterable[str], parallel: Iterable[float], where: str
) -> Ints:
    """Return the link of each (tail, head, parallel); PlanRejected where there is no such link."""
    tails, heads, numbers = (pd.Series(column) for column in (tail, head, parallel))
    if numbers.dtype.kind == "i" and len(numbers) and 1 <= numbers.min() <= numbers.max() <= 2**31:
        written, wrong = numbers.to_numpy(), np.zeros(0, dtype=np.int64)
    else:
        written = numbers.to_numpy(float, copy=False)
        wrong = np.flatnonzero(~((written >= 1) & (written <= 2**31) & (written % 1 == 0)))
    if len(wrong):
        row = int(wrong[0])
        raise PlanRejected(
            f"{where} row {row + 1}: parallel is {written[row]:g}, must be a whole number from 1"
        )
    nth = written.astype(np.int64, copy=False)
    link = problem.find_links(problem.find_nodes(tails), problem.find_nodes(heads), nth)
    unknown = np.flatnonzero(link < 0)
    if len(unknown):
        row = int(unknown[0])
        extra = f"#{nth[row]}" if nth[row] > 1 else ""
        more = f" and {len(unknown) - 1} rows more" if len(unknown) > 1 else ""
        raise PlanRejected(
            f"{where} row {row + 1}: {tails.iloc[row]}->{heads.iloc[row]}{extra} "
            f"is no link of the network{more}"
        )
    return link
