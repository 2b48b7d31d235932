"""The protocol of a plan, and the constraint violations that a check of a plan returns."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from planner.formatting import counted, is_convertible


class Plan(Protocol):
    """A decision as tables."""

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return tables that a user can act on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Breakdown:
    """Metrics of a plan for each of several groups that it serves, such as traffic classes.

    title  of the table
    group  one group in words, such as "class"
    frame  the groups' names in the first column, and figures in columns with the names of metrics
    """

    title: str
    group: str
    frame: pd.DataFrame

    def groups_with(self, metric: str, threshold: float) -> list[str]:
        """Return the names of the groups with more than a value of a metric."""
        values = self.frame[metric].to_numpy(float)
        return [str(name) for name in self.frame.iloc[:, 0][values > threshold]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; unknown numbers are None."""
        rows = self.frame.astype(object).where(self.frame.notna(), None)
        return {"group": self.group, "rows": rows.to_dict(orient="records")}


class Violations:
    """Constraints that a plan violates: one row for each place, with its amount.

    frame  limit, where, amount, allowed, unit
    """

    COLUMNS = ("limit", "where", "amount", "allowed", "unit")

    def __init__(self, frame: pd.DataFrame | None = None) -> None:
        self.frame = _no_rows().copy(deep=False) if frame is None else frame

    @classmethod
    def of(
        cls, limit: str, *, where: Sequence[str], amount: ArrayLike, allowed: ArrayLike, unit: str
    ) -> Violations:
        """Return the rows of one constraint; `where` names the places, `amount` exceeds `allowed` there."""
        if not len(where):
            return cls()
        amount, allowed = np.broadcast_arrays(np.asarray(amount, float), np.asarray(allowed, float))
        rows = {"limit": limit, "where": list(where), "amount": amount, "allowed": allowed, "unit": unit}
        return cls(pd.DataFrame(rows, columns=list(cls.COLUMNS)))

    def __add__(self, other: Violations) -> Violations:
        frames = [violations.frame for violations in (self, other) if len(violations)]
        return Violations(pd.concat(frames, ignore_index=True)) if frames else Violations()

    def __len__(self) -> int:
        return len(self.frame)

    def of_limits(self, limits: Iterable[str] | None) -> Violations:
        """Return the violations of the named constraints; None: all."""
        if limits is None or not len(self):
            return self
        return Violations(self.frame[self.frame["limit"].isin(list(limits))].reset_index(drop=True))

    def sentences(self, limit_: int = 3) -> list[str]:
        """Return one line for each violated constraint: the count, and the worst places with amounts."""
        lines = []
        for limit, rows in self.frame.groupby("limit", sort=False):
            excess = (rows["amount"] - rows["allowed"]).abs()
            worst = rows.loc[excess.sort_values(ascending=False, kind="stable").index[:limit_]]
            if _are_places(rows):  # a place is right or wrong
                locations = "; ".join(worst["where"].astype(str))
                more = "; ..." if len(rows) > len(worst) else ""
                lines.append(f"{limit}: violated {counted(len(rows), 'times')}: {locations}{more}")
                continue
            locations = "; ".join(
                f"{row.where}: {row.amount:,.6g} against {row.allowed:,.6g} {row.unit}".rstrip()
                for row in worst.itertuples()
            )
            lines.append(f"{limit}: violated {counted(len(rows), 'times')}, worst {locations}")
        return lines


@functools.cache
def _no_rows() -> pd.DataFrame:
    """Return a table without rows, which takes longer to make than to copy."""
    return pd.DataFrame(columns=list(Violations.COLUMNS))


def _are_places(rows: pd.DataFrame) -> bool:
    """Return whether each violation is of something that must not be at all, so that amounts say nothing."""
    is_one = (rows["amount"] == 1) & (rows["allowed"] == 0)
    return bool(is_one.all()) and not any(is_convertible(str(unit)) for unit in rows["unit"])
