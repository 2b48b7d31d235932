"""The protocol of a plan, and the constraint violations that a check of a plan returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


class Plan(Protocol):
    """A decision as tables."""

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return tables that a user can act on."""


class Violations:
    """Constraints that a plan violates: one row for each place, with its amount.

    frame  limit, where, amount, allowed, unit
    """

    COLUMNS = ("limit", "where", "amount", "allowed", "unit")

    def __init__(self, frame: pd.DataFrame | None = None) -> None:
        self.frame = pd.DataFrame(columns=list(self.COLUMNS)) if frame is None else frame

    @classmethod
    def of(
        cls, limit: str, *, where: Sequence[str], amount: ArrayLike, allowed: ArrayLike, unit: str
    ) -> Violations:
        """Return the rows of one constraint; `where` names the places, `amount` exceeds `allowed` there."""
        amount, allowed = np.broadcast_arrays(np.asarray(amount, float), np.asarray(allowed, float))
        rows = {"limit": limit, "where": list(where), "amount": amount, "allowed": allowed, "unit": unit}
        return cls(pd.DataFrame(rows, columns=list(cls.COLUMNS)))

    def __add__(self, other: Violations) -> Violations:
        frames = [part.frame for part in (self, other) if len(part)]
        return Violations(pd.concat(frames, ignore_index=True)) if frames else Violations()

    def __len__(self) -> int:
        return len(self.frame)

    def of_limits(self, limits: Iterable[str] | None) -> Violations:
        """Return the violations of the named constraints; None: all."""
        if limits is None:
            return self
        return Violations(self.frame[self.frame["limit"].isin(list(limits))].reset_index(drop=True))

    def sentences(self, most: int = 3) -> list[str]:
        """Return one line for each violated constraint: the count, and the worst places with amounts."""
        lines = []
        for limit, rows in self.frame.groupby("limit", sort=False):
            excess = (rows["amount"] - rows["allowed"]).abs()
            worst = rows.loc[excess.sort_values(ascending=False, kind="stable").index[:most]]
            places = "; ".join(
                f"{row.where} {row.amount:,.6g} against {row.allowed:,.6g} {row.unit}".rstrip()
                for row in worst.itertuples()
            )
            lines.append(f"{limit}: violated {len(rows)} time{'s' * (len(rows) > 1)}, worst {places}")
        return lines
